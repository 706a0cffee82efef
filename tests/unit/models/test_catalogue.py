"""The shipped table with what vendors say over it: what is asked, what is kept, whose word counts."""

import json
import logging
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.core.model_families import MODELS, model_info
from amanu.models import listing_request
from amanu.models.catalogue import FRESH_SECONDS, SHIPPED_FROM, STALE_DAYS, Catalogue, is_shipped
from amanu.models.listing_request import MAX_ANSWER, ListingAddress
from amanu_protocol.items import ModelInfo
from support.strict_services.listing import KEY, ListingService

NOW = 1_796_191_200.0
"""2026-12-02, 06:00 UTC."""
DAY = "2026-12-02"

WITHOUT_TOOLS = {"supported_parameters": ["temperature"]}
"""Of no use to an agent, so not offered."""
LISTINGS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {
            "id": "claude-opus-5-6",
            "display_name": "Claude Opus 5.6",
            "max_input_tokens": 2_000_000,
            "max_tokens": 256_000,
        },
        {"id": "claude-opus-5-5", "display_name": "Opus, other", "max_input_tokens": 900_000, "max_tokens": 100_000},
        {"id": "claude-opus-4-5-20251101", "display_name": "Old", "max_input_tokens": 200_000, "max_tokens": 64_000},
        {"id": "claude-poem-1", "retires_at": "2026-12-24T00:00:00Z"},
    ],
    "openai": [
        {"id": "gpt-6.3-sol"},
        {"id": "gpt-5"},
        {"id": "gpt-5.4", "shutdown_date": "2027-06-01"},
        {"id": "gpt-6-luna"},
        {"id": "gpt-6-luna-2026-10-01"},
    ],
    "gemini": [
        {
            "name": "models/gemini-3.9-flash",
            "displayName": "Gemini 3.9 Flash",
            "inputTokenLimit": 2_097_152,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent"],
        }
    ],
    "openrouter": [
        {
            "id": "z-ai/glm-5.3",
            "name": "Z.AI: GLM 5.3",
            "context_length": 1_000_000,
            "top_provider": {"max_completion_tokens": 1_000_000},
            "pricing": {"prompt": "0.0000014", "completion": "0.0000044", "input_cache_read": "0.00000026"},
            "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
            "supported_parameters": ["tools"],
        },
        {"id": "openrouter/auto", "context_length": 2_000_000, "pricing": {"prompt": "-1", "completion": "-1"}},
        {"id": "openai/gpt-6.4-sol", **WITHOUT_TOOLS, "pricing": {"prompt": "0.000003", "completion": "0.000015"}},
        {
            "id": "anthropic/claude-opus-5.7",
            **WITHOUT_TOOLS,
            "pricing": {"prompt": "0.000006", "completion": "0.00003"},
        },
        {
            "id": "anthropic/claude-opus-5.5",
            **WITHOUT_TOOLS,
            "pricing": {"prompt": "0.000009", "completion": "0.00009"},
        },
        {"id": "a/no-tools", "context_length": 8_000, "supported_parameters": ["temperature"]},
    ],
}


def answer(vendor: str, entries: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"models" if vendor == "gemini" else "data": LISTINGS[vendor] if entries is None else entries}


async def ask(catalogue: Catalogue, vendor: str, said: Any, status: int = 200, *, force: bool = True) -> str | None:
    async with ListingService(vendor, said, status).listening() as service:
        done = await catalogue.refresh([ListingAddress(vendor, service.base_url, KEY)], force=force)
        return done[vendor]


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue(tmp_path / "catalogue", lambda: NOW)


@pytest.fixture
async def asked(catalogue: Catalogue) -> Catalogue:
    """One that has the answers of all vendors."""
    for vendor in LISTINGS:
        assert await ask(catalogue, vendor, answer(vendor)) is None
    return catalogue


def facts(info: ModelInfo) -> tuple[object, ...]:
    return info.name, info.context_window, info.max_output, info.input_price, info.facts_from


# What is known ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_id", "expected"),
    [
        ("anthropic:claude-opus-5-5", ("Claude Opus 5.5", 1_000_000, 128_000, 4, SHIPPED_FROM)),
        ("anthropic:claude-opus-4-5-20251101", ("Claude Opus 4.5", 200_000, 64_000, 5, SHIPPED_FROM)),
        ("anthropic:claude-opus-5-6", ("claude-opus-5-6", 1_000_000, 128_000, 4, "like anthropic:claude-opus-5-5")),
        ("anthropic:claude-opus-6", ("claude-opus-6", 1_000_000, 128_000, 4, "like anthropic:claude-opus-5-5")),
        ("anthropic:claude-sonnet-4-5", ("Claude Sonnet 4.5", 200_000, 64_000, 3, SHIPPED_FROM)),
        ("anthropic:claude-sonnet-4-2", ("claude-sonnet-4-2", 200_000, 32_000, 3, "like anthropic:claude-sonnet-4-5")),
        ("anthropic:claude-mythos-5-2", ("Claude Mythos 5.2", 1_000_000, 128_000, 8, SHIPPED_FROM)),
        ("anthropic:claude-poem-1", ("claude-poem-1", 200_000, 32_000, None, "assumed")),
        ("openai:gpt-6.3-sol", ("gpt-6.3-sol", 336_000, 128_000, 2, "like openai:gpt-6.2-sol")),
        ("openai:gpt-7-sol", ("gpt-7-sol", 336_000, 128_000, 2, "like openai:gpt-6.2-sol")),
        ("openai:gpt-5-mini", ("GPT-5 mini", 336_000, 128_000, 0.25, SHIPPED_FROM)),
        ("openai:gpt-5-2025-08-07", ("GPT-5", 336_000, 128_000, 1.25, SHIPPED_FROM)),
        ("openai:gpt-5.2", ("GPT-5.2", 336_000, 128_000, 1.75, SHIPPED_FROM)),
        ("openai:gpt-5.3", ("gpt-5.3", 336_000, 128_000, 2.5, "like openai:gpt-5.4")),
        ("openai:gpt-5.3-mini", ("gpt-5.3-mini", 336_000, 128_000, 0.75, "like openai:gpt-5.4-mini")),
        ("openai:gpt-4o", ("GPT-4o", 128_000, 16_384, 2.5, SHIPPED_FROM)),
        ("openai:gpt-4o-mini-2024-07-18", ("GPT-4o mini", 128_000, 16_384, 0.15, SHIPPED_FROM)),
        ("openai:gpt-6-nova", ("gpt-6-nova", 336_000, 128_000, None, "assumed")),
        ("gemini:gemini-3.7-flash", ("Gemini 3.7 Flash", 1_048_576, 65_536, 0.75, SHIPPED_FROM)),
        ("gemini:gemini-3.9-flash", ("gemini-3.9-flash", 1_048_576, 65_536, 0.75, "like gemini:gemini-3.8-flash")),
        ("gemini:gemini-flash", ("gemini-flash", 1_000_000, 65_536, 0.75, "like gemini:gemini-3.8-flash")),
        ("gemini:gemini-flash-latest", ("Gemini 3.8 Flash", 1_048_576, 65_536, 0.75, SHIPPED_FROM)),
        ("google-openai:models/gemini-flash-latest", ("Gemini 3.8 Flash", 1_048_576, 65_536, 0.75, SHIPPED_FROM)),
        ("vertex:gemini-flash-lite-latest", ("Gemini 3.5 Flash-Lite", 1_048_576, 65_536, 0.3, SHIPPED_FROM)),
        ("gemini:gemini-pro-latest", ("Gemini 3.1 Pro", 1_048_576, 65_536, 2, SHIPPED_FROM)),
        ("gemini:gemini-2.5-flash-latest", ("Gemini 2.5 Flash", 1_048_576, 65_536, 0.3, SHIPPED_FROM)),
        ("gemini:gemini-3.2-pro", ("gemini-3.2-pro", 1_048_576, 65_536, 2, "like gemini:gemini-3.1-pro-preview")),
        ("google-openai:models/gemini-3.8-flash", ("Gemini 3.8 Flash", 1_048_576, 65_536, 0.75, SHIPPED_FROM)),
        ("azure:gpt-6.2-sol", ("GPT-6.2 Sol", 336_000, 128_000, 2, SHIPPED_FROM)),
        ("bedrock:anthropic.claude-opus-5-5", ("Claude Opus 5.5", 1_000_000, 128_000, 4, SHIPPED_FROM)),
        ("vertex:claude-opus-4-5@20251101", ("Claude Opus 4.5", 200_000, 64_000, 5, SHIPPED_FROM)),
        ("vertex:gemini-3.8-flash", ("Gemini 3.8 Flash", 1_048_576, 65_536, 0.75, SHIPPED_FROM)),
        ("foundry:our-own", ("our-own", 200_000, 32_000, None, "assumed")),
        ("azure:our-own", ("our-own", 336_000, 128_000, None, "assumed")),
        ("openrouter:z-ai/glm-5.3", ("z-ai/glm-5.3", 128_000, 16_384, None, "assumed")),
        ("ollama:qwen3:8b", ("qwen3:8b", 32_768, 8_192, None, "assumed")),
        ("mine:", ("", 32_768, 8_192, None, "assumed")),
    ],
)
def test_without_any_answer(catalogue: Catalogue, model_id: str, expected: tuple[object, ...]) -> None:
    info = catalogue.facts(model_id)
    assert facts(info) == expected
    assert (info.model_id, info.available) == (model_id, False)


@pytest.mark.parametrize(
    ("model_id", "expected"),
    [
        (
            "anthropic:claude-opus-5-6",
            ("Claude Opus 5.6", 2_000_000, 256_000, 4, f"Anthropic, {DAY}; price: like anthropic:claude-opus-5-5"),
        ),
        (
            "anthropic:claude-opus-5-5",
            ("Claude Opus 5.5", 900_000, 100_000, 9, f"Anthropic, {DAY}; price: OpenRouter, {DAY} (Amanu: $4 / $20)"),
        ),
        ("openai:gpt-6.3-sol", ("gpt-6.3-sol", 336_000, 128_000, 2, "like openai:gpt-6.2-sol")),
        ("openai:gpt-6-luna", ("GPT-6 Luna", 336_000, 128_000, 0.1, SHIPPED_FROM)),
        (
            "google-openai:gemini-3.9-flash",
            ("Gemini 3.9 Flash", 2_097_152, 65_536, 0.75, f"Google, {DAY}; price: like gemini:gemini-3.8-flash"),
        ),
        # Of models newer than the shipped table, the public list knows prices.
        (
            "openai:gpt-6.4-sol",
            ("gpt-6.4-sol", 336_000, 128_000, 3, f"like openai:gpt-6.2-sol; price: OpenRouter, {DAY}"),
        ),
        (
            "anthropic:claude-opus-5-7",
            ("claude-opus-5-7", 1_000_000, 128_000, 6, f"like anthropic:claude-opus-5-5; price: OpenRouter, {DAY}"),
        ),
        ("openrouter:z-ai/glm-5.3", ("Z.AI: GLM 5.3", 1_000_000, 250_000, 1.4, f"OpenRouter, {DAY}")),
        ("openrouter:z-ai/glm-5.4", ("z-ai/glm-5.4", 1_000_000, 250_000, 1.4, "like openrouter:z-ai/glm-5.3")),
        ("openrouter:openrouter/auto", ("openrouter/auto", 2_000_000, 16_384, None, f"OpenRouter, {DAY}")),
    ],
)
def test_with_the_answers(asked: Catalogue, model_id: str, expected: tuple[object, ...]) -> None:
    assert facts(asked.facts(model_id)) == expected


SONNET, GPT_5 = "anthropic:claude-sonnet-5-5", "openai:gpt-5"
BEFORE = NOW - 30 * 24 * 3600
LISTED_PRICES: list[tuple[str, dict[str, Any], tuple[Any, ...], tuple[float, ...] | None, str]] = [
    # The same price, of a later day.
    (SONNET, {"prompt": 2, "completion": 10}, (2, 10, 0.1, 2.5), None, f"price: OpenRouter, {DAY}"),
    # Another: what is listed counts, and what was shipped stays beside it.
    (SONNET, {"prompt": 3, "completion": 10}, (3, 10, 0.1, 2.5), (2, 10, 0.1, 2.5), "(Amanu: $2 / $10)"),
    (SONNET, {"prompt": 1, "completion": 5}, (1, 5, 0.1, 2.5), (2, 10, 0.1, 2.5), "(Amanu: $2 / $10)"),
    (
        SONNET,
        {"prompt": 2, "completion": 10, "input_cache_read": 0.2},
        (2, 10, 0.2, 2.5),
        (2, 10, 0.1, 2.5),
        "(Amanu: cache read $0.1)",
    ),
    ("bedrock:anthropic.claude-sonnet-5-5", {"prompt": 3, "completion": 15}, (3, 15, 0.1, 2.5), (2, 10, 0.1, 2.5), ")"),
    # Half a price is none.
    (SONNET, {"prompt": 3}, (2, 10, 0.1, 2.5), None, SHIPPED_FROM),
    (GPT_5, {"prompt": 1.25, "completion": 10}, (1.25, 10, 0.125, 1.25), None, f"price: OpenRouter, {DAY}"),
    ("anthropic:claude-sonnet-5-6", {"prompt": 3, "completion": 15}, (3, 15, None, None), None, f", {DAY}"),
]


@pytest.mark.parametrize(("model_id", "prices", "expected", "beside", "source"), LISTED_PRICES)
async def test_a_price_listed_later_is_taken_and_ours_is_told(
    catalogue: Catalogue,
    model_id: str,
    prices: dict[str, Any],
    expected: tuple[Any, ...],
    beside: tuple[float, ...] | None,
    source: str,
) -> None:
    listed = {name: f"{price / 1_000_000:.9f}" for name, price in prices.items()}
    names = ("anthropic/claude-sonnet-5.5", "openai/gpt-5", "anthropic/claude-sonnet-5.6")
    await ask(catalogue, "openrouter", answer("openrouter", [{"id": name, "pricing": listed} for name in names]))
    info = catalogue.facts(model_id)
    assert (info.input_price, info.output_price, info.cache_read_price, info.cache_write_price) == expected
    other = info.other_prices
    assert (None if other is None else (other.input, other.output, other.cache_read, other.cache_write)) == beside
    assert info.facts_from.endswith(source)


async def test_a_price_listed_before_ours_is_not_taken(tmp_path: Path) -> None:
    listed = [{"id": "openai/gpt-5", "pricing": {"prompt": "0.000009", "completion": "0.00009"}}]
    for listed_at, price in ((BEFORE, 1.25), (NOW, 9)):
        catalogue = Catalogue(tmp_path / "catalogue", lambda listed_at=listed_at: listed_at)
        await ask(catalogue, "openrouter", answer("openrouter", listed))
        assert catalogue.facts(GPT_5).input_price == price


@pytest.mark.parametrize(
    ("listed", "window", "output", "source"),
    [
        (200_000, 200_000, 128_000, f"OpenRouter, {DAY}"),
        (100_000, 100_000, 25_000, f"OpenRouter, {DAY}"),
        (1_050_000, 336_000, 128_000, f"{SHIPPED_FROM}; price: OpenRouter, {DAY}"),
        (None, 336_000, 128_000, f"{SHIPPED_FROM}; price: OpenRouter, {DAY}"),
    ],
)
async def test_a_smaller_window_is_taken_where_the_vendor_says_none(
    catalogue: Catalogue, listed: int | None, window: int, output: int, source: str
) -> None:
    entry = {"id": "openai/gpt-5", "context_length": listed}
    prices = {"prompt": "0.00000125", "completion": "0.00001"}
    await ask(catalogue, "openrouter", answer("openrouter", [{**entry, "pricing": prices}]))
    info = catalogue.facts(GPT_5)
    assert (info.context_window, info.max_output, info.facts_from) == (window, output, source)


DAY_SECONDS = 24 * 3600


@pytest.mark.parametrize(
    ("model_id", "days", "prices"),
    [
        ("gemini:gemini-3.8-flash", 29, (0.75, 3.75, 0.075)),
        ("gemini:gemini-3.8-flash", 30, (1.5, 7.5, 0.15)),  # 2027-01-01
        ("gemini:gemini-flash-latest", 30, (1.5, 7.5, 0.15)),
        ("gemini:gemini-3.9-flash", 30, (1.5, 7.5, 0.15)),  # like 3.8
        ("gemini:gemini-3.5-flash", 30, (1.5, 9, 0.15)),
    ],
)
def test_a_price_that_was_announced_is_that_of_its_day(
    tmp_path: Path, model_id: str, days: int, prices: tuple[float, float, float]
) -> None:
    info = Catalogue(tmp_path, lambda: NOW + days * DAY_SECONDS).facts(model_id)
    assert (info.input_price, info.output_price, info.cache_read_price) == prices


@pytest.mark.parametrize(
    ("days", "listed", "told", "stale"),
    [
        (0, None, "Amanu's table of models: 2026-11-30", False),
        (1, None, "Amanu's table of models: 2026-11-30, 1 day old", False),
        (STALE_DAYS, None, "Amanu's table of models: 2026-11-30, 30 days old", False),
        (STALE_DAYS + 1, None, "Amanu's table of models: 2026-11-30, 31 days old", True),
        (40, 38, "Amanu's table of models: 2026-11-30 · OpenRouter's prices: 2027-01-07, 2 days old", False),
        (80, 38, "Amanu's table of models: 2026-11-30 · OpenRouter's prices: 2027-01-07, 42 days old", True),
        (40, -3, "Amanu's table of models: 2026-11-30, 40 days old", True),
    ],
)
async def test_the_age_of_what_is_known(tmp_path: Path, days: int, listed: int | None, told: str, stale: bool) -> None:
    shipped = NOW - 2 * DAY_SECONDS
    if listed is not None:
        then = Catalogue(tmp_path, lambda: shipped + listed * DAY_SECONDS)
        assert await ask(then, "openrouter", answer("openrouter")) is None
    now = Catalogue(tmp_path, lambda: shipped + days * DAY_SECONDS)
    assert (now.told_age, now.is_stale) == (told, stale)


def test_a_model_of_openrouter_has_prices_and_sees(asked: Catalogue) -> None:
    info = asked.facts("openrouter:z-ai/glm-5.3")
    assert (info.output_price, info.cache_read_price, info.cache_write_price) == (4.4, 0.26, None)
    assert (info.images, info.thinking) == (True, False)


@pytest.mark.parametrize(
    ("model_id", "like"),
    [
        ("anthropic:claude-opus-5-5", "anthropic:claude-opus-5-5"),
        ("anthropic:claude-opus-4-6-20260301", "anthropic:claude-opus-4-6"),
        ("google-openai:gemini-3.8-flash", "google-openai:gemini-3.8-flash"),
        ("anthropic:claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("gemini:gemini-2.0-flash", "gemini:gemini-2.5-flash"),
        ("gemini:gemini-pro-latest", "gemini:gemini-3.1-pro-preview"),
        ("gemini:gemini-flash-lite-latest", "gemini:gemini-3.5-flash-lite"),
        ("azure:gpt-6.2-sol", "openai:gpt-6.2-sol"),
    ],
)
def test_efforts_are_those_of_its_own_family(catalogue: Catalogue, model_id: str, like: str) -> None:
    info, other = catalogue.facts(model_id), model_info(like)
    assert (info.efforts, info.default_effort) == (other.efforts, other.default_effort)
    assert info.efforts


def test_what_can_be_chosen(asked: Catalogue) -> None:
    def others(vendor: str, *, listed: bool = True) -> list[str]:
        shipped = {info.model_id for info in MODELS}
        return [info.model_id for info in asked.models(vendor, listed=listed) if info.model_id not in shipped]

    assert others("anthropic") == ["anthropic:claude-opus-5-6", "anthropic:claude-poem-1"]
    assert others("openai") == ["openai:gpt-6.3-sol", "openai:gpt-5"]
    assert others("openrouter") == ["openrouter:z-ai/glm-5.3", "openrouter:openrouter/auto"]
    assert others("openrouter", listed=False) == []


@pytest.mark.parametrize(
    ("model_id", "day", "successor"),
    [
        ("openai:gpt-5", "2026-12-11", "openai:gpt-6.1-sol"),
        ("openai:gpt-5-2025-08-07", "2026-12-11", "openai:gpt-6.1-sol"),
        ("openai:gpt-5-mini", "2026-12-11", "openai:gpt-6.1-terra"),
        ("openai:gpt-5-pro-2025-10-06", "2026-12-11", "openai:gpt-6.1-sol"),
        ("openai:o3-pro", "2026-12-11", "openai:gpt-6.1-sol"),
        ("openai:gpt-4o", "2027-01-14", "openai:gpt-6-luna"),
        ("openai:gpt-4o-mini-2024-07-18", "2027-01-14", "openai:gpt-6-luna"),
        ("openai:gpt-4o-2024-05-13", "2026-10-23", "openai:gpt-5.6-sol"),
        ("openai:o4-mini", "2026-10-23", "openai:gpt-5.6-terra"),
        ("openai:gpt-5.3-codex", "2027-04-01", "openai:gpt-6.1-sol"),
        ("openai:gpt-5.4-nano", "2027-04-01", "openai:gpt-6-luna"),
        ("openai:gpt-5.4-mini", None, None),
        ("openai:gpt-5-nano", "2026-12-11", "openai:gpt-6-luna"),
        ("openai:gpt-5.4", "2027-06-01", None),
        ("openai:o3", "2026-12-11", "openai:gpt-6.1-sol"),
        ("openai:gpt-4.1", "2027-01-14", "openai:gpt-6-luna"),
        ("openai:gpt-5.1", "2027-04-01", "openai:gpt-6.1-sol"),
        ("anthropic:claude-sonnet-4-5-20250929", "2026-11-30", "anthropic:claude-sonnet-5-5"),
        ("anthropic:claude-opus-4-5-20251101", "2027-01-22", "anthropic:claude-opus-5-5"),
        ("anthropic:claude-sonnet-4-6", None, None),
        ("gemini:gemini-2.5-flash-lite", None, "gemini:gemini-3.8-flash"),
        ("google-openai:models/gemini-2.5-pro", None, "google-openai:gemini-3.8-flash"),
        ("anthropic:claude-poem-1", "2026-12-24", None),
        ("mine:gpt-5", None, None),
    ],
)
def test_what_is_shut_down(asked: Catalogue, model_id: str, day: str | None, successor: str | None) -> None:
    info = asked.facts(model_id)
    assert (info.retires, info.successor) == (day, successor)
    assert successor is None or is_shipped(successor.replace("google-openai", "gemini")), "the successor is known"


# What is asked and kept -------------------------------------------------------------------------------


async def test_the_cache_is_private_and_whole_and_others_see_it(asked: Catalogue, tmp_path: Path) -> None:
    folder = tmp_path / "catalogue"
    assert sorted(path.name for path in folder.iterdir()) == [f"{vendor}.json" for vendor in sorted(LISTINGS)]
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert KEY not in path.read_text()
    other = Catalogue(folder, lambda: NOW)
    assert other.models("openrouter") == asked.models("openrouter")
    changed = [{**LISTINGS["openrouter"][0], "name": "Changed"}]
    assert await ask(asked, "openrouter", answer("openrouter", changed)) is None
    assert [info.name for info in other.models("openrouter")] == ["Changed"]


@pytest.mark.parametrize(
    ("passed", "requests"),
    [(0, 0), (FRESH_SECONDS - 1, 0), (FRESH_SECONDS, 1), (-1, 1), (-1e9, 1), (1e12, 1)],
)
async def test_a_vendor_is_asked_once_a_day_and_after_a_wrong_clock(
    asked: Catalogue, tmp_path: Path, passed: float, requests: int
) -> None:
    later = Catalogue(tmp_path / "catalogue", lambda: NOW + passed)
    async with ListingService("openai", answer("openai")).listening() as service:
        address = ListingAddress("openai", service.base_url, KEY)
        assert len(await later.refresh([address, address])) == requests
        assert len(service.requests) == requests
        assert await later.refresh([address]) == {}, "now it is fresh"


TOO_MUCH = b'{"data": [' + (b" " * 999 + b"\n") * (MAX_ANSWER // 1000 + 1) + b"]}"
FAILURES: list[tuple[Any, int, str]] = [
    ({"error": {"message": "down"}}, 503, "OpenRouter cannot answer right now: down."),
    ({"error": {"message": f"No such key: {KEY}"}}, 401, "OpenRouter does not accept the key"),
    (b"", 302, "OpenRouter refused the request"),
    (b"404 page not found", 404, "OpenRouter lists no models at"),
    (b"x" * 1_000_000, 500, "OpenRouter cannot answer right now"),
    (b"<html>hello</html>", 200, "The answer is not JSON."),
    ({"data": "none"}, 200, "The answer is not a list of models."),
    ({"data": []}, 200, "The answer lists no models that Amanu can use."),
    ({"data": [{"id": f"a/{at}"} for at in range(5_001)]}, 200, "The answer lists more than 5,000 models."),
    (TOO_MUCH, 200, "The answer is larger than 16 MB."),
]


@pytest.mark.parametrize(("said", "status", "failure"), FAILURES, ids=[each[2] for each in FAILURES])
async def test_a_vendor_that_fails_changes_nothing_and_is_logged_once(
    asked: Catalogue, caplog: pytest.LogCaptureFixture, said: Any, status: int, failure: str
) -> None:
    before = asked.models("openrouter")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            told = await ask(asked, "openrouter", said, status)
            assert told is not None and told.startswith(failure) and told.endswith((".", "it is."))
    assert len(caplog.records) == 1 and failure in caplog.text and KEY not in caplog.text
    assert asked.models("openrouter") == before
    assert await ask(asked, "openrouter", answer("openrouter")) is None
    with caplog.at_level(logging.WARNING):
        await ask(asked, "openrouter", said, status)
    assert len(caplog.records) == 2, "it had answered meanwhile"


async def test_a_vendor_that_is_slow_is_not_waited_for(asked: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing_request, "TIMEOUT", 0.05)
    async with ListingService("openai", answer("openai")).listening() as service:
        service.answering.clear()
        done = await asked.refresh([ListingAddress("openai", service.base_url, KEY)], force=True)
    assert done == {"openai": f"OpenAI at {service.base_url} did not answer within 0.05 seconds."}


async def test_a_vendor_that_is_not_there_delays_no_other(asked: Catalogue) -> None:
    async with ListingService("openai", answer("openai")).listening() as service:
        gone = ListingAddress("anthropic", "http://127.0.0.1:9", KEY)
        done = await asked.refresh([gone, ListingAddress("openai", service.base_url, KEY)], force=True)
    assert done["openai"] is None
    assert done["anthropic"] is not None and "cannot be reached" in done["anthropic"]


async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "catalogue").write_text("a file")
    told = await ask(Catalogue(tmp_path / "catalogue"), "openai", answer("openai"))
    assert told is not None and "cannot be written" in told


@pytest.mark.parametrize("nonsense", ["-1", "0.5", "NaN", None, "dear"])
async def test_nonsense_never_replaces_a_price(asked: Catalogue, nonsense: object) -> None:
    lie = {**LISTINGS["openrouter"][0], "context_length": 7, "pricing": {"prompt": nonsense, "completion": nonsense}}
    assert await ask(asked, "openrouter", answer("openrouter", [lie])) is None
    info = asked.facts("openrouter:z-ai/glm-5.3")
    assert (info.input_price, info.output_price, info.context_window) == (1.4, 4.4, 1_000_000)


def _damaged(path: Path) -> str:
    return path.read_text()[:-20]


@pytest.mark.parametrize(
    "damage",
    [
        _damaged,
        lambda path: "",
        lambda path: "[]",
        lambda path: "[" * 100_000,
        lambda path: '{"models": []}',
        lambda path: '{"fetched_at": NaN, "models": []}',
        lambda path: '{"fetched_at": 1, "models": [{"id": 7}]}',
        lambda path: json.dumps({**json.loads(path.read_text()), "fetched_at": "today"}),
    ],
)
async def test_a_damaged_cache_is_as_good_as_none(
    asked: Catalogue, tmp_path: Path, damage: Callable[[Path], str]
) -> None:
    path = tmp_path / "catalogue" / "openai.json"
    path.write_text(damage(path))
    shipped = [info.model_id for info in MODELS if info.model_id.startswith("openai:")]
    assert [info.model_id for info in asked.models("openai")] == shipped
    assert not asked.fresh(ListingAddress("openai", "", KEY))
    assert await ask(asked, "openai", answer("openai"), force=False) is None
    assert len(asked.models("openai")) == len(shipped) + 2


def test_a_cache_of_no_day_is_shown_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "openrouter.json").write_text(
        '{"fetched_at": 1e300, "models": [{"id": "a/b", "window": 9000, "input_price": 1, "output_price": 2}]}'
    )
    catalogue = Catalogue(tmp_path)
    assert catalogue.facts("openrouter:a/b").facts_from == "OpenRouter, date unknown"
    assert not catalogue.fresh(ListingAddress("openrouter", "", KEY))
