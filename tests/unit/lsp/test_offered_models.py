"""A model that one client offers answers in a session of any client, as long as that client is connected."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from amanu.frontends.lsp.connection import connect_in_process
from amanu.models.retry import RetryPolicy
from amanu.session.sessions import open_sessions
from support.raw_client import RawClient

GPT = "vscode:copilot/gpt-5"
OFFER = {
    "models": [
        {"vendor": "copilot", "vendorTitle": "GitHub Copilot", "id": "gpt-5", "name": "GPT-5", "maxInputTokens": 64000}
    ]
}
GONE = "copilot/gpt-5 comes from VS Code, and no open VS Code window offers it."


class Pair:
    """VS Code, which offers a model, and a terminal, which shows a session that uses it."""

    def __init__(self, editor: RawClient, terminal: RawClient, work: Path) -> None:
        self.editor = editor
        self.terminal = terminal
        self.work = work

    async def begin(self) -> None:
        for client in (self.editor, self.terminal):
            await client.initialize()
        await ask(self.editor, "model/offer", **OFFER)
        await ask(self.terminal, "session/create", sessionId="s", roots=[str(self.work)], modelId=GPT)

    async def prompt(self, text: str) -> dict[str, Any]:
        """What VS Code is asked for the prompt."""
        await ask(self.terminal, "prompt/send", sessionId="s", promptId="p", text=text)
        return await run(self.editor)

    async def event(self, kind: str) -> dict[str, Any]:
        """The next such event that the terminal sees."""
        while True:
            message = await self.terminal.notification("amanu/event")
            if message["event"]["kind"] == kind:
                return message["event"]


@pytest.fixture
async def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    monkeypatch.setenv("AMANU_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("forty-two")
    sessions = open_sessions()
    editor, terminal = [RawClient(*await connect_in_process(sessions, {})) for _ in range(2)]
    yield Pair(editor, terminal, tmp_path / "work")
    editor.writer.close()
    terminal.writer.close()
    await sessions.shutdown()


async def test_it_is_listed_asked_and_called_back(pair: Pair) -> None:
    await pair.begin()
    listed = (await pair.terminal.request("amanu/model/list", {}))["result"]
    (model,) = [model for model in listed["models"] if model["modelId"] == GPT]
    assert (model["name"], model["available"], model["contextWindow"]) == ("GPT-5 · GitHub Copilot", True, 64000)
    assert listed["vendors"]["vscode:copilot"] == "GitHub Copilot"

    first = await pair.prompt("Read it.")
    assert [message["role"] for message in first["params"]["messages"]] == ["user", "user"]
    assert "read_file" in [tool["name"] for tool in first["params"]["tools"]]
    part(pair.editor, first, kind="text", text="I look.")
    part(pair.editor, first, kind="call", callId="c", tool="read_file", arguments={"path": "a.txt"})
    reply(pair.editor, first)
    second = await run(pair.editor)
    asked, answered = second["params"]["messages"][-2:]
    assert [part["kind"] for part in asked["parts"]] == ["text", "call"]
    assert (answered["role"], answered["parts"][0]["callId"]) == ("user", "c")
    assert "forty-two" in answered["parts"][0]["text"]
    part(pair.editor, first, kind="text", text="Too late: that reply is over.")
    part(pair.editor, second, kind="text", text="Forty-two.")
    reply(pair.editor, second)
    assert (await pair.event("turnEnded"))["reason"] == "completed"
    shown = (await pair.terminal.request("amanu/session/attach", {"sessionId": "s"}))["result"]["state"]
    assert [item["text"] for item in shown["items"] if item["kind"] == "answer"] == ["I look.", "Forty-two."]
    assert shown["usage"]["costUsd"] is None and shown["usage"]["contextTokens"] > 1000


async def test_a_cancelled_turn_cancels_the_request(pair: Pair) -> None:
    await pair.begin()
    asked = await pair.prompt("Read it.")
    part(pair.editor, asked, kind="text", text="I ")
    turn_id = (await pair.event("turnStarted"))["turnId"]
    await ask(pair.terminal, "turn/cancel", sessionId="s", turnId=turn_id)
    assert (await pair.editor.notification("$/cancelRequest"))["id"] == asked["id"]
    assert (await pair.event("turnEnded"))["reason"] == "cancelled"


async def test_the_window_is_closed(pair: Pair) -> None:
    await pair.begin()
    part(pair.editor, await pair.prompt("Read it."), kind="text", text="I ")
    pair.editor.writer.close()
    ended = await pair.event("turnEnded")
    assert ended["reason"] == "failed"
    assert f"{GONE} Open the folder in VS Code again, or choose another model." in ended["message"]
    refused = (await pair.terminal.request("amanu/prompt/send", {"sessionId": "s", "promptId": "q", "text": "Go."}))[
        "error"
    ]
    assert (refused["message"], refused["data"]["kind"]) == (GONE, "modelUnavailable")
    assert refused["data"]["hint"] == "Open the folder in VS Code again, or choose another model."


async def run(editor: RawClient) -> dict[str, Any]:
    """The next request to run a model. One about something beside the conversation is answered at once."""
    while True:
        message = editor.heard.pop(0) if editor.heard else await editor.read()
        assert message is not None
        if message.get("method") == "amanu/model/run":
            if message["params"]["tools"]:
                return message
            part(editor, message, kind="text", text="A title")
            reply(editor, message)


def part(editor: RawClient, asked: dict[str, Any], **given: Any) -> None:
    editor.notify("amanu/model/part", {"runId": asked["params"]["runId"], "part": given})


def reply(editor: RawClient, asked: dict[str, Any]) -> None:
    editor.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"error": None, "message": ""}})


async def ask(client: RawClient, method: str, **params: Any) -> None:
    answer = await client.request(f"amanu/{method}", params)
    assert "result" in answer, answer
