"""Delete a file."""

from collections.abc import Sequence

from pydantic import Field

from amanu.tools.edits.base import EditParams, EditTool, FileChange
from amanu.workspace.text_file import FileText


class DeleteFileParams(EditParams):
    path: str = Field(description="Path of the file, relative to the workspace root. Not a folder.")


class DeleteFile(EditTool[DeleteFileParams]):
    name = "delete_file"
    description = (
        "Deletes one text file. Only files, no folders; not one with unsaved changes in the editor. Prefer this to "
        "commands such as rm: the user can undo it."
    )
    params = DeleteFileParams
    verb = "Delete"

    def changes(self, params: DeleteFileParams) -> Sequence[FileChange]:
        return [FileChange(params.path, delete_text, must_exist=True, action="delete", blind=True)]


def delete_text(base: FileText) -> None:
    """The change that deletes a file."""
