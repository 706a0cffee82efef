"""A proposal as a patch file a user edits: what stays is accepted, with their "+" lines; what is gone is rejected.

The head names every change the file was made with and its seal (`change_marks.py`), so the file alone says what was
seen. Line counts after "@@" are for the eye; a hunk is read until its old lines are all there. A row is one line, which
stays or goes as a whole; the comments below it are only to be read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from amanu.frontends.lsp.plain.change_marks import is_open, row_seal, seal
from amanu.frontends.lsp.plain.review import shown_lines
from amanu.frontends.row_text import row_lines
from amanu.text.amounts import plural
from amanu.text.display import one_line
from amanu.workspace.hunks import base_places
from amanu.workspace.text_file import line_end, split_lines
from amanu_protocol.base import LineRange
from amanu_protocol.items import Hunk, Proposal, ProposedFile, Row
from amanu_protocol.requests import HunkDecision, RowDecision

CONTEXT = 3
APPLY = "Amanu: apply the reviewed patch"
_HEAD = re.compile(r"# review (?P<proposal>[\w.:-]{1,128})(?P<changes>(?: [\w.-]{1,64}:[0-9a-f]{12})*)\s*\Z")
_HUNK = re.compile(r"@@ [^@]*@@ (?P<id>[\w.-]{1,64}):(?P<seal>[0-9a-f]{12})(?:\s.*)?\Z")
_ROW_HEAD = "# row "
_ROW = re.compile(rf"{_ROW_HEAD}(?P<id>[\w.-]{{1,64}}):(?P<seal>[0-9a-f]{{12}})(?:\s.*)?\Z")
_DELETED = "The user deleted it from the patch."
_NO_END = "\\ No newline at end of file"
_OUTDATED = "This change was updated or already decided. Open the review again."
_UNKNOWN_ROW = 'Unknown change: "# row" and the word after it must stay as they were and appear only once.'


class PatchError(Exception):
    """The file is no patch any more, or does not fit. `line` is 0-based."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True)
class Decided:
    """A user's decisions about one proposal."""

    hunks: list[HunkDecision]
    rows: list[RowDecision]


@dataclass(frozen=True)
class _PatchHunk:
    """A hunk as the patch shows it: the lines before it, its own and those after."""

    file: ProposedFile
    hunk: Hunk
    place: LineRange
    """The place of its old lines in the base."""
    context_before: list[str]
    context_after: list[str]

    @property
    def old(self) -> list[str]:
        return shown_lines(self.hunk.old_text)

    @property
    def new(self) -> list[str]:
        return shown_lines(self.hunk.new_text)

    @property
    def faithful(self) -> bool:
        """Its lines are shown as they are, those that go too: a user may let them stay."""
        texts = (self.old, self.hunk.old_text), (self.new, self.hunk.new_text)
        return all(written == [line.rstrip("\r\n") for line in split_lines(text)] for written, text in texts)


def of_proposal(proposal: Proposal, root: Path) -> str:
    """The open hunks that fit, as a patch; then the open rows."""
    patch_hunks, rows = _patch_hunks(proposal), _patch_rows(proposal)
    files = len({entry.file.path for entry in patch_hunks.values()} | {row.path for row in rows.values()})
    seals = {hunk_id: seal(entry.file, entry.hunk) for hunk_id, entry in patch_hunks.items()}
    seals |= {row_id: row_seal(row) for row_id, row in rows.items()}
    names = "".join(f" {change_id}:{sealed}" for change_id, sealed in seals.items())
    out = [
        f"# Amanu proposes {plural(len(seals), 'change')} in {plural(files, 'file')}. Delete what you do not want,",
        f'# edit "+" lines as you like, then run the code action "{APPLY}".',
        "# What you delete is rejected, what remains is accepted.",
        *(['# A line that starts with "# row" is a change, too; it stays or goes as a whole.'] if rows else []),
        f"# review {proposal.proposal_id}{names}",
    ]
    path = None
    for hunk_id, entry in patch_hunks.items():
        if entry.file.path != path:
            path = entry.file.path
            out += _file_head(entry.file, root)
        out += _body(hunk_id, entry)
    for row in proposal.rows:
        out += _row_body(row, root, row.row_id in rows)
    return "".join(f"{line}\n" for line in out)


def proposal_of(text: str) -> str | None:
    """The id of the proposal a patch is about."""
    result = next((match for line in text.splitlines()[:10] if (match := _HEAD.match(line))), None)
    return None if result is None else result["proposal"]


def decisions(text: str, proposal: Proposal) -> Decided:
    """What a reviewed patch decides, in the order of the proposal. Raises `PatchError`; then nothing is decided."""
    lines = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
    head_at, answer = _head(lines, proposal)
    patch_hunks, rows = _patch_hunks(proposal), _patch_rows(proposal)
    found, row_places = _read_changes(lines, head_at + 1, answer, patch_hunks, rows)
    hunk_decisions = [
        found.get(hunk_id) or HunkDecision(hunk_id=hunk_id, decision="reject", reason=_DELETED)
        for hunk_id in answer
        if hunk_id in patch_hunks
    ]
    rejected = {hunk.hunk_id for hunk in hunk_decisions if hunk.decision == "reject"}
    rejected |= rows.keys() - row_places.keys()
    for row_id, place in row_places.items():
        if not rejected.isdisjoint(rows[row_id].needs):
            raise PatchError(place, "This change needs one that you reject. Delete this line, too, or keep both.")
    row_decisions = [
        RowDecision(row_id=row_id, decision="reject", reason=_DELETED)
        if row_id in rejected
        else RowDecision(row_id=row_id, decision="accept")
        for row_id in answer
        if row_id in rows
    ]
    return Decided(hunk_decisions, row_decisions)


def _read_changes(
    lines: list[str],
    index: int,
    answer: Mapping[str, str],
    patch_hunks: Mapping[str, _PatchHunk],
    rows: Mapping[str, Row],
) -> tuple[dict[str, HunkDecision], dict[str, int]]:
    """The changes from that line on, by id: the decisions on hunks, and the lines of the rows that remain."""
    found: dict[str, HunkDecision] = {}
    row_places: dict[str, int] = {}
    while index < len(lines):
        line = lines[index]
        if line.startswith(_ROW_HEAD):
            row_id = _read_row(line, index, answer, rows)
            if row_id in row_places:
                raise PatchError(index, _UNKNOWN_ROW)
            row_places[row_id] = index
            index += 1
        elif match := _HUNK.match(line):
            hunk_id = match["id"]
            if answer.get(hunk_id) != match["seal"] or hunk_id in found:
                raise PatchError(
                    index, 'Unknown change: the text after the second "@@" must stay as it was and appear only once.'
                )
            entry = patch_hunks.get(hunk_id)
            if entry is None or seal(entry.file, entry.hunk) != match["seal"]:
                raise PatchError(index, _OUTDATED)
            found[hunk_id], index = _read(lines, index, entry)
        elif _is_between(line):
            index += 1
        else:
            raise PatchError(
                index,
                'This line belongs to no change: lines of a change start with " ", "-" or "+" and follow its "@@".',
            )
    return found, row_places


def _head(lines: list[str], proposal: Proposal) -> tuple[int, Mapping[str, str]]:
    for index, line in enumerate(lines[:10]):
        if match := _HEAD.match(line):
            if match["proposal"] != proposal.proposal_id:
                raise PatchError(index, "This review belongs to another proposal.")
            return index, dict(pair.split(":") for pair in match["changes"].split())
    raise PatchError(0, 'The line "# review …" is missing: it records what was shown. Open the review again.')


def _read_row(line: str, index: int, answer: Mapping[str, str], rows: Mapping[str, Row]) -> str:
    """The id of the row that this line is about."""
    match = _ROW.match(line)
    if match is None or answer.get(match["id"]) != match["seal"]:
        raise PatchError(index, _UNKNOWN_ROW)
    row = rows.get(match["id"])
    if row is None or row_seal(row) != match["seal"]:
        raise PatchError(index, _OUTDATED)
    return match["id"]


def _read(lines: list[str], head: int, patch_hunk: _PatchHunk) -> tuple[HunkDecision, int]:
    """One hunk from its "@@" line on: the decision, and the line after it."""
    old_lines = [*patch_hunk.context_before, *patch_hunk.old, *patch_hunk.context_after]
    first, last = len(patch_hunk.context_before), len(old_lines) - len(patch_hunk.context_after)
    new_lines: list[str] = []
    consumed, index, ended = 0, head + 1, True
    while index < len(lines):
        line = lines[index]
        mark, body = (line[0], line[1:]) if line else (" ", "")
        if mark == "\\":
            ended = ended and not lines[index - 1].startswith("+")
        elif mark == "+":
            if not first <= consumed <= last:
                raise PatchError(index, '"+" lines must be inside the change, not among the lines around it.')
            new_lines.append(body)
        elif consumed == len(old_lines):
            break
        elif mark not in " -" or old_lines[consumed].rstrip() != body.rstrip():
            raise PatchError(
                index, 'Only "+" lines can be changed; this line of the file is missing or different here.'
            )
        elif first <= consumed < last:
            if mark == " ":
                new_lines.append(old_lines[consumed])
            consumed += 1
        elif mark == "-":
            raise PatchError(index, "This line is not part of the change, so it cannot be removed here.")
        else:
            consumed += 1
        index += 1
    if consumed < len(old_lines):
        raise PatchError(
            head, f'Lines of the file are missing from this change; it has {len(old_lines)} " " and "-" lines.'
        )
    return _decision(patch_hunk, new_lines, ended, head), index


def _decision(patch_hunk: _PatchHunk, new_lines: list[str], ended: bool, head: int) -> HunkDecision:
    hunk = patch_hunk.hunk
    if new_lines == patch_hunk.new:
        return HunkDecision(hunk_id=hunk.hunk_id, decision="accept")
    if new_lines == patch_hunk.old:
        return HunkDecision(hunk_id=hunk.hunk_id, decision="reject", reason="The user changed it back.")
    if not patch_hunk.faithful:
        raise PatchError(
            head, "This change contains hidden characters, shown as <U+…>; accept it unchanged, or delete it."
        )
    end = line_end(patch_hunk.file.base_text or "") or "\n"
    text = "".join(f"{line}{end}" for line in new_lines)
    return HunkDecision(
        hunk_id=hunk.hunk_id, decision="accept", new_text=text if ended or not text else text[: -len(end)]
    )


def _patch_rows(proposal: Proposal) -> dict[str, Row]:
    """Row id → row, of those that a patch decides."""
    return {row.row_id: row for row in proposal.rows if row.state == "pending" and not row.undecidable}


def _patch_hunks(proposal: Proposal) -> dict[str, _PatchHunk]:
    """By hunk id: the open ones. Context never reaches into another open hunk."""
    result: dict[str, _PatchHunk] = {}
    for file in proposal.files:
        base = shown_lines(file.base_text or "")
        placed = zip(file.hunks, base_places(file.hunks), strict=True)
        hunks = [(hunk, place) for hunk, place in placed if hunk.state == "pending"]
        for number, (hunk, place) in enumerate(hunks):
            low = hunks[number - 1][1].end if number else 0
            high = hunks[number + 1][1].start if number + 1 < len(hunks) else len(base)
            before = base[max(low, place.start - CONTEXT) : place.start]
            after = base[place.end : min(high, place.end + CONTEXT)]
            result[hunk.hunk_id] = _PatchHunk(file, hunk, place, before, after)
    return result


def _file_head(file: ProposedFile, root: Path) -> Iterator[str]:
    path, new_path = _name(file.path, root), _name(file.new_path or file.path, root)
    if file.change == "rename":
        yield f"rename from {path}"
        yield f"rename to {new_path}"
    yield "--- /dev/null" if file.change == "create" else f"--- a/{path}"
    yield "+++ /dev/null" if file.change == "delete" else f"+++ b/{new_path}"


def _body(hunk_id: str, patch_hunk: _PatchHunk) -> Iterator[str]:
    hunk = patch_hunk.hunk
    before = len(patch_hunk.context_before)
    around = before + len(patch_hunk.context_after)
    why = f" {one_line(hunk.explanation)}" if hunk.explanation else ""
    start, new_start = patch_hunk.place.first - before, hunk.proposed_lines.first - before
    spans = f"-{start},{around + patch_hunk.place.count} +{new_start},{around + hunk.proposed_lines.count}"
    yield f"@@ {spans} @@ {hunk_id}:{seal(patch_hunk.file, hunk)}{why}"
    yield from (f" {line}" for line in patch_hunk.context_before)
    for mark, lines, text in (("-", patch_hunk.old, hunk.old_text), ("+", patch_hunk.new, hunk.new_text)):
        yield from (f"{mark}{line}" for line in lines)
        if lines and not text.endswith(("\n", "\r")):
            yield _NO_END
    yield from (f" {line}" for line in patch_hunk.context_after)


def _row_body(row: Row, root: Path, decided_here: bool) -> Iterator[str]:
    if not is_open(row):
        return
    first, *further = row_lines(row, [str(root)])
    needs = f" (accepted with {plural(len(row.needs), 'change')} it needs)" if row.needs else ""
    head = f"{_ROW_HEAD}{row.row_id}:{row_seal(row)}" if decided_here else "# not decided here:"
    yield f"{head} {first}{needs if decided_here else ''}"
    yield from (f"# {line}" for line in further)


def _is_between(line: str) -> bool:
    """What may stand between two hunks."""
    return not line.strip() or line.startswith(("#", "--- ", "+++ ", "rename ", "\\"))


def _name(path: str, root: Path) -> str:
    absolute = Path(path)
    return one_line(absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else path)


def has_open(proposal: Proposal) -> bool:
    """Whether something in it can be accepted or rejected."""
    hunks = [hunk for file in proposal.files for hunk in file.hunks]
    return any(map(is_open, hunks)) or any(is_open(row) and not row.undecidable for row in proposal.rows)
