"""Show the errors and warnings that the language servers and linters of the user's editor report."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject
from amanu.tools.environment import SessionTool
from amanu.tools.locations import display_path, reasons_not_to_quote, resolve_paths
from amanu.workspace.diagnostics import foreign_findings, format_finding, severity_rank, tally
from amanu.workspace.editor_queries import ask
from amanu_protocol.items import Finding
from amanu_protocol.requests import EditorDiagnosticsParams, FileFindings


class GetDiagnosticsParams(Params):
    path: str | None = Field(default=None, description="File or folder. Default: everything the editor has checked.")


class GetDiagnostics(SessionTool[GetDiagnosticsParams]):
    name = "get_diagnostics"
    effect = "read"
    description = (
        "Shows the errors and warnings that the user's editor reports, unsaved changes included. Quick to look at "
        "after an edit, but many editors check only open files, so it does not replace the project's own checks."
    )
    params = GetDiagnosticsParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return "Look at errors and warnings"

    async def preview(self, params: GetDiagnosticsParams, call: CallContext) -> Preview:
        path = self._workspace.resolve(params.path) if params.path else self._workspace.roots[0]
        relative = self._workspace.relative(path)
        suffix = f" of {relative}" if params.path else ""
        return Preview(
            title=f"Look at errors and warnings{suffix}",
            subject=Subject(self.name, self.effect, relative),
            detail=f"errors and warnings{suffix}",
            reads=frozenset(map(str, [path] if params.path else self._workspace.roots)),
        )

    async def run(self, params: GetDiagnosticsParams, call: CallContext) -> Outcome:
        path = self._workspace.resolve(params.path) if params.path else self._workspace.roots[0]
        call.require_reviewed(path)
        folder = await asyncio.to_thread(path.is_dir)
        if not folder:
            await self._workspace.read(path)  # a missing file: the error names similar ones
        request = EditorDiagnosticsParams(paths=[] if folder else [str(path)])
        answer = await ask(
            self._workspace.overlay,
            "diagnostics",
            [path] if params.path else self._workspace.roots,
            lambda language: language.diagnostics(request),
        )
        in_files, outside = await self._readable(answer.files, path if params.path else None, call)
        if not in_files and not outside:
            return Outcome("The editor reports nothing.", "nothing")
        text = _show(in_files, self._limits.findings)
        if outside:
            text += f"Outside the workspace, not shown: {', '.join(outside[: self._limits.findings])}.\n"
        every = [finding for _, finding in in_files]
        errors, warnings = (sum(finding.severity == word for finding in every) for word in ("error", "warning"))
        user = tally(errors, warnings) or (f"{len(every)} hints" if every else "nothing in the workspace")
        return Outcome(text, user)

    async def _readable(
        self, files: list[FileFindings], within: Path | None, call: CallContext
    ) -> tuple[list[tuple[str, Finding]], list[str]]:
        """((path to show, finding) of all that the model may see, files outside the roots). Files that need the user's
        approval are left out, except `within`, the path that the call named: it was decided on."""
        inside = await resolve_paths(self._workspace, (file.path for file in files))
        hidden = reasons_not_to_quote(self._workspace, call, self.name, inside)
        listed: list[tuple[str, Finding]] = []
        outside: list[str] = []
        for file in files:
            foreign = foreign_findings(file.findings)
            path, name = inside[file.path], display_path(self._workspace, file.path, inside)
            if path is None:
                if foreign and within is None:
                    outside.append(name)
            elif path == within or (file.path not in hidden and (within is None or path.is_relative_to(within))):
                listed += [(name, finding) for finding in foreign]
        return listed, outside


def _show(listed: list[tuple[str, Finding]], limit: int) -> str:
    """The findings by file; of too many only the worst."""
    worst = sorted(range(len(listed)), key=lambda index: severity_rank(listed[index][1]))[:limit]
    lines: list[str] = []
    file = ""
    for index in sorted(worst, key=lambda index: (listed[index][0], listed[index][1].lines.start)):
        if listed[index][0] != file:
            file = listed[index][0]
            lines.append(file)
        lines.append(format_finding(listed[index][1]))
    if len(listed) > limit:
        lines.append(f"[{len(listed) - limit} more left out; name a file]")
    return "".join(f"{line}\n" for line in lines)
