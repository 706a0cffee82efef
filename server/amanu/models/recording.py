"""Recordings: what a session and the services of its models said to each other, as a file. docs/recording.md tells
the format.

A recording holds no keys (`Recorder.hide`); it does hold prompts, code, paths and answers.
"""

import base64
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit, urlunsplit

from amanu import __version__
from amanu.text.redaction import MASK, Secrets, is_secret_name
from amanu_protocol.errors import AmanuError

VERSION = 1
MAX_BYTES = 1 << 30
"""Of one recording: one that was forgotten must not fill the disk."""

End = Literal["complete", "aborted", "failed"]
"""`aborted`: we closed the stream before its end · `failed`: `Exchange.error` says how."""

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|credential|organization|project", re.I)
_SECRET_QUERY = re.compile(r"(?i)([?&][^=&#]*(?:key|token|secret|sig|auth|password)[^=&#]*=)[^&#]*")
_OF_THE_CONNECTION = {"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"}
"""Headers of a response that are not true of it any more when it is played."""


@dataclass
class Exchange:
    """One request and what came back."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: Any
    """The JSON value, else the text."""
    status: int | None = None
    """None: there was no response."""
    response_headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    chunks: list[tuple[float, bytes]] = field(default_factory=list[tuple[float, bytes]])
    """Seconds after the request, and the bytes, as they came."""
    end: End = "aborted"
    """Also of a recording that breaks off."""
    error: str = ""
    """Name of the exception and its words."""

    @property
    def data(self) -> bytes:
        """The whole body of the response."""
        return b"".join(data for _, data in self.chunks)


@dataclass(frozen=True)
class Recording:
    model_id: str
    exchanges: Sequence[Exchange]


def new_path(path: str, roots: Iterable[str], private: Iterable[Path] = ()) -> Path:
    """Where to record to. Raises `AmanuError` (invalidParams) unless it is the absolute path of a new file in a folder
    that exists, outside the workspace, whose tools would read and search what is written there at each step, and
    outside Amanu's own folders, where a file of that name may mean something."""
    absolute = Path(path)
    if not absolute.is_absolute():
        raise AmanuError("invalidParams", f"{path} is not an absolute path.", path="path")
    folder = absolute.parent.resolve()
    if not os.path.isdir(folder):  # noqa: PTH112  False for a name no system would take
        raise AmanuError("invalidParams", f"The folder {absolute.parent} does not exist.", path="path")
    if os.path.lexists(absolute):
        raise AmanuError(
            "invalidParams", f"{path} already exists.", hint="Name a file that does not exist yet.", path="path"
        )
    for root in roots:
        if folder.is_relative_to(Path(root).resolve()):
            raise AmanuError(
                "invalidParams",
                f"{path} is in the workspace {root}: Amanu's tools would find the recording and send it to the model.",
                hint=f"Name a file elsewhere, for example {Path.home() / absolute.name}.",
                path="path",
            )
    for secret_path in private:
        if folder.is_relative_to(secret_path.resolve()):
            raise AmanuError("invalidParams", f"{path} is in Amanu's own folder {secret_path}.", path="path")
    return folder / absolute.name


class Recorder:
    """Writes a recording, line by line as things happen. A failure to write ends the recording and nothing else."""

    def __init__(
        self,
        path: Path,
        model_id: str,
        mask: Callable[[str], str],
        *,
        clock: Callable[[], float] = time.monotonic,
        failed: Callable[[str], None] = lambda why: None,
    ) -> None:
        """`path` as `new_path` gave it; `mask` takes out all keys that are known elsewhere; `failed` is told, once, why
        the recording ended early. Raises `AmanuError` (storageError)."""
        try:
            self._file: int | None = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except OSError as error:
            raise AmanuError("storageError", f"{path} cannot be written: {error.strerror or error}.") from None
        self.path = path
        self._mask = mask
        self._secrets = Secrets()
        self._clock = clock
        self._failed = failed
        self._exchanges = 0
        self._lock = threading.Lock()
        self._size = 0
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self.write({"amanuRecording": VERSION, "amanu": __version__, "at": started_at, "model": model_id})

    def hide(self, environment: Mapping[str, str]) -> None:
        """Keep what looks like a secret in a user's environment out of what follows."""
        self._secrets.learn(
            value for name, value in environment.items() if is_secret_name(name) and not value.startswith("/")
        )

    def begin(self) -> "ExchangeRecorder":
        """The next exchange."""
        self._exchanges += 1
        return ExchangeRecorder(self, self._exchanges, self._clock)

    def close(self) -> None:
        """Nothing more is written."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def masked(self, text: str) -> str:
        return self._mask(self._secrets.mask_content(text))

    def plain_url(self, url: str) -> str:
        parts = urlsplit(url)
        plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return self.masked(_SECRET_QUERY.sub(rf"\1{MASK}", plain))

    def plain_headers(self, headers: Iterable[tuple[str, str]]) -> list[list[str]]:
        return [[name.lower(), MASK if _SECRET_HEADER.search(name) else self.masked(value)] for name, value in headers]

    def write(self, line: dict[str, Any]) -> None:
        """One line."""
        # Half a surrogate pair is escaped: the file is UTF-8 whatever was said.
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
        data = text.encode("utf-8", "backslashreplace") + b"\n"
        try:
            with self._lock:  # a request is written in a thread
                if self._file is None:
                    return
                self._size += len(data)
                if self._size > MAX_BYTES:
                    raise OSError(0, f"it has reached {MAX_BYTES >> 20} MB")
                view = memoryview(data)
                while view:
                    view = view[os.write(self._file, view) :]
        except OSError as error:
            self.close()
            self._failed(f"The recording {self.path} ends here: {error.strerror or error}.")


class ExchangeRecorder:
    """One exchange on its way into a recording. Chunks wait for the end of their line: a key may stand across two of
    them, never across two lines."""

    def __init__(self, recorder: Recorder, number: int, clock: Callable[[], float]) -> None:
        self._recorder = recorder
        self._number = number
        self._clock = clock
        self._begun = clock()
        self._waiting: list[tuple[float, bytes]] = []
        self._ended = False

    def request(self, method: str, url: str, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        """It is about to be sent. Takes time in proportion to the body: to be called in a thread."""
        self._begun = self._clock()
        text = self._recorder.masked(body.decode("utf-8", "replace"))
        try:
            value: Any = json.loads(text)
        except ValueError:
            value = text
        request_line = {
            "method": method,
            "url": self._recorder.plain_url(url),
            "headers": self._recorder.plain_headers(headers),
            "body": value,
        }
        self._write({"request": request_line})

    def response(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """The headers have come."""
        sent_headers = [header for header in headers if header[0].lower() not in _OF_THE_CONNECTION]
        plain = self._recorder.plain_headers(sent_headers)
        self._write({"after": self._after(), "response": {"status": status, "headers": plain}})

    def chunk(self, data: bytes) -> None:
        """A piece of the body has come, its compression undone."""
        self._waiting.append((self._after(), data))
        if data.endswith((b"\n", b"\r")):
            self._let_go()

    def end(self, how: End, error: str = "") -> None:
        """The exchange is over. Only the first end counts."""
        if self._ended:
            return
        self._ended = True
        self._let_go()
        why = {"error": self._recorder.masked(error)} if error else {}
        self._write({"after": self._after(), "end": how, **why})

    def _let_go(self) -> None:
        waiting, self._waiting = self._waiting, []
        for elapsed, data in zip((elapsed for elapsed, _ in waiting), self._plain(waiting), strict=True):
            if data:
                self._write({"after": elapsed, **_written(data)})

    def _plain(self, waiting: list[tuple[float, bytes]]) -> list[bytes]:
        """The chunks without keys. Only where one was found in the whole are the chunks not what came: the first then
        holds all."""
        pieces = [data for _, data in waiting]
        whole = b"".join(pieces).decode("utf-8", "surrogateescape")
        masked = self._recorder.masked(whole)
        if masked == whole:
            return pieces
        return [masked.encode("utf-8", "surrogateescape"), *(b"" for _ in pieces[1:])]

    def _write(self, fields: dict[str, Any]) -> None:
        self._recorder.write({"exchange": self._number, **fields})

    def _after(self) -> float:
        return round(self._clock() - self._begun, 4)


def load(path: Path) -> Recording:
    """Read a recording; one that breaks off is read as far as it goes. Raises `AmanuError` (invalidParams) when it is
    none."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise AmanuError("invalidParams", f"{path} cannot be read: {error.strerror or error}.") from None
    head = _line(lines[0]) if lines else None
    if head is None or not isinstance(head.get("amanuRecording"), int):
        raise AmanuError("invalidParams", f"{path} is not a recording made by Amanu.")
    if head["amanuRecording"] > VERSION:
        raise AmanuError(
            "invalidParams",
            f"{path} was recorded by a newer version of Amanu ({head.get('amanu')}).",
            hint="Update Amanu to replay it.",
        )
    exchanges: dict[int, Exchange] = {}
    for line_number, text in enumerate(lines[1:], 2):
        line = _line(text)
        try:
            if line is None:
                raise ValueError
            _take(line, exchanges)
        except (LookupError, TypeError, ValueError, AttributeError):
            if line_number == len(lines):
                break  # written by a process that was killed
            raise AmanuError("invalidParams", f"{path} is damaged at line {line_number}.") from None
    return Recording(str(head.get("model", "")), [exchanges[number] for number in sorted(exchanges)])


def _take(line: dict[str, Any], exchanges: dict[int, Exchange]) -> None:
    number: int = line["exchange"]
    if "request" in line:
        request = line["request"]
        exchanges[number] = Exchange(request["method"], request["url"], _pairs(request["headers"]), request["body"])
        return
    exchange = exchanges[number]
    if "response" in line:
        exchange.status = int(line["response"]["status"])
        exchange.response_headers = _pairs(line["response"]["headers"])
    elif "end" in line:
        exchange.end = line["end"]
        exchange.error = str(line.get("error", ""))
    else:
        data = line["text"].encode() if "text" in line else base64.b64decode(line["base64"], validate=True)
        exchange.chunks.append((float(line["after"]), data))


def _line(text: bytes) -> dict[str, Any] | None:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _pairs(value: Any) -> list[tuple[str, str]]:
    return [(str(name), str(text)) for name, text in value]


def _written(data: bytes) -> dict[str, str]:
    """Text where it is text; a character may be cut in two by the end of a chunk."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
