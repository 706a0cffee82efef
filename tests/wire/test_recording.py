"""Recordings of real exchanges, over every vendor: what is recorded is what came, and plays back as it was."""

from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest

from amanu.core.model import ReplyCompleted, StreamBroken, TextDelta
from amanu.models.recording import Recorder, load
from amanu.models.replay import Replay, ReplayMismatch
from amanu.models.session_transport import SessionTransport
from support.strict_services.http import Fault, Say, ToolUse
from support.vendor_sweeps import over_vendors
from support.vendors import KEY, Vendor, deltas, request, running

ANSWER = Say(thought=["Hm, ", "ünï."], text=["One ", "twö."], calls=[ToolUse("read_file", {"path": "ä.py"})])


def recording(path: Path) -> SessionTransport:
    line = SessionTransport()
    line.recorder = Recorder(path, "m", lambda text: text.replace(KEY, "[key]"))
    return line


def replaying(path: Path) -> SessionTransport:
    line = SessionTransport()
    line.player = Replay(load(path))
    return line


def shape(done: Any) -> Any:
    """A reply, but for the ids we mint."""
    assert isinstance(done, ReplyCompleted)
    parts = [part.model_dump(exclude={"call_id"}) for part in done.message.parts]
    return parts, done.usage, done.stop, done.message.native and done.message.native.blocks


@over_vendors("http")
async def test_a_reply_is_recorded_and_played_back(vendor: Vendor, tmp_path: Path) -> None:
    file = tmp_path / "r"
    fault = Fault("status", status=503, message=f"No room for {KEY}.")
    async with running(vendor, [ANSWER, fault]) as (service, model):
        with recording(file).used():
            seen = await deltas(model, request(vendor))
            with pytest.raises(Exception, match="cannot answer right now"):
                await deltas(model, request(vendor))
    first, second = load(file).exchanges
    assert (first.status, first.end, second.status) == (200, "complete", 503)
    assert first.body == service.requests[0].json
    assert KEY not in file.read_text()
    played = vendor.model("another-key-0123456789", "http://127.0.0.1:9")  # nobody listens there
    with replaying(file).used():
        again = await deltas(played, request(vendor))
        with pytest.raises(Exception, match="cannot answer right now"):
            await deltas(played, request(vendor))
        with pytest.raises(ReplayMismatch, match="ends after exchange 2"):
            await deltas(played, request(vendor))
    await played.close()
    assert shape(again[-1]) == shape(seen[-1])


@over_vendors("http")
async def test_what_came_of_a_stream_is_kept_however_it_ended(vendor: Vendor, tmp_path: Path) -> None:
    script = [Say(text=["one ", "two ", "three "] * 50, delay=0.01), Fault("reset", after=3), Fault("silence", after=2)]
    async with running(vendor, script) as (_, model):
        with recording(tmp_path / "r").used():
            async with aclosing(cast("Any", model.stream(request(vendor)))) as stream:
                async for delta in stream:
                    if isinstance(delta, TextDelta):
                        break
            with pytest.raises(StreamBroken):
                await deltas(model, request(vendor))
    aborted, failed = load(tmp_path / "r").exchanges
    assert (aborted.end, failed.end) == ("aborted", "failed")
    assert b"one " in aborted.data and b"Half " in failed.data + b"Half "
    assert "Error" in failed.error


@over_vendors("http")
async def test_what_is_not_over_a_line_is_not_recorded(vendor: Vendor, tmp_path: Path) -> None:
    async with running(vendor, [Say(text="Mine."), Say(text="Yours.")]) as (_, model):
        with recording(tmp_path / "r").used():
            await deltas(model, request(vendor))
        await deltas(model, request(vendor))
    (only,) = load(tmp_path / "r").exchanges
    assert b"Mine." in only.data
