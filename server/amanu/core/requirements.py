"""What a command may do: the sandbox enforces it (`sandbox/`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from amanu.core.place import WORKSPACE, Place


@dataclass(frozen=True)
class NamedPath:
    """A path that exists, as a command line names it."""

    path: Path
    """Absolute."""
    spelled: str
    """The form in which programs that miss it may print it."""
    looked_at: bool = False
    """The command does nothing but look at it, and need not say so if it finds nothing there: `test -e`, `ls`."""
    is_temporary: bool = False
    """It is in `/tmp`, where each session has files of its own: one of that name elsewhere may have nothing to do with
    the command, unless that says that it misses it."""


@dataclass(frozen=True)
class SandboxRequirements:
    """All that the sandbox is told of a command. Policy and the user decide it, never the model or the workspace."""

    place: Place = WORKSPACE
    tracked_keys: bool = False
    """May read private keys that git has as they are, which would break `git diff` if hidden: only git reads files."""
    borrowing: bool = False
    """Git may read the objects of repositories that this one borrows from (alternates): the user trusts the folder."""
    readable: tuple[Path, ...] = ()
    """Further paths it may read: caches of our own programs, folders of active skills of the user's; never paths named
    by a model or a workspace."""
    opened: tuple[Path, ...] = ()
    """Folders that go with what it runs, or that its user named to it: it may read them, but for the secrets in them.
    A home folder, what is above one, and places for secrets stay hidden."""
    writable: tuple[Path, ...] = ()
    """Further folders it may write: caches that the user was asked about."""
    pinned: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Absolute path → bytes of the files it runs, as they were approved. It sees these bytes where the sandbox's tier
    can do that."""
    layer: Path | None = None
    """The folder of the layer over its roots (`sandbox/layers/`) where the place is a private copy: what it writes in
    them, protected files and all of git's included, stays in the layer. No other command may run in that layer
    meanwhile. Only where `Sandbox.layer_fault` finds nothing; elsewhere it is not run."""
    watched: tuple[str, ...] = ()
    """Files and links it runs: if one has been replaced by the end, the result says so. No tier can pin a name."""
    folder_identity: tuple[int, int] | None = None
    """Device and inode of the folder it was approved to run in."""
    programs: tuple[str, ...] = ()
    """Programs outside the workspace that the line calls by their paths, absolute: readable, as those in `PATH` are."""
    named: tuple[NamedPath, ...] = ()
    """Paths outside the workspace that the line names. The sandbox tells which of them it hides."""
    argv: tuple[str, ...] | None = None
    """For a plain command: what to execute without a shell, the program as an absolute path. None: bash runs the
    line."""
