"""Files are replaced whole or not at all, and only when they hold what the change was computed from."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from amanu.core.tool import ToolError
from amanu.workspace import disk
from amanu.workspace.disk import BaseChanged
from amanu.workspace.disk_changes import make_all
from amanu.workspace.path_guard import PathGuard
from amanu.workspace.replacement import Replacement, _Replacing  # pyright: ignore[reportPrivateUsage]


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_keeps_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_bytes(b"old")
    path.chmod(0o751)
    make_all(PathGuard([tmp_path]), [Replacement(path, b"old", b"new")])
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o751)
    assert names(tmp_path) == ["run.sh"]


def test_creates_folders_and_never_over_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c"
    make_all(PathGuard([tmp_path]), [Replacement(path, None, b"new")])
    assert path.read_bytes() == b"new"
    with pytest.raises(BaseChanged):
        make_all(PathGuard([tmp_path]), [Replacement(path, None, b"other")])
    assert path.read_bytes() == b"new"
    assert names(path.parent) == ["c"]


def test_every_name_of_a_file_changes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"longer old")
    os.link(one, two)
    make_all(PathGuard([tmp_path]), [Replacement(one, b"longer old", b"new")])
    assert one.read_bytes() == two.read_bytes() == b"new"
    assert one.stat().st_ino == two.stat().st_ino
    assert names(tmp_path) == ["one", "two"]


def test_deletes(tmp_path: Path) -> None:
    path = tmp_path / "gone"
    path.write_bytes(b"old")
    make_all(PathGuard([tmp_path]), [Replacement(path, b"old", None)])
    assert names(tmp_path) == []


@pytest.mark.parametrize("when", ["before", "between"])
def test_what_changed_is_not_overwritten(tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"theirs" if when == "before" else b"old")
    if when == "between":
        real = _Replacing.make

        def late(staged: _Replacing) -> None:
            path.write_bytes(b"theirs")
            real(staged)

        monkeypatch.setattr(_Replacing, "make", late)
    with pytest.raises(BaseChanged):
        make_all(PathGuard([tmp_path]), [Replacement(path, b"old", b"new")])
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("fails", ["fsync", "rename", "link", "fchmod"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_all_or_none(tmp_path: Path, fails: str, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"old")
    changes = [
        Replacement(tmp_path / "a", b"old", b"new"),
        Replacement(tmp_path / "b", b"old", b"new"),
        Replacement(tmp_path / "c", None, b"new"),
    ]
    calls = 0
    real: Callable[..., object] = getattr(os, fails)

    def failing(*args: object, **more: object) -> object:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(28, "No space left on device")
        return real(*args, **more)

    monkeypatch.setattr(os, fails, failing)
    failed = False
    try:
        make_all(PathGuard([tmp_path]), changes)
    except ToolError as error:
        failed = True
        assert "disk is full" in str(error)
    monkeypatch.undo()
    expected = {"a": b"old", "b": b"old"} if failed else {"a": b"new", "b": b"new", "c": b"new"}
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == expected
    assert failed or calls < nth or fails in ("fsync", "link")


def test_all_or_none_on_a_disk_that_stays_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What replaced a file could not be taken back."""
    (tmp_path / "a").write_bytes(b"old")
    changes = [Replacement(tmp_path / "a", b"old", b"new"), Replacement(tmp_path / "b", None, b"new")]
    opened = os.open

    def full(*args: object, **more: object) -> None:
        monkeypatch.setattr(os, "open", full_for_new)
        raise OSError(28, "No space left on device")

    def full_for_new(path: str, flags: int, *args: int, **more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(28, "No space left on device")
        return opened(path, flags, *args, **more)

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(ToolError, match="the disk is full"):
        make_all(PathGuard([tmp_path]), changes)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


def test_a_read_only_file_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        make_all(PathGuard([tmp_path]), [Replacement(path, b"old", b"new")])
    assert names(tmp_path) == ["f"]


def test_sweep_removes_only_ours(tmp_path: Path) -> None:
    for name in (".f.0123.amanu-tmp", ".other.0123.amanu-tmp", ".f.swp", "f"):
        (tmp_path / name).touch()
    disk.remove_temporary_files(PathGuard([tmp_path]), tmp_path / "f")
    assert names(tmp_path) == [".f.swp", ".other.0123.amanu-tmp", "f"]
