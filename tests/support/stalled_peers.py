"""Peers of a daemon that stand still, each in its own way, and a bystander beside them who must not notice.

The daemon is the real one, a process of its own; so are commands and checkers. Providers are sockets of this process.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from amanu.home import Home, find_home
from amanu.system.private_file import write_private
from support.raw_client import RawClient

GUARD = 0.6
"""Seconds a question must have stood before it is answered (approval.GUARD_SECONDS)."""
BIG = 16 << 20
TEXT = "a line, of text\n"


class Stage:
    """A daemon, a workspace, and providers that hang. `open` makes clients; they are closed with the stage."""

    def __init__(self, home: Home, root: Path, daemon: "subprocess.Popen[bytes]") -> None:
        self.home = home
        self.root = root
        self.daemon = daemon
        self.asked: list[str] = []
        """What the providers were asked, by how they hang."""
        self._clients: list[RawClient] = []
        self._number = 0

    async def open(self) -> RawClient:
        client = await RawClient.greet(self.home, **{"PATH": os.environ["PATH"], "HOME": str(self.root)})
        self._clients.append(client)
        await client.initialize({"experimental": {"amanu": {"protocol": [4], "trustedRoots": [str(self.root)]}}})
        return client

    async def session(self, client: RawClient, *steps: dict[str, Any], model: str | None = None) -> str:
        """A session of that client whose scripted model says these steps."""
        self._number += 1
        session_id = f"s{self._number}"
        script = self.root.parent / f"{session_id}.json"
        script.write_text(json.dumps(steps))
        params = {"sessionId": session_id, "roots": [str(self.root)], "modelId": model or f"scripted:{script}"}
        answer = await client.request("amanu/session/create", params)
        assert "result" in answer, answer
        return session_id

    async def say(self, client: RawClient, session_id: str, prompt_id: str = "p1") -> None:
        params = {"sessionId": session_id, "promptId": prompt_id, "text": "do it"}
        answer = await client.request("amanu/prompt/send", params)
        assert "result" in answer, answer

    async def event(self, client: RawClient, session_id: str, kind: str, **like: Any) -> dict[str, Any]:
        while True:
            params = await client.notification("amanu/event", 30)
            event = params["event"]
            if params["sessionId"] == session_id and event["kind"] == kind:
                return event

    async def allow(self, client: RawClient, session_id: str, word: str = "") -> None:
        """Answer the next question whose title holds that word with yes."""
        while (
            word not in (approval := (await self.event(client, session_id, "approvalRequested"))["approval"])["title"]
        ):
            pass
        await asyncio.sleep(GUARD)
        params = {"sessionId": session_id, "toolCallId": approval["toolCallId"], "decision": "allow"}
        params |= {"digest": approval["digest"]} if approval.get("digest") else {}
        answer = await client.request("amanu/approval/resolve", params)
        assert answer["result"]["status"] == "resolved", answer

    async def close(self) -> None:
        for client in self._clients:
            client.writer.transport.abort()
        await asyncio.gather(*(client.writer.wait_closed() for client in self._clients), return_exceptions=True)


Still = Callable[[], Awaitable[bool]]
"""Whether the peer is frozen, still."""
Freeze = Callable[[Stage], "contextlib.AbstractAsyncContextManager[Still]"]


async def running(client: RawClient, session_id: str) -> bool:
    answer = await client.request("amanu/session/attach", {"sessionId": session_id})
    return answer["result"]["state"]["turn"] is not None


# Clients --------------------------------------------------------------------------------------------


@asynccontextmanager
async def stops_reading(stage: Stage) -> AsyncGenerator[Still]:
    """It asked for more than fits on the way, and takes none of it."""
    client = await stage.open()
    client.writer.transport.set_write_buffer_limits(high=1 << 28)
    client.reader._limit = 1 << 12  # pyright: ignore[reportAttributeAccessIssue]  our side buffers no more than that
    for number in range(1000, 1900):
        client.send({"jsonrpc": "2.0", "id": number, "method": "amanu/model/list"})
    await asyncio.sleep(0.3)

    async def still() -> bool:
        return not client.reader.at_eof()

    yield still


@asynccontextmanager
async def stops_mid_frame(stage: Stage) -> AsyncGenerator[Still]:
    """Half of a large message, and nothing more."""
    client = await stage.open()
    client.writer.write(b"Content-Length: %d\r\n\r\n" % BIG + b" " * (BIG // 2))
    await client.writer.drain()

    async def still() -> bool:
        return not client.reader.at_eof()

    yield still


def flood(how: str) -> Freeze:
    """A client that sends all it can, from a process of its own: here it would hold up those who measure."""

    @asynccontextmanager
    async def flooding(stage: Stage) -> AsyncGenerator[Still]:
        command = [sys.executable, "-m", "support.stalled_peers", str(stage.root.parent / "h"), str(stage.root), how]
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"once\n", "it could not even once"

        async def still() -> bool:
            return process.returncode is None

        try:
            yield still
        finally:
            process.kill()
            await process.communicate()

    return flooding


async def small(client: RawClient, root: Path) -> None:
    """A hundred small requests."""
    for number in range(100):
        client.send({"jsonrpc": "2.0", "id": 1000 + number, "method": "amanu/rule/preview", "params": {"rule": "x"}})
    await client.writer.drain()
    for _ in range(100):
        await client.read(60)


async def large(client: RawClient, root: Path) -> None:
    """The whole text of a large file."""
    text = TEXT * (BIG // len(TEXT))
    document = {"uri": (root / "big.txt").as_uri(), "languageId": "x", "version": 1, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": document})
    await client.writer.drain()
    await client.request("amanu/none", seconds=60)


async def nonsense(client: RawClient, root: Path) -> None:
    """A message that would take a gigabyte and a second to parse, and a text where a list should be."""
    client.send_body(b'{"jsonrpc":"2.0","method":"x","params":[' + b"{}," * (BIG // 3) + b"0]}")
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": "x" * 500_000, "removed": []}})
    await client.writer.drain()
    await client.request("amanu/none", seconds=60)


FLOODS = {"small": small, "large": large, "nonsense": nonsense}


async def _flood(home: str, root: str, how: str) -> None:
    client = await RawClient.greet(find_home({"AMANU_HOME": home}))
    await client.initialize()
    await FLOODS[how](client, Path(root))
    print("once", flush=True)
    while True:
        await FLOODS[how](client, Path(root))


# Providers, tools, checkers -------------------------------------------------------------------------


@asynccontextmanager
async def _asked(stage: Stage, model: str) -> AsyncGenerator[Still]:
    client = await stage.open()
    session_id = await stage.session(client, model=model)
    await stage.say(client, session_id)
    await stage.event(client, session_id, "turnStarted")
    while not stage.asked:
        await asyncio.sleep(0.01)
    stage.asked.clear()
    try:
        yield lambda: running(client, session_id)
    finally:
        await client.request("amanu/turn/cancel", {"sessionId": session_id, "turnId": "turn-p1"}, 30)


def provider(how: str) -> Freeze:
    return lambda stage: _asked(stage, f"{how}:m")


@asynccontextmanager
async def _ran(stage: Stage, command: str) -> AsyncGenerator[Still]:
    client = await stage.open()
    call = {"tool": "run_shell_command", "arguments": {"command": command, "network": True}}
    session_id = await stage.session(client, {"text": "", "calls": [call]})
    await stage.say(client, session_id)
    await stage.allow(client, session_id)
    try:
        yield lambda: running(client, session_id)
    finally:
        await client.request("amanu/turn/cancel", {"sessionId": session_id, "turnId": "turn-p1"}, 30)


def command(text: str) -> Freeze:
    return lambda stage: _ran(stage, text)


@asynccontextmanager
async def checker(stage: Stage) -> AsyncGenerator[Still]:
    """Both that look at Python take the text and say nothing."""
    client = await stage.open()
    call = {"tool": "write_file", "arguments": {"path": "new.py", "content": "x = 1\n"}}
    session_id = await stage.session(client, {"text": "", "calls": [call]})
    await stage.say(client, session_id)
    await stage.event(client, session_id, "approvalRequested")
    try:
        yield lambda: running(client, session_id)
    finally:
        await client.request("amanu/turn/cancel", {"sessionId": session_id, "turnId": "turn-p1"}, 30)


FREEZES: dict[str, Freeze] = {
    "a client that stops reading": stops_reading,
    "a client that stops in the middle of a message": stops_mid_frame,
    "a client that floods": flood("small"),
    "a client that floods with large texts": flood("large"),
    "a client that floods with nonsense": flood("nonsense"),
    "a provider without headers": provider("headers"),
    "a provider without a body": provider("body"),
    "a provider that drips": provider("drips"),
    "a command that ignores signals": command("touch -c it; trap '' TERM INT HUP; while :; do sleep 1; done"),
    "a command with endless output": command("touch -c it; while :; do echo 0123456789; done"),
    "a command that works": command("touch -c it; while :; do :; done"),
    "a checker that says nothing": checker,
}


# The stage ------------------------------------------------------------------------------------------


async def _provide(
    asked: list[str], held: set[asyncio.StreamWriter], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """How it hangs is the first part of the path."""
    held.add(writer)
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        how = head.split(" ", 2)[1].split("/")[1]
        asked.append(how)
        if how != "headers":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            await writer.drain()
        while how == "drips":
            writer.write(b": x\n\n")
            await writer.drain()
            await asyncio.sleep(0.05)
        await reader.read()
    writer.close()


@asynccontextmanager
async def stage(folder: Path) -> AsyncGenerator[Stage]:
    """`folder` is empty and its name short (a socket is in it)."""
    root, home = folder / "w", find_home({"AMANU_HOME": str(folder / "h")})
    root.mkdir()
    home.make()
    asked: list[str] = []
    held: set[asyncio.StreamWriter] = set()
    server = await asyncio.start_server(partial(_provide, asked, held), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    idle = [sys.executable, "-c", "import sys, time; sys.stdin.buffer.read1(); time.sleep(1000)"]
    allowed = {how: f"http://127.0.0.1:{port}/{how}/v1" for how in ("headers", "body", "drips")}
    lines = [f'[endpoints.{how}]\nbase_url = "{address}"' for how, address in allowed.items()]
    write_private(home.state / "local-models.json", {"allowed": allowed})
    lines.append(f"[sandbox]\nread = {json.dumps([sys.prefix, sys.base_prefix])}")
    lines.append(f"[checks.checkers]\nruff = {json.dumps(idle)}\npyright = {json.dumps(idle)}")
    (home.config / "config.toml").write_text("\n".join(lines))
    ready, theirs = os.pipe()
    environment = {**os.environ, "AMANU_HOME": str(folder / "h"), "AMANU_IDLE_SECONDS": "600"}
    daemon = subprocess.Popen(
        [sys.executable, "-P", "-m", "amanu.daemon.main", "--ready", str(theirs)],
        env=environment,
        stdin=subprocess.DEVNULL,
        pass_fds=(theirs,),
    )
    os.close(theirs)
    try:
        assert await asyncio.to_thread(os.read, ready, 1) == b"1", "the daemon did not start"
        found = Stage(home, root, daemon)
        found.asked = asked
        try:
            yield found
        finally:
            await found.close()
    finally:
        os.close(ready)
        daemon.terminate()
        await asyncio.to_thread(daemon.wait, 30)
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in held), return_exceptions=True)


class Bystander:
    """Somebody else at the same daemon."""

    def __init__(self, stage: Stage, client: RawClient, session_id: str) -> None:
        self._stage = stage
        self._client = client
        self._session_id = session_id
        self._turns = 0

    @classmethod
    async def come(cls, stage: Stage) -> "Bystander":
        client = await stage.open()
        return cls(stage, client, await stage.session(client, *({"text": "Done."} for _ in range(10_000))))

    async def turn(self) -> None:
        """A whole turn."""
        self._turns += 1
        await self._stage.say(self._client, self._session_id, f"p{self._turns}")
        ended = await self._stage.event(self._client, self._session_id, "turnEnded")
        assert ended["reason"] == "completed", ended

    async def ping(self) -> float:
        """Seconds until a request is answered that costs nothing."""
        begun = time.perf_counter()
        await self._client.request("amanu/none", seconds=60)
        return time.perf_counter() - begun


async def measure(names: list[str], seconds: float, folder: Path) -> AsyncGenerator[tuple[str, list[float]]]:
    """What the bystander's pings took beside each: "nobody" first, then the frozen of those names."""
    async with stage(folder) as found:
        bystander = await Bystander.come(found)
        await bystander.turn()
        for name in ["nobody", *names]:
            async with AsyncExitStack() as stack:
                still = await stack.enter_async_context(FREEZES[name](found)) if name in FREEZES else None
                took: list[float] = []
                begun = time.monotonic()
                while time.monotonic() - begun < seconds:
                    took.append(await bystander.ping())
                    await asyncio.sleep(0.005)
                assert still is None or await still(), f"{name}: it did not stay so"
                await bystander.turn()
            yield name, took


if __name__ == "__main__":
    asyncio.run(_flood(*sys.argv[1:]))
