"""The least an agent can be: an Agent Client Protocol loop over stdin and stdout, four tools, no policy, no journal.

A floor is a `Talk`: how one SDK (or none) keeps a history and streams a reply. What it costs with that SDK is what
language and SDK cost before a product does anything.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.floors.tools import TOOLS, preview


@dataclass(frozen=True)
class Call:
    call_id: str
    tool: str
    arguments: dict[str, Any]


class Talk(Protocol):
    """One conversation."""

    def say(self, text: str) -> None:
        """What the user said goes to the history."""
        ...

    def answer(self, results: list[tuple[Call, str]]) -> None:
        """What the tools said goes to the history."""
        ...

    def stream(self) -> AsyncIterator[str | Call]:
        """The next reply; it is in the history at its end."""
        ...


def serve(talk: Callable[[], Talk]) -> None:
    """Serve until the client leaves. `talk` starts a conversation; it is first called for the first prompt."""
    asyncio.run(_Server(talk).run())


class _Server:
    def __init__(self, talk: Callable[[], Talk]) -> None:
        self._talk = talk
        self._talks: dict[str, Talk] = {}
        self._folders: dict[str, Path] = {}
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[int, asyncio.Future[None]] = {}

    async def run(self) -> None:
        reader = asyncio.StreamReader(limit=1 << 26)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        params: dict[str, Any] = message.get("params") or {}
        session: str = params.get("sessionId", "")
        match message.get("method"):
            case "initialize":
                self._send({"id": number, "result": {"protocolVersion": 1}})
            case "session/new":
                session = f"s{len(self._folders)}"
                self._folders[session] = Path(params["cwd"])
                self._send({"id": number, "result": {"sessionId": session}})
            case "session/prompt":
                self._turns[session] = asyncio.ensure_future(self._prompt(number, session, params["prompt"][0]["text"]))
            case "session/cancel":
                self._turns[session].cancel()
            case _:
                self._asked.pop(message["id"]).set_result(None)

    async def _prompt(self, number: Any, session: str, text: str) -> None:
        try:
            talk = self._talks.get(session) or self._talks.setdefault(session, self._talk())
            talk.say(text)
            while calls := await self._step(session, talk):
                talk.answer([(call, await self._use(session, call)) for call in calls])
            self._send({"id": number, "result": {"stopReason": "end_turn"}})
        except asyncio.CancelledError:
            self._send({"id": number, "result": {"stopReason": "cancelled"}})
        except Exception as error:
            self._send({"id": number, "error": {"code": -32603, "message": repr(error)}})

    async def _step(self, session: str, talk: Talk) -> list[Call]:
        calls: list[Call] = []
        async for piece in talk.stream():
            if isinstance(piece, Call):
                calls.append(piece)
            else:
                content = {"type": "text", "text": piece}
                update = {"sessionUpdate": "agent_message_chunk", "content": content}
                self._send({"method": "session/update", "params": {"sessionId": session, "update": update}})
        return calls

    async def _use(self, session: str, call: Call) -> str:
        folder = self._folders[session]
        if call.tool == "edit":
            number = len(self._asked) + 1
            asked = self._asked[number] = asyncio.get_running_loop().create_future()
            options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
            question = {"sessionId": session, "toolCall": preview(folder, call.arguments), "options": options}
            self._send({"id": number, "method": "session/request_permission", "params": question})
            await asked
        return await TOOLS[call.tool](folder, call.arguments)

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]
