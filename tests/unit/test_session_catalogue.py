"""The sessions ask vendors for their models: of whom a client has a key, once, and when the settings let them."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from amanu.config import Settings
from amanu.home import find_home
from amanu.session.services import make_services
from amanu.session.sessions import Sessions
from amanu_protocol.items import Notice
from amanu_protocol.requests import SessionCreateParams
from support.session_client import Client
from support.strict_services.listing import KEY, ListingService

ANSWER = {"data": [{"id": "a/b", "context_length": 64_000}]}
WITH_KEY = {"OPENROUTER_API_KEY": KEY}


@contextlib.asynccontextmanager
async def sessions(service: ListingService, *clients: dict[str, str], refresh: bool = True) -> AsyncGenerator[Sessions]:
    settings = {"catalogue": {"refresh": refresh}, "base_urls": {"openrouter": service.base_url}}
    found = Sessions(make_services(find_home().make(), Settings.model_validate(settings)))
    for environment in clients:
        found.connect(Client(environment))
    yield found
    await found.shutdown()


@pytest.mark.parametrize(
    ("clients", "refresh", "requests"),
    [
        ((), True, 0),
        (({},), True, 0),
        (({"OPENROUTER_API_KEY": " "},), True, 0),
        (({}, WITH_KEY, WITH_KEY), True, 1),
        ((WITH_KEY,), False, 0),
    ],
)
async def test_who_is_asked(clients: tuple[dict[str, str], ...], refresh: bool, requests: int) -> None:
    async with (
        ListingService("openrouter", ANSWER).listening() as service,
        sessions(service, *clients, refresh=refresh) as found,
    ):
        for _ in range(2):
            await found.refresh_catalogue()
        assert len(service.requests) == requests
        known = (await found.models.list(Client(WITH_KEY))).models
        assert ("openrouter:a/b" in {info.model_id for info in known}) == bool(requests)


async def test_keys_that_others_can_read_ask_nobody(tmp_path: Path) -> None:
    path = find_home().make().config / "auth.json"
    path.write_text(f'{{"keys": {{"openrouter": "{KEY}"}}}}')
    path.chmod(0o644)
    async with ListingService("openrouter", ANSWER).listening() as service, sessions(service, {}) as found:
        await found.refresh_catalogue()
        assert service.requests == []


async def test_a_model_that_may_not_exist_is_doubted_in_the_session(tmp_path: Path) -> None:
    environment = {"OPENROUTER_API_KEY": KEY}
    found = Sessions(make_services(find_home().make(), Settings()))
    found.models.connect = lambda model_id, client: None  # its own address is no address of a test
    client = Client(environment)
    params = SessionCreateParams(session_id="s", roots=[str(tmp_path)], model_id="openrouter:a/b")
    state = (await found.create(params, client)).state
    doubts = [item.text for item in state.items if isinstance(item, Notice) and item.code == "modelDoubt"]
    assert len(doubts) == 1 and "'a/b' is not known" in doubts[0] and "amanu models --refresh" in doubts[0]
    await found.shutdown()
