"""What our LSP base promises and stock pygls does not keep, on real processes, byte by byte.

Each promise also runs against stock pygls with the same features, where it must fail (strict xfail): so each is
known to be a test that can fail.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.raw_client import RawClient, python
from support.warm_process import warm

SUPPORT = Path(__file__).parents[1] / "support"
SERVERS = {
    "ours": python(str(SUPPORT / "fake_session_server.py"), "relay"),
    "stock": python(str(SUPPORT / "stock_pygls_server.py")),
}
CANARY = "canary-in-a-body"
SOON = 0.3
"""Seconds stock gets for an answer it never gives."""

Promise = Callable[[RawClient, float], Awaitable[None]]
promises: list[Promise] = []


def promise(check: Promise) -> Promise:
    promises.append(check)
    return check


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """One daemon for all promises: each test is a relay of its own. Gives the environment."""
    home = tmp_path_factory.mktemp("daemon")
    environment = {**os.environ, "AMANU_HOME": str(home), "AMANU_LOG_LEVEL": "debug"}
    ready, theirs = os.pipe()
    command = python(str(SUPPORT / "fake_session_server.py"), "daemon", "--ready", str(theirs))
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=(theirs,)) as process:
        os.close(theirs)
        assert os.read(ready, 1) == b"1"  # or the first relay starts one of its own
        os.close(ready)
        yield environment
        process.terminate()
        assert process.wait(10) == 0
    log = (home / "logs" / "daemon.log").read_text()
    assert "listens on" in log
    assert CANARY not in log, "a body was logged"


@pytest_asyncio.fixture
async def spawn(daemon: dict[str, str], tmp_path: Path) -> AsyncIterator[Callable[[str], Awaitable[RawClient]]]:
    clients: list[RawClient] = []

    async def start(server: str) -> RawClient:
        command = warm(SERVERS[server]) if server == "stock" else SERVERS[server]
        client = await RawClient.spawn(command, daemon, cwd=str(tmp_path))
        clients.append(client)
        return client

    yield start
    for client in clients:
        await client.stop()


def error_of(reply: dict[str, Any]) -> tuple[int, Any]:
    assert "result" not in reply
    return reply["error"]["code"], reply["error"].get("data")


# Every request gets exactly one reply ---------------------------------------------------------------


@promise
async def bad_params_are_refused_naming_the_field(client: RawClient, seconds: float) -> None:
    await client.initialize()
    reply = await client.request("amanu/prompt/send", {"sessionId": "s", "promptId": 3, "text": CANARY}, seconds)
    assert error_of(reply) == (-32602, {"kind": "invalidParams", "path": "promptId"})


@promise
async def missing_params_are_refused(client: RawClient, seconds: float) -> None:
    await client.initialize()
    reply = await client.request("amanu/prompt/send", None, seconds)
    assert error_of(reply)[0] == -32602


@promise
async def absent_params_are_fine_where_none_are_needed(client: RawClient, seconds: float) -> None:
    """vscode-languageclient sends no `params` for a RequestType0."""
    await client.initialize()
    assert "sessions" in (await client.request("amanu/session/list", None, seconds))["result"]


@promise
async def nested_jsonrpc_objects_are_data(client: RawClient, seconds: float) -> None:
    await client.initialize()
    nested: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {}}
    await client.request("amanu/session/create", {"sessionId": "s", "roots": ["/"]}, seconds)
    params: dict[str, Any] = {"sessionId": "s", "promptId": "p", "text": CANARY, "more": [nested]}
    reply = await client.request("amanu/prompt/send", params, seconds)
    assert reply["result"]["status"] == "started"


@promise
async def not_json_is_answered(client: RawClient, seconds: float) -> None:
    await client.initialize()
    client.send_body(b"{nonsense " + CANARY.encode())
    assert error_of(await client.reply(None, seconds))[0] == -32700
    client.send_body(b"\xff\xfe")
    assert error_of(await client.reply(None, seconds))[0] == -32700
    client.send_body(b"")
    assert error_of(await client.reply(None, seconds))[0] == -32700
    client.send_body(b"[" * 100_000)
    assert error_of(await client.reply(None, seconds))[0] == -32700
    assert "sessions" in (await client.request("amanu/session/list", {}, seconds))["result"]


@promise
async def what_is_no_request_is_answered(client: RawClient, seconds: float) -> None:
    await client.initialize()
    messages: list[tuple[Any, Any]] = [
        ([], None),
        (None, None),
        (3, None),
        ({"id": 50, "method": "amanu/session/list"}, 50),
        ({"jsonrpc": "1.0", "id": 51, "method": "amanu/session/list"}, 51),
        ({"jsonrpc": "2.0", "id": 52}, 52),
        ({"jsonrpc": "2.0", "id": 53, "method": 4}, 53),
        ({"jsonrpc": "2.0", "id": [1], "method": "amanu/session/list"}, None),
        ({"jsonrpc": "2.0", "id": None, "method": "amanu/session/list"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "amanu/session/list"}, None),
    ]
    for message, id in messages:
        client.send(message)
        assert error_of(await client.reply(id, seconds))[0] == -32600, message


@promise
async def crash_tells_no_traceback(client: RawClient, seconds: float) -> None:
    await client.initialize()
    await client.request("amanu/session/create", {"sessionId": "s", "roots": ["/"]}, seconds)
    params = {"sessionId": "s", "promptId": "p", "text": "crash"}
    reply = await client.request("amanu/prompt/send", params, seconds)
    assert error_of(reply)[0] == -32603
    assert "secret-of-the-crash" not in json.dumps(reply) and "Traceback" not in json.dumps(reply)


@promise
async def bad_notifications_make_no_popup(client: RawClient, seconds: float) -> None:
    await client.initialize()
    client.notify("textDocument/didOpen", {"textDocument": 3})
    client.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": "file:///no", "version": 1}, "contentChanges": [{"text": "x"}]},
    )
    client.notify("amanu/event/ack", {"sessionId": 1})
    await client.request("amanu/rule/preview", {"rule": "x"}, seconds)
    assert [each["method"] for each in client.heard] == []


# Lifecycle ------------------------------------------------------------------------------------------


@promise
async def nothing_before_initialize(client: RawClient, seconds: float) -> None:
    client.notify("textDocument/didOpen", {"textDocument": 3})
    reply = await client.request("amanu/rule/preview", {"rule": "x"}, seconds)
    assert error_of(reply)[0] == -32002
    assert client.heard == []
    await client.initialize()


@promise
async def initialize_once(client: RawClient, seconds: float) -> None:
    await client.initialize()
    params: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
    assert error_of(await client.request("initialize", params, seconds))[0] == -32600


@promise
async def nothing_after_shutdown(client: RawClient, seconds: float) -> None:
    await client.initialize()
    assert (await client.request("shutdown", None, seconds))["result"] is None
    assert error_of(await client.request("amanu/rule/preview", {"rule": "x"}, seconds))[0] == -32600
    client.notify("exit", None)
    assert await client.exit_code() == 0


@promise
async def exit_without_shutdown_is_1(client: RawClient, seconds: float) -> None:
    await client.initialize()
    client.notify("exit", None)
    assert await client.exit_code() == 1


@promise
async def leaves_when_the_editor_is_gone(client: RawClient, seconds: float) -> None:
    """The editor's process dies while something else holds our pipes open."""
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    await client.initialize(processId=editor.pid)
    await client.request("amanu/rule/preview", {"rule": "x"})
    editor.kill()
    editor.communicate()
    assert await client.exit_code(max(seconds, 3)) == 1


# Frames ---------------------------------------------------------------------------------------------


@promise
async def header_names_have_no_case(client: RawClient, seconds: float) -> None:
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"capabilities": {}, "processId": None, "rootUri": None},
        }
    )
    client.writer.write(f"content-length:{len(body)}\r\n\r\n{body}".encode())
    assert "result" in await client.reply(1, seconds)


def broken_frame(name: str, data: bytes) -> None:
    async def check(client: RawClient, seconds: float) -> None:
        await client.initialize()
        client.writer.write(data)
        reply = await client.reply(None, seconds)
        assert error_of(reply)[0] == -32700
        assert await client.exit_code() == 1

    check.__name__ = f"broken_frame_{name}"
    promise(check)


broken_frame("lf_only", b"Content-Length: 2\n\n{}")
broken_frame("huge", b"Content-Length: 10000000000\r\n\r\n")
broken_frame("negative", b"Content-Length: -5\r\n\r\n{}")
broken_frame("text", b"Content-Length: many\r\n\r\n{}")
broken_frame("absent", b"Content-Type: x\r\n\r\n{}")
broken_frame("no_header", b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}')


# Text -----------------------------------------------------------------------------------------------


def text_sync(name: str, text: str, change: dict[str, Any], expected: str) -> None:
    async def check(client: RawClient, seconds: float) -> None:
        await client.initialize()
        await client.request("amanu/session/create", {"sessionId": "s", "roots": ["/"]}, seconds)
        document = {"uri": "file:///d/t.txt", "languageId": "x", "version": 1, "text": text}
        client.notify("textDocument/didOpen", {"textDocument": document})
        client.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": "file:///d/t.txt", "version": 2}, "contentChanges": [change]},
        )
        reply = await client.request("amanu/blob/get", {"sessionId": "s", "blobId": "buffers:"}, seconds)
        assert json.loads(reply["result"]["text"]) == {"/d/t.txt": expected}

    check.__name__ = f"text_{name}"
    promise(check)


def at(line: int, character: int, end_line: int, end_character: int, text: str) -> dict[str, Any]:
    start = {"line": line, "character": character}
    return {"range": {"start": start, "end": {"line": end_line, "character": end_character}}, "text": text}


text_sync("line_separator_is_no_line_end", "a\u2028b\nc", at(1, 0, 1, 1, "X"), "a\u2028b\nX")
text_sync("form_feed_is_no_line_end", "a\x0cb\nc", at(1, 0, 1, 1, "X"), "a\x0cb\nX")
text_sync("past_the_last_line", "abc", at(0, 9, 0, 9, "X"), "abcX")


# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", promises, ids=lambda each: each.__name__)
async def test_ours_keeps(check: Promise, spawn: Callable[[str], Awaitable[RawClient]]) -> None:
    await check(await spawn("ours"), 10.0)


@pytest.mark.xfail(strict=True, raises=(AssertionError, TimeoutError, KeyError))
@pytest.mark.parametrize("check", promises, ids=lambda each: each.__name__)
async def test_stock_does_not(check: Promise, spawn: Callable[[str], Awaitable[RawClient]]) -> None:
    await check(await spawn("stock"), SOON)
