"""What the user's editor shows, as a few lines that go with each prompt: active file, open and unsaved files, findings.

A client sends what changed (`amanu/editor/contextChanged`), and `EditorContext` adds it up. With each prompt the model
gets what differs from what it was last told (`EditorNotes`): after the user's words, in the same message, and recorded
with it, so that a resumed session sends the same bytes. (Files that a user mentions: `attachments.py`.)
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from amanu.core.tool import Subject, SubjectFilter, ToolError
from amanu.text.display import one_line
from amanu.text.fences import block
from amanu.workspace import diagnostics as findings
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import Finding
from amanu_protocol.requests import ActiveEditor, ContextChangedParams, FileFindings

MAX_FILES = 200
"""Open files remembered of one client."""
MAX_FILES_FOUND = 1000
"""Files with findings remembered of one client: a whole project may be checked."""
MAX_SELECTION = 2000
"""Characters of a selection that is quoted; a larger one is only named by its lines."""
MAX_RECENT = 50
"""Files remembered that a client's user looked at."""
SHOWN_FILES = 50
"""Files named in one list."""
SHOWN_FINDINGS = 5
"""Findings quoted of the active file; `get_diagnostics` returns all of them."""

NO_FILE = "Active file: none in the workspace."
NONE_OPEN = "Open files: none."
UNSAVED = "Unsaved files (your tools see the text in the editor; commands see the older one on disk)"
NONE_UNSAVED = "Unsaved files: none."
NO_FINDINGS = "Errors and warnings: none."


@dataclass(frozen=True)
class FileTally:
    """The number of findings in one file, and the worst of them."""

    errors: int
    warnings: int
    worst: tuple[Finding, ...]


@dataclass(frozen=True)
class EditorContext:
    """What one client shows its user. Its size is bounded, whatever the client sends."""

    active: ActiveEditor = field(default_factory=ActiveEditor)
    open_files: tuple[str, ...] = ()
    recent_files: tuple[str, ...] = ()
    """Those that were active, the last one first."""
    findings_by_path: Mapping[str, FileTally] = field(default_factory=dict[str, FileTally])
    """The files with errors or warnings, by path; the last to change is last."""

    def changed(self, delta: ContextChangedParams) -> "EditorContext":
        """This context with the client's changes; an absent field stays as it is."""
        updated = self
        if delta.active is not None:
            selected = delta.active.selected_text
            # One more than is quoted: so a larger one is known to be too large.
            cut = selected if selected is None else selected[: MAX_SELECTION + 1]
            updated = replace(updated, active=delta.active.model_copy(update={"selected_text": cut}))
            if path := delta.active.path:
                recent = dict.fromkeys([path, *self.recent_files])
                updated = replace(updated, recent_files=tuple(recent)[:MAX_RECENT])
        if delta.open_files is not None:
            updated = replace(updated, open_files=tuple(delta.open_files[:MAX_FILES]))
        if delta.findings is not None:
            updated = replace(updated, findings_by_path=_merged(updated.findings_by_path, delta.findings))
        return updated


class EditorNotes:
    """What one session's model has been told about its user's editor."""

    def __init__(self) -> None:
        self._sections: Mapping[str, str] = _NOTHING
        self._generation = 0

    def note(self, sections: Mapping[str, str], generation: int) -> str:
        """The block for the model, which counts as told when this returns; "" when nothing is new. All of it again when
        the conversation's `generation` has changed: what was told before may be gone."""
        if generation != self._generation:
            self._sections, self._generation = _NOTHING, generation
        changed_texts = [text for name, text in sections.items() if text != self._sections[name]]
        again = self._sections is not _NOTHING
        if not changed_texts:
            return ""
        self._sections = sections
        head = "What has changed there:" if again else "What the user's editor shows, for your information:"
        text = block("editor_context", "\n".join([head, *changed_texts]))
        return text.encode("utf-8", "replace").decode()  # half a surrogate pair has no UTF-8


async def describe(context: EditorContext, workspace: Workspace, allowed: SubjectFilter) -> dict[str, str]:
    """The sections of the block, by name, always the same names. Only files in the roots are named, and nothing is
    quoted from a file that needs approval to be read."""
    named = dict.fromkeys([*context.open_files, *filter(None, [context.active.path]), *context.findings_by_path])
    inside = await asyncio.to_thread(_inside, named, workspace)
    active = inside.get(context.active.path or "")
    opened = [inside[path] for path in context.open_files if path in inside]
    unsaved = [file.path for file in await workspace.unsaved()]  # in any editor: commands see none of that text
    findings_of = {
        inside[path]: file_findings for path, file_findings in context.findings_by_path.items() if path in inside
    }
    quotable = active is not None and bool(allowed([Subject("read_file", "read", workspace.relative(active))]))
    return {
        "active": NO_FILE
        if active is None
        else _active(context.active, one_line(workspace.display_path(active)), quotable),
        "open": f"Open files: {_listed(opened, workspace)}." if opened else NONE_OPEN,
        "unsaved": f"{UNSAVED}: {_listed(unsaved, workspace)}." if unsaved else NONE_UNSAVED,
        "findings": _findings(findings_of, active if quotable else None),
    }


def _active(active: ActiveEditor, name: str, quotable: bool) -> str:
    text = f"Active file: {name}"
    if (lines := active.lines) is not None:
        is_one = lines.first == lines.last
        text += f", line {lines.first}" if is_one else f", lines {lines.first}-{lines.last}"
    if active.selected_text is None:
        return f"{text}."
    if not quotable or len(active.selected_text) > MAX_SELECTION:
        return f"{text}, selected."
    return f"{text}, selected:\n{block('selection', active.selected_text)}"


def _findings(findings_of: Mapping[Path, FileTally], active: Path | None) -> str:
    if not findings_of:
        return NO_FINDINGS
    total = findings.tally(
        sum(file.errors for file in findings_of.values()), sum(file.warnings for file in findings_of.values())
    )
    text = f"Errors and warnings: {total} in {len(findings_of)} file{'s' * (len(findings_of) != 1)}"
    if active is None or active not in findings_of:
        return f"{text}."
    lines = [findings.format_finding(finding) for finding in findings_of[active].worst]
    return "\n".join([f"{text}; of the active file:", *lines])


def _merged(findings_by_path: Mapping[str, FileTally], changed: Iterable[FileFindings]) -> dict[str, FileTally]:
    merged = dict(findings_by_path)
    for file in changed:
        merged.pop(file.path, None)
        bad = [
            finding for finding in findings.foreign_findings(file.findings) if finding.severity in ("error", "warning")
        ]
        if bad:
            errors = sum(finding.severity == "error" for finding in bad)
            worst = tuple(
                finding.model_copy(update={"message": finding.message[: findings.MESSAGE + 1]})
                for finding in bad[:SHOWN_FINDINGS]
            )
            merged[file.path] = FileTally(errors, len(bad) - errors, worst)
    for path in list(merged)[: max(0, len(merged) - MAX_FILES_FOUND)]:
        del merged[path]
    return merged


def _inside(paths: Iterable[str], workspace: Workspace) -> dict[str, Path]:
    """Those of the paths that lie in the roots, resolved. Blocking."""
    resolved: dict[str, Path] = {}
    for path in paths:
        if Path(path).is_absolute():
            with contextlib.suppress(ToolError):
                resolved[path] = workspace.resolve(path)
    return resolved


def _listed(paths: list[Path], workspace: Workspace) -> str:
    names = [one_line(workspace.display_path(path)) for path in paths[:SHOWN_FILES]]
    suffix = f", and {len(paths) - SHOWN_FILES} more" if len(paths) > SHOWN_FILES else ""
    return ", ".join(names) + suffix


_NOTHING: Mapping[str, str] = {
    "active": NO_FILE,
    "open": NONE_OPEN,
    "unsaved": NONE_UNSAVED,
    "findings": NO_FINDINGS,
}
"""The sections that need not be sent: a model that was told nothing assumes them."""
