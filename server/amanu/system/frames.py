"""Frames of the base protocol: bytes in, message bodies out. Pure; standard library only (the relay uses it).

The rules are those of the LSP specification, "Base Protocol": header fields end with CR LF, an empty line ends
the header, `Content-Length` counts the body's bytes. Names are compared without case, `Content-Type` and unknown
fields are tolerated.
"""

import re
from typing import NamedTuple

MAX_BODY = 64 * 1024 * 1024
"""Bytes. A larger frame is a mistake or an attack: the connection ends (facts/security.md §5, row 16)."""
MAX_HEADER = 8 * 1024
"""Bytes of one whole header."""

_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)", re.DOTALL)
_PARTIAL = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]*([ \t]*:[^\n]*|[ \t]*|\r)\Z", re.DOTALL)
_NUMBER = re.compile(rb"[0-9]{1,18}")


class BrokenStream(NamedTuple):
    """The stream lost its frames; nothing after this can be understood. `why` is a sentence."""

    why: str


class FrameReader:
    """Cuts a stream of bytes into bodies. After `BrokenStream` it yields nothing more."""

    def __init__(self, max_body: int = MAX_BODY) -> None:
        self._max_body = max_body
        self._buffer = bytearray()
        self._searched = 0
        self._length: int | None = None
        self._broken = False

    def feed(self, data: bytes) -> list[bytes | BrokenStream]:
        """The bodies that are complete with these bytes, in order; `BrokenStream`, if it comes, is the last."""
        frames: list[bytes | BrokenStream] = []
        if self._broken:
            return frames
        self._buffer += data
        while (body := self._next()) is not None:
            frames.append(body)
            if isinstance(body, BrokenStream):
                self._broken = True
                self._buffer.clear()
                break
        return frames

    @property
    def in_header(self) -> bool:
        """A header has begun and is not complete. Headers are short and written at once: one that stays
        unfinished means that the sender does not speak this protocol."""
        return not self._broken and self._length is None and bool(self._buffer)

    @property
    def in_body(self) -> bool:
        """A header is complete and its body is not."""
        return not self._broken and self._length is not None

    def _next(self) -> bytes | BrokenStream | None:
        if self._length is None:
            header = self._header()
            if not isinstance(header, int):
                return header
            self._length = header
        if len(self._buffer) < self._length:
            return None
        with memoryview(self._buffer) as view:
            body = bytes(view[: self._length])  # of the bytearray itself a slice would be a second copy
        del self._buffer[: self._length]
        self._length = None
        return body

    def _header(self) -> int | BrokenStream | None:
        """The length of the body that follows, once the header is complete; it is then consumed."""
        end = self._buffer.find(b"\r\n\r\n", self._searched)
        header = bytes(self._buffer[: end if end >= 0 else MAX_HEADER + 1])
        if len(header) > MAX_HEADER:
            return BrokenStream(f"A message header is longer than {MAX_HEADER} bytes.")
        lines = header.split(b"\r\n")
        if end < 0:
            # Each complete line is judged as soon as it is there: garbage without an end must not wait for one.
            *lines, partial = lines
            if not _PARTIAL.match(partial):
                return BrokenStream(_strange(partial))
            self._searched = max(0, len(self._buffer) - 3)
        length: int | None = None
        for line in lines:
            field = _FIELD.fullmatch(line)
            if field is None or b"\n" in line:
                return BrokenStream(_strange(line))
            if field[1].lower() != b"content-length":
                continue
            value = field[2].strip(b" \t")
            if not _NUMBER.fullmatch(value):
                return BrokenStream(f"Content-Length is not a number: {_shown(value)}.")
            if length is not None and length != int(value):
                return BrokenStream("A message header has two different Content-Length fields.")
            length = int(value)
            if length > self._max_body:
                return BrokenStream(f"A message of {length} bytes is larger than the {self._max_body} allowed.")
        if end < 0:
            return None
        if length is None:
            return BrokenStream("A message header has no Content-Length.")
        del self._buffer[: end + 4]
        self._searched = 0
        return length


def frame(body: bytes) -> bytes:
    """The body with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _strange(line: bytes) -> str:
    if b"\n" in line:
        return "Header lines must end with CR LF; one ends with LF alone."
    return f"This is not a message header: {_shown(line)}."


def _shown(data: bytes) -> str:
    """The beginning of what came, for a user; never a whole body."""
    return repr(data[:40].decode("utf-8", "replace"))
