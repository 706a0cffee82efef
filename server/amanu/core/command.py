"""What is understood of a command line, before any of it runs.

`shell/analyze.py` makes a `Reading` of a text; policy (`permissions/policy.py`) decides on each of its commands; the
sandbox (`sandbox/`) holds what runs. The reading decides whether to ask, never what can happen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class CommandContext:
    """Where a command would run. Folders are real paths: absolute, no link in them."""

    folder: Path
    roots: tuple[Path, ...]
    environment: Mapping[str, str]
    """As the command gets it: PATH and HOME count."""
    may_read: Callable[[Path], bool]
    """True when policy lets a tool read that file (real path) without a question."""
    trusted: bool = False
    """The user trusts the folders: what git and tools are configured to do there is theirs."""
    until: float = inf
    """When looking at files has to end, as `time.thread_time()`: what is not seen by then is asked about."""


Ask = Literal["network", "unsandboxed", "secrets"]

Effect = Literal["none", "some", "ruin"]
"""Nothing but output · anything else, or not known · what no rule may allow (`rm -rf /`)."""


@dataclass(frozen=True)
class Command:
    """One command of a line: also one behind a wrapper, in a substitution, in a `-c` string; and each redirection
    that writes a file, with the words `>` and the path."""

    text: str
    """As it is written in the line."""
    words: tuple[str | None, ...]
    """As the program gets them, wrappers and harmless assignments (`CI=1`) left out; what else is set for it comes
    first, as one word each. None: not known before it runs, any number of words."""
    effect: Effect
    why: str
    """A sentence for the user: "Only prints what it is given.", "Runs a script of the workspace.\""""
    prefix: tuple[str, ...] | None = None
    """What is set for it, program and sub-command, what a rule would remember (`git commit`, `PYTHONPATH=src pytest`);
    None: cannot be remembered."""
    program: str | None = None
    """The file that would run, absolute; None: a builtin of the shell, or none was found."""
    reads: tuple[str, ...] = ()
    """Files and folders it is known to read, absolute and real."""
    runs: tuple[str, ...] = ()
    """Files in the roots whose text it carries out (scripts, Makefile, package.json), absolute and real: an approval
    is for these bytes."""
    network: bool = False
    """It will hardly work without the network."""
    git: bool = False
    """It changes git's own files (commit, add, switch …) if it does anything."""
    assigned: int = 0
    """How many of the words set variables for it."""
    spelled: tuple[str | None, ...] = ()
    """The words as they are written, where a script among `words` is named by its place in the workspace: what is
    denied is denied by either. Empty: the same."""
    asks: frozenset[Ask] = frozenset()
    """What the call asks the user for, whatever the command is: the network, to run outside the sandbox, the files of
    the workspace that hold secrets."""


@dataclass(frozen=True)
class Reading:
    """A command line, understood. `commands` holds each that could run."""

    commands: tuple[Command, ...]
    unclear: str | None = None
    """A sentence: why not all of it is understood. It can then only be asked about, once; commands that were seen
    count for what is denied."""
    argv: tuple[str, ...] | None = None
    """Of a plain command: what to execute without a shell, the program as an absolute path."""

    @property
    def effect(self) -> Effect:
        effects = {command.effect for command in self.commands} | ({"some"} if self.unclear else set[Effect]())
        return "ruin" if "ruin" in effects else "some" if "some" in effects else "none"
