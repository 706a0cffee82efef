"""Read a file, or lines of it, as the user sees it."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.system.file_kind import PDF, shown_type
from amanu.text.notebook import is_notebook, read_notebook
from amanu.tools.environment import SessionTool, ToolEnvironment
from amanu.tools.files.shown_file import FileViewer
from amanu.workspace.encodings import OTHER_BYTES, UNKNOWN, BinaryFile
from amanu.workspace.text_file import FileText, split_lines


class ReadFileParams(Params):
    path: str = Field(description="Relative to the workspace root, or absolute.")
    start_line: int | None = Field(default=None, ge=1, description="First line to read, 1-based.")
    end_line: int | None = Field(default=None, ge=1, description="Last line to read, inclusive.")
    pages: str | None = Field(default=None, description="Pages of a PDF, e.g. '3-7'; 20 at most.")


class ReadFile(SessionTool[ReadFileParams]):
    name = "read_file"
    effect = "read"
    description = (
        "Reads a text file of the workspace, unsaved changes in the editor included, at most 2000 lines at once. The "
        "text is exact, without line numbers. Read a file before you edit it. Also shows pictures (PNG, JPEG, GIF, "
        "WebP), pages of a PDF, and notebooks by cell."
    )
    params = ReadFileParams

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._viewer = FileViewer(environment.pictures)

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return self.path_title("Read", arguments)

    async def preview(self, params: ReadFileParams, call: CallContext) -> Preview:
        path = self._workspace.resolve_to_read(params.path)
        relative = self._workspace.relative(path)
        return Preview(
            title=f"Read {relative}",
            subject=Subject(self.name, self.effect, relative),
            detail=str(path),
            reads=frozenset([str(path)]),
        )

    async def run(self, params: ReadFileParams, call: CallContext) -> Outcome:
        if params.start_line and params.end_line and params.end_line < params.start_line:
            raise ToolError(f"end_line {params.end_line} is before start_line {params.start_line}.")
        path = self._workspace.resolve_to_read(params.path)
        call.require_reviewed(path)
        try:
            file = await self._workspace.read(path)
        except BinaryFile as error:
            return await self._show(path, params, error)
        if shown_type(file.text[:5].encode()) == PDF:  # one without a byte that is no text
            return await self._show(path, params, BinaryFile("", PDF))
        if params.pages is not None:
            raise ToolError(
                f"{self._workspace.display_path(path)} is text and has no pages. Use start_line and end_line."
            )
        if not self._workspace.guard.is_only_readable(path):
            self._workspace.shown_files.show(file, call.call_id)
        if is_notebook(path) and params.start_line is None and params.end_line is None:
            notebook = await asyncio.to_thread(read_notebook, file.text)
            if notebook is not None:
                return await self._viewer.notebook(self._workspace.display_path(path), notebook)
        lines = split_lines(file.text)
        start = (params.start_line or 1) - 1
        if start and start >= len(lines):
            raise ToolError(f"The file has {len(lines)} lines; line {start + 1} does not exist.")
        end = min(params.end_line or len(lines), start + self._limits.read_lines, len(lines))
        cut, text = cut_long_lines(lines[start:end], self._limits.line_characters)
        notes = read_notes(file)
        if not lines:
            notes.append("the file is empty")
        elif start or end < len(lines):
            continuation = f"; read on with start_line {end + 1}" if end < len(lines) else ""
            notes.append(f"lines {start + 1}–{end} of {len(lines)}{continuation}")
        if cut:
            notes.append(f"{cut} lines were cut at {self._limits.line_characters} characters; use grep for the rest")
        head = "".join(f"[{note}]\n" for note in notes)
        return Outcome(head + text, _extent(start, end, len(lines)) + _standing(file))

    async def _show(self, path: Path, params: ReadFileParams, error: BinaryFile) -> Outcome:
        """The picture or document at that path. Raises the error for any other file."""
        data = await self._workspace.read_bytes(path) if error.shown_type else None
        if data is None:
            raise error
        name = self._workspace.display_path(path)
        if error.shown_type == PDF:
            return await self._viewer.document(name, data, params.pages)
        return await self._viewer.picture(name, data)


def _extent(start: int, end: int, total: int) -> str:
    """Which of a file's lines were read, for the user."""
    if start == 0 and end == total:
        return f"{total} line{'s' * (total != 1)}"
    return f"line {end}" if end - start == 1 else f"lines {start + 1}–{end}"


def _standing(file: FileText) -> str:
    """Whether the text is that of the disk, for the user."""
    return ", draft" if file.draft else ", unsaved" if file.unsaved else ""


def read_notes(file: FileText) -> list[str]:
    """What the model should know about a text before it relies on it."""
    notes: list[str] = []
    if file.draft:
        notes.append("draft: with your drafted changes, which the user has not accepted yet")
    elif file.unsaved:
        notes.append("unsaved in the editor: this is the editor's text; commands see an older version on disk")
    if file.encoding == UNKNOWN:
        notes.append("encoding unknown, shown as latin-1; edits keep its bytes, and add only ASCII")
    elif OTHER_BYTES in file.encoding:
        notes.append(f"encoding {file.encoding}, each shown as a character from U+10FE80 on; edits keep them")
    elif file.encoding != "utf-8":
        notes.append(f"encoding {file.encoding}; edits keep it")
    return notes


def cut_long_lines(lines: Sequence[str], limit: int) -> tuple[int, str]:
    """(lines cut, text) with no line longer than `limit`."""
    cut = 0
    parts: list[str] = []
    for line in lines:
        if len(line) > limit + 2:
            cut += 1
            line = f"{line[:limit]}… [line cut]\n"
        parts.append(line)
    return cut, "".join(parts)
