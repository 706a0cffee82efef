"""The shell that enters a command: it runs preparing steps in the command's process, and then becomes the command. One
shell for all steps, since starting it takes longer than running them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class EntryShell:
    """A bash that runs steps and then becomes the command."""

    bash: str
    """Path of bash. It runs in privileged mode (`-p`): no start-up files, no functions from the environment."""
    steps: tuple[str, ...] = ()
    """Bash commands, run in order. A failing one does not stop the rest, unless it exits."""
    handles: tuple[int, ...] = ()
    """Descriptors that the command inherits."""

    def with_step(self, step: str) -> "EntryShell":
        return replace(self, steps=(*self.steps, step))

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """The command line that becomes `argv`, in the same process and with its arguments unchanged."""
        if not self.steps:
            return list(argv)
        return [self.bash, "-p", "-c", "; ".join((*self.steps, 'exec "$@"')), self.bash, *argv]


def plain_entry_shell() -> EntryShell | None:
    """An entry shell without steps. None where there is no bash."""
    bash = "/bin/bash"
    return EntryShell(bash) if os.access(bash, os.X_OK) else None
