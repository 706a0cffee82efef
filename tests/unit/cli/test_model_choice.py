"""`/model WORDS`: one match is taken, several are listed with numbers and prices."""

import io

import pytest

from amanu.cli.console import PlainConsole
from amanu.cli.ui.model_choice import LISTED, ModelChoice
from amanu_protocol.items import ModelInfo


def model(model_id: str, name: str, price: float = 1, *, available: bool = True) -> ModelInfo:
    return ModelInfo(
        model_id=model_id,
        name=name,
        context_window=200_000,
        max_output=8_000,
        input_price=price,
        output_price=price * 5,
        thinking=True,
        images=True,
        available=available,
        unavailable=None if available else "No key.",
    )


MODELS = [
    model("anthropic:claude-opus-5-5", "Claude Opus 5.5", 5),
    model("anthropic:claude-opus-5", "Claude Opus 5", 4),
    model("anthropic:claude-sonnet-5-5", "Claude Sonnet 5.5", 3),
    model("openai:gpt-6.2-sol", "GPT-6.2 Sol", 2, available=False),
    model("openrouter:anthropic/claude-opus-5", "Claude Opus 5", 4, available=False),
    *(model(f"gemini:gemini-{number}", f"Gemini {number}") for number in range(LISTED + 1)),
]


@pytest.mark.parametrize(
    ("typed", "chosen", "shown"),
    [
        ("claude-opus-5", "anthropic:claude-opus-5", ""),  # and no longer name
        ("sonnet", "anthropic:claude-sonnet-5-5", ""),
        ("Claude 5.5 opus", "anthropic:claude-opus-5-5", ""),
        ("sol", "openai:gpt-6.2-sol", ""),  # no key: the daemon says how to get one
        ("zebra", "zebra", ""),
        ("77", "77", ""),
        (
            "opus",
            None,
            "2 models have “opus” in id or name:\n"
            "  1 Claude Opus 5.5 (anthropic:claude-opus-5-5) · $5 in / $25 out per million tokens · window 200k\n"
            "  2 Claude Opus 5 (anthropic:claude-opus-5) · $4 in / $20 out per million tokens · window 200k\n"
            "/model 1 switches to the first of them.\n",
        ),
    ],
)
def test_what_is_meant(typed: str, chosen: str | None, shown: str) -> None:
    out = io.StringIO()
    assert (ModelChoice(PlainConsole(out)).choose(typed, MODELS), out.getvalue()) == (chosen, shown)


def test_a_number_is_that_of_the_last_list() -> None:
    out = io.StringIO()
    choice = ModelChoice(PlainConsole(out))
    assert choice.choose("gemini", MODELS) is None
    assert out.getvalue().endswith("/model 1 switches to the first of them. 1 more: type more of the name.\n")
    assert choice.choose("opus", MODELS) is None
    assert choice.choose("2", MODELS) == "anthropic:claude-opus-5"
    assert choice.choose("12", MODELS) == "gemini:gemini-12"  # of no list: words
