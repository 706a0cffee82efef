"""Amanu as an editor sees it: `amanu serve` on stdin and stdout, through the daemon or alone."""

import asyncio
import os
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from amanu_protocol.methods import PROTOCOL_VERSION
from bench.plan import Plan, prompt
from bench.rpc import Rpc, RpcError
from bench.subject import Agent, Deed, Place, Subject, Turn
from bench.subjects.acp import AcpAgent
from bench.subjects.environment import ROOT, environment

MODELS = {
    "anthropic": "anthropic:claude-sonnet-4-6",
    "gemini": "gemini:gemini-2.5-flash",
    "chat": "openrouter:openai/gpt-4.1",
    "responses": "openai:gpt-6.2-sol",
}
TITLES = {"anthropic": "anthropic", "gemini": "Gemini", "chat": "OpenRouter", "responses": "OpenAI"}
COMMAND = ROOT / ".venv" / "bin" / "amanu"

SETTINGS = """log_level = "warning"
[limits]
steps = 100000
[context]
warn = 1.0
mask = 1.0
compact = 1.0
"""
"""No step is one too many, and nothing is rewritten on the way: that has a bench of its own (`context.py`)."""


def subjects() -> list[Subject]:
    """Amanu on each vendor, behind its relay."""
    from amanu import __version__

    return [Subject(f"Amanu, {TITLES[wire]}", wire, False, partial(start, wire), uses, __version__) for wire in MODELS]


async def start(wire: str, place: Place, *, alone: bool = False, more: str = "") -> "AmanuAgent":
    """`more`: further settings."""
    command = [str(COMMAND), "serve", *(["--alone"] if alone else [])]
    return await AmanuAgent(MODELS[wire]).start(command, variables(wire, place, more), place)


async def start_acp(wire: str, place: Place) -> AcpAgent:
    """As an ACP client sees it."""
    return await AcpAgent().start([str(COMMAND), "acp"], variables(wire, place), place)


def variables(wire: str, place: Place, more: str = "") -> dict[str, str]:
    """The environment of its processes, with a home that is ready."""
    home = place.home / "amanu"
    (home / "config").mkdir(parents=True, exist_ok=True)
    address = f'[base_urls]\nopenrouter = "{place.url}/v1"\n'
    (home / "config" / "config.toml").write_text(SETTINGS + address + more)
    return environment(
        place.home,
        AMANU_HOME=str(home),
        ANTHROPIC_API_KEY="dummy",
        GEMINI_API_KEY="dummy",
        OPENAI_API_KEY="dummy",
        OPENROUTER_API_KEY="dummy",
        ANTHROPIC_BASE_URL=place.url,
        GOOGLE_GEMINI_BASE_URL=place.url,
        OPENAI_BASE_URL=f"{place.url}/v1",
        AMANU_MODEL=MODELS[wire],
    )


def uses(deed: Deed, what: Mapping[str, str]) -> dict[str, Any] | None:
    match deed:
        case "read":
            return {"tool": "read_file", "arguments": {"path": what["path"]}}
        case "grep":
            return {"tool": "grep", "arguments": {"pattern": what["pattern"]}}
        case "glob":
            return {"tool": "glob", "arguments": {"pattern": what["pattern"]}}
        case "edit":
            arguments = {"path": what["path"], "old_text": what["old"], "new_text": what["new"]}
            return {"tool": "edit_file", "arguments": arguments}
        case "hunks":
            content = f"{{each:{what['kept']}\n{what['new']}\n:each}}"
            return {"tool": "write_file", "arguments": {"path": what["path"], "content": content}}
        case "run":
            return {"tool": "run_shell_command", "arguments": {"command": what["command"]}}


class AmanuAgent(Agent):
    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model
        self._turns: dict[str, Turn] = {}
        self._ids: dict[str, str] = {}
        self._answers: set[str] = set()
        self._asked: dict[str, dict[str, Any]] = {}

    async def start(self, command: Sequence[str], environment: Mapping[str, str], place: Place) -> "AmanuAgent":
        self._workspace = place.workspace
        process = await self.tree.spawn(command, environment, place.workspace, place.errors)
        self._rpc = Rpc(process, "headers", self._notified, lambda method, params: None)
        return self

    async def initialize(self) -> None:
        uri = self._workspace.as_uri()
        amanu = {"protocol": [PROTOCOL_VERSION], "trustedRoots": [str(self._workspace)]}
        await self._rpc.call(
            "initialize",
            {
                "processId": os.getpid(),
                "clientInfo": {"name": "bench"},
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": "bench"}],
                "capabilities": {"experimental": {"amanu": amanu}},
            },
        )
        self._rpc.notify("initialized", {})

    async def open(self, folder: Path, *, asks: bool = True) -> str:
        session = uuid.uuid4().hex
        mode = "ask" if asks else "acceptEdits"
        params = {"sessionId": session, "roots": [str(folder)], "modelId": self._model, "mode": mode}
        await self._rpc.call("amanu/session/create", params)
        return session

    async def call(self, method: str, session: str, **params: Any) -> dict[str, Any]:
        """A request about that session."""
        return await self._rpc.call(method, {"sessionId": session, **params})

    async def attach(self, session: str) -> None:
        """Have a session of this home, opened from the disk if it is not open."""
        await self._rpc.call("amanu/session/attach", {"sessionId": session})

    async def close(self, session: str) -> None:
        await self._rpc.call("amanu/session/close", {"sessionId": session})

    async def ping(self) -> None:
        """Something that is answered at once, and needs nothing."""
        await self._rpc.call("amanu/rule/preview", {"rule": "grep"})

    def prompt(self, session: str, plan: Plan) -> Turn:
        turn = self._turns[session] = Turn()
        params = {"sessionId": session, "promptId": uuid.uuid4().hex, "text": prompt(plan)}
        self._rpc.call("amanu/prompt/send", params).add_done_callback(lambda answer: _refused(turn, answer))
        return turn

    async def cancel(self, session: str) -> None:
        await self._rpc.call("amanu/turn/cancel", {"sessionId": session, "turnId": self._ids[session]})

    def approve(self, session: str) -> None:
        asked = self._asked.pop(session)
        answer = {"decision": "allow", "scope": "once", "digest": asked["digest"], "toolCallId": asked["toolCallId"]}
        self._rpc.call("amanu/approval/resolve", {"sessionId": session, **answer})

    async def stop(self) -> None:
        self._rpc.close()
        await super().stop()

    def _notified(self, method: str, params: Any) -> None:
        if method != "amanu/event":
            return
        session, event = params["sessionId"], params["event"]
        turn = self._turns.get(session)
        if turn is None:
            return
        match event["kind"]:
            case "itemDelta":
                if event["itemId"] in self._answers:
                    turn.text(event["text"])
            case "itemStarted":
                if event["item"]["kind"] == "answer":
                    self._answers.add(event["item"]["itemId"])
            case "turnStarted":
                self._ids[session] = event["turnId"]
            case "approvalRequested":
                self._asked[session] = event["approval"]
                turn.ask()
            case "turnEnded":
                turn.end(f"{event['reason']} {event['message']}".strip())
            case _:
                pass
        self._rpc.notify("amanu/event/ack", {"sessionId": session, "seq": params["seq"]})


def _refused(turn: Turn, answer: "asyncio.Future[Any]") -> None:
    if not answer.cancelled() and (error := answer.exception()) is not None:
        assert isinstance(error, RpcError), error
        turn.end(f"error: {error}")
