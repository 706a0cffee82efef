"""Undo what a command did to protected files, those git, editors, shells and agents obey.

The files are compared with what was there before: new ones are quarantined, changed ones restored. Nothing is lost:
whatever the command made is moved to a folder in Amanu's state.
"""

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
from amanu.sandbox.file_tree import TooLarge, Tree, file_bytes, put_back, read_tree
from amanu.sandbox.git_dirs import GitDirs
from amanu.sandbox.git_settings import is_plain, is_settings, odd_settings
from amanu.sandbox.protected_scan import Identity, ProtectedScan, identity, protected_in_home, scan_protected
from amanu.storage.errors import sync_folder

_SHORT, _SHORT_ONES = 2000, 3
"""Largest size in bytes, and number, of the quarantined texts that are shown."""


@dataclass(frozen=True)
class PriorState:
    """The protected files that were there when a command began."""

    roots: tuple[Path, ...]
    home: Path | None
    repositories: tuple[GitDirs, ...]
    folders: frozenset[str]
    """The folders that were scanned."""
    identities: dict[Path, Identity]
    """Device and inode of all protected files."""
    contents: dict[Path, Tree] = field(default_factory=dict[Path, Tree])
    """The content of those that the sandbox leaves writable."""
    settings: bool = False
    """The command may change git's settings, as git itself does."""
    checkout: bool = False
    """See `SandboxRequirements.checkout`."""

    def joined(self, running: "PriorState") -> "PriorState":
        """This state as of when the command `running` began, which still runs and may have made the changes since."""
        roots = [top for top in running.roots if any(_is_in(top, root) or _is_in(root, top) for root in self.roots)]
        if not roots:
            return self

        def appeared_since(path: Path) -> bool:
            return path not in running.identities and str(path.parent) in running.folders

        identities = {
            path: file_identity for path, file_identity in self.identities.items() if not appeared_since(path)
        }
        contents = {path: content for path, content in self.contents.items() if not appeared_since(path)}
        for path, content in running.contents.items():
            if path in contents or any(_is_in(path, root) for root in self.roots):
                contents[path] = content
        return replace(self, identities=identities, contents=contents)

    def accepting(self, path: Path) -> "PriorState":
        """This state with that protected path as it is now: Amanu has written it, as the user allowed. Blocking."""
        if not any(_is_in(path, root) for root in self.roots):
            return self
        below = [path, *(parent for parent in path.parents if any(root in parent.parents for root in self.roots))]
        top = next((part for part in reversed(below) if is_protected(part.name, part.parent.name)), None)
        if top is None:
            return self
        identities = {
            recorded_path: file_identity
            for recorded_path, file_identity in self.identities.items()
            if recorded_path not in below
        }
        identities |= {part: file_identity for part in below if (file_identity := identity(part)) is not None}
        # The command may be able to write what was replaced under it, and what is new.
        written = top if top in self.contents or top not in self.identities else path
        contents = {
            recorded_path: content for recorded_path, content in self.contents.items() if recorded_path != written
        }
        with contextlib.suppress(TooLarge):
            contents[written] = read_tree(written)
        return replace(self, identities=identities, contents=contents)

    def to_json(self) -> dict[str, Any]:
        return {
            "roots": [str(root) for root in self.roots],
            "home": None if self.home is None else str(self.home),
            "repositories": [
                [str(repository.folder), str(repository.common), str(repository.top)]
                for repository in self.repositories
            ],
            "folders": [*self.folders],
            "identities": {str(path): list(file_identity) for path, file_identity in self.identities.items()},
            "contents": {str(path): content for path, content in self.contents.items()},
            "settings": self.settings,
            "checkout": self.checkout,
        }

    @staticmethod
    def from_json(record: dict[str, Any]) -> "PriorState":
        return PriorState(
            tuple(map(Path, record["roots"])),
            None if record["home"] is None else Path(record["home"]),
            tuple(GitDirs(*map(Path, paths)) for paths in record["repositories"]),
            frozenset(record["folders"]),
            {Path(path): (device, inode) for path, (device, inode) in record["identities"].items()},
            {Path(path): content for path, content in record["contents"].items()},
            settings=record["settings"],
            checkout=record["checkout"],
        )


@dataclass(frozen=True)
class QuarantineResult:
    """What was undone after a command, as absolute paths."""

    quarantined: tuple[Path, ...] = ()
    """Was new, and has been moved to `folder`."""
    restored: tuple[Path, ...] = ()
    """Was changed or removed, and has been restored."""
    folder: Path | None = None
    """Where quarantined files and the changed versions of restored ones are now, by their absolute paths."""
    added: tuple[Path, ...] = ()
    """Is new in a new folder, and was left there."""
    failed: tuple[Path, ...] = ()
    """Could not be quarantined or restored."""
    secrets: tuple[Path, ...] = ()
    """Holds secrets, had been moved with its folder, and is back in its place."""

    def __bool__(self) -> bool:
        return any((self.quarantined, self.restored, self.added, self.failed, self.secrets))

    def texts(self) -> dict[Path, str]:
        """A few short quarantined texts by their former paths, so that the model can propose them as edits.
        Blocking."""
        texts: dict[Path, str] = {}
        for folder, below, names in os.walk(self.folder or ""):
            below[:] = sorted(name for name in below if name != ".git")
            for path in (Path(folder, name) for name in sorted(names)):
                if is_secret(path.as_posix()):
                    continue
                with contextlib.suppress(OSError, ValueError):
                    if not path.is_symlink() and path.is_file() and path.stat().st_size <= _SHORT:
                        texts[Path("/") / path.relative_to(self.folder or "")] = path.read_text("utf-8")
                if len(texts) == _SHORT_ONES:
                    return texts
        return texts

    def joined(self, earlier: "QuarantineResult") -> "QuarantineResult":
        return QuarantineResult(
            (*earlier.quarantined, *self.quarantined),
            (*earlier.restored, *self.restored),
            self.folder or earlier.folder,
            (*earlier.added, *self.added),
            (*earlier.failed, *self.failed),
            (*earlier.secrets, *self.secrets),
        )


def settle(prior: PriorState, folder: Path) -> QuarantineResult:
    """Quarantine and restore what must be, after the command has ended. `folder` is created when needed. Blocking."""
    return _Settling(prior, folder).run()


class _Settling:
    def __init__(self, prior: PriorState, folder: Path) -> None:
        self._prior = prior
        self._folder = folder
        self._quarantined: list[Path] = []
        self._restored: list[Path] = []
        self._added: list[Path] = []
        self._failed: list[Path] = []

    def run(self) -> QuarantineResult:
        scan = self._scan()
        if self._restore_repositories(scan):
            scan = self._scan()
        runs, home = scan.executed_paths(), protected_in_home(self._prior.roots, self._prior.home)
        for path in sorted({*scan.names, *runs}):
            self._judge(path, gits=path in runs, homes=path in home)
        for path, content in self._prior.contents.items():
            self._compare(path, content)
        used = self._folder if self._folder.exists() else None
        return QuarantineResult(
            tuple(self._quarantined), tuple(self._restored), used, tuple(self._added), tuple(self._failed)
        )

    def _scan(self) -> ProtectedScan:
        prior = self._prior  # its folders may no longer be among the nearest
        return scan_protected(prior.roots, prior.home, prior.repositories, prior.folders, checkout=prior.checkout)

    def _restore_repositories(self, scan: ProtectedScan) -> bool:
        """Move repositories back that were moved away. Returns whether any was."""
        moved = False
        present = {identity(path) for path in scan.names}
        for path, expected in self._prior.identities.items():
            if (
                path.name.casefold() != ".git"
                or identity(path) == expected
                or expected in present
                or not path.parent.is_dir()
            ):
                continue
            moved_to = _find_by_identity(expected, scan.folders)
            with self._failing(path):
                if moved_to is None and path.exists():
                    continue  # a different one, judged later
                if moved_to is None:
                    raise OSError(errno.ENOENT, "it is gone")
                if os.path.lexists(path):
                    self._quarantine(path)
                moved_to.rename(path)
                self._restored.append(path)
                moved = True
        return moved

    def _judge(self, path: Path, *, gits: bool, homes: bool) -> None:
        """Quarantine a path unless it may stay. `gits`: git runs it in a repository; `homes`: a login runs it."""
        prior, current = self._prior, identity(path)
        if current is None or path in prior.contents or prior.identities.get(path) == current:
            return
        gits = gits or path.name in (".git", ".gitmodules")
        if self._moved_unchanged(path, current) or (gits and is_plain(path)):
            return
        # `.github` itself is not protected: a file in a new one counts as one beside it.
        beside = path.parent if is_protected(path.name, "") else path.parent.parent
        if str(beside) not in prior.folders and not gits and not homes:
            self._added.append(path)
            return
        with self._failing(path):
            self._quarantine(path)
            self._quarantined.append(path)

    def _moved_unchanged(self, path: Path, current: Identity) -> bool:
        """Whether it was moved along with its folder, unchanged."""
        former_path = next(
            (candidate for candidate, known_identity in self._prior.identities.items() if known_identity == current),
            None,
        )
        if former_path is None or identity(former_path) == current:
            return False
        with contextlib.suppress(TooLarge):
            return former_path not in self._prior.contents or read_tree(path) == self._prior.contents[former_path]
        return False

    def _compare(self, path: Path, content: Tree) -> None:
        """Restore the parts of a path that were changed."""
        if not path.parent.is_dir() or os.path.realpath(path.parent) != str(path.parent):
            return  # its folder is gone, and the path with it
        try:
            current = read_tree(path)
        except TooLarge:
            current = None
        if current == content or (
            self._prior.settings and current is not None and _is_gits_own_change(path, content, current)
        ):
            return
        changed = (
            {"", *content}
            if current is None
            else {name for name in {*content, *current} if content.get(name) != current.get(name)}
        )
        with self._failing(path):
            for name in sorted(changed):
                part = path / name if name else path
                part_identity, current_entry = identity(part), (current or {}).get(name)
                both_folders = (
                    current_entry is not None
                    and current_entry[0] == "folder"
                    and content.get(name, [""])[0] == "folder"
                )
                if part_identity is not None and not both_folders:
                    self._quarantine(part)
            put_back(path, content, changed)
            sync_folder(path.parent)
            self._restored.append(path)

    def _quarantine(self, path: Path) -> None:
        target = self._folder / path.relative_to(path.anchor)
        while os.path.lexists(target):
            target = target.with_name(f"{target.name}~")
        _make_folders(target.parent, self._folder)
        _make_writable(path.parent)
        if not path.is_symlink() and path.is_dir():
            _make_writable(path)
        try:
            path.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _move_across_filesystems(path, target)
        sync_folder(target.parent)
        sync_folder(path.parent)

    @contextlib.contextmanager
    def _failing(self, path: Path):
        try:
            yield
        except OSError:
            self._failed.append(path)


def _is_gits_own_change(path: Path, content: Tree, current: Tree) -> bool:
    prior_text, current_text = file_bytes(content), file_bytes(current)
    if not is_settings(path) or prior_text is None or current_text is None or content[""][1] != current[""][1]:
        return False
    odd = odd_settings(prior_text)
    return odd is not None and odd == odd_settings(current_text)


def _find_by_identity(wanted_identity: Identity, folders: Iterable[str]) -> Path | None:
    """The path in these folders that has this identity."""
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.inode() == wanted_identity[1] and identity(Path(entry.path)) == wanted_identity:
                    return Path(entry.path)
    return None


def _is_in(path: Path, root: Path) -> bool:
    return path == root or root in path.parents


def _make_folders(folder: Path, top: Path) -> None:
    """Create folders, durably and closed to other users."""
    missing = [ancestor for ancestor in (folder, *folder.parents) if not ancestor.exists()]
    for ancestor in reversed(missing):
        ancestor.mkdir(mode=0o700)
        sync_folder(ancestor.parent)


def _make_writable(folder: Path) -> None:
    """Give ourselves write access to a folder; a command may have taken it away."""
    mode = folder.stat().st_mode
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)


def _move_across_filesystems(path: Path, target: Path) -> None:
    """Move to another file system; sockets and pipes are left out."""
    if path.is_symlink() or not path.is_dir():
        shutil.copy2(path, target, follow_symlinks=False)
        path.unlink()
        return
    for folder, _, _ in os.walk(path):
        _make_writable(Path(folder))
    shutil.copytree(path, target, symlinks=True, ignore=_special_files)
    shutil.rmtree(path)


def _special_files(folder: str, names: list[str]) -> list[str]:
    kinds = {name: stat.S_IFMT(os.lstat(f"{folder}/{name}").st_mode) for name in names}
    return [name for name, kind in kinds.items() if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)]
