"""The shell through which a command is entered: it does what must be done in its place, and then becomes it. One for
all of that: starting it takes longer than what it does."""

import os
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class EntryShell:
    bash: str
    """Its path. Privileged mode (`-p`): it reads no start-up file, and takes no functions from the environment."""
    steps: tuple[str, ...] = ()
    """Of bash, one after the other. One that fails keeps nothing from being run, unless it exits."""

    def with_step(self, step: str) -> "EntryShell":
        return EntryShell(self.bash, (*self.steps, step))

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """The command line that ends up as `argv`: same process, arguments untouched."""
        if not self.steps:
            return list(argv)
        return [self.bash, "-p", "-c", "; ".join((*self.steps, 'exec "$@"')), self.bash, *argv]


def plain_entry_shell() -> EntryShell | None:
    """Nothing is to be done yet. None where there is no bash."""
    bash = "/bin/bash"
    return EntryShell(bash) if os.access(bash, os.X_OK) else None
