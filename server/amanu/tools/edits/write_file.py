"""Create a file or replace the whole of one."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from amanu.core.tool import ToolError
from amanu.text.notebook import is_notebook
from amanu.tools.edits.base import EditParams, EditTool, FileChange
from amanu.tools.edits.placeholders import refuse_placeholders
from amanu.workspace.text_file import FileText


class WriteFileParams(EditParams):
    path: str
    content: str


class WriteFile(EditTool[WriteFileParams]):
    name = "write_file"
    verb = "Write"
    argument_signs: ClassVar[Mapping[str, str]] = {"content": "+"}
    description = (
        "Creates a file with its folders, or replaces the whole content of one; to change a part, use edit_file. Write "
        "the content in full: placeholders such as '// rest of the code' are refused."
    )
    params = WriteFileParams

    def changes(self, params: WriteFileParams) -> Sequence[FileChange]:
        return [FileChange(params.path, partial(_written, params.content), action="write", blind=True)]


def _written(content: str, base: FileText) -> str:
    refuse_placeholders(content, base.text)
    if is_notebook(base.path) and content.lstrip().startswith(("--- cell", "[notebook,")):
        raise ToolError("A notebook is JSON. To change the text of its cells, use edit_file. Nothing was changed.")
    if base.line_end == "\r\n" and "\r" not in content:
        return content.replace("\n", "\r\n")
    return content
