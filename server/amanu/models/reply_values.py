"""Values in a reply, checked: services and models send others than they promise."""

from typing import Any, cast

from pydantic import JsonValue

from amanu.core.loose_json import read_object
from amanu.core.nesting import too_deep
from amanu.models.wire_messages import dumps, loads

_MAX_REPAIRED = 200_000
"""Characters. Reading JSON loosely takes a few milliseconds for so many, and no event may be held up for longer."""


def require_string(value: Any) -> str:
    """The value, which must be a string. Raises `TypeError`."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def vendor_word(value: Any) -> str:
    """A word or an id of a service's, at most 100 characters and all of them visible; "" for anything else."""
    return "".join(filter(str.isprintable, value[:_LONGEST_WORD])) if isinstance(value, str) else ""


_LONGEST_WORD = 100


def parse_arguments(text: str, *, cut: bool) -> dict[str, JsonValue] | str:
    """The object the model wrote as the arguments of a call; {} for nothing at all; the text as it is when it is no
    object, or one nested too deeply. What is no JSON is read loosely (`core/loose_json.py`), but never if the reply was
    `cut`."""
    if not text.strip():
        return {}
    try:
        value = loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) and not cut:
        value = _repaired(text)
    return cast("dict[str, JsonValue]", value) if isinstance(value, dict) and not too_deep(value) else text


def as_json(text: str) -> str | None:
    """The arguments as the model wrote them, to be sent back; None if that is no JSON object."""
    try:
        return text if isinstance(loads(text), dict) else None
    except ValueError:
        return None


def _repaired(text: str) -> Any:
    if len(text) > _MAX_REPAIRED:
        return None
    try:
        return loads(dumps(read_object(text)))
    except ValueError:
        return None
