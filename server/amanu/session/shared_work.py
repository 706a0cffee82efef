"""What a session shares with the sub-agents that work for it, besides what `core.SessionCore` borrows."""

from dataclasses import dataclass

from amanu.checks.editor_feedback import EditorFeedback
from amanu.checks.proposal_checks import ProposalChecks
from amanu.models.session_transport import SessionTransport


@dataclass(frozen=True)
class SharedWork:
    """Nothing of it begins or ends with a sub-agent: only `OwnWork`, which stays with the session, opens and closes."""

    checks: ProposalChecks
    feedback: EditorFeedback
    transport: SessionTransport
