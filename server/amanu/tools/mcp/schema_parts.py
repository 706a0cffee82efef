"""Parts of the input schema of an MCP tool, whatever stands in their place."""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

Schema = Mapping[str, Any]

MAX_ENUM = 200
"""Values or alternatives of one schema that are looked at."""
_TYPES = ("string", "number", "integer", "boolean", "object", "array")
_TYPE_OF: Mapping[Any, str] = {str: "string", float: "number", int: "integer", bool: "boolean"}

ANYTHING: Schema = {}
NOTHING: Schema = {"not": ANYTHING}


def resolve(root: Schema, reference: str) -> Schema:
    """The schema that a reference points to (RFC 6901); `ANYTHING` for one that leads out of the schema or nowhere."""
    node: Any = root
    if not reference.startswith("#"):
        return ANYTHING
    for part in unquote(reference[1:]).split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        node = cast("Schema", node).get(part) if isinstance(node, Mapping) else None
    if node is False:
        return NOTHING
    return cast("Schema", node) if isinstance(node, Mapping) else ANYTHING


def is_nothing(schema: Any) -> bool:
    """Whether no value fits."""
    if not isinstance(schema, Mapping):
        return schema is False
    node = cast("Schema", schema)
    return node.get("not") in (ANYTHING, True) or node.get("enum") == []


def values_of(node: Schema) -> list[Any]:
    """The values that it lists; without null if that is one of its types: an argument that is left out says the
    same."""
    values = [node["const"]] if "const" in node else listed(node.get("enum"))
    if "null" in listed(node.get("type")) or node.get("nullable") is True:
        values = [value for value in values if value is not None] or values
    return values


def texts(values: Sequence[Any]) -> list[str]:
    """The values, if all of them are texts and not too many for an `enum`."""
    texts = [value for value in values if isinstance(value, str)]
    return texts if len(texts) == len(values) <= MAX_ENUM else []


def kinds_of(node: Schema) -> list[str]:
    """The types a value may have; null is left out. None for any type."""
    kind = node.get("type")
    kinds = [name for name in listed(kind) or [kind] if isinstance(name, str) and name in _TYPES]
    of_values = {_TYPE_OF.get(type(value), "") for value in values_of(node)}
    fit = [name for name in kinds if name in of_values or (name == "number" and "integer" in of_values)]
    if kinds and of_values and "" not in of_values and not fit:
        kind = None  # its values tell more than its type
    elif kinds or kind is not None:
        return list(dict.fromkeys(kinds))
    if "properties" in node or "patternProperties" in node:
        return ["object"]
    if "items" in node or "prefixItems" in node:
        return ["array"]
    of_values -= {"integer"} if "number" in of_values else set()
    return [of_values.pop()] if len(of_values) == 1 and "" not in of_values else []


def options_of(node: Schema) -> list[Schema] | None:
    """The alternatives that some value fits; None if there is no choice."""
    options = listed(node.get("anyOf")) or listed(node.get("oneOf"))
    return (
        [
            cast("Schema", option) if isinstance(option, Mapping) else {}
            for option in options[:MAX_ENUM]
            if not is_nothing(option)
        ]
        if options
        else None
    )


def is_null(node: Schema) -> bool:
    return node.get("type") in ("null", ["null"]) or listed(node.get("enum")) == [None] or node.get("const", "") is None


def mapping(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
