"""A user who looks elsewhere: the title of the window, a bell and a notification tell of the session."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from amanu.cli.text import one_line
from amanu.cli.ui.sequences import through_tmux, write_now
from amanu_protocol.events import ApprovalResolved, Event, EventMessage, TurnEnded, TurnStarted
from amanu_protocol.state import SessionState

LONG_MS = 10_000
"""After that long without an answer or a prompt, the user may have gone on to something else."""
BEGIN = "\x1b[22;2t\x1b[?1004h"
"""Keeps the title (xterm's stack of titles), and has the terminal say when it gets and loses the focus."""
END = "\x1b[?1004l\x1b]2;\x07\x1b[23;2t"
"""A terminal without such a stack has its default title again, or none."""
WAITING = "●"
_ENDED = {"completed": "Done", "cancelled": "", "failed": "Failed"}


@dataclass(frozen=True)
class Attention:
    """The session as the user knows it."""

    waiting: frozenset[str] = frozenset()
    """The questions that wait for an answer."""
    acted_at: int = 0
    """The user's last prompt or answer, in milliseconds since the epoch; 0: they have only come."""

    def is_long_ago(self, timestamp: int) -> bool:
        return self.acted_at > 0 and timestamp - self.acted_at > LONG_MS


def attention(before: Attention, message: EventMessage, state: SessionState) -> tuple[Attention, str]:
    """The window after an event that `state` has in it, and what to notify of: "" for nothing. A turn that was stopped
    is no news: the user did that."""
    waiting = _waiting(state)
    news = _news(message.event, waiting.keys() - before.waiting, waiting)
    after = replace(before, waiting=frozenset(waiting), acted_at=before.acted_at or message.at)
    if isinstance(message.event, TurnStarted | ApprovalResolved) or before.waiting - waiting.keys():
        after = replace(after, acted_at=message.at)
    return after, news


def escapes(state: SessionState, news: str, *, tmux: bool = False) -> str:
    """The title as it is to be, and a bell and a notification (OSC 9) for news."""
    if not news:
        return title(state)
    about = f" · {one_line(state.title, 60)}" if state.title else ""
    notification = f"\x1b]9;amanu: {one_line(news, 200)}{about}\x07"
    return f"{title(state)}\x07{through_tmux(notification) if tmux else notification}"


def title(state: SessionState) -> str:
    """The sequence that sets it (OSC 2), with a mark while something waits for the user."""
    mark = f"{WAITING} " if _waiting(state) else ""
    return f"\x1b]2;{mark}{' · '.join(filter(None, ['amanu', one_line(state.title, 60)]))}\x07"


def _waiting(state: SessionState) -> dict[str, str]:
    """Id → title."""
    approvals = {approval.tool_call_id: approval.title for approval in state.approvals}
    return approvals | {question.item_id: question.title for question in state.questions}


def _news(event: Event, new: set[str], waiting: Mapping[str, str]) -> str:
    if isinstance(event, TurnEnded):
        return _ENDED.get(event.reason, "Stopped")
    return next((f"{waiting[each]}?" for each in sorted(new)), "")


class Notifications:
    """The window of one terminal. `write` puts something on it at once, past what holds lines back; `focused` is None
    where the terminal does not say."""

    def __init__(
        self, write: Callable[[str], None], focused: Callable[[], bool | None], environ: Mapping[str, str]
    ) -> None:
        self._write = write
        self._focused = focused
        self._tmux = bool(environ.get("TMUX"))
        self._attention = Attention()
        self._title = ""

    def show(self, message: EventMessage, state: SessionState) -> None:
        """See `SessionView.listeners`."""
        before = self._attention
        self._attention, news = attention(before, message, state)
        is_away = self._focused() is False or before.is_long_ago(message.at)
        self._update(state, news if is_away else "")

    def enter(self, state: SessionState) -> None:
        """Another session, or one whose events were missed."""
        self._attention = replace(self._attention, waiting=frozenset(_waiting(state)))
        self._update(state, "")

    def _update(self, state: SessionState, news: str) -> None:
        if news or title(state) != self._title:
            self._title = title(state)
            self._write(escapes(state, news, tmux=self._tmux))


@contextmanager
def notifying(environ: Mapping[str, str], *, wanted: bool) -> Generator[Notifications | None]:
    """The notifications of this process's terminal, which is as it was afterwards; None where there can be none."""
    from amanu.cli.ui.keyboard import PromptKeyboard

    if not wanted or not can_notify(environ):
        yield None
        return
    write_now(BEGIN)
    PromptKeyboard.reports_focus = True
    try:
        yield Notifications(write_now, lambda: PromptKeyboard.focused, environ)
    finally:
        PromptKeyboard.reports_focus = False
        write_now(END)


def can_notify(environ: Mapping[str, str]) -> bool:
    """Whether the terminal takes such sequences. NO_COLOR has no bearing on it."""
    return environ.get("TERM", "dumb") not in ("", "dumb", "linux")
