"""Changes of all kinds on disk: all of them are made or none, wherever the process is killed or the disk refuses."""

import errno
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from amanu.proposals.row_plan import Link, StoredContent
from amanu.proposals.tree_move import (
    TreeMove,
    _Moving,  # pyright: ignore[reportPrivateUsage]
)
from amanu.storage.file_store import FileStore
from amanu.workspace import disk_changes
from amanu.workspace.disk import TEMPORARY, BaseChanged, NotWritten, remove_temporary_files
from amanu.workspace.disk_changes import DiskChange, ExecutableBits, FolderRemoval, NewFolder, _BitsChanging, make_all  # pyright: ignore[reportPrivateUsage]
from amanu.workspace.path_guard import PathGuard
from amanu.workspace.replacement import Replacement, _Replacing  # pyright: ignore[reportPrivateUsage]
from support.file_faults.sitecustomize import FileFaults
from support.sweeps import WHOLE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="faults are told by names in /proc")

BEFORE = {
    "a": "a\n",
    "b": "b\n",
    "dead": "/",
    "dead/in": "/",
    "dead/in/x": "x\n",
    "gone": "gone\n",
    "out": "/",
    "out/f": "f\n",
    "run": "-> a",
    "tool": "755: t\n",
}
AFTER = {
    "a": "A\n",
    "b": "755: B\n",
    "d": "/",
    "d/e": "/",
    "d/e/new": "new\n",
    "empty": "/",
    "link": "-> b",
    "run": "-> b",
    "tool": "t\n",
    "tree": "/",
    "tree/f": "t\n",
}


@pytest.fixture(params=["same file system", "another file system"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "same file system":
        (tmp_path / "store").mkdir()
        yield tmp_path / "store"
        return
    if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm is on the same file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def laid_out(root: Path, store: Path) -> Sequence[DiskChange]:
    """Make the files. Returns the changes that lead to `AFTER`."""
    lay(root, BEFORE)
    for name in ("tree", "out"):
        shutil.rmtree(store / name, ignore_errors=True)
    lay(store / "tree", {"f": "t\n"})
    return [
        Replacement(root / "a", b"a\n", b"A\n"),
        Replacement(root / "b", b"b\n", b"B\n"),
        Replacement(root / "d/e/new", None, b"new\n", mode=0o644),
        Replacement(root / "gone", b"gone\n", None),
        Replacement(root / "dead/in/x", b"x\n", None),
        Replacement(root / "run", Link("a"), Link("b")),
        Replacement(root / "link", None, Link("b")),
        ExecutableBits(root / "b", is_set=True),
        ExecutableBits(root / "tool", is_set=False),
        NewFolder(root / "empty"),
        FolderRemoval(root / "dead"),
        FolderRemoval(root / "dead/in"),
        TreeMove(root / "tree", store / "tree", True, bool),
        TreeMove(root / "out", store / "out", False, bool),
    ]


def lay(root: Path, files: dict[str, str]) -> None:
    root.mkdir()
    for name, text in files.items():
        path = root / name
        if text == "/":
            path.mkdir()
        elif text.startswith("-> "):
            path.symlink_to(text.removeprefix("-> "))
        else:
            mode, _, text = text.rpartition(": ")
            path.write_text(text)
            path.chmod(int(mode or "644", 8))


def look(root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_dir():
            found[name] = "/"
        else:
            mode = path.stat().st_mode & 0o777
            found[name] = f"{'' if mode == 0o644 else f'{mode:o}: '}{path.read_text()}"
    return found


def test_all_kinds_are_made(tmp_path: Path, store: Path) -> None:
    changes = laid_out(tmp_path / "work", store)
    make_all(PathGuard([tmp_path / "work"]), changes)
    assert look(tmp_path / "work") == AFTER
    assert look(store) == {"out": "/", "out/f": "f\n"}


@pytest.mark.parametrize("how", ["full", "refused", "kill"])
def test_wherever_it_ends_there_is_no_mix(how: str, tmp_path: Path, store: Path) -> None:
    """After a kill, each path is as before or as after, and what is left of ours can be removed."""
    armed, log = tmp_path / "armed", tmp_path / "log"
    armed.touch()
    stands: list[dict[str, str]] = []
    after = AFTER
    step = 1 if WHOLE else 3
    for nth in itertools.count(1 if store.parent == tmp_path else 2, step):
        root = tmp_path / f"work{nth}"
        changes = laid_out(root, store)
        after = AFTER
        if how == "full":  # a name in the store may need room, too: of two folders, the first could not go back
            changes, after = changes[:-1], {**AFTER, "out": "/", "out/f": "f\n"}
        log.write_text("")
        if not (child := os.fork()):
            try:
                FileFaults(how, nth, str(armed), [str(root), str(store)], str(log)).install()
                make_all(PathGuard([root]), changes)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        for change in changes:
            remove_temporary_files(PathGuard([root]), change.path)
        found = look(root)
        if how == "kill":
            assert all(found.get(name) in known(name) for name in {*BEFORE, *AFTER, *found}), log.read_text()
        else:
            assert found in (BEFORE, after), f"{log.read_text()}\n{found}"
            assert (store / "tree").exists() == (found == BEFORE)
        stands.append(found)
        if len(log.read_text().splitlines()) < nth:
            break
    assert stands[0] == BEFORE and stands[-1] == after and len(stands) > 5


def known(name: str) -> set[str | None]:
    """The contents that the path may have in the middle: bits are set once a file is there."""
    middle = {"B\n"} if name == "b" else set[str]()
    return {BEFORE.get(name), AFTER.get(name), *middle}


def test_all_of_it_is_on_the_disk_in_the_end(tmp_path: Path) -> None:
    """A power failure leaves what a kill leaves: content is durable before its name, and names before `make_all`
    returns."""
    armed, log, root = tmp_path / "armed", tmp_path / "log", tmp_path / "work"
    armed.touch()
    (tmp_path / "store").mkdir()
    changes = [change for change in laid_out(root, tmp_path / "store") if not isinstance(change, TreeMove)]
    if not (child := os.fork()):
        try:
            FileFaults("kill", 0, str(armed), [str(tmp_path)], str(log)).install()
            make_all(PathGuard([root]), changes)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    steps = [(event, path.strip("'")) for _, event, path in map(str.split, log.read_text().splitlines())]
    synced = [path if event == "fsync" else "" for event, path in steps]
    for name in ("a", "b", "d/e/new"):
        made = next(
            at
            for at, (event, path) in enumerate(steps)
            if event in ("os.rename", "os.link") and path == str(root / name)
        )
        assert any(path.startswith(str((root / name).parent / f".{Path(name).name}.")) for path in synced[:made])
    for at, (event, path) in enumerate(steps):
        if event in ("os.rename", "os.link", "os.mkdir") and not path.endswith(TEMPORARY):
            assert str(Path(path).parent) in synced[at:], f"{event} {path} is not on the disk"


Act = Callable[[Path], object]
MEANWHILE: dict[str, Act] = {
    "a": lambda path: path.write_text("mine\n"),
    "gone": lambda path: path.write_text("mine\n"),
    "link": lambda path: path.write_text("mine\n"),
    "run": lambda path: (path.unlink(), path.symlink_to("tool")),
    "dead/in": lambda path: (path / "mine").write_text("mine\n"),
    "empty": lambda path: path.write_text("mine\n"),
    "tree": lambda path: path.mkdir(),
    "tool": lambda path: path.unlink(),
}


@pytest.mark.parametrize("name", MEANWHILE)
@pytest.mark.parametrize("when", ["before", "between"])
def test_what_somebody_else_made_of_it_is_kept(
    name: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then nothing at all is changed. "between": after everything was staged."""
    root = tmp_path / "work"
    (tmp_path / "store").mkdir()
    changes = laid_out(root, tmp_path / "store")
    seen: list[dict[str, str]] = []

    def act() -> None:
        MEANWHILE[name](root / name)
        seen.append({path: text for path, text in look(root).items() if not path.endswith(TEMPORARY)})

    if when == "before":
        act()
    else:
        real, count = disk_changes._failing_at, itertools.count(1)  # pyright: ignore[reportPrivateUsage]

        def failing_at(path: Path) -> AbstractContextManager[None]:
            if next(count) == len(changes) + 1:
                act()
            return real(path)

        monkeypatch.setattr(disk_changes, "_failing_at", failing_at)
    with pytest.raises((BaseChanged, NotWritten)):
        make_all(PathGuard([root]), changes)
    monkeypatch.undo()
    expected = (
        seen[0] if when == "before" else {path: text for path, text in seen[0].items() if path not in ("d", "d/e")}
    )
    assert look(root) == expected


# Somebody else at the same moment ---------------------------------------------------------------------


@dataclass(frozen=True)
class Moment:
    """The first call of a method for which `is_it` is true of the object and the arguments."""

    owner: type
    method: str
    is_it: Callable[..., bool] = lambda *_: True

    @contextmanager
    def interrupted(self, act: Callable[[], object]) -> Generator[None]:
        """A context in which `act` happens right before that moment, which must come."""
        real, todo = getattr(self.owner, self.method), [act]

        def method(*arguments: Any) -> Any:
            if todo and self.is_it(*arguments):
                todo.pop()()
            return real(*arguments)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(self.owner, self.method, method)
            yield
        assert not todo


def replacing(name: str) -> Moment:
    """The moment when the file of that name is replaced."""
    return Moment(_Replacing, "make", lambda change: change.path.name == name)


def stored(tmp_path: Path, data: bytes) -> StoredContent:
    store = FileStore(tmp_path / "store")
    return StoredContent(store.add_bytes(data), 0o644, store)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def save(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def save_another(path: Path, data: bytes) -> None:
    """Save it like an editor that writes a new file first."""
    new = path.with_name("new")
    new.write_bytes(data)
    new.rename(path)


def test_a_folder_that_leaves_takes_nothing_with_it_that_was_saved_there(root: Path, store: Path) -> None:
    path = root / "tree" / "f"
    lay(root / "tree", {"f": "t\n"})
    move = TreeMove(root / "tree", store / "tree", False, lambda folder: (folder / "f").read_text() == "t\n")
    moment = Moment(_Moving, "make")
    with moment.interrupted(lambda: path.write_text("mine\n")), pytest.raises(BaseChanged):
        make_all(PathGuard([root]), [move])
    assert look(root) == {"tree": "/", "tree/f": "mine\n"}


@pytest.mark.parametrize("saves", [save, save_another])
def test_a_binary_that_is_saved_while_it_is_staged_is_kept(
    root: Path, tmp_path: Path, saves: Callable[[Path, bytes], None]
) -> None:
    old, new = stored(tmp_path, b"A\0"), stored(tmp_path, b"B\0")
    for name in "ab":
        (root / name).write_bytes(b"A\0")
    moment = Moment(StoredContent, "make")
    with moment.interrupted(lambda: saves(root / "a", b"mine\0")), pytest.raises(BaseChanged):
        make_all(PathGuard([root]), [Replacement(root / name, old, new) for name in "ab"])
    assert look(root) == {"a": "mine\0", "b": "A\0"}


@pytest.mark.parametrize("kind", ["text", "new", "binary"])
def test_what_is_saved_in_a_file_that_was_made_is_not_taken_back(kind: str, root: Path, tmp_path: Path) -> None:
    a, b = root / "a", root / "b"
    changes = {
        "text": Replacement(a, b"a\n", b"A\n"),
        "new": Replacement(a, None, b"A\n"),
        "binary": Replacement(a, stored(tmp_path, b"a\n"), stored(tmp_path, b"A\n")),
    }
    b.write_text("b\n")
    if kind != "new":
        a.write_text("a\n")

    def act() -> None:
        assert a.read_text() == "A\n"
        a.write_text("A\nmine\n")
        b.write_text("mine\n")

    with replacing("b").interrupted(act), pytest.raises(BaseChanged):
        make_all(PathGuard([root]), [changes[kind], Replacement(b, b"b\n", b"B\n")])
    assert look(root) == {"a": "A\nmine\n", "b": "mine\n"}


def test_bits_are_set_of_no_other_file(root: Path) -> None:
    (root / "a").write_text("a\n")
    moment = Moment(_BitsChanging, "make")
    with moment.interrupted(lambda: save_another(root / "a", b"mine\n")), pytest.raises(BaseChanged):
        make_all(PathGuard([root]), [ExecutableBits(root / "a", is_set=True)])
    assert look(root) == {"a": "mine\n"}


def test_nothing_is_written_in_a_folder_that_was_moved_out(root: Path, tmp_path: Path) -> None:
    folder, outside = root / "sub", tmp_path / "outside"
    folder.mkdir()

    def act() -> None:
        folder.rename(outside)
        folder.symlink_to(outside)

    with replacing("new").interrupted(act), pytest.raises((BaseChanged, NotWritten)):
        make_all(PathGuard([root]), [Replacement(folder / "new", None, b"new\n")])
    assert look(outside) == {}


def test_a_recovery_leaves_the_temporary_files_of_a_running_transaction(root: Path) -> None:
    """The recovery is that of another session."""
    a, b, guard = root / "a", root / "b", PathGuard([root])
    a.write_text("a\n")
    b.write_text("b\n")

    def act() -> None:
        assert not a.exists()
        remove_temporary_files(guard, a)
        b.write_text("mine\n")

    with replacing("b").interrupted(act), pytest.raises(BaseChanged):
        make_all(guard, [Replacement(a, b"a\n", None), Replacement(b, b"b\n", None)])
    assert look(root) == {"a": "a\n", "b": "mine\n"}


def test_a_deleted_binary_that_has_no_second_name_is_put_back(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second name needed room that the disk had not."""
    (root / "a").write_bytes(b"a\0")
    lay(root / "full", {"own": "mine\n"})
    rename = os.rename

    def full(source: str, target: str, **folders: int) -> None:
        if str(target).endswith(TEMPORARY):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(source, target, **folders)

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(NotWritten):
        deletion = Replacement(root / "a", stored(tmp_path, b"a\0"), None)
        make_all(PathGuard([root]), [deletion, FolderRemoval(root / "full")])
    assert look(root) == {"a": "a\0", "full": "/", "full/own": "mine\n"}


LONG = "漢" * 80  # 240 bytes; a name has at most 255


def test_a_file_with_a_long_name_can_be_changed(root: Path) -> None:
    (root / LONG).write_text("a\n")
    make_all(PathGuard([root]), [Replacement(root / LONG, b"a\n", b"A\n")])
    assert look(root) == {LONG: "A\n"}


def test_a_file_with_a_long_name_is_put_back(root: Path) -> None:
    (root / LONG).write_text("a\n")
    lay(root / "full", {"own": "mine\n"})
    with pytest.raises(NotWritten):
        make_all(PathGuard([root]), [Replacement(root / LONG, b"a\n", None), FolderRemoval(root / "full")])
    assert look(root) == {LONG: "a\n", "full": "/", "full/own": "mine\n"}
