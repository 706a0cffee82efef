"""The main job through the real process: prompt → thought → approval → two-hunk proposal → decided → file right →
the next request says so; and what a kill in the middle leaves."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu_protocol.events import EventMessage
from amanu_protocol.state import SessionState, fold
from support.raw_client import RawClient
from support.running_daemon import signal_daemon
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Say, Script, Service, ToolUse
from support.strict_services.responses import Responses
from support.warm_process import warm

SERVE = [sys.executable, "-P", "-m", "amanu", "serve"]
TWELVE = "".join(f"line {n}\n" for n in range(1, 13))
TWO_HUNKS = TWELVE.replace("line 2\n", "line two\n").replace("line 11\n", "line eleven\n")

VENDORS: dict[str, tuple[Callable[[Script], Service], str, dict[str, str]]] = {
    "anthropic": (
        Anthropic,
        "anthropic:claude-opus-5-5",
        {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": "{url}"},
    ),
    "gemini": (Gemini, "gemini:gemini-3.5-flash", {"GEMINI_API_KEY": "AIza-test", "GOOGLE_GEMINI_BASE_URL": "{url}"}),
    "openai": (Responses, "openai:gpt-6.2-sol", {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": "{url}/v1"}),
}


class Editor:
    """A client that folds what it hears, as any front does."""

    def __init__(self, raw: RawClient) -> None:
        self.raw = raw
        self.state: SessionState | None = None
        self.epoch = 0
        self.seq = 0
        self.seen: list[tuple[int, int]] = []

    async def ask(self, method: str, **params: Any) -> Any:
        answer = await self.raw.request(f"amanu/{method}", params)
        assert "error" not in answer, answer["error"]
        self._drain()
        return answer["result"]

    async def until(self, reached: Callable[[SessionState], object], seconds: float = 15) -> SessionState:
        """Fold events until the state is as wanted."""
        async with asyncio.timeout(seconds):
            while True:
                self._drain()
                if self.state is not None and reached(self.state):
                    return self.state
                message = await self.raw.read(seconds)
                assert message is not None, "the server left"
                self.raw.heard.append(message)

    async def attach(self, session_id: str) -> None:
        known = {"epoch": self.epoch, "sinceSeq": self.seq} if self.state is not None else {}
        result = await self.raw.request("amanu/session/attach", {"sessionId": session_id, **known})
        answer = result["result"]
        if answer["state"] is not None:
            self.state = SessionState.model_validate(answer["state"])
        else:
            for event in answer["events"]:
                self._take(event)
        self.epoch, self.seq = answer["epoch"], answer["fromSeq"] - 1
        self._drain()

    def _drain(self) -> None:
        kept: list[dict[str, Any]] = []
        for message in self.raw.heard:
            if message.get("method") == "amanu/event":
                self._take(message["params"])
            else:
                kept.append(message)
        self.raw.heard[:] = kept

    def _take(self, params: Any) -> None:
        message = EventMessage.model_validate(params)
        if self.state is None or (message.epoch == self.epoch and message.seq <= self.seq):
            return
        assert (message.epoch, message.seq) not in self.seen, "an event came twice"
        self.seen.append((message.epoch, message.seq))
        self.epoch, self.seq = message.epoch, message.seq
        fold(self.state, message.event)


@asynccontextmanager
async def service(vendor: str, script: Script) -> AsyncGenerator[tuple[Service, str, dict[str, str]]]:
    make, model_id, variables = VENDORS[vendor]
    running = make(script)
    url = await running.start()
    try:
        yield running, model_id, {name: value.format(url=url) for name, value in variables.items()}
    finally:
        await running.stop()


@asynccontextmanager
async def editor(environment: Mapping[str, str], *options: str) -> AsyncGenerator[Editor]:
    raw = await RawClient.spawn(warm([*SERVE, *options]), {**os.environ, **environment})
    try:
        await raw.initialize()
        yield Editor(raw)
    finally:
        await raw.stop()


async def start(client: Editor, root: Path, model_id: str, prompt: str, **more: Any) -> str:
    """A session with its first prompt; the turn's id."""
    await create(client, root, model_id, **more)
    return (await client.ask("prompt/send", sessionId="s1", promptId="p1", text=prompt))["turnId"]


async def create(client: Editor, root: Path, model_id: str, **more: Any) -> None:
    made = await client.ask("session/create", sessionId="s1", roots=[str(root)], modelId=model_id, **more)
    client.state = SessionState.model_validate(made["state"])
    client.epoch, client.seq = made["epoch"], made["fromSeq"] - 1


def tool_texts(service: Service, request: int = -1) -> str:
    return service.requests[request].body.decode()


@pytest.mark.parametrize("vendor", VENDORS)
async def test_one_hunk_accepted_one_rejected_and_the_model_hears_of_it(vendor: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(TWELVE)
    script = [
        Say(thought="**Looking** around", text="I read it first.", calls=[ToolUse("read_file", {"path": "notes.txt"})]),
        Say(text="Two changes.", calls=[ToolUse("write_file", {"path": "notes.txt", "content": TWO_HUNKS})]),
        Say(text="Understood."),
    ]
    async with service(vendor, script) as (served, model_id, keys), editor(keys, "--alone") as client:
        await start(client, tmp_path, model_id, "change it")
        state = await client.until(lambda state: state.approvals)
        assert file.read_text() == TWELVE  # nothing changes before the user says so
        proposal = state.proposals[0]
        first, second = proposal.files[0].hunks
        decisions = [
            {"hunkId": first.hunk_id, "decision": "accept"},
            {"hunkId": second.hunk_id, "decision": "reject", "reason": "eleven stays a number"},
        ]
        wanted = {"sessionId": "s1", "proposalId": proposal.proposal_id, "version": proposal.version}
        early = await client.ask("proposal/resolve", **wanted, hunks=decisions)
        assert early["status"] == "tooSoon"  # within half a second: meant for something else
        assert file.read_text() == TWELVE
        await asyncio.sleep(0.55)
        await client.ask("proposal/resolve", **wanted, hunks=decisions)
        assert file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        state = await client.until(lambda state: state.last_turn)
        assert state.last_turn is not None and state.last_turn.reason == "completed"
        assert [item.kind for item in state.items if item.kind != "thought"] == [
            "userMessage", "answer", "toolCall", "answer", "toolCall", "answer",
        ]  # fmt: skip
        assert "eleven stays a number" in tool_texts(served)
        assert len(served.requests) == 3
        assert not served.refused and not served.lint
        assert await client.raw.leave() == 0


async def test_the_daemon_is_killed_in_the_middle_of_a_command(tmp_path: Path) -> None:
    marks = tmp_path / "marks.txt"
    command = f"echo ran >> {marks}; sleep 300"
    script = [
        Say(text="Running it.", calls=[ToolUse("run_shell_command", {"command": command, "network": True})]),
        Say(text="I see that it was interrupted."),
    ]
    async with service("anthropic", script) as (served, model_id, keys):
        async with editor({**keys, "AMANU_IDLE_SECONDS": "30"}) as client:
            await start(client, tmp_path, model_id, "run it")
            await client.until(lambda state: state.approvals)
            await asyncio.sleep(0.55)
            asked = client.state.approvals[0]  # pyright: ignore[reportOptionalMemberAccess]
            call_id, digest = asked.tool_call_id, asked.digest
            await client.ask("approval/resolve", sessionId="s1", toolCallId=call_id, decision="allow", digest=digest)
            async with asyncio.timeout(50):
                while not marks.exists():
                    await asyncio.sleep(0.02)
            signal_daemon(signal.SIGKILL)
            assert await client.raw.exit_code() == 1  # the relay says that the daemon died
        async with editor(keys) as client:
            await client.attach("s1")
            state = client.state
            assert state is not None and state.last_turn is not None
            assert (state.last_turn.reason, state.last_turn.can_continue) == ("interrupted", True)
            call = next(item for item in state.items if item.kind == "toolCall")
            assert (call.state, call.error) == ("failed", "Interrupted: it may have taken effect.")
            assert [item.kind for item in state.items] == ["userMessage", "answer", "toolCall"]
            await client.ask("prompt/send", sessionId="s1", promptId="p2", text="and now?")
            await client.until(lambda state: state.last_turn and state.last_turn.reason == "completed")
        assert "effect is unknown" in tool_texts(served)
        assert not served.refused and not served.lint
    assert marks.read_text() == "ran\n"  # once, and never again by itself
    stop_daemon()


async def test_the_daemon_is_killed_while_a_proposal_waits(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(TWELVE)
    script = [
        Say(text="Two changes.", calls=[ToolUse("write_file", {"path": "notes.txt", "content": TWO_HUNKS})]),
        Say(text="Thanks."),
    ]
    async with service("gemini", script) as (served, model_id, keys):
        async with editor(keys) as client:
            await start(client, tmp_path, model_id, "change it")
            await client.until(lambda state: state.approvals)
            signal_daemon(signal.SIGKILL)
            await client.raw.exit_code()
        async with editor(keys) as client:
            await client.attach("s1")
            assert client.state is not None
            (proposal,) = client.state.proposals
            assert proposal.state == "pending"
            decisions = [{"hunkId": hunk.hunk_id, "decision": "accept"} for hunk in proposal.files[0].hunks]
            await client.ask(
                "proposal/resolve",
                sessionId="s1",
                proposalId=proposal.proposal_id,
                version=proposal.version,
                hunks=decisions,
            )
            assert file.read_text() == TWO_HUNKS
            await client.ask("prompt/send", sessionId="s1", promptId="p2", text="I took it.")
            await client.until(lambda state: state.last_turn and state.last_turn.reason == "completed")
        assert "Later decisions about your earlier edits" in tool_texts(served)
        assert not served.refused and not served.lint
    stop_daemon()


async def test_the_daemon_is_killed_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    """What was shown for more than a second is on record, for the user and for the model that goes on."""
    words = [f"word{n} " for n in range(500)]
    async with service("anthropic", [Say(text=words, delay=0.02), Say(text="Going on.")]) as (served, model_id, keys):
        async with editor({**keys, "AMANU_IDLE_SECONDS": "30"}) as client:
            await start(client, tmp_path, model_id, "talk")
            await client.until(
                lambda state: any(item.kind == "answer" and "word20 " in item.text for item in state.items)
            )
            shown = next(item for item in client.state.items if item.kind == "answer").text  # pyright: ignore[reportOptionalMemberAccess]
            await client.until(
                lambda state: any(item.kind == "answer" and "word75 " in item.text for item in state.items)
            )
            signal_daemon(signal.SIGKILL)
            await client.raw.exit_code()
        async with editor(keys) as client:
            await client.attach("s1")
            assert client.state is not None and client.state.last_turn is not None
            assert client.state.last_turn.reason == "interrupted"
            answer = next(item for item in client.state.items if item.kind == "answer")
            assert answer.text.startswith(shown)
            await client.ask("prompt/send", sessionId="s1", promptId="p2", text="go on")
            await client.until(lambda state: state.last_turn and state.last_turn.reason == "completed")
        heard = [message for message in served.requests[-1].json["messages"] if message["role"] == "assistant"]
        assert [part["text"] for part in heard[0]["content"]] == [answer.text]
        assert not served.refused and not served.lint
    stop_daemon()


async def test_the_relay_is_killed_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    words = [f"word{n} " for n in range(60)]
    async with service("openai", [Say(text=words, delay=0.02)]) as (served, model_id, keys):
        async with editor(keys) as client:
            await start(client, tmp_path, model_id, "talk")
            await client.until(lambda state: any(item.kind == "answer" and item.text for item in state.items))
            assert client.raw.process is not None
            client.raw.process.kill()
            await client.raw.process.wait()
        async with editor(keys) as again:
            again.state, again.epoch, again.seq = client.state, client.epoch, client.seq
            await again.attach("s1")  # the events missed, then the rest
            state = await again.until(lambda state: state.last_turn)
            answer = next(item for item in state.items if item.kind == "answer")
            assert answer.text == "".join(words)
        assert len(served.requests) == 1
    stop_daemon()


def stop_daemon() -> None:
    signal_daemon()
