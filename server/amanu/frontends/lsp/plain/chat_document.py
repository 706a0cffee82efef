"""A session as a Markdown document: the user writes under its last heading, everything else is appended above it.

There is one per session in a daemon, however many editors look at it.
"""

import asyncio
import contextlib
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from amanu.frontends.lsp.plain.documents import CHAT, Documents, ManagedDocument
from amanu.frontends.lsp.plain.transcript import YOUR_TURN, Transcript
from amanu.text.markdown import prose
from amanu.text.span_edits import SpanEdit
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import Event
from amanu_protocol.items import SelectionAttachment

if TYPE_CHECKING:
    from amanu.session.session import Session

PAUSE = 0.4
"""Seconds between two edits of the document: an answer comes in pieces a user can read."""
LONGEST_PAUSE = 30.0
"""Seconds between two tries, at most: they double while an editor refuses the edit or is too slow for it."""
SEND = "Amanu: send"
_HEADING = re.compile(rf"^{re.escape(YOUR_TURN)}[^\n]*(\n|\Z)", re.MULTILINE)

log = logging.getLogger(__name__)


class ChatDocument:
    """`document` is where it is written."""

    def __init__(self, session: "Session", document: ManagedDocument) -> None:
        self.document = document
        self.selections: dict[str, SelectionAttachment] = {}
        """What the user asked about, by how the document names it."""
        self._session = session
        self._transcript = Transcript()
        self._last_seq = 0
        self._unwritten = ""
        """To be appended; kept when an editor refuses it, until it does not."""
        self._attempt = ("", "")
        """What stood above the heading when it was last tried, and what was to be appended: an editor may have made an
        edit that counted as refused, because the user typed at the same moment."""
        self.shown = False
        """Somebody looked at it: from then on it is kept up to date."""
        self._lock = asyncio.Lock()
        self._behind = False
        """Something was heard since the document was last brought up to date."""
        self._due: asyncio.Task[None] | None = None

    def on_event(self, seq: int, event: Event) -> None:
        """Each event once, whoever passes it on. Never blocks."""
        if seq <= self._last_seq:
            return
        self._last_seq = seq
        self._unwritten += self._transcript.on_event(event)
        self._behind = True
        if self.shown and self._due is None:
            self._due = asyncio.create_task(self._keep_up())

    async def open(self, mention: SelectionAttachment | None = None) -> int:
        """Have the document up to date, to be shown. The line to write in, 0-based."""
        if not self.shown or not self.document.opened:
            async with self._lock:
                await self._rewrite()
        await self._append()
        if mention is not None:
            name = f"[{Path(mention.path).name}:{mention.lines.first}-{mention.lines.last}]"
            self.selections[name] = mention
            await self.document.change(lambda text: _at_end(text, name))
        text = await self.document.text() or ""
        return text.rstrip("\n").count("\n") + (1 if text.rstrip("\n").endswith(YOUR_TURN) else 0)

    async def draft(self) -> str:
        """What the user wrote under the last heading. Raises `AmanuError` when there is nothing."""
        text = await self.document.text()
        heading = None if text is None else _HEADING.search(text)
        draft = "" if text is None or heading is None else text[heading.end() :].strip()
        if not draft:
            raise AmanuError("invalidParams", f'Write something under "{YOUR_TURN[3:]}" in {self.document.path} first.')
        return draft

    async def remove_draft(self, draft: str) -> None:
        """That was sent: it leaves the place where it was written."""
        async with self._lock:
            await self.document.change(lambda text: _without(text, draft))
        await self._append()

    async def _keep_up(self) -> None:
        wait = PAUSE
        while self._behind:
            await asyncio.sleep(wait)
            self._behind = False
            try:
                await self._append()
            except Exception:
                log.exception("the chat document could not be written")
            wait = min(2 * wait, LONGEST_PAUSE) if self._unwritten else PAUSE
            self._behind = self._behind or bool(self._unwritten)
        self._due = None

    async def _append(self) -> None:
        async with self._lock:
            self._unwritten += self._transcript.new_text(self._session.state)
            if self._unwritten:
                with contextlib.suppress(AmanuError):
                    if await self.document.change(self._appending):
                        self._unwritten = self._unwritten.removeprefix(
                            self._attempt[1]
                        )  # more may have been heard meanwhile
                        self._attempt = ("", "")

    def _appending(self, text: str) -> list[SpanEdit]:
        heading = _HEADING.search(text)
        above = text[: heading.start()] if heading else text
        previous, tried = self._attempt
        if tried and above == previous + tried:
            self._unwritten = self._unwritten.removeprefix(tried)
        self._attempt = (above, self._unwritten)
        return _above(text, self._unwritten) if self._unwritten else []

    async def _rewrite(self) -> None:
        """Write the file from the session's state, keeping what the user has written and not sent."""
        old_text = await self.document.text() or ""
        heading = _HEADING.search(old_text)
        draft = old_text[heading.end() :] if heading else "\n"
        self.shown = True
        self._transcript = self._transcript.restarted()
        self._unwritten, self._attempt = "", ("", "")
        state = self._session.state
        head = (
            f"# Amanu\n\nModel {prose(state.model_id)}, mode {state.mode}. Write at the end; the code action "
            f'"{SEND}" sends it.\n\n'
        )
        text = self._transcript.new_text(state)
        await self.document.replace(f"{head}{text}{YOUR_TURN}\n{draft}")


_chats: "WeakKeyDictionary[Session, ChatDocument]" = WeakKeyDictionary()


def chat_document(session: "Session", documents: Documents) -> ChatDocument:
    """That of the session: one in this process."""
    chat = _chats.get(session)
    if chat is None:
        chat = _chats[session] = ChatDocument(session, documents.of(session.state.session_id, CHAT))
    return chat


def _above(text: str, addition: str) -> list[SpanEdit]:
    """Insert above the last heading; where the user removed it, at the end, with it."""
    heading = _HEADING.search(text)
    if heading is not None:
        return [SpanEdit(start=heading.start(), end=heading.start(), new_text=addition)]
    gap = "" if text.endswith("\n") or not text else "\n"
    return [SpanEdit(start=len(text), end=len(text), new_text=f"{gap}\n{addition}{YOUR_TURN}\n\n")]


def _without(text: str, written: str) -> list[SpanEdit]:
    """Remove what was written, if it is still what stands there."""
    heading = _HEADING.search(text)
    if heading is None or text[heading.end() :].strip() != written:
        return []
    return [SpanEdit(start=heading.end(), end=len(text), new_text="\n")]


def _at_end(text: str, addition: str) -> list[SpanEdit]:
    gap = "" if text.endswith(("\n", " ")) or not text else " "
    return [SpanEdit(start=len(text), end=len(text), new_text=f"{gap}{addition} ")]
