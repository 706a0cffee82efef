"""A repository's change, applied to the repository and undone under git's own locks. Everything here blocks.

The repository is compared by value, and only in what the change is about. All that can fail is done before anything
becomes visible; then only renames and removals are left. Each step can be repeated, so the same call finishes what a
killed daemon began.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property

from amanu.storage.file_store import Damaged, FileStore
from amanu.text.display import one_line
from amanu.workspace.git.change import HEAD, STATE, Appended, RepositoryChange
from amanu.workspace.git.folder import GitFolder, UnknownRepository
from amanu.workspace.git.index import Collision, UnknownIndex, changed_index
from amanu.workspace.git.objects import Objects
from amanu.workspace.git.present import INDEX, Present, log_name
from amanu.workspace.git.refs import PACKED, SYMBOLIC, ref_title, value_title, without_packed
from amanu.workspace.git.undo import inverse, undo_fault

MOVED = "The repository changed meanwhile"
"""The beginning of sentences that say so."""
_LOCK = ".lock"
_GITLINK = 0o160000
_TRIES = 5
"""Attempts to take the locks; one fails if another git changes the repository between our reading and our lock."""
_REF_DEPTH, _LOG_DEPTH = 2, 3
"""Levels of folders that stay even if they are empty: refs/heads, logs/refs/heads."""
_LOST = "Amanu's copy of the repository's new objects is missing or damaged. Ask for the change again."


_Content = Callable[[], bytes]


class DoesNotFit(Exception):
    """The change does not fit the repository as it is now. `str()` is a sentence that says why."""


def fault(change: RepositoryChange, *, undo: bool = False, published: Collection[str] = ()) -> str:
    """Why the change, or its undo, does not fit the repository now, as a sentence; "" if it does. `published`: commits
    of the change, one of which a remote-tracking ref contains; one that such a ref names itself is found anyway."""
    try:
        with _opened(change, undo=undo) as work:
            work.require_fit()
            return undo_fault(change, work.present, published) if undo else ""
    except DoesNotFit as error:
        return str(error)
    except OSError as error:
        return _explained(error)


def is_done(change: RepositoryChange, *, undo: bool = False) -> bool:
    """Whether all of it is in the repository, and nothing is left over of a killed daemon."""
    try:
        with _opened(change, undo=undo) as work:
            return work.is_done and not work.is_left_over
    except (DoesNotFit, OSError):
        return False


def is_begun(change: RepositoryChange, *, undo: bool = False) -> bool:
    """Whether a part of it is in the repository, as a killed daemon may leave it."""
    try:
        with _opened(change, undo=undo) as work:
            # an undo is about the entries that are still ours alone
            entries = change.entries.items() if undo else ()
            is_unstaged = any(work.present.entries.get(key) == old for key, (old, new) in entries if old != new)
            return work.is_begun or is_unstaged
    except (DoesNotFit, OSError):
        return False


def was_made(change: RepositoryChange) -> bool:
    """Whether all refs were moved once, as their logs tell, though they may have moved on since."""
    try:
        with _opened(change, undo=False) as work:
            return work.was_logged
    except (DoesNotFit, OSError):
        return False


def release(change: RepositoryChange, *, undo: bool = False) -> None:
    """Remove the locks and temporary files that a killed daemon has left, as far as they can be told from another's.
    Raises `OSError`."""
    with contextlib.suppress(DoesNotFit), _opened(change, undo=undo) as work:
        work.release_left()


@contextmanager
def prepared(change: RepositoryChange, store: FileStore, *, undo: bool = False) -> Generator["Prepared"]:
    """A context in which git's locks are held and only a rename or a removal can still fail. Left without `commit`, it
    changes nothing that is visible. Raises `DoesNotFit`, `OSError`."""
    with _opened(change, undo=undo) as work, ExitStack() as stack:
        work.require_fit()
        if undo and (sentence := undo_fault(change, work.present, ())):
            raise DoesNotFit(sentence)
        stack.callback(work.folder.remove_temporary, work.token)
        try:
            work.objects.add(work.change.objects, store, change.root, work.token)
        except Damaged:
            raise DoesNotFit(_LOST) from None
        for _ in range(_TRIES):
            with ExitStack() as locks:
                work.lock(locks)
                under_locks = work.again(change, undo=undo)
                under_locks.require_fit()
                if under_locks.has_same_base(work):
                    stack.push(locks.pop_all())
                    break
            work = under_locks
        else:
            raise DoesNotFit(_busy(f"{INDEX}{_LOCK}"))
        yield Prepared(under_locks, under_locks.stage())


@dataclass(frozen=True)
class _Step:
    target: str
    source: str | None
    """The file that is renamed to the target; None: the target is removed."""


class Prepared:
    """A change that only has to be renamed into place."""

    def __init__(self, work: "_Work", steps: Sequence[_Step]) -> None:
        self._work = work
        self._steps = steps
        self._former: list[tuple[str, bytes | None]] = []
        """The files that were replaced, and their content."""

    def commit(self) -> None:
        """Rename all into place, in this order: the index, small files, logs, packed refs, refs, HEAD. Raises
        `OSError`."""
        folder = self._work.folder
        try:
            for step in self._steps:
                self._former.append((step.target, folder.read(step.target)))
                self._make(step)
        except OSError:
            self.take_back()
            raise
        for beside in {step.target.rpartition("/")[0]: step.target for step in self._steps}.values():
            folder.sync(beside)

    def take_back(self) -> None:
        """Put back what was replaced."""
        while self._former:
            target, content = self._former.pop()
            with contextlib.suppress(OSError):
                self._put_back(target, content)

    def _make(self, step: _Step) -> None:
        if step.source is None:
            self._work.folder.unlink(step.target)
            self._work.folder.prune(step.target, _LOG_DEPTH)
        else:
            self._work.folder.rename(step.source, step.target)

    def _put_back(self, target: str, content: bytes | None) -> None:
        folder = self._work.folder
        if folder.read(target) == content:
            return
        if content is None:
            folder.unlink(target)
        else:
            temporary = folder.temporary(self._work.token, "former")
            folder.write(temporary, content, target)
            folder.rename(temporary, target)


@contextmanager
def _opened(change: RepositoryChange, *, undo: bool) -> Generator["_Work"]:
    """Raises `DoesNotFit`, `OSError`."""
    try:
        with GitFolder.opened(change.root) as folder, ExitStack() as stack:
            token = f"amanu-{hashlib.sha256(change.encode()).hexdigest()[:16]}"
            yield _Work(change, folder, Objects(folder, stack), token, undo=undo)
    except (UnknownRepository, UnknownIndex) as error:
        raise DoesNotFit(f"This is {error}, which Amanu does not change.") from None
    except Collision as error:
        raise DoesNotFit(_moved(f"{one_line(str(error))} is staged differently")) from None


class _Work:
    """The change, or its undo, beside the repository as it was when this was made."""

    def __init__(
        self, change: RepositoryChange, folder: GitFolder, objects: Objects, token: str, *, undo: bool
    ) -> None:
        self.folder = folder
        self.objects = objects
        self.token = token
        """The mark of our temporary names and locks, the same after a kill."""
        self.present = Present(folder)
        try:
            _ = self.present.packed
        except ValueError:
            raise DoesNotFit("The file .git/packed-refs cannot be read.") from None
        self.change = inverse(change, self.present) if undo else change

    def again(self, change: RepositoryChange, *, undo: bool) -> "_Work":
        """The same, with the repository as it is now."""
        return _Work(change, self.folder, self.objects, self.token, undo=undo)

    def has_same_base(self, other: "_Work") -> bool:
        """Whether both would write the same into the locks."""
        return self._locks == other._locks

    def require_fit(self) -> None:
        """Raise `DoesNotFit` if the change does not fit, `OSError` if that cannot be told."""
        for name, content in self._lock_names():
            if self.folder.status(name) is not None and self._locked_by(name) not in (self._mark, content()):
                raise DoesNotFit(_busy(name))
        if (what := next(self._moves(), None)) is not None:
            raise DoesNotFit(_moved(what))
        if self.change.entries:
            _ = self._new_index  # raises if entries exclude each other
        if missing := self.objects.missing(self._needed_objects()):
            raise DoesNotFit(f"The repository no longer has the object {missing[0]}.")

    @property
    def is_done(self) -> bool:
        present, change = self.present, self.change
        return (
            all(present.value(name) == after for name, (_, after) in change.refs.items())
            and all(present.entries.get(key) == after for key, (_, after) in change.entries.items())
            and all(self._has_log(name) for name in change.logs)
            and all(
                self.folder.read(name) == after
                for name, (_, after) in change.files.items()
                if name in STATE or not (change.moved or change.entries or change.logs)
            )
        )

    @property
    def is_left_over(self) -> bool:
        """Whether a killed daemon has left locks or files of ours."""
        names = [*self._locks, f"{INDEX}{_LOCK}", f"{HEAD}{_LOCK}", f"{PACKED}{_LOCK}"]
        return self.folder.has_temporary(self.token) or any(self._locked_by(name) == self._mark for name in names)

    @property
    def is_begun(self) -> bool:
        """Whether something that the change moves is as it leaves it."""
        present, change = self.present, self.change
        refs = any(present.value(name) == after for name, (before, after) in change.refs.items() if before != after)
        keys = any(
            present.entries.get(key) == after for key, (before, after) in change.entries.items() if before != after
        )
        return refs or keys or any(map(self._has_log, change.logs))

    @property
    def was_logged(self) -> bool:
        """Whether the logs of all refs that move have the lines that tell of it."""
        logs = {name: log for name, log in self.change.logs.items() if isinstance(log, Appended) and log.lines}
        told = {name for name, log in logs.items() if log.lines in (self.present.log(name) or b"")[max(log.size, 0) :]}
        return bool(told) and {name for name in self.change.moved if name in logs} <= told

    def release_left(self) -> None:
        """Remove locks and temporary files of ours."""
        for name, content in self._lock_names():
            found = self._locked_by(name)
            with contextlib.suppress(UnknownIndex, Collision):
                if found is not None and found in (self._mark, content()):
                    self.folder.unlink(name)
        self.folder.remove_temporary(self.token)

    def lock(self, stack: ExitStack) -> None:
        """Take git's locks, until the stack is closed. Raises `DoesNotFit`, `OSError`."""
        for name, content in self._locks.items():
            self._take(name, content)
            stack.callback(self._release, name)

    def _release(self, name: str) -> None:
        if self._locked_by(name) == self._locks[name]:
            self.folder.unlink(name)
        self.folder.prune(name, _REF_DEPTH)

    def stage(self) -> list[_Step]:
        """Write the files that have no locks. Returns the steps that bring all into place. Raises `OSError`."""
        change, locks = self.change, self._locks
        steps = [_Step(INDEX, f"{INDEX}{_LOCK}")] if self._changes_index else []
        steps += [self._file_step(name, after) for name, (_, after) in change.files.items()]
        logs = [name for name in change.logs if not self._has_log(name)]
        steps += [self._file_step(log_name(name), self._new_log(name)) for name in logs]
        if PACKED + _LOCK in locks:
            steps.append(_Step(PACKED, PACKED + _LOCK))
        for name in sorted(change.refs, key=lambda name: name == HEAD):
            after = change.refs[name][1]
            if self.present.value(name) != after:
                steps.append(_Step(name, f"{name}{_LOCK}" if after else None))
        return steps

    def _locked_by(self, name: str) -> bytes | None:
        """The content of a lock; None if there is none, or it cannot be read."""
        try:
            return self.folder.read(name)
        except OSError:
            return None

    def _file_step(self, name: str, content: bytes | None) -> _Step:
        if content is None:
            return _Step(name, None)
        temporary = self.folder.temporary(self.token, name.replace("/", "-"))
        self.folder.write(temporary, content, name)
        return _Step(name, temporary)

    def _moves(self) -> Iterator[str]:
        """The differences from the repository that the change was made from, as clauses."""
        present, change = self.present, self.change
        for name, sides in change.refs.items():
            if (value := present.value(name)) not in sides:
                yield _ref_clause(name, value)
            elif sides[1] and not value:
                yield from (f"{ref_title(other)} exists" for other in self._excluding(name))
        for key, sides in change.entries.items():
            if present.entries.get(key) not in sides:
                yield f"{one_line(key[0])} is staged differently"
        for name, log in change.logs.items():
            if not isinstance(log, Appended) and present.log(name) not in (log.before, log.after):
                yield f"the reflog of {ref_title(name)} has changed"
        for name, sides in change.files.items():
            if name in STATE and self.folder.read(name) not in sides:
                yield f".git/{name} has changed"

    def _excluding(self, name: str) -> Iterator[str]:
        """The refs that rule out a ref of that name: one is a folder where the other is a file."""
        parts = name.split("/")
        above = ["/".join(parts[:count]) for count in range(_REF_DEPTH + 1, len(parts))]
        yield from (each for each in above if self.present.value(each))
        yield from self.present.below(name)

    def _needed_objects(self) -> Iterator[str]:
        refs = [after for name, (_, after) in self.change.refs.items() if after != self.present.value(name)]
        entries = [after for _, after in self.change.entries.values() if after is not None]
        names = [value for value in refs if value and not value.startswith(SYMBOLIC)]
        names += [entry.object for entry in entries if entry.mode != _GITLINK]
        yield from (name for name in names if name not in self.change.objects)

    def _has_log(self, name: str) -> bool:
        """Whether the log is as the change leaves it."""
        log, now = self.change.logs[name], self.present.log(name)
        if not isinstance(log, Appended):
            return now == log.after
        if now is None or len(now) == log.size:
            return False
        # An undone change has left its lines: they count as added only where they are last, or the refs are moved.
        return now.endswith(log.lines) or (self._has_moved_refs and log.lines in now)

    def _new_log(self, name: str) -> bytes | None:
        log = self.change.logs[name]
        return (self.present.log(name) or b"") + log.lines if isinstance(log, Appended) else log.after

    @cached_property
    def _has_moved_refs(self) -> bool:
        return all(self.present.value(name) == after for name, (_, after) in self.change.refs.items())

    @cached_property
    def _changes_index(self) -> bool:
        return any(self.present.entries.get(key) != after for key, (_, after) in self.change.entries.items())

    @cached_property
    def _new_index(self) -> bytes:
        entries = {key: after for key, (_, after) in self.change.entries.items()}
        return changed_index(self.present.index[0], entries, self.present.index[1])

    @cached_property
    def _new_packed(self) -> bytes:
        gone = {name for name, (_, after) in self.change.refs.items() if not after}
        return without_packed(self.present.packed_text, gone).encode("utf-8", "surrogateescape")

    @property
    def _mark(self) -> bytes:
        """The content of locks that are held, but not renamed."""
        return f"{self.token}\n".encode()

    @cached_property
    def _locks(self) -> dict[str, bytes]:
        return {name: content() for name, content in self._lock_names()}

    def _lock_names(self) -> Iterator[tuple[str, _Content]]:
        """Each lock's name and a function that makes its content, in the order in which git takes locks."""
        change = self.change
        if change.entries or HEAD in change.refs or any(name in STATE for name in change.files):
            yield f"{INDEX}{_LOCK}", lambda: self._new_index if self._changes_index else self._mark
        if any(not after and name in self.present.packed for name, (_, after) in change.refs.items()):
            yield f"{PACKED}{_LOCK}", lambda: self._new_packed
        for name in sorted({*change.refs, *change.logs}, key=lambda name: name == HEAD):
            yield f"{name}{_LOCK}", self._ref_content(name)

    def _ref_content(self, name: str) -> _Content:
        after = self.change.refs.get(name, ("", ""))[1]
        is_new = bool(after) and self.present.value(name) != after
        return lambda: f"{after}\n".encode("utf-8", "surrogateescape") if is_new else self._mark

    def _take(self, name: str, content: bytes) -> None:
        temporary = self.folder.temporary(self.token, "lock")
        self.folder.write(temporary, content, name.removesuffix(_LOCK))
        try:
            self.folder.link(temporary, name)
        except FileExistsError:
            if self._locked_by(name) not in (content, self._mark):
                raise DoesNotFit(_busy(name)) from None
            self.folder.rename(temporary, name)
        finally:
            with contextlib.suppress(OSError):
                self.folder.unlink(temporary)


def _ref_clause(name: str, value: str) -> str:
    if not value:
        return f"{ref_title(name)} is gone"
    return f"{ref_title(name)} now points to {value_title(value)}"


def _moved(what: str) -> str:
    return f"{MOVED}: {what}."


def _busy(lock: str) -> str:
    return f"Another git process is using the repository (.git/{lock} exists). Try again when that process has ended."


def _explained(error: OSError) -> str:
    return f"The repository cannot be read: {os.strerror(error.errno) if error.errno else error}."
