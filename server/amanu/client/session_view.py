"""One session as a client sees it: the fold of its events, acknowledged as they are drawn."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from pydantic import JsonValue

from amanu.client.base_texts import lacks_base_texts, load_open_base_texts, with_base_texts
from amanu.client.daemon_client import DaemonClient
from amanu_protocol import requests as r
from amanu_protocol.events import EventMessage, ItemsReplaced, ProposalChanged, TurnEnded
from amanu_protocol.items import Approval, ApprovalAnswer, Attachment, Effort, Mode, Proposal, ServiceTier
from amanu_protocol.state import SessionState, fold

ACK_SECONDS = 0.1
"""Acknowledgements are gathered that long; the daemon coalesces only above ≈ 2 MB unacknowledged."""

GUARD_SECONDS = 0.5
"""The daemon takes no answer within half a second of the question."""


class SessionView:
    """Follows one session. `listeners` are called with each event after it was folded."""

    def __init__(self, client: DaemonClient, result: r.SessionResult) -> None:
        self.client = client
        self.state: SessionState = result.state
        self.epoch = result.epoch
        self.seq = result.from_seq - 1
        self.listeners: list[Callable[[EventMessage, SessionState], None]] = []
        self.replaced: list[Callable[[SessionState], None]] = []
        """Called when the whole state came anew, because events were missed."""
        self.changed = asyncio.Event()
        """Set with each event; who waits for something clears it, looks, and waits again."""
        self.is_behind: Callable[[], bool] = lambda: False
        """Whether what was received is still to be shown: then it is not acknowledged yet."""
        self._acking: asyncio.TimerHandle | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._held: list[EventMessage] | None = None
        """While base texts are fetched: the event of the proposal they belong to, and what came after it."""
        client.on_event = self.receive

    @property
    def session_id(self) -> str:
        return self.state.session_id

    def receive(self, message: EventMessage) -> None:
        """Fold one event. Others' and repeated ones are dropped; after a gap what was missed is fetched."""
        if self._held is not None:
            self._held.append(message)
            return
        if message.session_id != self.session_id:
            return
        if message.epoch != self.epoch:
            self._catch_up()
            return
        if message.seq <= self.seq:
            return
        first = message.event.replaces_from if isinstance(message.event, ItemsReplaced) else message.seq
        if first > self.seq + 1:
            self._catch_up()
            return
        if isinstance(message.event, ProposalChanged) and lacks_base_texts(message.event.proposal, self.state):
            self._held = [message]
            self._loading = asyncio.create_task(self._load(message.event.proposal))
            self._loading.add_done_callback(_quiet)
            return
        self._take(message)

    async def wait(self, condition: Callable[[SessionState], bool]) -> None:
        """Until `done` holds of the state. Raises Disconnected when that can no longer come."""
        from amanu.client.daemon_client import Disconnected

        lost = asyncio.create_task(self.client.lost.wait())
        try:
            while not condition(self.state):
                if lost.done():
                    raise Disconnected
                self.changed.clear()
                change = asyncio.create_task(self.changed.wait())
                await asyncio.wait({change, lost}, return_when=asyncio.FIRST_COMPLETED)
                change.cancel()
        finally:
            lost.cancel()

    # Requests, one method each ---------------------------------------------------------------------

    async def prompt(
        self, text: str, attachments: list[Attachment] | None = None, *, prompt_id: str | None = None
    ) -> r.PromptSendResult:
        if self.state.closed:  # as a sub-agent's is when its work is done: what comes now comes from one opened anew
            await self.reattach(self.client)
        params = r.PromptSendParams(
            session_id=self.session_id, prompt_id=prompt_id or mint(), text=text, attachments=attachments or []
        )
        return await self.client.request("amanu/prompt/send", params, r.PromptSendResult)

    async def steer(self, text: str, turn_id: str, attachments: list[Attachment] | None = None) -> bool:
        """Say something into a running turn. False when it was queued instead, as a command of the user's is."""
        params = r.PromptSteerParams(
            session_id=self.session_id,
            prompt_id=mint(),
            turn_id=turn_id,
            text=text,
            attachments=attachments or [],
        )
        await self.client.request("amanu/prompt/steer", params, r.Empty)
        return not any(queued.prompt_id == params.prompt_id for queued in self.state.queue)

    async def cancel(self) -> bool:
        """Stop the running turn. False when none ran."""
        if self.state.turn is None:
            return False
        params = r.TurnCancelParams(session_id=self.session_id, turn_id=self.state.turn.turn_id)
        answer = await self.client.request("amanu/turn/cancel", params, r.TurnCancelResult)
        return answer.status == "cancelled"

    async def resolve(
        self,
        approval: Approval,
        answer: ApprovalAnswer,
        *,
        rule: str | None = None,
        reason: str | None = None,
        command: str | None = None,
    ) -> r.ApprovalResolveResult:
        """Send one of its answers. `rule`: the text to save, as the user edited it. `command`: the user's own, in place
        of the model's."""
        params = r.ApprovalResolveParams(
            session_id=self.session_id,
            tool_call_id=approval.tool_call_id,
            decision="allow" if answer.action == "editCommand" else answer.action,
            scope=answer.scope,
            rule=rule or answer.rule or None,
            reason=reason,
            digest=approval.digest,
            grants=answer.grants,
            command=command,
            mode=answer.mode,
            fresh_context=answer.fresh_context,
        )
        return await self.client.request("amanu/approval/resolve", params, r.ApprovalResolveResult)

    async def answer_question(
        self, question_id: str, outcome: Literal["answered", "declined"], answers: Mapping[str, JsonValue], note: str
    ) -> r.QuestionAnswerResult:
        params = r.QuestionAnswerParams(
            session_id=self.session_id, question_id=question_id, outcome=outcome, answers=dict(answers), note=note
        )
        return await self.client.request("amanu/question/answer", params, r.QuestionAnswerResult)

    async def resolve_changes(
        self, proposal: Proposal, decisions: Sequence[r.HunkDecision | r.RowDecision]
    ) -> r.ProposalResolveResult:
        """Decide hunks and rows of the proposal as it was seen. Returns once the state has what the reply tells."""
        params = r.ProposalResolveParams(
            session_id=self.session_id,
            proposal_id=proposal.proposal_id,
            version=proposal.version,
            hunks=[each for each in decisions if isinstance(each, r.HunkDecision)],
            rows=[each for each in decisions if isinstance(each, r.RowDecision)],
        )
        result = await self.client.request("amanu/proposal/resolve", params, r.ProposalResolveResult)
        if result.status == "resolved":  # replies and events may overtake each other
            replied = result.proposal
            await self.wait(
                lambda state: all(
                    each.version >= replied.version
                    for each in state.proposals
                    if each.proposal_id == replied.proposal_id
                )
            )
        return result

    async def set_mode(self, mode: Mode) -> None:
        params = r.SessionSetModeParams(session_id=self.session_id, mode=mode)
        await self.client.request("amanu/session/setMode", params, r.Empty)

    async def set_effort(self, effort: Effort) -> None:
        params = r.SessionSetEffortParams(session_id=self.session_id, effort=effort)
        await self.client.request("amanu/session/setEffort", params, r.Empty)

    async def set_service_tier(self, tier: ServiceTier) -> None:
        params = r.SessionSetServiceTierParams(session_id=self.session_id, service_tier=tier)
        await self.client.request("amanu/session/setServiceTier", params, r.Empty)

    async def set_model(self, model_id: str) -> None:
        params = r.SessionSetModelParams(session_id=self.session_id, model_id=model_id)
        await self.client.request("amanu/session/setModel", params, r.Empty)

    # Inside ------------------------------------------------------------------------------------------

    def _take(self, message: EventMessage) -> None:
        fold(self.state, message.event)
        self.seq = message.seq
        for listener in self.listeners:
            listener(message, self.state)
        self.changed.set()
        if isinstance(message.event, TurnEnded):
            self._ack()
        elif self._acking is None:
            self._acking = asyncio.get_running_loop().call_later(ACK_SECONDS, self._ack)

    def _ack(self) -> None:
        if self._acking is not None:
            self._acking.cancel()
            self._acking = None
        if self.is_behind():
            self._acking = asyncio.get_running_loop().call_later(ACK_SECONDS, self._ack)
            return
        params = r.EventAckParams(session_id=self.session_id, seq=self.seq)
        self.client.notify("amanu/event/ack", params)

    async def _load(self, proposal: Proposal) -> None:
        from amanu.client.daemon_client import Disconnected

        try:
            whole = await with_base_texts(self.client, self.session_id, proposal)
        except Disconnected:
            self._held = None  # `seq` has not moved, so `reattach` brings them again
            return
        held, self._held = self._held or [], None
        for message in (held[0].model_copy(update={"event": ProposalChanged(proposal=whole)}), *held[1:]):
            self.receive(message)

    def _catch_up(self) -> None:
        later: list[EventMessage] = []
        self.client.on_event = later.append
        self._catching_up = asyncio.create_task(self._fetch(self.client, later))
        self._catching_up.add_done_callback(_quiet)

    async def reattach(self, client: DaemonClient) -> None:
        """Go on over a new connection: what was missed is fetched and folded."""
        later: list[EventMessage] = []
        client.on_event = later.append
        await self._fetch(client, later)

    async def _fetch(self, client: DaemonClient, later: list[EventMessage]) -> None:
        """`later` gathers what arrives while the answer travels."""
        try:
            params = r.SessionAttachParams(session_id=self.session_id, epoch=self.epoch, since_seq=max(self.seq, 0))
            answer = await client.request("amanu/session/attach", params, r.SessionAttachResult)
            if answer.state is not None:
                await load_open_base_texts(client, answer.state)
        finally:
            self.client = client
            client.on_event = self.receive
        if answer.state is not None:
            self.state = answer.state
            self.epoch = answer.epoch
            self.seq = answer.from_seq - 1
            for listener in self.replaced:
                listener(self.state)
            self.changed.set()
        for message in (*(answer.events or ()), *later):
            self.receive(message)


async def create(client: DaemonClient, params: r.SessionCreateParams) -> SessionView:
    """A new session, attached. Events that overtake the answer are kept."""
    early: list[EventMessage] = []
    client.on_event = early.append
    view = SessionView(client, await client.request("amanu/session/create", params, r.SessionResult))
    for message in early:
        view.receive(message)
    return view


async def attach(client: DaemonClient, session_id: str) -> SessionView:
    """A known session, by its id. Raises AmanuError `sessionNotFound`."""
    early: list[EventMessage] = []
    client.on_event = early.append
    params = r.SessionAttachParams(session_id=session_id)
    answer = await client.request("amanu/session/attach", params, r.SessionAttachResult)
    assert answer.state is not None, "without sinceSeq the whole state is the answer"
    await load_open_base_texts(client, answer.state)
    view = SessionView(client, r.SessionResult(state=answer.state, epoch=answer.epoch, from_seq=answer.from_seq))
    for message in (*(answer.events or ()), *early):
        view.receive(message)
    return view


async def insist(attempt: Callable[[], Awaitable[r.ApprovalResolveResult]]) -> r.ApprovalResolveResult:
    """For a program that answers, not a user: once more when the first answer came too soon."""
    answer = await attempt()
    if answer.status != "tooSoon":
        return answer
    await asyncio.sleep(GUARD_SECONDS)
    return await attempt()


def mint() -> str:
    """A new id."""
    return uuid.uuid4().hex


def _quiet(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # a lost connection is noticed by who waits on it
