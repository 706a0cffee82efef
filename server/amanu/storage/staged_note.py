"""What git had staged of a session's files when it was closed; the next daemon compares. Blocks.

Without the note, as after a crash, nothing is compared: what a command of Amanu's staged would pass for the user's.
"""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from amanu.storage.files import write_whole

STAGED = "staged.json"
"""In the session's folder."""


def read(note: Path) -> dict[Path, str]:
    """Path → object, "" for none. The note is removed: it holds for one opening."""
    try:
        data = json.loads(note.read_text("utf-8", "surrogateescape"))
    except (OSError, ValueError):
        return {}
    with contextlib.suppress(OSError):
        note.unlink()
    entries = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    return {Path(path): name for path, name in entries.items() if isinstance(name, str)}


def write(note: Path, staged: Mapping[Path, str]) -> None:
    """Nothing is written if nothing is staged, or the disk takes nothing."""
    if staged:
        text = json.dumps({str(path): name for path, name in staged.items()})
        with contextlib.suppress(OSError):
            write_whole(note, text.encode())
