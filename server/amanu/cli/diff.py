"""A proposal as lines of a unified diff, per hunk, with a header per file."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from amanu.cli.console import Console, Span, Style
from amanu.cli.numbered_diff import COLOURED_LINES
from amanu.cli.text import one_line, visible
from amanu.frontends.row_text import row_name
from amanu.text.amounts import plural
from amanu.workspace import diagnostics as findings
from amanu.workspace.diff import unified
from amanu.workspace.hunks import base_places
from amanu.workspace.text_file import line_count
from amanu_protocol.items import Check, Hunk, LineRange, Proposal, ProposedFile, Row, Tone

CONTEXT_LINES = 3
LONG_FILE, FIRST_LINES = 40, 30
"""Lines of a file that is new or deleted, and how many are shown of a longer one where nothing is asked."""
FINDINGS = 5
"""Of a checker's new findings; the count says how many there are."""
_TONES: dict[Tone, Style] = {"plain": "dim", "good": "green", "warning": "yellow", "bad": "red"}
_SIGNS: dict[str, Style] = {"+": "green", "-": "red", "@": "cyan"}
_STATE: dict[str, str] = {
    "accepted": "accepted",
    "applied": "applied",
    "rejected": "rejected",
    "conflicted": "conflict",
    "undoing": "being undone",
    "reverted": "undone by you",
}


@dataclass(frozen=True)
class DiffView:
    """The way in which a diff is shown."""

    coloured: bool = True
    shortened: bool = False
    """Only the beginning of a long file that is new or deleted. Not where it is asked about."""
    hint: str = ""
    """The way to the rest."""


WHOLE = DiffView()


def show_proposal(
    console: Console,
    proposal: Proposal,
    roots: Sequence[str],
    known_reason: str | None = None,
    *,
    view: DiffView = WHOLE,
) -> None:
    """All files, all hunks, nothing left out; but a reason only once. `known_reason` is one the user has read
    already."""
    lines = sum(file.added + 2 * CONTEXT_LINES * len(file.hunks) for file in proposal.files)
    view = replace(view, coloured=lines <= COLOURED_LINES)
    for file in proposal.files:
        show_file_header(console, file, roots)
        known_reason = show_hunks(console, file, file.hunks, known_reason, view=view)
    for row in proposal.rows:
        show_row(console, row, roots, known_reason)
        known_reason = row.reason or known_reason


def show_row(
    console: Console, row: Row, roots: Sequence[str], known_reason: str | None = None, *, number: str = ""
) -> None:
    """A change that no hunk shows: its path and title, then the rest. `number` ("2 of 3") goes into the first line."""
    reason = "" if row.reason == known_reason else one_line(row.reason or "", 200)
    needs = f"with {plural(len(row.needs), 'change')} it needs" if row.needs else ""
    notes = [number, _STATE.get(row.state, ""), needs, reason, row.undecidable]
    text = f"({one_line(row.title, 200)})"
    console.line(("bold", f"── {row_name(row, roots)} "), ("", text), ("dim", "".join(f" · {n}" for n in notes if n)))
    for line in row.lines:
        console.line((_TONES[line.tone], f"   {visible(line.text)}"))


def show_conflicts(console: Console, proposal: Proposal, roots: Sequence[str]) -> None:
    """A line for each change in conflict: its path, and the reason."""
    changes: list[tuple[str, Hunk | Row]] = [
        (relative(file.path, roots), hunk) for file in proposal.files for hunk in file.hunks
    ]
    changes += [(row_name(row, roots), row) for row in proposal.rows]
    found = {(name, change.reason or "in conflict"): None for name, change in changes if change.state == "conflicted"}
    for name, reason in found:
        console.line(("yellow", f"  {name}: {one_line(reason, 200)}"))


def show_hunks(
    console: Console,
    file: ProposedFile,
    hunks: Sequence[Hunk],
    known_reason: str | None = None,
    *,
    view: DiffView = WHOLE,
) -> str | None:
    """Hunks of one file; what they are for, and why they are as they are, only where it is another than before.
    `known_reason` is one the user has read already; so is what is returned."""
    explained = ""
    for hunk in hunks:
        again = hunk.explanation == explained
        reason = "" if hunk.reason == known_reason else hunk.reason
        show_hunk(console, file, hunk, reason=reason, explained=not again, view=view)
        explained, known_reason = hunk.explanation, hunk.reason or known_reason
    return known_reason


def show_check(console: Console, file: ProposedFile, check: Check, roots: Sequence[str]) -> None:
    """What a checker says of a file, once it has: "ruff: adds 1 error, fixes 2", and what is new."""
    of = f"  {one_line(check.checker)}, {relative(file.path, roots)}"
    worst = {finding.severity for finding in check.added}
    style: Style = "red" if "error" in worst else "yellow" if worst else "green" if check.fixed else "dim"
    console.line((style, f"{of}: {one_line(check.summary)}"))
    for finding in check.added[:FINDINGS]:
        console.line(("dim", f"    {one_line(findings.format_finding(finding), 300)}"))
    if len(check.added) > FINDINGS:
        console.line(("dim", f"    … and {len(check.added) - FINDINGS} more"))


def show_file_header(console: Console, file: ProposedFile, roots: Sequence[str]) -> None:
    name = relative(file.path, roots)
    if file.change == "rename" and file.new_path is not None:  # its one hunk is the whole file, changed or not
        same = all(hunk.old_text == hunk.new_text for hunk in file.hunks)
        renamed = ("bold", f"── rename {name} → {relative(file.new_path, roots)}")
        console.line(renamed, ("dim", "" if same else " (and edit)"))
        return
    word = {"create": "new file", "delete": "deletes", "edit": "edit", "rename": "renames"}[file.change]
    spans: list[Span] = [
        ("bold", f"── {name} "),
        ("dim", f"({word}) "),
        ("green", f"+{file.added} "),
        ("red", f"−{file.removed}"),
    ]
    if not file.final_newline and file.change != "delete":
        spans.append(("dim", "  no newline at the end"))
    console.line(*spans)


def show_hunk(
    console: Console,
    file: ProposedFile,
    hunk: Hunk,
    *,
    number: str = "",
    reason: str | None = None,
    explained: bool = True,
    view: DiffView = WHOLE,
) -> None:
    """One hunk with its surroundings, and, if `explained`, what it is for. `number` ("2 of 3") and `reason` go into its
    header."""
    if explained and hunk.explanation:
        console.line(("", f"  {one_line(hunk.explanation, 300)}"))
    lines = list(hunk_lines(file, hunk, number, reason))
    hidden = max(0, len(lines) - 1 - FIRST_LINES) if view.shortened and is_long_file(file) else 0
    if lines:
        console.diff(lines[: len(lines) - hidden], file.path if view.coloured else None)
    if hidden:
        hint = f"; {view.hint} shows all" if view.hint else ""
        console.line(("dim", f"  … {plural(hidden, 'more line')}{hint}"))


def is_long_file(file: ProposedFile) -> bool:
    """Whether it is new or deleted, and long."""
    return file.change in ("create", "delete") and file.added + file.removed > LONG_FILE


@dataclass(frozen=True)
class HunkText:
    """A hunk with its surroundings, as lines that are made when they are asked for."""

    head: Span
    old_first: int
    new_first: int
    """The numbers of its first line in the old and in the new text."""
    parts: Sequence[tuple[str, Sequence[str], Style]]
    """Sign, lines and style: the surroundings before it, what goes, what comes, the surroundings after it."""
    windows: bool

    def line(self, sign: str, line: str) -> str:
        """Control characters visible."""
        return sign + visible(line.removesuffix("\r") if self.windows else line)


@dataclass(frozen=True)
class BaseText:
    """The text below all hunks of a file."""

    lines: Sequence[str]
    places: Mapping[str, LineRange]
    """Hunk id → the lines it stands in."""
    windows: bool


def base_text_of(file: ProposedFile) -> BaseText:
    text = file.base_text or ""
    ids = [hunk.hunk_id for hunk in file.hunks]
    return BaseText(_lines(text), dict(zip(ids, base_places(file.hunks), strict=True)), _only_crlf(text))


def hunk_text(base: BaseText, hunk: Hunk, number: str = "", reason: str | None = None) -> HunkText:
    """Not of a file that is renamed."""
    place = base.places[hunk.hunk_id]
    context_before = base.lines[max(0, place.start - CONTEXT_LINES) : place.start]
    context_after = base.lines[place.end : place.end + CONTEXT_LINES]
    before = len(context_before)
    around = before + len(context_after)  # the header counts what is shown, context too, as everywhere else
    old_first, new_first = place.start - before, hunk.proposed_lines.start - before
    old_range = _range(old_first, place.count + around)
    new_range = _range(new_first, line_count(hunk.new_text) + around)
    return HunkText(
        ("cyan", " · ".join([f"@@ -{old_range} +{new_range} @@", *_notes(hunk, number, reason)])),
        old_first + 1,
        new_first + 1,
        [
            (" ", context_before, "dim"),
            ("-", _lines(hunk.old_text), "red"),
            ("+", _lines(hunk.new_text), "green"),
            (" ", context_after, "dim"),
        ],
        windows=base.windows and _only_crlf(hunk.new_text),
    )


def hunk_lines(file: ProposedFile, hunk: Hunk, number: str = "", reason: str | None = None) -> Iterator[Span]:
    """Styled lines: a header, then context, removed and added lines, control characters visible."""
    if file.change == "rename":
        yield from _renamed(hunk, _notes(hunk, number, reason))
        return
    text = hunk_text(base_text_of(file), hunk, number, reason)
    yield text.head
    for sign, lines, style in text.parts:
        for line in lines:
            yield style, text.line(sign, line)


def _notes(hunk: Hunk, number: str, reason: str | None) -> list[str]:
    notes = [number, _STATE.get(hunk.state, ""), _altered(hunk), one_line(reason, 60) if reason else ""]
    return [note for note in notes if note]


def _altered(hunk: Hunk) -> str:
    """Whose text it is by now; in the file, a formatter may have changed it."""
    if not hunk.edited_by_user:
        return ""
    return "your text" if hunk.applied_text is None else "changed in the file since"


def _renamed(hunk: Hunk, notes: Sequence[str]) -> Iterator[Span]:
    """Of the whole file only what changes."""
    if notes:
        yield "cyan", " · ".join(notes)
    for line in unified("", hunk.old_text, hunk.new_text).split("\n")[2:-1]:
        yield _SIGNS.get(line[0], "dim"), visible(line)


def show_diff(console: Console, diff: str) -> None:
    """A unified diff as the daemon made it."""
    console.diff(_styled(diff), "")


def show_plain_diff(console: Console, patch: str) -> None:
    """The same to the letter, as `git apply` takes it."""
    for line in _styled(patch):
        console.verbatim(line)


def _styled(diff: str) -> list[Span]:
    lines: list[Span] = []
    for line in diff.removesuffix("\n").split("\n"):
        style = "bold" if line.startswith(("--- ", "+++ ")) else _SIGNS.get(line[:1], "")
        lines.append((style, visible(line)))
    return lines


def relative(path: str, roots: Sequence[str]) -> str:
    """The path as a user would say it; control characters visible."""
    for root in roots:
        if path.startswith(root.rstrip(os.sep) + os.sep):
            path = path[len(root.rstrip(os.sep)) + 1 :]
            break
    return visible(path).replace("\n", "␊")


def _range(first: int, lines: int) -> str:
    """`first` lines come before; a side without lines names the line it comes after."""
    return f"{first + 1 if lines else first},{lines}"


def _only_crlf(text: str) -> bool:
    """Then carriage returns go without saying; in all other texts they are shown."""
    return text.count("\r\n") == text.count("\n") == text.count("\r")


def _lines(text: str) -> list[str]:
    """Split after each `\\n` only: other separators belong to their line, and are shown."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
