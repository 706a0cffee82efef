"""A block of code that a model places in a file: what the model is told, and the edits that its reply makes."""

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from amanu.core.tool import ToolError
from amanu.text.display import one_line

WHOLE_FILE = "WHOLE FILE"
_NOTHING = "NOTHING TO CHANGE"
MIDDLE = "=" * 7
"""Between old and new lines, as the model is told."""


def read_edits(reply: str, middle: str = MIDDLE) -> Sequence[dict[str, JsonValue]] | Literal["WHOLE FILE"]:
    """The edits as `edit_file` takes them; `WHOLE_FILE` when the block is all of the file. Raises `ToolError` when the
    reply makes none."""
    text = reply.replace("\r\n", "\n").strip()
    if text == WHOLE_FILE:
        return WHOLE_FILE
    if text == _NOTHING:
        raise ToolError("The file already has what the block says.")
    edit = re.compile(
        rf"^<{{7}} SEARCH[ \t]*\n(.*?)^{middle}[ \t]*\n(.*?)^>{{7}} REPLACE[ \t]*$", re.DOTALL | re.MULTILINE
    )
    edits: list[dict[str, JsonValue]] = [
        {"old_text": old, "new_text": new} for old, new in edit.findall(text) if old != new
    ]
    if len(re.findall(r"^<{7} SEARCH", edit.sub("", text), re.MULTILINE)):
        raise ToolError("The model's reply was cut off, so nothing is changed. Try again.")
    if not edits:
        raise ToolError(f"The model did not say where the block belongs: {one_line(' '.join(text.split()))[:300]}")
    return edits


def middle_mark(text: str) -> str:
    """The mark between old and new lines: one that no line of the text is."""
    lines = {line.strip() for line in text.splitlines()}
    return next(mark for size in range(7, len(lines) + 9) if (mark := "=" * size) not in lines)
