"""The user's own command line, in answer to an approval."""

from dataclasses import dataclass

from amanu.core.tool import CommandPreview, Preview
from amanu_protocol.items import Approval, CommandSandbox, Decision, Grant


@dataclass(frozen=True)
class CommandEdit:
    """It is not decided on yet."""

    answer: Decision
    seen: Approval
    """The approval the user saw."""
    command: CommandPreview | None
    """The command that it was about."""
    reasons: frozenset[tuple[str, str]]
    """(What, why) of all that was asked about."""

    @property
    def original(self) -> str | None:
        return self.seen.original_command or self.seen.command

    def covers(self, preview: Preview) -> bool:
        """Whether a command is held at least as the one that was seen, and needs no grant that was not in sight."""
        in_sight = {*self.seen.likely_grants, *self.answer.grants}
        if "unsandboxed" in in_sight:
            in_sight.add("network")
        if preview.command is None or self.command is None:
            return False
        acts_more = preview.command.placing.acts and not self.command.placing.acts
        needs_more = not in_sight >= {*preview.command.likely_grants}
        return not (acts_more or needs_more) and _reach(preview.sandbox) <= _reach(self.seen.sandbox)

    def grants_for(self, preview: Preview) -> list[Grant]:
        """The grants of the answer that this call can have."""
        grants = () if preview.command is None else preview.command.grants
        return [grant for grant in self.answer.grants if grant in grants]


def _reach(sandbox: CommandSandbox | None) -> int:
    """How far a command's writes may reach; the sandbox tells it with what the command probably needs."""
    return 2 if sandbox is None else ("nothing", "workspace", "everything").index(sandbox.writes)
