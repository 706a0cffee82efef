"""A raw frame client: what any program could send to a server on stdio, right or wrong."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from amanu.daemon.sockets import opening, read_token, socket_path
from amanu.frontends.lsp.handshake import BUILD
from amanu.home import Home

SECONDS = 50.0
"""For an answer that must come; a machine under load is slow."""

AMANU = {"experimental": {"amanu": {"protocol": [4]}}}


class RawClient:
    """Messages over a reader and a writer. Notifications and requests of the server are kept in `heard`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.heard: list[dict[str, Any]] = []
        self.process: asyncio.subprocess.Process | None = None
        self._number = 0

    @classmethod
    async def spawn(cls, command: Sequence[str], environment: Mapping[str, str], cwd: str = "/") -> "RawClient":
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            cwd=cwd,
            limit=2**26,
        )
        assert process.stdout is not None and process.stdin is not None
        client = cls(process.stdout, process.stdin)
        client.process = process
        return client

    @classmethod
    async def greet(cls, home: Home, version: str = BUILD, **environment: str) -> "RawClient":
        """To the daemon itself, as a relay does it."""
        reader, writer = await asyncio.open_unix_connection(socket_path(home), limit=2**26)
        client = cls(reader, writer)
        writer.write(hello(read_token(home), version=version, environment=environment))
        assert json.loads(await reader.readline())["accepted"] is True
        return client

    def send(self, message: Any) -> None:
        self.send_body(json.dumps(message).encode())

    def send_body(self, body: bytes) -> None:
        self.writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def read(self, seconds: float = SECONDS) -> dict[str, Any] | None:
        """The next message; None at the end of the stream."""
        async with asyncio.timeout(seconds):
            length = None
            while (line := await self.reader.readline()).strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if length is None:
                return None
            return json.loads(await self.reader.readexactly(length))

    async def reply(self, id: Any, seconds: float = SECONDS) -> dict[str, Any]:
        """The reply to a request; what comes before it is kept."""
        while True:
            message = await self.read(seconds)
            assert message is not None, "the server left without a reply"
            if "method" not in message and message.get("id") == id:
                return message
            self.heard.append(message)

    async def notification(self, method: str, seconds: float = SECONDS) -> Any:
        """Params of the next such notification or request of the server, kept or new."""
        for at, message in enumerate(self.heard):
            if message.get("method") == method:
                return self.heard.pop(at)["params"]
        while True:
            message = await self.read(seconds)
            assert message is not None, "the server left"
            if message.get("method") == method:
                return message["params"]
            self.heard.append(message)

    async def request(self, method: str, params: Any = None, seconds: float = SECONDS) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._number, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return await self.reply(self._number, seconds)

    async def initialize(self, capabilities: Any = AMANU, **more: Any) -> dict[str, Any]:
        """Shake hands; the result."""
        params = {"processId": None, "rootUri": None, "capabilities": capabilities, **more}
        answer = await self.request("initialize", params)
        self.notify("initialized", {})
        return answer["result"]

    async def exit_code(self, seconds: float = SECONDS) -> int:
        """Wait for the process to end."""
        assert self.process is not None
        async with asyncio.timeout(seconds):
            await self.reader.read()
            return await self.process.wait()

    async def leave(self) -> int:
        """shutdown, exit."""
        await self.request("shutdown")
        self.notify("exit", None)
        return await self.exit_code()

    async def stop(self) -> None:
        """End the process, whatever its state, and give everything back."""
        self.writer.close()
        if self.process is not None:
            if self.process.returncode is None:
                self.process.kill()
            await self.process.communicate()


def hello(token: str, **said: Any) -> bytes:
    return opening(token) + json.dumps(said).encode()[1:] + b"\n"


def python(script: str, *arguments: str) -> list[str]:
    return [sys.executable, "-P", script, *arguments]
