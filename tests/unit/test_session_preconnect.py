"""A session that is opened opens the way to its model, and so does the user who begins to type: a prompt finds a
connection. Nothing is asked on it."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from amanu.models.preconnect import AGAIN_SECONDS
from amanu.session.sessions import Sessions, open_sessions
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import PromptBeginParams, PromptSendParams, SessionAttachParams, SessionCreateParams
from support.session_client import Client, until
from support.strict_services.anthropic import Anthropic
from support.strict_services.http import Say

MODEL = "anthropic:claude-opus-5-5"


@asynccontextmanager
async def opened(*script: Say) -> AsyncGenerator[tuple[Anthropic, Sessions, Client]]:
    service = Anthropic(script)
    environment = {**os.environ, "ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": await service.start()}
    sessions = open_sessions()
    try:
        yield service, sessions, Client(environment)
    finally:
        await sessions.shutdown()
        await service.stop()
    assert service.refused == [] and service.lint == []


async def create(sessions: Sessions, client: Client, root: Path) -> None:
    await sessions.create(SessionCreateParams(session_id="s", roots=[str(root)], model_id=MODEL), client)


async def until_true(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not reached():
            await asyncio.sleep(0.005)


async def settled(sessions: Sessions) -> None:
    """What was opened in the background has come to its end."""
    models, registry = sessions.models, sessions.services.registry
    while opening := [*models._warming, *registry.opening]:  # pyright: ignore[reportPrivateUsage]
        await asyncio.gather(*opening, return_exceptions=True)


async def test_a_new_session_is_answered_before_its_connection_is_opened(tmp_path: Path) -> None:
    async with opened() as (service, sessions, client):
        await create(sessions, client, tmp_path)
        assert sessions.services.registry.opening == set(), "an import would hold up the answer"
        await until_true(lambda: service.connections == 1)


async def test_a_new_session_has_its_connection_before_its_first_prompt(tmp_path: Path) -> None:
    async with opened(Say(text="Hi.")) as (service, sessions, client):
        await create(sessions, client, tmp_path)
        await until_true(lambda: service.connections == 1)
        assert service.requests == []
        session = await sessions.get("s")
        await session.prompts.send(PromptSendParams(session_id="s", prompt_id="p", text="Hi"), client)
        await until(session, lambda state: state.last_turn)
        assert (service.connections, len(service.requests)) == (1, 1)


async def test_a_session_that_is_opened_again_has_its_connection_too(tmp_path: Path) -> None:
    async with opened() as (_, sessions, client):
        await create(sessions, client, tmp_path)
    async with opened() as (service, sessions, client):
        await sessions.attach(SessionAttachParams(session_id="s"), client)
        await until_true(lambda: service.connections == 1)
        assert service.requests == []


async def test_nothing_is_connected_to_without_a_key_nor_for_a_recording(tmp_path: Path) -> None:
    async with opened() as (service, sessions, client):
        sessions.services.registry.replays = True
        await create(sessions, client, tmp_path)
        await settled(sessions)
        sessions.services.registry.replays = False
        del client.environment["ANTHROPIC_API_KEY"]
        with pytest.raises(AmanuError, match="No key for"):
            await sessions.services.registry.check(MODEL, client.environment)
        await sessions.attach(SessionAttachParams(session_id="s"), client)
        await settled(sessions)
        assert service.connections == 0


@pytest.mark.parametrize(
    ("params", "later", "connections"),
    [
        pytest.param(PromptBeginParams(session_id="s"), AGAIN_SECONDS, 2, id="of a session, after a minute"),
        pytest.param(PromptBeginParams(session_id="s"), AGAIN_SECONDS - 1, 1, id="of a session, again at once"),
        pytest.param(PromptBeginParams(session_id="other"), AGAIN_SECONDS, 1, id="of a session that is not open"),
        pytest.param(PromptBeginParams(model_id=MODEL), AGAIN_SECONDS, 2, id="of none yet, with its model"),
        pytest.param(PromptBeginParams(), AGAIN_SECONDS, 2, id="of none yet, with the default model"),
    ],
)
async def test_a_connection_that_is_gone_is_opened_again_when_the_user_begins_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, params: PromptBeginParams, later: float, connections: int
) -> None:
    async with opened() as (service, sessions, client):
        await create(sessions, client, tmp_path)
        await sessions.attach(SessionAttachParams(session_id="s"), client)
        await until_true(lambda: service.connections == 1)
        await service.hang_up()
        await asyncio.sleep(0.05)  # until we have noticed
        now = time.monotonic()
        monkeypatch.setattr("amanu.models.preconnect.time", SimpleNamespace(monotonic=lambda: now + later))
        sessions.begin_prompt(params, client)
        await until_true(lambda: service.connections == connections)
        for _ in range(3):
            sessions.begin_prompt(params, client)
        await settled(sessions)
        assert (service.connections, service.requests) == (connections, [])


async def test_a_connection_that_is_there_is_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as (service, sessions, client):
        await create(sessions, client, tmp_path)
        await until_true(lambda: service.connections == 1)
        begun = time.monotonic()
        monkeypatch.setattr("amanu.models.preconnect.time", SimpleNamespace(monotonic=lambda: begun + 3600))
        sessions.begin_prompt(PromptBeginParams(session_id="s"), client)
        await settled(sessions)
        assert service.connections == 1
