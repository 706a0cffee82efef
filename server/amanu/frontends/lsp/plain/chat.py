"""A session as a Markdown document: the person writes under its last heading, everything else is appended above it.

There is one per session in a daemon, however many editors look at it.
"""

import asyncio
import contextlib
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from amanu.frontends.lsp.plain.documents import Document
from amanu.frontends.lsp.plain.review import prose
from amanu.frontends.lsp.plain.transcript import YOUR_TURN, Transcript
from amanu.workspace.overlay import Overlay
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import Event
from amanu_protocol.items import SelectionAttachment
from amanu_protocol.requests import TextEdit

if TYPE_CHECKING:
    from amanu.session.session import Session

APPEND = 0.4
"""Seconds between two edits of the document: an answer comes in pieces a person can read."""
SELDOM = 30.0
"""Seconds between two tries, at most: they double while an editor refuses the edit or is too slow for it."""
SEND = "Amanu: send"
_HEADING = re.compile(rf"^{re.escape(YOUR_TURN)}[^\n]*(\n|\Z)", re.MULTILINE)

log = logging.getLogger(__name__)


class Chat:
    """`path` is where its document is."""

    def __init__(self, session: "Session", path: Path, overlay: Overlay) -> None:
        self.document = Document(path, overlay)
        self.selections: dict[str, SelectionAttachment] = {}
        """What the person asked about, by how the document names it."""
        self._session = session
        self._transcript = Transcript()
        self._heard = 0
        self._unsaid = ""
        """To be appended; kept when an editor refuses it, until it does not."""
        self._tried = ("", "")
        """What stood above the heading when it was last tried, and what was to be appended: an editor may have made an
        edit that counted as refused, because the person typed at the same moment."""
        self.begun = False
        """Somebody looked at it: from then on it is kept up to date."""
        self._lock = asyncio.Lock()
        self._behind = False
        """Something was heard since the document was last brought up to date."""
        self._due: asyncio.Task[None] | None = None

    def hear(self, seq: int, event: Event) -> None:
        """Each event once, whoever passes it on. Never blocks."""
        if seq <= self._heard:
            return
        self._heard = seq
        self._unsaid += self._transcript.heard(event)
        self._behind = True
        if self.begun and self._due is None:
            self._due = asyncio.create_task(self._keep_up())

    async def begin(self, mention: SelectionAttachment | None = None) -> int:
        """Have the document up to date, to be shown. The line to write in, 0-based."""
        if not self.begun or not self.document.opened:
            async with self._lock:
                await self._anew()
        await self._append()
        if mention is not None:
            name = f"[{Path(mention.path).name}:{mention.start_line}-{mention.end_line}]"
            self.selections[name] = mention
            await self.document.change(lambda text: _at_end(text, name))
        text = await self.document.text() or ""
        return text.rstrip("\n").count("\n") + (1 if text.rstrip("\n").endswith(YOUR_TURN) else 0)

    async def written(self) -> str:
        """What the person wrote under the last heading. Raises `AmanuError` when there is nothing."""
        text = await self.document.text()
        heading = None if text is None else _HEADING.search(text)
        written = "" if text is None or heading is None else text[heading.end() :].strip()
        if not written:
            raise AmanuError("invalidParams", f'Write something under "{YOUR_TURN[3:]}" in {self.document.path} first.')
        return written

    async def sent(self, written: str) -> None:
        """That was sent: it leaves the place where it was written."""
        async with self._lock:
            await self.document.change(lambda text: _without(text, written))
        await self._append()

    async def _keep_up(self) -> None:
        wait = APPEND
        while self._behind:
            await asyncio.sleep(wait)
            self._behind = False
            try:
                await self._append()
            except Exception:
                log.exception("the chat document could not be written")
            wait = min(2 * wait, SELDOM) if self._unsaid else APPEND
            self._behind = self._behind or bool(self._unsaid)
        self._due = None

    async def _append(self) -> None:
        async with self._lock:
            self._unsaid += self._transcript.more(self._session.state)
            if self._unsaid:
                with contextlib.suppress(AmanuError):
                    if await self.document.change(self._appending):
                        self._unsaid = self._unsaid.removeprefix(self._tried[1])  # more may have been heard meanwhile
                        self._tried = ("", "")

    def _appending(self, text: str) -> list[TextEdit]:
        heading = _HEADING.search(text)
        above = text[: heading.start()] if heading else text
        previous, tried = self._tried
        if tried and above == previous + tried:
            self._unsaid = self._unsaid.removeprefix(tried)
        self._tried = (above, self._unsaid)
        return _above(text, self._unsaid) if self._unsaid else []

    async def _anew(self) -> None:
        """Write the file from the session's state, keeping what the person has written and not sent."""
        old_text = await self.document.text() or ""
        heading = _HEADING.search(old_text)
        draft = old_text[heading.end() :] if heading else "\n"
        self.begun = True
        self._transcript = self._transcript.fresh()
        self._unsaid, self._tried = "", ("", "")
        state = self._session.state
        head = (
            f"# Amanu\n\nModel {prose(state.model_id)}, mode {state.mode}. Write at the end; the code action "
            f'"{SEND}" sends it.\n\n'
        )
        text = self._transcript.more(state)
        await self.document.replace(f"{head}{text}{YOUR_TURN}\n{draft}")


_chats: "WeakKeyDictionary[Session, Chat]" = WeakKeyDictionary()


def chat_of(session: "Session", path: Path, overlay: Overlay) -> Chat:
    """The chat of that session in this process."""
    chat = _chats.get(session)
    if chat is None:
        chat = _chats[session] = Chat(session, path, overlay)
    return chat


def _above(text: str, addition: str) -> list[TextEdit]:
    """Insert above the last heading; where the person removed it, at the end, with it."""
    heading = _HEADING.search(text)
    if heading is not None:
        return [TextEdit(start=heading.start(), end=heading.start(), new_text=addition)]
    gap = "" if text.endswith("\n") or not text else "\n"
    return [TextEdit(start=len(text), end=len(text), new_text=f"{gap}\n{addition}{YOUR_TURN}\n\n")]


def _without(text: str, written: str) -> list[TextEdit]:
    """Remove what was written, if it is still what stands there."""
    heading = _HEADING.search(text)
    if heading is None or text[heading.end() :].strip() != written:
        return []
    return [TextEdit(start=heading.end(), end=len(text), new_text="\n")]


def _at_end(text: str, addition: str) -> list[TextEdit]:
    gap = "" if text.endswith(("\n", " ")) or not text else " "
    return [TextEdit(start=len(text), end=len(text), new_text=f"{gap}{addition} ")]
