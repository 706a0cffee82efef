"""Rename a file, or move it to another folder."""

from collections.abc import Sequence

from pydantic import Field

from amanu.tools.edits.base import EditParams, EditTool, FileChange


class MoveFileParams(EditParams):
    path: str
    new_path: str = Field(description="The full new path, name included; it must not exist yet.")


class MoveFile(EditTool[MoveFileParams]):
    name = "move_file"
    description = (
        "Renames a file, or moves it to another folder; not a folder itself. References to it (imports, settings) "
        "are not changed: search for them. To change its content as well, use apply_patch with '*** Move to:'."
    )
    params = MoveFileParams
    verb = "Rename"

    def changes(self, params: MoveFileParams) -> Sequence[FileChange]:
        return [FileChange(params.path, new_path=params.new_path, must_exist=True, action="move")]
