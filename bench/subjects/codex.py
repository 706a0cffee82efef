"""Codex over its app-server."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.plan import Plan, prompt
from bench.rpc import Rpc
from bench.subject import Agent, Place, Turn


def codex_config(url: str, workspace: Path) -> str:
    """Its `config.toml`: our service as the provider, nothing that calls home."""
    return f"""model = "gpt-5.5"
model_provider = "bench"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
[model_providers.bench]
name = "Bench"
base_url = "{url}/v1"
env_key = "BENCH_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[projects."{workspace}"]
trust_level = "trusted"
"""


class CodexAgent(Agent):
    def __init__(self) -> None:
        super().__init__()
        self._turns: dict[str, Turn] = {}
        self._ids: dict[str, str] = {}
        self._asking: set[str] = set()
        """Sessions in which edits are asked about, as they are elsewhere."""
        self._pending: dict[str, asyncio.Future[Any]] = {}

    async def start(self, command: Sequence[str], environment: Mapping[str, str], place: Place) -> "CodexAgent":
        process = await self.tree.spawn(command, environment, place.workspace, place.errors)
        self._rpc = Rpc(process, "lines", self._notified, self._asked)
        return self

    async def initialize(self) -> None:
        await self._rpc.call("initialize", {"clientInfo": {"name": "bench", "title": "Bench", "version": "1"}})
        self._rpc.notify("initialized", {})

    async def open(self, folder: Path, *, asks: bool = True) -> str:
        answer = await self._rpc.call("thread/start", {"cwd": str(folder)})
        session: str = answer["thread"]["id"]
        if asks:
            self._asking.add(session)
        return session

    def prompt(self, session: str, plan: Plan) -> Turn:
        turn = self._turns[session] = Turn()
        content = [{"type": "text", "text": prompt(plan)}]
        params: dict[str, Any] = {"threadId": session, "input": content}
        if session in self._asking and "apply_patch" in plan.arguments.get("cmd", ""):
            params |= {"approvalPolicy": "on-request", "sandboxPolicy": {"type": "readOnly"}}
        else:  # what one turn says holds for those after it
            params |= {"approvalPolicy": "never", "sandboxPolicy": {"type": "dangerFullAccess"}}
        self._rpc.call("turn/start", params).add_done_callback(lambda answer: _refused(turn, answer))
        return turn

    async def cancel(self, session: str) -> None:
        self._rpc.call("turn/interrupt", {"threadId": session, "turnId": self._ids[session]})
        await self._turns[session].over.wait()

    def approve(self, session: str) -> None:
        self._pending.pop(session).set_result({"decision": "accept"})

    async def stop(self) -> None:
        self._rpc.close()
        await super().stop()

    def _notified(self, method: str, params: Any) -> None:
        turn = self._turns.get(params.get("threadId", "")) if params else None
        if turn is None:
            return
        match method:
            case "item/agentMessage/delta":
                turn.text(params["delta"])
            case "turn/started":
                self._ids[params["threadId"]] = params["turn"]["id"]
            case "turn/completed":
                turn.end(params["turn"]["status"])
            case _:
                pass

    def _asked(self, method: str, params: Any) -> Any:
        session = params["threadId"]
        approved = self._pending[session] = asyncio.get_running_loop().create_future()
        self._turns[session].ask()
        return approved


def _refused(turn: Turn, answer: "asyncio.Future[Any]") -> None:
    if not answer.cancelled() and (error := answer.exception()) is not None:
        turn.end(f"error: {error}")
