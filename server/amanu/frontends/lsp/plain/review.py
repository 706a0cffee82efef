"""How a hunk looks where there are only diagnostics, hovers and lenses."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from lsprotocol import types

from amanu.frontends.lsp.plain.hunk_marks import Mark, counts
from amanu.text.display import one_line, visible
from amanu.text.markdown import fenced, prose
from amanu.workspace.diagnostics import OWN
from amanu.workspace.text_file import split_lines

HOVER_LINES = 60
"""Of one hunk; the rest is in the patch file."""
HOVERED = 5
"""Hunks told of at one place."""


def title(mark: Mark) -> str:
    """One line about it."""
    hunk = mark.hunk
    why = f": {one_line(hunk.explanation)}" if hunk.explanation else ""
    match hunk.state:
        case "conflicted":
            return f"Amanu's change {counts([hunk])} does not fit{f': {one_line(hunk.reason)}' if hunk.reason else ''}"
        case "applied":
            return f"Amanu changed this {counts([hunk])}, keep or undo{why}"
        case _:
            suffix = {"edit": "", "create": " to create this", "delete": " to delete this", "rename": " to move this"}
            return f"Amanu proposes{suffix[mark.file.change]} {counts([hunk])}{why}"


def diagnostic(mark: Mark) -> types.Diagnostic:
    """Its code is a word, for editors that put it before the text; which hunk it is, `data` says."""
    severity, code = types.DiagnosticSeverity.Information, "proposed"
    if mark.hunk.state == "conflicted":
        severity, code = types.DiagnosticSeverity.Warning, "conflict"
    elif mark.hunk.state == "applied":
        severity, code = types.DiagnosticSeverity.Hint, "applied"
    return types.Diagnostic(mark.range, title(mark), severity, code=code, source=OWN, data=mark.hunk.hunk_id)


def hover(marks: Sequence[Mark], kind: Literal["markdown", "plaintext"]) -> types.Hover | None:
    """The hunks at one place as diffs, with reason and checks."""
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
            pairs = [(f"Accept {counts([mark.hunk])}", "amanu.accept"), ("Reject", "amanu.reject")]
        elif mark.unreviewed:
            pairs = [(f"Keep {counts([mark.hunk])}", "amanu.keep"), ("Undo", "amanu.undo")]
        else:
            continue
        for name, command in pairs:
            code_lenses.append(
                types.CodeLens(position, types.Command(name, command, arguments=[hunk_arguments([mark])]))
            )
    return code_lenses


def hunk_arguments(marks: Sequence[Mark]) -> dict[str, Any]:
    """Hunks as the argument of a command: which, and as what they were seen."""
    proposals: dict[str, dict[str, str]] = {}
    for mark in marks:
        proposals.setdefault(mark.proposal.proposal_id, {})[mark.hunk.hunk_id] = mark.seal
    return {"session": marks[0].session_id, "proposals": proposals}


def _hover_text(mark: Mark, kind: Literal["markdown", "plaintext"]) -> str:
    hunk = mark.hunk
    lines = [f"-{line}" for line in shown_lines(hunk.old_text)] + [f"+{line}" for line in shown_lines(hunk.new_text)]
    if len(lines) > HOVER_LINES:
        lines = [*lines[:HOVER_LINES], f"… {len(lines) - HOVER_LINES} more lines"]
    diff = "\n".join(lines) or "(no text)"
    escape = prose if kind == "markdown" else one_line
    parts = [escape(title(mark))]
    if mark.file.new_path is not None:
        parts.append(escape(f"{mark.file.path} → {mark.file.new_path}"))
    parts.append(fenced(diff, "diff") if kind == "markdown" else diff)
    parts += [escape(f"{check.checker}: {check.summary}") for check in mark.file.checks]
    return "\n\n".join(parts)


def shown_lines(text: str) -> list[str]:
    """Lines without their ends, control characters visible."""
    return [visible(re.sub(r"(\r\n|\r|\n)\Z", "", line)) for line in split_lines(text)]
