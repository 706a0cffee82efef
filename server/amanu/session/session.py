"""One session: what it is made of, and who of them hears what; open and close; what the person decides and sets.

A prompt becomes a turn in `prompts.py`. Everything a session does goes out by `emit`.
"""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Literal

from amanu.agent.turn import Ending
from amanu.checks.editor_feedback import Aftermath
from amanu.checks.proposal_checks import Verdicts
from amanu.context.images import Pictures
from amanu.models import routing
from amanu.models.session_transport import Player
from amanu.permissions import policy
from amanu.permissions.approvals import Approvals, Ceilings
from amanu.proposals.proposals import Proposals
from amanu.session.audit_recorder import Audited
from amanu.session.checkpoints import Checkpoints
from amanu.session.events import Client, EventStream
from amanu.session.history import SHOWN_ITEMS
from amanu.session.notices import Notices
from amanu.session.paging import Pages
from amanu.session.prompt_composer import Hearing
from amanu.session.prompts import Prompts
from amanu.session.queue import Inbox
from amanu.session.recording import SessionLine
from amanu.session.restore import Restored
from amanu.session.review import Edits
from amanu.session.services import Services
from amanu.session.trust_state import SessionTrust
from amanu.session.turn_factory import Turns
from amanu.storage.journal import Journal
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    ProposalChanged,
    SessionChanged,
)
from amanu_protocol.items import Mode, Proposal, Walls
from amanu_protocol.requests import (
    ApprovalResolveParams,
    ApprovalResolveResult,
    SessionAttachResult,
)
from amanu_protocol.state import SessionState


class Session:
    """The requests of the protocol, one method each, here or in the part they are about, raising `AmanuError`. Made by
    `sessions.Sessions`."""

    def __init__(self, services: Services, journal: Journal, restored: Restored) -> None:
        self._services = services
        self._journal = journal
        self._conversation = restored.conversation
        self.state = restored.state
        # By the clock: events a dead daemon had sent but not saved must not be taken for ours.
        epoch = max(restored.epoch + 1, int(time.time() * 1000))
        self.emit = EventStream(restored.state, journal, epoch, services.secrets.mask_content, services.audit.durable)
        self._audited = Audited(services.audit, restored.state)
        self._environment: dict[str, str] = {}
        self._closed = False
        self.used = time.monotonic()
        """When somebody last asked for it."""
        self._notices = Notices(self.emit)
        self._line = SessionLine(services.secrets.mask_output, self.state, self._tell, services.private)
        roots = [Path(root) for root in self.state.roots]
        self._workspace = Workspace(roots, services.overlay, private=services.private)
        self.trust = SessionTrust(services.trust, self.state, self.emit, self._writable, self._trust_changed)
        for result in self._conversation.results():
            self._workspace.seen.restore(result.knows)
        self._proposals = Proposals(self._workspace, self._proposal_changed, self._save_preimage)
        note = self._proposals.note_checks
        self._verdicts = Verdicts(
            self._workspace, services.checkers, note, self._environment, lambda: self.state.trusted
        )
        wait = services.settings.checks.wait_seconds
        self._aftermath = Aftermath(self._workspace, note, wait, self._verdicts.of_applied)
        self.approvals = Approvals(
            self.emit,
            self._circumstances,
            lambda: services.consent.rules(self.state.roots, trusted=self.state.trusted),
            lambda scope, rule: services.consent.remember(scope, rule, self.state.roots),
            proposal=self._proposal,
            ceilings=Ceilings(services.settings.limits.unasked_commands, services.settings.limits.unasked_seconds),
            headless=services.headless,
        )
        """For what rules say; an answer goes through `resolve_approval`."""
        inbox = Inbox(self.emit, self.state, self._report, list(restored.steering.values()), restored.unheard)
        pictures = Pictures(journal, self._conversation, inbox.pictures, inbox.queued_pictures)
        self._unheard = restored.unheard
        self._earlier = restored.earlier
        self.emit.watch = self._watch
        turns = Turns(
            services,
            journal,
            self._conversation,
            self._workspace,
            self._proposals,
            self._aftermath,
            self.approvals,
            self.trust.covers,
            inbox,
            self._environment,
            self.state,
            self.emit,
        )
        self.hearing = Hearing(
            services,
            self._conversation,
            self._workspace,
            pictures,
            self.approvals,
            self.trust.covers,
            inbox,
            turns,
            self._notices,
            self.state,
            self.emit,
        )
        self.prompts = Prompts(
            self.state,
            restored.prompt_ids,
            inbox,
            pictures,
            self.hearing,
            turns,
            self.approvals,
            self.trust,
            self._line,
            self._notices,
            self._environment,
            self.emit,
            check=self._must_be_writable,
            writable=self._writable,
            changed=lambda: services.changed(self),
            learn=services.learn,
            forget=self._forget,
            mask=services.secrets.mask_content,
        )
        self.edits = Edits(self._proposals, self.approvals, self.state, self.emit, self._must_be_writable)
        self.checkpoints = Checkpoints(
            journal,
            self._conversation,
            restored.earlier,
            inbox,
            self.edits,
            self.state,
            self.emit,
            self.prompts.idle,
        )
        self.pages = Pages(journal, restored.earlier, self.state)
        self._closing = restored.closing
        self._ending: asyncio.Task[None] | None = None
        """Checkers are being ended, because trust was taken back."""

    async def open(self, *, begins: bool = False) -> None:
        """Close on record what a crash left open; open proposals are open again. `begins`: it is new."""
        if self.state.read_only:
            return
        if begins:
            self._audited.begins()
        for event, entry in self._closing:
            self.emit(event, entry)
        if self._journal.damage:
            self._notices.ending(None, Ending("failed", self._journal.damage, kind="storageError"))
        self._closing = []
        await self._proposals.restore(self.state.proposals)

    async def close(self, *, anyway: bool = False) -> None:
        """Cancel what runs and let go of the journal. Raises `AmanuError` (storageError) and stays open when something
        could not be saved; `anyway` gives that up."""
        self._closed = True  # nothing starts any more
        await self.prompts.stop()
        await self._verdicts.close()
        await self._aftermath.close()
        await self._proposals.settled()  # what the person just accepted is in its file, and on record
        async with self.prompts.starting:
            try:
                await self._journal.durable()
            except AmanuError:
                if not anyway:
                    self._closed = False
                    raise
            await self._proposals.close()
            self._line.close()
            with contextlib.suppress(AmanuError):
                await self._journal.close()

    @property
    def idle(self) -> bool:
        """Nobody looks at it, and it does nothing."""
        return not self.running and not self.emit.attached and not self.prompts.starting.locked()

    @property
    def outdated(self) -> bool:
        """Another daemon goes on with it, and nobody looks at it here."""
        return self.state.read_only and not self.emit.attached

    @property
    def running(self) -> bool:
        return self.prompts.running

    # Watching ---------------------------------------------------------------------------------------

    def attach(self, client: Client, epoch: int | None, since_seq: int | None) -> SessionAttachResult:
        """The events the client missed, or the state when they are no longer here; the client gets all further
        events."""
        if self._closed:
            raise _closed()
        if client.ripgrep is not None:
            self._workspace.ripgrep = client.ripgrep
        from_seq = self.emit.attach(client)
        if epoch == self.emit.epoch and since_seq is not None:
            missed = self.emit.since(since_seq)
            if missed is not None:
                return SessionAttachResult(epoch=self.emit.epoch, from_seq=from_seq, events=missed)
        return SessionAttachResult(epoch=self.emit.epoch, from_seq=from_seq, state=self.view())

    def detach(self, client: Client) -> None:
        self.emit.detach(client)

    def view(self) -> SessionState:
        """The state as it is now, with the last `SHOWN_ITEMS` items."""
        return self.state.last(SHOWN_ITEMS)

    # Deciding ---------------------------------------------------------------------------------------

    async def resolve_approval(self, params: ApprovalResolveParams, client: Client) -> ApprovalResolveResult:
        self._must_be_writable()
        pending = self.approvals.pending(params.tool_call_id)
        if params.decision == "allow" and pending is not None and pending.approval.proposal_id is not None:
            await self._proposals.catch_up(pending.approval.proposal_id)  # its digest is of the files as they are now
        result = self.approvals.resolve(params, client.name)
        if result.status == "resolved" and params.scope in ("workspace", "user"):
            self._services.rules_changed()
        await self.emit.durable()
        return result

    def allow(self, rule: str) -> None:
        """Allow by rule for this session (`--allow`). Raises `AmanuError` (invalidRule)."""
        for each in policy.allow_rules(rule, "--allow"):
            self.approvals.allow_in_session(each)

    # Properties -------------------------------------------------------------------------------------

    async def rename(self, title: str) -> None:
        await self._set(SessionChanged(title=title))

    async def set_mode(self, mode: Mode) -> None:
        """Questions that stand are decided on again, as if they came now."""
        await self._set(SessionChanged(mode=mode))

    async def set_model(self, model_id: str, client: Client) -> None:
        """Takes effect with the next turn. Raises `AmanuError` when there is no such model or no key for it."""
        self._must_be_writable()
        await routing.check(model_id, self._services.settings, self._services.registry, client.environment)
        await self._set(SessionChanged(model_id=model_id))

    async def record(self, path: str | None) -> None:
        """Write the exchanges with models to that new file; None ends it. Raises `AmanuError`: invalidParams,
        storageError."""
        self._must_be_writable()
        self._line.record(path, self._environment)
        await self.emit.durable()

    def replay(self, player: Player) -> None:
        """From now on `player` answers in the place of the models' services."""
        self._line.line.player = player

    def hold(self, walls: Walls) -> None:
        """What holds commands from now on: it was proved."""
        if walls != self.state.walls and self._writable():
            self.emit(SessionChanged(walls=walls))

    async def _set(self, event: SessionChanged) -> None:
        self._must_be_writable()
        self.emit(event)
        if event.mode is not None:
            self.approvals.reconsider()
        self._services.changed(self)
        await self.emit.durable()

    async def _forget(self, turn_id: str) -> None:
        await self.checkpoints.forget(turn_id)

    # What hears of what ----------------------------------------------------------------------------

    def _watch(self, event: Event, position: int) -> None:
        self._unheard.see(self.state, event)
        self._earlier.see(self.state, event, position)
        self._audited.see(event, position)
        if isinstance(event, ApprovalRequested | ApprovalResolved):
            self._services.changed(self)  # it waits for the person, or no longer
        if isinstance(event, ApprovalRequested) and event.approval.proposal_id is not None:
            self._verdicts.asked(event.approval.proposal_id)

    def _proposal_changed(self, proposal: Proposal) -> None:
        before = self._proposal(proposal.proposal_id)
        self.emit(ProposalChanged(proposal=self.state.lean(proposal)))
        if self.state.turn is None and (before is None or before.waiting != proposal.waiting):
            self._services.changed(self)  # the end of a turn tells it anyway
        self.approvals.changed(proposal.proposal_id)
        self.trust.see(proposal)
        if proposal.state == "settled":
            self.approvals.finish_reviews(proposal.proposal_id)
        if not self._closed:
            self._aftermath.see(proposal)
            self._verdicts.see(proposal)

    def _trust_changed(self, taken_back: bool) -> None:
        self.approvals.reconsider()  # its rules count, or no longer
        if taken_back:
            self._ending = asyncio.create_task(self._verdicts.stop())

    def _tell(self, code: str, level: Literal["info", "warning"], text: str) -> None:
        """Everybody who looks at the session gets to know."""
        if not self._closed:  # else nobody looks any more
            self._notices.of_session(code, level, text)

    # What its parts ask -----------------------------------------------------------------------------

    def _circumstances(self) -> policy.Circumstances:
        walls = self._services.sandbox.tier != "none" or self._services.settings.sandbox.without == "accept"
        return policy.Circumstances(mode=self.state.mode, trusted=self.state.trusted, walls=walls)

    def _proposal(self, proposal_id: str) -> Proposal | None:
        return next((each for each in self.state.proposals if each.proposal_id == proposal_id), None)

    async def _save_preimage(self, turn_id: str, path: Path, data: bytes | None, mode: int | None) -> None:
        """Before a file changes, what it says is kept, and that it will change is on the audit log."""
        await asyncio.gather(self._services.audit.durable(), self._journal.save_preimage(turn_id, path, data, mode))

    def _report(self, proposal_id: str) -> str:
        calls = self._proposals.get(proposal_id).tool_call_ids
        return "\n".join(dict.fromkeys(self._proposals.report(call_id) for call_id in calls))

    def _writable(self) -> bool:
        return not self._closed and not self.state.read_only

    def _must_be_writable(self) -> None:
        if self._closed:
            raise _closed()
        if self.state.read_only:
            raise AmanuError(
                "sessionReadOnly",
                "This session is open in another Amanu daemon; here it can only be looked at.",
                hint="Use the editor that has it, or close it there.",
            )


def _closed() -> AmanuError:
    return AmanuError("sessionNotFound", "This session was closed a moment ago.", hint="Open it again and repeat that.")
