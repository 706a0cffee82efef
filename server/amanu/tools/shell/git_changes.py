"""The changes that a command in a layer made to git's own files, as values and as rows; all of them come home, or none.

Accepted are only regular files that git itself writes when it stages, commits, switches, merges and stashes: anything
else could run programs (settings, hooks, the steps of a rebase), or lead elsewhere (links, other object stores).
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.proposals.rows import RowChange
from amanu.sandbox.layers.changes import Change
from amanu.sandbox.layers.layer import LayerRoot
from amanu.storage.errors import is_full
from amanu.storage.file_store import FileStore
from amanu.system.untrusted_files import opened_file, opened_folder
from amanu.text.amounts import plural
from amanu.text.display import all_files
from amanu.tools.shell.taken_files import TakenFile, TakenFolder, identity
from amanu.workspace.git.change import FILES, RepositoryChange, changed_refs, log_change
from amanu.workspace.git.index import Entries, Entry, UnknownIndex, blob_name, read_index
from amanu.workspace.git.objects import object_name
from amanu.workspace.git.refs import (
    MAX_COMMITS,
    PACKED,
    Refs,
    RepositoryLook,
    moves,
    read_bytes,
    read_packed,
    read_ref,
    read_text,
)
from amanu_protocol.items import Line, RowVersion

_OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{38})")
"""Packs could have other content for objects that there are."""
_KEPT = re.compile(
    r"(?:refs|logs)/.+|packed-refs|HEAD|ORIG_HEAD|FETCH_HEAD|COMMIT_EDITMSG|MERGE_HEAD|MERGE_MODE|MERGE_MSG|MERGE_AUTOSTASH"
    r"|SQUASH_MSG|AUTO_MERGE|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD"
)
_DELETED = re.compile(r"refs/.+|logs/refs/.+|MERGE_\w+|SQUASH_MSG|AUTO_MERGE|CHERRY_PICK_HEAD|REVERT_HEAD|REBASE_HEAD")
"""Paths in git's folder: new objects, what else may come home, and what may be gone."""
_REPLACED = "refs/replace/"
_TOLD = re.compile(r"index|logs/.+|refs/.+|packed-refs|HEAD|COMMIT_EDITMSG|AUTO_MERGE")
"""Files whose change is told as refs, records and entries, or leads nowhere."""
_NAMELESS = re.compile(rf"{_OBJECT.pattern}|index|COMMIT_EDITMSG")
"""Files that matter only with others: objects that nothing names, and how the index remembers files to look."""
_INDEX, _LOGS = "index", "logs/"
_SHORT = 10
"""Digits shown of a commit."""
_PLAIN, _EXECUTABLE, _LINK = 0o100644, 0o100755, 0o120000
_ABSENT = (0, "0" * 40)
_COMPARED = 64 << 20
"""Bytes of a file that is compared with what is staged; a larger one is asked about."""


@dataclass
class GitChanges:
    """The changes that a command made to git's own files."""

    files: list[TakenFile] = field(default_factory=list[TakenFile])
    refused: str = ""
    """A file that does not come home from a layer; "" for none."""
    commits: list[str] = field(default_factory=list[str])
    """Its new commits, for the user: "3f2a41c0de commit: Strip prices"."""
    committed: list[str] = field(default_factory=list[str])
    """The files of these commits, for the user: "a.txt", "b.txt (new)"."""
    moves: list[str] = field(default_factory=list[str])
    """The other changes that a yes makes, for the user: "branch main: 0cf7dd74a3 → 3f2a41c0de", "staged
    otherwise: a.txt"."""
    is_plain_staging: bool = False
    """Whether it only staged files as the workspace has them, which is no decision of its own."""
    substance: list[object] = field(default_factory=list[object])
    """One entry per repository: all that changed there, without the ids of new commits; None if that is not known."""
    values: list[RepositoryChange] = field(default_factory=list[RepositoryChange])
    """All of it by value, one value per repository."""
    rows: list[RowChange] = field(default_factory=list[RowChange])
    """The same, as rows of a proposal."""

    @property
    def needs_decision(self) -> bool:
        return bool(self.files) and not self.is_plain_staging


def read_git(root: LayerRoot, change: Change, begun: int, git: GitChanges, taken: TakenFolder) -> None:
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
        allowed = plain and (_KEPT.fullmatch(name) or name == _INDEX or (is_new_object and _OBJECT.fullmatch(name)))
    if not allowed or name.endswith(".lock") or (below is not None and below.st_ctime_ns >= begun):
        git.refused = git.refused or name
        return
    stored = None if change.kind == "deleted" else taken.take(root, change.path)
    git.files.append(TakenFile(root, change.path, identity(change), stored, change.kind))


def describe(git: GitChanges, looks: Mapping[Path, RepositoryLook | None], store: FileStore, *, adds: bool) -> None:
    """Describe in `git` the changes that a yes makes, from refs before and after, the objects and the index, and keep
    them in the store; or set `git.refused` if that cannot be told. A repository in which none of these changed is left
    out. `adds`: nothing but `git add` ran. Raises `OSError` if the disk is full. Blocking."""
    plain: list[bool] = []
    for root in dict.fromkeys(file.root for file in git.files):
        files = {_inner(file): file for file in git.files if file.root == root}
        look = looks.get(root.path)
        try:
            if look is None:
                raise OSError("git cannot tell")
            repository = _Repository(root, files, look)
            git.refused = git.refused or repository.refused
            commits, changed = repository.commits, repository.changes
            git.commits += commits
            git.committed += repository.committed
            git.moves += changed
            git.substance.append(repository.substance)
            if not (changed or commits or any(not _NAMELESS.fullmatch(name) for name in files)):
                git.files = [file for file in git.files if file.root != root]
            elif not git.refused:
                plain.append(repository.is_plain_staging)
                value = RepositoryChange.decode(repository.change(store).encode())
                git.values.append(value)
                git.rows.append(repository.row(value, store))
            if not all(file.is_unchanged() for file in files.values()):
                raise OSError("the repository changed meanwhile")
        except UnknownIndex:
            git.refused = git.refused or _INDEX
            return
        except ValueError:
            git.refused = git.refused or PACKED
            return
        except OSError as error:
            if is_full(error):
                raise
            git.refused = git.refused or next(iter(files))
            return
    store.sync()
    git.committed = list(dict.fromkeys(git.committed))
    git.is_plain_staging = adds and all(plain)


class _Repository:
    """The changes in one repository."""

    def __init__(self, root: LayerRoot, files: Mapping[str, TakenFile], look: RepositoryLook) -> None:
        self._root = root
        self._files = files
        self._look = look
        self._after = self._refs()
        self._old, self._new = self._entries()
        self._staged = sorted({key for key in {*self._old, *self._new} if self._old.get(key) != self._new.get(key)})
        """The keys of the entries that differ."""

    @property
    def refused(self) -> str:
        """A file that would have git show commits that are not there, or that records what did not happen; "" for
        none."""
        if len(self._look.commits) > MAX_COMMITS:
            return f"refs (more than {MAX_COMMITS} new commits)"
        return next((name for name in self._files if self._is_forged(name)), "")

    @property
    def substance(self) -> object:
        """See `GitChanges.substance`."""
        if any(not _is_told(name) or self._lost_record(name) for name in self._files):
            return None
        old, new = self._look.before.values, self._after.values
        moved = {name: new.get(name, "") for name in {*old, *new} if old.get(name) != new.get(name)}
        if not all(self._is_forward(old.get(name, ""), value) for name, value in moved.items()):
            return None
        numbers = {commit.id: at for at, commit in enumerate(self._look.commits)}
        staged = [(key, self._new.get(key)) for key in self._staged if not self._is_in_head(key)]
        commits = [(commit.subject, commit.contents) for commit in self._look.commits]
        return {name: numbers.get(value, value) for name, value in moved.items()}, commits, staged

    def _is_forward(self, old: str, new: str) -> bool:
        """Whether a ref that leads to a new commit leads to the old one as well, or is new."""
        commits = {commit.id: commit for commit in self._look.commits}
        seen, todo = {new}, [new]
        while todo:
            parents = commits[found].parents if (found := todo.pop()) in commits else ()
            todo += [parent for parent in parents if parent not in seen]
            seen.update(parents)
        return new not in commits or old in ("", *seen)

    @property
    def commits(self) -> list[str]:
        """A line for each new commit."""
        return [f"{commit.id[:_SHORT]} commit: {commit.subject}" for commit in self._look.commits]

    @property
    def committed(self) -> list[str]:
        """The files of the new commits."""
        return list(dict.fromkeys(name for commit in self._look.commits for name in commit.files))

    def row(self, change: RepositoryChange, store: FileStore) -> RowChange:
        """The change as a row, whose value is kept in the store. Raises `OSError`. Blocking."""
        committed = [f"Files committed: {all_files(self.committed)}"] if self.committed else []
        texts = [*self.commits, *committed, *self.changes]
        count = len(self._look.commits)
        title = plural(count, "commit") if count else "the git repository changes"
        lines = [Line(tone="warning", text=text) for text in texts]
        data = change.encode()
        after = RowVersion(kind="repository", size=len(data), file_id=store.add_bytes(data))
        return RowChange("git", self._root.path, None, after, title, lines, committed=change.committed_paths)

    @property
    def changes(self) -> list[str]:
        """Refs, files of git's own, and the index, each on a line; commits apart."""
        others = [f".git/{name} is changed" for name in self._files if not _is_told(name)]
        records = [line for name in self._files if (line := self._lost_record(name))]
        return [*moves(self._look.before, self._after), *records, *others, *self._index_lines()]

    def change(self, store: FileStore) -> RepositoryChange:
        """All of it, by value; its objects are kept in the store. Raises `OSError`. Blocking."""
        names = [name for name in self._files if not (_OBJECT.fullmatch(name) or name in (_INDEX, PACKED))]
        logs = {name.removeprefix(_LOGS): self._read(name) for name in names if name.startswith(_LOGS)}
        files = {name: self._read(name) for name in names if name in FILES}
        return RepositoryChange(
            self._root.path,
            changed_refs(self._look.before.values, self._after.values),
            {key: (self._old.get(key), self._new.get(key)) for key in self._staged},
            {name: log_change(*sides) for name, sides in logs.items()},
            {name: sides for name, sides in files.items() if sides[0] != sides[1]},
            {found[1] + found[2]: self._add(name, store) for name in self._files if (found := _OBJECT.fullmatch(name))},
            [commit.id for commit in self._look.commits],
            list(dict.fromkeys(path for commit in self._look.commits for path, _, _ in commit.contents)),
        )

    def _read(self, name: str) -> tuple[bytes | None, bytes | None]:
        """The content of a file before and after; None for no file."""
        file = self._files[name]
        before = None if file.below is None else read_bytes(file.path)
        return before, None if file.stored is None else read_bytes(file.stored)

    def _add(self, name: str, store: FileStore) -> str:
        stored = self._files[name].stored
        assert stored is not None
        with opened_folder(stored.parent) as folder, opened_file(stored.name, folder) as handle:
            return store.add(handle)

    @property
    def is_plain_staging(self) -> bool:
        """Whether it staged files as the workspace has them, that are not protected, and nothing else."""
        return all(map(_NAMELESS.fullmatch, self._files)) and all(map(self._is_as_in_workspace, self._staged))

    def _refs(self) -> Refs:
        """The refs as they are with the changes."""
        loose, packed = dict(self._look.before.loose), dict(self._look.before.packed)
        for name, file in self._files.items():
            if name == PACKED:
                packed = {} if file.stored is None else dict(read_packed(file.stored))
            elif file.stored is None:
                loose.pop(name, None)
            elif name == "HEAD" or name.startswith("refs/"):
                loose[name] = read_ref(file.stored)
        return Refs(loose, packed)

    def _entries(self) -> tuple[Entries, Entries]:
        """The entries of the index before and after."""
        file = self._files.get(_INDEX)
        if file is None or file.stored is None:
            return {}, {}
        before = b"" if file.below is None else file.path.read_bytes()
        return read_index(before), read_index(file.stored.read_bytes())

    def _lost_record(self, name: str) -> str:
        """A line about a ref's record that no longer has all that it had: stashes are nowhere else."""
        file, ref = self._files[name], name.removeprefix("logs/")
        if name == ref or file.below is None or (file.stored is None and ref not in self._after.values):
            return ""
        old, new = read_text(file.path).splitlines(), [] if file.stored is None else read_text(file.stored).splitlines()
        lost = len([line for line in old if line not in new]) if new[: len(old)] != old else 0
        return f"the record of {ref} loses {plural(lost, 'line')}" if lost else ""

    def _is_forged(self, name: str) -> bool:
        stored = self._files[name].stored
        if stored is not None and (found := _OBJECT.fullmatch(name)):
            return not _is_object(stored, found[1] + found[2])
        if name == PACKED:
            old, new = self._look.before.values, self._after.packed
            return any(ref.startswith(_REPLACED) and old.get(ref) != commit for ref, commit in new.items())
        if stored is None or not name.startswith("logs/"):
            return name.startswith(_REPLACED)
        *_, last = ["", *read_text(stored).splitlines()]
        return bool(last) and last.split(" ")[1:2] != [self._after.resolved(name.removeprefix("logs/"))]

    def _index_lines(self) -> list[str]:
        """Lines about entries that changed, except those that are now as in HEAD."""
        names = dict.fromkeys(key[0] for key in self._staged if not self._is_in_head(key))
        unseen = [key[0] for key in self._staged if self._is_hidden(key)]
        lines = [f"staged otherwise: {all_files([*names])}"] if names else []
        return lines + ([f"git status no longer looks at {all_files(unseen)}"] if unseen else [])

    def _is_in_head(self, key: tuple[str, int]) -> bool:
        entry = self._new.get(key)
        if entry is not None and (entry.stage or entry.is_intended or entry.is_hidden):
            return False
        return self._look.head.get(key[0]) == (_ABSENT if entry is None else (entry.mode, entry.object))

    def _is_hidden(self, key: tuple[str, int]) -> bool:
        old, new = self._old.get(key), self._new.get(key)
        return new is not None and new.is_hidden and not (old is not None and old.is_hidden)

    def _is_as_in_workspace(self, key: tuple[str, int]) -> bool:
        """Whether the file is staged as the workspace has it, and nothing is lost that the user had staged."""
        entry, path = self._new.get(key), key[0]
        if entry is None or entry.stage or entry.is_hidden or entry.is_intended:
            return False
        is_free = self._look.staged is not None and path not in self._look.staged and not protected.is_guarded(path)
        return is_free and _is_file(entry, self._root.path / path)


def _inner(file: TakenFile) -> str:
    return file.name.removeprefix(".git/")


def _is_told(name: str) -> bool:
    return bool(_OBJECT.fullmatch(name) or _TOLD.fullmatch(name))


def _is_file(entry: Entry, path: Path) -> bool:
    """Whether the file there is what is staged, byte for byte."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            mode, data = _LINK, os.fsencode(path.readlink())
        elif stat.S_ISREG(found.st_mode) and found.st_size <= _COMPARED:
            mode, data = (_EXECUTABLE if found.st_mode & 0o100 else _PLAIN), path.read_bytes()
        else:
            return False
    except OSError:
        return False
    return entry.mode == mode and entry.object == blob_name(data)


def _is_object(stored: Path, name: str) -> bool:
    """Whether a loose object of git has the content that its name says."""
    try:
        with opened_folder(stored.parent) as folder, opened_file(stored.name, folder) as handle:
            return object_name(handle) == name
    except OSError:
        return False


def _is_folder(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode)


def _is_regular(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode)
