"""The facts about models: the table shipped with Amanu, overridden by cached listings from the vendors.

If a vendor is down, slow or returns nonsense, nothing changes. Only OpenRouter states prices, other vendors' too: one
that it listed after the day of the table replaces the table's, which then stays beside it (`ModelInfo.other_prices`).
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amanu.core.model import ModelError
from amanu.core.model_families import KNOWN, MODELS, MODELS_DATE, model_info, priced_on, with_choices
from amanu.core.original_models import original
from amanu.core.retirements import retirement
from amanu.models.listing import MAX_MODELS, ListedModel, read_listing
from amanu.models.listing_request import ListingAddress, request_listing
from amanu.models.relatives import nearest_relative, undated, version
from amanu.system.private_file import read_private, write_private
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ModelInfo, ModelPrices

FRESH_SECONDS = 24 * 3600.0
"""How long a vendor's answer counts as up to date."""
SHIPPED_FROM = f"Amanu, {MODELS_DATE}"
ASSUMED = "assumed"

_OFFERED = frozenset(info.model_id for info in MODELS)
_TITLES = {"anthropic": "Anthropic", "gemini": "Google", "openai": "OpenAI", "openrouter": "OpenRouter"}
PRICE_LIST = "openrouter"
"""The vendor whose list has prices of other vendors' models, for everybody to read."""
_MAKERS = {"anthropic": "anthropic", "gemini": "google", "openai": "openai"}
"""Vendor → what the price list calls it."""
STALE_DAYS = 30
"""Days after which the user is told that prices are old: in one month of 2026, vendors changed five."""
_PRICES = ("input_price", "output_price", "cache_read_price", "cache_write_price")
_KEPT = ("window", "output", *_PRICES)
"""Fields that keep their previous value when an answer omits them or gives an implausible one."""

log = logging.getLogger(__name__)


class _Cached(BaseModel):
    """A cache file: one vendor's answer."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    fetched_at: float = Field(allow_inf_nan=False)
    """Seconds since 1970."""
    models: tuple[ListedModel, ...] = Field(max_length=MAX_MODELS)
    of_plan: bool = False
    """The vendor was asked on behalf of a ChatGPT plan, which includes other models than a key."""


@dataclass(frozen=True)
class _Listing:
    """A vendor's answer, indexed by model id."""

    fetched_at: float
    models: Mapping[str, ListedModel]
    """By id, in the vendor's order."""
    by_undated: Mapping[str, ListedModel]
    of_plan: bool = False

    def find(self, model: str) -> ListedModel | None:
        return self.models.get(model) or self.by_undated.get(model)

    @property
    def day(self) -> str:
        try:
            return datetime.fromtimestamp(self.fetched_at, UTC).date().isoformat()
        except (ValueError, OverflowError, OSError):
            return _UNKNOWN_DAY

    @property
    def is_newer(self) -> bool:
        """Whether it is of a later day than the shipped table."""
        return self.day != _UNKNOWN_DAY and self.day > MODELS_DATE


_UNKNOWN_DAY = "date unknown"
_NOTHING = _Listing(0.0, {}, {})


class Catalogue:
    """`folder` holds one file per vendor, which is reread when it changes on disk. Only `refresh` uses the network."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock
        self._read: dict[str, tuple[tuple[int, int, int], _Listing]] = {}
        """Vendor → the version of its file, and the file's content."""
        self._failing: set[str] = set()
        """Vendors whose failure is already in the log; each leaves the set when it answers again."""

    def facts(self, model_id: str) -> ModelInfo:
        """The facts about `vendor:model`, and their source. An unknown model gets the facts of its nearest relative, or
        else cautious ones. `available` is always False here: only the registry can tell."""
        vendor, _, model = original(model_id).partition(":")
        if vendor == "google-openai":
            vendor, model = "gemini", model.removeprefix("models/")
        listing = self._listing(vendor)
        listed = listing.find(model)
        base = self._base(f"{vendor}:{model}", listed is not None)
        facts = base.facts if listed is None else _overlaid(base, listed)
        source = _source(base, listed, f"{_TITLES.get(vendor, vendor)}, {listing.day}")
        if (public := self._public_price(vendor, model, base)) is not None:
            priced_by = f"{_TITLES[PRICE_LIST]}, {self._listing(PRICE_LIST).day}"
            says_window = listed is not None and listed.window is not None
            narrower = None if says_window else _narrower(facts, public)
            sized_by = source.partition("; price")[0] if narrower is None else priced_by
            facts = _repriced(narrower or facts, public, is_shipped=base.is_shipped)
            source = priced_by if sized_by == priced_by else f"{sized_by}; price: {priced_by}"
            if facts.other_prices is not None:
                source += f" (Amanu: {_difference(facts.other_prices, facts)})"
        end = retirement(model_id)
        day = (listed.retires if listed is not None else None) or (end.day if end is not None else None)
        fields = {
            "model_id": model_id,
            "name": facts.name or model,
            "facts_from": source,
            "retires": day,
            "successor": None if end is None else f"{model_id.partition(':')[0]}:{end.successor}",
        }
        return with_choices(facts.model_copy(update=fields))

    def models(self, vendor: str, *, listed: bool = True) -> list[ModelInfo]:
        """The facts about the models that `ids` lists. A long list takes a tenth of a second: call it in a thread."""
        return [self.facts(model_id) for model_id in self.ids(vendor, listed=listed)]

    def ids(self, vendor: str, *, listed: bool = True) -> list[str]:
        """The models of a vendor that can be chosen, as `vendor:model`: the shipped ones, then (with `listed`) the
        others on the vendor's own list that an agent can use."""
        shipped = [info.model_id for info in MODELS if info.model_id.startswith(f"{vendor}:")]
        listing = self._listing(vendor) if listed else _NOTHING
        others = [
            f"{vendor}:{each.id}"
            for each in listing.models.values()
            if each.usable and f"{vendor}:{undated(each.id)}" not in _OFFERED and not _is_twin(each.id, listing)
        ]
        return [*shipped, *others]

    def fresh(self, address: ListingAddress) -> bool:
        """Whether the vendor answered within the last day, and for the same kind of credential. A time in the future
        does not count: the clock was wrong."""
        listing = self._listing(address.vendor)
        return listing.of_plan == address.of_plan and 0 <= self._clock() - listing.fetched_at < FRESH_SECONDS

    def lists(self, vendor: str, model: str) -> bool:
        """Whether the model is on the vendor's own list, however old."""
        listing = self._listing(vendor)
        if vendor == "openrouter":  # `author/model:variant`
            model = model.partition(":")[0]
        names = (model, model.removeprefix("models/"), model.removesuffix("-latest"))
        return any(listing.find(name) is not None for name in names)

    def is_in_plan(self, model_id: str) -> bool:
        """Whether the user's ChatGPT plan includes the model, as far as is known."""
        vendor, _, model = model_id.partition(":")
        listing = self._listing(vendor)
        listed = listing.find(model)
        return not listing.of_plan or (listed is not None and listed.usable)

    @property
    def age(self) -> int:
        """Days since prices were last compared: by this release, or by a price list that was read later."""
        newest = max(self._days(), key=date.fromisoformat)
        return (self._today - date.fromisoformat(newest)).days

    @property
    def _today(self) -> date:
        return datetime.fromtimestamp(self._clock(), UTC).date()

    @property
    def told_age(self) -> str:
        """The days of what is known, in words for the user."""
        names = ("Amanu's table of models", f"{_TITLES[PRICE_LIST]}'s prices")
        days = " · ".join(f"{name}: {day}" for name, day in zip(names, self._days(), strict=False))
        return f"{days}, {self.age} {'day' if self.age == 1 else 'days'} old" if self.age > 0 else days

    how_to_renew = "Update Amanu, or set prices = true under [catalogue] in config.toml"

    @property
    def is_stale(self) -> bool:
        return self.age > STALE_DAYS

    def _days(self) -> Sequence[str]:
        """The day of the shipped table, then of the price list if that is newer."""
        listing = self._listing(PRICE_LIST)
        return (MODELS_DATE, listing.day) if listing.is_newer else (MODELS_DATE,)

    async def refresh(self, addresses: Iterable[ListingAddress], *, force: bool = False) -> dict[str, str | None]:
        """Ask these vendors for their models, all at once; without `force`, only those that did not answer within the
        last day. Returns vendor → None, or a sentence that says what failed; never raises. A vendor that keeps failing
        is logged once."""
        asked = {each.vendor: each for each in addresses if force or not self.fresh(each)}
        failures = await asyncio.gather(*(self._ask(address) for address in asked.values()))
        for vendor, failure in zip(asked, failures, strict=True):
            if failure is None:
                self._failing.discard(vendor)
            elif vendor not in self._failing:
                self._failing.add(vendor)
                log.warning("the models of %s could not be listed: %s", vendor, failure)
        return dict(zip(asked, failures, strict=True))

    # ---------------------------------------------------------------------------------------------------

    async def _ask(self, address: ListingAddress) -> str | None:
        try:
            answer = await request_listing(address)
            await asyncio.to_thread(self._keep, address, answer)
        except (ModelError, AmanuError, ValueError) as error:
            return str(error)
        return None

    def _keep(self, address: ListingAddress, answer: bytes) -> None:
        """Raises `ValueError`, `AmanuError` (storageError)."""
        vendor = address.vendor
        before = self._listing(vendor).models
        models = [_kept(listed, before.get(listed.id)) for listed in read_listing(vendor, answer)]
        content = [listed.model_dump(exclude_none=True) for listed in models]
        kept = {"fetched_at": self._clock(), "models": content, "of_plan": address.of_plan}
        write_private(self._path(vendor), kept)
        self._listing(vendor)  # read here, in the thread

    def _path(self, vendor: str) -> Path:
        return self._folder / f"{vendor}.json"

    def _listing(self, vendor: str) -> _Listing:
        if vendor not in _TITLES:
            return _NOTHING
        try:
            status = self._path(vendor).stat()
        except OSError:
            return _NOTHING
        at = (status.st_mtime_ns, status.st_size, status.st_ino)
        if vendor not in self._read or self._read[vendor][0] != at:
            self._read[vendor] = (at, _read(self._path(vendor)))
        return self._read[vendor][1]

    def _base(self, model_id: str, is_listed: bool) -> "_Base":
        """The facts without the vendor's listing. For a listed model, relatives are sought only in the shipped table,
        so that the time for a long list is linear in its length."""
        shipped = KNOWN.get(model_id) or KNOWN.get(undated(model_id))
        if shipped is not None:
            return _Base(priced_on(shipped, self._today.isoformat()), SHIPPED_FROM, is_shipped=True)
        cautious = model_info(model_id).model_copy(update={"name": ""})
        relative = nearest_relative(model_id, [*KNOWN.values(), *(() if is_listed else self._priced(model_id))])
        if relative is None:
            return _Base(cautious, ASSUMED)
        facts = priced_on(relative, self._today.isoformat()).model_copy(update={"name": ""})
        if version(model_id) < version(relative.model_id):  # windows grew from version to version
            window = min(facts.context_window, cautious.context_window)
            output = min(facts.max_output, cautious.max_output)
            facts = facts.model_copy(update={"context_window": window, "max_output": output})
        return _Base(facts, f"like {relative.model_id}")

    def _public_price(self, vendor: str, model: str, base: "_Base") -> ListedModel | None:
        """The model on the price list, which writes `opus-5.6` for `opus-5-6`; None if it has no price, or if what was
        shipped is newer."""
        if base.is_shipped and not self._listing(PRICE_LIST).is_newer:
            return None
        names = (undated(model), re.sub(r"(?<=\d)-(?=\d)", ".", undated(model)))
        found = (self._listing(PRICE_LIST).find(f"{_MAKERS.get(vendor)}/{name}") for name in names)
        return next((listed for listed in found if listed is not None and listed.priced), None)

    def _priced(self, model_id: str) -> Sequence[ModelInfo]:
        """The models that this model's vendor lists with both window and prices."""
        vendor = model_id.partition(":")[0]
        priced = [listed for listed in self._listing(vendor).models.values() if listed.priced and listed.window]
        return [_overlaid(_Base(model_info(f"{vendor}:{listed.id}"), ASSUMED), listed) for listed in priced]


@dataclass(frozen=True)
class _Base:
    """The facts about a model before its vendor's listing is applied; only a shipped model has a name."""

    facts: ModelInfo
    source: str
    """In words."""
    is_shipped: bool = False

    def takes_prices_of(self, listed: ListedModel) -> bool:
        return listed.priced and (not self.is_shipped or self.facts.input_price is None)


def _overlaid(base: _Base, listed: ListedModel) -> ModelInfo:
    """The base facts with the vendor's listing applied."""
    facts = base.facts
    facts = _in_window(facts, listed.window or facts.context_window, listed.output or facts.max_output)
    fields: dict[str, Any] = {}
    if not base.is_shipped:
        fields["name"] = listed.name or base.facts.name
    if base.takes_prices_of(listed):
        fields |= _prices(listed)
    for name in ("thinking", "images"):
        if getattr(listed, name) is not None:
            fields[name] = getattr(listed, name)
    return facts.model_copy(update=fields)


def _in_window(facts: ModelInfo, window: int, output: int) -> ModelInfo:
    """`window`, `output`: tokens. A reply as long as the window gets a quarter of it."""
    return facts.model_copy(update={"context_window": window, "max_output": output if output < window else window // 4})


def _prices(listed: ListedModel) -> dict[str, Any]:
    """The listed prices as fields of `ModelInfo`."""
    search = {} if listed.search_price is None else {"search_price": listed.search_price}
    return {name: getattr(listed, name) for name in (*_PRICES, "long_prompt")} | search


def _narrower(facts: ModelInfo, public: ListedModel) -> ModelInfo | None:
    """The model with the listed window; None if that is not smaller. A larger one is not taken: what lies above may
    cost more."""
    if public.window is None or public.window >= facts.context_window:
        return None
    return _in_window(facts, public.window, facts.max_output)


def _repriced(facts: ModelInfo, public: ListedModel, *, is_shipped: bool) -> ModelInfo:
    """The model at the listed prices. Of a shipped one, what is not listed stays, and its own prices stay beside the
    listed ones if any differs."""
    prices = _prices(public)
    if not is_shipped or facts.input_price is None or facts.output_price is None:
        return facts.model_copy(update=prices)
    prices = {name: value for name, value in prices.items() if value is not None}
    is_changed = any(prices.get(name, getattr(facts, name)) != getattr(facts, name) for name in _PRICES)
    return facts.model_copy(update={**prices, "other_prices": _all_prices(facts) if is_changed else None})


def _all_prices(info: ModelInfo) -> ModelPrices:
    return ModelPrices.model_validate({name.removesuffix("_price"): getattr(info, name) for name in _PRICES})


def _difference(other: ModelPrices, info: ModelInfo) -> str:
    """The other prices as far as they differ from the model's, in words: "$4 / $20"."""
    if (other.input, other.output) != (info.input_price, info.output_price):
        return f"${other.input:g} / ${other.output:g}"
    pairs = (
        ("cache read", other.cache_read, info.cache_read_price),
        ("cache write", other.cache_write, info.cache_write_price),
    )
    return ", ".join(f"{name} ${price:g}" for name, price, listed in pairs if price is not None and price != listed)


def _source(base: _Base, listed: ListedModel | None, vendor: str) -> str:
    """The source of window and prices, in words. `vendor`: the vendor's name and the day it was asked."""
    window = vendor if listed is not None and listed.window is not None else base.source
    prices = base.source
    if listed is not None and base.takes_prices_of(listed):
        prices = vendor
    elif base.facts.input_price is None:
        prices = window  # there are none
    return window if prices == window else f"{window}; price: {prices}"


def _kept(new: ListedModel, old: ListedModel | None) -> ListedModel:
    if old is None:
        return new
    return new.model_copy(update={name: getattr(old, name) for name in _KEPT if getattr(new, name) is None})


def is_shipped(model_id: str) -> bool:
    """Whether `vendor:model` is one that this release knows."""
    return model_id in KNOWN or undated(model_id) in KNOWN


def _is_twin(model: str, listing: _Listing) -> bool:
    """Whether the id is dated and the undated id is listed too."""
    return undated(model) != model and undated(model) in listing.models


def _read(path: Path) -> _Listing:
    """The content of a cache file; an empty listing if it is damaged."""
    try:
        cached = _Cached.model_validate(read_private(path))
    except (AmanuError, ValidationError, RecursionError) as error:
        log.warning("%s is damaged and is ignored until it is rewritten: %s", path, type(error).__name__)
        return _NOTHING
    models = {listed.id: listed for listed in cached.models}
    newest_last = {undated(name): listed for name, listed in sorted(models.items())}
    return _Listing(cached.fetched_at, models, newest_last, cached.of_plan)
