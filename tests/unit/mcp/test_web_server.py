"""Servers elsewhere: streamable HTTP and its predecessor, and signing in."""

import asyncio
import contextlib
import stat
from pathlib import Path

import httpx2
import pytest

from amanu.core.tool import ToolError
from amanu.mcp import connection, http
from amanu.mcp.model import CallClient
from amanu_protocol.errors import AmanuError
from support.mcp_harness import harness
from support.mcp_web_server import web_server

EVENTS = pytest.mark.parametrize("events", [False, True], ids=["streamable", "events"])


@pytest.mark.parametrize("how", ["stream", "json_response", "events"])
async def test_tools_are_called(tmp_path: Path, how: str) -> None:
    with web_server(json_response=how == "json_response", events=how == "events") as (address, _):
        async with harness(tmp_path, {"TOKEN": "abc"}) as it:
            it.configure(web={"url": address, "headers": {"X-Key": "${TOKEN}"}})
            view = it.view("web")
            assert (view.state, view.target) == ("unapproved", address)
            assert "The headers X-Key go with each request." in view.access
            await it.approved("web")
            lines: list[str] = []
            answer = await it.call("web", "echo", CallClient(progress=lines.append), text="x")
            assert (answer.content[0].text, it.view("web").state) == ("x", "ready")
            assert await it.text("web", "header", name="X-Key") == "abc"
            if how == "stream":
                assert lines == ["half (1 of 2)"]


@pytest.mark.parametrize("path", ["mcp", "sse"])
async def test_one_that_is_not_there_fails_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(connection, "BACK_OFF", (0.01,))
    async with harness(tmp_path) as it:
        it.configure(web={"url": f"http://127.0.0.1:9/{path}"})
        await it.approved("web")
        await it.until(lambda: it.view("web").state == "failed")
        assert it.view("web").reason.startswith("It could not be reached: ")


@EVENTS
async def test_one_that_was_started_anew_is_connected_to_anew(tmp_path: Path, events: bool) -> None:
    with web_server(events=events) as (address, _):
        async with harness(tmp_path) as it:
            it.configure(web={"url": address})
            await it.approved("web")
            await it.servers.restart(it.workspace, "web")
            assert await it.text("web", "echo", text="x") == "x"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
"""The head of a stream that lasts as long as its connection."""
ENDPOINT = b"event: endpoint\ndata: /messages\n\n"
ELSEWHERE = b"event: endpoint\ndata: http://127.0.0.2:9/messages\n\n"
NO_ADDRESS = b"event: endpoint\ndata: http://[::bad\n\n"
REFUSED = b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("stream", "posted", "reason"),
    [
        (HEAD + ENDPOINT, REFUSED % b"404 Not Found", "It answered 404 to a message."),
        (HEAD + ENDPOINT, REFUSED % b"500 Internal Server Error", "It answered 500 to a message."),
        (HEAD + ENDPOINT, REFUSED % b"307 Temporary Redirect\r\nLocation: http://127.0.0.2:9/", "It answered 307"),
        (HEAD + ENDPOINT, b"", "A message could not be sent to it: "),
        (HEAD + ELSEWHERE, b"", "It wants its messages sent to another server, 127.0.0.2."),
        (HEAD, b"", "It could not be reached: "),
        (HEAD + NO_ADDRESS, b"", "It could not be reached: it does not say where messages go."),
        (REFUSED % b"404 Not Found", b"", "It could not be reached: it answered 404."),
        (REFUSED % b"302 Found\r\nLocation: http://127.0.0.2:9/", b"", "It could not be reached: it answered 302."),
    ],
    ids=["unknown", "broken", "elsewhere", "hangs up", "messages elsewhere", "silent", "no address", "none", "moved"],
)
async def test_one_with_events_that_fails_says_why_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bytes, posted: bytes, reason: str
) -> None:
    monkeypatch.setattr(connection, "BACK_OFF", (0.01,))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        writer.write(stream if request.startswith(b"GET") else posted)
        if request.startswith(b"GET") and ENDPOINT[:10] in stream:
            await reader.read()
        writer.close()

    service = await asyncio.start_server(serve, "127.0.0.1")
    port = service.sockets[0].getsockname()[1]
    async with harness(tmp_path, {"TOKEN": "key-4711"}) as it:
        it.configure(web={"url": f"http://127.0.0.1:{port}/?key=${{TOKEN}}", "type": "sse"})
        await it.approved("web")
        await it.until(lambda: it.view("web").state == "failed", 10)
        assert it.view("web").reason.startswith(reason)
        assert "key-4711" not in it.view("web").reason
    service.close()


async def test_an_answer_to_a_message_is_not_read_without_end(tmp_path: Path) -> None:
    left = asyncio.Event()
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        request = await reader.readuntil(b"\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            if request.startswith(b"GET"):
                writer.write(HEAD + ENDPOINT)
                await reader.read()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
            for _ in range(300):
                writer.write(b"x" * (1 << 20))
                await writer.drain()
                sent += 1
        if not request.startswith(b"GET"):
            left.set()
        writer.close()

    service = await asyncio.start_server(serve, "127.0.0.1")
    port = service.sockets[0].getsockname()[1]
    async with harness(tmp_path) as it:
        it.configure(web={"url": f"http://127.0.0.1:{port}/", "type": "sse"})
        await it.servers.approve(it.workspace, "web", it.view("web").digest)
        await asyncio.wait_for(left.wait(), 20)
        assert sent < 100  # MiB
    service.close()


async def test_one_with_events_that_ends_is_connected_to_anew(tmp_path: Path) -> None:
    async with harness(tmp_path) as it:
        with web_server(events=True) as (address, _):
            it.configure(web={"url": address})
            await it.approved("web")
            lines: list[str] = []
            call = asyncio.create_task(it.call("web", "wait", CallClient(progress=lines.append)))
            await it.until(lambda: bool(lines))
        with pytest.raises(ToolError, match=r"ended during the call\."):
            await call


async def test_progress_that_comes_with_the_answer_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with web_server(events=True) as (address, _):
        async with harness(tmp_path) as it:
            it.configure(web={"url": address})
            await it.approved("web")
            for _ in range(40):
                assert await it.text("web", "echo", text="x") == "x"
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def _visit(page: str) -> None:
    async with httpx2.AsyncClient(follow_redirects=True) as client:
        (await client.get(page)).raise_for_status()


@EVENTS
async def test_a_server_that_asks_who_the_user_is(tmp_path: Path, events: bool) -> None:
    with web_server(signs_in=True, events=events) as (address, authority):
        visits: list[asyncio.Task[None]] = []
        async with harness(tmp_path) as it:
            it.configure(web={"url": address})
            await it.approved("web")
            assert (it.view("web").state, it.view("web").reason) == ("needsSignIn", "It wants you to sign in.")
            with pytest.raises(ToolError, match="until the user has signed in"):
                await it.call("web", "who")
            assert authority.clients == {}  # nothing was asked of the authority before the user wanted to
            await it.servers.sign_in(it.workspace, "web", lambda page: visits.append(asyncio.create_task(_visit(page))))
            await it.until(lambda: it.view("web").state == "ready")
            assert await it.text("web", "who") in authority.clients
            kept = it.home.config / "mcp-auth.json"
            assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        async with harness(tmp_path) as again:  # another daemon: the token is kept
            assert await again.text("web", "who") in authority.clients
            authority.tokens.clear()  # it is not accepted any more, but can be renewed
            assert await again.text("web", "who") in authority.clients
            assert authority.renewed == 1
            authority.tokens.clear()
            authority.refreshes.clear()
            with pytest.raises(ToolError, match="until the user has signed in"):
                await again.call("web", "who")
            await again.until(lambda: again.view("web").state == "needsSignIn")
        await asyncio.gather(*visits)


@EVENTS
async def test_a_token_is_renewed_after_a_restart_too(tmp_path: Path, events: bool) -> None:
    with web_server(signs_in=True, events=events) as (address, authority):
        visits: list[asyncio.Task[None]] = []
        authority.lasts = 2
        async with harness(tmp_path) as it:
            it.configure(web={"url": address})
            await it.approved("web")
            await it.servers.sign_in(it.workspace, "web", lambda page: visits.append(asyncio.create_task(_visit(page))))
            await it.until(lambda: it.view("web").state == "ready")
        await asyncio.sleep(2.1)
        authority.lasts, authority.renewed = 3600, 0
        async with harness(tmp_path) as again:
            assert await again.text("web", "who") in authority.clients
            assert authority.renewed == 1
        await asyncio.gather(*visits)


@EVENTS
async def test_a_user_who_says_no_is_not_signed_in(tmp_path: Path, events: bool) -> None:
    with web_server(signs_in=True, events=events) as (address, authority):
        visits: list[asyncio.Task[None]] = []
        authority.deny = True
        async with harness(tmp_path) as it:
            it.configure(web={"url": address})
            await it.approved("web")
            with pytest.raises(
                AmanuError, match=r"not signed in to web: the authorization server answered access_denied\."
            ) as no:
                await it.servers.sign_in(
                    it.workspace, "web", lambda page: visits.append(asyncio.create_task(_visit(page)))
                )
            assert no.value.kind == "authRequired"
        await asyncio.gather(*visits)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("https://metadata.example/x", "not on the public internet"),
        ("http://public.example/x", "does not begin with https"),
    ],
)
async def test_a_public_server_cannot_make_us_ask_a_private_address(
    monkeypatch: pytest.MonkeyPatch, address: str, sentence: str
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["169.254.169.254"] if host == "metadata.example" else ["93.184.216.34"]

    monkeypatch.setattr(http, "_resolve", resolve)
    transport = http.GuardedTransport("https://server.example/mcp")
    with pytest.raises(httpx2.ConnectError, match=sentence):
        await transport.handle_async_request(httpx2.Request("GET", address))
    await transport.aclose()
