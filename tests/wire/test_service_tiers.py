"""Service tiers and fields of the user's own: what is sent, what is refused, what it costs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from amanu.agent.loop import run_turn
from amanu.agent.usage import price
from amanu.core.conversation import Conversation, User
from amanu.core.model import Request, TokenUsage
from amanu.core.model_families import MODELS, model_info
from amanu.core.service_tiers import at_tier, offers
from amanu.core.wire_fields import OWN_FIELDS, refusal
from amanu.models.request_fields import ExtendedModel, fields_for
from amanu.models.retry import RetryPolicy
from amanu_protocol.events import ItemCompleted, SessionChanged
from amanu_protocol.items import ModelInfo, Notice, ServiceTier
from support.loop_harness import LoopHarness
from support.strict_services.http import Fault, Received, Say, Service, Step
from support.vendor_sweeps import over_vendors
from support.vendors import TOOLS, VENDORS, Vendor, answer, request, running

FIELDS = ("speed", "service_tier", "serviceTier")
TIERS: Sequence[ServiceTier] = ("standard", "fast", "flex")
BY_VENDOR = {
    vendor.model_id.partition(":")[0]: vendor
    for vendor in VENDORS
    if vendor.name in ("anthropic", "gemini", "openai", "openrouter")
}
OTHERS = (
    "anthropic:claude-mythos-5-2",
    "openai:gpt-5-mini",
    "openai:gpt-5-nano",
    "openai:gpt-5.4-pro",
    "openai:gpt-5.6-sol-2026-07-01",
    "openai:gpt-7-sol",
    "openrouter:openai/gpt-5.5",
    "openrouter:openai/gpt-6.1-sol",
    "openrouter:openai/gpt-4.1",
    "openrouter:google/gemini-3.8-flash",
    "openrouter:anthropic/claude-opus-5.5",
    "gemini:gemini-2.0-flash",
)
EVERY = [model_info(model_id) for model_id in (*(info.model_id for info in MODELS), *OTHERS)]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)
    yield


def asked(received: Received) -> str | None:
    """The tier that a request names."""
    return next((received.json[name] for name in FIELDS if name in received.json), None)


# What is sent, and what it costs ---------------------------------------------------------------------------


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.model_id)
async def test_a_tier_is_named_only_to_a_model_that_has_it(model: ModelInfo) -> None:
    vendor = BY_VENDOR[model.model_id.partition(":")[0]]
    async with running(vendor, [Say(text="Fine.")] * len(TIERS)) as (service, client):
        for tier in TIERS:
            own = Request(model, "You help.", TOOLS, Conversation([User(text="Hello.")]), "s1", service_tier=tier)
            used = (await answer(client, own)).usage
            offer = offers(model.model_id).get(tier)
            assert asked(service.requests[-1]) == (None if offer is None else offer.word)
            assert used.service_tier == ("standard" if offer is None else tier)
    assert set(model.service_tiers) == set(offers(model.model_id))


@over_vendors()
async def test_a_service_tier_changes_no_other_byte(vendor: Vendor) -> None:
    conversation = Conversation([User(text="Hello.")])
    async with running(vendor, [Say(text="Fine.")] * 3) as (service, model):
        for tier in TIERS:
            await answer(model, request(vendor, conversation=conversation, service_tier=tier))
        if "http" in vendor.lacks:
            return
        plain, *others = service.requests
        for received in others:
            body = {name: value for name, value in received.json.items() if name not in FIELDS}
            assert json.dumps(body) == json.dumps(plain.json)


@dataclass(frozen=True)
class Served:
    model_id: str
    asked: ServiceTier
    said: str
    """The tier that the reply names; "": the one asked for."""
    factor: float
    """A multiple of the usual price."""


USED = TokenUsage(input=1_000, output=500, cache_read=200)
SERVED = {
    "Opus 5.5": Served("anthropic:claude-opus-5-5", "fast", "", 2),
    "Opus 5.5 at the usual speed": Served("anthropic:claude-opus-5-5", "fast", "standard", 1),
    "GPT-6.1": Served("openai:gpt-6.1-sol", "fast", "", 2),
    "GPT-5.5": Served("openai:gpt-5.5", "fast", "", 2.5),
    "GPT-5.5, no room": Served("openai:gpt-5.5", "fast", "default", 1),
    "GPT-5.6, as the project is set": Served("openai:gpt-5.6-sol", "standard", "priority", 2),
    "flex": Served("openai:gpt-5.4", "flex", "", 0.5),
    "flex at the usual price": Served("openai:gpt-5.4", "flex", "default", 1),
    "Gemini": Served("gemini:gemini-4-argon", "fast", "", 1.8),
    "Gemini, no room": Served("gemini:gemini-4-argon", "fast", "standard", 1),
    "Gemini flex": Served("gemini:gemini-3.8-flash", "flex", "", 0.5),
    "OpenRouter": Served("openrouter:openai/gpt-5.5", "fast", "", 2.5),
    "OpenRouter, no room": Served("openrouter:openai/gpt-5.5", "flex", "default", 1),
}


@pytest.mark.parametrize("case", SERVED.values(), ids=SERVED)
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
async def test_the_price_is_that_of_the_tier_that_the_reply_names(case: Served, whole: bool) -> None:
    vendor = replace(BY_VENDOR[case.model_id.partition(":")[0]], model_id=case.model_id)
    say = Say(text="Fine.", usage={"input": 1_000, "output": 500, "cache_read": 200}, tier=case.said)
    async with running(vendor, [say]) as (_, model):
        used = (await answer(model, request(vendor, service_tier=case.asked, whole=whole))).usage
    info = model_info(case.model_id).model_copy(update={"input_price": 2.0, "output_price": 10.0})
    usual = price(info, USED)
    assert usual is not None and price(info, used) == pytest.approx(usual * case.factor)


def test_every_price_changes_by_the_factor() -> None:
    opus = model_info("anthropic:claude-opus-5-5")
    fast = at_tier(opus, "fast")
    assert (fast.input_price, fast.output_price, fast.cache_read_price, fast.cache_write_price) == (8, 40, 0.4, 10)
    hour = TokenUsage(cache_write=1_000_000, cache_write_hour=1_000_000, service_tier="fast")
    assert price(opus, hour) == pytest.approx(16)
    assert at_tier(opus, "flex") == opus


# A refusal --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refused:
    model_id: str
    tier: ServiceTier
    fault: Fault
    again: Sequence[str | None]
    """The tiers of the requests after the refused one, in two turns."""
    off: bool = False
    """The tier is off for the rest of the session."""


def status(code: int, message: str, **headers: str) -> Fault:
    return Fault("status", status=code, message=message, headers=headers)


NOT_OF_OPUS = "'claude-opus-5-5' does not support the `speed` parameter."
REFUSED = {
    "unsupported": Refused("anthropic:claude-opus-5-5", "fast", status(400, NOT_OF_OPUS), [None, None], off=True),
    "unknown field": Refused(
        "anthropic:claude-fable-5-2",
        "fast",
        status(400, "speed: Extra inputs are not permitted"),
        [None, None],
        off=True,
    ),
    "not for the account": Refused(
        "anthropic:claude-opus-5",
        "fast",
        status(403, "Fast mode is not enabled for your organization"),
        [None] * 2,
        True,
    ),
    "no fast capacity": Refused(
        "anthropic:claude-opus-5-5",
        "fast",
        status(429, "Fast mode rate limit", **{"retry-after": "30"}),
        [None, "fast"],
    ),
    "no fast capacity for an hour": Refused(
        "anthropic:claude-opus-5-5", "fast", status(429, "Slow down", **{"retry-after": "3600"}), [None, "fast"]
    ),
    "GPT": Refused("openai:gpt-6.1-sol", "fast", status(400, "Invalid service_tier argument"), [None, None], True),
    "GPT, busy": Refused("openai:gpt-6.1-sol", "fast", status(429, "Rate limit reached"), [None, "priority"]),
    "Gemini": Refused(
        "gemini:gemini-4-argon", "flex", status(400, "Flex API is not supported for model"), [None, None], True
    ),
    "OpenRouter": Refused(
        "openrouter:openai/gpt-5.5", "flex", status(400, "service_tier: Invalid option"), [None, None], True
    ),
    "flex waits for room": Refused("openai:gpt-5.4", "flex", status(429, "Resource Unavailable"), ["flex", "flex"]),
    "Gemini flex waits for room": Refused("gemini:gemini-3.8-flash", "flex", status(503, "Overloaded"), ["flex"] * 2),
}


def harness_of(vendor: Vendor, model: Any, tier: ServiceTier) -> LoopHarness:
    harness = LoopHarness((), info=model_info(vendor.model_id))
    harness.turn.candidate = replace(harness.turn.candidate, model=model)
    harness.turn.service_tier = tier
    return harness


def said(harness: LoopHarness) -> list[str]:
    items = [event.item for event in harness.emitted.events if isinstance(event, ItemCompleted)]
    return [item.text for item in items if isinstance(item, Notice) and item.code == "serviceTier"]


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
async def test_a_refused_tier_is_left_out_and_told_once(case: Refused) -> None:
    vendor = replace(BY_VENDOR[case.model_id.partition(":")[0]], model_id=case.model_id)
    script: list[Step] = [case.fault, Say(text="One."), Say(text="Two.")]
    async with running(vendor, script) as (service, model):
        tier = case.tier
        told: list[str] = []
        for _ in range(2):
            harness = harness_of(vendor, model, tier)
            assert (await run_turn(harness.turn)).reason == "completed"
            told += said(harness)
            changes = [event for event in harness.emitted.events if isinstance(event, SessionChanged)]
            tier = changes[-1].service_tier or tier if changes else tier
        assert [asked(received) for received in service.requests[1:]] == list(case.again)
    assert (tier == "standard") == case.off
    assert len(told) == (case.again[0] is None)


async def test_flex_is_asked_for_again_for_long() -> None:
    vendor = replace(BY_VENDOR["openai"], model_id="openai:gpt-5.4")
    busy = [status(429, "Resource Unavailable")] * 12
    async with running(vendor, [*busy, Say(text="At last.")]) as (service, model):
        assert (await run_turn(harness_of(vendor, model, "flex").turn)).reason == "completed"
        assert {asked(received) for received in service.requests} == {"flex"}
        assert len(service.requests) == 13


async def test_an_error_that_is_not_about_the_tier_stays() -> None:
    vendor = BY_VENDOR["anthropic"]
    async with running(vendor, [status(400, "max_tokens: too large")]) as (service, model):
        assert (await run_turn(harness_of(vendor, model, "fast").turn)).reason == "failed"
        assert len(service.requests) == 1


async def test_a_side_query_goes_at_the_usual_speed() -> None:
    vendor = BY_VENDOR["anthropic"]
    async with running(vendor, [Say(text="A title.")]) as (service, model):
        turn = harness_of(vendor, model, "fast").turn
        turn.use_model(turn.candidate)
        await turn.side_query("Be brief.", "How is it?", max_output=100)
        assert asked(service.requests[0]) is None


# Fields of the user's own ----------------------------------------------------------------------------------


def body_of(service: Service) -> dict[str, Any]:
    return service.requests[-1].json


@over_vendors("http")
async def test_no_field_of_a_request_can_be_replaced(vendor: Vendor) -> None:
    async with running(vendor, [Say(text="Fine.")]) as (service, model):
        await answer(model, request(vendor))
        for name, value in body_of(service).items():
            assert refusal({name: value}) is not None


ADDED = {
    "OpenRouter": (
        "openrouter:openai/gpt-5.5",
        {"provider": {"order": ["azure"], "allow_fallbacks": False}, "top_k": 4},
    ),
    "OpenAI": ("openai:gpt-6.2-sol", {"truncation": "disabled", "metadata": {"team": "a"}}),
    "Claude": ("anthropic:claude-opus-5-5", {"metadata": {"user_id": "u"}, "inference_geo": "us"}),
    "Gemini": ("gemini:gemini-4-argon", {"generationConfig": {"topK": 3, "seed": 1}, "labels": {"a": "b"}}),
}


@pytest.mark.parametrize(("model_id", "fields"), ADDED.values(), ids=ADDED)
async def test_fields_are_added_to_every_request(model_id: str, fields: dict[str, Any]) -> None:
    vendor = replace(BY_VENDOR[model_id.partition(":")[0]], model_id=model_id)
    assert refusal(fields) is None
    async with running(vendor, [Say(text="Fine.")] * 2) as (service, model):
        await answer(model, request(vendor))
        plain = body_of(service)
        await answer(ExtendedModel(model, fields), request(vendor))
        for name, value in fields.items():
            merged = {**value, **plain[name]} if name in plain else value
            assert body_of(service)[name] == merged
        assert {name: value for name, value in body_of(service).items() if name not in fields} == {
            name: value for name, value in plain.items() if name not in fields
        }


PATTERNS = {
    "openrouter:openai/gpt-5.5": {"a": 2, "b": 1},
    "openrouter:x": {"a": 1, "b": 1},
    "openai:gpt-5.5": {},
}


@pytest.mark.parametrize(("model_id", "fields"), PATTERNS.items(), ids=PATTERNS)
def test_a_later_pattern_goes_first(model_id: str, fields: dict[str, int]) -> None:
    settings = {"openrouter:*": {"a": 1, "b": 1}, "openrouter:openai/*": {"a": 2}}
    assert fields_for(model_id, settings) == fields


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        *(({name: 1}, name) for name in sorted(OWN_FIELDS)),
        ({"systemInstruction": {}}, "systemInstruction"),
        ({"toolConfig": {}}, "toolConfig"),
        ({"serviceTier": "flex"}, "setting service_tier"),
        ({"service_tier": "flex"}, "setting service_tier"),
        ({"speed": "fast"}, "setting service_tier"),
        ({"generation_config": {"topK": 1}}, "generationConfig"),
        ({"generationConfig": {"maxOutputTokens": 1}}, "generationConfig.maxOutputTokens"),
        ({"generationConfig": {"thinking_config": {}}}, "generationConfig.thinking_config"),
        ({"generationConfig": {"topK": 1}}, None),
        ({"provider": {"order": ["a"]}, "top_k": 1, "models": ["b"]}, None),
    ],
)
def test_fields_that_amanu_sends_are_refused(fields: dict[str, Any], named: str | None) -> None:
    why = refusal(fields)
    assert why is None if named is None else why is not None and named in why
