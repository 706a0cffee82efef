"""The fields that Amanu itself puts at the top of a request's body, on whatever wire."""

import re
from collections.abc import Mapping
from typing import cast

OWN_FIELDS = frozenset({
    "anthropic_version", "cache_control", "contents", "include", "input", "instructions", "max_completion_tokens",
    "max_output_tokens", "max_tokens", "messages", "model", "output_config", "plugins", "prompt_cache_key", "reasoning",
    "reasoning_effort", "service_tier", "speed", "store", "stream", "stream_options", "system", "system_instruction",
    "thinking", "tool_choice", "tool_config", "tools",
    # What would undo the statelessness of a request, or make it another than it was counted as.
    "background", "conversation", "n", "previous_response_id",
})  # fmt: skip
"""The names are in snake case, which Gemini takes as well as camel case."""

_OWN_OF_GENERATION = frozenset({"candidate_count", "continuation_token", "max_output_tokens", "thinking_config"})
"""Our own fields in Gemini's `generationConfig`, whose other fields are free."""


def refusal(fields: Mapping[str, object]) -> str | None:
    """The reason that the user may not add these, in a sentence; None if they may."""
    for name, value in fields.items():
        if _snake(name) == "service_tier" or name == "speed":
            return f"{name} cannot be set here, since it changes the price: use the setting service_tier."
        if _snake(name) in OWN_FIELDS:
            return f"{name} cannot be set here: Amanu sends it itself."
        if name == "generation_config":
            return "generation_config must be spelt generationConfig."
        if name == "generationConfig" and isinstance(value, dict):
            for each in cast("dict[str, object]", value):
                if _snake(each) in _OWN_OF_GENERATION:
                    return f"generationConfig.{each} cannot be set here: Amanu sends it itself."
    return None


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
