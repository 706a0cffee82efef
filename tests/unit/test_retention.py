"""What is kept of old work: what is old or too much goes, what is needed stays, and the rest of a session with it."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from amanu.config import HistorySettings
from amanu.session import sessions
from amanu.storage import lease, retention
from amanu.storage.journal import Journal, Record
from amanu.storage.preimages import TurnPreimages
from amanu.storage.retention import DAY_MS
from amanu_protocol.base import LineRange
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ProposalChanged, TurnEnded
from amanu_protocol.items import Hunk, Proposal, ProposedFile
from amanu_protocol.requests import SessionCreateParams
from support.scripted_session import call, scripted_session, step

MB = 1024 * 1024
NOW = 1000 * DAY_MS
A, B = Path("/a"), Path("/b")


def kept(turn_id: str, days: int, mb: int = 1, folder: Path = A, blob: str = "", needed: bool = False) -> TurnPreimages:
    return TurnPreimages(folder, turn_id, NOW - days * DAY_MS, {blob or turn_id: mb * MB}, needed, 7)


@pytest.mark.parametrize(
    ("history", "all_kept", "going"),
    [
        ({}, [kept("t1", 31), kept("t2", 29)], {A: "t1"}),
        ({}, [kept("t1", 31), kept("t2", 40, folder=B), kept("t3", 50, folder=B)], {A: "t1", B: "t2 t3"}),
        ({}, [kept("t1", 31, needed=True)], {}),
        ({"days": 0}, [kept("t1", 900)], {}),
        ({"days": 0, "mb": 0}, [kept("t1", 900, 9000)], {}),
        # too much: the oldest go, whatever their size, and what cannot go takes room
        ({"mb": 5}, [kept("t1", 3, 2), kept("t2", 2, 2), kept("t3", 1, 2)], {A: "t1"}),
        ({"mb": 5}, [kept("t1", 3, 1), kept("t2", 2, 9), kept("t3", 1, 1)], {A: "t1 t2"}),
        ({"mb": 5}, [kept("t1", 9, 4, needed=True), kept("t2", 2, 1), kept("t3", 1, 1, B)], {A: "t2"}),
        ({"mb": 1}, [kept("t1", 9, 4, needed=True)], {}),
        # the same bytes are there once, in one session
        ({"mb": 5}, [kept("t1", 2, 5, blob="x"), kept("t2", 1, 5, blob="x")], {}),
        ({"mb": 5}, [kept("t1", 2, 5, blob="x", folder=B), kept("t2", 1, 5, blob="x")], {B: "t1"}),
        # too old does not make less room for the rest
        ({"mb": 5}, [kept("t1", 40, 9), kept("t2", 1, 5)], {A: "t1"}),
    ],
)
def test_what_goes(history: dict[str, int], all_kept: Iterable[TurnPreimages], going: dict[Path, str]) -> None:
    settings = HistorySettings(**{f"keep_preimages_{name}": value for name, value in history.items()})
    found = retention.excess(all_kept, settings, NOW)
    assert {each.folder: " ".join(sorted(each.turn_ids)) for each in found} == going
    assert {each.position for each in found} <= {7}


# On the disk -----------------------------------------------------------------------------------------


def turn_ended(turn_id: str, at: int) -> Record:
    event = TurnEnded(turn_id=turn_id, reason="completed", message="", can_continue=False)
    return Record(1, 1, at, event.model_dump_json(), None)


def proposal(state: Any, turn_id: str = "old") -> Record:
    hunk = Hunk(
        hunk_id="h", old_text="a", new_text="b", state=state, edited_by_user=False,
        lines=LineRange(start=0, end=1), proposed_lines=LineRange(start=0, end=1),
    )  # fmt: skip
    file = ProposedFile(
        path="/w/a", change="edit", base_sha256=HASH, base_text=None, final_newline=True, added=1, removed=1,
        hunks=[hunk], encoding="utf-8", unsaved=False,
    )  # fmt: skip
    made = Proposal(proposal_id="p", turn_id=turn_id, tool_call_ids=[], version=1, state="settled", files=[file])
    return Record(1, 1, 0, ProposalChanged(proposal=made).model_dump_json(), None)


OLD, NEW = b"old bytes", b"new bytes"
HASH = "1efdd6ca3a0b3b5d7a4ad8bd9ca4f72dca05b1b2e1a7d86a3fd2e4a6b9f5d1c0"
"""Replaced by the real one: a proposal knows its base by the same hash as the blob."""


def says(text: str) -> Record:
    return Record(1, 1, 0, f'{{"kind":"notice","text":"{text}"}}', text)


@pytest.mark.parametrize(
    ("records", "images", "left", "blobs"),
    [
        ([], {"old": OLD, "new": NEW}, "new", {NEW}),
        ([proposal("applied")], {"old": OLD}, "", set()),
        ([proposal("accepted")], {"old": OLD, "older": NEW}, "old", {OLD}),
        ([proposal("undoing")], {"old": OLD}, "old", {OLD}),
        ([proposal("accepted"), proposal("applied")], {"old": OLD}, "", set()),
        ([], {"old": OLD, "new": OLD}, "new", {OLD}),
        ([], {"old": None}, "", set()),
        ([says('"blobId":"HASH"'.replace('"', '\\"'))], {"old": OLD}, "", {OLD}),
        ([says("read_output(id=SHORT)")], {"old": OLD}, "", {OLD}),
    ],
)
def test_on_the_disk(
    records: list[Record], images: dict[str, bytes | None], left: str, blobs: set[bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "s"

    async def check() -> None:
        journal = await Journal.open(folder)
        ids = {data: (await journal.put_blob(data)).blob_id for data in images.values() if data is not None}
        for turn_id, data in images.items():
            await journal.save_preimage(turn_id, Path("/w/a"), data, 0o644)
        blob_id = ids.get(OLD, "")
        for each in records:
            event = each.event.replace(HASH, blob_id).replace("HASH", blob_id).replace("SHORT", blob_id[:16])
            journal.append(Record(each.epoch, each.seq, each.timestamp, event, each.private))
        for turn_id in images:
            journal.append(turn_ended(turn_id, NOW if turn_id == "new" else NOW - 40 * DAY_MS))
        await journal.close()
        before = await read(folder)
        for each in retention.removals(tmp_path, HistorySettings(), NOW):
            each.apply()
        assert retention.removals(tmp_path, HistorySettings(), NOW) == []
        assert await read(folder) == before
        journal = await Journal.read(folder)
        turn_ids = [turn_id for turn_id in images if await journal.preimages(turn_id)]
        await journal.close()
        assert " ".join(turn_ids) == left
        assert {each.read_bytes() for each in folder.glob("blobs/*")} == blobs

    asyncio.run(check())


async def read(folder: Path) -> list[Record]:
    journal = await Journal.read(folder)
    try:
        return await journal.records()
    finally:
        await journal.close()


def test_damaged_journals_and_others_work_are_left_alone(tmp_path: Path) -> None:
    async def make(name: str) -> Path:
        journal = await Journal.open(tmp_path / name)
        await journal.save_preimage("old", Path("/w/a"), OLD, 0o644)
        journal.append(turn_ended("old", 0))
        await journal.close()
        return tmp_path / name

    async def check() -> None:
        damaged, held, moved, plain = [await make(name) for name in ("damaged", "held", "moved", "plain")]
        path = damaged / "journal.sqlite"
        path.write_bytes(path.read_bytes().replace(b'"reason":"completed"', b'"reason":"compleTed"'))
        (tmp_path / "index.sqlite").write_bytes(b"no folder")
        (tmp_path / "empty").mkdir()
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "journal.sqlite").write_bytes(b"no database at all" * 100)
        found = retention.removals(tmp_path, HistorySettings(), NOW)
        assert {each.folder for each in found} == {held, moved, plain}
        other = lease.take(held)
        journal = await Journal.open(moved)
        journal.append(turn_ended("newer", NOW))
        await journal.close()
        for each in found:
            each.apply()
        other.release()
        assert {each.parent.parent for each in tmp_path.glob("*/blobs/*")} == {damaged, held, moved}

    asyncio.run(check())


# In the daemon ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days", "closed", "images", "there"),
    [
        (29, True, True, True),
        (31, True, False, True),
        (31, False, True, True),
        (91, True, False, False),
        (91, False, True, True),
    ],
)
async def test_a_closed_session_loses_its_preimages_first(
    days: int, closed: bool, images: bool, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / "config").mkdir(parents=True)
    (tmp_path / "home" / "config" / "config.toml").write_text("[history]\nkeep_sessions_days = 90\n")
    monkeypatch.setenv("AMANU_HOME", str(tmp_path / "home"))
    edit = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
    async with scripted_session(tmp_path, step("", edit), step("Done."), mode="acceptEdits") as d:
        await d.prompt("go")
        await d.ended()
        folder = tmp_path / "home" / "state" / "sessions" / "s"
        before = d.session.view().items
        assert len(list(folder.glob("blobs/*"))) == 1
        if closed:
            await d.sessions.close("s")
        now = sessions._now() + days * DAY_MS  # pyright: ignore[reportPrivateUsage]
        with monkeypatch.context() as later:
            later.setattr(sessions, "_now", lambda: now)
            await d.sessions.apply_retention()
        assert len(list(folder.glob("blobs/*"))) == images
        if not there:
            with pytest.raises(AmanuError):
                await d.sessions.get("s")
            params = SessionCreateParams(session_id="s", roots=[str(d.root)], model_id="scripted:demo")
            d.client.state = (await d.sessions.create(params, d.client)).state  # the id is free again
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state
        assert d.session.view().items == (before if there else [])
