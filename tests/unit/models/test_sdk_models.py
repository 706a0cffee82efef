"""The models in the installed SDKs of vendors against ours: each is known, or left out for a reason; what they say is
deprecated has the same last day here."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.util import find_spec
from typing import Any, get_args

import pytest

from amanu.core.model_families import KNOWN
from amanu.core.original_models import original
from amanu.core.retirements import retirement
from amanu.models.relatives import nearest_relative, undated

LEFT_OUT: Mapping[str, str] = {
    r"anthropic:claude-mythos-preview": "shut down on 2026-06-30",
    r"gemini:gemma-4-.*": "open weights: Google names no price",
    r"gemini:(gemini-.*-image(-preview)?|gemini-.*tts(-preview)?|gemini-robotics-.*)": "no text, or no tools",
    r"gemini:(gemini-omni-.*|gemini-3\.5-transcribe|lyria-.*|.*nano-banana.*)": "pictures, films, music, speech",
    r"openai:.*(audio|search-preview|codex-mini|computer-use|deep-research).*": "no text, or for one use",
    r"openai:(chatgpt-4o|gpt-5(\.\d)?-chat)-latest": "ChatGPT's own; shut down by 2026-08-10",
    r"openai:gpt-5\.1-(mini|codex.*)": "never supported, or shut down on 2026-07-23",
    r"openai:(gpt-3\.5|gpt-4-|gpt-4$|o1|o3-mini|o4-mini|gpt-4\.1-nano).*": "shut down by 2026-10-23",
}
"""Pattern for a model's id → the reason why it is not in our table."""


def names(alias: Any) -> Iterator[str]:
    """The words of a `Union[Literal[…], str]`."""
    for each in get_args(alias):
        if isinstance(each, str):
            yield each
        else:
            yield from names(each)


def of_anthropic() -> list[str]:
    from anthropic.types.model import Model

    return list(names(Model))


def of_google() -> list[str]:
    from google.genai._gaos.types.interactions.model import Model  # pyright: ignore[reportPrivateUsage]

    return list(names(Model))


def of_openai() -> list[str]:
    """Empty where it is not installed: the daemon does without it."""
    if find_spec("openai") is None:
        return []
    from openai.types.shared.chat_model import ChatModel  # pyright: ignore

    return list(names(ChatModel))


SDK_MODELS = {"anthropic": of_anthropic, "gemini": of_google, "openai": of_openai}


def is_known(model_id: str) -> bool:
    return undated(original(model_id)) in KNOWN


@pytest.mark.parametrize("vendor", SDK_MODELS)
def test_each_model_of_an_sdk_is_known_or_left_out_for_a_reason(vendor: str) -> None:
    models = SDK_MODELS[vendor]()
    assert len(models) > 20 or vendor == "openai"
    missing = [
        model_id
        for model_id in (f"{vendor}:{model}" for model in models)
        if not is_known(model_id) and not any(re.fullmatch(pattern, model_id) for pattern in LEFT_OUT)
    ]
    assert missing == [], "a line in MODELS or UNOFFERED (core/model_families.py), or a reason in LEFT_OUT"


def test_a_reason_is_given_for_no_model_that_is_known() -> None:
    assert [model_id for model_id in KNOWN for pattern in LEFT_OUT if re.fullmatch(pattern, model_id)] == []


def test_what_anthropic_deprecates_ends_here_on_the_same_day() -> None:
    from anthropic._data import DEPRECATED_MODELS  # pyright: ignore[reportPrivateUsage]

    days = {
        model: datetime.strptime(re.sub(r"(?<=\d)(st|nd|rd|th)", "", day), "%B %d, %Y").date().isoformat()
        for model, day in DEPRECATED_MODELS.items()
    }
    assert days, "the SDK says so somewhere else now"
    ours = {model: end.day for model in days if (end := retirement(f"anthropic:{model}")) is not None}
    assert ours == days


@pytest.mark.parametrize("alias", ["gemini-flash-latest", "gemini-flash-lite-latest", "gemini-pro-latest"])
def test_an_alias_names_the_newest_model_of_its_kind(alias: str) -> None:
    newest = nearest_relative(f"gemini:{alias}", KNOWN.values())
    assert newest is not None
    assert original(f"gemini:{alias}") == newest.model_id
