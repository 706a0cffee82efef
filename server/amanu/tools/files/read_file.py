"""Read a file, or lines of it, as the user sees it."""

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.tools.environment import SessionTool
from amanu.workspace.text_file import FileText, split_lines


class ReadFileParams(Params):
    path: str = Field(description="Path of the file, relative to the workspace root or absolute.")
    start_line: int | None = Field(default=None, ge=1, description="First line to read, 1-based. Default: 1.")
    end_line: int | None = Field(default=None, ge=1, description="Last line to read, inclusive. Default: the end.")


class ReadFile(SessionTool[ReadFileParams]):
    name = "read_file"
    effect = "read"
    description = (
        "Reads a text file of the workspace, unsaved changes in the editor included. At most 2000 lines at once; "
        "the result says how to continue. The text is exact, without line numbers. Read a file before you "
        "edit it; read several files at once with parallel calls or read_many_files."
    )
    params = ReadFileParams

    async def preview(self, params: ReadFileParams, call: CallContext) -> Preview:
        path = self._workspace.resolve(params.path)
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
        path = self._workspace.resolve(params.path)
        call.require_reviewed(path)
        file = await self._workspace.read(path)
        self._workspace.shown_files.show(file, call.call_id)
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
        count = end - start
        return Outcome(head + text, f"{count} line{'s' * (count != 1)}" + (", unsaved" if file.unsaved else ""))


def read_notes(file: FileText) -> list[str]:
    """What the model should know about a text before it relies on it."""
    notes: list[str] = []
    if file.unsaved:
        notes.append("unsaved in the editor: this is the editor's text; commands see an older version on disk")
    if file.encoding != "utf-8":
        notes.append(f"encoding {file.encoding}; edits keep it")
    return notes


def cut_long_lines(lines: list[str], limit: int) -> tuple[int, str]:
    """(lines cut, text) with no line longer than `limit`."""
    cut = 0
    parts: list[str] = []
    for line in lines:
        if len(line) > limit + 2:
            cut += 1
            line = f"{line[:limit]}… [line cut]\n"
        parts.append(line)
    return cut, "".join(parts)
