"""The input schema of an MCP tool as every vendor accepts it.

A server may send any JSON Schema. Models get the dialect of `core/tool.py`: one object, no `$ref`, no union at the top,
no limits. The same schema is what arguments are held against; since nothing in it refers to anything, and no keyword
costs more than a look at each value, a hostile schema costs no more than an honest one.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from amanu.text.display import visible

MAX_NODES = 1_000
"""Schemas within one schema, references resolved; whatever is beyond takes anything."""
MAX_DEPTH = 12
MAX_DESCRIPTION = 1_000
"""Characters that describe one argument."""
_MAX_ENUM = 200

_PROPERTY = re.compile(r"[A-Za-z0-9_.$-]{1,64}")
"""Names of arguments that Anthropic takes, and `$`, which it takes inside of objects."""
_TYPES = ("string", "number", "integer", "boolean", "object", "array")

Schema = Mapping[str, Any]


def model_schema(schema: Schema) -> dict[str, JsonValue]:
    """The schema for models. Never fails: what cannot be said in the dialect is left out, and the server has the last
    word on the arguments."""
    converted = _Conversion(schema).object_schema()
    return cast("dict[str, JsonValue]", converted)


class _Conversion:
    def __init__(self, schema: Schema) -> None:
        self._root = schema
        self._nodes = 0

    def object_schema(self) -> dict[str, Any]:
        """The whole, as one object: of alternatives it has all properties, and requires those that each requires."""
        top = self._flat(self._root, ())
        properties, required = self._members(top, ())
        alternatives = [self._flat(option, ()) for option in _options(top)]
        required_by_each: list[set[str]] = []
        for alternative in alternatives:
            more, needed = self._members(alternative, ())
            properties = {**more, **properties}
            required_by_each.append({*needed})
        if required_by_each:
            required += [name for name in properties if all(name in needed for needed in required_by_each)]
        required = [name for name in dict.fromkeys(required) if name in properties]
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    def _members(self, node: Schema, path: tuple[str, ...]) -> tuple[dict[str, Any], list[str]]:
        properties = _mapping(node.get("properties"))
        names = [name for name in properties if _PROPERTY.fullmatch(name)][: max(0, MAX_NODES - self._nodes)]
        converted = {name: self._convert(properties[name], path) for name in names}
        required = node.get("required")
        return converted, [
            name
            for name in (cast("list[Any]", required) if isinstance(required, list) else [])
            if isinstance(name, str) and name in converted
        ]

    def _convert(self, node: Any, path: tuple[str, ...]) -> dict[str, Any]:
        """One schema; `path` are the references that led to it."""
        self._nodes += 1
        if not isinstance(node, Mapping) or self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            return {}
        if isinstance(reference := cast("Schema", node).get("$ref"), str):
            if reference in path:  # it contains itself
                return {}
            path = (*path, reference)
        node = self._flat(cast("Schema", node), path)
        inside = (*path, "")
        described = self._description(node)
        options = _options(node)
        types = _types(node)
        if len(types) > 1:
            options = [cast("Schema", {**node, "type": name, "anyOf": [], "oneOf": []}) for name in types]
            node = {}
        if options:
            converted = [self._convert(option, inside) for option in options if not _is_null(option)]
            if len(converted) == 1:
                return {**converted[0], **described}
            return {**described, "anyOf": converted} if all(converted) else described
        return {**described, **self._single(node, types[0] if types else "", inside)}

    def _single(self, node: Schema, kind: str, inside: tuple[str, ...]) -> dict[str, Any]:
        """A schema of one type."""
        values = node.get("enum", [node["const"]] if "const" in node else None)
        if isinstance(values, list) and kind in ("string", ""):
            texts = [value for value in cast("list[Any]", values) if isinstance(value, str)]
            if texts and len(texts) == len(cast("list[Any]", values)) <= _MAX_ENUM:
                return {"type": "string", "enum": [visible(text) for text in texts]}
        if not kind:
            kind = "object" if "properties" in node else "array" if "items" in node else ""
        match kind:
            case "object":
                properties, required = self._members(node, inside)
                more = node.get("additionalProperties")
                return {
                    "type": "object",
                    "properties": properties,
                    **({"required": required} if required else {}),
                    **({"additionalProperties": self._convert(more, inside)} if isinstance(more, Mapping) else {}),
                }
            case "array":
                items = node.get("items")
                return {"type": "array", "items": self._convert(items, inside) if isinstance(items, Mapping) else {}}
            case "":
                return {}
            case _:
                return {"type": kind}

    def _description(self, node: Schema) -> dict[str, str]:
        """The description, with what the dialect has no word for: values that are no strings, and a default."""
        text = node.get("description")
        text = visible(text).strip() if isinstance(text, str) else ""
        values = node.get("enum")
        if isinstance(values, list) and not all(isinstance(value, str) for value in cast("list[Any]", values)):
            text += f" One of: {', '.join(str(value) for value in cast('list[Any]', values)[:20])}."
        default = node.get("default")
        if isinstance(default, str | int | float) and default not in ("", 0):
            text += f" Default: {visible(str(default))}."
        text = text.strip()
        text = text if len(text) <= MAX_DESCRIPTION else f"{text[: MAX_DESCRIPTION - 1]}…"
        return {"description": text} if text else {}

    def _flat(self, node: Schema, path: tuple[str, ...]) -> Schema:
        """The schema with its reference resolved and the parts of `allOf` put together."""
        for _ in range(MAX_DEPTH):
            reference = node.get("$ref")
            if not isinstance(reference, str):
                break
            target = self._resolve(reference)
            node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
        parts = node.get("allOf")
        if not isinstance(parts, list) or len(path) > MAX_DEPTH:
            return node
        merged = {key: value for key, value in node.items() if key != "allOf"}
        for part in cast("list[Any]", parts)[:_MAX_ENUM]:
            self._nodes += 1
            if isinstance(part, Mapping) and self._nodes <= MAX_NODES:
                part = self._flat(cast("Schema", part), (*path, ""))
                properties = {**_mapping(part.get("properties")), **_mapping(merged.get("properties"))}
                required = [*_list(merged.get("required")), *_list(part.get("required"))]
                merged = {**part, **merged}
                if properties:
                    merged["properties"] = properties
                if required:
                    merged["required"] = required
        return merged

    def _resolve(self, reference: str) -> Schema:
        """What a reference within the schema points to (RFC 6901); nothing for any other."""
        node: Any = self._root
        if not reference.startswith("#"):
            return {}
        for part in reference[1:].split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            node = cast("Schema", node).get(part) if isinstance(node, Mapping) else None
        return cast("Schema", node) if isinstance(node, Mapping) else {}


def _options(node: Schema) -> list[Schema]:
    options = node.get("anyOf") or node.get("oneOf")
    return [
        cast("Schema", option)
        for option in (cast("list[Any]", options)[:_MAX_ENUM] if isinstance(options, list) else [])
        if isinstance(option, Mapping)
    ]


def _types(node: Schema) -> Sequence[str]:
    """The types a value may have; null is left out: an argument that is left out says the same."""
    kind = node.get("type")
    kinds = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    return [name for name in kinds if isinstance(name, str) and name in _TYPES]


def _is_null(node: Schema) -> bool:
    return node.get("type") == "null"


def _mapping(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
