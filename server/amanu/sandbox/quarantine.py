"""What a command made of that which git, editors, shells and agents obey: compared with what was there before; what is
new is put aside, what was changed is put back. Nothing is lost: all of it is moved to a folder of our state."""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from amanu.core.protected_paths import is_protected, is_secret
from amanu.sandbox.file_tree import TooLarge, Tree, data, put_back, tree
from amanu.sandbox.git_dirs import GitDirs
from amanu.sandbox.git_settings import is_plain, is_settings, odd_settings
from amanu.sandbox.protected_scan import Identity, ProtectedScan, identity, obeyed, of_home
from amanu.storage.errors import sync_folder

_SHORT, _SHORT_ONES = 2000, 3
"""Bytes and number of the texts that are shown of what was put aside."""


@dataclass(frozen=True)
class PriorState:
    """What was there when the command began."""

    roots: tuple[Path, ...]
    home: Path | None
    repositories: tuple[GitDirs, ...]
    folders: frozenset[str]
    """That were looked through."""
    identities: dict[Path, Identity]
    """Of all that is obeyed."""
    contents: dict[Path, Tree] = field(default_factory=dict[Path, Tree])
    """Of that which the sandbox leaves open."""
    settings: bool = False
    """The command may change git's settings, as git itself does."""
    checkout: bool = False
    """See `SandboxRequirements.checkout`."""

    def joined(self, other: "PriorState") -> "PriorState":
        """As it was when `other` began, which still runs: what has changed since, it may have changed."""
        roots = [each for each in other.roots if any(_is_in(each, root) or _is_in(root, each) for root in self.roots)]
        if not roots:
            return self

        def new(path: Path) -> bool:
            return path not in other.identities and str(path.parent) in other.folders

        identities = {path: known for path, known in self.identities.items() if not new(path)}
        contents = {path: kept for path, kept in self.contents.items() if not new(path)}
        for path, kept in other.contents.items():
            if path in contents or any(_is_in(path, root) for root in self.roots):
                contents[path] = kept
        return replace(self, identities=identities, contents=contents)

    def to_json(self) -> dict[str, Any]:
        return {
            "roots": [str(each) for each in self.roots],
            "home": None if self.home is None else str(self.home),
            "repositories": [[str(each.folder), str(each.common), str(each.top)] for each in self.repositories],
            "folders": [*self.folders],
            "identities": {str(path): list(known) for path, known in self.identities.items()},
            "contents": {str(path): kept for path, kept in self.contents.items()},
            "settings": self.settings,
            "checkout": self.checkout,
        }

    @staticmethod
    def from_json(found: dict[str, Any]) -> "PriorState":
        return PriorState(
            tuple(map(Path, found["roots"])),
            None if found["home"] is None else Path(found["home"]),
            tuple(GitDirs(*map(Path, each)) for each in found["repositories"]),
            frozenset(found["folders"]),
            {Path(path): (device, inode) for path, (device, inode) in found["identities"].items()},
            {Path(path): kept for path, kept in found["contents"].items()},
            settings=found["settings"],
            checkout=found["checkout"],
        )


@dataclass(frozen=True)
class QuarantineResult:
    """Whole paths."""

    aside: tuple[Path, ...] = ()
    """Was new, and is there no more."""
    back: tuple[Path, ...] = ()
    """Was changed or removed, and is again as it was."""
    folder: Path | None = None
    """Where what was new, and what changes had made, lie now, by their whole paths."""
    new: tuple[Path, ...] = ()
    """Is new in a new folder, and stays."""
    failed: tuple[Path, ...] = ()
    """Should not be as it is now, and could not be put aside or back."""
    secrets: tuple[Path, ...] = ()
    """Held secrets, had left with the folder above, and is again where it was."""

    def __bool__(self) -> bool:
        return any((self.aside, self.back, self.new, self.failed, self.secrets))

    def texts(self) -> dict[Path, str]:
        """Some short texts among what was put aside, by the paths they had: somebody may have to propose them.
        Blocking."""
        found: dict[Path, str] = {}
        for folder, below, names in os.walk(self.folder or ""):
            below[:] = sorted(each for each in below if each != ".git")
            for path in (Path(folder, each) for each in sorted(names)):
                if is_secret(path.as_posix()):
                    continue
                with contextlib.suppress(OSError, ValueError):
                    if not path.is_symlink() and path.is_file() and path.stat().st_size <= _SHORT:
                        found[Path("/") / path.relative_to(self.folder or "")] = path.read_text("utf-8")
                if len(found) == _SHORT_ONES:
                    return found
        return found

    def joined(self, other: "QuarantineResult") -> "QuarantineResult":
        return QuarantineResult(
            (*other.aside, *self.aside),
            (*other.back, *self.back),
            self.folder or other.folder,
            (*other.new, *self.new),
            (*other.failed, *self.failed),
            (*other.secrets, *self.secrets),
        )


def settle(before: PriorState, folder: Path) -> QuarantineResult:
    """Put aside and back what must be; nothing of the command runs any more. `folder` is made where it is needed.
    Blocking."""
    return _Settling(before, folder).all()


class _Settling:
    def __init__(self, before: PriorState, folder: Path) -> None:
        self._before = before
        self._folder = folder
        self._aside: list[Path] = []
        self._back: list[Path] = []
        self._new: list[Path] = []
        self._failed: list[Path] = []

    def all(self) -> QuarantineResult:
        now = self._look()
        if self._repositories_back(now):
            now = self._look()
        runs, home = now.runs(), of_home(self._before.roots, self._before.home)
        for path in sorted({*now.names, *runs}):
            self._judge(path, gits=path in runs, homes=path in home)
        for path, kept in self._before.contents.items():
            self._compare(path, kept)
        used = self._folder if self._folder.exists() else None
        return QuarantineResult(tuple(self._aside), tuple(self._back), used, tuple(self._new), tuple(self._failed))

    def _look(self) -> ProtectedScan:
        before = self._before  # its folders may not be among the nearest any more
        return obeyed(before.roots, before.home, before.repositories, before.folders, checkout=before.checkout)

    def _repositories_back(self, now: ProtectedScan) -> bool:
        """One that was moved away is put where it was."""
        moved = False
        here = {identity(path) for path in now.names}
        for path, known in self._before.identities.items():
            if path.name.casefold() != ".git" or identity(path) == known or known in here or not path.parent.is_dir():
                continue
            place = _find(known, now.folders)
            with self._failing(path):
                if place is None and path.exists():
                    continue  # another one, judged below
                if place is None:
                    raise OSError(errno.ENOENT, "it is gone")
                if os.path.lexists(path):
                    self._put_aside(path)
                place.rename(path)
                self._back.append(path)
                moved = True
        return moved

    def _judge(self, path: Path, *, gits: bool, homes: bool) -> None:
        """Whether what is there now may stay. `gits`: git runs it, in a repository; `homes`: a login does."""
        before, known = self._before, identity(path)
        if known is None or path in before.contents or before.identities.get(path) == known:
            return
        gits = gits or path.name in (".git", ".gitmodules")
        if self._was_elsewhere(path, known) or (gits and is_plain(path)):
            return
        # `.github` alone is nobody's: what is in a new one is as new as at the top.
        beside = path.parent if is_protected(path.name, "") else path.parent.parent
        if str(beside) not in before.folders and not gits and not homes:
            self._new.append(path)
            return
        with self._failing(path):
            self._put_aside(path)
            self._aside.append(path)

    def _was_elsewhere(self, path: Path, known: Identity) -> bool:
        """It was moved with its folder, as it was."""
        old = next((each for each, other in self._before.identities.items() if other == known), None)
        if old is None or identity(old) == known:
            return False
        with contextlib.suppress(TooLarge):
            return old not in self._before.contents or tree(path) == self._before.contents[old]
        return False

    def _compare(self, path: Path, kept: Tree) -> None:
        """Put back what was changed."""
        if not path.parent.is_dir() or os.path.realpath(path.parent) != str(path.parent):
            return  # its folder is gone, and it with that
        try:
            now = tree(path)
        except TooLarge:
            now = None
        if now == kept or (self._before.settings and now is not None and _is_gits_own_change(path, kept, now)):
            return
        changed = {"", *kept} if now is None else {each for each in {*kept, *now} if kept.get(each) != now.get(each)}
        with self._failing(path):
            for name in sorted(changed):
                each = path / name if name else path
                known, at = identity(each), (now or {}).get(name)
                both_folders = at is not None and at[0] == "folder" and kept.get(name, [""])[0] == "folder"
                if known is not None and not both_folders:
                    self._put_aside(each)
            put_back(path, kept, changed)
            sync_folder(path.parent)
            self._back.append(path)

    def _put_aside(self, path: Path) -> None:
        target = self._folder / path.relative_to(path.anchor)
        while os.path.lexists(target):
            target = target.with_name(f"{target.name}~")
        _make(target.parent, self._folder)
        _opened_up(path.parent)
        if not path.is_symlink() and path.is_dir():
            _opened_up(path)
        try:
            path.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _carry(path, target)
        sync_folder(target.parent)
        sync_folder(path.parent)

    @contextlib.contextmanager
    def _failing(self, path: Path):
        try:
            yield
        except OSError:
            self._failed.append(path)


def _is_gits_own_change(path: Path, kept: Tree, now: Tree) -> bool:
    before, after = data(kept), data(now)
    if not is_settings(path) or before is None or after is None or kept[""][1] != now[""][1]:
        return False
    odd = odd_settings(before)
    return odd is not None and odd == odd_settings(after)


def _find(known: Identity, folders: Iterable[str]) -> Path | None:
    """Where in those folders it is."""
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for each in entries:
                if each.inode() == known[1] and identity(Path(each.path)) == known:
                    return Path(each.path)
    return None


def _is_in(path: Path, root: Path) -> bool:
    return path == root or root in path.parents


def _make(folder: Path, top: Path) -> None:
    """Durable, and closed to others."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700)
        sync_folder(each.parent)


def _opened_up(folder: Path) -> None:
    """A command may have taken us the right to write in its folder."""
    mode = folder.stat().st_mode
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)


def _carry(path: Path, target: Path) -> None:
    """To another file system; sockets and pipes are left out."""
    if path.is_symlink() or not path.is_dir():
        shutil.copy2(path, target, follow_symlinks=False)
        path.unlink()
        return
    for folder, _, _ in os.walk(path):
        _opened_up(Path(folder))
    shutil.copytree(path, target, symlinks=True, ignore=_no_files)
    shutil.rmtree(path)


def _no_files(folder: str, names: list[str]) -> list[str]:
    kinds = {name: stat.S_IFMT(os.lstat(f"{folder}/{name}").st_mode) for name in names}
    return [name for name, kind in kinds.items() if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)]
