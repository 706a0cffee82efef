"""`@path:10-20` in a prompt: those lines of a file go with it. (A plain `@path` is the daemon's to find.)"""

import re
from collections.abc import Sequence
from pathlib import Path

from amanu_protocol.base import LineRange
from amanu_protocol.items import FileAttachment

_LINES = re.compile(r"(?<![\w@\\])@([^\s\"':]+):([1-9]\d*)(?:-([1-9]\d*))?(?!\d)")


def line_mentions(text: str, roots: Sequence[str]) -> list[FileAttachment]:
    """The line ranges mentioned of files that exist, each once. The path stays as it is written, so that the
    daemon knows that this mention is taken care of."""
    attachments: dict[str, FileAttachment] = {}
    for path, first, last in _LINES.findall(text):
        if any(Path(root, path).is_file() for root in roots):
            lines = LineRange.numbered(int(first), int(last or first))
            attachments.setdefault(f"{path}:{lines.first}-{lines.last}", FileAttachment(path=path, lines=lines))
    return list(attachments.values())
