"""Real repositories, and the changes that a command line makes in a copy of one, by value."""

import asyncio
import atexit
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from amanu.sandbox.layers.changes import Change
from amanu.sandbox.layers.layer import LayerRoot
from amanu.storage.file_store import FileStore
from amanu.tools.shell import git_looks
from amanu.tools.shell.git_changes import GitChanges, describe, read_git
from amanu.tools.shell.taken_files import TakenFolder
from amanu.workspace.git.change import RepositoryChange

_LOOKS = {
    "files": "ls-files -s -t -v",
    "refs": "for-each-ref",
    "status": "status --porcelain",
    "commits": "log --all --format=%H",
    "head": "rev-parse --symbolic-full-name HEAD",
    "stashes": "stash list",
    "records": "reflog",
}
Look = dict[str, str]


def environment() -> dict[str, str]:
    """An environment with only git's own defaults, and one author."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true", "LC_ALL": "C"}
    people = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _PERSON.items()}
    return {"PATH": os.environ["PATH"], "HOME": os.devnull, **settings, **people}


_PERSON = {"NAME": "A Ünicode", "EMAIL": "a@b.example"}


def shell(root: Path, line: str, *, check: bool = True) -> str:
    done = subprocess.run(["sh", "-ec", line], cwd=root, env=environment(), capture_output=True, check=False)
    assert not check or done.returncode == 0, f"{line}: {done.stderr.decode()}"
    return done.stdout.decode("utf-8", "surrogateescape")


def repository(root: Path, *lines: str) -> Path:
    """A repository with two commits and a few branches, after these command lines."""
    shutil.copytree(_template(), root, symlinks=True)
    shell(root, "; ".join(["git update-index -q --refresh", *lines]))
    return root


@cache
def _template() -> Path:
    """The repository that others begin with; it is removed when the process ends."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = folder / "root"
    root.mkdir()
    shell(root, "git init -q -b main; printf 'a\n' > a; printf 'b\n' > b; mkdir d; printf 'c\n' > d/c; git add .")
    shell(root, "git commit -qm first; printf 'more\n' >> a; git commit -qam second; git branch old HEAD~; git tag v1")
    return root


def looked_at(root: Path) -> Look:
    """All that git tells about a repository, once it has noted anew how the files look."""
    shell(root, "git update-index -q --refresh || true")
    assert shell(root, "git fsck --strict --no-dangling") == ""
    assert not [*(root / ".git").rglob("*.lock")] and not [*(root / ".git").glob("*.amanu-tmp")]
    return {name: shell(root, f"git {line}", check=False) for name, line in _LOOKS.items()}


def git_printed(words: Sequence[str], folder: Path) -> str | None:
    done = subprocess.run(["git", *words], cwd=folder, env=environment(), capture_output=True, check=False)
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None


class ChangedCopy:
    """The changes that a command line makes in a copy of a repository, read as they are read from a layer."""

    def __init__(self, root: Path, line: str, base: Path, *, check: bool = True) -> None:
        self.root = root
        self.copy = base / "copy"
        self._base = base
        self._before = snapshot(root / ".git")
        shutil.copytree(root, self.copy, symlinks=True)
        self._begun = time.time_ns()
        shell(self.copy, line, check=check)
        self.store = FileStore(base / "files")
        self.git = self._read()
        self.changes = self.git.values

    @property
    def change(self) -> RepositoryChange:
        assert not self.git.refused, self.git.refused
        return RepositoryChange.decode(self.changes[0].encode())

    def finish_files(self) -> None:
        """Give the repository the copy's working tree, which rows of their own would do."""
        for path in [path for path in self.root.iterdir() if path.name != ".git"]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in [path for path in self.copy.iterdir() if path.name != ".git"]:
            copied = shutil.copytree if path.is_dir() else shutil.copy2
            copied(path, self.root / path.name)

    def _read(self) -> GitChanges:
        layer = self._base / "layer"
        found = self.root.stat()
        root = LayerRoot(self.root, (found.st_dev, found.st_ino), layer / "0")
        after = snapshot(self.copy / ".git")
        changed = sorted(name for name in {*self._before, *after} if self._before.get(name) != after.get(name))
        for name in changed:
            (root.upper / name).parent.mkdir(parents=True, exist_ok=True)
            if name in after:
                shutil.copy2(self.copy / name, root.upper / name)
        with patch.object(git_looks, "git_prints", self._prints):
            look = asyncio.run(git_looks.look_at_repository(cast("Any", None), root, layer))
        git, taken = GitChanges(), TakenFolder(layer)
        for name in changed:
            below = (self.root / name).lstat() if name in self._before else None
            read_git(root, Change(name, "file" if name in after else "deleted", 0o644, below), self._begun, git, taken)
        describe(git, {self.root: look}, self.store, adds=False)
        return git

    async def _prints(self, _: Any, words: Sequence[str], folder: Path, *, layer: Path | None = None) -> str | None:
        where = folder if layer is None else self.copy
        return git_printed(words, where)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Path below the folder's parent → content."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in paths}
