"""Replace one text in a file by another."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from amanu.tools.base import ToolError
from amanu.tools.edit import EditTool, PathParams
from amanu.tools.match import replace_text
from amanu.tools.omission import refuse_omission
from amanu.workspace.files import FileText
from amanu.workspace.workspace import Workspace


class EditFileParams(PathParams):
    path: str = Field(description="Path of the file, relative to the workspace root.")
    old_text: str = Field(
        description="The text to replace, copied exactly from the file with its indentation, with enough lines "
        "around it to be unique. Empty only to create a file."
    )
    new_text: str = Field(description="The text to put in its place.")
    replace_all: bool = Field(default=False, description="Replace every occurrence instead of exactly one.")


class EditFile(EditTool[EditFileParams]):
    name = "edit_file"
    signs: ClassVar[Mapping[str, str]] = {"old_text": "-", "new_text": "+"}
    description = (
        "Replaces old_text by new_text in a file. old_text must be in the file exactly once (or set replace_all); "
        "read the file first and copy it exactly. Several edits of one file can be sent in one step; each is applied "
        "to the result of the one before. The result says what was really applied: the person may reject or change "
        "parts of it."
    )
    params = EditFileParams

    def change(self, params: EditFileParams, base: FileText) -> str:
        old, new = params.old_text, params.new_text
        shown = _shown(self._workspace, base)
        if old == new:
            raise ToolError("old_text and new_text are the same; nothing would change.")
        refuse_omission(new, old + base.text)
        if old == "":
            if base.text:
                raise ToolError(
                    f"old_text is empty, but {shown} exists and is not empty. Name the text to replace, or use "
                    "write_file to replace the whole file."
                )
            return new
        if not (base.exists or base.from_buffer):
            raise ToolError(f"There is no file {shown}. Use write_file to create it.")
        return replace_text(base.text, old, new, replace_all=params.replace_all, path=shown).text


def _shown(workspace: Workspace, base: FileText) -> str:
    return workspace.shown(base.path)
