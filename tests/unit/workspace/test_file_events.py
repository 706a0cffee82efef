"""The system's events alone tell every change of a file, and nothing while nothing happens."""

import asyncio
import os
import shutil
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from amanu.workspace.file_events import FileEvents

pytestmark = pytest.mark.skipif(not FileEvents.are_here(), reason="inotify is Linux's")


class Ear:
    """Cares for files below a folder, and counts what it hears."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events = FileEvents()
        self.heard = Counter[str]()
        self._something = asyncio.Event()

    def care(self, *names: str) -> list[Callable[[], None]]:
        return [self.events.watch(self.folder / name, lambda name=name: self._hear(name)) for name in names]

    def _hear(self, name: str) -> None:
        self.heard[name] += 1
        self._something.set()

    async def until(self, *names: str) -> None:
        """All of these were heard."""
        async with asyncio.timeout(10):
            while not all(self.heard[name] for name in names):
                self._something.clear()
                await self._something.wait()

    async def after(self, *names: str) -> set[str]:
        """The files heard of before the file `last`, which changes now."""
        (self.folder / "last").write_text("x")
        await self.until("last", *names)
        return {name for name in self.heard if self.heard[name]} - {"last"}


@pytest.fixture
async def ear(tmp_path: Path) -> AsyncGenerator[Ear]:
    made = Ear(tmp_path)
    made.care("last")
    await made.until("last")
    made.heard.clear()
    yield made
    made.events.close()


def rewrite(path: Path) -> None:
    path.write_text("formatted\n")


def save_by_rename(path: Path) -> None:
    beside = path.with_name("tmp~")
    beside.write_text("saved\n")
    beside.replace(path)


def link_instead(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def bits(path: Path) -> None:
    path.chmod(0o700)


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent.parent)


def rename_folder(path: Path) -> None:
    path.parent.parent.rename(path.parent.parent.with_name("other"))


def rename_own_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("other"))


CHANGES = [rewrite, save_by_rename, link_instead, bits, Path.unlink, remove_folder, rename_folder, rename_own_folder]
BOTH = (remove_folder, rename_folder, rename_own_folder)


@pytest.mark.parametrize("change", [*CHANGES, lambda path: None])
async def test_a_change_is_heard_and_nothing_else(ear: Ear, change: Callable[[Path], None]) -> None:
    path = ear.folder / "top" / "sub" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text("one\n")
    (path.parent / "b.py").write_text("two\n")
    (path.parent / "c.py").write_text("not cared for\n")
    ear.care("top/sub/a.py", "top/sub/b.py")
    await ear.until("top/sub/a.py", "top/sub/b.py")
    ear.heard.clear()
    (path.parent / "c.py").write_text("still not\n")
    change(path)
    expected = {"top/sub/a.py"} if change in CHANGES else set[str]()
    expected |= {"top/sub/b.py"} if change in BOTH else set()
    assert await ear.after(*expected) == expected


@pytest.mark.parametrize("depth", [0, 1, 3])
async def test_a_file_that_comes_with_its_folders(ear: Ear, depth: int) -> None:
    """Also one that is gone again, and comes once more."""
    name = "/".join([*(f"d{at}" for at in range(depth)), "new.py"])
    path = ear.folder / name
    ear.care(name)
    await ear.until(name)
    for _ in range(2):
        ear.heard.clear()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("new\n")
        await ear.until(name)
        ear.heard.clear()
        path.unlink()
        if depth:
            shutil.rmtree(ear.folder / "d0")
        await ear.until(name)


async def test_a_folder_that_is_made_anew_at_once(ear: Ear) -> None:
    """It may get the same inode as the one that is gone."""
    path = ear.folder / "d" / "a.py"
    path.parent.mkdir()
    path.write_text("old\n")
    ear.care("d/a.py")
    for _ in range(20):
        await ear.until("d/a.py")
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        path.write_text("new\n")
        await ear.until("d/a.py")
        await ear.after()
        ear.heard.clear()
        path.write_text("newer\n")


async def test_who_stopped_hears_nothing_and_no_watch_stays(ear: Ear) -> None:
    (ear.folder / "sub").mkdir()
    first, second = ear.care("sub/a", "sub/b")
    await ear.until("sub/a", "sub/b")
    ear.heard.clear()
    first()
    (ear.folder / "sub" / "a").write_text("x")
    (ear.folder / "sub" / "b").write_text("x")
    assert await ear.after("sub/b") == {"sub/b"}
    second()
    second()
    ear.heard.clear()
    (ear.folder / "sub" / "b").write_text("y")
    assert await ear.after() == set()
    assert ear.folder / "sub" not in ear.events._watches  # pyright: ignore[reportPrivateUsage]


async def test_one_watch_for_the_files_of_a_folder_and_no_thread(ear: Ear) -> None:
    """Ten thousand files cost no more than their folders."""
    (ear.folder / "many").mkdir()
    threads = threading.active_count()
    ear.care(*(f"many/{at}" for at in range(10_000)))
    await ear.until("many/9999")
    watched = ear.events._watches  # pyright: ignore[reportPrivateUsage]
    assert {path for path in watched if ear.folder in path.parents} == {ear.folder / "many"}
    assert len(watched) == len(ear.folder.parts) and threading.active_count() == threads


async def test_more_events_than_the_system_keeps(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    """When some are lost, all files may have changed."""
    ear.care("a", "b")
    await ear.until("a", "b")
    ear.heard.clear()
    lost = b"\xff\xff\xff\xff" + (0x4000).to_bytes(4, "little") + bytes(8)
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", lambda *_: lost)
        ear.events._read()  # pyright: ignore[reportPrivateUsage]
    assert set(ear.heard) == {"a", "b", "last"}


async def test_without_a_watch_left_it_says_so_once(
    ear: Ear, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from amanu.workspace import file_events

    class Full:
        inotify_add_watch = staticmethod(lambda *_: -1)

    monkeypatch.setattr(file_events, "_libc", Full)
    for name in ("x", "y"):
        (ear.folder / name).mkdir()
        ear.care(f"{name}/a")
        await ear.until(f"{name}/a")
    assert caplog.text.count("cannot be watched") == 1
