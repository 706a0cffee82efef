"""The work that a session of the user's opens and closes, of which its sub-agents share a part."""

import asyncio

from amanu.checks.editor_feedback import EditorFeedback
from amanu.checks.proposal_checks import ProposalChecks
from amanu.models.session_transport import SessionTransport
from amanu.session.core import SessionCore
from amanu.session.shared_work import SharedWork
from amanu_protocol.events import ApprovalRequested, Event
from amanu_protocol.items import Proposal


class OwnWork:
    def __init__(self, core: SessionCore) -> None:
        services, note = core.services, core.proposals.note_checks
        checks = ProposalChecks(core.view, services.checkers, note, core.environment, core.trusted)
        wait_seconds = services.settings.checks.wait_seconds
        feedback = EditorFeedback(core.workspace, note, wait_seconds, checks.check_applied)
        self.shared = SharedWork(checks, feedback, SessionTransport())
        self._core = core
        self._ending_checkers: asyncio.Task[None] | None = None
        core.emit.listeners.append(self._on_event)
        core.proposal_listeners.append(self._on_proposal)

    async def open(self, *, begins: bool) -> None:
        """`begins`: the session is new."""
        if begins:
            self._core.audit.record_start()
        await self._core.proposals.restore(self._core.state.proposals)

    async def stop(self) -> None:
        """Stop what runs."""
        await self.shared.checks.close()
        await self.shared.feedback.close()

    async def close(self) -> None:
        """Once everything is saved."""
        await self._core.proposals.close()
        if self.shared.transport.recorder is not None:
            self.shared.transport.recorder.close()

    def stop_checkers(self) -> None:
        """Trust was taken back."""
        self._ending_checkers = asyncio.create_task(self.shared.checks.stop())

    def _on_event(self, event: Event, position: int) -> None:
        if isinstance(event, ApprovalRequested) and event.approval.proposal_id is not None:
            self.shared.checks.on_question(event.approval.proposal_id)

    def _on_proposal(self, proposal: Proposal) -> None:
        if not self._core.access.closed:
            self.shared.feedback.on_proposal(proposal)
            self.shared.checks.on_proposal(proposal)
