"""What one command may do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class SandboxRequirements:
    """The least that lets an approved command work. Decided by policy and user, never by model or workspace."""

    writes: Literal["nothing", "workspace"] = "workspace"
    """`nothing`: of a command that was judged to have no effect. Else the roots, but for what is protected."""
    network: bool = False
    git: bool = False
    """Git's own files too (index, objects, refs; not hooks, not config): the command is a git command that needs it."""
    settings: bool = False
    """Git's settings too, as git itself changes them (remotes, branches, submodules): the line is such commands."""
    checkout: bool = False
    """What of `protected` differs between branches, too (`protected.CHECKED_OUT`): the line is nothing but git."""
    borrowing: bool = False
    """Git may read objects of other repositories that those here borrow from: the user trusts the folder."""
    readable: tuple[Path, ...] = ()
    """What else it may read: caches of a program of ours, never what a model or a workspace names."""
    secrets: bool = False
    """Files of the workspace that hold secrets (`.env`, keys) can be read: the user was asked, or a rule of theirs
    names the command."""
    unsandboxed: bool = False
    """The user said so, for this call."""
    pinned: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Absolute path → bytes: files it runs, as they were approved. Where the tier can, these bytes are what it sees."""
    watched: tuple[str, ...] = ()
    """Files and links it runs: when one is another by the end, that is said. No tier can hold a name."""
    folder_identity: tuple[int, int] | None = None
    """Device and inode of the folder it runs in, as it was approved."""
    argv: tuple[str, ...] | None = None
    """Of a plain command: what to execute without a shell, the program as an absolute path. None: the line goes to
    bash."""
