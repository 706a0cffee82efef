"""How many sessions a daemon holds: what nobody looks at and does nothing makes room; what is in use never does."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from amanu.permissions import approvals as approval
from amanu.session.session import Session
from amanu.session.sessions import Sessions, open_sessions
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import (
    PromptSendParams,
    SessionAttachParams,
    SessionCreateParams,
    SessionListParams,
)
from support.cancellation_points import cancelled_after
from support.scripted_session import call, step
from support.session_client import Client, until

MOST = 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    (find_home().make().config / "config.toml").write_text(f"max_sessions = {MOST}\n")


class House:
    def __init__(self, sessions: Sessions, folder: Path) -> None:
        self.sessions = sessions
        self.root = folder / "work"
        self.root.mkdir()
        self.script = folder / "script.json"

    async def make(self, name: str, *, stay: bool = False) -> Client:
        """A session of that name; its client stays or leaves."""
        client = Client(os.environ)
        params = SessionCreateParams(session_id=name, roots=[str(self.root)], model_id=f"scripted:{self.script}")
        client.state = (await self.sessions.create(params, client)).state
        if not stay:
            self.sessions.disconnect(client)
        return client

    async def prompt(self, name: str, text: str = "go") -> Session:
        session = await self.sessions.get(name)
        params = PromptSendParams(session_id=name, prompt_id=f"{name}-{text}", text=text)
        await session.prompts.send(params, Client(os.environ))
        return session

    @property
    def open(self) -> str:
        return " ".join(each for each in "abcdefgh" if self.sessions.opened(each) is not None)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    made = House(open_sessions(), tmp_path)
    yield made
    await made.sessions.shutdown()


def says(house: House, *steps: dict[str, Any]) -> None:
    house.script.write_text(json.dumps(list(steps)))


async def test_the_one_that_was_used_longest_ago_makes_room(house: House) -> None:
    says(house, step("Hello."))
    for name in "abc":
        await house.make(name)
    await until(await house.prompt("a"), lambda state: state.last_turn)
    await house.make("d")
    assert house.open == "a c d"
    client = Client(os.environ)
    attached = await house.sessions.attach(SessionAttachParams(session_id="b"), client)
    assert attached.state is not None and house.open == "a b d"
    again = await house.sessions.get("a")
    await house.make("e")
    assert house.open == "a b e" and again is house.sessions.opened("a")
    listed = (await house.sessions.summaries.list(SessionListParams())).sessions
    assert [each.status for each in listed] == ["idle"] * 5, "nothing was closed for the user"


async def test_what_is_in_use_stays(house: House) -> None:
    """Somebody looks at it, or it works, or waits for an answer."""
    says(house, step("", call("run_shell_command", command="touch -c it", network=True)), step("Done."))
    await house.make("a", stay=True)
    await house.make("b")
    await until(await house.prompt("b"), lambda state: state.approvals)
    await house.make("c")
    await house.make("d")
    assert house.open == "a b d"
    await house.make("e", stay=True)
    assert house.open == "a b e"
    with pytest.raises(AmanuError) as caught:
        await house.make("f")
    assert caught.value.kind == "tooManySessions"
    assert "3 sessions" in str(caught.value) and "max_sessions" in (caught.value.data.hint or "")
    with pytest.raises(AmanuError, match="3 sessions"):
        await house.sessions.get("d")
    settings = find_home().settings
    settings.write_text("max_sessions = ")
    with pytest.raises(AmanuError, match="3 sessions"):
        await house.make("g")
    settings.write_text(f"max_sessions = {MOST + 1}\n")
    await house.make("h", stay=True)
    assert house.open == "a b e h", "what the refusal advises helps at once"
    await house.make("a")  # it is open
    known = {each.session_id for each in (await house.sessions.summaries.list(SessionListParams())).sessions}
    assert known == {"a", "b", "c", "d", "e", "h"}, "nothing is left of what could not be made"
    await house.sessions.close("b")
    await house.make("f")
    assert house.open == "a e f h"


async def test_what_cannot_be_saved_makes_no_room(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    says(house, step("Hello."))
    for name in "abc":
        await house.make(name)
    first = await house.sessions.get("a")
    for name in "bc":
        await house.sessions.get(name)

    async def full(*, anyway: bool = False) -> None:
        raise AmanuError("storageError", "The disk is full.")

    monkeypatch.setattr(first, "close", full)
    await house.make("d")
    assert house.open == "a c d"
    monkeypatch.undo()


async def test_who_gives_up_while_a_session_is_opened_or_makes_room_leaves_none_behind(house: House) -> None:
    """Neither open nor put away, it could be opened by nobody any more: its lease would stay with the daemon."""
    says(house, step("Hello."))
    for name in "abcd":
        await house.make(name)
    for steps in range(1, 40):
        away = next(each for each in "abcd" if each not in house.open)
        await cancelled_after(asyncio.create_task(house.sessions.get(away)), steps)
    for name in "abcd":
        assert not (await house.sessions.get(name)).state.read_only


async def test_no_session_is_opened_when_the_daemon_is_leaving(tmp_path: Path) -> None:
    """Nobody would end what runs in it."""
    house = House(open_sessions(), tmp_path)
    says(house, step("Hello."))
    await house.make("a")
    leaving = asyncio.create_task(house.sessions.shutdown())
    await asyncio.sleep(0)
    with pytest.raises(AmanuError):
        await house.make("b")
    with pytest.raises(AmanuError):
        await house.sessions.get("c")
    await leaving
    with pytest.raises(AmanuError):
        await house.sessions.get("a")
    assert house.open == ""
