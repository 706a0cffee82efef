"""The table of models (core/model_families.py) against other sources: the vendors' newest SDKs, OpenRouter's list, and
genai-prices. What was read last is kept in .tools/facts and used where nothing new can be had.

PYTHONPATH=.tools/facts/packages:tests python -m support.model_facts    shows the differences
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from amanu.core.model import ModelError
from amanu.core.model_families import KNOWN, MODELS_DATE, priced_on
from amanu.models.listing import ListedModel, read_listing
from amanu.models.listing_request import ListingAddress, request_listing
from amanu_protocol.items import LongPrompt, ModelInfo
from support.sdk_models import LEFT_OUT, SDK_MODELS, deprecated, our_days, unknown_models

OPENROUTER = "https://openrouter.ai/api/v1"
KEPT = Path(__file__).parents[2] / ".tools" / "facts" / "openrouter.json"
AHEAD = timedelta(days=60)
"""Prices that are to change are shown that long before."""
_MAKERS = {"anthropic": "anthropic", "google": "gemini", "openai": "openai"}
"""A vendor's name in lists → our name for it."""
_FIELDS = {
    "input_price": "input",
    "output_price": "output",
    "cache_read_price": "cache read",
    "cache_write_price": "cache write",
    "search_price": "search",
}


def differences(ours: ModelInfo, theirs: ListedModel) -> list[str]:
    """The facts about a model that differ in a list, each in words. A fact that the list leaves out is no difference;
    nor is a larger window, since some of ours end where a prompt becomes dearer."""
    told: list[str] = []
    for field, name in _FIELDS.items():
        mine, listed = getattr(ours, field), getattr(theirs, field)
        if listed is not None and (mine is None or abs(mine - listed) > 1e-6):
            told.append(f"{name} ${listed:g}, ours {'none' if mine is None else f'${mine:g}'}")
    if theirs.long_prompt is not None and theirs.long_prompt != ours.long_prompt:
        fits = ours.context_window - ours.max_output > theirs.long_prompt.above or ours.long_prompt is not None
        told += [f"long prompts {_long(theirs.long_prompt)}, ours {_long(ours.long_prompt)}"] if fits else []
    if theirs.window is not None and theirs.window < ours.context_window * 0.95:
        told.append(f"window {theirs.window:,}, ours {ours.context_window:,}")
    return told


def _long(long: LongPrompt | None) -> str:
    return "none" if long is None else f"above {long.above:,}: {long.input:g} and {long.output:g} times"


def compared(listed: Mapping[str, ListedModel], day: date) -> Iterator[str]:
    """The differences of all models on that day, a line for each model."""
    for model_id, theirs in listed.items():
        ours = KNOWN.get(model_id)
        if ours is not None and (told := differences(priced_on(ours, day.isoformat()), theirs)):
            yield f"{model_id}: {'; '.join(told)}"


# OpenRouter ----------------------------------------------------------------------------------------------


def of_openrouter(models: Iterable[ListedModel]) -> dict[str, ListedModel]:
    """The models of the three vendors, under our names."""
    found: dict[str, ListedModel] = {}
    for listed in models:
        maker, _, model = listed.id.partition("/")
        if (vendor := _MAKERS.get(maker)) is not None and ":" not in model:
            found[f"{vendor}:{model.replace('.', '-') if vendor == 'anthropic' else model}"] = listed
    return found


async def read_openrouter(base_url: str, kept: Path) -> tuple[str, list[ListedModel]]:
    """A sentence on where the list is from, and its models: from the network, or else as kept."""
    try:
        answer = await request_listing(ListingAddress("openrouter", base_url, ""))
        models = read_listing("openrouter", answer)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(answer)
        return "read now", models
    except (ModelError, ValueError) as error:
        if not kept.exists():
            return f"{error} Nothing is kept.", []
        day = datetime.fromtimestamp(kept.stat().st_mtime, UTC).date()
        return f"{error} What was kept on {day} is used.", read_listing("openrouter", kept.read_bytes())


# genai-prices --------------------------------------------------------------------------------------------


def of_genai_prices(day: date) -> dict[str, ListedModel]:
    """Its prices of that day for the models we know; empty where it is not installed."""
    if find_spec("genai_prices") is None:
        return {}
    from genai_prices.data import providers  # pyright: ignore

    found: dict[str, ListedModel] = {}
    at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    for provider in list[Any](providers):  # pyright: ignore
        for model_id in KNOWN:
            vendor, _, model = model_id.partition(":")
            if _MAKERS.get(provider.id) == vendor and (facts := provider.find_model(model)) is not None:
                found[model_id] = priced(model, facts.get_prices(at))
    return found


def priced(model: str, prices: Any) -> ListedModel:
    """genai-prices' prices of a model in the form of a listed one."""

    def base(name: str) -> float | None:
        price = getattr(prices, name, None)
        return None if price is None else float(getattr(price, "base", price))

    def last(name: str) -> float:
        """The price of the last tier as a multiple of the base price."""
        price = getattr(prices, name, None)
        tiers = getattr(price, "tiers", [])
        return float(tiers[-1].price / getattr(price, "base", 1)) if tiers else 1.0

    starts = [tier.start for tier in getattr(getattr(prices, "input_mtok", None), "tiers", [])]
    searches = base("web_searches_kcount")
    long = LongPrompt(above=min(starts), input=last("input_mtok"), output=last("output_mtok")) if starts else None
    return ListedModel(
        id=model,
        input_price=base("input_mtok"),
        output_price=base("output_mtok"),
        cache_read_price=base("cache_read_mtok"),
        cache_write_price=base("cache_write_mtok"),
        search_price=None if searches is None else searches / 1_000,
        long_prompt=long,
    )


# The report ----------------------------------------------------------------------------------------------


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package}: not there"


def sections(openrouter: tuple[str, list[ListedModel]], day: date) -> Iterator[tuple[str, list[str]]]:
    """A heading for each source, and the lines below it."""
    sdks = ", ".join(map(_version, ("anthropic", "google-genai", "openai")))
    unknown = [f"{model_id}: not known" for vendor in SDK_MODELS for model_id in unknown_models(vendor)]
    days = deprecated()
    ours = our_days(days)
    moved = [model_id for model_id, day in days.items() if ours.get(model_id) != day]
    yield f"SDKs ({sdks})", unknown + [f"{each}: ends on {days[each]}, ours {ours.get(each)}" for each in moved]
    today = list(compared(of_genai_prices(day), day))
    yield f"{_version('genai-prices')}, prices of {day}", today
    soon = day + AHEAD
    yield f"the same, prices of {soon}", [line for line in compared(of_genai_prices(soon), soon) if line not in today]
    told, models = openrouter
    listed = of_openrouter(models)
    new = [
        f"{model_id}: not known"
        for model_id, model in listed.items()
        if model.usable and model_id not in KNOWN and not any(re.fullmatch(left, model_id) for left in LEFT_OUT)
    ]
    yield f"OpenRouter: {told}", [*compared(listed, day), *new]


def main() -> None:
    print(f"Our table is of {MODELS_DATE}. What follows is where others say something else.")
    openrouter = asyncio.run(read_openrouter(OPENROUTER, KEPT))
    for heading, lines in sections(openrouter, datetime.now(UTC).date()):
        print("\n".join(["", heading, *(f"  {line}" for line in lines)]))


if __name__ == "__main__":
    main()
