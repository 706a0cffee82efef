"""What vendors say of their models, read entry by entry."""

import json
from typing import Any

import pytest

from amanu.models.listing import MAX_MODELS, ListedModel, read_listing


def check(vendor: str, entries: list[Any], expected: list[ListedModel]) -> None:
    field = "models" if vendor in ("gemini", "chatgpt") else "data"
    assert read_listing("openai" if vendor == "chatgpt" else vendor, json.dumps({field: entries}).encode()) == expected


def openrouter(**fields: Any) -> dict[str, Any]:
    return {"id": "a/b", "context_length": 100_000, **fields}


def routed(**fields: Any) -> ListedModel:
    return ListedModel.model_validate({"id": "a/b", "window": 100_000, **fields})


@pytest.mark.parametrize(
    ("vendor", "entry", "expected"),
    [
        (
            "anthropic",
            {
                "type": "model",
                "id": "claude-opus-5-6",
                "display_name": "Claude Opus 5.6",
                "max_input_tokens": 1_000_000,
                "max_tokens": 128_000,
                "lifecycle": "active",
                "retires_at": "2027-11-30T00:00:00Z",
            },
            ListedModel(
                id="claude-opus-5-6", name="Claude Opus 5.6", window=1_000_000, output=128_000, retires="2027-11-30"
            ),
        ),
        ("anthropic", {"id": "claude-opus-5-6"}, ListedModel(id="claude-opus-5-6")),
        ("openai", {"id": "gpt-6.3-sol", "object": "model"}, ListedModel(id="gpt-6.3-sol")),
        ("openai", {"id": "gpt-5", "shutdown_date": "2026-12-11"}, ListedModel(id="gpt-5", retires="2026-12-11")),
        ("openai", {"id": "gpt-6-sol", "shutdown_date": None}, ListedModel(id="gpt-6-sol")),
        ("openai", {"id": "gpt-6-sol", "shutdown_date": "soon"}, ListedModel(id="gpt-6-sol")),
        ("anthropic", {"id": "claude-2", "lifecycle": "retired"}, ListedModel(id="claude-2", usable=False)),
        ("anthropic", {"id": "claude-3", "lifecycle": "deprecated"}, ListedModel(id="claude-3")),
        ("anthropic", {"id": "claude-3", "lifecycle": 7}, ListedModel(id="claude-3")),
        ("chatgpt", {"slug": "gpt-6.3-sol", "visibility": "list"}, ListedModel(id="gpt-6.3-sol")),
        ("chatgpt", {"slug": "gpt-6.3-sol", "visibility": "hide"}, ListedModel(id="gpt-6.3-sol", usable=False)),
        (
            "chatgpt",
            {"slug": "gpt-6.3-sol", "supported_in_api": False},
            ListedModel(id="gpt-6.3-sol", usable=False),
        ),
        (
            "gemini",
            {
                "name": "models/gemini-3.9-flash",
                "displayName": "Gemini 3.9 Flash",
                "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            },
            ListedModel(id="gemini-3.9-flash", name="Gemini 3.9 Flash", window=1_048_576, output=65_536),
        ),
        (
            "openrouter",
            openrouter(
                name="A: B",
                top_provider={"context_length": 90_000, "max_completion_tokens": 9_000},
                pricing={
                    "prompt": "0.000003",
                    "completion": "0.000015",
                    "input_cache_read": "0.0000003",
                    "input_cache_write": "0.00000375",
                },
                architecture={"input_modalities": ["text", "image"], "output_modalities": ["text"]},
                supported_parameters=["tools", "reasoning"],
            ),
            ListedModel(
                id="a/b",
                name="A: B",
                window=90_000,
                output=9_000,
                input_price=3,
                output_price=15,
                cache_read_price=0.3,
                cache_write_price=3.75,
                thinking=True,
                images=True,
            ),
        ),
        ("openrouter", openrouter(pricing={"prompt": "0", "completion": "0"}), routed(input_price=0, output_price=0)),
        ("openrouter", openrouter(supported_parameters=["reasoning"]), routed(thinking=True, usable=False)),
        ("openrouter", openrouter(architecture={"output_modalities": ["image"]}), routed(usable=False)),
        ("openrouter", openrouter(architecture={"input_modalities": ["text"]}), routed(images=False)),
    ],
)
def test_what_is_said(vendor: str, entry: dict[str, Any], expected: ListedModel) -> None:
    check(vendor, [entry], [expected])


TWO = {"prompt": "0.000002", "completion": "0.00001"}
AT_TWO = {"input_price": 2.0, "output_price": 10.0}
PRICINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"web_search": "0.01"}, {"search_price": 0.01}),
    ({"web_search": "0"}, {}),
    ({"web_search": "dear"}, {}),
    (
        {"overrides": [{"min_prompt_tokens": 272_000, "prompt": "0.000004", "completion": "0.000015"}]},
        {"long_prompt": {"above": 272_000, "input": 2, "output": 1.5}},
    ),
    (
        {"overrides": [{"min_prompt_tokens": 200_000, "completion": "0.00003"}]},
        {"long_prompt": {"above": 200_000, "input": 1, "output": 3}},
    ),
    # Of several the first threshold and the dearest prices, so that no cost is too low.
    (
        {
            "overrides": [
                {"min_prompt_tokens": 256_000, "prompt": "0.000006"},
                {"min_prompt_tokens": 128_000, "prompt": "0.000003"},
            ]
        },
        {"long_prompt": {"above": 128_000, "input": 3, "output": 1}},
    ),
    ({"overrides": [{"utc_start": 1_200, "prompt": "0.000001"}]}, {}),  # of some hours
    ({"overrides": [7, {"min_prompt_tokens": "many"}]}, {}),
    ({"overrides": None}, {}),
]


@pytest.mark.parametrize(("pricing", "expected"), PRICINGS)
def test_prices_of_long_prompts_and_searches(pricing: dict[str, Any], expected: dict[str, Any]) -> None:
    check("openrouter", [openrouter(pricing={**TWO, **pricing})], [routed(**AT_TWO, **expected)])


def test_the_last_day_of_a_model_of_openrouter() -> None:
    check("openrouter", [openrouter(expiration_date="2026-12-31")], [routed(retires="2026-12-31")])


@pytest.mark.parametrize("value", [-1, 0, 999, 20_000_001, 1e300, "many", "100000", True, None, [], {}])
def test_a_window_that_cannot_be_is_left_away(value: object) -> None:
    check("openrouter", [{"id": "a/b", "context_length": value}], [ListedModel(id="a/b")])


@pytest.mark.parametrize(
    "value", ["-1", "-0.000001", "0.01", "1e400", "NaN", "Infinity", "", "free", True, None, [], {}]
)
def test_a_price_that_cannot_be_is_left_away(value: object) -> None:
    entry = openrouter(pricing={"prompt": value, "completion": "0.000001"})
    check("openrouter", [entry], [routed(output_price=1)])


@pytest.mark.parametrize(
    "entry",
    [
        openrouter(name=7),
        openrouter(name="  "),
        openrouter(top_provider=None),
        openrouter(top_provider=[1], pricing="cheap", architecture=7, supported_parameters="tools"),
        openrouter(architecture={"input_modalities": "image"}),
    ],
)
def test_a_field_that_is_something_else_is_left_away(entry: dict[str, Any]) -> None:
    check("openrouter", [entry], [routed()])


@pytest.mark.parametrize(
    ("vendor", "entry"),
    [
        ("anthropic", 7),
        ("anthropic", None),
        ("anthropic", []),
        ("anthropic", {}),
        ("anthropic", {"id": ""}),
        ("anthropic", {"id": 7}),
        ("anthropic", {"id": "two words"}),
        ("anthropic", {"id": "line\nend"}),
        ("anthropic", {"id": "\x1b[31mred"}),
        ("anthropic", {"id": "a" * 201}),
        ("gemini", {"name": "models/", "supportedGenerationMethods": ["generateContent"]}),
    ],
)
def test_an_entry_that_is_no_model_of_use_is_left_out_alone(vendor: str, entry: Any) -> None:
    good: dict[str, Any] = {"id": "gpt-6.3-sol"}
    if vendor == "gemini":
        good = {"name": "models/gpt-6.3-sol", "supportedGenerationMethods": ["generateContent"]}
    check(vendor, [entry, good, entry, good], [ListedModel(id="gpt-6.3-sol")])


@pytest.mark.parametrize(
    ("vendor", "entry", "name"),
    [
        ("openai", {"id": "text-embedding-3-large"}, "text-embedding-3-large"),
        ("openai", {"id": "gpt-audio"}, "gpt-audio"),
        ("openai", {"id": "gpt-4o-realtime"}, "gpt-4o-realtime"),
        ("openai", {"id": "gpt-5-search-api"}, "gpt-5-search-api"),
        ("openai", {"id": "ft:gpt-4.1:shop"}, "ft:gpt-4.1:shop"),
        (
            "gemini",
            {"name": "models/gemini-embedding-2", "supportedGenerationMethods": ["embedContent"]},
            "gemini-embedding-2",
        ),
        (
            "gemini",
            {"name": "models/gemini-3-image", "supportedGenerationMethods": ["generateContent"]},
            "gemini-3-image",
        ),
        ("gemini", {"name": "models/gemini-3.9-flash"}, "gemini-3.9-flash"),
    ],
)
def test_a_model_that_is_not_offered_is_known_to_exist(vendor: str, entry: Any, name: str) -> None:
    check(vendor, [entry], [ListedModel(id=name, usable=False)])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "not JSON"),
        (b"<html>a gateway</html>", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a list of models"),
        (b"null", "not a list of models"),
        (b'{"data": {"a": 1}}', "not a list of models"),
        (b'{"models": []}', "not a list of models"),
        (b'{"data": []}', "no models that Amanu can use"),
        (b'{"data": [1, {}, {"id": ""}]}', "no models that Amanu can use"),
        (json.dumps({"data": [{"id": "a"}] * (MAX_MODELS + 1)}).encode(), "more than 5,000 models"),
    ],
)
def test_what_is_no_answer(answer: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        read_listing("anthropic", answer)
    assert str(caught.value).endswith(".")
