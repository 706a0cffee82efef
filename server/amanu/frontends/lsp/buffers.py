"""Open documents of one connection: what its editor shows, and edits through it. The `Editor` of the overlay.

Documents are known by the absolute path of their `file:` URI, and by its real path where links lead elsewhere.
Edits are counted as applied by evidence: the client's own hash (`amanu/editor/apply`), or a didChange that gives
exactly the expected text (`workspace/applyEdit`, whose answer is only a hint: Neovim says `applied: true` of an edit
it dropped).
"""

import asyncio
import hashlib
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from amanu.frontends.lsp.document_text import DocumentText, Position, breaks_for
from amanu.frontends.lsp.edit_request import Ask, no_edits, request_edit, wire_edits
from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.text.code_units import Encoding
from amanu.text.span_edits import SpanEdit
from amanu.workspace.overlay import Buffer, LanguageQueries
from amanu_protocol.requests import EditorApplyParams, EditorApplyResult

CONFIRM = 2.0
"""Seconds in which an editor must show the expected text."""
LATE = 30.0
"""Seconds more in which an edit that the editor may have made is neither made nor refused: some report it late."""
NUDGE = 0.5
"""Seconds after which an editor that has not answered is sent something else, for the log: Eglot reads a message that
came together with a reply only when the next one comes (jsonrpc.el of Emacs 28)."""

log = logging.getLogger(__name__)

typed_numbers = itertools.count(1)
"""For `Buffer.typed`, of all editors: the latest change of any has the greatest."""


@dataclass
class _Document:
    uri: str
    path: Path
    real: Path
    version: int
    text: DocumentText
    typed: int = 0
    exists: bool = False
    """There was a file of that name when it was opened or saved."""
    expected: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    """Texts somebody waits to see."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One edit at a time."""
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """The editor has said something of it since the last edit."""
    unconfirmed: bool = False
    """The last edit may be in it or not: nothing was heard of it since."""

    def saw(self) -> None:
        self.unconfirmed = False
        self.heard.set()
        if self.expected and (event := self.expected.get(self.text.text)) is not None:
            event.set()


@dataclass(frozen=True)
class EditorClient:
    """A client that has documents open, and what it offers."""

    name: str
    ask: Ask
    """Sends a request and gives its result; raises `ClientError`."""
    encoding: Encoding
    own_apply: bool = False
    """It knows `amanu/editor/apply`."""
    takes_edits: bool = True
    """It takes `workspace/applyEdit`. So does ALE, for Vim, which gives no name, says that it does not, and never
    answers: what it shows afterwards tells."""
    versions: bool = False
    """It knows `documentChanges`, which name the version they are for."""
    process: int | None = None
    """Its id; None where it did not say."""
    log: Callable[[str], None] = lambda line: None
    """Takes a line for the client's log."""


class Buffers:
    """The documents of one client. `on_change` hears which paths' documents are others than before."""

    must_be_asked = False
    client: tuple[str, int] | None = None

    def __init__(self, client: EditorClient, on_change: Callable[[Path], None] = lambda path: None) -> None:
        self.name = client.name
        self._client = client
        self._ask = client.ask
        self._encoding: Encoding = client.encoding
        self.language: LanguageQueries | None = None
        """Set by the connection, when its client answers questions about code."""
        self._on_change = on_change
        self._by_uri: dict[str, _Document] = {}
        self._by_path: dict[Path, _Document] = {}
        self._unanswered: dict[str, asyncio.Task[str | None]] = {}
        """By URI, the edit that was given up though the editor may still make it."""

    # What the editor reports ------------------------------------------------------------------------

    def opened(self, uri: str, version: int, text: str) -> None:
        """didOpen. Documents that are no files are not ours. Opening again replaces the text."""
        path = path_of(uri)
        if path is None:
            return
        self.closed(uri)
        document = _Document(
            uri,
            path,
            Path(os.path.realpath(path)),
            version,
            DocumentText(text, self._encoding, breaks_for(self.name, text)),
        )
        document.exists = os.path.exists(document.real)  # noqa: PTH110  False for a name no system would take
        self._by_uri[uri] = document
        self._by_path[document.real] = document
        self._by_path[document.path] = document
        self._changed(document)

    def changed(self, uri: str, version: int, changes: Iterable[tuple[Position, Position, str] | str]) -> None:
        """didChange: pieces in order, or a whole text."""
        document = self._by_uri.get(uri)
        if document is None:
            if path_of(uri) is not None:
                log.warning("didChange of a document that was not opened")
            return
        for change in changes:
            if isinstance(change, str):
                document.text.replace(change)
            else:
                document.text.change(*change)
        document.version = version
        document.typed = next(typed_numbers)
        document.saw()
        self._changed(document)

    def saved(self, uri: str) -> None:
        """didSave. What is on disk is read when it matters."""
        if (document := self._by_uri.get(uri)) is not None:
            document.typed = 0
            document.exists = os.path.exists(document.real)  # noqa: PTH110  False for a name no system would take
            document.saw()

    def closed(self, uri: str) -> None:
        """didClose."""
        document = self._by_uri.pop(uri, None)
        if document is not None:
            for path in (document.path, document.real):
                if self._by_path.get(path) is document:
                    del self._by_path[path]
            self._changed(document)

    def _changed(self, document: _Document) -> None:
        for path in {document.path, document.real}:
            self._on_change(path)

    # Editor -----------------------------------------------------------------------------------------

    def buffer(self, path: Path) -> Buffer | None:
        document = self._by_path.get(path)
        return None if document is None or _is_left(document) else _buffer(document)

    def uri(self, path: Path) -> str:
        """How the client names that file, or would."""
        document = self._by_path.get(path)
        return path.as_uri() if document is None else document.uri

    def buffers(self) -> Iterable[Buffer]:
        return [_buffer(document) for document in self._by_uri.values() if not _is_left(document)]

    def serves(self, session_id: str) -> bool:
        """Whether it is attached makes no difference: one connection has all documents of the editor."""
        return False

    async def refresh(self, path: Path, *, to_edit: bool = False) -> bool:
        """Nothing: the client tells by itself."""
        return True

    async def apply(
        self, path: Path, expected_sha256: str, edits: Sequence[SpanEdit], new_text: str, save: bool
    ) -> EditorApplyResult:
        """See `workspace.overlay.Editor.apply`."""
        document = self._by_path.get(path)
        if document is not None and (earlier_edit := self._unanswered.get(document.uri)) is not None:
            await asyncio.wait({earlier_edit}, timeout=CONFIRM)
            if not earlier_edit.done():
                message = f"it has not yet answered the previous edit of {path.name}."
                return EditorApplyResult(status="error", message=message)
            document = self._by_path.get(path)
        if document is None:
            return EditorApplyResult(status="notOpen", message=f"{path.name} is not open in {self._who}.")
        if not (self._client.own_apply or self._client.takes_edits):
            return no_edits(path.name)
        async with document.turn:
            return await self._apply(document, expected_sha256, edits, new_text, save)

    async def _apply(
        self, document: _Document, expected_sha256: str, edits: Sequence[SpanEdit], new_text: str, save: bool
    ) -> EditorApplyResult:
        path = document.path
        if document.unconfirmed:
            message = f"it has not yet confirmed the previous edit of {path.name}; save the file there."
            return EditorApplyResult(status="error", message=message)
        document.heard.clear()
        if sha256(document.text.text) != expected_sha256:
            return EditorApplyResult(
                status="conflict", message=f"{path.name} was changed in {self._who} in the meantime."
            )
        confirmed = document.expected.setdefault(new_text, asyncio.Event())
        try:
            if self._client.own_apply:
                return await self._apply_by_client(document, expected_sha256, edits, new_text, save, confirmed)
            return await self._apply_by_edit(document, edits, new_text, confirmed)
        except ClientError as error:
            return EditorApplyResult(status="error", message=f"{self._who} refused the edit: {error}")
        finally:
            document.expected.pop(new_text, None)

    async def _apply_by_client(
        self,
        document: _Document,
        expected_sha256: str,
        edits: Sequence[SpanEdit],
        new_text: str,
        save: bool,
        expected: asyncio.Event,
    ) -> EditorApplyResult:
        params = EditorApplyParams(
            path=str(document.path),
            expected_sha256=expected_sha256,
            edits=wire_edits(document.text, edits),
            save=save,
        )
        result = await request_edit(self._ask, self._who, params, sha256(new_text))
        if result.status != "success":
            return result
        confirmed = await _within(expected, CONFIRM)
        if result.sha256 is None and not confirmed:
            return _not_confirmed(self._who, document)
        return result.model_copy(update={"sha256": sha256(new_text)})

    async def _apply_by_edit(
        self, document: _Document, edits: Sequence[SpanEdit], new_text: str, confirmed: asyncio.Event
    ) -> EditorApplyResult:
        answer = asyncio.create_task(self._send_edit(self._edit_request(document, edits)))
        confirmation = asyncio.create_task(_within(confirmed, CONFIRM))
        line = f"Amanu is waiting for {self._who} to apply its edit of {document.path.name}."
        nudge = asyncio.get_running_loop().call_later(NUDGE, self._client.log, line)
        try:
            await asyncio.wait({answer, confirmation}, return_when=asyncio.FIRST_COMPLETED)
            refused = answer.result() if answer.done() else None
            if refused is not None and not confirmed.is_set():
                return EditorApplyResult(status="conflict", message=refused)
            if not await confirmation and not await self._confirmed_late(document, confirmed):
                if document.heard.is_set():
                    return _not_confirmed(self._who, document)
                document.unconfirmed = True
                message = (
                    f"it may have applied the edit of {document.path.name} without confirming it. Check the file there."
                )
                return EditorApplyResult(status="error", message=message)
            return EditorApplyResult(status="success", sha256=sha256(new_text), version=document.version)
        finally:
            nudge.cancel()
            confirmation.cancel()
            if confirmed.is_set():
                answer.cancel()
            elif not answer.done():
                self._unanswered[document.uri] = answer
                answer.add_done_callback(lambda _: self._unanswered.pop(document.uri, None))

    async def _confirmed_late(self, document: _Document, confirmed: asyncio.Event) -> bool:
        """Whether it shows the expected text after all, with the next that is heard of it."""
        if not document.heard.is_set():
            await _within(document.heard, LATE)
        return confirmed.is_set()

    def _edit_request(self, document: _Document, edits: Sequence[SpanEdit]) -> dict[str, Any]:
        changes = [edit.model_dump() for edit in wire_edits(document.text, edits)]
        identity = {"uri": document.uri, "version": document.version}
        edit: dict[str, Any] = (
            {"documentChanges": [{"textDocument": identity, "edits": changes}]}
            if self._client.versions
            else {"changes": {document.uri: changes}}
        )
        return {"label": "Amanu", "edit": edit}

    async def _send_edit(self, request: dict[str, Any]) -> str | None:
        """Why the editor refused, or None."""
        try:
            answer = await self._ask("workspace/applyEdit", request)
        except ClientError as error:
            return f"{self._who} refused the edit: {error}"
        if isinstance(answer, dict) and answer.get("applied") is True:  # pyright: ignore[reportUnknownMemberType]
            return None
        reason: Any = answer.get("failureReason") if isinstance(answer, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return f"{self._who} refused the edit{f': {reason}' if reason else '.'}"

    @property
    def _who(self) -> str:
        return self.name or "the editor"


def sha256(text: str) -> str:
    """Of the text's UTF-8, hexadecimal; a lone surrogate counts as its three bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def path_of(uri: str) -> Path | None:
    """The absolute path a `file:` URI names; None for anything else (untitled, git, remote hosts)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
        return None
    # An unescaped "?" or "#" in a path is a client's slip, and no file URI has a query.
    url_path = (
        parts.path + (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")
    )
    path = os.fsdecode(unquote_to_bytes(url_path))
    if "\0" in path:
        return None
    if os.name == "nt" and len(path) > 2 and path[0] == "/" and path[2] == ":":
        path = path[1:]
    return Path(os.path.normpath(path)) if Path(path).is_absolute() else None


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _not_confirmed(who: str, document: _Document) -> EditorApplyResult:
    message = f"{who} did not show the expected text of {document.path.name} within {CONFIRM:g} seconds."
    return EditorApplyResult(status="conflict", message=message)


def _buffer(document: _Document) -> Buffer:
    return Buffer(document.path, document.text.text, document.version, document.typed)


def _is_left(document: _Document) -> bool:
    """What an editor still holds of a file that was deleted or moved, nothing typed into it since it was read or saved:
    VS Code keeps such a document for minutes after its tab is closed. It is nobody's unsaved text."""
    return document.typed == 0 and document.exists and not document.path.exists()
