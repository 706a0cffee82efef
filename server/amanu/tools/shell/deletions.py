"""How much `rm` and `git clean` would delete, for the user who is asked. An estimate: it is not what is decided on."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePath

from amanu.core.command import Command
from amanu.text.amounts import plural

MOST = 1000
"""Files, or folders, that are counted: more than that need not be known exactly, and a walk must end."""
_MOVES = ("cd", "pushd", "popd")
_LONG = {"--force": "-f", "--quiet": "-q"}


class Count:
    """What would be gone."""

    def __init__(self) -> None:
        self.operands = 0
        self.folders = 0
        """Of the operands."""
        self.files = 0
        self._walked = 0

    @property
    def is_over(self) -> bool:
        return self.files > MOST or self._walked > MOST

    def add(self, path: Path) -> None:
        """That file or folder, if there is one; links are not followed. Blocking."""
        if not os.path.lexists(path):
            return
        self.operands += 1
        if path.is_symlink() or not path.is_dir():
            self.files += 1
            return
        self.folders += 1
        for _, _, names in os.walk(path):
            self._walked += 1
            self.files += len(names)
            if self.is_over:
                return

    def sentence(self) -> str:
        """For the user; "" for nothing."""
        if not self.operands:
            return ""
        over = f"over {MOST:,} {'files' if self.files > MOST else 'folders'}"
        files = over if self.is_over else plural(self.files, "file")
        if not self.folders:
            return f"It deletes {files}."
        folders = "a folder" if self.folders == self.operands == 1 else plural(self.folders, "folder")
        if self.folders == self.operands:
            return f"It deletes {folders} with {files}."
        return f"It deletes {files} and {folders}."


def removed_by_rm(commands: Iterable[Command], folder: Path, inside: Callable[[Path], Path | None]) -> Sequence[Path]:
    """What the line's `rm` commands name, in that folder; nothing where that is not known, or not `inside` the
    workspace. Blocking."""
    paths: list[Path] = []
    for command in commands:
        words = command.words[command.assigned :]
        name = PurePath(words[0] or "").name if words else ""
        if name in _MOVES or (name == "rm" and None in words):
            return []
        if name == "rm":
            paths += [folder / operand for operand in _operands([word for word in words[1:] if word is not None])]
    named = [path for path in dict.fromkeys(paths) if inside(path.parent) is not None]
    return named if len(named) == len(dict.fromkeys(paths)) else []


def _operands(words: Sequence[str]) -> list[str]:
    end = _end(words)
    return [*(word for word in words[:end] if not word.startswith("-")), *words[end + 1 :]]


def _end(words: Sequence[str]) -> int:
    """Where the options end."""
    return words.index("--") if "--" in words else len(words)


def dry_clean(commands: Sequence[Command]) -> list[str] | None:
    """The words after `git` that say what the line's only command, a `git clean`, would remove; None for any other
    line, and for one with options that are not known here: one of them may take the `-n` back."""
    words = commands[0].words if len(commands) == 1 else ()
    if words[:2] != ("git", "clean") or None in words:
        return None
    given = [word for word in words[2:] if word is not None]
    options = [word for word in given[: _end(given)] if word.startswith("-")]
    letters = "".join(_LONG.get(option, option)[1:] for option in options)
    if not set(letters) <= set("dfqxX"):
        return None
    letters = letters.replace("q", "")  # quiet, it would not say what it removes
    return ["-c", "core.quotePath=false", "clean", f"-n{letters}", "--", *_operands(given)]


def would_remove(printed: str, folder: Path) -> list[Path]:
    """What `git clean --dry-run` printed, run in that folder, as paths."""
    lines = printed.splitlines()
    return [folder / line.removeprefix(_WOULD) for line in lines if line.startswith(_WOULD)]


_WOULD = "Would remove "
