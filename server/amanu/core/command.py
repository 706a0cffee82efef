"""A command line as it is understood before any of it runs.

`shell/analyze.py` turns a line into a `Reading`, policy (`permissions/policy.py`) decides on each of its commands, and
the sandbox (`sandbox/`) confines what runs. A reading only decides whether to ask; the sandbox decides what can happen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class CommandContext:
    """Where a command would run. Folders are real paths: absolute and free of links."""

    folder: Path
    roots: tuple[Path, ...]
    environment: Mapping[str, str]
    """The environment the command gets; PATH and HOME matter."""
    may_read: Callable[[Path], bool]
    """Whether policy lets a tool read that file (a real path) without asking."""
    trusted: bool = False
    """The user trusts the folders, and so what git and other tools are configured to do there."""
    sandboxed: bool = False
    """A sandbox works, and holds what runs."""
    until: float = inf
    """Deadline for reading files, as `time.thread_time()`: what has not been read by then is asked about."""


Ask = Literal["network", "unsandboxed", "secrets"]
"""What a call asks the user for: see `Command.asks`."""

Effect = Literal["none", "some", "ruin"]
"""`none`: only prints · `some`: anything else, or unknown · `ruin`: what no rule may allow (`rm -rf /`)."""


@dataclass(frozen=True)
class Command:
    """One command of a line, including those behind a wrapper, in a substitution or in a `-c` string. A redirection
    that writes a file is one too, with the words `>` and the path."""

    text: str
    """The command as it is written in the line."""
    words: tuple[str | None, ...]
    """The words the program gets, without wrappers and harmless assignments (`CI=1`); other assignments come first, one
    word each. None: unknown until it runs, any number of words."""
    effect: Effect
    why: str
    """A sentence for the user: "Only prints what it is given.", "Runs a script of the workspace.\""""
    prefix: tuple[str, ...] | None = None
    """What a rule would remember: assignments, program and sub-command (`git commit`, `PYTHONPATH=src pytest`). None:
    it cannot be remembered."""
    program: str | None = None
    """Absolute path of the file that would run; None: a shell builtin, or no file was found."""
    reads: tuple[str, ...] = ()
    """Files and folders it is known to read, as real paths."""
    runs: tuple[str, ...] = ()
    """Files in the roots whose text it executes (scripts, Makefile, package.json), as real paths: an approval covers
    their bytes."""
    network: bool = False
    """It probably needs network access."""
    git: bool = False
    """If it changes anything, then git's own files (commit, add, switch …)."""
    assigned: int = 0
    """How many of `words`, from the first, are assignments."""
    spelled: tuple[str | None, ...] = ()
    """The words as written, where `words` names a script by its path in the workspace: a rule that denies either form
    denies the command. Empty: the same as `words`."""
    asks: frozenset[Ask] = frozenset()
    """What the call asks the user for besides the command itself: network access, running outside the sandbox, or
    reading the workspace's files that hold secrets."""
    looks: bool = False
    """A command of git that only prints what is there, unless git is configured to do more."""


@dataclass(frozen=True)
class Reading:
    """A command line as understood. `commands` holds every command that could run."""

    commands: tuple[Command, ...]
    unclear: str | None = None
    """Why not all of it is understood, as a sentence; None when all is. A line that is unclear can only be approved
    once; rules that deny still apply to the commands that were recognised."""
    argv: tuple[str, ...] | None = None
    """For a plain command: what to execute without a shell, the program as an absolute path; otherwise None."""

    @property
    def effect(self) -> Effect:
        effects = {command.effect for command in self.commands} | ({"some"} if self.unclear else set[Effect]())
        return "ruin" if "ruin" in effects else "some" if "some" in effects else "none"
