"""Arguments as they were meant, where the model wrote them in another shape than the schema has.

Seen are lists and objects as their JSON, sometimes twice or as Python writes it, the only item in place of a list, and
numbers and null as text. Whatever the schema takes as it is stays so: a text is read only where no text is wanted.
"""

import ast
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast

from pydantic import JsonValue

from amanu.core.nesting import MAX_NESTING, too_deep

_MAX_LITERAL = 100_000
"""Characters of a list or object as Python writes it."""

_NOTHING = ("", "null", "None")

Schema = Mapping[str, Any]
NO_MEMBERS: Schema = {}


def as_meant(value: JsonValue, schema: Schema) -> JsonValue:
    """The value in the shape that the schema wants, if it can be read so; else as it is. The schema is one for models:
    without references (`core/tool.py`, `tools/mcp/input_schema.py`). Raises `ValueError` for one that is nested too
    deeply, as text or not."""
    _require_flat(value)
    return _as_meant(value, schema)


def _as_meant(value: JsonValue, schema: Schema) -> JsonValue:
    if value is None or _is_of(value, schema):
        return _inside(value, schema)
    if value in _NOTHING:
        return None
    for candidate in _candidates(value):
        meant = _inside(candidate, schema)
        if _fits(meant, schema):
            return meant
    return value


def _inside(value: JsonValue, schema: Schema) -> JsonValue:
    """The same for all that is in the value."""
    kind = "array" if isinstance(value, list) else "object" if isinstance(value, dict) else ""
    found = [option for option in _options(schema) if option.get("type") == kind]
    if len(found) != 1:
        return value
    if isinstance(value, list):
        return [_as_meant(item, found[0].get("items") or {}) for item in value]
    if isinstance(value, dict):
        members: Schema = found[0].get("properties") or {}
        rest = found[0].get("additionalProperties")
        more: Schema = cast("Schema", rest) if isinstance(rest, dict) else NO_MEMBERS
        return {name: _as_meant(member, members.get(name, more)) for name, member in value.items()}
    return value


def _candidates(value: JsonValue) -> Iterator[JsonValue]:
    readings = [*_readings(value)] if isinstance(value, str) else []
    yield from readings
    for item in (*readings, value):
        if not isinstance(item, list):
            yield [item]


def _readings(text: str) -> Iterator[JsonValue]:
    """The value that the text is as JSON, or as Python writes it."""
    text = text.strip()
    try:
        read: Any = json.loads(text, strict=False, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        read = _literal(text)
    _require_flat(read)
    if isinstance(read, str):
        yield from _readings(read)
    if read is not None:
        yield cast("JsonValue", read)


def _require_flat(value: JsonValue) -> None:
    if too_deep(value):
        raise ValueError(f"lists and objects are nested more than {MAX_NESTING} deep")


def _literal(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    if text[:1] not in ("[", "{") or len(text) > _MAX_LITERAL:
        return None
    try:
        return json.loads(json.dumps(ast.literal_eval(text)))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _fits(value: JsonValue, schema: Schema) -> bool:
    """Whether the value and the items in it have types that the schema takes."""
    if not isinstance(value, list):
        return _is_of(value, schema)
    lists = [option for option in _options(schema) if option.get("type", "array") == "array"]
    return any(all(_fits(item, option.get("items") or {}) for item in value) for option in lists)


def _is_of(value: JsonValue, schema: Schema) -> bool:
    return any(_has_type(value, option.get("type")) for option in _options(schema))


def _has_type(value: JsonValue, kind: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "number" | "integer":
            if isinstance(value, float):
                return math.isfinite(value) if kind == "number" else value.is_integer()
            return isinstance(value, int) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return True


def _options(schema: Schema) -> list[Schema]:
    return [each for option in schema["anyOf"] for each in _options(option)] if "anyOf" in schema else [schema]
