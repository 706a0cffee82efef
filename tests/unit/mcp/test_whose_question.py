"""A server's question goes to the call that it is about, never to whichever call is the latest."""

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.mcp import connection
from amanu.mcp.model import CallClient
from amanu_protocol.items import Question, QuestionField
from support.mcp_harness import Harness, harness, python_server
from support.mcp_web_server import web_server

KINDS = ["stdio", "stdio, newest revision", "address", "address, newest revision"]


class Caller:
    """A session: what it was asked. It answers with its name once it may."""

    def __init__(self, name: str, it: Harness) -> None:
        self.name = name
        self.it = it
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.lines: list[str] = []

    async def ask(self, server: str, message: str, fields: Sequence[QuestionField]) -> Question | None:
        self.asked.append(message)
        await self.may_answer.wait()
        question = {"itemId": "1", "turnId": "1", "asker": server, "title": "", "fields": list(fields)}
        return Question.model_validate({**question, "state": "answered", "answers": {"name": self.name}})

    def call(self, tool: str, path: Path) -> asyncio.Task[str]:
        async def run() -> str:
            client = CallClient(self.lines.append, self.ask)
            answer = await self.it.server("sample").call_tool(tool, {"path": str(path)}, client)
            return answer.content[0].text

        return asyncio.create_task(run())


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    kind, _, newest = request.param.partition(", ")
    if not newest:
        client = connection.Client
        monkeypatch.setattr(connection, "Client", lambda *args, **more: client(*args, **{**more, "mode": "legacy"}))
    with contextlib.ExitStack() as stack:
        if kind == "stdio":
            yield python_server(args=["--modern"] if newest else [])
        else:
            yield {"url": stack.enter_context(web_server())[0]}


async def under_way(it: Harness, count: int) -> None:
    """So many calls have been sent."""
    [shared] = it.servers._connections.values()  # pyright: ignore[reportPrivateUsage]
    await it.until(lambda: len(shared._calls) == count)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("first", ["the one that asks", "the other"])
@pytest.mark.parametrize("end", ["returns", "is cancelled"])
async def test_a_question_is_asked_where_its_call_was_made(
    tmp_path: Path, table: dict[str, Any], first: str, end: str
) -> None:
    async with harness(tmp_path) as it:
        it.configure(sample=table)
        await it.approved("sample")
        root, a, b = it.workspace.roots[0], Caller("Ada", it), Caller("Bob", it)
        calls: dict[str, asyncio.Task[str]] = {}
        order = ["asks", "other"] if first == "the one that asks" else ["other", "asks"]
        for count, name in enumerate(order, 1):
            calls[name] = a.call("greet_when", root / "ask") if name == "asks" else b.call("end_when", root / "end")
            await under_way(it, count)
        asking, other = calls["asks"], calls["other"]
        (root / "ask").touch()
        if end == "is cancelled":
            other.cancel()
        else:
            (root / "end").touch()
            assert await other == f"there: {root / 'end'}"
        await it.until(lambda: bool(a.asked))
        again = b.call("end_when", root / "ask")  # while the question is open
        a.may_answer.set()
        assert await asking == "accept Who(name='Ada', times=2, loud=False)"
        assert await again == f"there: {root / 'ask'}"
        assert (a.asked, b.asked) == ([f"Who is it at {root / 'ask'}?"], [])


async def test_two_that_ask_at_once_never_get_each_others_answer(tmp_path: Path, table: dict[str, Any]) -> None:
    async with harness(tmp_path) as it:
        it.configure(sample=table)
        await it.approved("sample")
        root, a, b = it.workspace.roots[0], Caller("Ada", it), Caller("Bob", it)
        for round in range(2):
            callers = {"a": a, "b": b}
            calls = {name: caller.call("greet_when", root / f"{name}{round}") for name, caller in callers.items()}
            a.may_answer.set()
            b.may_answer.set()
            (root / f"a{round}").touch()
            (root / f"b{round}").touch()
            for name, caller in callers.items():
                answer = await calls[name]
                known = f"accept Who(name='{caller.name}', times=2, loud=False)"
                # Whose the first questions are, an older server does not tell: then nobody is asked.
                assert answer == known or (answer.startswith("cancel") and round == 0)
                assert all(f"/{name}" in message for message in caller.asked)


async def test_the_question_of_a_call_that_was_cancelled_is_asked_nowhere_else(
    tmp_path: Path, table: dict[str, Any]
) -> None:
    async with harness(tmp_path) as it:
        it.configure(sample=table)
        await it.approved("sample")
        root, a, b = it.workspace.roots[0], Caller("Ada", it), Caller("Bob", it)
        asking, other = a.call("greet_when", root / "ask"), b.call("end_when", root / "end")
        await under_way(it, 2)
        (root / "ask").touch()
        [shared] = it.servers._connections.values()  # pyright: ignore[reportPrivateUsage]
        await it.until(lambda: bool(a.asked or shared._held))  # pyright: ignore[reportPrivateUsage]
        asking.cancel()
        await under_way(it, 1)
        (root / "end").touch()
        assert await other == f"there: {root / 'end'}"
        assert b.asked == []
        b.may_answer.set()
        assert (await b.call("greet_when", root / "ask")).startswith("accept Who(name='Bob'")


STUBBORN = r"""
import json, os, sys, threading, time

def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

def call(number, name, path):
    while not os.path.exists(path):
        time.sleep(0.01)
    if name == "ask":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        send(id="e1", method="elicitation/create", params={"message": "Who?", "requestedSchema": schema})
    else:
        send(id=number, result={"content": [{"type": "text", "text": "there"}]})

for line in sys.stdin:
    message = json.loads(line)
    params, number = message.get("params"), message.get("id")
    match message.get("method"):
        case "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
            send(id=number, result={"protocolVersion": "2025-06-18", **about})
        case "tools/list":
            schema = {"type": "object", "properties": {"path": {"type": "string"}}}
            tools = [{"name": name, "description": name, "inputSchema": schema} for name in ("ask", "end")]
            send(id=number, result={"tools": tools})
        case "tools/call":
            arguments = (number, params["name"], params["arguments"]["path"])
            threading.Thread(target=call, args=arguments, daemon=True).start()
        case str() if number is not None:
            send(id=number, result={})
        case _:
            pass
"""


async def test_of_a_server_that_goes_on_asking_for_a_cancelled_call_nobody_else_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connection.Client
    monkeypatch.setattr(connection, "Client", lambda *args, **more: client(*args, **{**more, "mode": "legacy"}))
    script = tmp_path / "server.py"
    script.write_text(STUBBORN)
    async with harness(tmp_path) as it:
        it.configure(sample={"command": sys.executable, "args": [str(script)], "sandbox": False})
        await it.approved("sample")
        root, a, b = it.workspace.roots[0], Caller("Ada", it), Caller("Bob", it)
        asking, other = a.call("ask", root / "ask"), b.call("end", root / "end")
        await under_way(it, 2)
        (root / "ask").touch()
        [shared] = it.servers._connections.values()  # pyright: ignore[reportPrivateUsage]
        await it.until(lambda: shared._held == 1)  # pyright: ignore[reportPrivateUsage]
        asking.cancel()
        await it.until(lambda: shared._held == 0)  # pyright: ignore[reportPrivateUsage]
        (root / "end").touch()
        assert await other == "there"
        assert b.asked == []
