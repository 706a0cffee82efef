"""Delete a file."""

from collections.abc import Sequence

from amanu.tools.edits.base import EditParams, EditTool, FileChange
from amanu.workspace.text_file import FileText


class DeleteFileParams(EditParams):
    path: str


class DeleteFile(EditTool[DeleteFileParams]):
    name = "delete_file"
    description = "Deletes one text file; not a folder, and not a file with unsaved changes in the editor."
    params = DeleteFileParams
    verb = "Delete"

    def changes(self, params: DeleteFileParams) -> Sequence[FileChange]:
        return [FileChange(params.path, delete_text, must_exist=True, action="delete", blind=True)]


def delete_text(base: FileText) -> None:
    """The change that deletes a file."""
