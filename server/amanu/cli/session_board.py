"""`/dashboard` in the chat: all sessions of the user, and how they stand, while it is open."""

import time
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from amanu.cli.picker_previews import of_session
from amanu.cli.renewal import Renewal
from amanu.cli.text import one_line
from amanu.cli.ui.dialog import Choice, Dialog
from amanu.cli.ui.live_choices import LiveChoices
from amanu.cli.ui.terminal import StopRequested, Terminal
from amanu.client.session_view import SessionView
from amanu.text.amounts import age, plural
from amanu_protocol import requests as r
from amanu_protocol.items import Line
from amanu_protocol.requests import SessionSummary

_WORDS = {"waiting": "? waits", "running": "▸ works", "interrupted": "! ready"}
"""Of a status; the session is ready in any other. As long as one another."""
_READY = "· ready"
_TITLE = 40


class SessionBoard:
    """The daemon says when to ask for the list again, and it is asked only while the board is open."""

    def __init__(self, view: SessionView, terminal: Terminal) -> None:
        self._view = view
        self._terminal = terminal
        self._renewal = Renewal(self._refresh)
        self._sessions: Sequence[SessionSummary] = ()
        self._choices: LiveChoices | None = None

    def on_notification(self, method: str, params: Any) -> None:
        """A `DaemonClient.on_notification`."""
        if method == "amanu/session/listChanged" and self._choices is not None:
            self._renewal.request()

    async def pick(self) -> str | None:
        """The id of another session; None when the user left with Esc, or was asked something. Raises `AmanuError`."""
        await self._refresh()
        here = self._view.session_id
        self._choices = LiveChoices(lambda: board_choices(self._sessions, here, time.time()))
        try:
            session_id = await self._terminal.ask(
                Dialog("session › ", self._choices, is_picker=True, valid=self._is_undisturbed, preview=self._preview)
            )
        except StopRequested:
            return None
        finally:
            self._choices = None
        return None if session_id == here else session_id

    async def _refresh(self) -> None:
        listed = await self._view.client.request("amanu/session/list", r.SessionListParams(), r.SessionListResult)
        self._sessions = listed.sessions
        if self._choices is not None:
            self._choices.renew()

    async def _preview(self, session_id: str) -> Sequence[Line]:
        summary = next((each for each in self._sessions if each.session_id == session_id), None)
        return [] if summary is None else board_preview(summary)

    def _is_undisturbed(self) -> bool:
        state = self._view.state
        return not (self._view.client.lost.is_set() or state.approvals or state.questions)


def board_choices(sessions: Sequence[SessionSummary], here: str, now: float) -> Sequence[Choice]:
    """What waits for the user first, then what works, then the others; of each the newest first, and no others in
    which nothing was said. `now` in seconds since the epoch."""
    order = {"waiting": 0, "running": 1}
    shown = [each for each in sessions if each.title or each.status in order]
    return [_choice(each, here, now) for each in sorted(shown, key=lambda each: order.get(each.status, 2))]


def _choice(summary: SessionSummary, here: str, now: float) -> Choice:
    parts = ["you are here"] if summary.session_id == here else []
    parts.append(age(now - summary.updated_at / 1000))
    parts += [one_line(question.title, 60) for question in summary.questions[:1]]
    parts.append(", ".join(one_line(PurePath(root).name, 30) for root in summary.roots))
    if summary.changes:
        parts.append(f"{plural(summary.changes, 'change')} to review")
    if summary.status == "interrupted":
        parts.append("its last turn broke off")
    return Choice(summary.session_id, f"{_WORDS.get(summary.status, _READY)} {_title(summary)}", " · ".join(parts))


def board_preview(summary: SessionSummary) -> Sequence[Line]:
    return [Line(tone="plain", text=", ".join(map(one_line, summary.roots))), *of_session(summary)]


def _title(summary: SessionSummary) -> str:
    return one_line(summary.title, _TITLE) or "Untitled"
