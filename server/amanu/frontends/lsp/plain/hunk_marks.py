"""Where the hunks of a session stand in the files as the editor has them."""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from lsprotocol import types

from amanu.frontends.lsp.document_text import breaks_for
from amanu.text.code_units import Encoding, units
from amanu.workspace.diff import compose
from amanu.workspace.text_file import split_lines
from amanu_protocol.items import Hunk, Proposal, ProposedFile
from amanu_protocol.state import SessionState


@dataclass(frozen=True)
class Mark:
    """A hunk that is open or applied, and the lines it is about."""

    session_id: str
    proposal: Proposal
    file: ProposedFile
    hunk: Hunk
    range: types.Range

    @property
    def path(self) -> Path:
        """Where the file is now."""
        moved = self.file.new_path if self.hunk.state == "applied" else None
        return Path(moved or self.file.path)

    @property
    def open(self) -> bool:
        return is_open(self.hunk)

    @property
    def unreviewed(self) -> bool:
        """A rule applied it, and it waits to be kept or undone."""
        return self.hunk.state == "applied" and not self.hunk.reviewed

    @property
    def seal(self) -> str:
        return seal(self.file, self.hunk)

    def meets(self, start: int, end: int) -> bool:
        """Whether it is about one of these lines, 0-based, inclusive."""
        return self.range.start.line <= end and start <= self.range.end.line


def is_open(hunk: Hunk) -> bool:
    return hunk.state in ("pending", "conflicted")


def seal(file: ProposedFile, hunk: Hunk) -> str:
    """What a user saw when they saw this hunk: a decision names it, and counts only while it is the same."""
    identity = "\0".join((file.path, file.change, file.new_path or "", hunk.old_text, hunk.new_text, hunk.state))
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def marks(state: SessionState, encoding: Encoding, client: str) -> list[Mark]:
    """All of a session, in order. Linear in the files that have one."""
    return [mark for proposal in state.proposals for mark in of_proposal(state, proposal, encoding, client)]


def of_proposal(state: SessionState, proposal: Proposal, encoding: Encoding, client: str) -> Iterator[Mark]:
    for file in proposal.files:
        hunks = [hunk for hunk in file.hunks if is_open(hunk) or hunk.state == "applied"]
        if hunks:
            ranges = _Ranges(file, encoding, client)
            for hunk in hunks:
                yield Mark(state.session_id, proposal, file, hunk, ranges.of(hunk))


class _Ranges:
    """Lines of hunks in the present text: the base with what is applied."""

    def __init__(self, file: ProposedFile, encoding: Encoding, client: str) -> None:
        self._encoding: Encoding = encoding
        base = split_lines(file.base_text or "")
        applied = [hunk for hunk in file.hunks if hunk.state == "applied"]
        self._text = compose(base, [(_first(hunk), hunk.old_lines, hunk.new_text) for hunk in applied])
        self._offsets = [0, *accumulate(map(len, split_lines(self._text)))]
        self._starts = [0, *(match.end() for match in breaks_for(client, self._text).finditer(self._text))]
        self._first: dict[str, tuple[int, int]] = {}
        moved = 0
        for hunk in file.hunks:
            lines = hunk.new_lines if hunk.state == "applied" else hunk.old_lines
            self._first[hunk.hunk_id] = (_first(hunk) + moved, lines)
            if hunk.state == "applied":
                moved += hunk.new_lines - hunk.old_lines

    def of(self, hunk: Hunk) -> types.Range:
        first, lines = self._first[hunk.hunk_id]
        if lines == 0:
            first, lines = max(0, first - 1), 1  # between two lines: the one before it
        start = self._offset(first)
        end = self._offset(first + lines)
        content = re.sub(r"(\r\n|\r|\n)\Z", "", self._text[start:end])
        # At the first word: where an editor leads its user to, there should be something to act on (Eglot).
        blank = len(content) - len(content.lstrip(" \t"))
        return types.Range(
            self._position(start + (blank if blank < len(content) else 0)), self._position(start + len(content))
        )

    def _offset(self, line: int) -> int:
        return self._offsets[min(line, len(self._offsets) - 1)]

    def _position(self, offset: int) -> types.Position:
        line = bisect_right(self._starts, offset) - 1
        return types.Position(line, units(self._text[self._starts[line] : offset], self._encoding))


def _first(hunk: Hunk) -> int:
    """The hunk's first old line, 0-based; a side with no lines names the line it comes after."""
    return hunk.old_start - 1 if hunk.old_lines else hunk.old_start


def counts(hunks: Sequence[Hunk]) -> str:
    """ "−1 +2": lines."""
    return f"−{sum(hunk.old_lines for hunk in hunks)} +{sum(hunk.new_lines for hunk in hunks)}"
