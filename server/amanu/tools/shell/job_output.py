"""What a background command has printed: its beginning and its end, addressed by the bytes it has printed in all."""

import re
from dataclasses import dataclass

from amanu.text.display import one_line
from amanu.text.redaction import maskable_length
from amanu.tools.shell.output import Mask, readable

HEAD = 64 * 1024
TAIL = 960 * 1024
"""Bytes kept of the beginning and of the end, together one MiB."""
_SLACK = 128 * 1024  # bytes beyond `TAIL` before the end is cut again: each byte is moved a few times at most
_LAST = 4096  # bytes in which the last line is looked for
_NOT_FOR_TERMINALS = re.compile(
    r"\x1b\](?:[^\x07\x1b]{0,4096}(?:\x07|\x1b\\))?|\x1b[PX^_](?:[^\x1b]{0,4096}\x1b\\)?|[\x90\x98\x9b\x9d-\x9f]"
)
"""Sequences that do more than draw: titles, links, the clipboard, answers of the terminal."""
_WITHIN_ESCAPE = re.compile(r"\x1b[\x00-\x17\x19\x1b-\x1f\x7f-\x9f]+")
"""What does not end an escape: with it between, or when it is taken out, the rest could become another sequence."""
_UNFINISHED = re.compile(
    rb"\x1b(?:\][^\x07\x1b]{0,4096}\x1b?|[PX^_][^\x1b]{0,4096}\x1b?|\[[0-?]{0,64}[ -/]{0,16}|[ -/]{0,16})\Z"
)
"""The beginning of a sequence whose end has not come yet."""


@dataclass(frozen=True)
class Piece:
    """A part of the output."""

    data: bytes
    end: int
    """The offset after it."""
    missing: int
    """Bytes before it that were asked for and are no longer kept."""


@dataclass(frozen=True)
class Snapshot:
    """The output at one moment."""

    pieces: tuple[Piece, ...]
    size: int
    line_start: int
    """See `JobOutput.line_start`."""


class JobOutput:
    """Collects the output of one command, bounded. `mask` hides secrets in what is shown."""

    def __init__(self, mask: Mask = str) -> None:
        self._mask = mask
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0
        """Bytes received, kept or not."""

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > TAIL + _SLACK:
            del self._tail[:-TAIL]

    def piece(self, start: int, limit: int | None = None) -> Piece:
        """What is kept from that offset on, at most so many bytes; it never crosses a gap."""
        tail_start = self.size - len(self._tail)
        missing = 0
        if start < len(self._head):
            data = self._head[start:] + (self._tail if tail_start == len(self._head) else b"")
        else:
            missing = max(0, tail_start - start)
            start = max(start, tail_start)
            data = self._tail[start - tail_start :]
        data = bytes(data if limit is None else data[:limit])
        return Piece(data, start + len(data), missing)

    def snapshot(self, start: int) -> Snapshot:
        """Everything from that offset on, as it is now."""
        first = self.piece(start)
        pieces = (first,) if first.end >= self.size else (first, self.piece(first.end))
        return Snapshot(pieces, self.size, self.line_start())

    def text(self, snapshot: Snapshot) -> str:
        """The output as readable text, gaps marked. Slow: call it in a thread."""
        return "".join(f"{_gap(piece.missing)}{self._readable(piece.data)}" for piece in snapshot.pieces)

    def terminal_text(self, start: int, limit: int, *, ended: bool) -> tuple[str, Piece]:
        """(The next piece for a terminal, with colours and cursor movements; where it ends.)"""
        piece = self.piece(start, limit)
        whole, end = _UNFINISHED.sub(b"", piece.data), piece.end
        # A sequence or character whose other half comes next waits for it; else it has no other half.
        if not (ended if end >= self.size else self.piece(end, 1).missing):
            whole = _whole_characters(whole)
            end -= len(piece.data) - len(whole)
        text = _WITHIN_ESCAPE.sub("\x1b", whole.decode("utf-8", "replace"))
        text = _NOT_FOR_TERMINALS.sub("", text).removesuffix("\x1b")
        return self._mask(text), Piece(whole, end, piece.missing)

    def readable_piece(self, start: int, limit: int) -> tuple[str, Piece]:
        """(The next piece as plain text, where it ends.) It ends between lines if it can, so that no secret is cut."""
        piece = self.piece(start, limit)
        if piece.end < self.size and (length := maskable_length(piece.data.decode("latin-1"))):
            piece = Piece(piece.data[:length], piece.end - len(piece.data) + length, piece.missing)
        return self._readable(piece.data), piece

    def line_start(self) -> int:
        """The offset at which the last line begins: as long as it grows, it is read again as a whole."""
        end = bytes(self._tail[-_LAST:] or self._head[-_LAST:])
        return self.size - (len(end) - (end.rfind(b"\n") + 1))

    @property
    def last_line(self) -> str:
        """The last line that says something, on one line."""
        end = bytes(self._tail[-_LAST:] or self._head[-_LAST:])
        lines = [line for line in self._readable(end).splitlines() if line.strip()]
        return one_line(lines[-1].strip()) if lines else ""

    def kept(self) -> bytes:
        """All that is kept, masked, for a blob."""
        return self.text(self.snapshot(0)).encode("utf-8", "surrogateescape")

    def _readable(self, data: bytes) -> str:
        return self._mask(readable(data.decode("utf-8", "replace")))


def _gap(missing: int) -> str:
    return f"\n[… {missing:,} bytes left out …]\n" if missing else ""


def _whole_characters(data: bytes) -> bytes:
    """Without a character at the end whose last bytes have not come yet."""
    for length in range(1, min(3, len(data)) + 1):
        byte = data[-length]
        if byte & 0xC0 == 0x80:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return data[:-length] if needed > length else data
    return data
