"""One session: an inbox, at most one turn, steering and a queue; everything it does goes out by `emit`."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amanu.agent import policy, spending
from amanu.agent.approval import Approvals
from amanu.agent.prompt import system_prompt
from amanu.agent.turn import Ending, Turn, run_turn
from amanu.config import Settings
from amanu.consent import Consent
from amanu.conversation import User
from amanu.inbox import Inbox, Prompt
from amanu.journal import Journal
from amanu.mentions import with_attachments
from amanu.models.families import family
from amanu.restore import Restored
from amanu.stream import Client, EventStream
from amanu.tools.registry import make_tools
from amanu.workspace.overlay import Overlay
from amanu.workspace.proposals import Proposals
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    ItemCompleted,
    ProposalChanged,
    SessionChanged,
    TurnEnded,
    TurnStarted,
)
from amanu_protocol.items import Mode, Notice, Proposal, UserMessage
from amanu_protocol.requests import (
    ApprovalResolveParams,
    ApprovalResolveResult,
    BlobGetParams,
    BlobGetResult,
    HistoryPageParams,
    HistoryPageResult,
    PromptSendParams,
    PromptSendResult,
    PromptSteerParams,
    ProposalResolveParams,
    ProposalResolveResult,
    SessionAttachResult,
    TurnCancelResult,
)
from amanu_protocol.state import SessionState

if TYPE_CHECKING:
    from amanu.models.registry import Registry

log = logging.getLogger(__name__)

SHOWN_ITEMS = 200
"""Items in an attach; earlier ones are paged."""
CANCEL_SECONDS = 0.45
"""A cancel is acknowledged within half a second, also when a process takes longer to die."""


@dataclass(frozen=True)
class Services:
    """What the daemon's sessions share."""

    settings: Settings
    registry: "Registry"
    overlay: Overlay
    consent: Consent
    headless: bool = False
    """Nobody is there to ask: what would be asked is denied."""
    changed: Callable[["Session"], None] = lambda session: None
    """Called when what a list of sessions shows has changed."""


class Session:
    """The requests of the protocol, one method each, raising `AmanuError`. Made by `sessions.Sessions`."""

    def __init__(self, services: Services, journal: Journal, restored: Restored) -> None:
        self._services = services
        self._journal = journal
        self._conversation = restored.conversation
        self._prompt_ids = restored.prompt_ids
        self.state = restored.state
        self.emit = EventStream(restored.state, journal, restored.epoch + 1)
        self._environment: dict[str, str] = {}
        self._starting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._usage = self.state.usage or spending.NOTHING
        roots = [Path(root) for root in self.state.roots]
        self._workspace = Workspace(roots, services.overlay)
        self._proposals = Proposals(self._workspace, self._proposal_changed, journal.save_preimage)
        self._approvals = Approvals(
            self.emit,
            lambda: self.state.mode,
            lambda: services.consent.rules(self.state.roots, trusted=self.state.trusted),
            lambda scope, rule: services.consent.remember(scope, rule, self.state.roots),
            headless=services.headless,
        )
        self._inbox = Inbox(self.emit, self.state, self._report, restored.undelivered)
        tools = make_tools(
            self._workspace,
            self._proposals,
            journal.put_blob,
            self._environment,
            services.settings.shell,
            services.settings.key_variables,
        )
        self._tools = {tool.name: tool for tool in tools}
        self._specs = [tool.spec() for tool in tools]
        self._closing = restored.closing

    async def open(self) -> None:
        """Close on record what a crash left open; open proposals are open again."""
        if self.state.read_only:
            return
        for event, entry in self._closing:
            self.emit(event, entry)
        if self._journal.damage:
            self._say(None, Ending("failed", self._journal.damage, kind="storageError"))
        self._closing = []
        self._proposals.restore(self.state.proposals)

    # Watching ---------------------------------------------------------------------------------------

    def attach(self, client: Client, epoch: int | None, since_seq: int | None) -> SessionAttachResult:
        """The events the client missed, or the state when they are no longer here; the client gets all further
        events."""
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

    def history(self, params: HistoryPageParams) -> HistoryPageResult:
        at = next((at for at, item in enumerate(self.state.items) if item.item_id == params.before_item_id), None)
        if at is None:
            raise AmanuError("itemNotFound", "There is no such item in this session.")
        first = max(0, at - params.limit)
        return HistoryPageResult(items=self.state.items[first:at], has_earlier=first > 0)

    async def blob(self, params: BlobGetParams) -> BlobGetResult:
        data = await self._journal.get_blob(params.blob_id)
        end = params.offset + params.limit
        text = data[params.offset : end].decode("utf-8", "replace")
        return BlobGetResult(text=text, next_offset=end if end < len(data) else None)

    # Prompting --------------------------------------------------------------------------------------

    async def prompt(self, params: PromptSendParams, client: Client) -> PromptSendResult:
        """Start a turn, or queue behind the running one. Returns when the prompt is on disk. A known `promptId`
        changes nothing."""
        self._must_be_writable()
        prompt = Prompt(params.prompt_id, params.text, params.attachments, dict(client.environment))
        async with self._starting:
            if params.prompt_id in self._prompt_ids:
                waits = self._inbox.has(params.prompt_id)
                turn_id = None if waits else _turn_id(params.prompt_id)
                return PromptSendResult(status="queued" if waits else "started", turn_id=turn_id)
            if self._task is not None:
                self._prompt_ids.add(prompt.prompt_id)
                self._inbox.queue(prompt)
                self._approvals.finish_reviews(client=client.name)
                result = PromptSendResult(status="queued")
            else:
                turn_id = await self._start(prompt)
                result = PromptSendResult(status="started", turn_id=turn_id)
        await self.emit.durable()
        return result

    async def steer(self, params: PromptSteerParams, client: Client) -> None:
        """Say something into the running turn: it reaches the model after the tool results of its next request."""
        self._must_be_writable()
        text = await with_attachments(params.text, params.attachments, self._workspace)
        if params.prompt_id in self._prompt_ids:
            return
        if self._task is None or self.state.turn is None or self.state.turn.turn_id != params.turn_id:
            raise AmanuError("staleTurn", "That turn is over.", hint="Send it as a new prompt.")
        self._prompt_ids.add(params.prompt_id)
        message = UserMessage(
            item_id=params.prompt_id,
            turn_id=params.turn_id,
            text=params.text,
            attachments=params.attachments,
            steer=True,
        )
        self._inbox.steer(message, text)
        self._approvals.finish_reviews(client=client.name)
        await self.emit.durable()

    async def unqueue(self, prompt_id: str) -> None:
        self._must_be_writable()
        self._inbox.take_back(prompt_id)
        await self.emit.durable()

    async def cancel(self, turn_id: str) -> TurnCancelResult:
        """Stop the turn. When this returns nothing more is written, run or sent for it."""
        if self._task is None or self.state.turn is None or self.state.turn.turn_id != turn_id:
            return TurnCancelResult(status="alreadyEnded")
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=CANCEL_SECONDS)
        await self.emit.durable()
        return TurnCancelResult(status="cancelled")

    # Deciding ---------------------------------------------------------------------------------------

    async def resolve_approval(self, params: ApprovalResolveParams, client: Client) -> ApprovalResolveResult:
        self._must_be_writable()
        result = self._approvals.resolve(params, client.name)
        await self.emit.durable()
        return result

    def proposal(self, proposal_id: str) -> Proposal:
        return self._proposals.get(proposal_id)

    async def resolve_proposal(self, params: ProposalResolveParams, client: Client) -> ProposalResolveResult:
        """Decide hunks; accepted ones are in their file when this returns, or conflicted."""
        self._must_be_writable()
        proposal = self._proposals.get(params.proposal_id)
        if params.version != proposal.version:
            raise AmanuError(
                "proposalConflict",
                "The proposal has changed since you saw it.",
                hint="Look at it again and decide.",
                details={"version": proposal.version},
            )
        asked = [self._approvals.pending(call_id) for call_id in proposal.tool_call_ids]
        if any(pending is not None and pending.too_soon for pending in asked):
            return ProposalResolveResult(status="tooSoon", proposal=proposal)
        proposal = await self._proposals.resolve(params.proposal_id, params.hunks)
        if not any(asked):  # the call has ended: the model hears of it at the next boundary
            self._inbox.decided(params.proposal_id)
        await self.emit.durable()
        return ProposalResolveResult(status="resolved", proposal=proposal)

    def allow(self, rule: str) -> None:
        """Allow by rule for this session (`--allow`). Raises `AmanuError` (invalidRule)."""
        policy.parse(rule)
        self._approvals.allow_in_session(policy.Rule("allow", rule, "--allow"))

    # Properties -------------------------------------------------------------------------------------

    async def rename(self, title: str) -> None:
        await self._set(SessionChanged(title=title))

    async def set_mode(self, mode: Mode) -> None:
        await self._set(SessionChanged(mode=mode))

    async def set_model(self, model_id: str) -> None:
        """Takes effect with the next turn. Raises `AmanuError` when there is no such model or no key for it."""
        await self._services.registry.resolve(model_id, self._environment)
        await self._set(SessionChanged(model_id=model_id))

    def trust(self, trusted: bool) -> None:
        """The person declared the roots trusted, or took it back."""
        if trusted != self.state.trusted and not self.state.read_only:
            self.emit(SessionChanged(trusted=trusted))

    async def close(self) -> None:
        """Cancel what runs and let go of the journal."""
        while self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._journal.close()

    @property
    def running(self) -> bool:
        return self._task is not None

    # The turn ---------------------------------------------------------------------------------------

    async def _start(self, prompt: Prompt) -> str:
        """Start a turn for a prompt. Raises `AmanuError` (modelNotFound, authRequired …) before anything of it
        is on record."""
        registry = self._services.registry
        model, info = await registry.resolve(self.state.model_id, prompt.environment)
        self._environment.clear()
        self._environment.update(prompt.environment)
        text = await with_attachments(prompt.text, prompt.attachments, self._workspace)
        turn_id = _turn_id(prompt.prompt_id)
        self._prompt_ids.add(prompt.prompt_id)
        if not self.state.title:
            self.emit(SessionChanged(title=_title(prompt.text)))
        self.emit(TurnStarted(turn_id=turn_id, prompt_id=prompt.prompt_id, model_id=info.model_id))
        said = UserMessage(
            item_id=prompt.prompt_id,
            turn_id=turn_id,
            text=prompt.text,
            attachments=prompt.attachments,
            steer=False,
        )
        for unheard in self._inbox.take_notes():
            self._conversation.note(unheard)
        message = User(text=text)
        self.emit(ItemCompleted(item=said), entry=message)
        self._conversation.append(message)
        self._approvals.start_turn()
        limits = self._services.settings.limits
        turn = Turn(
            turn_id=turn_id,
            session_id=self.state.session_id,
            model=model,
            info=info,
            system=system_prompt(family(info.model_id).name, self.state.roots, trusted=self.state.trusted),
            tools=self._tools,
            specs=self._specs,
            conversation=self._conversation,
            approvals=self._approvals,
            emit=self.emit,
            take_notes=self._inbox.take_notes,
            usage=self._usage,
            effort=self._services.settings.effort,
            max_steps=limits.steps,
            max_seconds=limits.seconds,
            max_cost_usd=limits.cost_usd,
            cost_before=self._usage.cost_usd or 0.0,
            waited_before=self._approvals.waited,
        )
        self._task = asyncio.create_task(self._run(turn), name=f"turn {turn_id}")
        self._services.changed(self)
        return turn_id

    async def _run(self, turn: Turn) -> None:
        try:
            ending = await run_turn(turn)
        except asyncio.CancelledError:
            ending = Ending("cancelled")
        except AmanuError as error:
            ending = Ending("failed", str(error), can_continue=True, kind=error.kind)
        except Exception:
            log.exception("turn %s failed unexpectedly", turn.turn_id)
            ending = Ending("failed", "An internal error of Amanu ended the turn; see `amanu logs`.", can_continue=True)
        self._usage = turn.usage
        self._task = None
        if ending.reason not in ("completed", "cancelled"):
            self._say(turn.turn_id, ending)
        self.emit(
            TurnEnded(
                turn_id=turn.turn_id,
                reason=ending.reason,
                message=ending.message,
                can_continue=ending.can_continue,
            )
        )
        self._services.changed(self)
        if ending.reason == "completed":
            await self._start_next()

    async def _start_next(self) -> None:
        """The first queued prompt becomes a turn. After a cancel or a failure the queue waits for the person."""
        async with self._starting:
            prompt = None if self._task is not None else self._inbox.next(self._environment)
            if prompt is None:
                return
            try:
                await self._start(prompt)
            except AmanuError as error:
                self._say(None, Ending("failed", str(error), kind=error.kind))

    def _report(self, proposal_id: str) -> str:
        calls = self._proposals.get(proposal_id).tool_call_ids
        return "\n".join(dict.fromkeys(self._proposals.report(call_id) for call_id in calls))

    def _proposal_changed(self, proposal: Proposal) -> None:
        self.emit(ProposalChanged(proposal=_lean(proposal, self.state.proposals)))
        if proposal.state == "settled":
            self._approvals.finish_reviews(proposal.proposal_id)

    def _say(self, turn_id: str | None, ending: Ending) -> None:
        level = "warning" if ending.reason.endswith("Limit") or ending.reason == "refused" else "error"
        notice = Notice(
            item_id=f"{turn_id or 'session'}.{self.emit.seq}.end",
            turn_id=turn_id,
            level=level,
            code=ending.kind or ending.reason,
            text=ending.message,
        )
        self.emit(ItemCompleted(item=notice))

    async def _set(self, event: SessionChanged) -> None:
        self._must_be_writable()
        self.emit(event)
        self._services.changed(self)
        await self.emit.durable()

    def _must_be_writable(self) -> None:
        if self.state.read_only:
            raise AmanuError(
                "sessionReadOnly",
                "This session is open in another Amanu daemon; here it can only be looked at.",
                hint="Use the editor that has it, or close it there.",
            )


def _lean(proposal: Proposal, known: Sequence[Proposal]) -> Proposal:
    """Without the base texts that went out with an earlier version."""
    sent = next((each for each in known if each.proposal_id == proposal.proposal_id), None)
    if sent is None:
        return proposal
    bases = {file.path: file.base_text for file in sent.files}
    files = [
        file.model_copy(update={"base_text": None}) if bases.get(file.path) == file.base_text else file
        for file in proposal.files
    ]
    return proposal.model_copy(update={"files": files})


def _turn_id(prompt_id: str) -> str:
    return f"turn-{prompt_id}"


def _title(text: str) -> str:
    first = next((line.strip() for line in text.splitlines() if line.strip()), "Untitled")
    return first if len(first) <= 80 else first[:79] + "…"
