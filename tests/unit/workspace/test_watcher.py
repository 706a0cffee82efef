"""What is heard of files that change on disk, with real files and the system's own events; and without events."""

import asyncio
import os
import shutil
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
import watchfiles

from amanu.workspace import watcher as module
from amanu.workspace.overlay import Overlay
from amanu.workspace.watcher import WorkspaceWatcher

events = pytest.mark.parametrize("events", [True, False], ids=["events", "rescan"])


async def until(reached: Callable[[], object], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not reached():
            await asyncio.sleep(0.005)


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "amanu-watching"]


class Ear:
    """Cares for files below a folder, and counts what it hears."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.watching = WorkspaceWatcher()
        self.overlay = Overlay(self.watching.watch)
        self.heard = Counter[str]()

    def care(self, *names: str) -> Callable[[], None]:
        stops = [self.overlay.watch(self.folder / name, lambda name=name: self.heard.update([name])) for name in names]

        def stop() -> None:
            for each in stops:
                each()

        return stop

    async def listening(self, *names: str) -> None:
        """Return when the first look at these was taken."""
        await until(lambda: all(self.heard[name] for name in names))
        self.heard.clear()


@pytest.fixture
async def ear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Ear]:
    monkeypatch.setattr(module, "DELAY", 0.01)
    made = Ear(tmp_path)
    yield made
    await made.watching.close()
    assert threads() == []


def no_watch_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "OS file watch limit reached.")

    monkeypatch.setattr(watchfiles, "watch", full)


def rewrite(path: Path) -> None:
    path.write_text("formatted\n")


def save_by_rename(path: Path) -> None:
    beside = path.with_name("tmp~")
    beside.write_text("saved\n")
    beside.replace(path)


def same_size(path: Path) -> None:
    kept = path.stat()
    path.write_text("ONE\n")
    os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))


def link_instead(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def folder_anew(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    path.write_text("one\n")


def parent_renamed(path: Path) -> None:
    path.parent.parent.rename(path.parent.parent.with_name("other"))


@events
@pytest.mark.parametrize(
    "change",
    [rewrite, save_by_rename, same_size, link_instead, folder_anew, parent_renamed, Path.unlink, lambda p: None],
    ids=["rewrite", "rename", "same size and time", "link", "folder", "parent", "gone", "nothing"],
)
async def test_a_change_is_heard_and_nothing_else(
    ear: Ear, events: bool, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not events:
        no_watch_left(monkeypatch)
        monkeypatch.setattr(module, "RESCAN", 0.02)
    path = ear.folder / "top" / "sub" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text("one\n")
    (path.parent / "b.py").write_text("two\n")
    ear.care("top/sub/a.py", "top/sub/b.py", "witness")
    await ear.listening("top/sub/a.py", "top/sub/b.py", "witness")
    change(path)
    if ear.folder.joinpath("top/sub").exists():
        for look in ("perhaps begun before the change", "begun after it"):
            ear.heard.pop("witness", None)
            (ear.folder / "witness").write_text(look)
            await until(lambda: ear.heard["witness"])
        nothing = path.exists() and path.read_text() == "one\n" and change is not folder_anew
        assert bool(ear.heard["top/sub/a.py"]) != nothing
    else:
        await until(lambda: ear.heard["top/sub/a.py"] and ear.heard["top/sub/b.py"])
    assert change in (folder_anew, parent_renamed) or not ear.heard["top/sub/b.py"]


@events
async def test_a_file_that_comes_goes_and_comes_in_folders_that_do_too(
    ear: Ear, events: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not events:
        no_watch_left(monkeypatch)
        monkeypatch.setattr(module, "RESCAN", 0.02)
    path = ear.folder / "a" / "b" / "c.py"
    ear.care("a/b/c.py")
    await ear.listening("a/b/c.py")
    for _ in range(3):
        path.parent.mkdir(parents=True)
        path.write_text("one\n")
        await until(lambda: ear.heard["a/b/c.py"])
        ear.heard.clear()
        shutil.rmtree(ear.folder / "a")
        await until(lambda: ear.heard["a/b/c.py"])
        ear.heard.clear()


async def test_of_two_thousand_new_files_in_new_folders_none_that_matters_is_lost(ear: Ear) -> None:
    """The watcher of the library loses hundreds of them."""
    names = [f"pkg{at % 200}/deep/f{at}.py" for at in range(2000)]
    wanted = names[::40]
    ear.care(*wanted)
    await ear.listening(*wanted)
    for name in names:
        path = ear.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    await until(lambda: all(ear.heard[name] for name in wanted))
    assert set(ear.heard) == set(wanted)


async def test_many_files_at_once_as_a_branch_switch(ear: Ear) -> None:
    names = [f"d{at % 20}/f{at}.py" for at in range(400)]
    for name in names:
        (ear.folder / name).parent.mkdir(exist_ok=True)
        (ear.folder / name).write_text("main\n")
    ear.care(*names)
    await ear.listening(*names)
    for at, name in enumerate(names):
        if at % 2:
            (ear.folder / name).unlink()
            (ear.folder / name).write_text("branch\n")
    await until(lambda: len(ear.heard) == 200)
    assert set(ear.heard) == set(names[1::2])


async def test_an_event_is_heard_long_before_the_next_look(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESCAN", 3600)
    ear.care("a.py")
    await ear.listening("a.py")

    def written() -> bool:  # again and again: the watch is placed a moment after the first look
        (ear.folder / "a.py").write_text(f"{os.times()}\n")
        return bool(ear.heard["a.py"])

    await until(written)


async def test_what_the_events_lose_the_next_look_finds(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(*_: Any, stop_event: threading.Event, rust_timeout: int, **__: Any) -> Any:
        while not stop_event.wait(rust_timeout / 1000):
            yield set[Any]()

    monkeypatch.setattr(watchfiles, "watch", deaf)
    monkeypatch.setattr(module, "RESCAN", 0.02)
    ear.care("a.py")
    await ear.listening("a.py")
    (ear.folder / "a.py").write_text("one\n")
    await until(lambda: ear.heard["a.py"])


async def test_a_watch_that_cannot_be_had_is_said_once(
    ear: Ear, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    no_watch_left(monkeypatch)
    monkeypatch.setattr(module, "RESCAN", 0.02)
    for name in ("a.py", "sub/b.py", "c.py"):
        (ear.folder / name).parent.mkdir(exist_ok=True)
        ear.care(name)
        await ear.listening(name)
        (ear.folder / name).write_text("one\n")
        await until(lambda: ear.heard[name])  # noqa: B023
    assert [record.getMessage() for record in caplog.records] == [
        "Files cannot be watched ([Errno 28] OS file watch limit reached.); they are looked at every 0.02 s instead."
    ]


async def test_only_folders_of_such_files_are_watched(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the root is: the home folder, `/`, a tree with node_modules."""
    asked: list[tuple[set[str], bool]] = []
    real = watchfiles.watch

    def noted(*paths: str, **more: Any) -> Any:
        asked.append((set(paths), more["recursive"]))
        return real(*paths, **more)

    monkeypatch.setattr(watchfiles, "watch", noted)
    (ear.folder / "node_modules" / "m").mkdir(parents=True)
    (ear.folder / "src").mkdir()
    ear.care("a.py", "src/b.py", "gone/away/c.py")
    await ear.listening("a.py", "src/b.py", "gone/away/c.py")
    await until(lambda: asked)
    assert asked == [({str(ear.folder), str(ear.folder / "src")}, False)]


async def test_nothing_runs_while_nobody_cares(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads() == []
    stop = ear.care("a.py")
    await ear.listening("a.py")
    assert threads() == ["amanu-watching"]
    again = ear.care("b.py")
    stop()
    await ear.listening("b.py")
    (ear.folder / "a.py").write_text("one\n")
    (ear.folder / "b.py").write_text("two\n")
    await until(lambda: ear.heard["b.py"])
    assert not ear.heard["a.py"]
    again()
    await until(lambda: not threads())
    ear.care("c.py")  # and it begins anew
    await ear.listening("c.py")

    monkeypatch.setattr(module, "DELAY", 60)
    ear.care("d.py")()
    await ear.watching.close()
    assert threads() == []
