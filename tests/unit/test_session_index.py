"""The list of sessions: newest first, and never the reason that a session cannot be found."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest

from amanu.storage.journal import Journal
from amanu.storage.session_index import SessionIndex
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import SessionSummary


def summary(
    session_id: str,
    at: int = 0,
    roots: tuple[str, ...] = ("/w",),
    status: Literal["idle", "running", "waiting", "closed"] = "idle",
) -> SessionSummary:
    return SessionSummary(
        session_id=session_id,
        title=f"Title of {session_id}",
        roots=list(roots),
        model_id="scripted:demo",
        created_at=at,
        updated_at=at,
        status=status,
    )


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[SessionIndex]:
    index = await SessionIndex.open(folder)
    try:
        yield index
    finally:
        await index.close()


async def ids(index: SessionIndex, root: str | None = None, limit: int = 50) -> list[str]:
    return [each.session_id for each in await index.list(root, limit)]


FOUR = (
    summary("old", 1, ("/a",)),
    summary("new", 9, ("/a", "/b")),
    summary("middle", 5, ("/b",)),
    summary("..", 3, ("/a%_'\"",)),
)


@pytest.mark.parametrize(
    ("root", "limit", "expected"),
    [
        (None, 50, ["new", "middle", "..", "old"]),
        (None, 2, ["new", "middle"]),
        ("/a", 50, ["new", "old"]),
        ("/b", 1, ["new"]),
        ("/a%_'\"", 50, [".."]),
        ("/", 50, []),
        ("/%", 50, []),
    ],
)
async def test_newest_first_by_root(tmp_path: Path, root: str | None, limit: int, expected: list[str]) -> None:
    async with opened(tmp_path) as index:
        for each in FOUR:
            await index.put(each)
        assert await ids(index, root, limit) == expected
    async with opened(tmp_path) as index:
        assert await ids(index, root, limit) == expected


async def test_put_replaces_and_the_last_put_wins(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await asyncio.gather(*(index.put(summary("s", at)) for at in range(20)))
        assert await index.list() == [summary("s", 19)]
        assert await index.get("s") == summary("s", 19)
        assert await index.get("t") is None


def remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def drop_table(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("DROP TABLE sessions")
    db.close()


def later_format(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("DROP TABLE sessions")
    db.execute("CREATE TABLE sessions (something TEXT)")
    db.execute("PRAGMA user_version = 7")
    db.close()


def spoil_from_second_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))


def cut(path: Path) -> None:
    os.truncate(path, 5000)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replace_by_garbage(path: Path) -> None:
    path.write_bytes(b"no database at all" * 500)


@pytest.mark.parametrize(
    "damage", [remove, replace_by_garbage, empty, cut, spoil_from_second_page, drop_table, later_format]
)
async def test_a_lost_index_is_made_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    async with opened(tmp_path) as index:
        for each in FOUR:
            await index.put(each)
    damage(tmp_path / "index.sqlite")
    async with opened(tmp_path) as index:
        assert await ids(index) == ["new", "middle", "..", "old"]
        await index.put(summary("more", 10))
        assert await ids(index, limit=1) == ["more"]


async def test_damage_while_in_use_is_mended(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        for at in range(200):
            await index.put(summary(f"s{at}", at))
    async with opened(tmp_path) as index:
        spoil_from_second_page(tmp_path / "index.sqlite")
        assert await ids(index, limit=2) == ["s199", "s198"]


async def test_folders_come_and_go_behind_its_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        for each in FOUR:
            await index.put(each)
    for file in (tmp_path / "old").iterdir():
        file.unlink()
    (tmp_path / "old").rmdir()
    copied = tmp_path / "copied"
    copied.mkdir()
    (copied / "summary.json").write_text(summary("copied", 7).model_dump_json())
    liar = tmp_path / "liar"
    liar.mkdir()
    (liar / "summary.json").write_text(summary("new", 99).model_dump_json())
    for name, text in (("half", '{"sessionId": "ha'), ("none", None), (".removed-x", "{}")):
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "summary.json").write_text(text)
    async with opened(tmp_path) as index:
        assert await ids(index) == ["new", "copied", "middle", ".."]
        assert not (tmp_path / ".removed-x").exists()


async def test_a_summary_of_a_later_amanu_is_read(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    fields = json.loads(summary("s").model_dump_json()) | {"colour": "green"}
    (tmp_path / "s" / "summary.json").write_text(json.dumps(fields))
    async with opened(tmp_path) as index:
        assert await index.list() == [summary("s")]


async def test_what_ran_in_a_process_that_is_gone_was_interrupted(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await index.put(summary("here", 2, status="running"))
        await index.put(summary("gone", 1, status="waiting"))
        await index.put(summary("shut", 0, status="closed"))
        journal = await Journal.open(index.folder("here"))
        child = "import sys; from pathlib import Path; from amanu.storage import lease; lease.take(Path(sys.argv[1]))"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", child, index.folder("gone")], check=True, env=env
        )
        assert [each.status for each in await index.list()] == ["running", "interrupted", "closed"]
        await journal.close()


async def test_delete_removes_all_of_it_but_not_what_is_open(tmp_path: Path) -> None:
    async with opened(tmp_path) as index:
        await index.put(summary("s"))
        journal = await Journal.open(index.folder("s"))
        await journal.put_blob(b"x")
        with pytest.raises(AmanuError) as caught:
            await index.delete("s")
        assert caught.value.kind == "sessionReadOnly"
        assert await ids(index) == ["s"]
        await journal.close()
        await index.delete("s")
        await index.delete("s")
        assert await ids(index) == []
        assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("session_id", ["", "a/b", "../x", "a\n", "x" * 129, "ä"])
async def test_what_cannot_be_an_id_has_no_folder(tmp_path: Path, session_id: str) -> None:
    async with opened(tmp_path) as index:
        with pytest.raises(AmanuError) as caught:
            index.folder(session_id)
        assert caught.value.kind == "sessionNotFound"


@pytest.mark.parametrize("session_id", ["a", ".", "..", "a.b:c-d_e", "x" * 128, "." * 128])
async def test_folders_are_inside(tmp_path: Path, session_id: str) -> None:
    async with opened(tmp_path) as index:
        assert index.folder(session_id).resolve().parent == tmp_path.resolve()


async def test_a_thousand_sessions_open_fast(tmp_path: Path) -> None:
    for at in range(1000):
        (tmp_path / f"s{at}").mkdir()
        (tmp_path / f"s{at}" / "summary.json").write_text(summary(f"s{at}", at).model_dump_json())
    async with opened(tmp_path):  # makes the index
        pass
    started = time.process_time()
    async with opened(tmp_path) as index:
        assert await ids(index, limit=1) == ["s999"]
    assert time.process_time() - started < 0.25  # measured: 0.01; what reads every session takes longer


async def test_two_processes_share_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as first, opened(tmp_path) as second:
        await asyncio.gather(
            *(index.put(summary(f"{n}-{at}", at)) for at in range(20) for n, index in enumerate((first, second)))
        )
        assert len(await ids(first)) == len(await ids(second)) == 40


async def test_many_make_it_at_the_same_moment(tmp_path: Path) -> None:
    """SQLite refuses two that turn one file to WAL at once; the first start of a daemon beside `amanu run` is that."""
    for attempt in range(100):
        folder = tmp_path / str(attempt)
        for index in await asyncio.gather(*(SessionIndex.open(folder) for _ in range(2))):
            await index.close()


async def test_a_place_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AmanuError) as caught:
        await SessionIndex.open(tmp_path / "file" / "sessions")
    assert caught.value.kind == "storageError"
