"""What a command in a layer changed of git's own files, and how that comes home: all or nothing.

Only what git itself writes when it stages, commits, switches, merges and stashes, as regular files: anything else could
run programs (settings, hooks, the steps of a rebase), or lead elsewhere (links, other object stores).
"""

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from amanu.sandbox.layers.changes import Change
from amanu.sandbox.layers.layer import LayerError, LayerRoot
from amanu.tools.shell.held_files import HeldFile, HeldFolder, identity

_STAGED = re.compile(r"index|objects/[0-9a-f]{2}/[0-9a-f]{38}|objects/pack/pack-[0-9a-f]+\.(?:pack|idx|rev)")
_KEPT = re.compile(
    r"(?:refs|logs)/.+|packed-refs|HEAD|ORIG_HEAD|FETCH_HEAD|COMMIT_EDITMSG|MERGE_HEAD|MERGE_MODE|MERGE_MSG|MERGE_AUTOSTASH"
    r"|SQUASH_MSG|AUTO_MERGE|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD"
)
_DELETED = re.compile(r"refs/.+|logs/refs/.+|MERGE_\w+|SQUASH_MSG|AUTO_MERGE|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD")
"""Paths in git's folder: what is staged, what else may come home, and what may be gone."""
_ORDER = ("objects", "index", "packed-refs", "refs")
"""What is named comes home before what names it: cut short, it leaves what was committed staged."""
_SHORT = 10
"""Digits shown of a commit."""
_SMALL = 1 << 20


@dataclass
class GitChanges:
    """What it changed of git's own files."""

    files: list[HeldFile] = field(default_factory=list[HeldFile])
    messages: list[str] = field(default_factory=list[str])
    """For the user, what git noted of it: "3f2a41c commit: Strip prices", "refs/heads/main is now 3f2a41c"."""
    refused: str = ""
    """A file that does not come home from a layer; "" for none."""
    only_git: bool = False
    """Nothing but git ran."""

    @property
    def needs_decision(self) -> bool:
        """Whether there is something to decide: git alone has staged files, otherwise."""
        return bool(self.files) and not (self.only_git and all(_STAGED.fullmatch(_inner(each)) for each in self.files))


def read_git(root: LayerRoot, change: Change, begun: int, git: GitChanges, held: HeldFolder) -> None:
    """Add a changed path in git's folder. Raises `OSError`. Blocking."""
    name = change.path.removeprefix(".git/")
    below = change.below
    is_new_object = name.startswith("objects/") and below is None
    if change.kind == "folder":
        git.refused = git.refused or ("" if below is None or _is_folder(below) else name)
        return
    if change.kind == "deleted":
        allowed = _DELETED.fullmatch(name) and below is not None and not _is_folder(below)
    else:
        plain = change.kind == "file" and (below is None or _is_regular(below))
        allowed = plain and (_KEPT.fullmatch(name) or name == "index" or (is_new_object and _STAGED.fullmatch(name)))
    if not allowed or name.endswith(".lock") or (below is not None and below.st_ctime_ns >= begun):
        git.refused = git.refused or name
        return
    stored = None if change.kind == "deleted" else held.take(root, change.path)
    git.files.append(HeldFile(root, change.path, change.kind, identity(change), stored))
    git.messages += _messages(name, stored, 0 if below is None else below.st_size)


def bring_git_home(git: GitChanges) -> str:
    """Bring it into the workspace, unless the repository has changed meanwhile. Returns why not, as a sentence; "" for
    done. Blocking."""
    if not git.files:
        return ""
    lock = git.files[0].root.path / ".git" / "index.lock"
    try:
        _lock_index(lock)
    except OSError as error:
        return f"Git is busy in the workspace ({error.strerror}), so no changes to it were applied. Run it again."
    try:
        if not all(file.is_unchanged() for file in git.files):
            return "The repository has changed meanwhile, so no changes to the repository were applied. Run it again."
        for file in sorted(git.files, key=_rank):
            file.bring_home()
    except (OSError, LayerError) as error:
        return f"The changes to the repository could not be applied: {error}"
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()
    return ""


def unlock_indexes(roots: Sequence[Path]) -> None:
    """Remove the locks that a killed daemon left. Blocking."""
    for root in roots:
        lock = root / ".git" / "index.lock"
        with contextlib.suppress(OSError):
            if lock.is_file() and lock.read_bytes()[: len(_OWNER)] == _OWNER.encode():
                _lock_index(lock)
                lock.unlink()


_OWNER = "amanu "


def _lock_index(lock: Path) -> None:
    """Keep git out of the repository, as it does itself. Raises `OSError` when somebody has it locked; a lock of ours
    that a killed daemon left is removed."""
    with contextlib.suppress(OSError, ValueError):
        text = lock.read_text("ascii") if lock.is_file() else ""
        if text.startswith(_OWNER) and not Path(f"/proc/{int(text.removeprefix(_OWNER))}").exists():
            lock.unlink()
    handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(f"{_OWNER}{os.getpid()}")


def _inner(file: HeldFile) -> str:
    return file.name.removeprefix(".git/")


def _rank(file: HeldFile) -> int:
    part = _inner(file).split("/")[0]
    return _ORDER.index(part) if part in _ORDER else len(_ORDER)


def _messages(name: str, stored: Path | None, size: int) -> list[str]:
    if stored is None:
        return [f"{name} is deleted"] if name.startswith("refs/") else []
    if stored.stat().st_size > _SMALL + size:
        return []
    if name == "logs/HEAD":
        lines = stored.read_bytes()[size:].decode("utf-8", "replace").splitlines()
        noted = [line.partition("\t") for line in lines]
        return [f"{commits.split(' ')[1][:_SHORT]} {text}" for commits, _, text in noted if commits.count(" ")]
    if name.startswith("refs/") or name == "HEAD":
        return [f"{name} is now {stored.read_text('utf-8', 'replace').strip().removeprefix('ref: ')[:60]}"]
    return []


def _is_folder(found: os.stat_result) -> bool:
    return found.st_mode & 0o170000 == 0o040000


def _is_regular(found: os.stat_result) -> bool:
    return found.st_mode & 0o170000 == 0o100000
