"""The models that the vendors' SDKs name, against ours."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from importlib.util import find_spec
from typing import Any, get_args

from amanu.core.model_families import KNOWN
from amanu.core.original_models import original
from amanu.core.retirements import retirement
from amanu.models.relatives import undated

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


def _words(alias: Any) -> Iterator[str]:
    """The words of a `Union[Literal[…], str]`."""
    for each in get_args(alias):
        if isinstance(each, str):
            yield each
        else:
            yield from _words(each)


def _anthropic() -> list[str]:
    from anthropic.types.model import Model

    return list(_words(Model))


def _google() -> list[str]:
    from google.genai._gaos.types.interactions.model import Model  # pyright: ignore[reportPrivateUsage]

    return list(_words(Model))


def _openai() -> list[str]:
    """Empty where it is not installed: the daemon does without it."""
    if find_spec("openai") is None:
        return []
    from openai.types.shared.chat_model import ChatModel  # pyright: ignore

    return list(_words(ChatModel))


SDK_MODELS: Mapping[str, Callable[[], list[str]]] = {"anthropic": _anthropic, "gemini": _google, "openai": _openai}
"""Vendor → the models that its SDK names."""


def unknown_models(vendor: str) -> list[str]:
    """The models of the vendor's SDK, as `vendor:model`, that are neither known nor left out for a reason."""
    return [
        model_id
        for model_id in (f"{vendor}:{model}" for model in SDK_MODELS[vendor]())
        if undated(original(model_id)) not in KNOWN and not any(re.fullmatch(left, model_id) for left in LEFT_OUT)
    ]


def deprecated() -> dict[str, str]:
    """Anthropic's deprecated models → ISO date of their last day."""
    from anthropic._data import DEPRECATED_MODELS  # pyright: ignore[reportPrivateUsage]

    days = {model: re.sub(r"(?<=\d)(st|nd|rd|th)", "", day) for model, day in DEPRECATED_MODELS.items()}
    return {f"anthropic:{model}": f"{datetime.strptime(day, '%B %d, %Y').date()}" for model, day in days.items()}


def our_days(model_ids: Iterable[str]) -> dict[str, str | None]:
    """The last days of these models as we have them; a model without one is left out."""
    return {model_id: end.day for model_id in model_ids if (end := retirement(model_id)) is not None}
