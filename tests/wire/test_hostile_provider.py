"""A hostile or broken service may slow one session, never another one, and never take the daemon's memory
(`hostile_provider.py`). Limits are made small here; with the real ones: `make soak`."""

import asyncio

import pytest

from amanu.core.model import ModelError, ReplyCompleted, ReplyTooLong, TextDelta
from amanu.models import limits, transport
from recordings.make import Way
from support.hostile_provider import CASES, DRIP
from support.hostile_provider_client import ONCE, WIRES, hostile_provider, memory, suffer, watched
from support.strict_services.http import Say
from support.vendors import VENDORS, request, running

MAY_WORK = ("deep_arguments", "tiny_pieces", "invalid_utf8")
TOO_LONG = ("endless_line", "endless_text", "long_texts", "gzip_bomb", "endless_error", "many_calls", "big_argument")
LATE = 0.5
"""Seconds; far above what is seen (some 20 ms), for machines that are busy otherwise."""


# A vendor's SDK lets go of a stream it broke off, and httpx's generator cannot be closed where the collector finds it.
# Our own transport has closed the connection by then.
pytestmark = pytest.mark.filterwarnings("ignore:.*BoundAsyncStream:pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(transport, "MAX_REPLY", 1 << 20)
    monkeypatch.setattr(transport, "MAX_LINE", 512 << 10)
    monkeypatch.setattr(transport, "MAX_LINES", 25_000)
    monkeypatch.setattr(limits, "MAX_ARGUMENTS", 256 << 10)


@pytest.mark.parametrize("way", WIRES, ids=[way.name for way in WIRES])
async def test_a_nasty_service_harms_nobody_else(way: Way) -> None:
    neighbour = next(vendor for vendor in VENDORS if vendor.name == "openai-plain")
    async with (
        hostile_provider() as url,
        running(neighbour, [Say(text="word ", repeat=20_000, delay=0.001)]) as (_, model),
    ):
        words = 0

        async def goes_on() -> None:
            nonlocal words
            async for delta in model.stream(request(neighbour)):
                words += isinstance(delta, TextDelta)

        beside = asyncio.create_task(goes_on())
        await suffer(way, f"{url}/no_http")  # what is loaded on first use is loaded
        before = memory()
        async with watched() as delays:
            for name in CASES:
                result = await suffer(way, f"{url}/{name}")
                assert isinstance(result, ModelError) or name in MAY_WORK, f"{name}: {result}"
                if isinstance(result, ReplyCompleted):
                    assert result.message.model_dump_json(), "it can be kept"
                if name in TOO_LONG:
                    assert isinstance(result, ReplyTooLong), f"{name}: {result!r}"
        assert not beside.done(), "the other session goes on"
        assert words > 0
        beside.cancel()
        await asyncio.gather(beside, return_exceptions=True)
    assert delays.p99 < LATE
    assert memory() - before < 150


@pytest.mark.parametrize("way", WIRES, ids=[way.name for way in WIRES])
async def test_a_drip_is_silence(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "support.hostile_provider_client.ONCE", type(ONCE)(attempts=1, idle_text=0.3, idle_thinking=0.3)
    )
    async with hostile_provider() as url:
        await suffer(way, f"{url}/no_http")
        result = await suffer(way, f"{url}/{DRIP}")
    assert isinstance(result, ModelError)
    assert "silent" in result.message
