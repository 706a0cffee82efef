"""Fences: blocks in a message to the model for text that is not ours. A block says what it holds, and its content
cannot end it.

    <file path="src/a.py lines 1-9">
    …
    </file>

If the text holds something that would end its block, the block gets another name, `<file-2 …>`. So the text stays the
same to the character, and the model can quote it. The name depends on the text alone, so a resumed session sends the
same bytes.

Tool results need no fence: the wire format separates them. Project memory is instruction, not data, and has a format of
its own (`context/memory_format.py`); nothing inside a block can pass for it.
"""

import re

from amanu.text.display import one_line

MAX_LABEL = 500
"""Characters of a block's label; paths are usually shorter (NAME_MAX is 255)."""

_OURS = re.compile(
    r"<(?=\s*+/?+\s*+(?:(?:project_memory|session_status|approved_plan|available_skills)\s*+>|skill_content\b))",
    re.IGNORECASE,
)
"""Blocks that only Amanu writes. Possessive, so that no text takes more than linear time."""


def block(kind: str, text: str, label: str = "", *, attribute: str = "path") -> str:
    """The text in a block of that kind. `label`: where it comes from, put on one line; "" for none. `attribute`: the
    name of the label."""
    text = _OURS.sub("&lt;", text)
    safe_label = one_line(label)[:MAX_LABEL].replace('"', "&quot;")
    name = _name(kind, text)
    labelled = f' {attribute}="{safe_label}"' if label else ""
    return f"<{name}{labelled}>\n{text}\n</{name}>"


def _name(kind: str, text: str) -> str:
    """The first of `kind`, `kind-2`, `kind-3` … that nothing in the text would end."""
    ends = re.findall(rf"<\s*/\s*{kind}(?:-(\d{{1,9}}))?", text, re.IGNORECASE)
    if not ends:
        return kind
    taken = {int(number or 1) for number in ends}
    return f"{kind}-{next(number for number in range(2, len(taken) + 3) if number not in taken)}"
