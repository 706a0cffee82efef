"""Recordings: what is written, what is kept out, and what a replay makes of it."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from amanu.core.model import StreamBroken
from amanu.models.credentials import Credentials
from amanu.models.recording import Exchange, ExchangeRecorder, Recorder, Recording, load, new_path
from amanu.models.replay import Replay, ReplayMismatch, difference
from amanu.models.session_transport import SessionTransport
from amanu.text.redaction import MASK, Secrets
from amanu_protocol.errors import AmanuError

KEY = 'odd"key/with+signs='
URL = "https://models.test/v1/messages"


def recorder(path: Path, **more: Any) -> Recorder:
    return Recorder(path, "anthropic:m", lambda text: text, **more)


def begun(
    recorder: Recorder, body: bytes = b"{}", url: str = URL, headers: dict[str, str] | None = None
) -> ExchangeRecorder:
    writing = recorder.begin()
    writing.request("POST", url, (headers or {}).items(), body)
    return writing


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    ours = recorder(path)
    first, second = begun(ours, b'{"model": "m", "half": "\\ud83d"}'), begun(ours, b"no json \xff")
    first.response(200, [("Content-Type", "text/event-stream"), ("Content-Length", "5")])
    pieces = [b"data: {}\n\n", "ä".encode()[:1], "ä".encode()[1:] + b"\xff\n"]
    for piece in pieces:
        first.chunk(piece)
    second.end("failed", "ReadError: gone")
    first.end("complete")
    first.end("aborted")
    ours.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    recording = load(path)
    assert recording.model_id == "anthropic:m"
    one, two = recording.exchanges
    assert (one.method, one.url, one.status, one.end) == ("POST", URL, 200, "complete")
    assert one.body == {"model": "m", "half": "\ud83d"}
    assert one.response_headers == [("content-type", "text/event-stream")]
    assert [data for _, data in one.chunks] == pieces
    assert (two.body, two.status, two.end, two.error) == ("no json \ufffd", None, "failed", "ReadError: gone")


def test_no_key_is_written_wherever_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    known = Secrets()
    auth = Credentials(tmp_path / "auth.json", known)
    auth.set("anthropic", "known-to-auth-0123456789")
    shapes = [
        "sk-ant-abcdefghijklmnop0123",
        "AIzaSyA0123456789abcdefghijklmnopqrstu",
        "ghp_0123456789abcdefghij0123456789",
    ]
    ours = Recorder(path, "m", known.mask_output)
    ours.hide({"SERVICE_TOKEN": KEY, "LANG": "en_US.UTF-8", "SSH_AUTH_SOCK": "/run/agent.1", "SHORT_KEY": "word"})
    secrets = [*shapes, "known-to-auth-0123456789", KEY]
    said = "\n".join([*secrets, "postgres://me:pass-word@db/x", "word en_US.UTF-8 /run/agent.1"])
    writing = begun(
        ours,
        json.dumps({"text": said, "x-api-key: ": "curl -H 'x-api-key: abcdef\\nmore'"}).encode(),
        f"https://user:pass-word@models.test/v1?key=short1&alt=sse&access_token=short2&x={shapes[0]}",
        {"authorization": "Bearer short3", "X-Api-Key": "short4", "cookie": "short5", "x-note": shapes[1]},
    )
    writing.response(200, [("set-cookie", "short6"), ("openai-organization", "short7"), ("x-id", shapes[2])])
    event = b"data: " + json.dumps({"echo": said}).encode() + b"\n\n"
    for at in range(0, len(event), 7):  # keys stand across pieces
        writing.chunk(event[at : at + 7])
    writing.end("failed", f"ReadError: {said}")
    ours.close()
    written = path.read_text()
    for secret in [*secrets, json.dumps(KEY)[1:-1], "pass-word", *(f"short{number}" for number in range(1, 8))]:
        assert secret not in written and json.dumps(secret)[1:-1] not in written
    assert "alt=sse" in written and "word en_US.UTF-8 /run/agent.1" in written
    (exchange,) = load(path).exchanges
    assert json.loads(exchange.data[6:])["echo"].count(MASK) == 6  # still JSON
    assert exchange.body["text"].count(MASK) == 6


def test_a_disk_that_is_full_ends_the_recording_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    ours = recorder(tmp_path / "r.ndjson", failed=told.append)
    monkeypatch.setattr("amanu.models.recording.MAX_BYTES", 500)
    writing = begun(ours, b'"' + b"x" * 1000 + b'"')
    writing.chunk(b"more\n")
    writing.end("complete")
    assert len(told) == 1 and "ends here" in told[0]
    assert load(tmp_path / "r.ndjson").exchanges == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("relative.ndjson", "not an absolute path"),
        ("{tmp}/nowhere/r.ndjson", "does not exist"),
        ("{tmp}/there.ndjson", "already exists"),
        ("{tmp}/dangling", "already exists"),
        ("{tmp}/shop/r.ndjson", "is in the workspace"),
        ("{tmp}/link/r.ndjson", "is in the workspace"),
    ],
)
def test_where_nothing_is_recorded(tmp_path: Path, path: str, said: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    (tmp_path / "there.ndjson").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    with pytest.raises(AmanuError, match=said):
        new_path(path.format(tmp=tmp_path), [str(tmp_path / "shop")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a recording"),
        ("{}", "is not a recording"),
        ("no json", "is not a recording"),
        ('{"amanuRecording": 9, "amanu": "7.0"}', "a newer version of Amanu"),
        ('{"amanuRecording": 1}\n{"exchange": 1, "text": "x"}\n{}', "damaged at line 2"),
        ('{"amanuRecording": 1}\n[]\n{}', "damaged at line 2"),
    ],
)
def test_what_is_no_recording(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "r").write_text(text)
    with pytest.raises(AmanuError, match=said):
        load(tmp_path / "r")
    with pytest.raises(AmanuError, match="cannot be read"):
        load(tmp_path / "nothing")


def test_a_recording_may_break_off(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    writing = begun(recorder(path))
    writing.response(200, [])
    writing.chunk(b"one\n")
    path.write_bytes(path.read_bytes() + b'{"exchange":1,"te')
    (exchange,) = load(path).exchanges
    assert (exchange.data, exchange.end) == (b"one\n", "aborted")


def exchange(body: Any, **more: Any) -> Exchange:
    given: dict[str, Any] = {"method": "POST", "url": URL, "headers": [], "status": 200, "end": "complete", **more}
    return Exchange(body=body, **given)


def test_a_replay_names_what_is_asked_otherwise() -> None:
    body = {"model": "m", "messages": [{"role": "user"}]}
    replay = Replay(Recording("m", [exchange(body)] * 4))
    replay.answer("POST", "http://elsewhere/v1/messages", json.dumps(body).encode())
    assert replay.differences == []
    replay.answer("POST", URL, json.dumps({**body, "messages": [{"role": "system"}]}).encode())
    assert replay.differences == ['exchange 2: body.messages[0].role is "system", but "user" was recorded']
    with pytest.raises(ReplayMismatch, match="Exchange 3 of the recording is for m, not the model n"):
        replay.answer("POST", URL, json.dumps({**body, "model": "n"}).encode())
    with pytest.raises(ReplayMismatch, match="is for POST /v1/messages, not POST /v2"):
        replay.answer("POST", "http://elsewhere/v2", json.dumps(body).encode())
    assert replay.left == 2
    replay.answer("POST", URL, json.dumps(body).encode())
    replay.answer("POST", URL, json.dumps(body).encode())
    with pytest.raises(ReplayMismatch, match="ends after exchange 4"):
        replay.answer("POST", URL, json.dumps(body).encode())


def test_what_was_broken_off_is_not_asked_again() -> None:
    replay = Replay(Recording("m", [exchange({"model": "m"}, end="aborted"), exchange({"model": "m", "more": 1})]))
    replay.answer("POST", URL, b'{"model": "m"}')
    with pytest.raises(ReplayMismatch, match="Exchange 1 was cut off"):
        replay.answer("POST", URL, b'{"model": "m"}')
    replay.answer("POST", URL, b'{"model": "m", "more": 1}')


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"a": [1, 2]}, None),
        ({"a": [1]}, "body.a has 1 entries, but 2 were recorded"),
        ({"a": [1, "2"]}, 'body.a[1] is "2", but 2 was recorded'),
        ({"a": [1, 2], "b": 1}, "body.b is new"),
        ({}, "body.a is missing"),
        ({"a": [1, 2], "prompt_cache_key": "other", "max_output_tokens": 9}, None),
        ({"a": [1, 2], "b": {"prompt_cache_key": "x"}}, "body.b is new"),
        ("x" * 100, f'body is "{"x" * 58}…, but {{"a": [1, 2]}} was recorded'),
    ],
)
def test_the_first_difference(asked: Any, said: str | None) -> None:
    assert difference({"a": [1, 2]}, asked) == said


async def test_each_session_has_its_own_line() -> None:
    from amanu.models.session_transport import line

    async def seen() -> SessionTransport | None:
        await asyncio.sleep(0)
        return line()

    lines = [SessionTransport(), SessionTransport()]
    tasks: list[asyncio.Task[SessionTransport | None]] = []
    for each in lines:
        with each.used():
            tasks.append(asyncio.create_task(seen()))
    assert await asyncio.gather(*tasks) == lines
    assert await seen() is None


async def test_what_went_wrong_then_goes_wrong_again() -> None:
    import httpx2

    from amanu.models.transport import Transport

    async def ask(played: Exchange) -> bytes:
        over = SessionTransport()
        over.player = Replay(Recording("", [played]))
        with over.used():
            async with httpx2.AsyncClient(transport=Transport(httpx2.AsyncHTTPTransport())) as http:
                return (await http.post(URL, content=b"{}")).content

    assert await ask(exchange({}, chunks=[(0.0, b"a"), (0.0, b"b")])) == b"ab"
    with pytest.raises(httpx2.ConnectError, match="refused"):
        await ask(exchange({}, status=None, end="failed", error="ConnectError: refused"))
    with pytest.raises(httpx2.RemoteProtocolError, match="closed"):
        await ask(exchange({}, end="failed", error="RemoteProtocolError: closed"))
    with pytest.raises(httpx2.ReadError, match="ValueError: odd"):
        await ask(exchange({}, end="failed", error="ValueError: odd"))
    with pytest.raises(StreamBroken, match="did not ask for: br"):
        await ask(exchange({}, response_headers=[("content-encoding", "br")]))
