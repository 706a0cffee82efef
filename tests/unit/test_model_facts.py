"""`make facts`: what other sources say otherwise of our models, and what is done without a network."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from amanu.core.model_families import KNOWN
from amanu.models.listing import ListedModel
from support.model_facts import compared, differences, of_openrouter, priced, read_openrouter, sections
from support.strict_services.listing import ListingService

SOL, OPUS = "openai:gpt-6.2-sol", "anthropic:claude-opus-5-5"
LONG = {"above": 272_000, "input": 2, "output": 1.5}


@pytest.mark.parametrize(
    ("model_id", "listed", "expected"),
    [
        (SOL, {}, []),
        (
            SOL,
            {"input_price": 2, "output_price": 10, "cache_read_price": 0.1, "long_prompt": LONG},
            [],
        ),
        (SOL, {"input_price": 3}, ["input $3, ours $2"]),
        (
            SOL,
            {"output_price": 9, "search_price": 0.02},
            ["output $9, ours $10", "search $0.02, ours $0.01"],
        ),
        (SOL, {"window": 1_050_000}, []),
        (SOL, {"window": 200_000}, ["window 200,000, ours 336,000"]),
        ("gemini:gemini-3.8-flash", {"window": 1_000_000}, []),  # rounded
        (
            "anthropic:claude-haiku-5-5",
            {"long_prompt": LONG},
            ["long prompts above 272,000: 2 and 1.5 times, ours above 100,000: 5 and 5 times"],
        ),
        (
            "anthropic:claude-opus-5-5",
            {"long_prompt": LONG},
            ["long prompts above 272,000: 2 and 1.5 times, ours none"],
        ),
        ("openai:gpt-4o", {"long_prompt": LONG}, []),  # no prompt gets that long
    ],
)
def test_what_a_list_says_otherwise(model_id: str, listed: dict[str, Any], expected: list[str]) -> None:
    theirs = ListedModel.model_validate({"id": "x", **listed})
    assert differences(KNOWN[model_id], theirs) == expected
    lines = [f"{model_id}: {'; '.join(expected)}"] if expected else []
    assert list(compared({model_id: theirs, "openai:gpt-99": theirs}, date(2026, 11, 30))) == lines


@pytest.mark.parametrize(
    ("listed", "ours"),
    [
        ("anthropic/claude-opus-5.5", "anthropic:claude-opus-5-5"),
        ("google/gemini-3.8-flash", "gemini:gemini-3.8-flash"),
        ("openai/gpt-6.2-sol", "openai:gpt-6.2-sol"),
        ("openai/gpt-6.2-sol:free", None),
        ("~google/gemini-pro-latest", None),
        ("z-ai/glm-5.3", None),
    ],
)
def test_a_listed_model_under_our_name(listed: str, ours: str | None) -> None:
    assert list(of_openrouter([ListedModel(id=listed)])) == ([] if ours is None else [ours])


def test_prices_of_genai_prices_are_read_as_listed_ones() -> None:
    def tiered(base: str, above: str) -> Any:
        return SimpleNamespace(base=Decimal(base), tiers=[SimpleNamespace(start=200_000, price=Decimal(above))])

    prices = SimpleNamespace(
        input_mtok=tiered("2", "4"), output_mtok=tiered("12", "18"), cache_read_mtok=Decimal("0.2"),
        web_searches_kcount=Decimal("14"),
    )  # fmt: skip
    assert differences(KNOWN["gemini:gemini-3.1-pro-preview"], priced("x", prices)) == []
    assert priced("x", SimpleNamespace(input_mtok=Decimal("1"))) == ListedModel(id="x", input_price=1)


ENTRY = {"id": "openai/gpt-6.2-sol", "pricing": {"prompt": "0.000003", "completion": "0.00001"}}


async def test_without_a_network_what_was_kept_is_used_and_said(tmp_path: Path) -> None:
    kept = tmp_path / "facts" / "list.json"
    gone = "http://127.0.0.1:9/v1"
    told, models = await read_openrouter(gone, kept)
    assert told.endswith("Nothing is kept.") and models == []
    async with ListingService("openrouter", {"data": [ENTRY]}, 200).listening() as service:
        service.key = None
        told, models = await read_openrouter(service.base_url, kept)
    assert told == "read now" and [each.id for each in models] == [ENTRY["id"]]
    assert json.loads(kept.read_bytes()) == {"data": [ENTRY]}
    told, again = await read_openrouter(gone, kept)
    assert "cannot be reached" in told and told.endswith("is used.") and again == models


def test_each_source_has_its_lines() -> None:
    models = [
        ListedModel(id="openai/gpt-6.2-sol", input_price=3),
        ListedModel(id="openai/gpt-6.9-sol"),
        ListedModel(id="openai/gpt-6.9-audio", usable=False),
        ListedModel(id="openai/gpt-4-turbo"),
    ]
    found = dict(sections(("read now", models), date(2026, 11, 30)))
    assert found["OpenRouter: read now"] == ["openai:gpt-6.2-sol: input $3, ours $2", "openai:gpt-6.9-sol: not known"]
    sdks = next(lines for heading, lines in found.items() if heading.startswith("SDKs"))
    assert sdks == []
