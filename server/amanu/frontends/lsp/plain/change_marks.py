"""A session's changes and their places in files as the editor has them: hunks at their lines, rows at line one."""

import hashlib
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from lsprotocol import types

from amanu.frontends.lsp.document_text import breaks_for
from amanu.text.amounts import plural
from amanu.text.code_units import Encoding, units
from amanu.text.display import one_line
from amanu.workspace.hunks import line_counts, text_with
from amanu.workspace.text_file import split_lines
from amanu_protocol.items import PRESENT_STATES, Hunk, Proposal, ProposedFile, Row
from amanu_protocol.state import SessionState


@dataclass(frozen=True)
class _Mark(ABC):
    """A change that is open or applied, and the lines it is about."""

    session_id: str
    proposal: Proposal
    range: types.Range

    @property
    @abstractmethod
    def change(self) -> Hunk | Row: ...

    @property
    @abstractmethod
    def change_id(self) -> str: ...

    @property
    @abstractmethod
    def path(self) -> Path:
        """The present path of its file."""

    @property
    @abstractmethod
    def amount(self) -> str:
        """The change in a few words, to go after "this change"."""

    @property
    @abstractmethod
    def seal(self) -> str:
        """A hash of what a user saw of it."""

    @property
    def name(self) -> str:
        """The name of its file or repository, for the user."""
        return one_line(self.path.name)

    @property
    def in_document(self) -> bool:
        """Whether an editor may have a document at its path."""
        return True

    @property
    def decidable(self) -> bool:
        return True

    @property
    def waits(self) -> bool:
        """It is not decided, or was applied by a rule and is not reviewed."""
        return is_open(self.change) or (self.change.state == "applied" and not self.change.reviewed)

    @property
    def open(self) -> bool:
        """It waits to be accepted or rejected."""
        return self.decidable and is_open(self.change)

    @property
    def conflicted(self) -> bool:
        return self.change.state == "conflicted"

    @property
    def unreviewed(self) -> bool:
        """A rule applied it, and it waits to be kept or undone."""
        return self.decidable and self.change.state == "applied" and not self.change.reviewed

    @property
    def kept(self) -> bool:
        """It is applied and reviewed, and can be undone."""
        return self.decidable and self.change.state == "applied" and self.change.reviewed

    def meets(self, start: int, end: int) -> bool:
        """Whether it is about one of these lines, 0-based, inclusive."""
        return self.range.start.line <= end and start <= self.range.end.line


@dataclass(frozen=True)
class HunkMark(_Mark):
    """A hunk, and the lines it is about."""

    file: ProposedFile
    hunk: Hunk

    @property
    def change(self) -> Hunk:
        return self.hunk

    @property
    def change_id(self) -> str:
        return self.hunk.hunk_id

    @property
    def path(self) -> Path:
        moved = self.file.new_path if self.hunk.state == "applied" else None
        return Path(moved or self.file.path)

    @property
    def amount(self) -> str:
        """The lines removed and added: "−1 +2"."""
        return _counts([self.hunk])

    @property
    def seal(self) -> str:
        return seal(self.file, self.hunk)


@dataclass(frozen=True)
class RowMark(_Mark):
    """A row, at the first line of its file."""

    row: Row

    @property
    def change(self) -> Row:
        return self.row

    @property
    def change_id(self) -> str:
        return self.row.row_id

    @property
    def path(self) -> Path:
        moved = self.row.new_path if self.row.state == "applied" else None
        return Path(moved or self.row.path)

    @property
    def amount(self) -> str:
        """The title: "(binary file, 4,096 bytes)"."""
        return f"({one_line(self.row.title)})"

    @property
    def seal(self) -> str:
        return row_seal(self.row)

    @property
    def name(self) -> str:
        return "the git repository" if self.row.kind == "git" else super().name

    @property
    def in_document(self) -> bool:
        sides = (self.row.before, self.row.after)
        return self.row.kind not in ("git", "folder") and all(side is None or side.kind != "folder" for side in sides)

    @property
    def decidable(self) -> bool:
        return not self.row.undecidable


Mark = HunkMark | RowMark


def is_open(change: Hunk | Row) -> bool:
    return change.state in ("pending", "conflicted")


def seal(file: ProposedFile, hunk: Hunk) -> str:
    """A hash of what a user saw of this hunk: a decision names it, and counts only while it is the same."""
    identity = "\0".join((file.path, file.change, file.new_path or "", hunk.old_text, hunk.new_text, hunk.state))
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def row_seal(row: Row) -> str:
    """The same for a row. Its digest is not enough: it leaves out title and state and, except for `git`, the lines."""
    lines = (line.text for line in row.lines)
    identity = "\0".join((row.digest, row.state, row.title, row.undecidable, *lines))
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def seals(proposal: Proposal) -> dict[str, str]:
    """The seals of all hunks and rows, by id."""
    hunks = {hunk.hunk_id: seal(file, hunk) for file in proposal.files for hunk in file.hunks}
    return hunks | {row.row_id: row_seal(row) for row in proposal.rows}


def marks(state: SessionState, encoding: Encoding, client: str) -> list[Mark]:
    """All marks of a session, in order. The time it takes grows with the files that have one."""
    return [mark for proposal in state.proposals for mark in of_proposal(state, proposal, encoding, client)]


def of_proposal(state: SessionState, proposal: Proposal, encoding: Encoding, client: str) -> Iterator[Mark]:
    for file in proposal.files:
        hunks = [hunk for hunk in file.hunks if is_open(hunk) or hunk.state == "applied"]
        if hunks:
            ranges = _Ranges(file, encoding, client)
            for hunk in hunks:
                yield HunkMark(state.session_id, proposal, ranges.of(hunk), file, hunk)
    for row in proposal.rows:
        if is_open(row) or row.state == "applied":
            yield RowMark(state.session_id, proposal, _FIRST_LINE, row)


_FIRST_LINE = types.Range(types.Position(0, 0), types.Position(0, 0))


class _Ranges:
    """Lines of hunks in the present text: the base with the hunks that are in the file."""

    def __init__(self, file: ProposedFile, encoding: Encoding, client: str) -> None:
        self._encoding: Encoding = encoding
        self._text = text_with(file, lambda hunk: hunk.state in PRESENT_STATES)
        self._offsets = [0, *accumulate(map(len, split_lines(self._text)))]
        self._starts = [0, *(match.end() for match in breaks_for(client, self._text).finditer(self._text))]

    def of(self, hunk: Hunk) -> types.Range:
        first, end_line = hunk.lines.start, hunk.lines.end
        if first == end_line:  # between two lines: the one before it
            first, end_line = max(0, first - 1), max(1, first)
        start = self._offset(first)
        end = self._offset(end_line)
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


def amount(marks: Iterable[Mark]) -> str:
    """The amount of several changes, after a space: the lines of their hunks; "" if all are rows."""
    hunks = [mark.hunk for mark in marks if isinstance(mark, HunkMark)]
    return f" {_counts(hunks)}" if hunks else ""


def needed(marks: Iterable[Mark]) -> str:
    """The words that go after "accept …": " with 2 changes it needs"; "" if nothing else is accepted with it."""
    marks = list(marks)
    others = {needed_id for mark in marks if isinstance(mark, RowMark) for needed_id in mark.row.needs}
    others -= {mark.change_id for mark in marks}
    return f" with {plural(len(others), 'change')} {'it needs' if len(marks) == 1 else 'they need'}" if others else ""


def _counts(hunks: Iterable[Hunk]) -> str:
    added, removed = line_counts(list(hunks))
    return f"−{removed} +{added}"
