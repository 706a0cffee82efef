"""How much runs unasked in one turn."""

from collections.abc import Sequence
from dataclasses import dataclass

from amanu.core.tool import Subject
from amanu.permissions.policy import Verdict, acts
from amanu_protocol.items import Decision


@dataclass(frozen=True)
class Ceilings:
    """How much rules may allow in one turn: a number of commands with an effect, and the seconds they take together.
    Beyond that the user is asked."""

    commands: int = 200
    seconds: float = 1800


class UnaskedCommands:
    """The commands with an effect that rules allowed in this turn."""

    def __init__(self, ceilings: Ceilings) -> None:
        self._ceilings = ceilings
        self._commands = 0
        self._seconds = 0.0

    def start_turn(self) -> None:
        self._commands, self._seconds = 0, 0.0

    def add_run_time(self, decision: Decision, seconds: float) -> None:
        """Count the time of a command that has ended and was allowed by this decision."""
        if decision.by == "rule":
            self._seconds += seconds

    def within(self, subjects: Sequence[Subject], verdict: Verdict) -> Verdict:
        """Commands with an effect that rules allow are counted; beyond the ceilings the user is asked."""
        if verdict.decision != "allow" or not any(map(acts, subjects)):
            return verdict
        if self._commands >= self._ceilings.commands:
            count = self._commands
            reason = f"rules have already allowed {count} commands in this turn (limits.unasked_commands)"
            return Verdict("ask", reason, rememberable=False, why=verdict.why)
        if self._seconds >= self._ceilings.seconds:
            seconds = f"{self._seconds:.0f} s"
            reason = f"commands allowed by rules have already taken {seconds} in this turn (limits.unasked_seconds)"
            return Verdict("ask", reason, rememberable=False, why=verdict.why)
        self._commands += 1
        return verdict
