"""Documents of a client that does not send them, but returns the text of a file on request (`amanu/editor/read`).
Implements the overlay's `Editor`.

An answer is valid only while the file on disk is unchanged since the request. Once the user saves, or another program
writes the file, the text on disk is used until the client is asked again.

A client that does not answer may have unsaved text. Until it answers, its last known text is used for reading, and
the file is not edited; before an edit the client is asked even during the cooldown. Since a client may be broken:

- A client that has never answered is ignored.
- A client that still does not answer a minute after its first unanswered request is ignored until it answers, except
  for text known to be unsaved: that is not overwritten until the file on disk changes.
- A client that has disconnected is ignored.
"""

import asyncio
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from amanu.core.tool import ToolError
from amanu.frontends.lsp.buffers import EditorClient, sha256, typed_numbers
from amanu.frontends.lsp.document_text import DocumentText, breaks_for
from amanu.frontends.lsp.edit_request import no_edits, request_edit, wire_edits
from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.text.code_units import Encoding
from amanu.text.span_edits import SpanEdit
from amanu.workspace.encodings import decode, decode_as_shown, is_unicode
from amanu.workspace.overlay import Buffer, LanguageQueries
from amanu.workspace.text_file import MAX_FILE, as_editors_show, survives
from amanu_protocol.requests import EditorApplyParams, EditorApplyResult, EditorReadParams, EditorReadResult

READ_TIMEOUT = 5.0
"""Seconds in which a client must give a text."""
COOLDOWN = 60.0
"""Seconds after a timeout during which reads do not ask the client again, since each would wait. Also the seconds from
its first unanswered request after which the client is given up."""
ATTEMPTS = 2
"""Requests for one text. It is asked for again if the file on disk changed meanwhile: the answer may be outdated."""
MOST_DOCUMENTS = 100
MOST_CHARACTERS = MAX_FILE
"""Of all texts that are kept."""

_Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class _Answer:
    """A text, and the file at that moment."""

    path: Path
    """As the client spells it."""
    real: Path
    text: str
    stamp: _Stamp | None
    """Of the file before the client was asked; None where there was none."""
    saved: bool
    """It is the text on disk."""


@dataclass
class _Silence:
    """Of a client that leaves questions unanswered."""

    since: float
    """When the first was. On the event loop's clock, as is the other time."""
    given_up: bool
    """Edits do not wait for it any more."""
    not_asked_until: float = 0.0


class _Unanswered(Exception):
    """What the client shows is not known."""

    def __init__(self, silence: _Silence) -> None:
        super().__init__()
        self.silence = silence


@dataclass(frozen=True)
class _Document:
    answer: _Answer
    version: int
    typed: int

    def counts(self) -> bool:
        return _stamp(self.answer.real) == self.answer.stamp


class PulledDocuments:
    """The documents of one client. `folders` gives the folders it has open: it is asked only about files in them.
    `serves` tells whether it is attached to a session. `on_change` is called with each path whose document changed."""

    must_be_asked = True

    def __init__(
        self,
        client: EditorClient,
        folders: Callable[[], Iterable[Path]],
        on_change: Callable[[Path], None] = lambda path: None,
        serves: Callable[[str], bool] = lambda session_id: False,
    ) -> None:
        self.name = client.name
        self.client = None if client.process is None else (client.name, client.process)
        self._serves = serves
        self.language: LanguageQueries | None = None
        """Set by the connection, when its client answers questions about code."""
        self._ask = client.ask
        self._encoding: Encoding = client.encoding
        self._takes_edits = client.own_apply
        self._folders = folders
        self._on_change = on_change
        self._versions = itertools.count(1)
        self._documents: dict[Path, _Document] = {}
        """By real path, the most recent last. Outdated documents stay, since the next answer is compared with them."""
        self._asking: dict[Path, asyncio.Task[bool]] = {}
        """By real path."""
        self._has_answered = False
        self._silence: _Silence | None = None
        """Where it did not answer in time, until it does."""
        self._silences: dict[Path, _Silence] = {}
        """By real path, where it answered in time, but with nothing that tells of the file."""

    def serves(self, session_id: str) -> bool:
        return self._serves(session_id)

    def buffer(self, path: Path) -> Buffer | None:
        document = self._document(path)
        return None if document is None or self._is_hidden(document) else _buffer(document)

    def buffers(self) -> Iterable[Buffer]:
        documents = list(self._documents.values())
        return [_buffer(each) for each in documents if not self._is_hidden(each) and each.counts()]

    async def refresh(self, path: Path, *, to_edit: bool = False) -> bool:
        """See `workspace.overlay.Editor.refresh`. Who asks about a path at the same time shares one request."""
        real = _real(path)
        client_path = self._client_path(real)
        if client_path is None:
            self._silences.pop(real, None)
            self._put(real, None)
            return True
        if (asking := self._asking.get(real)) is None:
            silence = self._silence
            if silence is not None and _now() < silence.not_asked_until and (silence.given_up or not to_edit):
                return silence.given_up
            asking = self._asking[real] = asyncio.create_task(self._pull(client_path, real))
            asking.add_done_callback(lambda _: self._asking.pop(real))
        await asyncio.wait({asking})  # of several, one that is cancelled leaves the others theirs
        return asking.result()

    async def apply(
        self, path: Path, expected_sha256: str, edits: Sequence[SpanEdit], new_text: str, save: bool
    ) -> EditorApplyResult:
        """See `workspace.overlay.Editor.apply`. Only the client's own hash confirms an edit."""
        document = self._document(path)
        if document is None:
            return EditorApplyResult(status="notOpen", message=f"{path.name} is not open in {self._who}.")
        answer = document.answer
        if not self._takes_edits:
            return no_edits(path.name)
        if sha256(answer.text) != expected_sha256:
            message = f"{path.name} was changed in {self._who} in the meantime."
            return EditorApplyResult(status="conflict", message=message)
        shown = DocumentText(answer.text, self._encoding, breaks_for(self.name, answer.text))
        params = EditorApplyParams(
            path=str(answer.path), expected_sha256=expected_sha256, edits=wire_edits(shown, edits), save=save
        )
        result = await self._request_edit(params, sha256(new_text))
        if result.status == "success":
            await self._edited(replace(answer, text=new_text))
        elif result.status != "error":
            self._put(answer.real, None)  # it shows something else
        return result

    # What the client says ---------------------------------------------------------------------------

    async def _pull(self, path: Path, real: Path) -> bool:
        """See `refresh`."""
        previous = self._documents.get(real)
        try:
            answer = await self._answer(path, real)
        except _Unanswered as unanswered:  # what is known counts as long as the file on disk is the same
            return unanswered.silence.given_up
        self._silences.pop(real, None)
        current = self._documents.get(real)
        if (
            current is previous or current is None
        ):  # else an edit was made meanwhile, and this may be the text before it
            self._put(real, answer)
        return True

    async def _answer(self, path: Path, real: Path) -> _Answer | None:
        """None when the client shows no text of it that counts. Raises `_Unanswered`."""
        for _ in range(ATTEMPTS):
            if not _can_be_text(real):
                return None
            stamp = _stamp(real)
            text = await self._ask_text(path, real)
            if text is None or len(text) > MOST_CHARACTERS or (stamp is None and not text):
                return None
            saved = False if stamp is None else await asyncio.to_thread(_is_on_disk, text, real)
            if _stamp(real) == stamp:
                return None if saved is None else _Answer(path, real, text, stamp, saved)
        raise _Unanswered(self._prolonged_of(real))

    async def _ask_text(self, path: Path, real: Path) -> str | None:
        """Raises `_Unanswered`."""
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                answer = await self._ask("amanu/editor/read", EditorReadParams(path=str(path)))
            text = EditorReadResult.model_validate(answer or {}).text  # an empty table of Lua is a list
        except TimeoutError:
            self._silence = self._prolonged(self._silence)
            self._silence.not_asked_until = _now() + COOLDOWN
            raise _Unanswered(self._silence) from None
        except (ClientError, ValidationError):
            raise _Unanswered(self._prolonged_of(real)) from None
        self._has_answered, self._silence = True, None
        return text

    def _prolonged(self, silence: _Silence | None) -> _Silence:
        """The silence after one more question in vain, which may be the first."""
        if silence is None:
            return _Silence(_now(), given_up=not self._has_answered)
        silence.given_up = silence.given_up or _now() - silence.since >= COOLDOWN
        return silence

    def _prolonged_of(self, real: Path) -> _Silence:
        silence = self._silences[real] = self._prolonged(self._silences.get(real))
        return silence

    async def _request_edit(self, params: EditorApplyParams, new_sha256: str) -> EditorApplyResult:
        try:
            result = await request_edit(self._ask, self._who, params, new_sha256)
        except ClientError as error:
            return EditorApplyResult(status="error", message=f"{self._who} refused the edit: {error}")
        if result.status == "success" and result.sha256 is None:
            message = f"{self._who} did not confirm the new text of {Path(params.path).name}."
            return EditorApplyResult(status="conflict", message=message)
        return result

    async def _edited(self, answer: _Answer) -> None:
        stamp = _stamp(answer.real)
        saved = None if stamp is None else await asyncio.to_thread(_is_on_disk, answer.text, answer.real)
        self._silences.pop(answer.real, None)
        self._put(answer.real, replace(answer, stamp=stamp, saved=saved is True))

    def _put(self, real: Path, answer: _Answer | None) -> None:
        previous = self._documents.get(real)
        if answer is not None and previous is not None and _is_outdated(answer, previous.answer):
            return
        self._documents.pop(real, None)
        if answer is not None:
            self._documents[real] = self._next(answer, previous)
            self._trim()
        if (None if previous is None else previous.answer.text) != (None if answer is None else answer.text):
            for path in {real} | {each.path for each in (answer, previous and previous.answer) if each is not None}:
                self._on_change(path)

    def _next(self, answer: _Answer, previous: _Document | None) -> _Document:
        is_same = previous is not None and previous.answer.text == answer.text
        version = previous.version if previous is not None and is_same else next(self._versions)
        if answer.saved:
            return _Document(answer, version, 0)
        typed = previous.typed if previous is not None and is_same else 0
        return _Document(answer, version, typed or next(typed_numbers))

    def _trim(self) -> None:
        characters = sum(len(document.answer.text) for document in self._documents.values())
        while len(self._documents) > MOST_DOCUMENTS or characters > MOST_CHARACTERS:
            oldest = self._documents.pop(next(iter(self._documents)))
            characters -= len(oldest.answer.text)

    # Paths ------------------------------------------------------------------------------------------

    def _document(self, path: Path) -> _Document | None:
        document = self._documents.get(path) or next(
            (each for each in self._documents.values() if each.answer.path == path), None
        )
        return document if document is not None and document.counts() else None

    def _is_hidden(self, document: _Document) -> bool:
        """Where the client takes no edits, what it shows of the disk is no document: the file is written there. So it
        is where the client was given up."""
        silences = (self._silence, self._silences.get(document.answer.real))
        is_given_up = any(silence is not None and silence.given_up for silence in silences)
        return document.answer.saved and (is_given_up or not self._takes_edits)

    def _client_path(self, real: Path) -> Path | None:
        """As the client spells it; None for a file in none of its folders."""
        for folder in self._folders():
            for root in (folder, _real(folder)):
                if real.is_relative_to(root):
                    return folder / real.relative_to(root)
        return None

    @property
    def _who(self) -> str:
        return self.name or "the editor"


def _buffer(document: _Document) -> Buffer:
    return Buffer(document.answer.path, document.answer.text, document.version, document.typed)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _stamp(path: Path) -> _Stamp | None:
    """Differs after each write to the file; None if the file does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116  quicker, and it is called for every document
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _can_be_text(path: Path) -> bool:
    """A file that is read at all, or none yet."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return True
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE


def _is_on_disk(text: str, path: Path) -> bool | None:
    """Whether an editor that has not changed the file shows that text. None where that cannot be told: the file is no
    text, or the client has given it other line ends. Blocking."""
    try:
        data = path.read_bytes()
        on_disk, encoding = decode(data, path)
    except (OSError, ToolError):
        return None
    if text == on_disk or (not survives(on_disk, encoding) and text in as_editors_show(data, on_disk)):
        return True
    if not is_unicode(encoding) and decode_as_shown(data, text) is not None:
        return True
    return None if _with_lf(text) == _with_lf(on_disk) else False


def _with_lf(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _is_outdated(answer: _Answer, previous: _Answer) -> bool:
    """What an editor still shows of a file that something else has changed, moved or deleted since, without a change by
    its user: it has not read it again yet."""
    return previous.saved and not answer.saved and answer.text == previous.text
