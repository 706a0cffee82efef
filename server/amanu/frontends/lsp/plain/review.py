"""The look of a change where there are only diagnostics, hovers and lenses."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from lsprotocol import types

from amanu.frontends.lsp.plain.change_marks import HunkMark, Mark, RowMark, needed
from amanu.text.display import one_line, visible
from amanu.text.markdown import fenced, prose
from amanu.workspace.diagnostics import OWN
from amanu.workspace.text_file import split_lines

HOVER_LINES = 60
"""Lines of one change; more of a hunk is in the patch file."""
HOVERED = 5
"""Changes shown at one place."""


def title(mark: Mark) -> str:
    """One line about it."""
    if isinstance(mark, RowMark) and mark.row.undecidable:
        return f"Amanu's change {mark.amount}: {one_line(mark.row.undecidable)}"
    why = f": {one_line(mark.hunk.explanation)}" if isinstance(mark, HunkMark) and mark.hunk.explanation else ""
    reason = f": {one_line(mark.change.reason)}" if mark.change.reason else ""
    match mark.change.state:
        case "conflicted":
            return f"Amanu's change {mark.amount} does not fit{reason}"
        case "applied":
            return f"Amanu changed this {mark.amount}, keep or undo{why}"
        case _ if isinstance(mark, RowMark):
            return f"Amanu proposes: {one_line(mark.row.title)}"
        case _:
            suffix = {"edit": "", "create": " to create this", "delete": " to delete this", "rename": " to move this"}
            return f"Amanu proposes{suffix[mark.file.change]} {mark.amount}{why}"


def diagnostic(mark: Mark) -> types.Diagnostic:
    """Its code is a word, for editors that put it before the text; `data` says which change it is."""
    severity, code = types.DiagnosticSeverity.Information, "proposed"
    if mark.conflicted:
        severity, code = types.DiagnosticSeverity.Warning, "conflict"
    elif mark.change.state == "applied":
        severity, code = types.DiagnosticSeverity.Hint, "applied"
    return types.Diagnostic(mark.range, title(mark), severity, code=code, source=OWN, data=mark.change_id)


def hover(marks: Sequence[Mark], kind: Literal["markdown", "plaintext"]) -> types.Hover | None:
    """The changes at one place: hunks as diffs, with reason and checks."""
    if not marks:
        return None
    parts = [_hover_text(mark, kind) for mark in marks[:HOVERED]]
    if len(marks) > HOVERED:
        parts.append(f"{len(marks) - HOVERED} more changes here")
    return types.Hover(types.MarkupContent(types.MarkupKind(kind), "\n\n".join(parts)), marks[0].range)


def lenses(marks: Iterable[Mark]) -> list[types.CodeLens]:
    code_lenses: list[types.CodeLens] = []
    for mark in marks:
        position = types.Range(mark.range.start, mark.range.start)
        if mark.open:
            pairs = [(f"Accept {mark.amount}{needed([mark])}", "amanu.accept"), ("Reject", "amanu.reject")]
        elif mark.unreviewed:
            pairs = [(f"Keep {mark.amount}", "amanu.keep"), ("Undo", "amanu.undo")]
        else:
            continue
        for name, command in pairs:
            code_lenses.append(
                types.CodeLens(position, types.Command(name, command, arguments=[change_arguments([mark])]))
            )
    return code_lenses


def change_arguments(marks: Sequence[Mark]) -> dict[str, Any]:
    """Changes as the argument of a command: their ids, with the seals of what was seen."""
    proposals: dict[str, dict[str, str]] = {}
    for mark in marks:
        proposals.setdefault(mark.proposal.proposal_id, {})[mark.change_id] = mark.seal
    return {"session": marks[0].session_id, "proposals": proposals}


def _hover_text(mark: Mark, kind: Literal["markdown", "plaintext"]) -> str:
    escape = prose if kind == "markdown" else one_line
    if isinstance(mark, RowMark):
        row = mark.row
        moved = [] if row.new_path is None else [escape(f"{row.path} → {row.new_path}")]
        return "\n\n".join([escape(title(mark)), *moved, *map(escape, _first([line.text for line in row.lines]))])
    hunk, file = mark.hunk, mark.file
    lines = [f"-{line}" for line in shown_lines(hunk.old_text)] + [f"+{line}" for line in shown_lines(hunk.new_text)]
    diff = "\n".join(_first(lines)) or "(no text)"
    parts = [escape(title(mark))]
    if file.new_path is not None:
        parts.append(escape(f"{file.path} → {file.new_path}"))
    parts.append(fenced(diff, "diff") if kind == "markdown" else diff)
    parts += [escape(f"{check.checker}: {check.summary}") for check in file.checks]
    return "\n\n".join(parts)


def _first(lines: list[str]) -> list[str]:
    """The lines that a hover has room for, and how many more there are."""
    return lines if len(lines) <= HOVER_LINES else [*lines[:HOVER_LINES], f"… {len(lines) - HOVER_LINES} more lines"]


def shown_lines(text: str) -> list[str]:
    """Lines without their ends, control characters visible."""
    return [visible(re.sub(r"(\r\n|\r|\n)\Z", "", line)) for line in split_lines(text)]
