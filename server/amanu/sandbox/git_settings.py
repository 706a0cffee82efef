"""Recognize the settings and files that git itself writes when it makes a repository, a branch, a remote or a
submodule. They are plain: nothing in them names a program, or settings elsewhere. Whatever is not on the list is not
plain.

Settings: git-config(1), gitmodules(5). Files are parsed as git writes them; other spellings are not understood.
"""

import os
import re
import stat
from pathlib import Path

from amanu.sandbox.git_dirs import repository

_LARGEST = 256 * 1024
"""Largest size of a settings file, in bytes."""
_SECTION = re.compile(r'\[([A-Za-z0-9.-]+)(?: "((?:[^"\\\n]|\\.)*)")?\]')
_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)(?:\s*=\s*(.*))?")
_SETTINGS = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol)"
    r"|extensions\.(objectformat|refstorage|worktreeconfig|partialclone)|lfs\.(repositoryformatversion|.+\.access)"
    r"|remote\..+\.(url|pushurl|fetch|tagopt|prune|gh-resolved|promisor|partialclonefilter)|user\.(name|email)"
    r"|branch\..+\.(remote|merge|rebase|pushremote|description|vscode-merge-base)|commit\.gpgsign"
    r"|submodule\..+\.(path|url|active|branch|ignore|shallow|update|fetchrecursesubmodules)|submodule\.active"
    r"|core\.sparsecheckout(cone)?",
    re.DOTALL,
)
_WORKTREE = "core.worktree"
_MODULE_WORKTREE = re.compile(r"(\.\./)+(?!\.\.?(/|$))[^/]\S*")
"""A submodule's worktree as git writes it: up out of `.git/modules`, and down again."""
_ODD_VALUE = re.compile(r"^[-!]|::|\\")
"""A value that could be an option, a command or a helper program, or continues in the next line."""

Setting = tuple[str, str]


def odd_settings(data: bytes) -> list[Setting] | None:
    """The settings that git does not write by itself, in order; None when the text is not understood."""
    if len(data) > _LARGEST or b"\0" in data or b"\r" in data:
        return None
    odd: list[Setting] = []
    section = ""
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        text = line.strip(" \t")
        if not text or text[0] in "#;":
            continue
        if head := _SECTION.fullmatch(text):
            name, sub = head.groups()
            section = f"{name.lower()}.{sub}." if sub is not None else f"{name.lower()}."
            continue
        entry = _ENTRY.fullmatch(text)
        if entry is None or not section or text.endswith("\\") or text.count('"') % 2:
            return None
        key, value = section + entry[1].lower(), entry[2] or ""
        if not _plain(key, value):
            odd.append((key, value))
    return odd


def is_settings(path: Path) -> bool:
    """Whether files of that name hold git's settings."""
    return path.name in ("config", "config.worktree", ".gitmodules")


def is_plain(path: Path) -> bool:
    """Whether a `.git`, a `.gitmodules`, or one of `GitDirs.executed_paths` is as git makes it. For a `.git`, those
    paths are not checked. Blocking."""
    if path.is_symlink():
        return False
    if path.name == ".git":
        git_dirs = repository(path)
        return git_dirs is not None and not os.path.lexists(git_dirs.common / "objects" / "info" / "alternates")
    try:
        kind = path.lstat().st_mode
        if path.name == "hooks":
            return stat.S_ISDIR(kind) and all(hook.name.endswith(".sample") for hook in path.iterdir())
        data = _text(path) if stat.S_ISREG(kind) else None
    except FileNotFoundError:
        return True
    except OSError:
        return False
    if data is None:
        return False
    if is_settings(path):
        return odd_settings(data) == []
    if path.name == "commondir":
        return path.parent.parent.name == "worktrees" and data.strip() == b"../.."
    return path.name == "gitdir" or (path.name == "attributes" and not data.strip())


def _plain(key: str, value: str) -> bool:
    if key == _WORKTREE:
        return _MODULE_WORKTREE.fullmatch(value) is not None and ".." not in value.lstrip("./").split("/")
    if key.endswith(".update"):
        return value in ("checkout", "rebase", "merge", "none")
    return _SETTINGS.fullmatch(key) is not None and _ODD_VALUE.search(value) is None


def _text(path: Path) -> bytes | None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        data = file.read(_LARGEST + 1)
    return data if len(data) <= _LARGEST else None
