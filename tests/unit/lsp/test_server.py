"""One connection in process: dispatch, cancelling, replies in order, nothing left behind, nobody starved."""

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast
from weakref import WeakSet

import pytest

from amanu.frontends.lsp import connection as module
from amanu.frontends.lsp.connection import Connection, alive, connect_in_process
from amanu.session.sessions import Sessions
from amanu_protocol.methods import BY_NAME
from support.fake_sessions import FakeSessions
from support.raw_client import RawClient

Connect = Callable[[], Awaitable[RawClient]]
_MADE = WeakSet[Connection]()
"""In this test."""


@pytest.fixture
def core() -> FakeSessions:
    return FakeSessions()


@pytest.fixture
async def connect(core: FakeSessions, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connect]:
    clients: list[RawClient] = []
    _MADE.clear()
    begin = Connection.__init__

    def noted(self: Connection, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        _MADE.add(self)

    monkeypatch.setattr(Connection, "__init__", noted)

    async def one() -> RawClient:
        pair = await connect_in_process(cast(Sessions, core), {"NAME": "value"})
        clients.append(RawClient(*pair))
        return clients[-1]

    yield one
    for client in clients:
        client.writer.close()
        await client.writer.wait_closed()
    async with asyncio.timeout(50):
        while module._running:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.01)


def connections() -> list[Connection]:
    gc.collect()
    return list(_MADE)


async def ready(connect: Connect, **initialize: Any) -> RawClient:
    client = await connect()
    await client.initialize(**initialize)
    await client.request("amanu/session/create", {"sessionId": "s", "roots": ["/"]})
    return client


async def test_every_method_has_a_route(connect: Connect) -> None:
    await connect()
    (connection,) = connections()
    routes = connection.protocol.routes
    assert set(routes) == {each.name for each in BY_NAME.values() if each.direction == "toDaemon"}
    for name, route in routes.items():
        assert route.params is BY_NAME[name].params, name


async def test_a_turn_is_heard_in_order_after_its_reply(connect: Connect) -> None:
    client = await ready(connect)
    client.heard.clear()
    reply = await client.request("amanu/prompt/send", {"sessionId": "s", "promptId": "p", "text": "hi"})
    assert reply["result"] == {"status": "started", "turnId": "turn-p"}
    assert client.heard == []
    kinds = [(await client.notification("amanu/event"))["event"]["kind"] for _ in range(3)]
    assert kinds == ["turnStarted", "itemCompleted", "turnEnded"]


@pytest.mark.parametrize(
    ("method", "params", "code", "data"),
    [
        ("amanu/nothing", {}, -32601, None),
        ("$/nothing", {}, -32601, None),
        ("textDocument/hover", {}, -32601, None),
        ("amanu/prompt/send", [], -32602, {"kind": "invalidParams", "path": ""}),
        ("amanu/prompt/send", {"sessionId": "s"}, -32602, {"kind": "invalidParams", "path": "promptId"}),
        (
            "amanu/prompt/send",
            {
                "sessionId": "s",
                "promptId": "p",
                "text": "x",
                "attachments": [{"kind": "file"}, {"kind": "file", "path": 3}],
            },
            -32602,
            {"kind": "invalidParams", "path": "attachments.0.file.path"},
        ),
        ("amanu/session/list", {"limit": 0}, -32602, {"kind": "invalidParams", "path": "limit"}),
        (
            "amanu/session/rename",
            {"session_id": "s", "title": "x"},
            -32602,
            {"kind": "invalidParams", "path": "sessionId"},
        ),
        ("amanu/history/page", {"sessionId": "none", "beforeItemId": "x"}, -32803, {"kind": "sessionNotFound"}),
        (
            "amanu/proposal/diff",
            {"sessionId": "s", "scope": {"proposalId": "q"}},
            -32803,
            {"kind": "proposalNotFound", "hint": "Look again."},
        ),
        (
            "amanu/prompt/send",
            {"sessionId": "s", "promptId": "p", "text": "crash"},
            -32603,
            {"kind": "internalError", "hint": "`amanu logs` shows what happened."},
        ),
        ("textDocument/didOpen", {"textDocument": 3}, -32602, {"kind": "invalidParams", "path": "textDocument"}),
        ("workspace/executeCommand", {"command": "none"}, -32601, None),
    ],
)
async def test_errors(connect: Connect, method: str, params: Any, code: int, data: Any) -> None:
    client = await ready(connect)
    error = (await client.request(method, params))["error"]
    assert (error["code"], error.get("data")) == (code, data)
    assert "secret" not in error["message"] and len(error["message"]) > 10


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("amanu/session/list", [], "amanu/session/list: params: Input should be an object."),
        (
            "amanu/proposal/diff",
            {"sessionId": "s", "scope": 1},
            "amanu/proposal/diff: scope: Input should be an object.",
        ),
        ("amanu/prompt/send", {"sessionId": "s", "promptId": "p"}, "amanu/prompt/send: text: Field required."),
    ],
)
async def test_bad_params_are_told_in_the_words_of_json(
    connect: Connect, method: str, params: Any, message: str
) -> None:
    client = await ready(connect)
    assert (await client.request(method, params))["error"]["message"] == message


async def test_ids(connect: Connect) -> None:
    client = await ready(connect)
    for id in (0, -1, "", "é", 2**60):
        client.send({"jsonrpc": "2.0", "id": id, "method": "amanu/session/list"})
        assert "result" in await client.reply(id)
    slow = {"sessionId": "s", "blobId": "slow:"}
    client.send({"jsonrpc": "2.0", "id": 9, "method": "amanu/blob/get", "params": slow})
    client.send({"jsonrpc": "2.0", "id": 9, "method": "amanu/session/list"})
    assert (await client.reply(9))["error"]["code"] == -32600


async def test_cancel(connect: Connect) -> None:
    client = await ready(connect)
    slow = {"sessionId": "s", "blobId": "slow:"}
    for id in ("at once", "later"):
        client.send({"jsonrpc": "2.0", "id": id, "method": "amanu/blob/get", "params": slow})
        if id == "later":
            await client.request("amanu/session/list")
        client.notify("$/cancelRequest", {"id": id})
        assert (await client.reply(id))["error"]["code"] == -32800
    for unknown in ({"id": 77}, {"id": [1]}, {}, None, [3]):
        client.notify("$/cancelRequest", unknown)
    # An effect is not cut in half: its reply tells what became of it.
    params = {"sessionId": "s", "promptId": "p", "text": "slowly 0.05"}
    client.send({"jsonrpc": "2.0", "id": 5, "method": "amanu/prompt/send", "params": params})
    client.notify("$/cancelRequest", {"id": 5})
    assert (await client.reply(5))["result"]["status"] == "started"


async def test_shutdown_answers_what_is_open(connect: Connect) -> None:
    client = await ready(connect)
    slow = {"sessionId": "s", "blobId": "slow:"}
    client.send({"jsonrpc": "2.0", "id": 5, "method": "amanu/blob/get", "params": slow})
    client.send({"jsonrpc": "2.0", "id": 6, "method": "shutdown"})
    replies = {(await client.read() or {})["id"] for _ in range(2)}
    assert replies == {5, 6}


@pytest.mark.parametrize(
    ("capabilities", "message", "hint"),
    [
        ({}, "names no version", "capabilities.experimental.amanu.protocol"),
        ({"experimental": {"amanu": {"protocol": []}}}, "names no version", "capabilities.experimental.amanu.protocol"),
        ({"experimental": {"amanu": {"protocol": [1, 2]}}}, "speaks version 2 of", "Update the client"),
        ({"experimental": {"amanu": {"protocol": [3]}}}, "speaks version 3 of", "Update the client"),
        ({"experimental": {"amanu": {"protocol": [99]}}}, "speaks version 99 of", "Update Amanu."),
    ],
)
async def test_a_client_without_a_common_version_hears_what_to_update(
    connect: Connect, capabilities: dict[str, Any], message: str, hint: str
) -> None:
    client = await connect()
    result = await client.initialize(capabilities)
    assert "experimental" not in result["capabilities"]
    error = (await client.request("amanu/session/list"))["error"]
    assert error["code"] == -32602
    assert message in error["message"]
    assert hint in error["data"]["hint"]
    assert error["data"]["kind"] == "unsupportedVersion"
    assert error["data"]["details"] == {"supported": [4]}
    assert (await client.request("shutdown"))["result"] is None


async def test_bad_initialize_can_be_repeated(connect: Connect) -> None:
    client = await connect()
    bad = await client.request("initialize", {"capabilities": {"experimental": {"amanu": {"protocol": 1}}}})
    assert bad["error"]["data"]["path"] == "capabilities.experimental.amanu.protocol"
    await client.initialize()


@pytest.mark.parametrize(
    ("amanu", "trusted"),
    [
        ({}, None),
        ({"trustedRoots": None}, None),
        ({"trustedRoots": []}, ()),
        ({"trustedRoots": ["/a", "relative", "/b"]}, ("/a", "/b")),
        ({"protocol": [99], "trustedRoots": ["/a"]}, None),
    ],
)
async def test_what_a_client_says_of_itself(
    connect: Connect, core: FakeSessions, amanu: dict[str, Any], trusted: tuple[str, ...] | None
) -> None:
    client = await connect()
    await client.initialize(
        {"experimental": {"amanu": {"protocol": [4], **amanu}}},
        clientInfo={"name": "Test Editor"},
        workspaceFolders=[{"uri": "file:///w/one", "name": "one"}, {"uri": "untitled:x", "name": "x"}],
        initializationOptions={"environment": {"MORE": "1"}},
    )
    change = {"added": [{"uri": "file:///w/two", "name": ""}], "removed": [{"uri": "file:///w/one", "name": ""}]}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": change})
    await client.request("amanu/rule/preview", {"rule": "x"})
    (connection,) = connections()
    assert connection.name == "Test Editor"
    assert connection.trusted_roots == trusted
    assert connection.environment == {"NAME": "value", "MORE": "1"}
    assert connection.folders == {"untitled:x": None, "file:///w/two": Path("/w/two")}
    assert (connection in core.clients) is ("protocol" not in amanu)


async def test_documents_are_the_overlay(connect: Connect, core: FakeSessions) -> None:
    client = await ready(connect)
    document = {"uri": "file:///d/t", "languageId": "", "version": 1, "text": "one\r\ntwo"}
    client.notify("textDocument/didOpen", {"textDocument": document})
    change = {"range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}, "text": "2"}
    identity = {"uri": "file:///d/t", "version": 2}
    client.notify("textDocument/didChange", {"textDocument": identity, "contentChanges": [change]})
    client.notify("textDocument/didSave", {"textDocument": {"uri": "file:///d/t"}})
    await client.request("amanu/session/list")
    assert [(str(each.path), each.text, each.version) for each in core.overlay.buffers()] == [("/d/t", "one\r\n2", 2)]
    client.notify("textDocument/didChange", {"textDocument": identity, "contentChanges": [{"text": "all"}]})
    await client.request("amanu/session/list")
    assert [each.text for each in core.overlay.buffers()] == ["all"]
    client.writer.close()
    async with asyncio.timeout(50):
        while core.clients:
            await asyncio.sleep(0.01)
    assert list(core.overlay.buffers()) == []


async def test_edits_go_through_the_editor(connect: Connect, core: FakeSessions) -> None:
    """Both roads over the wire, and odd keys and nested messages in the client's answer."""
    from amanu.frontends.lsp.buffers import sha256
    from amanu.text.span_edits import SpanEdit

    amanu = {"protocol": [4], "editor": ["apply"]}
    for capabilities in ({}, {"experimental": {"amanu": amanu}}):
        client = await connect()
        await client.initialize(capabilities)
        document = {"uri": "file:///d/t", "languageId": "", "version": 1, "text": "one"}
        client.notify("textDocument/didOpen", {"textDocument": document})
        await client.request("shutdown-is-not-this")
        edit = SpanEdit(start=0, end=3, new_text="two")
        found = core.overlay.find(Path("/d/t"))
        assert found is not None
        task = asyncio.create_task(found[0].apply(Path("/d/t"), sha256("one"), [edit], "two", True))
        asked = await client.read()
        assert asked is not None
        identity = {"uri": "file:///d/t", "version": 2}
        client.notify("textDocument/didChange", {"textDocument": identity, "contentChanges": [{"text": "two"}]})
        odd = {"_meta": 1, "class": {"jsonrpc": "2.0", "id": 1}}
        if asked["method"] == "workspace/applyEdit":
            result = {"applied": True, **odd}
        else:
            assert asked["method"] == "amanu/editor/apply"
            assert asked["params"]["expectedSha256"] == sha256("one")
            result = {"status": "success", "sha256": sha256("two"), "version": 2, "saved": True, **odd}
        client.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        applied = await task
        assert (applied.status, applied.version) == ("success", 2)
        client.writer.close()
        async with asyncio.timeout(50):
            while list(core.overlay.buffers()):
                await asyncio.sleep(0.01)


async def test_a_client_that_answers_reads_is_asked_for_texts(
    connect: Connect, core: FakeSessions, tmp_path: Path
) -> None:
    """In its folders; what it opens does not count. Nothing is left of it when it goes."""
    file, outside = tmp_path / "work" / "t", tmp_path / "t"
    client = await connect()
    folder = {"uri": file.parent.as_uri(), "name": ""}
    amanu = {"protocol": [4], "editor": ["read"]}
    await client.initialize({"experimental": {"amanu": amanu}}, workspaceFolders=[folder])
    document = {"uri": file.as_uri(), "languageId": "", "version": 1, "text": "opened"}
    client.notify("textDocument/didOpen", {"textDocument": document})
    await client.request("shutdown-is-not-this")
    await core.overlay.refresh(outside)
    task = asyncio.create_task(core.overlay.refresh(file))
    asked = await client.read()
    assert asked is not None
    assert (asked["method"], asked["params"]) == ("amanu/editor/read", {"path": str(file)})
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"text": "unsaved", "_meta": 1}})
    await task
    assert [(each.path, each.text) for each in core.overlay.buffers()] == [(file, "unsaved")]
    client.writer.close()
    async with asyncio.timeout(50):
        while list(core.overlay.buffers()):
            await asyncio.sleep(0.01)


async def test_tool_arguments_keep_their_odd_keys(connect: Connect) -> None:
    client = await ready(connect)
    arguments = {"_meta": 1, "class": 2, "from": {"jsonrpc": "2.0", "id": 3}, "": "\u2028\ud83d", "a b": None}
    text = "tool " + json.dumps(arguments)
    await client.request("amanu/prompt/send", {"sessionId": "s", "promptId": "p", "text": text})
    await client.notification("amanu/event")
    event = (await client.notification("amanu/event"))["event"]
    assert event["item"]["arguments"] == arguments


async def test_nothing_is_left_of_what_is_done(connect: Connect) -> None:
    client = await ready(connect)
    document = {"uri": "file:///d/t", "languageId": "", "version": 1, "text": ""}
    client.notify("textDocument/didOpen", {"textDocument": document})
    for number in range(500):
        client.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": "file:///d/t", "version": number}, "contentChanges": [{"text": "x"}]},
        )
        client.notify("$/setTrace", {"value": "off"})
        client.send({"jsonrpc": "2.0", "id": f"r{number}", "method": "amanu/session/list"})
        client.send({"jsonrpc": "2.0", "id": f"r{number}", "result": 1})  # an answer to nothing we asked
        client.send({"jsonrpc": "2.0", "id": f"w{number}", "method": "workspace/executeCommand"})
        await client.reply(f"w{number}")
    (connection,) = connections()
    kept = {
        name: len(value)
        for name, value in vars(connection.protocol).items()
        if isinstance(value, (dict, set)) and name.startswith("_")
    }
    for name in ("_open", "_reads", "_background", "_pending_requests"):
        assert kept[name] == 0, kept
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await connection.protocol.ask("x/y", {})
    assert connection.protocol._pending_requests == {}  # pyright: ignore[reportPrivateUsage]
    assert await client.notification("$/cancelRequest") == {"id": "amanu-1"}


async def test_a_client_that_stops_reading_stalls_nobody(connect: Connect, core: FakeSessions) -> None:
    stuck = await ready(connect)
    stuck.reader._transport.pause_reading()  # type: ignore[attr-defined]
    flood = {"sessionId": "s", "promptId": "p", "text": "flood 100 65536"}
    stuck.send({"jsonrpc": "2.0", "id": 99, "method": "amanu/prompt/send", "params": flood})
    other = await connect()
    await other.initialize()
    await other.request("amanu/session/create", {"sessionId": "t", "roots": ["/"]})
    waits: list[float] = []
    for _ in range(50):
        began = time.perf_counter()
        await other.request("amanu/session/list", {"limit": 1})
        waits.append(time.perf_counter() - began)
        await asyncio.sleep(0.005)
    assert sorted(waits)[25] < 0.1, "the other client waits"
    (mine,) = [each for each in connections() if "s" in each._attached]  # pyright: ignore[reportPrivateUsage]
    unsent = mine._outbox.unsent  # pyright: ignore[reportPrivateUsage]
    assert unsent < 10 * 2**20, "deltas up to the limit and the completed item of 6.5 MB, not all deltas as well"
    async with asyncio.timeout(30):
        while core.busy:
            await asyncio.sleep(0.01)
    stuck.reader._transport.resume_reading()  # type: ignore[attr-defined]
    kinds: list[str] = []
    while "turnEnded" not in kinds:
        kinds.append((await stuck.notification("amanu/event"))["event"]["kind"])
    assert kinds.count("itemsReplaced") == 1


async def test_a_header_that_never_ends(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEADER_SECONDS", 0.05)
    client = await ready(connect)
    client.writer.write(b"hello")
    assert (await client.reply(None))["error"]["code"] == -32700
    assert await client.read() is None


@pytest.mark.parametrize(("seconds", "times"), [(0, 1), (3600, 0)])
async def test_the_likely_vendor_is_warmed_after_initialized(
    connect: Connect, core: FakeSessions, monkeypatch: pytest.MonkeyPatch, seconds: float, times: int
) -> None:
    monkeypatch.setattr(module, "WARM_SECONDS", seconds)
    client = await connect()
    await client.request("initialize", {"capabilities": {}})
    assert core.warmed == []
    client.notify("initialized", {})
    await client.request("amanu/nothing")
    await client.request("shutdown")
    assert len(core.warmed) == times


def test_alive() -> None:
    import os
    import subprocess
    import sys

    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not alive(process.pid), "a zombie"
    process.wait()
    assert not alive(process.pid)
    assert alive(os.getpid())
    assert not alive(2**40)
