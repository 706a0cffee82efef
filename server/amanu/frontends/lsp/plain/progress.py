"""Running turns as LSP progress: its begin can be cancelled, its reports name what is being done."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from amanu.frontends.lsp.plain.editor import PlainEditor, ProgressToken
from amanu.text.display import one_line
from amanu.text.sub_agents import asked_by, doing, working
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ToolCall
from amanu_protocol.state import SessionState

if TYPE_CHECKING:
    from amanu.session.session import Session

PAUSE = 0.2
"""Seconds between two reports."""
_RECENT_ITEMS = 20
"""Last items among which a running call is looked for."""


class Progress:
    """Of the turns of one client's session, whoever started them."""

    def __init__(self, editor: PlainEditor) -> None:
        self._editor = editor
        self._changed = asyncio.Event()
        self._session: Session | None = None
        self._task: asyncio.Task[None] | None = None
        self._tokens: dict[ProgressToken, tuple[Session, str]] = {}
        self._commands = 0
        """Commands under way with a token of the client's, on which their turns are shown."""

    def update(self, session: "Session") -> None:
        """The session changed: a turn may have begun, here or in another client."""
        self._session = session
        turn = session.state.turn
        self._changed.set()
        shows = self._editor.shows_progress and self._commands == 0
        if turn is not None and shows and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._follow(session, turn.turn_id))

    async def show_on(
        self, token: ProgressToken, work: Awaitable[None], current: "Callable[[], Session | None]"
    ) -> None:
        """Show a command, and the turn it starts in the current session, as progress on a token of the client's; return
        when both are over."""
        self._commands += 1
        try:
            before = _turn_id(current())
            await work
            session = current()
            if session is not None and (turn_id := _turn_id(session)) not in (None, before):
                await self._show(token, session, turn_id)
            else:
                self._editor.progress(token, {"kind": "begin", "title": "Amanu"})
                self._editor.progress(token, {"kind": "end"})
        finally:
            self._commands -= 1

    async def cancel(self, token: object) -> None:
        """The user pressed cancel on that progress."""
        if isinstance(token, str | int) and token in self._tokens:
            session, turn_id = self._tokens[token]
            await session.prompts.cancel(turn_id)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _follow(self, session: "Session", turn_id: str) -> None:
        token = f"amanu/{turn_id}"
        if not await self._editor.create_progress(token):
            self._editor.shows_progress = False
            return
        await self._show(token, session, turn_id)
        self._task = None
        if self._session is not None:
            self.update(self._session)  # a queued prompt may have become the next turn

    async def _show(self, token: ProgressToken, session: "Session", turn_id: str) -> None:
        """Progress of that turn until it is over, on a token that the client knows."""
        self._tokens[token] = session, turn_id
        message = activity(session.state)
        self._editor.progress(token, {"kind": "begin", "title": "Amanu", "cancellable": True, "message": message})
        reports = asyncio.create_task(self._report(token, session, message))
        message = "cancelled"
        try:
            end = await session.wait_for_turn(turn_id)
            message = "done" if end.reason == "completed" else end.reason
        except AmanuError:  # another turn has ended since: the editor was slow to create the progress
            message = "over"
        finally:
            reports.cancel()
            del self._tokens[token]
            self._editor.progress(token, {"kind": "end", "message": message})

    async def _report(self, token: ProgressToken, session: "Session", message: str) -> None:
        """Report what is being done whenever it is no longer `message`; until cancelled."""
        while True:
            self._changed.clear()
            current = activity(session.state)
            if current != message:
                message = current
                self._editor.progress(token, {"kind": "report", "cancellable": True, "message": current})
            await self._changed.wait()
            await asyncio.sleep(PAUSE)


def _turn_id(session: "Session | None") -> str | None:
    turn = None if session is None else session.state.turn
    return None if turn is None else turn.turn_id


def activity(state: SessionState) -> str:
    """What the turn is doing, for the user."""
    for asked in (*state.approvals, *state.questions):
        return one_line(f"waiting for you: {asked_by(asked)}{asked.title}")
    if agents := [agent for agent in working(state.agents) if not agent.background]:
        return one_line(" · ".join(map(doing, agents)))
    for item in reversed(state.items[-_RECENT_ITEMS:]):
        if isinstance(item, ToolCall) and item.state in ("validating", "scheduled", "executing"):
            return one_line(item.title)
    return "retrying" if state.retry is not None else "thinking"
