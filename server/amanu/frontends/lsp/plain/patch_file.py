"""A proposal as a patch file a user edits: what stays is accepted, with their "+" lines; what is gone is rejected.

The head names every hunk the file was made with and its seal (`hunk_marks.py`), so the file alone says what was seen.
Line counts after "@@" are for the eye; a hunk is read until its old lines are all there.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from amanu.frontends.lsp.plain.hunk_marks import is_open, seal
from amanu.frontends.lsp.plain.review import shown_lines
from amanu.text.display import one_line
from amanu.workspace.text_file import line_end, split_lines
from amanu_protocol.items import Hunk, Proposal, ProposedFile
from amanu_protocol.requests import HunkDecision

CONTEXT = 3
APPLY = "Amanu: apply the reviewed patch"
_HEAD = re.compile(r"# review (?P<proposal>[\w.:-]{1,128})(?P<hunks>(?: [\w.-]{1,64}:[0-9a-f]{12})*)\s*\Z")
_HUNK = re.compile(r"@@ [^@]*@@ (?P<id>[\w.-]{1,64}):(?P<seal>[0-9a-f]{12})(?:\s.*)?\Z")
_NO_END = "\\ No newline at end of file"


class PatchError(Exception):
    """The file is no patch any more, or does not fit. `line` is 0-based."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True)
class _PatchHunk:
    """A hunk as the patch shows it: the lines before it, its own and those after."""

    file: ProposedFile
    hunk: Hunk
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
    """The open hunks that fit, as a patch."""
    patch_hunks = _patch_hunks(proposal)
    files = len({entry.file.path for entry in patch_hunks.values()})
    names = "".join(f" {hunk_id}:{seal(entry.file, entry.hunk)}" for hunk_id, entry in patch_hunks.items())
    out = [
        f"# Amanu proposes {_count(len(patch_hunks), 'change')} in {_count(files, 'file')}. "
        "Delete what you do not want,",
        f'# edit "+" lines as you like, then run the code action "{APPLY}".',
        "# What you delete is rejected, what remains is accepted.",
        f"# review {proposal.proposal_id}{names}",
    ]
    path = None
    for hunk_id, entry in patch_hunks.items():
        if entry.file.path != path:
            path = entry.file.path
            out += _file_head(entry.file, root)
        out += _body(hunk_id, entry)
    return "".join(f"{line}\n" for line in out)


def proposal_of(text: str) -> str | None:
    """The id of the proposal a patch is about."""
    result = next((match for line in text.splitlines()[:10] if (match := _HEAD.match(line))), None)
    return None if result is None else result["proposal"]


def decisions(text: str, proposal: Proposal) -> list[HunkDecision]:
    """What a reviewed patch decides, in the order of the proposal. Raises `PatchError`; then nothing is decided."""
    lines = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
    head_at, answer = _head(lines, proposal)
    patch_hunks = _patch_hunks(proposal)
    decisions_by_id: dict[str, HunkDecision] = {}
    index = head_at + 1
    while index < len(lines):
        match = _HUNK.match(lines[index])
        if match is None:
            if not _is_between(lines[index]):
                raise PatchError(
                    index,
                    'This line belongs to no change: lines of a change start with " ", "-" or "+" and follow its "@@".',
                )
            index += 1
            continue
        hunk_id = match["id"]
        if answer.get(hunk_id) != match["seal"] or hunk_id in decisions_by_id:
            raise PatchError(
                index, 'Unknown change: the text after the second "@@" must stay as it was and appear only once.'
            )
        entry = patch_hunks.get(hunk_id)
        if entry is None or seal(entry.file, entry.hunk) != match["seal"]:
            raise PatchError(index, "This change was updated or already decided. Open the review again.")
        decisions_by_id[hunk_id], index = _read(lines, index, entry)
    return [
        decisions_by_id.get(hunk_id) or _rejected(hunk_id)
        for hunk_id in answer
        if hunk_id in decisions_by_id or hunk_id in patch_hunks
    ]


def _head(lines: list[str], proposal: Proposal) -> tuple[int, Mapping[str, str]]:
    for index, line in enumerate(lines[:10]):
        if match := _HEAD.match(line):
            if match["proposal"] != proposal.proposal_id:
                raise PatchError(index, "This review belongs to another proposal.")
            return index, dict(pair.split(":") for pair in match["hunks"].split())
    raise PatchError(0, 'The line "# review …" is missing: it records what was shown. Open the review again.')


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


def _rejected(hunk_id: str) -> HunkDecision:
    return HunkDecision(hunk_id=hunk_id, decision="reject", reason="The user deleted it from the patch.")


def _patch_hunks(proposal: Proposal) -> dict[str, _PatchHunk]:
    """By hunk id: the open ones. Context never reaches into another open hunk."""
    result: dict[str, _PatchHunk] = {}
    for file in proposal.files:
        base = shown_lines(file.base_text or "")
        hunks = [hunk for hunk in file.hunks if hunk.state == "pending"]
        for number, hunk in enumerate(hunks):
            first, end = _span(hunk)
            low = _span(hunks[number - 1])[1] if number else 0
            high = _span(hunks[number + 1])[0] if number + 1 < len(hunks) else len(base)
            result[hunk.hunk_id] = _PatchHunk(
                file, hunk, base[max(low, first - CONTEXT) : first], base[end : min(high, end + CONTEXT)]
            )
    return result


def _span(hunk: Hunk) -> tuple[int, int]:
    first = hunk.old_start - 1 if hunk.old_lines else hunk.old_start
    return first, first + hunk.old_lines


def _file_head(file: ProposedFile, root: Path) -> Iterator[str]:
    path, new_path = _name(file.path, root), _name(file.new_path or file.path, root)
    if file.change == "rename":
        yield f"rename from {path}"
        yield f"rename to {new_path}"
    yield "--- /dev/null" if file.change == "create" else f"--- a/{path}"
    yield "+++ /dev/null" if file.change == "delete" else f"+++ b/{new_path}"


def _body(hunk_id: str, patch_hunk: _PatchHunk) -> Iterator[str]:
    hunk = patch_hunk.hunk
    around = len(patch_hunk.context_before) + len(patch_hunk.context_after)
    why = f" {one_line(hunk.explanation)}" if hunk.explanation else ""
    start = (hunk.old_start if hunk.old_lines else hunk.old_start + 1) - len(patch_hunk.context_before)
    new_start = (hunk.new_start if hunk.new_lines else hunk.new_start + 1) - len(patch_hunk.context_before)
    spans = f"-{start},{around + hunk.old_lines} +{new_start},{around + hunk.new_lines}"
    yield f"@@ {spans} @@ {hunk_id}:{seal(patch_hunk.file, hunk)}{why}"
    yield from (f" {line}" for line in patch_hunk.context_before)
    for mark, lines, text in (("-", patch_hunk.old, hunk.old_text), ("+", patch_hunk.new, hunk.new_text)):
        yield from (f"{mark}{line}" for line in lines)
        if lines and not text.endswith(("\n", "\r")):
            yield _NO_END
    yield from (f" {line}" for line in patch_hunk.context_after)


def _is_between(line: str) -> bool:
    """What may stand between two hunks."""
    return not line.strip() or line.startswith(("#", "--- ", "+++ ", "rename ", "\\"))


def _name(path: str, root: Path) -> str:
    absolute = Path(path)
    return one_line(absolute.relative_to(root).as_posix() if absolute.is_relative_to(root) else path)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def has_open(proposal: Proposal) -> bool:
    return any(is_open(hunk) for file in proposal.files for hunk in file.hunks)
