"""Rename a file, or move it to another folder."""

from collections.abc import Sequence

from pydantic import Field

from amanu.tools.edits.base import EditParams, EditTool, FileChange


class MoveFileParams(EditParams):
    path: str = Field(description="Path of the file, relative to the workspace root. Not a folder.")
    new_path: str = Field(description="Its whole new path, name included; nothing may be there. Folders are made.")


class MoveFile(EditTool[MoveFileParams]):
    name = "move_file"
    description = (
        "Renames a file or moves it to another folder; its content stays. What names the file elsewhere (imports, "
        "settings) is not changed: search for it. To change the content as well use apply_patch with '*** Move to:'. "
        "Prefer this to commands such as mv: the user can undo it."
    )
    params = MoveFileParams
    verb = "Rename"

    def changes(self, params: MoveFileParams) -> Sequence[FileChange]:
        return [FileChange(params.path, new_path=params.new_path, must_exist=True, action="move")]
