"""Reads and writes the frames of LSP's base protocol: bytes in, message bodies out. Standard library only, because the
relay imports it.

The rules are in the LSP specification, "Base Protocol": header fields end with CR LF, an empty line ends the header,
`Content-Length` is the length of the body in bytes. Field names are case-insensitive; `Content-Type` and unknown fields
are ignored.
"""

import re
from typing import NamedTuple

MAX_BODY = 64 * 1024 * 1024
"""Bytes. A larger frame is a mistake or an attack, and ends the connection."""
MAX_HEADER = 8 * 1024
"""Bytes of one whole header."""

_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)", re.DOTALL)
_PARTIAL = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]*([ \t]*:[^\n]*|[ \t]*|\r)\Z", re.DOTALL)
_NUMBER = re.compile(rb"[0-9]{1,18}")


class BrokenStream(NamedTuple):
    """The stream is no longer made of frames; nothing after this can be read. `why` is a sentence."""

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
        """The bodies that these bytes complete, in order; a `BrokenStream` can only be the last."""
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
        """A header has begun and is not complete. Headers are short and written at once, so one that stays unfinished
        means that the sender does not speak this protocol."""
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
            body = bytes(view[: self._length])  # slicing the bytearray would make a second copy
        del self._buffer[: self._length]
        self._length = None
        return body

    def _header(self) -> int | BrokenStream | None:
        """Consumes the header and returns the length of the body; None while the header is incomplete."""
        end = self._buffer.find(b"\r\n\r\n", self._searched)
        header = bytes(self._buffer[: end if end >= 0 else MAX_HEADER + 1])
        if len(header) > MAX_HEADER:
            return BrokenStream(f"A message header is longer than {MAX_HEADER} bytes.")
        lines = header.split(b"\r\n")
        if end < 0:
            # Check each complete line at once: garbage must not wait for an end of the header that never comes.
            *lines, partial = lines
            if not _PARTIAL.match(partial):
                return BrokenStream(_not_a_header(partial))
            self._searched = max(0, len(self._buffer) - 3)
        length: int | None = None
        for line in lines:
            field = _FIELD.fullmatch(line)
            if field is None or b"\n" in line:
                return BrokenStream(_not_a_header(line))
            if field[1].lower() != b"content-length":
                continue
            value = field[2].strip(b" \t")
            if not _NUMBER.fullmatch(value):
                return BrokenStream(f"Content-Length is not a number: {_excerpt(value)}.")
            if length is not None and length != int(value):
                return BrokenStream("A message header has two different Content-Length fields.")
            length = int(value)
            if length > self._max_body:
                return BrokenStream(f"A message of {length} bytes exceeds the limit of {self._max_body} bytes.")
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


def _not_a_header(line: bytes) -> str:
    if b"\n" in line:
        return "Header lines must end with CR LF, but one ends with LF alone."
    return f"This is not a message header: {_excerpt(line)}."


def _excerpt(data: bytes) -> str:
    """The beginning of the data, for a message; never a whole body."""
    return repr(data[:40].decode("utf-8", "replace"))
