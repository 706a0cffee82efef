"""Agents that speak the Agent Client Protocol: Gemini CLI, OpenCode, and our floors."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.plan import Plan, prompt
from bench.rpc import Rpc, RpcError
from bench.subject import Agent, Place, Turn


class AcpAgent(Agent):
    """`login`: the method to authenticate with, if it wants that."""

    def __init__(self, login: str | None = None) -> None:
        super().__init__()
        self._login = login
        self._turns: dict[str, Turn] = {}
        self._pending: dict[str, asyncio.Future[Any]] = {}
        self._prompts: set[asyncio.Task[None]] = set()

    async def start(self, command: Sequence[str], environment: Mapping[str, str], place: Place) -> "AcpAgent":
        process = await self.tree.spawn(command, environment, place.workspace, place.errors)
        self._rpc = Rpc(process, "lines", self._notified, self._asked)
        return self

    async def initialize(self) -> None:
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        await self._rpc.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    async def open(self, folder: Path, *, asks: bool = True) -> str:
        if self._login:
            await self._rpc.call("authenticate", {"methodId": self._login})
        answer = await self._rpc.call("session/new", {"cwd": str(folder), "mcpServers": []})
        return answer["sessionId"]

    def prompt(self, session: str, plan: Plan) -> Turn:
        turn = self._turns[session] = Turn()
        content = [{"type": "text", "text": prompt(plan)}]
        answer = self._rpc.call("session/prompt", {"sessionId": session, "prompt": content})
        task = asyncio.ensure_future(_end(turn, answer))
        self._prompts.add(task)
        task.add_done_callback(self._prompts.discard)
        return turn

    async def cancel(self, session: str) -> None:
        self._rpc.notify("session/cancel", {"sessionId": session})
        await self._turns[session].over.wait()

    def approve(self, session: str) -> None:
        self._pending.pop(session).set_result(None)

    async def stop(self) -> None:
        self._rpc.close()
        await super().stop()

    def _notified(self, method: str, params: Any) -> None:
        if method == "session/update":
            update = params["update"]
            if update["sessionUpdate"] == "agent_message_chunk" and (turn := self._turns.get(params["sessionId"])):
                turn.text(update["content"].get("text", ""))

    def _asked(self, method: str, params: Any) -> Any:
        session = params["sessionId"]
        if method == "fs/write_text_file":  # OpenCode asks an editor to write, whatever it offers
            Path(params["path"]).write_text(params["content"])
            return None
        assert method == "session/request_permission", method
        approved = self._pending[session] = asyncio.get_running_loop().create_future()
        self._turns[session].ask()
        return asyncio.ensure_future(_allow(approved, params["options"]))


async def _allow(approved: "asyncio.Future[Any]", options: list[dict[str, Any]]) -> dict[str, Any]:
    await approved
    once = next(each["optionId"] for each in options if each["kind"] == "allow_once")
    return {"outcome": {"outcome": "selected", "optionId": once}}


async def _end(turn: Turn, answer: "asyncio.Future[Any]") -> None:
    try:
        turn.end((await answer)["stopReason"])
    except RpcError as error:
        turn.end(f"error: {error}")
