"""What a session shares with the sub-agents that work for it, besides what `core.SessionCore` borrows."""

from dataclasses import dataclass

from amanu.checks.editor_feedback import EditorFeedback
from amanu.checks.proposal_checks import ProposalChecks
from amanu.models.session_transport import SessionTransport


@dataclass
class SharedWork:
    """As a sub-agent's session has it: its parent's, so nothing of it begins or ends with the sub-agent."""

    checks: ProposalChecks
    feedback: EditorFeedback
    transport: SessionTransport

    async def open(self, *, begins: bool) -> None:
        """`begins`: the session is new."""

    async def stop(self) -> None:
        """Stop what runs."""

    async def close(self) -> None:
        """Once everything is saved."""

    def stop_checkers(self) -> None:
        """Trust was taken back."""
