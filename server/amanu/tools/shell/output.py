"""The output of a command: stored up to a limit, made readable for users and models, with secrets masked. The work is
linear in the output."""

import codecs
import re
from collections import deque
from collections.abc import Callable

from amanu.text.redaction import maskable_length

_SHOWN = 256 * 1024  # bytes of the beginning and of the end that can be shown
_EDGE = 4096  # bytes dropped at the end of stored output that was cut
_SNIFFED = 4096  # bytes checked to recognize binary output
_AT_ONCE = 64 * 1024  # characters made readable and masked at once: about 10 ms of the event loop
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|[\x1b\x9b]\[?[0-?]{0,64}[ -/]{0,16}[@-~]"  # CSI and two-character sequences
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def readable(text: str) -> str:
    """The text without escape sequences and control characters; of a line that overwrites itself (a progress bar), only
    its last form."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" not in text:
        return text
    return "\n".join(_last_form(line) for line in text.split("\n"))


def _last_form(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")


Mask = Callable[[str], str]
"""Masks the secrets in a text."""


class CommandOutput:
    """Collects bytes as they come. Secrets are masked in the whole text, so that a key that came in two pieces is
    masked, too."""

    def __init__(self, keep: int, mask: Mask = str) -> None:
        self._keep = keep
        self._mask = mask
        self._kept = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.size = 0
        """Bytes received, stored or not."""

    def add(self, data: bytes) -> None:
        bytes_left = self._keep - len(self._kept)
        self.size += len(data)
        if bytes_left > 0:
            self._kept += data[:bytes_left]
        if len(data) > bytes_left:
            self._tail.append(data[max(0, bytes_left) :])
            self._tail_size += len(self._tail[-1])
            while self._tail_size - len(self._tail[0]) >= _SHOWN:
                self._tail_size -= len(self._tail.popleft())

    def masked(self) -> bytes:
        """The content for the blob. Slow: call it in a thread."""
        text = self._mask(self._kept.decode("utf-8", "surrogateescape"))
        data = text.encode("utf-8", "surrogateescape")
        if self.size > self._keep:  # a key cut in half here is not recognized
            data = data[: data.rfind(b"\n", -_EDGE) + 1 or -_EDGE]
        return data[: self._keep]

    @property
    def binary(self) -> bool:
        return b"\0" in self._kept[:_SNIFFED]

    def text(self, limit: int) -> tuple[str, bool]:
        """(readable text of about `limit` characters at most, whether something is missing). Of a longer text the first
        fifth of the limit and the end: errors are mostly at the end."""
        if self.size <= 2 * _SHOWN:
            whole = self._readable(bytes(self._kept) + b"".join(self._tail))
            if len(whole) <= limit:
                return whole, False
            return _ends(whole, whole, limit, len(whole)), True
        head = self._readable(bytes(self._kept[:_SHOWN]))
        return _ends(head, self._readable(self._end()), limit, self.size), True

    def tail(self, limit: int) -> tuple[str, bool]:
        """(the last `limit` characters, whether something is missing)."""
        end = self._readable(self._end())
        return end[-limit:], len(end) > limit or self.size > _SHOWN

    def _end(self) -> bytes:
        return (bytes(self._kept[-_SHOWN:]) + b"".join(self._tail))[-_SHOWN:]

    def _readable(self, data: bytes) -> str:
        return self._mask(readable(data.decode("utf-8", "replace")))


def _ends(head: str, tail: str, limit: int, size: int) -> str:
    first, last = limit // 5, limit - limit // 5
    missing = f"\n\n[… {size - limit:,} of {size:,} characters left out …]\n\n"
    return head[:first] + missing + tail[-last:]


class LiveOutput:
    """Turns the stream into readable pieces to show at once: whole lines, and of a line that overwrites itself only
    what it says at that moment. Shows `limit` characters at most."""

    def __init__(self, limit: int, mask: Mask = str) -> None:
        self._mask = mask
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._remaining = limit

    def add(self, data: bytes) -> None:
        if self._remaining > 0 and len(self._pending) < 2 * self._remaining:
            self._pending += self._decode.decode(data)

    def take(self, *, last: bool = False) -> str:
        """What can be shown now, "" if nothing. A long text comes in several pieces. `last`: the output is complete."""
        end = (
            len(self._pending) if last else maskable_length(self._pending[:_AT_ONCE]) or maskable_length(self._pending)
        )
        if self._remaining <= 0 or end == 0:
            return ""
        text, self._pending = self._mask(readable(self._pending[:end])), self._pending[end:]
        if len(text) > self._remaining:
            text = text[: self._remaining] + "\n[more output follows; it is shown when the command has ended]\n"
            self._remaining = 0
            return text
        self._remaining -= len(text)
        return text
