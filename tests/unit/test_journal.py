"""The journal: what `durable` acknowledged is there, whatever happens to the process, the disk or the file."""

import asyncio
import errno
import hashlib
import importlib.resources
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amanu.storage import journal_sqlite
from amanu.storage.group_commit import LINGER, GroupCommit
from amanu.storage.journal import MAX_BLOB, Journal, Preimage, Record
from amanu.storage.journal_sqlite import SCHEMA_VERSION
from amanu_protocol.errors import AmanuError, ErrorKind
from amanu_protocol.events import ItemChanged
from amanu_protocol.items import ToolCall
from support.full_disk import full_from
from support.sweeps import sample

SERVER = Path(__file__).parents[2]


def record(seq: int, size: int = 10, private: str | None = None) -> Record:
    """Of a text that cannot be made shorter."""
    noise = "".join(map(chr, random.Random(seq).choices(range(33, 127), k=size)))
    return Record(epoch=1, seq=seq, timestamp=1_700_000_000_000 + seq, event=f"{seq}:{noise}", private=private)


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[Journal]:
    journal = await Journal.open(folder)
    try:
        yield journal
    finally:
        await journal.close()


@contextmanager
def fails(kind: ErrorKind, words: str | None = None) -> Generator[None]:
    with pytest.raises(AmanuError, match=words) as caught:
        yield
    assert caught.value.kind == kind
    assert str(caught.value).endswith(".")


async def write(folder: Path, count: int, size: int = 10) -> list[Record]:
    records = [record(seq, size, f"private {seq}" if seq % 2 else None) for seq in range(count)]
    async with opened(folder) as journal:
        for each in records:
            journal.append(each)
    return records


# Records ---------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=()), max_size=200)  # lone surrogates too
RECORDS = st.lists(
    st.builds(
        Record,
        epoch=st.integers(0, 2**31),
        seq=st.integers(0, 2**53),
        timestamp=st.integers(0, 2**53),
        event=TEXT,
        private=st.none() | TEXT,
    ),
    max_size=20,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=RECORDS, second=RECORDS)
async def test_what_is_appended_comes_back_in_order(
    tmp_path_factory: pytest.TempPathFactory, first: list[Record], second: list[Record]
) -> None:
    folder = tmp_path_factory.mktemp("session")
    async with opened(folder) as journal:
        for each in first:
            journal.append(each)
        assert await journal.records() == first, "also before anybody asked for it to be durable"
    async with opened(folder) as journal:
        for each in second:
            journal.append(each)
        await journal.durable()
        assert await journal.records() == first + second
        assert journal.damage == ""


async def test_records_nobody_waits_for_are_written_soon(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as journal:
        journal.append(record(1))
        reader = await Journal.read(tmp_path / "s")
        await asyncio.sleep(LINGER)
        while not await reader.records():  # bound: the test's own time limit
            await asyncio.sleep(0.01)
        await reader.close()


async def test_many_waiters_share_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits: list[str] = []
    connect = sqlite3.connect

    def note(statement: str) -> None:
        if statement == "COMMIT":
            commits.append(statement)

    def traced(*positional: Any, **named: Any) -> sqlite3.Connection:
        db: Any = connect(*positional, **named)
        db.set_trace_callback(note)
        return db

    monkeypatch.setattr(sqlite3, "connect", traced)
    async with opened(tmp_path / "s") as journal:
        await journal.durable()
        commits.clear()
        acknowledged: list[int] = []

        async def prompt(seq: int) -> None:
            journal.append(record(seq))
            await journal.durable()
            acknowledged.append(seq)

        await asyncio.gather(*(prompt(seq) for seq in range(500)))
        assert sorted(acknowledged) == list(range(500))
        assert 1 <= len(commits) <= 3


@pytest.mark.synced
async def test_every_commit_is_synced(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as journal:
        db = journal._db  # pyright: ignore[reportPrivateUsage]
        assert db.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_a_cancelled_waiter_takes_nothing_away(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as journal:
        journal.append(record(1))
        waiter = asyncio.create_task(journal.durable())
        await asyncio.sleep(0)
        waiter.cancel()
        journal.append(record(2))
        await journal.durable()
        assert [each.seq for each in await journal.records()] == [1, 2]


async def test_appending_after_close_is_a_bug_of_ours(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as journal:
        pass
    await journal.close()
    with pytest.raises(RuntimeError, match="closed"):
        journal.append(record(1))


# Kill −9 ---------------------------------------------------------------------------------------------

WRITER = """
import asyncio, os, sys
from pathlib import Path
from amanu.storage.journal import Journal, Record

async def main():
    journal = await Journal.open(Path(sys.argv[1]))
    seq = 0
    while True:
        for _ in range(seq % 5):  # some that nobody waits for
            seq += 1
            journal.append(Record(1, seq, seq, f"{seq}:" + "x" * (seq * 37 % 9000), f"private {seq}"))
        seq += 1
        journal.append(Record(1, seq, seq, f"{seq}:", None))
        if seq % 7 == 0:
            await journal.put_blob(b"%d" % seq * 1000)
            await journal.save_preimage("turn", Path(f"/file/{seq}"), b"was %d" % seq, 0o644)
        await journal.durable()
        os.write(1, f"{seq}\\n".encode())

asyncio.run(main())
"""


def start_writer(folder: Path) -> "subprocess.Popen[bytes]":
    path = os.pathsep.join(str(SERVER / part) for part in ("server", "protocol"))
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.parametrize("round_", sample(range(20), 6))
async def test_killed_at_any_moment_nothing_acknowledged_is_lost(tmp_path: Path, round_: int) -> None:
    writer = start_writer(tmp_path / "s")
    assert writer.stdout is not None
    acknowledged = int(await asyncio.to_thread(writer.stdout.readline))
    await asyncio.sleep(random.Random(round_).uniform(0, 0.12))
    writer.kill()
    rest = await asyncio.to_thread(writer.communicate)
    lines = rest[0].splitlines(keepends=True)
    acknowledged = max([acknowledged, *(int(line) for line in lines if line.endswith(b"\n"))])
    (tmp_path / "s" / "blobs").mkdir(exist_ok=True)
    (tmp_path / "s" / "blobs" / ".tmp-x").write_bytes(b"half")

    async with opened(tmp_path / "s") as journal:
        assert journal.damage == ""
        records = await journal.records()
        assert [each.seq for each in records] == list(range(1, len(records) + 1)), "no gap, nothing twice"
        assert len(records) >= acknowledged
        assert all(each.event.startswith(f"{each.seq}:") for each in records)
        saved = {each.path: each.data for each in await journal.preimages("turn")}
        for seq in waited_for(acknowledged):
            if seq % 7 == 0:
                assert saved[Path(f"/file/{seq}")] == b"was %d" % seq
        assert not list((tmp_path / "s" / "blobs").glob(".*")), "no half-written blob is left"


def waited_for(last: int) -> Generator[int]:
    """The numbers the writer above acknowledges."""
    seq = 0
    while seq < last:
        seq += seq % 5 + 1
        yield seq


# Leases ----------------------------------------------------------------------------------------------


async def test_two_processes_one_writer(tmp_path: Path) -> None:
    writer = start_writer(tmp_path / "s")
    assert writer.stdout is not None
    await asyncio.to_thread(writer.stdout.readline)
    with fails("sessionReadOnly", rf"process {writer.pid}"):
        await Journal.open(tmp_path / "s")

    reader = await Journal.read(tmp_path / "s")
    assert reader.read_only
    seen = await reader.records()
    assert seen[0].seq == 1
    for forbidden in (
        reader.put_blob(b"x"),
        reader.save_preimage("t", Path("/f"), None, None),
        reader.save_preimage("t", Path("/f"), b"x", None),
    ):
        with fails("sessionReadOnly"):
            await forbidden
    with fails("sessionReadOnly"):
        reader.append(record(1))

    writer.kill()
    await asyncio.to_thread(writer.communicate)
    async with opened(tmp_path / "s") as journal:  # the lease died with its holder
        assert (await journal.records())[: len(seen)] == seen
    await reader.close()


async def test_one_process_has_one_writer_too(tmp_path: Path) -> None:
    async with opened(tmp_path / "s"):
        with fails("sessionReadOnly"):
            await Journal.open(tmp_path / "s")
    async with opened(tmp_path / "s"):
        pass


async def test_an_opening_that_was_cancelled_gives_the_lease_back(tmp_path: Path) -> None:
    opening = asyncio.create_task(Journal.open(tmp_path / "s"))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    while True:
        try:
            journal = await Journal.open(tmp_path / "s")
        except AmanuError:
            await asyncio.sleep(0.01)
        else:
            break
    await journal.close()


async def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with fails("sessionNotFound"):
        await Journal.read(tmp_path / "s")
    assert not (tmp_path / "s").exists()


# Blobs and pre-images --------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\0\xff", b"x" * MAX_BLOB], ids=["empty", "binary", "largest"])
async def test_blobs_come_back_and_are_kept_once(tmp_path: Path, data: bytes) -> None:
    async with opened(tmp_path / "s") as journal:
        first, second = await journal.put_blob(data), await journal.put_blob(data)
        assert first == second
        assert first.size == len(data)
        assert await journal.get_blob(first.blob_id) == data
        assert [path.name for path in (tmp_path / "s" / "blobs").iterdir()] == [first.blob_id]


async def test_a_record_brings_the_texts_it_names(tmp_path: Path) -> None:
    text = "as – it\nwas\n" * 1000
    blob_id = hashlib.sha256(text.encode()).hexdigest()
    async with opened(tmp_path / "s") as journal:
        journal.append(record(0), {blob_id: text})
        assert await journal.get_blob(blob_id) == text.encode(), "before anybody waits for the disk"
        later, later_id = text + "more\n", hashlib.sha256(f"{text}more\n".encode()).hexdigest()
        with full_from(0):
            journal.append(record(1), {later_id: later})
            with fails("storageError"):
                await journal.durable()
            assert await journal.records() == [record(0), record(1)]
        await journal.durable()  # there is room again
    journal = await Journal.read(tmp_path / "s")
    assert (journal.blob_text(blob_id), journal.blob_text(later_id)) == (text, later)
    assert journal.blob_text("1" * 64) is None
    await journal.close()


async def test_a_session_keeps_only_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.storage.journal.MAX_BLOBS", 1000)
    async with opened(tmp_path / "s") as journal:
        await journal.put_blob(b"a" * 900)
    async with opened(tmp_path / "s") as journal:  # also of what was kept before
        with fails("storageError"):
            await journal.put_blob(b"b" * 200)
        await journal.put_blob(b"c" * 100)
        await journal.save_preimage("t", tmp_path / "f", b"d" * 5000, None)


async def test_blobs_that_cannot_be_had(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as journal:
        with pytest.raises(ValueError, match="most"):
            await journal.put_blob(b"x" * (MAX_BLOB + 1))
        blob = await journal.put_blob(b"right")
        for blob_id in ("", "0" * 64, "../lease", "/etc/passwd", blob.blob_id + "\n"):
            with fails("blobNotFound"):
                await journal.get_blob(blob_id)
        (tmp_path / "s" / "blobs" / blob.blob_id).write_bytes(b"wrong")
        with fails("blobNotFound", "damaged"):
            await journal.get_blob(blob.blob_id)


async def test_preimages_by_turn_oldest_first(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(b"/w/\xff name"))
    saved = [Preimage(Path("/w/a"), b"one", 0o755), Preimage(odd, None, None), Preimage(Path("/w/a"), b"two", 0)]
    async with opened(tmp_path / "s") as journal:
        for each in saved:
            await journal.save_preimage("turn", each.path, each.data, each.mode)
        await journal.save_preimage("other", Path("/w/b"), b"", None)
        assert await journal.preimages("turn") == saved
    async with opened(tmp_path / "s") as journal:
        assert await journal.preimages("turn") == saved
        assert await journal.preimages("none") == []


# A disk that is full ---------------------------------------------------------------------------------


async def test_what_finds_no_room_is_written_when_there_is_room(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as journal:
        journal.append(record(0))
        await journal.durable()
        with full_from(200_000):
            for seq in range(1, 100):
                journal.append(record(seq, 10_000))
            for _ in range(2):
                with fails("storageError"):
                    await journal.durable()
            with fails("storageError"):
                await journal.put_blob(b"x" * 300_000)
            with fails("storageError"):
                await journal.save_preimage("turn", Path("/f"), b"y" * 300_000, None)
            assert [each.seq for each in await journal.records()] == list(range(100)), "reads still work"
            assert list((tmp_path / "s" / "blobs").iterdir()) == []
        await journal.durable()
        assert (await journal.put_blob(b"x" * 300_000)).size == 300_000
    async with opened(tmp_path / "s") as journal:
        assert [each.seq for each in await journal.records()] == list(range(100))


async def test_records_are_found_where_they_were_put(tmp_path: Path) -> None:
    async with opened(tmp_path / "s") as journal:
        assert journal.empty
        first = [journal.append(record(seq)) for seq in range(5)]
        await journal.durable()
        with full_from(0):
            later = [journal.append(record(seq, 10_000)) for seq in range(5, 10)]
            places = [*first, *later]
            found = await journal.at([places[7], places[2], 999, places[9]])
            assert [(each.seq, each.position) for each in found] == [(7, places[7]), (2, places[2]), (9, places[9])]
            assert [each.position for each in await journal.records()] == places
        await journal.durable()
    async with opened(tmp_path / "s") as journal:
        assert not journal.empty
        assert [each.position for each in await journal.records()] == places, "for good"
        assert await journal.at([places[7]]) == [record(7, 10_000)]
        assert journal.append(record(10)) > places[-1]


async def test_a_try_that_began_when_the_disk_was_full_is_not_the_last(tmp_path: Path) -> None:
    tries: list[list[int]] = []
    began, ends = threading.Event(), threading.Event()

    def write(entries: Sequence[int]) -> None:
        tries.append(list(entries))
        if len(tries) == 1:
            began.set()
            ends.wait()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    commits = GroupCommit(tmp_path, "test", write)
    commits.add(1)
    first = asyncio.create_task(commits.durable())
    await asyncio.to_thread(began.wait)
    second = asyncio.create_task(commits.durable())
    await asyncio.sleep(0)
    ends.set()
    with fails("storageError", "disk is full"):
        await first
    await second
    assert tries == [[1], [1]]
    commits.close()


async def test_records_are_read_when_they_are_taken(tmp_path: Path) -> None:
    written = await write(tmp_path / "s", 100)

    def look(records: Iterable[Record]) -> Record:
        return next(each for each in records if each.seq == 3)

    async with opened(tmp_path / "s") as journal:
        assert await journal.read_through(look) == written[3]
        with pytest.raises(ZeroDivisionError):
            await journal.read_through(lambda records: 1 / 0)
        journal.append(record(100))
        await journal.durable()
        assert len(await journal.records()) == 101


async def test_closing_on_a_full_disk_says_so_and_closes(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path / "s")
    with full_from(100_000):
        journal.append(record(1, 200_000))
        with fails("storageError"):
            await journal.close()
    async with opened(tmp_path / "s") as journal:
        assert await journal.records() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "amanu-test", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs the right to mount a small file system")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("before", [0, 3], ids=["new", "in use"])
async def test_a_full_disk_is_called_full(small_disk: Path, before: int) -> None:
    async with opened(small_disk / "s") as journal:
        written = [record(seq) for seq in range(before)]
        for each in written:
            journal.append(each)
        await journal.durable()
        filler = small_disk / "filler"
        with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"0" * 4096)
        journal.append(record(before, 30_000))
        for _ in range(2):
            with fails("storageError", "disk is full"):
                await journal.durable()
        with fails("storageError", "disk is full"):
            await journal.put_blob(b"x" * 30_000)
        with fails("storageError", "disk is full"):
            await Journal.open(small_disk / "other")
        filler.unlink()
        await journal.durable()
        assert await journal.records() == [*written, record(before, 30_000)]


# Files that are not what we wrote --------------------------------------------------------------------


def overwrite(at: float, size: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(int(path.stat().st_size * at) // 4096 * 4096)
            file.write(b"\xa5" * size)

    return damage


def cut(to: float) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, int(path.stat().st_size * to))


def flip_in_text(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.index(record(150).event.encode())
    data[at + 20] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "at_least"),
    [
        (overwrite(0.5, 4096), 250),
        (overwrite(0.9, 40_000), 150),
        (overwrite(0, 4096), 0),
        (cut(0.6), 100),
        (cut(0.999), 250),
        (cut(0), 0),
        (flip_in_text, 299),
    ],
    ids=["a page", "ten pages", "the header", "cut", "cut by a little", "emptied", "a bit of a text"],
)
async def test_a_damaged_journal_gives_what_is_valid(
    tmp_path: Path, damage: Callable[[Path], None], at_least: int
) -> None:
    folder = tmp_path / "s"
    written = await write(folder, 300, 1000)
    damage(folder / "journal.sqlite")
    broken = (folder / "journal.sqlite").read_bytes()

    reader = await Journal.read(folder)
    seen = await reader.records()
    assert "damaged" in reader.damage
    await reader.close()
    assert (folder / "journal.sqlite").read_bytes() == broken, "reading changes nothing"

    async with opened(folder) as journal:
        assert "damaged" in journal.damage
        kept = await journal.records()
        assert kept == seen
        assert len(kept) >= at_least
        assert set(kept) <= set(written)
        assert kept == sorted(kept, key=lambda each: each.seq)
        assert (folder / "damaged-1.sqlite").read_bytes() == broken
        journal.append(record(300))
    async with opened(folder) as journal:
        assert journal.damage == "", "said once"
        assert await journal.records() == [*kept, record(300)]
        assert not (folder / "damaged-2.sqlite").exists()


async def test_a_journal_cut_anywhere_opens(tmp_path: Path) -> None:
    """SQLite gives rows of which all columns are NULL where the file was cut."""
    folder = tmp_path / "s"
    written = await write(folder, 200, 200)
    whole = (folder / "journal.sqlite").read_bytes()
    for end in range(0, len(whole) - 1, len(whole) // 40):
        cut_off = tmp_path / str(end)
        cut_off.mkdir()
        (cut_off / "journal.sqlite").write_bytes(whole[:end])
        async with opened(cut_off) as journal:
            assert "damaged" in journal.damage
            assert set(await journal.records()) <= set(written)


async def test_a_crash_between_setting_aside_and_making_anew(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    written = await write(folder, 10)
    (folder / "journal.sqlite").rename(folder / "damaged-1.sqlite")
    (folder / "building.sqlite").write_bytes(b"half")
    async with opened(folder) as journal:
        assert await journal.records() == written
        assert "damaged-1.sqlite" in journal.damage


async def test_a_newer_format_is_not_written(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    written = await write(folder, 3)
    db = sqlite3.connect(folder / "journal.sqlite")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    before = (folder / "journal.sqlite").read_bytes()
    with fails("unsupportedVersion", "newer version of Amanu"):
        await Journal.open(folder)
    assert (folder / "journal.sqlite").read_bytes() == before
    reader = await Journal.read(folder)  # the refusal gave the lease back, and reading is harmless
    assert await reader.records() == written
    await reader.close()


async def test_a_format_of_protocol_version_1_is_neither_written_nor_read(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    await write(folder, 3)
    db = sqlite3.connect(folder / "journal.sqlite")
    db.execute("PRAGMA user_version = 1")
    db.close()
    before = (folder / "journal.sqlite").read_bytes()
    for open_ in (Journal.open, Journal.read):
        with fails("unsupportedVersion", "older version of Amanu"):
            await open_(folder)
    assert (folder / "journal.sqlite").read_bytes() == before


async def test_a_format_without_packed_texts_is_read_and_goes_on_as_todays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "s"
    with monkeypatch.context() as version_2:
        version_2.setattr(journal_sqlite, "pack", bytes)
        written = await write(folder, 3, 1_000)
    db = sqlite3.connect(folder / "journal.sqlite")
    db.execute("PRAGMA user_version = 2")
    db.close()
    reader = await Journal.read(folder)
    assert await reader.records() == written
    await reader.close()
    async with opened(folder) as journal:
        journal.append(record(3, 1_000))
    async with opened(folder) as journal:
        assert await journal.records() == [*written, record(3, 1_000)]
        assert journal.damage == ""
    db = sqlite3.connect(folder / "journal.sqlite")
    assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,), "an older Amanu could not read it"
    db.close()


@pytest.mark.parametrize("written", [True, False])
async def test_records_are_found_by_how_their_events_begin(tmp_path: Path, written: bool) -> None:
    texts = ['{"kind":"rare","n":1}', '{"kind":"rare","n":"' + "x" * 2_000 + '"}', '{"kind":"common","of":"rare"}']
    async with opened(tmp_path / "s") as journal:
        for seq, text in enumerate(texts):
            journal.append(Record(1, seq, 0, text, None))
        if written:
            await journal.durable()
        assert [each.event for each in await journal.beginning('{"kind":"rare"')] == texts[:2]


async def test_records_are_kept_in_less_room(tmp_path: Path) -> None:
    call = ToolCall(
        item_id="call_1", turn_id="t", tool="grep", title="", effect="read", arguments={}, state="executing", output=""
    )
    text = ItemChanged(item=call).model_dump_json()
    async with opened(tmp_path / "s") as journal:
        for seq in range(1_000):
            journal.append(Record(1, seq, 0, text, text))
    assert (tmp_path / "s" / "journal.sqlite").stat().st_size < 1_000 * len(text)


def test_the_dictionary_never_changes() -> None:
    """What was written with it is read with it. With another one, packed texts need another mark."""
    digest = hashlib.sha256(importlib.resources.files("amanu.storage").joinpath("dictionary.txt").read_bytes())
    assert digest.hexdigest() == "e1d80bbc0c80b0bddd84237a8c4eae8c299b4d2d8ba754e996615841cef2a2d6"


async def test_a_place_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with fails("storageError"):
        await Journal.open(tmp_path / "file" / "s")
