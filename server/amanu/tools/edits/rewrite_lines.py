"""Rewrite the lines that the user pointed at. No model is offered this tool: its whole reply becomes the call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from amanu.core.tool import CallContext, LiveCall, Preview, ToolError
from amanu.tools.edits.base import EditParams, EditTool, FileChange
from amanu.tools.edits.edit_file import EditFile
from amanu.tools.edits.live_edit import LiveLines
from amanu.tools.edits.partial_json import StringPiece
from amanu.tools.edits.rewrite_text import RewriteTarget, read_reply
from amanu.tools.environment import ToolEnvironment
from amanu.workspace.text_file import FileText


class RewriteLinesParams(EditParams):
    path: str
    reply: str
    """All that the model wrote."""


class RewriteLines(EditTool[RewriteLinesParams]):
    name = "rewrite_lines"
    verb = "Edit"
    description = "Rewrite the lines the user pointed at."
    params = RewriteLinesParams

    def __init__(self, environment: ToolEnvironment, target: RewriteTarget) -> None:
        super().__init__(environment)
        self._target = target

    @property
    def path(self) -> str:
        """The one path it takes."""
        return self._workspace.display_path(self._target.file.path)

    def live_call(self) -> LiveCall:
        return LiveRewrite(self.title_of)

    def changes(self, params: RewriteLinesParams) -> Sequence[FileChange]:
        if params.path != self.path:
            raise ToolError(f"Only {self.path} is rewritten here.")
        return [FileChange(params.path, partial(_rewritten, self._target, params.reply))]

    async def preview(self, params: RewriteLinesParams, call: CallContext) -> Preview:
        """For rules it is an edit like any other."""
        preview = await super().preview(params, call)
        return replace(preview, subject=replace(preview.subject, tool=EditFile.name))


class LiveRewrite(LiveLines):
    """What the reply says between the marks."""

    def __init__(self, title: Callable[[Mapping[str, Any]], str]) -> None:
        super().__init__()
        self._make_title = title
        self._part = ""
        """A line of the reply that has no end yet."""
        self._inside = False

    def _take(self, piece: StringPiece) -> None:
        if piece.path == ("path",):
            self._part += piece.text
            if piece.ended:
                self.title, self._part = self._make_title({"path": self._part}), ""
        elif piece.path == ("reply",):
            *lines, self._part = f"{self._part}{piece.text}".split("\n")
            for line in lines:
                self._take_line(line)

    def _take_line(self, line: str) -> None:
        mark = line.strip()
        if mark in ("<rewrite>", "</rewrite>"):
            self._inside = mark == "<rewrite>"
        elif self._inside:
            self._lines.put("+", line.rstrip("\r"))


def _rewritten(target: RewriteTarget, reply: str, file: FileText) -> str:
    """The file with the lines rewritten. The user may have typed elsewhere in it meanwhile."""
    text = read_reply(target, reply)
    place = target.moved_to(file)
    if place is None:
        raise ToolError("These lines were changed while the model wrote, so nothing is changed. Try again.")
    new_text = place.with_text(text)
    if new_text == file.text:
        raise ToolError("The model left the lines as they are.")
    return new_text
