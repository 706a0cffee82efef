"""The vendors' lists of models, parsed into one common form.

Each entry is validated on its own: a malformed entry is dropped, and an implausible number becomes None.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from amanu_protocol.items import LongPrompt

MAX_MODELS = 5_000
"""Entries of one answer. OpenRouter, which lists the most, has some 450."""
WINDOWS = (1_000, 20_000_000)
"""Tokens a window may have; today's are between 4,000 and 10 million."""
MAX_PRICE = 1_000.0
"""US dollars per million tokens; the dearest model there was cost 600."""

T = TypeVar("T")


def _or_none(check: Callable[[Any], T | None]) -> BeforeValidator:
    """The result of `check`; None if it raises."""

    def checked(value: Any) -> T | None:
        try:
            return check(value)
        except (ValueError, TypeError, OverflowError):
            return None

    return BeforeValidator(checked)


def _count(least: int) -> Callable[[Any], int | None]:
    def count(value: Any) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return int(value) if least <= value <= WINDOWS[1] else None

    return count


def _price(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= MAX_PRICE else None


def _per_token(value: Any) -> float | None:
    """From OpenRouter's price: US dollars per token, as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return _price(round(float(value) * 1_000_000, 6))


def _day(value: Any) -> str | None:
    """The date part of an ISO date or time."""
    return date.fromisoformat(value[:10]).isoformat() if isinstance(value, str) else None


def _title(value: Any) -> str | None:
    return " ".join(value.split())[:100] or None if isinstance(value, str) else None


def _names(value: Any) -> frozenset[str] | None:
    if not isinstance(value, list):
        return None
    return frozenset(each for each in cast("list[Any]", value) if isinstance(each, str))


def _object(value: Any) -> Any:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _objects(value: Any) -> Any:
    return [each for each in cast("list[Any]", value) if isinstance(each, dict)] if isinstance(value, list) else []


def _fee(value: Any) -> float | None:
    """US dollars, as text."""
    return _price(float(value)) if isinstance(value, str | float | int) and not isinstance(value, bool) else None


Id = Annotated[str, Field(pattern=r"^[!-~]{1,200}$")]
Title = Annotated[str | None, _or_none(_title)]
Window = Annotated[int | None, _or_none(_count(WINDOWS[0]))]
Output = Annotated[int | None, _or_none(_count(1))]
Price = Annotated[float | None, _or_none(_price)]
TokenPrice = Annotated[float | None, _or_none(_per_token)]
Fee = Annotated[float | None, _or_none(_fee)]
Day = Annotated[str | None, _or_none(_day)]
Names = Annotated[frozenset[str] | None, _or_none(_names)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)  # used once a day


class ListedModel(_Entry):
    """A model as its vendor describes it. None: missing, or implausible."""

    id: Id
    """Without the vendor's name."""
    name: Title = None
    window: Window = None
    """Tokens."""
    output: Output = None
    """Tokens, at most."""
    input_price: Price = None
    """US dollars per million tokens, as are the others."""
    output_price: Price = None
    cache_read_price: Price = None
    cache_write_price: Price = None
    search_price: Price = None
    """US dollars for one search of the web."""
    long_prompt: LongPrompt | None = None
    thinking: bool | None = None
    images: bool | None = None
    retires: Day = None
    """ISO date."""
    usable: bool = True
    """As far as the vendor says, it writes text and calls tools; other models are not offered."""

    @property
    def priced(self) -> bool:
        return self.input_price is not None and self.output_price is not None


class _Anthropic(_Entry):
    id: Id
    display_name: Title = None
    max_input_tokens: Window = None
    max_tokens: Output = None
    retires_at: Day = None
    lifecycle: Any = None

    def listed(self) -> ListedModel | None:
        """A retired model stays on the list."""
        return ListedModel(
            id=self.id,
            name=self.display_name,
            window=self.max_input_tokens,
            output=self.max_tokens,
            retires=self.retires_at,
            usable=self.lifecycle != "retired",
        )


class _OpenAI(_Entry):
    id: Id
    shutdown_date: Day = None

    def listed(self) -> ListedModel | None:
        """OpenAI lists ids and last days only, including those of embedding and voice models."""
        usable = _CHATS.match(self.id) is not None and _DOES_NOT_CHAT.search(self.id) is None
        return ListedModel(id=self.id, usable=usable, retires=self.shutdown_date)


_CHATS = re.compile(r"gpt-\d|o\d")
_DOES_NOT_CHAT = re.compile(r"audio|realtime|live|image|transcribe|tts|search|instruct|deep-research|chat-latest|voice")


class _ChatGPT(_Entry):
    """A model that a ChatGPT plan includes (developers.openai.com/siwc)."""

    slug: Id
    visibility: str = "list"
    supported_in_api: bool = True

    def listed(self) -> ListedModel | None:
        return ListedModel(id=self.slug, usable=self.visibility == "list" and self.supported_in_api)


class _Gemini(_Entry):
    name: Id
    """`models/gemini-…`."""
    display_name: Title = Field(default=None, alias="displayName")
    window: Window = Field(default=None, alias="inputTokenLimit")
    output: Output = Field(default=None, alias="outputTokenLimit")
    methods: Names = Field(default=None, alias="supportedGenerationMethods")

    def listed(self) -> ListedModel | None:
        model = self.name.removeprefix("models/")
        if not model:
            return None
        usable = "generateContent" in (self.methods or ()) and _NO_GEMINI_CHAT.search(model) is None
        return ListedModel(id=model, name=self.display_name, window=self.window, output=self.output, usable=usable)


_NO_GEMINI_CHAT = re.compile(r"image|tts|audio|live|embedding|robotics|computer-use")


class _Override(_Entry):
    """Prices of a long prompt, or of some hours of the day."""

    min_prompt_tokens: Output = None
    prompt: TokenPrice = None
    completion: TokenPrice = None


class _Prices(_Entry):
    prompt: TokenPrice = None
    completion: TokenPrice = None
    input_cache_read: TokenPrice = None
    input_cache_write: TokenPrice = None
    web_search: Fee = None
    overrides: Annotated[list[_Override], BeforeValidator(_objects)] = []

    @property
    def long_prompt(self) -> LongPrompt | None:
        """The first of several thresholds, with the dearest prices: a cost is never too low."""
        tiers = [tier for tier in self.overrides if tier.min_prompt_tokens is not None]
        if not tiers or not self.prompt or not self.completion:
            return None
        inputs = [tier.prompt for tier in tiers if tier.prompt is not None]
        outputs = [tier.completion for tier in tiers if tier.completion is not None]
        return LongPrompt(
            above=min(tier.min_prompt_tokens or 0 for tier in tiers),
            input=round(max([self.prompt, *inputs]) / self.prompt, 6),
            output=round(max([self.completion, *outputs]) / self.completion, 6),
        )


class _TopProvider(_Entry):
    context_length: Window = None
    max_completion_tokens: Output = None


class _Architecture(_Entry):
    input_modalities: Names = None
    output_modalities: Names = None


class _OpenRouter(_Entry):
    id: Id
    name: Title = None
    context_length: Window = None
    top_provider: Annotated[_TopProvider, BeforeValidator(_object)] = _TopProvider()
    pricing: Annotated[_Prices, BeforeValidator(_object)] = _Prices()
    architecture: Annotated[_Architecture, BeforeValidator(_object)] = _Architecture()
    supported_parameters: Names = None
    expiration_date: Day = None

    def listed(self) -> ListedModel | None:
        inputs, outputs = self.architecture.input_modalities, self.architecture.output_modalities
        parameters = self.supported_parameters
        windows = [size for size in (self.context_length, self.top_provider.context_length) if size is not None]
        return ListedModel(
            id=self.id,
            name=self.name,
            window=min(windows, default=None),
            output=self.top_provider.max_completion_tokens,
            input_price=self.pricing.prompt,
            output_price=self.pricing.completion,
            cache_read_price=self.pricing.input_cache_read,
            cache_write_price=self.pricing.input_cache_write,
            search_price=self.pricing.web_search or None,
            long_prompt=self.pricing.long_prompt,
            retires=self.expiration_date,
            thinking=None if parameters is None else "reasoning" in parameters,
            images=None if inputs is None else "image" in inputs,
            usable=(parameters is None or "tools" in parameters) and (outputs is None or "text" in outputs),
        )


_Wire = _Anthropic | _OpenAI | _ChatGPT | _Gemini | _OpenRouter
_FORMS: Mapping[str, Mapping[str, type[_Wire]]] = {
    "anthropic": {"data": _Anthropic},
    "openai": {"data": _OpenAI, "models": _ChatGPT},
    "gemini": {"models": _Gemini},
    "openrouter": {"data": _OpenRouter},
}
"""Vendor → the field that holds the list → the form of its entries."""


def read_listing(vendor: str, answer: bytes) -> list[ListedModel]:
    """The models of an answer, each id once. Raises `ValueError` with a sentence if the answer is not a list of models,
    is too long, or has no valid entry."""
    try:
        whole: Any = json.loads(answer)
    except (ValueError, RecursionError):
        raise ValueError("The answer is not JSON.") from None
    forms = _FORMS[vendor]
    field = next((name for name in forms if isinstance(_object(whole).get(name), list)), None)
    if field is None:
        raise ValueError("The answer is not a list of models.")
    entries, form = _object(whole)[field], forms[field]
    if len(cast("list[Any]", entries)) > MAX_MODELS:
        raise ValueError(f"The answer lists more than {MAX_MODELS:,} models.")
    models: dict[str, ListedModel] = {}
    for entry in cast("list[Any]", entries):
        try:
            listed = form.model_validate(entry).listed()
        except ValidationError:
            continue
        if listed is not None:
            models.setdefault(listed.id, listed)
    if not models:
        raise ValueError("The answer lists no models that Amanu can use.")
    return list(models.values())
