"""Change several files, or several places, by one patch."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import Field

from amanu.core.model import Freeform
from amanu.core.tool import LiveCall, ToolError
from amanu.text.notebook import is_notebook
from amanu.tools.edits.base import EditParams, EditTool, FileChange
from amanu.tools.edits.delete_file import delete_text
from amanu.tools.edits.live_edit import LivePatch, patch_title
from amanu.tools.edits.match import MatchedText
from amanu.tools.edits.notebook import patch_notebook
from amanu.tools.edits.patch import parse_patch
from amanu.tools.edits.patch_apply import added_text, apply_hunks
from amanu.tools.edits.patch_lines import FilePatch
from amanu.tools.edits.placeholders import refuse_placeholders
from amanu.workspace.text_file import FileText

_GRAMMAR = r"""
start: "*** Begin Patch" LF file+ "*** End Patch" LF?
file: add | delete | update
add: "*** Add File: " REST LF ("+" REST? LF)+
delete: "*** Delete File: " REST LF
update: "*** Update File: " REST LF ("*** Move to: " REST LF)? hunk*
hunk: ("@@" (" " REST)? LF)+ line+ ("*** End of File" LF)?
line: (" " | "-" | "+") REST? LF
REST: /[^\n]+/
LF: /\n/
"""


class ApplyPatchParams(EditParams):
    patch: str = Field(
        description="E.g.\n*** Begin Patch\n*** Update File: src/a.py\n@@ def total(items):\n"
        "     count = 0\n-    for each in items\n+    for each in items:\n*** Add File: src/b.py\n+new = True\n"
        "*** Delete File: src/c.py\n*** End Patch\n"
        "'*** Move to: new/path' may follow '*** Update File'. Unchanged lines begin with one space, removed ones "
        "with '-', new ones with '+'."
    )


class ApplyPatch(EditTool[ApplyPatchParams]):
    name = "apply_patch"
    description = (
        "Changes, adds, deletes and moves files with one patch, all or nothing, for changes that belong together "
        "in several files or many places. Each hunk is found by its lines: give about three unchanged ones around "
        "each change, copied exactly, and a line '@@ def name' above it where they are not unique. Unified diffs work "
        "too."
    )
    params = ApplyPatchParams
    freeform = Freeform("patch", _GRAMMAR)

    def live_call(self) -> LiveCall:
        return LivePatch("patch", self._workspace.as_written)

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        patch = arguments.get("patch")
        return (isinstance(patch, str) and patch_title(patch, self._workspace.as_written)) or self.name

    def changes(self, params: ApplyPatchParams) -> Sequence[FileChange]:
        files = parse_patch(params.patch)
        return [
            FileChange(
                file.path,
                partial(self._changed, file),
                file.new_path,
                must_exist=file.kind != "add",
                action="delete" if file.kind == "delete" else "edit",
                part=f"File {number} of {len(files)} ({file.path})" if len(files) > 1 else "",
            )
            for number, file in enumerate(files, 1)
        ]

    def _changed(self, file: FilePatch, base: FileText) -> str | MatchedText | None:
        if file.kind == "add":
            return added_text(file.hunks)
        new_text = "\n".join(text for hunk in file.hunks for mark, text in hunk.lines if mark == "+")
        refuse_placeholders(new_text, base.text)
        apply = partial(apply_hunks, hunks=file.hunks, path=self.display_path(base))
        result = patch_notebook(base.text, apply) if is_notebook(base.path) else apply(base.text)
        if file.kind == "update":
            return result
        if file.hunks and result.text:
            raise ToolError(
                f"The patch deletes {self.display_path(base)}, but not all of its lines. Write '*** Delete File'."
            )
        return delete_text(base)
