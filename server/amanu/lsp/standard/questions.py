"""Approvals asked by window/showMessageRequest. What cannot be asked so, or is not answered, is a code action.

A question about edits is none of these: the hunks themselves are before the person, to be accepted and rejected. No
answer, a strange one, and any amount of time mean nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from amanu.lsp.protocol import ClientError
from amanu.lsp.standard.face import INFO, MESSAGE, Face
from amanu.tools.visible import one_line, visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Approval, Scope
from amanu_protocol.requests import ApprovalResolveParams

if TYPE_CHECKING:
    from amanu.session import Session
    from amanu.stream import Client

UNANSWERED = 15.0
"""Seconds after which a question is also a diagnostic: an editor may never have shown it."""
ONCE, SESSION, REJECT, LATER, ALL = "Allow once", "Allow for this session", "Reject", "Decide later", "Show all of it"
DETAIL_LINES = 15

ShowAll = Callable[["Session", Approval], Awaitable[None]]


class Questions:
    """`client` is who answers; `show_all` opens a question as a document; `changed` hears when another one is left to
    code actions."""

    def __init__(self, face: Face, client: "Client", show_all: ShowAll, changed: Callable[[], None]) -> None:
        self._face = face
        self._client = client
        self._show_all = show_all
        self._changed = changed
        self._can_ask = True
        self._asked: dict[str, asyncio.Task[None]] = {}
        self.left: dict[str, Approval] = {}
        """Questions no dialog is open for, as far as we know."""

    def update(self, session: "Session") -> None:
        """Ask what is new; forget what is settled."""
        pending = {each.tool_call_id: each for each in session.state.approvals}
        self.left = {call_id: each for call_id, each in self.left.items() if call_id in pending}
        for call_id, approval in pending.items():
            if call_id not in self._asked and approval.proposal_id is None:
                task = self._asked[call_id] = asyncio.create_task(self._ask(session, approval))
                task.add_done_callback(_retrieved)

    def close(self) -> None:
        for task in self._asked.values():
            task.cancel()

    async def resolve(self, session: "Session", call_id: str, decision: str, scope: Scope = "once") -> bool:
        """Pass an answer on and say what became of it. False when it came too soon and the question still stands."""
        params = ApprovalResolveParams(
            session_id=session.state.session_id, tool_call_id=call_id, decision=decision, scope=scope
        )
        result = await session.resolve_approval(params, self._client)
        if result.status == "tooSoon":
            self._face.say("Too soon to have been read, so it does not count.")
            return False
        if result.status == "alreadyResolved":
            who = f" by {result.client}" if result.client else ""
            self._face.say(f"Decided before{who}: {result.outcome}.", INFO)
        return True

    async def _ask(self, session: "Session", approval: Approval) -> None:
        text, titles = dialog(approval, preselects=self._face.quirks.preselects)
        while self._can_ask and self._pending(session, approval):
            timer = asyncio.get_running_loop().call_later(UNANSWERED, self._leave, session, approval)
            try:
                answer = await self._face.choose(text, titles)
            except ClientError:
                self._can_ask = False
                break
            finally:
                timer.cancel()
            try:
                if answer == ALL:
                    await self._show_all(session, approval)
                    break
                if answer in (None, LATER) or await self._answer(session, approval, str(answer)):
                    break
            except AmanuError as error:
                self._face.say(str(error))
                break
        self._leave(session, approval)

    async def _answer(self, session: "Session", approval: Approval, answer: str) -> bool:
        decision = "reject" if answer == REJECT else "allow"
        return await self.resolve(session, approval.tool_call_id, decision, "session" if answer == SESSION else "once")

    def _leave(self, session: "Session", approval: Approval) -> None:
        if self._pending(session, approval):
            self.left[approval.tool_call_id] = approval
            self._changed()

    @staticmethod
    def _pending(session: "Session", approval: Approval) -> bool:
        return any(each.tool_call_id == approval.tool_call_id for each in session.state.approvals)


def dialog(approval: Approval, *, preselects: bool) -> tuple[str, list[str]]:
    """The text of a question and its answers, each once. What does not fit whole cannot be allowed in a dialog."""
    rule = next((offer.rule for offer in approval.scopes if offer.scope == "session"), None)
    text = f"{one_line(approval.title)}\n{visible(approval.detail)}"
    more = f"\n\n“{SESSION}” allows {visible(rule)}" if rule else ""
    if len(text) + len(more) > MESSAGE or text.count("\n") > DETAIL_LINES:
        lines = text[: MESSAGE // 2].split("\n")[:DETAIL_LINES]
        return "\n".join([*lines, "… (too long to be decided on here)"]), [LATER, ALL, REJECT]
    titles = [ONCE, *([SESSION] if rule else []), REJECT]
    # Where Enter takes the first answer, it decides nothing.
    return text + more, [LATER, *titles] if preselects else titles


def _retrieved(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()
