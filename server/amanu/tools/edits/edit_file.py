"""Replace texts in a file by others."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from pydantic import Field

from amanu.core.tool import Params, ToolError
from amanu.text.notebook import is_notebook
from amanu.tools.edits.base import EditParams, EditTool, FileChange
from amanu.tools.edits.match import MatchedText, TextReplacement, replace_text
from amanu.tools.edits.notebook import replace_in_notebook
from amanu.tools.edits.placeholders import refuse_placeholders
from amanu.workspace.text_file import FileText


class TextEdit(Params):
    old_text: str
    new_text: str
    replace_all: bool = False


class EditFileParams(EditParams):
    path: str
    old_text: str | None = Field(
        default=None,
        description="Copied exactly from the file with its indentation, with enough lines around it to be unique. "
        "Empty only to create a file.",
    )
    new_text: str | None = None
    replace_all: bool = Field(default=False, description="Replace every occurrence.")
    edits: list[TextEdit] | None = Field(
        default=None,
        description="Several edits, instead of old_text and new_text: in order, each applied to the result of the "
        "previous one, all or none.",
    )


class EditFile(EditTool[EditFileParams]):
    name = "edit_file"
    argument_signs: ClassVar[Mapping[str, str]] = {"old_text": "-", "new_text": "+"}
    description = (
        "Replaces old_text with new_text in a file, or several texts with edits. Read the file first: old_text must be "
        "in it exactly once, unless replace_all is set. Several calls for one file can be sent in one step; each is "
        "applied to the result of the previous one."
    )
    params = EditFileParams

    def changes(self, params: EditFileParams) -> Sequence[FileChange]:
        return [FileChange(params.path, partial(self._edited, _requested_edits(params)))]

    def _edited(self, edits: Sequence[TextEdit], base: FileText) -> MatchedText:
        texts = [base.text]
        forgiven: list[str] = []
        for edit in edits:
            try:
                result = self._replaced(edit, texts[-1], base)
            except ToolError as error:
                if len(edits) == 1:
                    raise
                raise ToolError(f"Edit {len(texts)} of {len(edits)}: {_overlap(edit, texts) or error}") from None
            texts.append(result.text)
            forgiven += [result.forgiven] if result.forgiven else []
        return MatchedText(texts[-1], forgiven)

    def _replaced(self, edit: TextEdit, text: str, base: FileText) -> TextReplacement:
        old_text, new_text, name = edit.old_text, edit.new_text, self.display_path(base)
        if old_text == new_text:
            raise ToolError("old_text and new_text are the same; nothing would change.")
        refuse_placeholders(new_text, old_text, base.text)
        if old_text == "":
            if text:
                raise ToolError(
                    f"old_text is empty, but {name} exists and is not empty. Name the text to replace, or use "
                    "write_file to replace the whole file."
                )
            return TextReplacement(new_text, 1, "")
        if not (base.exists or base.from_buffer or text):
            raise ToolError(f"There is no file {name}. Use write_file to create it.")
        change = replace_in_notebook if is_notebook(base.path) else replace_text
        return change(text, old_text, new_text, replace_all=edit.replace_all, path=name)


def _requested_edits(params: EditFileParams) -> list[TextEdit]:
    """One edit in the fields of its own, or the list; models that must fill every field leave the other empty."""
    old_text, new_text, edits = params.old_text, params.new_text, params.edits or []
    if not edits and old_text is not None and new_text is not None:
        return [TextEdit(old_text=old_text, new_text=new_text, replace_all=params.replace_all)]
    if edits and not old_text and not new_text:
        return edits
    if edits:
        raise ToolError("Send old_text and new_text, or edits, not both. Nothing was changed.")
    missing = "old_text" if old_text is None else "new_text"
    raise ToolError(f"{missing} is missing. Send old_text and new_text, or edits. Nothing was changed.")


def _overlap(edit: TextEdit, texts: Sequence[str]) -> str | None:
    """Says so when the text was there until an earlier edit of the call changed it."""
    spellings = {edit.old_text, edit.old_text.replace("\n", "\r\n")} - {""}
    for index in range(len(texts) - 1):
        if any(spelling in texts[index] and spelling not in texts[index + 1] for spelling in spellings):
            return (
                f"it overlaps edit {index + 1}, which changed a part of its old_text. Nothing was changed. Join the "
                "two, or write old_text as the earlier edits leave it."
            )
    return None
