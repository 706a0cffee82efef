"""Facts of models: which family an id belongs to, what is known of it."""

import pytest

from amanu.core.conversation import Conversation
from amanu.core.model import Request, ToolSpec
from amanu.core.model_families import (
    CLAUDE_4_6,
    CLAUDE_5_5,
    CLAUDE_5_5_MEDIUM,
    CLAUDE_ADAPTIVE,
    CLAUDE_BOUND,
    CLAUDE_BOUND_MEDIUM,
    CLAUDE_BUDGET,
    CLAUDE_PLAIN,
    CLAUDE_ROUTED,
    CLAUDE_TOLD,
    EFFORTS,
    FAMILIES,
    GEMINI_2_5,
    GEMINI_2_5_COMPATIBLE,
    GEMINI_2_5_PRO,
    GEMINI_3,
    GEMINI_3_COMPATIBLE,
    GEMINI_3_FLASH,
    GEMINI_3_PRO,
    GEMINI_4,
    GEMINI_4_XHIGH,
    GEMINI_ROUTED,
    GENERIC,
    GPT_5,
    GPT_5_5,
    GPT_CODEX,
    GPT_FREE_OF_THOUGHT,
    GPT_FREEFORM,
    GPT_PLAIN,
    GPT_PLAIN_ROUTED,
    GPT_REASONING,
    GPT_ROUTED,
    KNOWN,
    MAX_TOOLS,
    MODELS,
    SCRIPTED,
    THINKS_IN_TEXT,
    TOOL_NAME,
    UNOFFERED,
    ModelFamily,
    family,
    model_info,
)

IDS = {
    "anthropic:claude-opus-5-5": CLAUDE_5_5_MEDIUM,
    "anthropic:claude-sonnet-5-5": CLAUDE_5_5,
    "anthropic:claude-haiku-5-5": CLAUDE_BOUND_MEDIUM,
    "anthropic:claude-fable-5-1": CLAUDE_5_5,
    "anthropic:claude-mythos-5-2": CLAUDE_BOUND,
    "anthropic:claude-opus-7": CLAUDE_BOUND,
    "anthropic:claude-opus-5": CLAUDE_TOLD,
    "anthropic:claude-sonnet-5-20260601": CLAUDE_ADAPTIVE,
    "anthropic:claude-fable-5": CLAUDE_TOLD,
    "anthropic:claude-opus-4-8": CLAUDE_TOLD,
    "anthropic:claude-opus-4-7": CLAUDE_ADAPTIVE,
    "anthropic:claude-sonnet-5": CLAUDE_ADAPTIVE,
    "anthropic:claude-sonnet-4-6": CLAUDE_4_6,
    "anthropic:claude-opus-4-5-20251101": CLAUDE_BUDGET,
    "anthropic:claude-haiku-4-5": CLAUDE_BUDGET,
    "anthropic:claude-sonnet-4-20250514": CLAUDE_BUDGET,
    "anthropic:claude-opus-4-1-20250805": CLAUDE_BUDGET,
    "anthropic:claude-3-7-sonnet-latest": CLAUDE_BUDGET,
    "anthropic:claude-3-5-haiku-latest": CLAUDE_PLAIN,
    "anthropic:claude-3-opus-20240229": CLAUDE_PLAIN,
    "gemini:gemini-2.5-pro": GEMINI_2_5_PRO,
    "gemini:gemini-2.5-flash": GEMINI_2_5,
    "gemini:gemini-2.5-flash-lite": GEMINI_2_5,
    "gemini:gemini-3.8-flash": GEMINI_3,
    "gemini:gemini-3.1-pro-preview": GEMINI_3_PRO,
    "gemini:gemini-4-argon": GEMINI_4,
    "gemini:gemini-4-hydrogen": GEMINI_4_XHIGH,
    "gemini:gemini-4-neon": GEMINI_4_XHIGH,
    "gemini:gemini-3.5-flash": GEMINI_3_FLASH,
    "gemini:gemini-3.1-flash-lite": GEMINI_3_FLASH,
    "gemini:gemini-3-flash-preview": GEMINI_3_FLASH,
    "gemini:gemini-flash-latest": GEMINI_3,
    "gemini:gemini-pro-latest": GEMINI_3_PRO,
    "google-openai:models/gemini-flash-lite-latest": GEMINI_3_COMPATIBLE,
    "google-openai:models/gemini-2.5-pro": GEMINI_2_5_COMPATIBLE,
    "google-openai:gemini-3-pro": GEMINI_3_COMPATIBLE,
    "openai:gpt-4.1": GPT_PLAIN,
    "openai:o3": GPT_REASONING,
    "openai:gpt-6.2-sol": GPT_FREEFORM,
    "openai:gpt-7": GPT_FREEFORM,
    "openai:gpt-6.1-terra": GPT_FREE_OF_THOUGHT,
    "openai:gpt-5.6-luna": GPT_FREE_OF_THOUGHT,
    "openai:gpt-5.4-mini": GPT_5_5,
    "openai:gpt-5.3-codex": GPT_CODEX,
    "openai:gpt-5.1": GPT_5,
    "openai:gpt-5-mini": GPT_5,
    "openai:o4-mini": GPT_REASONING,
    "openrouter:openai/gpt-6.2-sol": GPT_ROUTED,
    "openrouter:anthropic/claude-opus-5.5": CLAUDE_ROUTED,
    "openrouter:google/gemini-4-argon": GEMINI_ROUTED,
    "azure:gpt-6.2-sol": GPT_FREEFORM,
    "azure:gpt-4.1": GPT_PLAIN,
    "openrouter:openai/gpt-4o": GPT_PLAIN_ROUTED,
    "bedrock:anthropic.claude-opus-5-5": CLAUDE_5_5_MEDIUM,
    "bedrock:us.anthropic.claude-opus-4-5-20251101-v1:0": CLAUDE_BUDGET,
    "bedrock:meta.llama4": GENERIC,
    "vertex:claude-opus-4-5@20251101": CLAUDE_BUDGET,
    "vertex:claude-sonnet-5@default": CLAUDE_ADAPTIVE,
    "vertex:gemini-3.5-flash": GEMINI_3_FLASH,
    "foundry:claude-sonnet-5": CLAUDE_ADAPTIVE,
    "openrouter:deepseek/deepseek-v4-pro": THINKS_IN_TEXT,
    "deepseek:deepseek-v4-flash": THINKS_IN_TEXT,
    "moonshot:kimi-k2.7-code": THINKS_IN_TEXT,
    "openrouter:moonshotai/kimi-k3": THINKS_IN_TEXT,
    "zai:glm-5.3": THINKS_IN_TEXT,
    "ollama:deepseek-r1:8b": THINKS_IN_TEXT,
    "openrouter:meta-llama/llama-4": GENERIC,
    "ollama:qwen3:8b": GENERIC,
    "mine:whatever": GENERIC,
    "scripted:demo": SCRIPTED,
}


@pytest.mark.parametrize(("model_id", "expected"), IDS.items())
def test_family(model_id: str, expected: ModelFamily) -> None:
    assert family(model_id) == expected


@pytest.mark.parametrize(
    ("model_id", "name", "window"),
    [
        ("anthropic:claude-opus-5-5", "Claude Opus 5.5", 1_000_000),
        ("anthropic:claude-opus-4-5-20251101", "Claude Opus 4.5", 200_000),
        ("anthropic:claude-next", "claude-next", 200_000),
        ("google-openai:models/gemini-2.5-pro", "Gemini 2.5 Pro", 1_048_576),
        ("google-openai:gemini-2.5-pro", "Gemini 2.5 Pro", 1_048_576),
        ("ollama:qwen3:8b", "qwen3:8b", 32_768),
    ],
)
def test_known(model_id: str, name: str, window: int) -> None:
    info = model_info(model_id)
    assert (info.model_id, info.name, info.context_window, info.available) == (model_id, name, window, False)


def test_a_model_nobody_knows_has_no_price() -> None:
    assert model_info("anthropic:claude-next").input_price is None


def test_the_list_is_sound() -> None:
    assert len(KNOWN) == len(MODELS) + len(UNOFFERED), "each id is there once"
    for info in KNOWN.values():
        assert info.max_output <= info.context_window
        assert (info.input_price is None) == (info.output_price is None)
        facts = family(info.model_id)
        budgets = [amount for amount in facts.efforts.values() if isinstance(amount, int)]
        assert all(budget < min(info.max_output, facts.max_output) for budget in budgets)


@pytest.mark.parametrize(
    ("model_id", "expected"),
    [
        ("gemini:gemini-2.5-pro", True),
        ("gemini:gemini-3-pro-preview", True),
        ("gemini:gemini-4-argon", True),
        ("google-openai:gemini-3.8-flash", True),
        ("openrouter:google/gemini-3.8-flash", True),
        ("vscode:gemini-3.8-flash", False),  # each question would cost one of the user's requests
        ("anthropic:claude-sonnet-5-5", False),
        ("openai:gpt-6.2-sol", False),
        ("ollama:qwen3", False),  # a question would push the session out of the only slot of its cache
    ],
)
def test_gemini_models_may_stop_midway(model_id: str, expected: bool) -> None:
    assert family(model_id).may_stop_midway == expected


@pytest.mark.parametrize("facts", [facts for _, facts in FAMILIES], ids=[pattern for pattern, _ in FAMILIES])
def test_a_family_that_is_told_how_much_to_think_knows_each_effort(facts: ModelFamily) -> None:
    assert bool(facts.efforts) == (facts.thinking != "none")
    if facts.efforts:
        assert facts.default_effort in facts.efforts
        assert list(facts.efforts) == [effort for effort in EFFORTS if effort in facts.efforts]
        assert {facts.effort_value(effort) for effort in EFFORTS} == set(facts.efforts.values())
    kinds = {type(amount) for amount in facts.efforts.values()}
    assert kinds == {"none": set(), "budget": {int}}.get(facts.thinking, {str})


@pytest.mark.parametrize("name", ["grep", "_x", "mcp_server-tool", "a" * 64])
def test_a_tool_every_service_takes(name: str) -> None:
    assert TOOL_NAME.fullmatch(name)
    ToolSpec(name, "Does.", {"type": "object"})


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("", {"type": "object"}),
        ("1st", {"type": "object"}),
        ("a.b", {"type": "object"}),
        ("a" * 65, {"type": "object"}),
        ("grep", {"type": "string"}),
        ("grep", {"type": "object", "anyOf": []}),
    ],
)
def test_a_tool_some_service_refuses(name: str, schema: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"this tool name|The schema of {name}"):
        ToolSpec(name, "Does.", schema)


def test_more_tools_than_some_service_takes() -> None:
    tools = [ToolSpec(f"t{number}", "Does.", {"type": "object"}) for number in range(MAX_TOOLS + 1)]
    Request(model_info("openai:gpt-6-luna"), "", tools[:-1], Conversation(), "s1")
    with pytest.raises(ValueError, match="128"):
        Request(model_info("openai:gpt-6-luna"), "", tools, Conversation(), "s1")


PRICES = {
    "anthropic:claude-sonnet-5-5": (2, 10, 0.1),
    "gemini:gemini-4-neon": (3, 15, 0.15),
    "gemini:gemini-flash-latest": (0.75, 3.75, 0.075),
    "anthropic:claude-mythos-5-2": (8, 40, 0.2),
    "openai:gpt-5": (1.25, 10, 0.125),
    "openai:gpt-5.2-2025-12-11": (1.75, 14, 0.175),
    "openai:gpt-4o": (2.5, 10, 1.25),
}
"""Model → input, output, cache read; US dollars per million tokens."""


@pytest.mark.parametrize(("model_id", "prices"), PRICES.items())
def test_prices_are_those_of_the_price_list(model_id: str, prices: tuple[float, float, float]) -> None:
    info = model_info(model_id)
    assert (info.input_price, info.output_price, info.cache_read_price) == prices


def test_what_a_cache_read_costs_is_known_wherever_a_price_is() -> None:
    priced = [info for info in MODELS if info.input_price is not None]
    assert len(priced) > 15
    for info in priced:
        assert info.cache_read_price is not None and info.input_price is not None
        assert 0 < info.cache_read_price <= info.input_price / 4, info.model_id
