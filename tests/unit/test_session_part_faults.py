"""A part of a session that fails, or that the session forgets, harms nothing else."""

import os
from pathlib import Path
from typing import ClassVar

import pytest

import amanu.session.sessions as sessions_module
from amanu.core.session_part import SessionPart
from amanu.home import find_home
from amanu.parts import daemon_parts
from amanu.permissions import approvals as approval
from amanu.session.core import SessionCore
from amanu.session.daemon_part import DaemonPart
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode
from amanu_protocol.requests import AgentParams
from support.scripted_session import call, scripted_session, step

DONE = step("Done.")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


class Faulty(SessionPart):
    """Raises in the methods named `raises`; notes the calls of the others."""

    raises: ClassVar[set[str]] = set()
    heard: ClassVar[list[str]] = []

    def _hear(self, name: str) -> None:
        self.heard.append(name)
        if name in self.raises:
            raise RuntimeError(f"{name} failed")

    async def open(self, *, begins: bool) -> None:
        self._hear("open")

    async def stop(self) -> None:
        self._hear("stop")

    async def close(self) -> None:
        self._hear("close")

    def on_mode(self, mode: Mode) -> None:
        self._hear(f"on_mode {mode}")

    async def begin_turn(self) -> None:
        self._hear("begin_turn")

    def note(self) -> str:
        self._hear("note")
        return ""


class FaultyDaemonPart(DaemonPart):
    session_part = Faulty

    def part_of(self, core: SessionCore) -> SessionPart:
        return Faulty()


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> type[Faulty]:
    Faulty.raises, Faulty.heard = set(), []
    monkeypatch.setattr(sessions_module, "daemon_parts", lambda: [*daemon_parts(), FaultyDaemonPart])
    return Faulty


async def test_a_part_whose_stop_fails_keeps_nothing_else_from_closing(tmp_path: Path, faulty: type[Faulty]) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        faulty.raises = {"stop"}
        await d.sessions.close("s")
        faulty.raises = set()
        d.session = await d.sessions.get("s")
        assert not d.session.state.read_only  # its lease was given back
        d.client.state = d.session.attach(d.client, None, None).state


async def test_a_part_whose_note_fails_leaves_no_turn_open(tmp_path: Path, faulty: type[Faulty]) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        faulty.raises = {"note"}
        await d.prompt("go")
        await d.over("p1")


async def test_parts_hear_of_a_mode_that_the_model_enters(tmp_path: Path, faulty: type[Faulty]) -> None:
    async with scripted_session(tmp_path, step("", call("enter_plan_mode", reason="big")), DONE, mode="auto") as d:
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        assert d.session.state.mode == "plan"
        assert faulty.heard.count("on_mode plan") == 1


async def test_a_session_without_agents_says_that_it_has_no_such_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = find_home(os.environ).make()
    (home.config / "config.toml").write_text("[agents]\nenabled = false\n")
    async with scripted_session(tmp_path, DONE) as d:
        params = AgentParams(session_id="s", agent_id="agent-1")
        with pytest.raises(AmanuError) as refused:
            await d.session.core.parts.ask("amanu/agent/stop", params, d.client)
        assert refused.value.kind == "agentNotFound"


async def test_a_session_that_a_part_refuses_to_open_leaves_nothing_of_other_parts_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part before it in the list was opened, so it is stopped and closed."""
    heard: list[str] = []

    class Opened(SessionPart):
        async def open(self, *, begins: bool) -> None:
            heard.append("open")

        async def stop(self) -> None:
            heard.append("stop")

        async def close(self) -> None:
            heard.append("close")

    class Refuses(SessionPart):
        async def open(self, *, begins: bool) -> None:
            raise AmanuError("invalidParams", "Not today.")

    def daemon_part(kind: type[SessionPart]) -> type[DaemonPart]:
        class Made(DaemonPart):
            session_part = kind

            def part_of(self, core: SessionCore) -> SessionPart:
                return kind()

        return Made

    monkeypatch.setattr(sessions_module, "daemon_parts", lambda: [daemon_part(Opened), daemon_part(Refuses)])
    with pytest.raises(AmanuError, match="Not today"):
        async with scripted_session(tmp_path, DONE):
            pass
    assert heard == ["open", "stop", "close"]
