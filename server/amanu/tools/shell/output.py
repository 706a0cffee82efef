"""The output of a command: stored up to a limit, made readable for users and models, with secrets masked. The work is
linear in the output."""

import codecs
import re
from collections import deque
from collections.abc import Callable

from amanu.text.redaction import maskable_length
from amanu.tools.shell.terminal_lines import TerminalLines
from amanu.workspace.encodings import readable_lines

_SHOWN = 256 * 1024  # bytes of the beginning and of the end that can be shown
_EDGE = 4096  # bytes dropped at the end of stored output that was cut
_SNIFFED = 4096  # bytes checked to recognize binary output, without those of runs of NULs
_AT_ONCE = 64 * 1024  # characters made readable and masked at once: about 10 ms of the event loop
TO_LOOK_AT_BINARY = "To look at it, pipe it into `od -c | head`, `strings` or `file -`."
_NULS = re.compile(rb"\0+")
_OVERWRITES = re.compile(r"\r(?!\n)|[\b\x9b]|\x1b\[[0-9]*[A-Z]")
_TEXT_CONTROLS = frozenset("\a\b\t\n\f\r\x1b")

Mask = Callable[[str], str]
"""Masks the secrets in a text."""


def readable(text: str, mask: Mask = str) -> str:
    """The text without escape sequences and control characters, as a terminal would show its lines (`TerminalLines`);
    without secrets, also where the beginning of one was overwritten."""
    lines = TerminalLines()
    return mask(lines.add(_masked_before(text, mask)) + lines.finish())


def _masked_before(text: str, mask: Mask) -> str:
    """Masked if something in it may be overwritten: of what is left of a secret then, nothing says that it is one."""
    return mask(text) if _OVERWRITES.search(text) else text


def is_binary(data: bytes) -> bool:
    """Whether more than a third of its beginning is neither text nor a NUL after text. Control characters must be among
    it: text in another encoding has none."""
    text = _NULS.sub(b"\0", data)[:_SNIFFED].decode("utf-8", "replace")
    controls = sum(each < " " and each not in _TEXT_CONTROLS for each in text)
    separators = len(re.findall(r"(?<=[^\0-\x08])\0", text))
    odd = controls - separators + text.count("\ufffd")
    return controls > separators and 3 * odd > len(text) - separators


class CommandOutput:
    """Collects bytes as they come. Secrets are masked in the whole text, so that a key that came in two pieces is
    masked, too."""

    def __init__(self, keep: int, mask: Mask = str) -> None:
        self._keep = keep
        self._mask = mask
        self._kept = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._sniffed = bytearray()
        self._is_binary: bool | None = None
        self.size = 0
        """Bytes received, stored or not."""

    def add(self, data: bytes) -> None:
        bytes_left = self._keep - len(self._kept)
        self.size += len(data)
        if len(self._sniffed) < _SNIFFED:
            self._sniffed += _NULS.sub(b"\0", data)[: _SNIFFED - len(self._sniffed)]
            self._is_binary = None
        if bytes_left > 0:
            self._kept += data[:bytes_left]
        if len(data) > bytes_left:
            self._tail.append(data[max(0, bytes_left) :])
            self._tail_size += len(self._tail[-1])
            while self._tail_size - len(self._tail[0]) >= _SHOWN:
                self._tail_size -= len(self._tail.popleft())

    def received(self) -> bytes:
        """All that is kept."""
        return bytes(self._kept) + b"".join(self._tail)

    def masked(self) -> bytes:
        """The content for the blob. Slow: call it in a thread."""
        text = self._mask(self._kept.decode("utf-8", "surrogateescape"))
        data = text.encode("utf-8", "surrogateescape")
        if self.size > self._keep:  # a key cut in half here is not recognized
            data = data[: data.rfind(b"\n", -_EDGE) + 1 or -_EDGE]
        return data[: self._keep]

    @property
    def is_stored_whole(self) -> bool:
        return self.size <= self._keep

    @property
    def binary(self) -> bool:
        """Whether it is mostly no text. A few NULs and control characters do not hide words."""
        if self._is_binary is None:
            self._is_binary = is_binary(bytes(self._sniffed))
        return self._is_binary

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
        return readable(readable_lines(data), self._mask)


def _ends(head: str, tail: str, limit: int, size: int) -> str:
    first, last = limit // 5, limit - limit // 5
    missing = f"\n\n[… {size - limit:,} of {size:,} characters left out …]\n\n"
    return head[:first] + missing + tail[-last:]


class LiveOutput:
    """Turns the stream into readable pieces to show at once: whole lines, each in its last form. Shows `limit`
    characters at most."""

    def __init__(self, limit: int, mask: Mask = str) -> None:
        self._mask = mask
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines = TerminalLines()
        self._unmasked = ""
        self._pending = ""
        self._remaining = limit

    def add(self, data: bytes) -> None:
        if self._remaining > 0 and len(self._pending) < 2 * self._remaining:
            self._unmasked += self._decode.decode(data)
            end = max(self._unmasked.rfind("\n"), self._unmasked.rfind("\r")) + 1
            self._read(end or len(self._unmasked) * (len(self._unmasked) > _AT_ONCE))

    def _read(self, length: int) -> None:
        text, self._unmasked = self._unmasked[:length], self._unmasked[length:]
        self._pending += self._lines.add(_masked_before(text, self._mask))

    def take(self, *, last: bool = False) -> str:
        """What can be shown now, "" if nothing. A long text comes in several pieces. `last`: the output is complete."""
        if last:
            self._read(len(self._unmasked))
            self._pending += self._lines.finish()
        end = (
            len(self._pending) if last else maskable_length(self._pending[:_AT_ONCE]) or maskable_length(self._pending)
        )
        if self._remaining <= 0 or end == 0:
            return ""
        text, self._pending = self._mask(self._pending[:end]), self._pending[end:]
        if len(text) > self._remaining:
            text = text[: self._remaining] + "\n[more output follows; it is shown when the command has ended]\n"
            self._remaining = 0
            return text
        self._remaining -= len(text)
        return text
