"""What a background command has printed: its beginning and its end, addressed by the bytes it has printed in all."""

import re
from dataclasses import dataclass, replace

from amanu.text.display import one_line
from amanu.text.redaction import maskable_length
from amanu.tools.shell.output import Mask, readable
from amanu.workspace.diff import common_prefix_length

HEAD = 64 * 1024
TAIL = 960 * 1024
"""Bytes kept of the beginning and of the end, together one MiB."""
_SLACK = 128 * 1024  # bytes more than these before the end is cut again: each byte is moved a few times at most
_LAST = 4096  # bytes in which the last line is looked for
_LONGEST_LINE = 4096  # bytes on either side of a cut that may belong to a secret which it divides
_LONGEST_KEY = 40 * 1024  # the same before a cut in a private key, which has many lines
_LINE_START = re.compile(rb"[\r\n]")
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
    before: bytes = b""
    """What was printed right before it: a secret may begin there."""
    after: bytes = b""
    """What was printed right after it: a secret may end there."""


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
        bytes_left = HEAD - len(self._head)
        self._head += data[:bytes_left]
        self._tail += data[max(bytes_left, 0) :]
        if len(self._tail) > TAIL + _LONGEST_KEY + _SLACK:
            del self._tail[: -TAIL - _LONGEST_KEY]

    def piece(self, start: int, limit: int | None = None) -> Piece:
        """What is kept from that offset on, at most so many bytes; it never crosses a gap."""
        kept, kept_from, missing = self._head + self._tail, 0, 0
        shown_to = len(kept)
        tail_from = self.size - len(self._tail)
        if tail_from > HEAD:  # there is a gap: what is beside it is not shown, and tells only what to mask
            kept, shown_to = self._head, HEAD - _LONGEST_LINE
            if start >= shown_to:
                kept, kept_from, shown_to = self._tail, tail_from, len(self._tail)
                missing = max(0, kept_from + _LONGEST_KEY - start)
                start += missing
        at = start - kept_from
        data = bytes(kept[at : shown_to if limit is None else min(at + limit, shown_to)])
        end = at + len(data)
        before, after = kept[max(0, at - _LONGEST_KEY) : at], kept[end : end + _LONGEST_LINE]
        return Piece(data, kept_from + end, missing, bytes(before), bytes(after))

    def snapshot(self, start: int) -> Snapshot:
        """Everything from that offset on, as it is now."""
        first = self.piece(start)
        pieces = (first,) if first.end >= self.size else (first, self.piece(first.end))
        return Snapshot(pieces, self.size, self.line_start())

    def text(self, snapshot: Snapshot) -> str:
        """The output as readable text, gaps marked. Slow: call it in a thread."""
        return "".join(f"{_gap(piece.missing)}{self._readable(piece)}" for piece in snapshot.pieces)

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
            piece = replace(piece, data=piece.data[:length], end=piece.end - len(piece.data) + length, after=b"")
        return self._readable(piece), piece

    def line_start(self) -> int:
        """The offset at which the last line begins: as long as it grows, it is read again as a whole."""
        end = bytes(self._tail[-_LAST:] or self._head[-_LAST:])
        return self.size - (len(end) - (end.rfind(b"\n") + 1))

    @property
    def last_line(self) -> str:
        """The last line that says something, on one line."""
        end = self.piece(max(0, self.size - _LAST))
        lines = [line for line in self._readable(end).splitlines() if line.strip()]
        return one_line(lines[-1].strip()) if lines else ""

    def kept(self) -> bytes:
        """All that is kept, masked, for a blob."""
        return self.text(self.snapshot(0)).encode("utf-8", "surrogateescape")

    def _readable(self, piece: Piece) -> str:
        """Masked together with what is around it, and cut out afterwards: no part of a secret is left over."""
        before = piece.before if b"PRIVATE KEY" in piece.before else piece.before[-_LONGEST_LINE:]
        start = _LINE_START.search(before) if len(before) == _LONGEST_LINE else None
        before = before if start is None else before[start.end() :]
        # Made readable together as well: what comes later may overwrite the end of what was before.
        lead, whole, rest = (
            readable(data.decode("utf-8", "replace"), self._mask)
            for data in (before, before + piece.data + piece.after, piece.after)
        )
        begin = common_prefix_length(lead, whole)
        if begin < len(lead) and b"\r" in piece.data:  # the line that it continues, as it is now
            begin = whole.rfind("\n", 0, begin) + 1
        end = len(whole) - common_prefix_length(rest[::-1], whole[::-1])
        return whole[begin:end]


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
