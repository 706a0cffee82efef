"""What cannot work in the sandbox can ask to be let out; what the user then keeps is kept with what they granted."""

import itertools
import json
import os
import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.sandbox.self_test import Tier
from amanu_protocol.items import Grant, Mode, Scope, ToolCall
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from amanu_protocol.state import SessionState
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.session_client import Client, until
from support.sweeps import sample_pairs

CLIENT = """#!/usr/bin/env -S python3 -IS
import sys
import _socket as socket
kind, address = sys.argv[1:]
try:
    to = socket.socket(socket.AF_UNIX if kind == "ps" else socket.AF_INET)
    to.connect(address if kind == "ps" else ("127.0.0.1", int(address)))
    print(to.recv(99).decode())
except OSError as error:
    sys.exit("Cannot connect to the Docker daemon" if kind == "ps" else f"Network is unreachable: {error}")
"""


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


class Greeting(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"three containers")


@contextmanager
def service(folder: Path, kind: str) -> Generator[str]:
    """A server outside the sandbox: of a socket as docker has one, or of TCP. Where it is."""
    path = folder / "docker.sock"
    server = (
        socketserver.UnixStreamServer(str(path), Greeting)
        if kind == "ps"
        else socketserver.TCPServer(("127.0.0.1", 0), Greeting)
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield str(path) if kind == "ps" else str(server.socket.getsockname()[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def lay(d: ScriptedSession) -> None:
    (d.root / "docker").write_text(CLIENT)
    (d.root / "docker").chmod(0o755)


def calls(state: SessionState) -> list[ToolCall]:
    return [each for each in state.items if each.kind == "toolCall"]


async def anew(d: ScriptedSession, tmp_path: Path, mode: Mode, *steps: dict[str, Any]) -> SessionState:
    """The end of the first turn of a new session in the same folder, in which nobody answers anything."""
    client = Client(os.environ)
    d.sessions.connect(client)
    script = tmp_path / "anew.json"
    script.write_text(json.dumps(steps))
    made = SessionCreateParams(session_id="new", roots=[str(d.root)], mode=mode, model_id=f"scripted:{script}")
    await d.sessions.create(made, client)
    session = await d.sessions.get("new")
    await session.prompts.send(PromptSendParams(session_id="new", prompt_id="n1", text="again"), client)
    state = await until(session, lambda state: state.last_turn or state.approvals)
    assert not state.approvals, "nothing is asked"
    return state


MODES: list[Mode] = ["ask", "acceptEdits", "auto"]
KINDS: list[tuple[str, str, Grant]] = [("ps", "outside", "unsandboxed"), ("get", "network", "network")]
CELLS = list(itertools.product(["bubblewrap", "landlock"], KINDS, [True, False]))


@pytest.mark.parametrize(
    ("tier", "kind", "argument", "grant", "by_itself", "mode"),
    [(tier, *kind, by_itself, mode) for (tier, kind, by_itself), mode in sample_pairs(CELLS, MODES)],
    indirect=["tier"],
)
async def test_what_was_blocked_is_one_question_and_the_answer_is_kept(
    tmp_path: Path, tier: Tier, mode: Mode, kind: str, argument: str, grant: Grant, by_itself: bool
) -> None:
    """The same, whether the model asks for it or the sandbox blocked it."""
    with service(tmp_path, kind) as address:
        line = f"./docker {kind} {address}"
        plain = call("run_shell_command", command=line)
        asking = call("run_shell_command", command=line, **{argument: True}, reason="it is a service")
        async with scripted_session(tmp_path, step("", asking if by_itself else plain), step("Done."), mode=mode) as d:
            lay(d)
            await d.prompt("go")
            state = await d.until(lambda state: state.approvals)
            asked = state.approvals[0]
            assert asked.likely_grants == [grant]
            assert by_itself == ("it is a service" in str(asked.lines)) == (asked.blocked == "")
            assert {each.rule.partition("(")[0] for each in asked.scopes[1:]} == {f"run_shell_command+{grant}"}
            await d.answer("allow", scope="user", grants=asked.likely_grants)
            state = await d.over("p1")
            assert [each.state for each in calls(state)] == ["succeeded"]
            state = await anew(d, tmp_path, mode, step("", plain), step("", asking), step("Done."))
            for each in calls(state):
                assert each.state == "succeeded" and "three containers" in (each.output or "")
                assert each.decision and (each.decision.by, each.decision.grants) == ("rule", [grant])
            rules = (Path(os.environ["AMANU_HOME"]) / "config" / "rules.toml").read_text()
            assert f"run_shell_command+{grant}(" in rules


@pytest.mark.parametrize("mode", ["ask", "auto"])
async def test_a_refusal_ends_the_call_with_what_was_tried(tmp_path: Path, tier: Tier, mode: Mode) -> None:
    with service(tmp_path, "ps") as address:
        plain = call("run_shell_command", command=f"./docker ps {address}")
        async with scripted_session(tmp_path, step("", plain), step("Done."), mode=mode) as d:
            lay(d)
            await d.prompt("go")
            await d.answer("reject", reason="not now")
            state = await d.over("p1")
            told = d.told()
    (item,) = calls(state)
    in_place = mode == "auto"  # so it had its effect, whatever it was
    assert item.state == ("failed" if in_place else "rejected") and item.error == "not now"
    assert "Cannot connect to the Docker daemon" in item.output and "Cannot connect to the Docker daemon" in told
    assert "not now" in told


@pytest.mark.parametrize("scope", ["session", "user"])
async def test_what_the_user_adds_to_a_kept_yes_is_kept(tmp_path: Path, tier: Tier, scope: Scope) -> None:
    with service(tmp_path, "ps") as address:
        plain = call("run_shell_command", command=f"./docker ps {address}")
        steps = (step("", plain), step("", plain), step("Done."), step("", plain), step("Done."))
        async with scripted_session(tmp_path, *steps) as d:
            lay(d)
            await d.prompt("go")
            await d.answer("allow", scope=scope, grants=["unsandboxed"])
            await d.over("p1")
            if scope == "user":  # of the others, none outlives the daemon
                await d.reopen()
            await d.prompt("again", "p2")
            state = await d.over("p2")
        assert [each.state for each in calls(state)] == ["succeeded"] * 3
        assert [each.decision and each.decision.by for each in calls(state)] == ["user", "rule", "rule"]


async def test_no_mode_lets_a_call_out_unasked(tmp_path: Path, tier: Tier) -> None:
    """What only looks, too: it would look outside."""
    lines = ("touch x", "ls", "echo hi | cat")
    each = [call("run_shell_command", command=line, outside=True) for line in lines]
    async with scripted_session(tmp_path, step("", *each), step("Done."), mode="auto") as d:
        await d.prompt("go")
        for _ in lines:
            await d.answer("reject")
        state = await d.over("p1")
    assert [each.state for each in calls(state)] == ["rejected"] * 3
