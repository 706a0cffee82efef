"""Names of files where the system takes several spellings for one: another case, another Unicode normal form.

Everything here looks and changes nothing. Blocking: call it in a thread.
"""

import os
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.workspace.path_guard import PathGuard


def spelling_on_disk(guard: PathGuard, path: Path) -> Path | None:
    """A resolved path with its last name as the folder has it; None when nothing is there."""
    try:
        with guard.listing(path.parent) as folder:
            os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            names = os.listdir(folder)  # noqa: PTH208 (of a handle)
    except (OSError, ToolError):
        return None
    return path.with_name(listed_name(path.name, names))


def listed_name(name: str, names: Sequence[str]) -> str:
    """Which of a folder's names the system found when asked for `name`."""
    if name in names:
        return name
    return next((candidate for candidate in names if fold_name(candidate) == fold_name(name)), name)


def fold_name(text: str) -> str:
    """Equal for texts that a system may take for the same name."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def ignores_case(path: Path) -> bool:
    """Whether the file system there takes names of another case for the same."""
    for folder in (path, *path.parents):
        swapped = folder.name.swapcase()
        if swapped != folder.name and folder.exists():
            try:
                return folder.samefile(folder.with_name(swapped))
            except OSError:
                return False
    return False


def is_symlink(roots: Sequence[Path], path: str) -> bool:
    """Whether the path somebody wrote, absolute or relative to a root, is itself a symbolic link."""
    below = [root / path for root in roots]
    named = [root.parent / path for root in roots if Path(path).parts[:1] == (root.name,)]
    return any(part.is_symlink() for part in (*below, *named))
