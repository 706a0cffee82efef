"""Output of a command: kept up to a limit, made readable for people and models, without secrets. Linear in the
output."""

import codecs
import re
from collections import deque
from collections.abc import Callable

from amanu.text.redaction import complete

_SHOWN = 256 * 1024  # bytes of the beginning and of the end that can be shown
_EDGE = 4096  # bytes at the end of what is kept that go when it was cut
_SNIFFED = 4096  # bytes looked at to tell binary output
_AT_ONCE = 64 * 1024  # characters made readable and masked in one go: some 10 ms, while everybody waits
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|[\x1b\x9b]\[?[0-?]{0,64}[ -/]{0,16}[@-~]"  # CSI and two-character sequences
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def readable(text: str) -> str:
    """Without escape sequences and control characters; of a line written over itself (progress bars), the last
    form."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" not in text:
        return text
    return "\n".join(_last_form(line) for line in text.split("\n"))


def _last_form(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")


Mask = Callable[[str], str]
"""Takes secrets out of a text."""


class CommandOutput:
    """Takes bytes as they come. What comes out of it is masked as a whole: a key that came in two pieces, too."""

    def __init__(self, keep: int, mask: Mask = str) -> None:
        self._keep = keep
        self._mask = mask
        self._kept = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.size = 0
        """Bytes that came, kept or not."""

    def add(self, data: bytes) -> None:
        room = self._keep - len(self._kept)
        self.size += len(data)
        if room > 0:
            self._kept += data[:room]
        if len(data) > room:
            self._tail.append(data[max(0, room) :])
            self._tail_size += len(self._tail[-1])
            while self._tail_size - len(self._tail[0]) >= _SHOWN:
                self._tail_size -= len(self._tail.popleft())

    def masked(self) -> bytes:
        """What the blob holds. Takes its time: for a thread."""
        data = bytes(self._kept)
        if self.size > self._keep:  # a key that is cut off here might not be known for one
            data = data[: data.rfind(b"\n", -_EDGE) + 1 or -_EDGE]
        text = self._mask(data.decode("utf-8", "surrogateescape"))
        return text.encode("utf-8", "surrogateescape")[: self._keep]

    @property
    def binary(self) -> bool:
        return b"\0" in self._kept[:_SNIFFED]

    def text(self, limit: int) -> tuple[str, bool]:
        """(readable text of at most about `limit` characters, whether something is missing). The first fifth and
        the end: errors mostly stand at the end."""
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
    """Turns the stream into readable pieces to show at once: whole lines, and of a line that is written over itself
    only what stands when it is time to show something."""

    def __init__(self, limit: int, mask: Mask = str) -> None:
        self._mask = mask
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._remaining = limit

    def add(self, data: bytes) -> None:
        if self._remaining > 0 and len(self._pending) < 2 * self._remaining:
            self._pending += self._decode.decode(data)

    def take(self, *, last: bool = False) -> str:
        """What can be shown now; "" if nothing. Of much, a part: the rest comes next time."""
        end = len(self._pending) if last else complete(self._pending[:_AT_ONCE]) or complete(self._pending)
        if self._remaining <= 0 or end == 0:
            return ""
        text, self._pending = self._mask(readable(self._pending[:end])), self._pending[end:]
        if len(text) > self._remaining:
            text = text[: self._remaining] + "\n[the output goes on; it is shown when the command has ended]\n"
            self._remaining = 0
            return text
        self._remaining -= len(text)
        return text
