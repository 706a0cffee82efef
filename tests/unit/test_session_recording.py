"""`amanu/session/record`: who may write where, and that everybody gets to know."""

import asyncio
from pathlib import Path

import pytest

from amanu.home import find_home
from amanu.models import recording
from amanu.models.recording import load
from amanu.session.session import Session
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Notice
from support.scripted_session import scripted_session


def notices(session: Session) -> list[tuple[str, str]]:
    return [(item.code, item.text) for item in session.state.items if isinstance(item, Notice)]


async def test_a_recording_begins_and_ends(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as stage:
        first, second = tmp_path / "one.ndjson", tmp_path / "two.ndjson"
        await stage.session.record(str(first))
        await stage.session.record(str(second))
        await stage.session.record(None)
        await stage.session.record(None)
        assert [code for code, _ in notices(stage.session)] == ["recording"] * 4
        assert str(first) in notices(stage.session)[0][1]
        assert load(first).model_id == load(second).model_id == stage.session.state.model_id
        with pytest.raises(AmanuError, match="already exists"):
            await stage.session.record(str(first))
        with pytest.raises(AmanuError, match="is in the workspace"):
            await stage.session.record(str(tmp_path / "work" / "r.ndjson"))
        ours = find_home()
        for folder in (ours.config, ours.state / "trust", ours.logs, ours.runtime):
            folder.mkdir(parents=True, exist_ok=True)
            with pytest.raises(AmanuError, match="Amanu's own folder"):
                await stage.session.record(str(folder / "trust2.json"))
        with pytest.raises(AmanuError, match="not an absolute path"):
            await stage.session.record("r.ndjson")


async def test_a_disk_without_room_ends_it_for_all_to_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted_session(tmp_path) as stage:
        await stage.session.record(str(tmp_path / "r"))
        recorder = stage.session.recording.line.recorder
        assert recorder is not None
        monkeypatch.setattr(recording, "MAX_BYTES", 10)
        recorder.begin().end("failed")
        await asyncio.sleep(0)  # it may be told by another thread
        assert stage.session.recording.line.recorder is None
        assert notices(stage.session)[-1][0] == "recordingFailed"


async def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    async with scripted_session(tmp_path) as stage:
        monkeypatch.setattr(recording.os, "open", refuses)
        with pytest.raises(AmanuError, match="cannot be written: Permission denied") as failed:
            await stage.session.record(str(tmp_path / "r"))
        monkeypatch.undo()
        assert failed.value.kind == "storageError"
        assert notices(stage.session) == []
