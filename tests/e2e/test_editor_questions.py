"""What an editor knows reaches the model, through a real daemon process; and editors that answer badly."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.raw_client import RawClient
from support.warm_process import warm

SERVE = [sys.executable, "-P", "-m", "amanu", "serve"]
LOOK: dict[str, Any] = {"calls": [{"tool": "list_symbols", "arguments": {"path": "cart.py"}}]}
ALL = ["diagnostics", "definition", "references", "symbols"]
CART = "def subtotal(items):\n    return sum(items)\n\n\nprint(subtotal([é]))\n"
Answer = Callable[[str, Any], dict[str, Any] | None]
"""Method and params → `result` or `error` of the reply; None answers nothing."""


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator["Client"]:
    (tmp_path / "cart.py").write_text(CART)
    raw = await RawClient.spawn(warm([*SERVE, "--alone"]), {**os.environ})
    yield Client(raw, tmp_path)
    await raw.stop()


class Client:
    """An editor's end: prompts, answers questions, and keeps what it was asked and what the answer was."""

    def __init__(self, raw: RawClient, root: Path) -> None:
        self.raw = raw
        self.root = root
        self.asked: list[tuple[str, Any]] = []

    async def begin(self, *steps: dict[str, Any], editor: list[str]) -> None:
        script = self.root.parent / "script.json"
        script.write_text(json.dumps(steps))
        await self.raw.initialize({"experimental": {"amanu": {"protocol": [4], "editor": editor}}})
        made = {"sessionId": "s", "roots": [str(self.root)], "modelId": f"scripted:{script}"}
        assert "result" in await self.raw.request("amanu/session/create", made)

    async def turn(self, prompt_id: str, answer: Answer = lambda method, params: None) -> str:
        """Say something and be an editor until the turn has ended; the model's last words."""
        sent = {"sessionId": "s", "promptId": prompt_id, "text": "look"}
        assert "result" in await self.raw.request("amanu/prompt/send", sent)
        said = ""
        while True:
            message = self.raw.heard.pop(0) if self.raw.heard else await self.raw.read()
            assert message is not None, "the server left"
            method, params = message["method"], message["params"]
            if method.startswith("amanu/editor/"):
                self.asked.append((method, params))
                if (reply := answer(method, params)) is not None:
                    self.raw.send({"jsonrpc": "2.0", "id": message["id"], **reply})
            elif method == "amanu/event":
                match params["event"]:
                    case {"kind": "itemCompleted", "item": {"kind": "answer", "text": text}}:
                        said = text
                    case {"kind": "turnEnded"}:
                        return said
                    case _:
                        pass


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


async def test_context_and_questions(client: Client) -> None:
    file, outside = str(client.root / "cart.py"), "/usr/lib/builtins.pyi"

    def answer(method: str, params: Any) -> dict[str, Any]:
        match method.rsplit("/", 1)[1]:
            case "diagnostics":
                findings = [
                    {"lines": {"start": 4, "end": 5}, "severity": "error", "message": "é?", "source": "ty"},
                    {"lines": {"start": 4, "end": 5}, "severity": "error", "message": "ours", "source": "amanu"},
                ]
                return {"result": {"status": "success", "files": [{"path": file, "findings": findings}]}}
            case "definition":
                return {
                    "result": {"status": "success", "locations": [{"path": outside, "lines": {"start": 8, "end": 9}}]}
                }
            case "references":
                if len([each for each, _ in client.asked if each == method]) == 1:
                    return {"result": {"status": "starting"}}
                return {"result": {"status": "success", "locations": [{"path": file, "lines": {"start": 0, "end": 1}}]}}
            case _:
                symbol = {"name": "subtotal", "kind": "function", "path": file, "lines": {"start": 0, "end": 2}}
                return {"result": {"status": "success", "symbols": [symbol]}}

    steps: list[dict[str, Any]] = [
        {"expect": "\nActive file: cart.py, line 2.\nOpen files: cart.py.\n", "text": "One."},
        {"expect": "look\n\n<editor_context>\nWhat has changed there:\nActive file: none in the workspace.\n</editor"},
        {"expect": "5: error: é? (ty)\n"},
        {"expect": "builtins.pyi:9 (outside the workspace)\n"},
        {"expect": "cart.py:1: def subtotal(items):\n"},
        {"expect": "1-2: function subtotal\n", "text": "All as expected."},
    ]
    steps[1]["calls"] = [call("get_diagnostics", path="cart.py")]
    steps[2]["calls"] = [call("find_definition", path="cart.py", line=2, symbol="sum")]
    steps[3]["calls"] = [call("find_references", path="cart.py", line=5, symbol="subtotal")]
    steps[4]["calls"] = [call("list_symbols", path="cart.py")]
    await client.begin(*steps, editor=ALL)
    active = {"path": file, "lines": {"start": 1, "end": 2}}
    client.raw.notify("amanu/editor/contextChanged", {"active": active})
    client.raw.notify("amanu/editor/contextChanged", {"openFiles": [file, outside]})
    client.raw.notify("amanu/editor/contextChanged", {"openFiles": "no list"})  # refused: all is as it was
    client.raw.notify("amanu/editor/contextChanged", {"findings": [{"path": file}], "active": {}})
    assert "expected to hear" not in await client.turn("p1")
    client.raw.notify("amanu/editor/contextChanged", {"active": {}})
    assert await client.turn("p2", answer) == "All as expected."
    assert [method.rsplit("/", 1)[1] for method, _ in client.asked] == [
        "diagnostics", "definition", "references", "references", "symbols",
    ]  # fmt: skip
    assert client.asked[2][1] == {"path": file, "position": {"line": 4, "character": 6}}


@pytest.mark.parametrize(
    ("editor", "answer", "said"),
    [
        ([], {}, "No attached editor can answer about symbols; use grep."),
        (["diagnostics", "apply"], {}, "No attached editor can answer about symbols; use grep."),
        (ALL, {"result": None}, "could not answer: its answer is invalid."),
        (ALL, {"result": {"status": "fine"}}, "could not answer: its answer is invalid."),
        (ALL, {"result": {"status": "success", "locations": [{"path": []}]}}, "its answer is invalid."),
        (ALL, {"result": [[[1]]]}, "its answer is invalid."),
        (ALL, {"error": {"code": -32601, "message": "What?"}}, "could not answer: What?"),
        (ALL, {"error": "so"}, "could not answer: The client answered with an error."),
        (ALL, {"result": {"status": "noServer"}}, "has no language server for that. Instead, use grep."),
    ],
)
async def test_editors_that_cannot_or_do_not_answer(
    client: Client, editor: list[str], answer: dict[str, Any], said: str
) -> None:
    steps = [
        {"calls": [call("find_definition", path="cart.py", line=2, symbol="sum")]},
        {"expect": said, "text": "So."},
    ]
    await client.begin(*steps, editor=editor)
    assert await client.turn("p", lambda method, params: answer) == "So."
    assert len(client.asked) == (editor == ALL)


async def test_a_question_is_taken_back_when_the_turn_is_cancelled(client: Client) -> None:
    await client.begin(LOOK, {"text": "So."}, editor=ALL)
    await client.raw.request("amanu/prompt/send", {"sessionId": "s", "promptId": "p", "text": "look"})
    await client.raw.notification("amanu/editor/symbols")
    cancelled = await client.raw.request("amanu/turn/cancel", {"sessionId": "s", "turnId": "turn-p"})
    assert cancelled["result"] == {"status": "cancelled"}
    assert (await client.raw.notification("$/cancelRequest"))["id"].startswith("amanu-")


async def test_the_editor_that_is_asked_goes_away(tmp_path: Path) -> None:
    """The turn goes on without it, and whoever comes next sees why."""
    (tmp_path / "cart.py").write_text(CART)
    environment = {**os.environ, "AMANU_IDLE_SECONDS": "5"}
    first = Client(await RawClient.spawn(warm(SERVE), environment), tmp_path)
    second = await RawClient.spawn(warm(SERVE), environment)
    try:
        said = "could not answer: The client has disconnected. Instead, use grep."
        await first.begin(LOOK, {"expect": said, "text": "So."}, editor=ALL)
        await first.raw.request("amanu/prompt/send", {"sessionId": "s", "promptId": "p", "text": "look"})
        await first.raw.notification("amanu/editor/symbols")
        await first.raw.stop()
        await second.initialize()
        async with asyncio.timeout(50):
            while True:
                answer = await second.request("amanu/session/attach", {"sessionId": "s"})
                state = answer["result"]["state"]
                if state["lastTurn"] is not None:
                    break
                await asyncio.sleep(0.05)
        assert state["items"][-1]["text"] == "So."
    finally:
        await second.stop()
