"""A proposal as a patch file a person edits: what stays is accepted, with their "+" lines; what is gone is rejected.

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


class Unfit(Exception):
    """The file is no patch any more, or does not fit. `line` is 0-based."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True)
class _Shown:
    """A hunk as the patch shows it: the lines before it, its own and those after."""

    file: ProposedFile
    hunk: Hunk
    before: list[str]
    after: list[str]

    @property
    def old(self) -> list[str]:
        return shown_lines(self.hunk.old_text)

    @property
    def new(self) -> list[str]:
        return shown_lines(self.hunk.new_text)

    @property
    def faithful(self) -> bool:
        """Its lines are shown as they are, those that go too: a person may let them stay."""
        texts = (self.old, self.hunk.old_text), (self.new, self.hunk.new_text)
        return all(shown == [line.rstrip("\r\n") for line in split_lines(text)] for shown, text in texts)


def of_proposal(proposal: Proposal, root: Path) -> str:
    """The open hunks that fit, as a patch."""
    shown = _shown(proposal)
    files = len({each.file.path for each in shown.values()})
    names = "".join(f" {hunk_id}:{seal(each.file, each.hunk)}" for hunk_id, each in shown.items())
    out = [
        f"# Amanu proposes {_count(len(shown), 'change')} in {_count(files, 'file')}. Delete what you do not want,",
        f'# edit "+" lines you want otherwise, then run the code action "{APPLY}".',
        "# What you deleted is rejected, what is here is accepted.",
        f"# review {proposal.proposal_id}{names}",
    ]
    path = None
    for hunk_id, each in shown.items():
        if each.file.path != path:
            path = each.file.path
            out += _file_head(each.file, root)
        out += _body(hunk_id, each)
    return "".join(f"{line}\n" for line in out)


def proposal_of(text: str) -> str | None:
    """The id of the proposal a patch is about."""
    found = next((match for line in text.splitlines()[:10] if (match := _HEAD.match(line))), None)
    return None if found is None else found["proposal"]


def decisions(text: str, proposal: Proposal) -> list[HunkDecision]:
    """What a reviewed patch decides, in the order of the proposal. Raises `Unfit`; then nothing is decided."""
    lines = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
    head_at, asked = _head(lines, proposal)
    shown = _shown(proposal)
    found: dict[str, HunkDecision] = {}
    at = head_at + 1
    while at < len(lines):
        match = _HUNK.match(lines[at])
        if match is None:
            if not _is_between(lines[at]):
                raise Unfit(at, 'This belongs to no change: lines of one begin with " ", "-" or "+", after its "@@".')
            at += 1
            continue
        hunk_id = match["id"]
        if asked.get(hunk_id) != match["seal"] or hunk_id in found:
            raise Unfit(at, 'Which change is this? What stands after the second "@@" must stay as it was, once.')
        each = shown.get(hunk_id)
        if each is None or seal(each.file, each.hunk) != match["seal"]:
            raise Unfit(at, "This change is another one now, or is decided. Open the review again.")
        found[hunk_id], at = _read(lines, at, each)
    return [found.get(hunk_id) or _rejected(hunk_id) for hunk_id in asked if hunk_id in found or hunk_id in shown]


def _head(lines: list[str], proposal: Proposal) -> tuple[int, Mapping[str, str]]:
    for at, line in enumerate(lines[:10]):
        if match := _HEAD.match(line):
            if match["proposal"] != proposal.proposal_id:
                raise Unfit(at, "This is the review of another proposal.")
            return at, dict(pair.split(":") for pair in match["hunks"].split())
    raise Unfit(0, 'The line "# review …" is gone: it says what was seen. Open the review again.')


def _read(lines: list[str], head: int, shown: _Shown) -> tuple[HunkDecision, int]:
    """One hunk from its "@@" line on: the decision, and the line after it."""
    old = [*shown.before, *shown.old, *shown.after]
    first, last = len(shown.before), len(old) - len(shown.after)
    new: list[str] = []
    seen, at, ended = 0, head + 1, True
    while at < len(lines):
        line = lines[at]
        mark, body = (line[0], line[1:]) if line else (" ", "")
        if mark == "\\":
            ended = ended and not lines[at - 1].startswith("+")
        elif mark == "+":
            if not first <= seen <= last:
                raise Unfit(at, '"+" lines belong to the change itself, not among the lines around it.')
            new.append(body)
        elif seen == len(old):
            break
        elif mark not in " -" or old[seen].rstrip() != body.rstrip():
            raise Unfit(at, 'Only "+" lines can be changed; this line of the file is missing or another one here.')
        elif first <= seen < last:
            if mark == " ":
                new.append(old[seen])
            seen += 1
        elif mark == "-":
            raise Unfit(at, "This line is not part of the change, so it cannot be removed here.")
        else:
            seen += 1
        at += 1
    if seen < len(old):
        raise Unfit(head, f'Lines of the file are missing in this change; it has {len(old)} " " and "-" lines.')
    return _decided(shown, new, ended, head), at


def _decided(shown: _Shown, new: list[str], ended: bool, head: int) -> HunkDecision:
    hunk = shown.hunk
    if new == shown.new:
        return HunkDecision(hunk_id=hunk.hunk_id, decision="accept")
    if new == shown.old:
        return HunkDecision(hunk_id=hunk.hunk_id, decision="reject", reason="The person changed it back.")
    if not shown.faithful:
        raise Unfit(
            head, "This change has characters that are only shown here (<U+…>); take it as it is, or delete it."
        )
    end = line_end(shown.file.base_text or "") or "\n"
    text = "".join(f"{line}{end}" for line in new)
    return HunkDecision(
        hunk_id=hunk.hunk_id, decision="accept", new_text=text if ended or not text else text[: -len(end)]
    )


def _rejected(hunk_id: str) -> HunkDecision:
    return HunkDecision(hunk_id=hunk_id, decision="reject", reason="The person deleted it from the patch.")


def _shown(proposal: Proposal) -> dict[str, _Shown]:
    """By hunk id: the open ones. Context never reaches into another open hunk."""
    found: dict[str, _Shown] = {}
    for file in proposal.files:
        base = shown_lines(file.base_text or "")
        hunks = [hunk for hunk in file.hunks if hunk.state == "pending"]
        for number, hunk in enumerate(hunks):
            first, end = _span(hunk)
            low = _span(hunks[number - 1])[1] if number else 0
            high = _span(hunks[number + 1])[0] if number + 1 < len(hunks) else len(base)
            found[hunk.hunk_id] = _Shown(
                file, hunk, base[max(low, first - CONTEXT) : first], base[end : min(high, end + CONTEXT)]
            )
    return found


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


def _body(hunk_id: str, each: _Shown) -> Iterator[str]:
    hunk = each.hunk
    around = len(each.before) + len(each.after)
    why = f" {one_line(hunk.explanation)}" if hunk.explanation else ""
    start = (hunk.old_start if hunk.old_lines else hunk.old_start + 1) - len(each.before)
    new_start = (hunk.new_start if hunk.new_lines else hunk.new_start + 1) - len(each.before)
    spans = f"-{start},{around + hunk.old_lines} +{new_start},{around + hunk.new_lines}"
    yield f"@@ {spans} @@ {hunk_id}:{seal(each.file, hunk)}{why}"
    yield from (f" {line}" for line in each.before)
    for mark, lines, text in (("-", each.old, hunk.old_text), ("+", each.new, hunk.new_text)):
        yield from (f"{mark}{line}" for line in lines)
        if lines and not text.endswith(("\n", "\r")):
            yield _NO_END
    yield from (f" {line}" for line in each.after)


def _is_between(line: str) -> bool:
    """What may stand between two hunks."""
    return not line.strip() or line.startswith(("#", "--- ", "+++ ", "rename ", "\\"))


def _name(path: str, root: Path) -> str:
    there = Path(path)
    return one_line(there.relative_to(root).as_posix() if there.is_relative_to(root) else path)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def has_open(proposal: Proposal) -> bool:
    return any(is_open(hunk) for file in proposal.files for hunk in file.hunks)
