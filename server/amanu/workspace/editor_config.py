"""The `charset` that `.editorconfig` files give (https://spec.editorconfig.org, 0.17), for files whose own bytes do not
say their encoding. Nothing else in these files counts.

They are data from the workspace: only those in its roots are read, no link is followed, and no glob takes long.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.workspace.globs import glob_pattern
from amanu.workspace.path_guard import PathGuard

NAME = ".editorconfig"
_MAX_BYTES = 1 << 16
_MAX_SECTIONS = 200  # of one file
_MAX_FILES = 200  # that are kept
_MAX_RANGE = 100  # numbers that `{1..9}` may stand for
_SECTION = re.compile(r"\[(.*)\]")
_PAIR = re.compile(r"([^=:]+?)\s*[=:]\s*(.*)")
_RANGE = re.compile(r"\{([+-]?\d{1,9})\.\.([+-]?\d{1,9})\}")
_ALONE = re.compile(r"\{([^{},]*)\}")

Times = tuple[int, int, int]


@dataclass(frozen=True)
class _Parsed:
    times: Times
    is_root: bool
    charsets: Mapping[str, str]
    """Glob → charset; the later counts more."""


class EditorConfig:
    """The `.editorconfig` files in the roots of a workspace. A look costs the status of one file in each folder above;
    what was read is kept as long as its times stay the same."""

    def __init__(self, guard: PathGuard) -> None:
        self._guard = guard
        self._parsed: dict[Path, _Parsed] = {}

    def charset(self, path: Path) -> str | None:
        """The charset as it is written, in lower case, for the file at that resolved path; None where there is none.
        Blocking."""
        index, _ = self._guard.locate(path)
        if index >= len(self._guard.roots):
            return None
        for folder in path.parents:
            parsed = self._in(folder)
            relative = path.relative_to(folder).as_posix()
            fitting = [value for glob, value in parsed.charsets.items() if _fits(glob, relative)] if parsed else []
            if fitting:
                return None if fitting[-1] == "unset" else fitting[-1]
            if folder == self._guard.roots[index] or (parsed is not None and parsed.is_root):
                break
        return None

    def _in(self, folder: Path) -> _Parsed | None:
        path = folder / NAME
        try:
            with self._guard.file(path) as file:
                status = os.fstat(file)
                times = status.st_ino, status.st_mtime_ns, status.st_size
                known = self._parsed.get(path)
                if known is None or known.times != times:
                    if len(self._parsed) >= _MAX_FILES:
                        self._parsed.clear()
                    known = self._parsed[path] = _parse(os.read(file, _MAX_BYTES), times)
                return known
        except (OSError, ToolError):
            return None


def _parse(data: bytes, times: Times) -> _Parsed:
    is_root, charsets, section = False, dict[str, str](), ""
    for line in data.decode("utf-8", "replace").removeprefix("\ufeff").splitlines():
        line = line.strip()
        if line.startswith(("#", ";")):
            continue
        if head := _SECTION.fullmatch(line):
            section = head[1]
        elif pair := _PAIR.fullmatch(line):
            name, value = pair[1].lower(), pair[2].lower()
            is_root = is_root or (not section and (name, value) == ("root", "true"))
            if section and name == "charset" and len(charsets) < _MAX_SECTIONS:
                charsets.pop(section, None)
                charsets[section] = value
    return _Parsed(times, is_root, charsets)


def _fits(glob: str, relative: str) -> bool:
    """Whether a section's glob means that path. One that is too long or stands for too much means none."""
    try:
        return glob_pattern(_ALONE.sub(r"\\{\1\\}", _RANGE.sub(_numbers, glob))).fullmatch(relative) is not None
    except (ToolError, re.error):
        return False


def _numbers(match: re.Match[str]) -> str:
    """`{1..3}` as `{1,2,3}`."""
    first, last = sorted((int(match[1]), int(match[2])))
    if last - first >= _MAX_RANGE:
        raise ToolError("The range stands for too many numbers.")
    return "{" + ",".join(map(str, range(first, last + 1))) + "}"
