"""The rules of a schema beside the dialect of `core/tool.py`, in words, for the description of an argument."""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from amanu.text.display import visible

MAX_VALUES = 20
"""Values of an enumeration that are named."""
MAX_VALUE = 200
"""Characters of one value, such as an expression."""
_EXACT = 2**53 - 1
"""A limit from this on is no limit but the size of a number in the server's language."""

_WORDS: Mapping[str, str] = {
    "minimum": "At least {}.",
    "exclusiveMinimum": "More than {}.",
    "maximum": "At most {}.",
    "exclusiveMaximum": "Less than {}.",
    "multipleOf": "A multiple of {}.",
    "minLength": "At least {} characters.",
    "maxLength": "At most {} characters.",
    "minItems": "At least {} items.",
    "maxItems": "At most {} items.",
    "minProperties": "At least {} members.",
    "maxProperties": "At most {} members.",
    "format": "Format: {}.",
    "pattern": "Matches `{}`.",
    "contentEncoding": "Encoding: {}.",
    "contentMediaType": "Media type: {}.",
}
LIMITS: Mapping[str, tuple[str, ...]] = {
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
}
"""Limits that every vendor takes, by type."""


def limits(node: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The limits of a schema of that type that every vendor takes."""
    return {key: node[key] for key in LIMITS.get(kind, ()) if _is_limit(key, node.get(key))}


def words(node: Mapping[str, Any], kinds: Collection[str]) -> Iterator[str]:
    """Sentences on what the schema says besides its types and their `limits`."""
    told = {key for kind in kinds for key in LIMITS.get(kind, ())}
    for key, sentence in _WORDS.items():
        value = node.get(key)
        if value is True and key.startswith("exclusive"):  # as JSON Schema had it before 2017
            value = node.get(key.replace("exclusiveM", "m"))
        if key not in told and (_is_limit(key, value) or (isinstance(value, str) and value)):
            yield sentence.format(as_json(value) if not isinstance(value, str) else _cut(value))
    if node.get("uniqueItems") is True:
        yield "No item twice."


def values_in_words(values: Collection[Any]) -> str:
    """The values of an enumeration, as JSON."""
    named = ", ".join(as_json(value) for value in [*values][:MAX_VALUES])
    more = f", … ({len(values)} values)" if len(values) > MAX_VALUES else ""
    return f"One of: {named}{more}."


def as_json(value: Any) -> str:
    """The value as JSON, cut where it is long."""
    return _cut(json.dumps(value, ensure_ascii=False))


def _is_limit(key: str, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    if key.endswith(("Length", "Items", "Properties")):
        return isinstance(value, int) and (1 if key.startswith("min") else 0) <= value < _EXACT
    return abs(value) < _EXACT


def _cut(text: str) -> str:
    text = visible(text)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"
