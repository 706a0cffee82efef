"""An ACP client of `amanu acp`, over real pipes. Every message of the agent's is checked against the JSON Schema that
the official SDK ships, and must come from a request or capability that allows it."""

import asyncio
import functools
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from support.required_programs import needs_acp
from support.warm_process import warm

COMMAND = [sys.executable, "-P", "-m", "amanu", "acp"]
RESULTS = {
    "initialize": "InitializeResponse",
    "authenticate": "AuthenticateResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/delete": "DeleteSessionResponse",
    "session/prompt": "PromptResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}
ASKED = {
    "session/update": "SessionNotification",
    "session/request_permission": "RequestPermissionRequest",
    "elicitation/create": "CreateElicitationRequest",
    "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest",
    "$/cancel_request": "CancelRequestNotification",
}
SECONDS = 50.0
EVERYTHING: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
    "auth": {"terminal": True},
    "elicitation": {"form": {}},
}
Answer = Callable[[dict[str, Any]], Awaitable[Any]]


class AcpError(Exception):
    """The agent's error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.data = error.get("data")


class AcpClient:
    """`answers`: how requests of the agent's are answered, by method; without one it waits in `asked`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.answers: dict[str, Answer] = {}
        self.updates: list[dict[str, Any]] = []
        """The bodies of all updates, with their `sessionId`."""
        self.asked: list[dict[str, Any]] = []
        """Requests of the agent's that nobody has answered yet."""
        self.withdrawn: list[Any] = []
        """Ids in `$/cancel_request`."""
        self.messages: list[dict[str, Any]] = []
        """Everything the agent sent, in order."""
        self.changed = asyncio.Condition()
        self._next_id = 0
        self._paused = asyncio.Event()
        self._paused.set()
        self._waiting: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._reading = asyncio.create_task(self._read())

    async def initialize(self, **capabilities: Any) -> Any:
        params = {"protocolVersion": 1, "clientCapabilities": capabilities}
        return await self.request("initialize", {**params, "clientInfo": {"name": "test", "version": "1"}})

    async def request(self, method: str, params: Any, seconds: float = SECONDS) -> Any:
        return await asyncio.wait_for(self.begin(method, params), seconds)

    def begin(self, method: str, params: Any) -> "asyncio.Future[Any]":
        """Send a request; its result is still to come."""
        self._next_id += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._next_id] = (method, future)
        self.send({"id": self._next_id, "method": method, "params": params})
        return future

    @property
    def last_id(self) -> int:
        return self._next_id

    def notify(self, method: str, params: Any) -> None:
        self.send({"method": method, "params": params})

    def answer(self, request: Mapping[str, Any], result: Any) -> None:
        self.asked = [each for each in self.asked if each["id"] != request["id"]]
        self.send({"id": request["id"], "result": result})

    def choose(self, request: Mapping[str, Any], option: str) -> None:
        """Answer a permission request."""
        self.answer(request, {"outcome": {"outcome": "selected", "optionId": option}})

    def send(self, message: Mapping[str, Any]) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    async def until(self, reached: Callable[["AcpClient"], Any], seconds: float = SECONDS) -> Any:
        """Wait until something came that makes it true; what it gives."""
        async with asyncio.timeout(seconds), self.changed:
            while not (result := reached(self)):
                await self.changed.wait()
            return result

    async def permission(self) -> dict[str, Any]:
        """The permission request that waits."""
        waiting = await self.until(
            lambda client: [each for each in client.asked if each["method"] == "session/request_permission"]
        )
        return waiting[0]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.of_kind(kind))

    def pause(self) -> None:
        """Read no more."""
        self._paused.clear()

    def resume(self) -> None:
        self._paused.set()

    async def leave(self) -> int:
        """Close stdin, and wait for the end; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = await asyncio.wait_for(self.process.wait(), SECONDS)
        await self._reading
        return code

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        for task in (self._reading, *self._answering):
            task.cancel()
        await asyncio.gather(self._reading, *self._answering, return_exceptions=True)

    # Inside ------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            await self._paused.wait()
            message = json.loads(line)
            self.messages.append(message)
            try:
                self._receive(message)
            except AssertionError as error:
                for _, future in self._waiting.values():
                    if not future.done():
                        future.set_exception(error)
                raise
            async with self.changed:
                self.changed.notify_all()

    def _receive(self, message: dict[str, Any]) -> None:
        assert message["jsonrpc"] == "2.0"
        method = message.get("method")
        if method is None:
            if message["id"] is None:
                return
            asked, future = self._waiting.pop(message["id"])
            if "error" in message:
                check("Error", message["error"])
                future.set_exception(AcpError(message["error"]))
            else:
                check(RESULTS[asked], message["result"])
                future.set_result(message["result"])
            return
        check(ASKED[method], message["params"])
        if method == "session/update":
            self.updates.append({**message["params"]["update"], "sessionId": message["params"]["sessionId"]})
        elif method == "$/cancel_request":
            self.withdrawn.append(message["params"]["requestId"])
            self.asked = [each for each in self.asked if each["id"] != message["params"]["requestId"]]
        elif (answer := self.answers.get(method)) is not None:
            task = asyncio.create_task(self._give(message, answer))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        else:
            self.asked.append(message)

    async def _give(self, message: dict[str, Any], answer: Answer) -> None:
        try:
            self.send({"id": message["id"], "result": await answer(message["params"])})
        except FileNotFoundError as error:
            self.send({"id": message["id"], "error": {"code": -32002, "message": str(error)}})


@functools.cache
def schema() -> dict[str, Any]:
    return json.loads((needs_acp() / "@agentclientprotocol/sdk/schema/v1/schema.json").read_text("utf-8"))


@functools.cache
def _validator(name: str) -> Any:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema()["$defs"]})


def check(name: str, value: Any) -> None:
    """Fails if the value does not fit that definition."""
    errors = [f"{error.json_path}: {error.message[:300]}" for error in _validator(name).iter_errors(value)]
    assert errors == [], (name, errors, json.dumps(value)[:2000])


@asynccontextmanager
async def acp_client(environment: Mapping[str, str] | None = None, *options: str) -> AsyncGenerator[AcpClient]:
    """A started agent, not initialized yet."""
    schema()
    process = await asyncio.create_subprocess_exec(
        *warm(COMMAND),
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        limit=1 << 26,
    )
    client = AcpClient(process)
    try:
        yield client
    finally:
        await client.kill()


async def new_session(client: AcpClient, root: Path, **params: Any) -> str:
    """A session in a folder that is trusted, or not: `AcpClient.answers` says."""
    made = await client.request("session/new", {"cwd": str(root), "mcpServers": [], **params})
    return made["sessionId"]


def text_prompt(session_id: str, text: str) -> dict[str, Any]:
    return {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]}
