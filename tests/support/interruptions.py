"""Turns that are cancelled, closed, or left by the daemon, after any number of steps of the event loop: whatever they
did at that moment, they end, once, with one result for each call, and nothing of them is left."""

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

from amanu.config import Settings
from amanu.home import find_home
from amanu.session.services import make_services
from amanu.session.sessions import Sessions
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode
from amanu_protocol.requests import PromptSendParams, SessionCreateParams, TrustSetParams
from support.cancellation_points import after_loop_steps
from support.scripted_session import call, conversation, step
from support.session_client import Client, until

How = Literal["cancel", "close", "leave"]
HOWS: tuple[How, ...] = ("cancel", "close", "leave")
GUARD = 50.0
"""Seconds after which something hangs."""
PATIENCE = 1.0
"""Seconds after which a turn does nothing any more that has not ended."""
TOY = Path(__file__).with_name("toy_language_server.py")
_numbers = count(1)


@dataclass(frozen=True)
class Scene:
    """A turn: the calls of its first reply, in which SIGN stands for a number; or a provider that hangs."""

    calls: Sequence[dict[str, Any]] = ()
    mode: Mode = "ask"
    allow: Sequence[str] = ()
    sandbox: bool = False
    trusted: bool = False
    model: str = ""
    hangs: str = ""
    """What the provider sends before it says no more."""


def _shell(command: str) -> dict[str, Any]:
    return call("run_shell_command", command=command)


_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_SLEEP = "touch -c SIGN; sleep 77.SIGN & sleep 77.SIGN"
_GREP = call("grep", pattern="line")
_WRITE = call("write_file", path="new.py", content="fine\nwrong\n")
_EDITS = (
    call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n"),
    call("edit_file", path="notes.txt", old_text="line 7\n", new_text="line seven\n"),
)
SCENES: dict[str, Scene] = {
    "a command": Scene([_shell(_SLEEP)], allow=["run_shell_command"]),
    "a command in a sandbox": Scene([_shell(_SLEEP)], allow=["run_shell_command"], sandbox=True),
    "a command that says too much": Scene([_shell("touch -c SIGN; exec yes 77.SIGN")], allow=["run_shell_command"]),
    "a question": Scene([_shell(_SLEEP)]),
    "a search": Scene([_GREP, call("glob", pattern="**/*.txt")]),
    "an edit that is checked": Scene([_WRITE], trusted=True),
    "edits that are applied": Scene(_EDITS, mode="acceptEdits"),
    "a batch": Scene(
        [_GREP, call("read_file", path="notes.txt"), _shell(_SLEEP), *_EDITS, _shell(f"{_SLEEP} ")],
        mode="acceptEdits",
        allow=["run_shell_command"],
        sandbox=True,
    ),
    "anthropic without an answer": Scene(model="anthropic:claude-sonnet-5-5"),
    "anthropic without an end": Scene(model="anthropic:claude-sonnet-5-5", hangs=_HEAD),
    "gemini without an answer": Scene(model="gemini:gemini-3.8-flash"),
    "gemini without an end": Scene(model="gemini:gemini-3.8-flash", hangs=_HEAD),
    "openai without an answer": Scene(model="openai:gpt-6.2-sol"),
    "openai without an end": Scene(model="openai:gpt-6.2-sol", hangs=_HEAD),
}


class House:
    """One daemon's sessions. `play` a scene in it as often as wanted, but for one in which the daemon leaves."""

    def __init__(self, folder: Path, scene: Scene, provider: str) -> None:
        self.root = folder / "work"
        self._folder = folder
        self._scene = scene
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        for vendor in ("ANTHROPIC", "GEMINI", "OPENAI"):
            self._environment |= {f"{vendor}_API_KEY": "k", f"{vendor}_BASE_URL": provider}
        self._environment["GOOGLE_GEMINI_BASE_URL"] = provider
        home = find_home({"AMANU_HOME": str(folder / "h")}).make()
        toy = (sys.executable, "-P", str(TOY), "silent")
        shown = [sys.prefix, sys.base_prefix, str(TOY.parent)]
        checkers = {"ruff": False, "pyright": toy}
        settings = Settings.model_validate({"checks": {"checkers": checkers}, "sandbox": {"read": shown}})
        self.sessions = Sessions(make_services(home, settings))
        if not scene.sandbox:
            self.sessions.services.sandbox._best = "none"  # pyright: ignore[reportPrivateUsage]

    def furnish(self) -> None:
        """The workspace as it is before each scene."""
        (self.root / "sub").mkdir(parents=True, exist_ok=True)
        for name in ("notes.txt", *(f"sub/{n}.txt" for n in range(20))):
            (self.root / name).write_text("".join(f"line {n}\n" for n in range(1, 13)))
        (self.root / "new.py").unlink(missing_ok=True)

    async def play(self, how: How, steps: int) -> bool:
        """Play it and break it off after so many steps. False when nothing was done any more by then. Raises
        `AssertionError` naming the promise that was broken."""
        scene, number = self._scene, next(_numbers)
        session_id, sign = f"s{number}", f"{os.getpid()}{number:05}"
        self.furnish()
        script = self._folder / "script.json"
        script.write_text(json.dumps([step("Well.", *scene.calls), step("Done.")]).replace("SIGN", sign))
        client = Client(self._environment)
        if scene.trusted:
            await self.sessions.trust.set(TrustSetParams(root=str(self.root), trusted=True))
        params = SessionCreateParams(
            session_id=session_id, roots=[str(self.root)], mode=scene.mode, model_id=scene.model or f"scripted:{script}"
        )
        await self.sessions.create(params, client)
        session = await self.sessions.get(session_id)
        for rule in scene.allow:
            session.allow(rule)
        prompt = PromptSendParams(session_id=session_id, prompt_id="p1", text="do it")
        struck = asyncio.get_running_loop().create_future()

        def strike() -> None:
            match how:
                case "cancel":
                    work = session.prompts.cancel("turn-p1")
                case "close":
                    work = self.sessions.close(session_id)
                case "leave":
                    work = self.sessions.shutdown()
            struck.set_result(asyncio.ensure_future(work))

        if how == "cancel":
            await session.prompts.send(prompt, client)
            was_in_time = after_loop_steps(steps, strike)
        else:
            was_in_time = after_loop_steps(steps, strike)
            try:
                await session.prompts.send(prompt, client)
            except AmanuError as error:
                assert error.kind == "sessionNotFound", error
        ends = time.monotonic() + PATIENCE
        while not struck.done() and time.monotonic() < ends and session.running:
            await asyncio.wait({struck}, timeout=0.05)
        in_time = was_in_time()
        if not struck.done():
            strike()
        striking = struck.result()
        done, _ = await asyncio.wait({striking}, timeout=GUARD)
        assert done, "what breaks it off does not come to its end"
        striking.result()
        await until(session, lambda state: state.turn is None, GUARD)
        kinds = [message.event.kind for message in client.messages]
        assert kinds.count("turnStarted") == kinds.count("turnEnded"), kinds
        conversation(session).check()
        open_ones = [item for item in session.state.items if item.kind == "toolCall" and item.state in _OPEN]
        assert not open_ones and not session.state.approvals, open_ones
        assert processes(sign) == [], "a process is left"
        if how == "cancel" and not scene.model:
            await session.prompts.send(prompt.model_copy(update={"prompt_id": "p2"}), client)
            state = await until(
                session,
                lambda state: (state.last_turn and state.last_turn.turn_id == "turn-p2") or state.approvals,
                GUARD,
            )
            assert state.approvals or (state.last_turn and state.last_turn.reason == "completed"), state.last_turn
        if how != "leave":
            await self.sessions.close(session_id)
        return in_time


_OPEN = ("validating", "awaitingApproval", "scheduled", "executing")


def processes(sign: str) -> list[int]:
    """Those that live and have it in their command line."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and sign.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@asynccontextmanager
async def provider(says: str) -> AsyncGenerator[str]:
    """A service that says that much of an answer, and then nothing. Gives its address."""
    held: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.add(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(says.encode())
            await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for writer in held), return_exceptions=True)


async def interrupt(folder: Path, scene: Scene, how: How, moments: Sequence[int]) -> int:
    """Play it once for each moment, in order, up to the first that is too late. Returns how many were in time."""
    done = 0
    before = asyncio.all_tasks()
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(provider(scene.hangs)) if scene.model else "http://127.0.0.1:9"
        house = House(folder, scene, address)
        for steps in moments:
            if how == "leave" and done:
                house = House(folder, scene, address)
            try:
                in_time = await house.play(how, steps)
            except (AssertionError, TimeoutError) as error:
                raise AssertionError(f"{how} after {steps} steps: {error!r}") from error
            done += in_time
            if not in_time:
                break
        if how != "leave":
            async with asyncio.timeout(GUARD):
                await house.sessions.shutdown()
    await asyncio.sleep(0.01)
    left = {task for task in asyncio.all_tasks() - before if not task.done()}
    assert not left, left
    threads = [each.name for each in threading.enumerate() if each.name.startswith("amanu")]
    assert not threads, threads
    return done
