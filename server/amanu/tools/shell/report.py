"""How a command ended, as notes below its output: for the model, the user and the audit log.

`session/audit_recorder.py` reads some of these notes; change both together.
"""

import contextlib
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from amanu.core.requirements import NamedPath
from amanu.sandbox.quarantine import QuarantineResult
from amanu.shell.pipes import PipedCommand, hidden_failures
from amanu.text.display import file_list, unbroken

_TAIL = 2000  # characters of output in which its last line is looked for
_NO_MEMORY = re.compile(r"cannot allocate|memoryerror|out of memory|bad_alloc|memory exhausted", re.I)
_ACTORS = "git, editors, shells or agents"
_INSTEAD = "which no tool can read. Propose the change with write_file instead: the user is asked."
_NEW = f"Created in a new folder, where {_ACTORS} act on it: {{names}}. Look at it before you work there."
_ASIDE = f"Put aside, because {_ACTORS} would act on it: {{names}}. It is now in {{folder}}, {_INSTEAD}"
_BACK = (
    f"Restored, because commands may not change what {_ACTORS} act on: {{names}}. The command's version is now in "
    f"{{folder}}, {_INSTEAD}"
)
_SECRETS = "Moved back to where they were, because they hold secrets and the user was not asked about this: {names}."
_FAILED = f"Could not be put aside or restored, so {_ACTORS} may act on it: {{names}}. Tell the user."
STOPPED_SWAPPED = (
    "The command was ended: a script or settings file that it uses was changed or replaced while it started."
)
"""The `stop_reason` of a command whose scripts were swapped under it."""
_SWAPPED = (
    "A script or settings file that this command uses was changed or replaced while it ran: what ran may not be what "
    "was approved."
)


@dataclass
class CommandEnd:
    """How a command came to its end."""

    code: int | None = None
    """Its exit code; negative for a signal."""
    seconds: float = 0.0
    """How long it ran."""
    stop_reason: str = ""
    """Why we ended it, as a sentence; "" when it ended by itself."""
    pipe: Sequence[PipedCommand] = ()
    """The pipe its line ends with."""
    pipe_statuses: Sequence[int] = ()
    """The exit codes of the last pipe's commands, as bash's `PIPESTATUS`."""
    outlived_call: bool = False
    """The user put it in the background."""
    left_over: int = 0
    """Processes that it had left running, and that were ended with it."""
    was_swapped: bool = False
    """A file that it runs was changed or replaced meanwhile."""
    memory: int | None = None
    """Bytes that each of its processes might have; None: not limited."""
    tried_network: bool = False
    """It tried the network, which it does not have."""
    quarantine: QuarantineResult = field(default_factory=QuarantineResult)
    """See `SandboxedCommand.settle`."""
    unseen: Sequence[Path] = ()
    """See `SandboxedCommand.workspace_secrets`."""
    hidden: Sequence[NamedPath] = ()
    """See `SandboxedCommand`."""

    @property
    def failed(self) -> bool:
        return bool(self.stop_reason) or self.code != 0

    @property
    def hidden_failures(self) -> str:
        """The failures that its exit code hides: "`pytest -q` ended with exit code 1"; "" for none."""
        if self.failed:
            return ""
        hidden = hidden_failures(self.pipe, self.pipe_statuses)
        return ", ".join(f"`{unbroken(text)}` ended with exit code {status}" for text, status in hidden)

    def exit_note(self) -> str:
        if self.stop_reason:
            return self.stop_reason
        if self.code is not None and self.code < 0:
            with contextlib.suppress(ValueError):
                return f"Ended by signal {signal.Signals(-self.code).name}."
        return f"Exit code: {self.code}"

    def summary(self, output: str) -> str:
        """How it went, on one line: the exit code of a failure, and the last line it printed."""
        last = next((line for line in reversed(output[-_TAIL:].splitlines()) if line.strip()), "no output").strip()
        how = self.exit_note().replace("Exit code: ", "exit ").removesuffix(".")
        if hidden := self.hidden_failures:
            return f"{hidden} · {last}"
        return f"{how} · {last}" if self.failed else last

    def process_notes(self) -> Iterator[str]:
        """What happened to its processes and scripts, besides how it ended."""
        if hidden := self.hidden_failures:
            yield f"In its pipe, {hidden}; the exit code above is the last command's."
        if self.left_over and not self.stop_reason:
            processes = "1 background process" if self.left_over == 1 else f"{self.left_over} background processes"
            were = "it was" if self.left_over == 1 else "they were"
            yield f"It left {processes} running; {were} ended. To keep a command running, call with background=true."
        if self.was_swapped:
            yield _SWAPPED

    def quarantine_notes(self, display_path: Callable[[Path], str]) -> Iterator[str]:
        """What was put aside or restored afterwards."""
        result = self.quarantine
        for note, paths in (
            (_ASIDE, result.quarantined),
            (_BACK, result.restored),
            (_NEW, result.added),
            (_FAILED, result.failed),
            (_SECRETS, result.secrets),
        ):
            if paths:
                yield note.format(names=file_list([display_path(path) for path in paths]), folder=result.folder)

    def memory_note(self, output: str) -> str | None:
        """A hint when the output looks as if the memory limit made it fail."""
        if self.memory is None or not _NO_MEMORY.search(output):
            return None
        return (
            f"Each process was limited to {self.memory / (1 << 30):.1f} GiB of memory, because the user did not "
            "approve this command themselves."
        )
