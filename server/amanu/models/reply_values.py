"""Values in a reply, checked: services and models send others than they promise."""

from typing import Any, cast

from pydantic import JsonValue

from amanu.models.limits import too_deep
from amanu.models.wire_messages import loads


def require_string(value: Any) -> str:
    """The value, which must be a string. Raises `TypeError`."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def parse_arguments(text: str) -> dict[str, JsonValue] | str:
    """The object the model wrote as the arguments of a call; {} for nothing at all; the text as it is when it is no
    object, or one nested too deeply."""
    if not text.strip():
        return {}
    try:
        value = loads(text)
    except ValueError:
        return text
    return cast("dict[str, JsonValue]", value) if isinstance(value, dict) and not too_deep(value) else text
