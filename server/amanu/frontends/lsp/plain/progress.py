"""The running turn as LSP progress: its begin can be cancelled, its reports name what is being done."""

import asyncio
from typing import TYPE_CHECKING

from amanu.frontends.lsp.plain.editor import Face
from amanu.text.display import one_line
from amanu_protocol.items import ToolCall
from amanu_protocol.state import SessionState

if TYPE_CHECKING:
    from amanu.session.session import Session

PAUSE = 0.2
"""Seconds between two reports."""
_LOOKED_AT = 20
"""Last items among which a running call is looked for."""


class Progress:
    """The one turn of one session that may run."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._tokens: dict[str, tuple[Session, str]] = {}

    def update(self, session: "Session") -> None:
        """The session changed."""
        turn = session.state.turn
        self._changed.set()
        if turn is not None and self._face.shows_progress and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run(session, turn.turn_id))

    async def cancel(self, token: object) -> None:
        """The person pressed cancel on that progress."""
        if isinstance(token, str) and token in self._tokens:
            session, turn_id = self._tokens[token]
            await session.prompts.cancel(turn_id)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self, session: "Session", turn_id: str) -> None:
        token = f"amanu/{turn_id}"
        if not await self._face.create_progress(token):
            self._face.shows_progress = False
            return
        self._tokens[token] = session, turn_id
        message = doing(session.state)
        self._face.progress(token, {"kind": "begin", "title": "Amanu", "cancellable": True, "message": message})
        while session.state.turn is not None and session.state.turn.turn_id == turn_id:
            self._changed.clear()
            current = doing(session.state)
            if current != message:
                message = current
                self._face.progress(token, {"kind": "report", "cancellable": True, "message": current})
            await self._changed.wait()
            await asyncio.sleep(PAUSE)
        last = session.state.last_turn
        over = (
            "over" if last is None or last.turn_id != turn_id else "done" if last.reason == "completed" else last.reason
        )
        self._face.progress(token, {"kind": "end", "message": over})
        del self._tokens[token]
        self.update(session)  # a queued prompt may have become the next turn


def doing(state: SessionState) -> str:
    """What the turn does now, for the person."""
    if state.approvals:
        return one_line(f"waits for you: {state.approvals[0].title}")
    for item in reversed(state.items[-_LOOKED_AT:]):
        if isinstance(item, ToolCall) and item.state in ("validating", "scheduled", "executing"):
            return one_line(item.title)
    return "retrying" if state.retry is not None else "thinking"
