"""Text of others in a message to the model: a block that says what it is, and that what is in it cannot end.

    <file path="src/a.py lines 1-9">
    …
    </file>

A text that holds what would end its block gets another name for the block, `<file-2 …>`: so it stays as it is to the
character, for the model may have to quote it. Which name, the text alone decides: a resumed session sends the same
bytes.
(Results of tools need no frame: the wire has one. Project memory is instruction, not data, and has its own:
`context/memory_format.py`; what stands in a block never passes for it.)
"""

import re

from amanu.text.display import one_line

LABEL = 500
"""Characters of a block's label; names of files are shorter (NAME_MAX, and a few folders)."""

_MEMORY = re.compile(r"<(?=\s*/?\s*project_memory\s*>)", re.IGNORECASE)


def block(kind: str, text: str, label: str = "") -> str:
    """The text in a block of that kind. `label` says where it is from, in one line; "" for none."""
    text = _MEMORY.sub("&lt;", text)
    safe_label = one_line(label)[:LABEL].replace('"', "&quot;")
    name = _name(kind, text)
    attribute = f' path="{safe_label}"' if label else ""
    return f"<{name}{attribute}>\n{text}\n</{name}>"


def _name(kind: str, text: str) -> str:
    """The first of `kind`, `kind-2`, `kind-3` … that nothing in the text would end."""
    ends = re.findall(rf"<\s*/\s*{kind}(?:-(\d{{1,9}}))?", text, re.IGNORECASE)
    if not ends:
        return kind
    taken = {int(number or 1) for number in ends}
    return f"{kind}-{next(number for number in range(2, len(taken) + 3) if number not in taken)}"
