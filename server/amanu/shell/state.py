"""What is known of the shell at one point in a line: its folder and its variables."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from amanu.core.command import CommandContext


@dataclass
class State:
    """The shell's state as far as it is known; `context` is what the command starts with."""

    context: CommandContext
    folder: Path | None
    """None when it is not known."""
    variables: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Variables set in this line. None: set to an unknown value."""
    forgotten: bool = False
    """Any variable may have been set."""

    def value(self, name: str) -> str | None:
        """The value of a variable; None when it is not known."""
        if name in self.variables:
            return self.variables[name]
        if self.forgotten:
            return None
        if name == "PWD":
            return str(self.folder) if self.folder else None
        return self.context.environment.get(name) if name == "HOME" else None

    def copy(self) -> "State":
        return State(self.context, self.folder, dict(self.variables), self.forgotten)

    def forget(self) -> None:
        """Drop everything known, after a command that can change anything in the shell."""
        self.folder = None
        self.variables.clear()
        self.forgotten = True

    def merge(self, branch: Self) -> None:
        """Keep only what holds in both this state and `branch`, as after an `if`."""
        if self.folder != branch.folder:
            self.folder = None
        self.forgotten |= branch.forgotten
        for name in self.variables.keys() | branch.variables.keys():
            if self.value(name) != branch.value(name) or name not in self.variables:
                self.variables[name] = None
