"""One session: an inbox, at most one turn, steering and a queue; everything it does goes out by `emit`."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Literal

from amanu import commands
from amanu.agent import policy
from amanu.agent.approval import Approvals, Ceilings
from amanu.agent.turn import Ending, Turn, run_compaction, run_turn
from amanu.audited import Audited
from amanu.checkpoints import Checkpoints
from amanu.earlier import SHOWN_ITEMS
from amanu.edits import Edits
from amanu.hearing import Hearing
from amanu.inbox import Inbox, Prompt
from amanu.journal import Journal
from amanu.mentions import Heard
from amanu.models import routing
from amanu.models.line import Player
from amanu.notices import Notices
from amanu.paging import Pages
from amanu.pictures import NoRoom, Pictures
from amanu.restore import Restored
from amanu.running import Running
from amanu.services import Services
from amanu.session_line import SessionLine
from amanu.session_trust import SessionTrust
from amanu.stream import Client, EventStream
from amanu.turns import Turns
from amanu.verdicts import Verdicts
from amanu.workspace.aftermath import Aftermath
from amanu.workspace.proposals import Proposals
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Event,
    ItemCompleted,
    ProposalChanged,
    SessionChanged,
    TurnEnded,
    TurnStarted,
)
from amanu_protocol.items import Attachment, ImageAttachment, Mode, Proposal, UserMessage, Walls
from amanu_protocol.requests import (
    ApprovalResolveParams,
    ApprovalResolveResult,
    PromptSendParams,
    PromptSendResult,
    PromptSteerParams,
    SessionAttachResult,
    SessionCompactResult,
    TurnCancelResult,
)
from amanu_protocol.state import SessionState

log = logging.getLogger(__name__)

MAX_QUEUED = 100
"""Prompts of one session that wait for its turn; each is in the state that every client gets."""
CANCEL_SECONDS = 0.45
"""A cancel is acknowledged within half a second, also when a process takes longer to die."""


class Session:
    """The requests of the protocol, one method each, raising `AmanuError`. Made by `sessions.Sessions`."""

    def __init__(self, services: Services, journal: Journal, restored: Restored) -> None:
        self._services = services
        self._journal = journal
        self._conversation = restored.conversation
        self._prompt_ids = restored.prompt_ids
        self.state = restored.state
        # By the clock: events a dead daemon had sent but not saved must not be taken for ours.
        epoch = max(restored.epoch + 1, int(time.time() * 1000))
        self.emit = EventStream(restored.state, journal, epoch, services.secrets.mask_content, services.audit.durable)
        self._audited = Audited(services.audit, restored.state)
        self._environment: dict[str, str] = {}
        self._starting = asyncio.Lock()
        self._running = Running(self._ended)
        self._said_after: str | None = None
        """The first prompt that came while it was stopping: it does not wait for the person."""
        self._closed = False
        self.used = time.monotonic()
        """When somebody last asked for it."""
        self._notices = Notices(self.emit)
        self._line = SessionLine(services.secrets.mask_output, self.state, self._tell)
        roots = [Path(root) for root in self.state.roots]
        self._workspace = Workspace(roots, services.overlay, private=services.private)
        self.trust = SessionTrust(services.trust, self.state, self.emit, self._writable, self._trust_changed)
        for result in self._conversation.results():
            self._workspace.seen.restore(result.knows)
        self._proposals = Proposals(self._workspace, self._proposal_changed, self._save_preimage)
        note = self._proposals.note_checks
        self._aftermath = Aftermath(self._workspace, note, services.settings.checks.wait_seconds)
        self._verdicts = Verdicts(
            self._workspace, services.checkers, note, self._environment, lambda: self.state.trusted, self.trust.covers
        )
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
        self._inbox = Inbox(self.emit, self.state, self._report, list(restored.steering.values()), restored.unheard)
        self._pictures = Pictures(journal, self._conversation, self._inbox.pictures, self._inbox.queued_pictures)
        self._unheard = restored.unheard
        self._earlier = restored.earlier
        self.emit.watch = self._watch
        self._turns = Turns(
            services,
            journal,
            self._conversation,
            self._workspace,
            self._proposals,
            self._aftermath,
            self.approvals,
            self.trust.covers,
            self._inbox,
            self._environment,
            self.state,
            self.emit,
        )
        self.hearing = Hearing(
            services,
            self._conversation,
            self._workspace,
            self._pictures,
            self.approvals,
            self.trust.covers,
            self._inbox,
            self._turns,
            self._notices,
            self.state,
            self.emit,
        )
        self.edits = Edits(self._proposals, self.approvals, self.state, self.emit, self._must_be_writable)
        self.checkpoints = Checkpoints(
            journal, self._conversation, restored.earlier, self._inbox, self.edits, self.state, self.emit, self._idle
        )
        self.pages = Pages(journal, restored.earlier, self.state)
        self._closing = restored.closing
        self._ending: asyncio.Task[None] | None = None
        """Checkers are being ended, because trust was taken back."""

    def _circumstances(self) -> policy.Circumstances:
        walls = self._services.sandbox.tier != "none" or self._services.settings.sandbox.without == "accept"
        return policy.Circumstances(mode=self.state.mode, trusted=self.state.trusted, walls=walls)

    def _proposal(self, proposal_id: str) -> Proposal | None:
        return next((each for each in self.state.proposals if each.proposal_id == proposal_id), None)

    def _watch(self, event: Event, position: int) -> None:
        self._unheard.see(self.state, event)
        self._earlier.see(self.state, event, position)
        self._audited.see(event, position)
        if isinstance(event, ApprovalRequested | ApprovalResolved):
            self._services.changed(self)  # it waits for the person, or no longer
        if isinstance(event, ApprovalRequested) and event.approval.proposal_id is not None:
            self._verdicts.asked(event.approval.proposal_id)

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

    # Prompting --------------------------------------------------------------------------------------

    async def prompt(self, params: PromptSendParams, client: Client) -> PromptSendResult:
        """Start a turn, or queue behind the running one. Returns when the prompt is on disk. A known `promptId`
        changes nothing. Raises `AmanuError` (invalidParams) for a picture no model would take."""
        async with self._starting:
            self._must_be_writable()
            if params.prompt_id in self._prompt_ids:
                waits = self._inbox.has(params.prompt_id)
                turn_id = None if waits else _turn_id(params.prompt_id)
                result = PromptSendResult(status="queued" if waits else "started", turn_id=turn_id)
            else:
                result = await self._take(params, client)
        await self.emit.durable()
        return result

    async def _take(self, params: PromptSendParams, client: Client) -> PromptSendResult:
        if len(self.state.queue) >= MAX_QUEUED:
            raise AmanuError("turnInProgress", f"{MAX_QUEUED} prompts wait already.", hint="Take some of them back.")
        attachments = await self._pictures.keep(params.attachments)
        self._must_be_writable()
        prompt = Prompt(params.prompt_id, params.text, attachments, dict(client.environment), client.context)
        if not self._running:
            return PromptSendResult(status="started", turn_id=await self._start(prompt))
        self._prompt_ids.add(prompt.prompt_id)
        self._inbox.queue(prompt)
        if self._running.stopping and self._said_after is None:
            self._said_after = prompt.prompt_id
        self.approvals.finish_reviews(client=client.name)
        return PromptSendResult(status="queued")

    async def steer(self, params: PromptSteerParams, client: Client) -> None:
        """Say something into the running turn: it reaches the model after the tool results of its next request."""
        self._must_be_writable()
        focus = commands.compaction(params.text)
        if focus is not None:
            self._compact_in(params, focus)
        elif params.prompt_id not in self._prompt_ids:
            attachments = await self._pictures.keep(params.attachments)
            heard = await self.hearing.hear(params.text, attachments)
            self._must_be_writable()
            self._put_in(params, attachments, heard, client)
        await self.emit.durable()

    def _compact_in(self, params: PromptSteerParams, focus: str) -> None:
        """The person asks the running turn for a compaction: they see that it was heard, the model does not."""
        if params.prompt_id in self._prompt_ids:
            return
        self._must_run(params.turn_id)
        self._prompt_ids.add(params.prompt_id)
        said = UserMessage(
            item_id=params.prompt_id, turn_id=params.turn_id, text=params.text, attachments=[], steer=True
        )
        self.emit(ItemCompleted(item=said))
        self._turns.context.compact_soon(focus)

    def _must_run(self, turn_id: str) -> None:
        if not self._running or self.state.turn is None or self.state.turn.turn_id != turn_id:
            raise AmanuError("staleTurn", "That turn is over.", hint="Send it as a new prompt.")

    def _put_in(self, params: PromptSteerParams, attachments: list[Attachment], heard: Heard, client: Client) -> None:
        if params.prompt_id in self._prompt_ids:
            return  # its repeat was faster
        self._must_run(params.turn_id)
        self._prompt_ids.add(params.prompt_id)
        message = UserMessage(
            item_id=params.prompt_id, turn_id=params.turn_id, text=params.text, attachments=attachments, steer=True
        )
        self._inbox.steer(message, heard.said)
        self.hearing.tell_left_out(message, heard)
        self.approvals.finish_reviews(client=client.name)

    async def unqueue(self, prompt_id: str) -> None:
        async with self._starting:  # one that is just starting has started
            self._must_be_writable()
            self._inbox.take_back(prompt_id)
        await self.emit.durable()

    async def cancel(self, turn_id: str) -> TurnCancelResult:
        """Stop the turn. When this returns nothing more is written, run or sent for it."""
        self._must_be_writable()
        if self.state.turn is None or self.state.turn.turn_id != turn_id:
            return TurnCancelResult(status="alreadyEnded")
        await self._running.stop(CANCEL_SECONDS)
        return TurnCancelResult(status="cancelled")

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

    async def compact(self, focus: str, client: Client) -> SessionCompactResult:
        """Put a summary in the place of what is old: now, or at the next step of the running turn. Raises `AmanuError`
        (modelNotFound, authRequired …)."""
        async with self._starting:
            self._must_be_writable()
            if self._running:
                self._turns.context.compact_soon(focus)
                return SessionCompactResult(status="queued")
            text = f"/{commands.COMPACT} {focus}".rstrip()
            prompt = Prompt(f"compact-{self.emit.epoch}-{self.emit.seq}", text, [], dict(client.environment))
            await self._start(prompt)
        await self.emit.durable()
        return SessionCompactResult(status="started")

    async def record(self, path: str | None) -> None:
        """Write the exchanges with models to that new file; None ends it. Raises `AmanuError`: invalidParams,
        storageError."""
        self._must_be_writable()
        self._line.record(path, self._environment)
        await self.emit.durable()

    @contextlib.asynccontextmanager
    async def _idle(self) -> AsyncGenerator[None]:
        async with self._starting:
            self._must_be_writable()
            if self._running:
                raise AmanuError("turnInProgress", "A turn is running.", hint="Stop it first.")
            yield

    def replay(self, player: Player) -> None:
        """From now on `player` answers in the place of the models' services."""
        self._line.line.player = player

    def _trust_changed(self, taken_back: bool) -> None:
        self.approvals.reconsider()  # its rules count, or no longer
        if taken_back:
            self._ending = asyncio.create_task(self._verdicts.stop())

    def hold(self, walls: Walls) -> None:
        """What holds commands from now on: it was proved."""
        if walls != self.state.walls and self._writable():
            self.emit(SessionChanged(walls=walls))

    async def close(self, *, anyway: bool = False) -> None:
        """Cancel what runs and let go of the journal. Raises `AmanuError` (storageError) and stays open when something
        could not be saved; `anyway` gives that up."""
        self._closed = True  # nothing starts any more
        if self._running:
            await self._running.stop()
        await self._verdicts.close()
        await self._aftermath.close()
        await self._proposals.settled()  # what the person just accepted is in its file, and on record
        async with self._starting:
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
        return not self._running and not self.emit.attached and not self._starting.locked()

    @property
    def outdated(self) -> bool:
        """Another daemon goes on with it, and nobody looks at it here."""
        return self.state.read_only and not self.emit.attached

    @property
    def running(self) -> bool:
        return bool(self._running)

    # The turn ---------------------------------------------------------------------------------------

    async def _start(self, prompt: Prompt) -> str:
        """Start a turn for a prompt. Raises `AmanuError` (modelNotFound, authRequired …) before anything of it
        is on record."""
        await self.trust.heed()
        choice = await self._turns.choosing.choose(prompt.text, prompt.environment)
        info = choice.way.info
        self._environment.clear()
        self._environment.update(prompt.environment)
        self._services.learn(prompt.environment)
        focus = commands.compaction(prompt.text)
        await self._pictures.load()
        opening = await self.hearing.gather(prompt, info.context_window) if focus is None else None
        self._must_be_writable()
        turn_id = _turn_id(prompt.prompt_id)
        memory = opening and opening.recalled.system
        if memory is not None:
            self._conversation.memory = memory.text
        self._inbox.take_back(prompt.prompt_id)
        self._prompt_ids.add(prompt.prompt_id)
        if not self.state.title and opening is not None:
            self.emit(SessionChanged(title=_title(prompt.text)))
        started = TurnStarted(turn_id=turn_id, prompt_id=prompt.prompt_id, model_id=info.model_id)
        self.emit(started, entry=memory)
        said = UserMessage(
            item_id=prompt.prompt_id,
            turn_id=turn_id,
            text=prompt.text,
            attachments=prompt.attachments,
            steer=False,
        )
        self.hearing.model = info
        if opening is None:
            self.emit(ItemCompleted(item=said))
        else:
            self.hearing.say(said, opening)
        self._pictures.forget()
        self.approvals.start_turn()
        turn = self._turns.make(turn_id, prompt.text, choice)
        self._line.hide(prompt.environment)
        if focus is None:
            choice.tell(turn)
        with self._line.line.used():
            self._running.start(turn, run_turn if focus is None else lambda turn: run_compaction(turn, focus))
        self._services.changed(self)
        return turn_id

    async def _ended(self, turn: Turn, ending: Ending) -> None:
        said_after, self._said_after = self._said_after, None
        if ending.reason not in ("completed", "cancelled"):
            self._notices.ending(turn.turn_id, ending)
        self.emit(
            TurnEnded(
                turn_id=turn.turn_id,
                reason=ending.reason,
                message=ending.message,
                can_continue=ending.can_continue,
                usage=turn.spent,
            )
        )
        self._services.changed(self)
        if ending.reason == "completed" or said_after is not None:
            await self._start_next(said_after)

    async def _start_next(self, first: str | None) -> None:
        """A queued prompt becomes a turn: `first`, else the oldest. After a cancel or a failure the others wait for
        the person, and for the turn of their next prompt; so do all when it cannot start now. One that never can is
        given back to the person, and the next one starts."""
        async with self._starting:
            while not self._running and not self._closed:
                prompt = self._inbox.next(self._environment, first)
                if prompt is None:
                    return
                try:
                    await self._start(prompt)
                except NoRoom as error:
                    self._give_back(prompt, error)
                    continue
                except AmanuError as error:
                    if not self._closed:
                        self._notices.ending(None, Ending("failed", str(error), kind=error.kind))
                except Exception:
                    log.exception("a queued prompt could not start")
                    self._notices.ending(None, Ending("failed", "An internal error of Amanu; see `amanu logs`."))
                return

    def _give_back(self, prompt: Prompt, error: NoRoom) -> None:
        """A queued prompt will never start: it leaves the queue, and a notice holds all that the person typed."""
        with_it = [each.name if isinstance(each, ImageAttachment) else each.path for each in prompt.attachments]
        attached = f"\nWith it: {', '.join(with_it)}" if with_it else ""
        text = f"{error} So this prompt was not sent, and has left the queue:\n\n{prompt.text}{attached}"
        self._inbox.take_back(prompt.prompt_id)
        self._notices.ending(None, Ending("failed", text, kind=error.kind))

    async def _save_preimage(self, turn_id: str, path: Path, data: bytes | None, mode: int | None) -> None:
        """Before a file changes, what it says is kept, and that it will change is on the audit log."""
        await asyncio.gather(self._services.audit.durable(), self._journal.save_preimage(turn_id, path, data, mode))

    def _report(self, proposal_id: str) -> str:
        calls = self._proposals.get(proposal_id).tool_call_ids
        return "\n".join(dict.fromkeys(self._proposals.report(call_id) for call_id in calls))

    def _proposal_changed(self, proposal: Proposal) -> None:
        self.emit(ProposalChanged(proposal=self.state.lean(proposal)))
        self.approvals.changed(proposal.proposal_id)
        self.trust.see(proposal)
        if proposal.state == "settled":
            self.approvals.finish_reviews(proposal.proposal_id)
        if not self._closed:
            self._aftermath.see(proposal)
            self._verdicts.see(proposal)

    def _tell(self, code: str, level: Literal["info", "warning"], text: str) -> None:
        """Everybody who looks at the session gets to know."""
        if self._closed:
            return  # nobody looks any more
        self._notices.of_session(code, level, text)

    async def _set(self, event: SessionChanged) -> None:
        self._must_be_writable()
        self.emit(event)
        if event.mode is not None:
            self.approvals.reconsider()
        self._services.changed(self)
        await self.emit.durable()

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


def _turn_id(prompt_id: str) -> str:
    return f"turn-{prompt_id}"


def _title(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "Untitled")
    return first if len(first) <= 80 else first[:79] + "…"
