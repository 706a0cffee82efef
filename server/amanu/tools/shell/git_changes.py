"""What a command in a layer changed of git's own files, and how that comes home: all or nothing.

Only what git itself writes when it stages, commits, switches, merges and stashes, as regular files: anything else could
run programs (settings, hooks, the steps of a rebase), or lead elsewhere (links, other object stores).
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from amanu.sandbox.layers.apply import ApplyError, Batch, Busy, WorkspaceChanged
from amanu.sandbox.layers.changes import Change
from amanu.sandbox.layers.layer import LayerRoot
from amanu.tools.shell.held_files import HeldFile, HeldFolder, identity

_STAGED = re.compile(
    r"index|COMMIT_EDITMSG|objects/[0-9a-f]{2}/[0-9a-f]{38}|objects/pack/pack-[0-9a-f]+\.(?:pack|idx|rev)"
)
_KEPT = re.compile(
    r"(?:refs|logs)/.+|packed-refs|HEAD|ORIG_HEAD|FETCH_HEAD|COMMIT_EDITMSG|MERGE_HEAD|MERGE_MODE|MERGE_MSG|MERGE_AUTOSTASH"
    r"|SQUASH_MSG|AUTO_MERGE|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD"
)
_DELETED = re.compile(r"refs/.+|logs/refs/.+|MERGE_\w+|SQUASH_MSG|AUTO_MERGE|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD")
"""Paths in git's folder: what is staged, what else may come home, and what may be gone."""
_ORDER = ("objects", "index", "packed-refs", "refs")
"""What is named comes home before what names it."""
_LOCK = "index.lock"
_MADE = re.compile(r"([0-9a-f]+) (?:commit|cherry-pick|revert)\b")
_NAMES = ("refs/", "HEAD ")
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
    commits: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Hash → files of the last commits."""
    only_git: bool = False
    """Nothing but git ran."""

    @property
    def acts(self) -> list[str]:
        """Its commits, merges and switches; the names that moved where git noted nothing else."""
        return [message for message in self.messages if not message.startswith(_NAMES)] or self.messages

    @property
    def committed(self) -> list[str]:
        """The files of its commits."""
        made = [match[1] for act in self.acts if (match := _MADE.match(act))]
        files = [name for commit, names in self.commits.items() if commit.startswith(tuple(made)) for name in names]
        return list(dict.fromkeys(files))

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
    git.files.append(HeldFile(root, change.path, identity(change), stored, change.kind))
    git.messages += _messages(name, stored, 0 if below is None else below.st_size)


def git_batches(git: GitChanges, held: HeldFolder) -> list[Batch]:
    """What brings it into the workspace: for each repository all of its files."""
    roots = dict.fromkeys(file.root for file in git.files)
    return [
        held.batch(sorted((file for file in git.files if file.root == root), key=_rank), root.path / ".git" / _LOCK)
        for root in roots
    ]


def apply_git(batch: Batch) -> str:
    """Bring it into the workspace, unless the repository has changed meanwhile. Returns why not, as sentences; "" for
    done. Blocking."""
    try:
        batch.apply()
    except Busy:
        return (
            f"Another git process is using the repository (.git/{_LOCK} exists), so the command's changes to the "
            "repository were not applied. Run the command again when that process has ended."
        )
    except WorkspaceChanged:
        return "The repository changed meanwhile. The command's changes to it were not applied; run the command again."
    except ApplyError as error:
        return f"Changes to the repository were not applied. {error}"
    return ""


def _inner(file: HeldFile) -> str:
    return file.name.removeprefix(".git/")


def _rank(file: HeldFile) -> tuple[bool, bool, int]:
    """Where it stands in the order. New names need room, so they come before what no lack of it can stop."""
    part = _inner(file).split("/")[0]
    return part != "objects", file.below is not None, _ORDER.index(part) if part in _ORDER else len(_ORDER)


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
