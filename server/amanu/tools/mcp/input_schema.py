"""The input schema of an MCP tool as every vendor accepts it.

A server may send any JSON Schema. Models get the dialect of `core/tool.py`: one object, no `$ref`, no union at the top,
only plain names and no expressions; of what it has no word for, the description tells (`schema_words.py`). The same
schema is what arguments are held against; since nothing in it refers to anything, and no keyword costs more than a look
at each value, a hostile schema costs no more than an honest one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from amanu.text.display import one_line, visible
from amanu.tools.mcp.argument_names import ArgumentNames
from amanu.tools.mcp.schema_parts import (
    MAX_ENUM,
    NOTHING,
    Schema,
    is_nothing,
    is_null,
    kinds_of,
    listed,
    mapping,
    options_of,
    resolve,
    texts,
    values_of,
)
from amanu.tools.mcp.schema_words import as_json, limits, values_in_words, words

MAX_NODES = 1_000
"""Schemas within one schema, references resolved; whatever is beyond takes anything."""
MAX_DEPTH = 12
MAX_DESCRIPTION = 1_000
"""Characters that describe one argument."""
_MAX_OWN_NAME = 200
_MAX_TUPLE = 20


def model_schema(schema: Schema, names: ArgumentNames | None = None) -> dict[str, JsonValue]:
    """The schema for models. Never fails: what cannot be said in the dialect is left out, and the server has the last
    word on the arguments."""
    converted = _Conversion(schema, names or ArgumentNames(schema)).object_schema()
    return cast("dict[str, JsonValue]", converted)


class _Conversion:
    def __init__(self, schema: Schema, names: ArgumentNames) -> None:
        self._root = schema
        self._names = names
        self._nodes = 0

    def object_schema(self) -> dict[str, Any]:
        """The whole, as one object."""
        return self._object(self._flat(self._root, ()), ())

    def _object(self, node: Schema, path: tuple[str, ...]) -> dict[str, Any]:
        """The object of all alternatives: it has all properties, and requires those that each requires."""
        properties, required = self._members(node, path)
        alternatives = [self._flat(option, path) for option in options_of(node) or () if not is_null(option)]
        required_by_each: list[set[str]] = []
        offered: dict[str, Any] = {}
        for alternative in alternatives:
            more, needed = self._members(alternative, path)
            offered |= {name: _either(offered[name], more[name]) if name in offered else more[name] for name in more}
            required_by_each.append({*needed})
        properties |= {name: offered[name] for name in offered if name not in properties}
        if required_by_each:
            required += [name for name in properties if all(name in needed for needed in required_by_each)]
        required = [name for name in dict.fromkeys(required) if name in properties]
        return {
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            **({} if alternatives else self._more(node, path)),
        }

    def _members(self, node: Schema, path: tuple[str, ...]) -> tuple[dict[str, Any], list[str]]:
        """(The properties, which of them are required), under the names for models."""
        converted: dict[str, Any] = {}
        for own, member in mapping(node.get("properties")).items():
            if self._nodes >= MAX_NODES:
                break
            name = self._names.name(own)
            told = () if name == own else (f"The server's name for it: {one_line(own[:_MAX_OWN_NAME])}",)
            if (schema := self._convert(member, path, told)) is not None:
                converted[name] = schema
        required = [self._names.name(own) for own in listed(node.get("required")) if isinstance(own, str)]
        return converted, [name for name in required if name in converted]

    def _more(self, node: Schema, path: tuple[str, ...]) -> dict[str, Any]:
        """The schema of values under other names, where an object has one."""
        more = node.get("additionalProperties")
        patterns = mapping(node.get("patternProperties"))
        if patterns:
            more = next(iter(patterns.values())) if len(patterns) == 1 and is_nothing(more) else None
        if is_nothing(more):
            return {"additionalProperties": False}
        return {"additionalProperties": self._convert(more, path) or {}} if isinstance(more, Mapping) else {}

    def _convert(self, node: Any, path: tuple[str, ...], told: Iterable[str] = ()) -> dict[str, Any] | None:
        """One schema, or None if no value fits; `path` are the references that led to it, `told` sentences for its
        description."""
        self._nodes += 1
        if is_nothing(node):
            return None
        if not isinstance(node, Mapping) or self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            return _described({}, "", told)
        if isinstance(reference := cast("Schema", node).get("$ref"), str):
            if reference in path:  # it contains itself
                return _described({}, "", told)
            path = (*path, reference)
        node = self._flat(cast("Schema", node), path)
        if is_nothing(node):
            return None
        converted, sentences = self._typed(node, (*path, ""))
        if converted is None:
            return None
        return _described(converted, node.get("description"), (*sentences, *told))

    def _typed(self, node: Schema, inside: tuple[str, ...]) -> tuple[dict[str, Any] | None, list[str]]:
        """(The schema without a description, sentences on what it does not say); None if no value fits."""
        node = self._of_literals(node, inside)
        kinds = kinds_of(node)
        sentences = [*_values_told(node, kinds), *words(node, kinds), *_default_told(node)]
        options = options_of(node)
        if options is not None and "properties" not in node:
            converted = [self._convert(option, inside) for option in options if not is_null(option)]
            left = [option for option in converted if option is not None]
            if not left and not any(map(is_null, options)):
                return None, []
            if len(left) == 1:
                return left[0], sentences
            return {"anyOf": left} if left and all(left) else {}, sentences
        singles = [self._single(node, kind, inside, sentences) for kind in kinds or ("",)]
        return singles[0] if len(singles) == 1 else {"anyOf": singles}, sentences

    def _of_literals(self, node: Schema, inside: tuple[str, ...]) -> Schema:
        """The schema with its alternatives as an enumeration, if each is only a value."""
        options = [self._flat(option, inside) for option in options_of(node) or ()]
        values = [value for option in options for value in (values_of(option) or [None] * is_null(option))]
        if not options or not all(values_of(option) or is_null(option) for option in options):
            return node
        if any("description" in option for option in options) or values == [None]:
            return node
        rest = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}
        if any(map(is_null, options)):
            rest |= {"nullable": True}
        return {**rest, "enum": values}

    def _single(self, node: Schema, kind: str, inside: tuple[str, ...], sentences: list[str]) -> dict[str, Any]:
        """A schema of one type; "" is any."""
        match kind:
            case "object":
                if patterns := mapping(node.get("patternProperties")):
                    sentences.append(f"Other names match {', '.join(f'`{visible(name[:200])}`' for name in patterns)}.")
                return self._object(node, inside)
            case "array":
                return {"type": "array", **self._items(node, inside, sentences), **limits(node, kind)}
            case "string":
                enum = texts(values_of(node))
                return {"type": "string", **({"enum": [visible(text) for text in enum]} if enum else {})}
            case "":
                return {}
            case _:
                return {"type": kind, **limits(node, kind)}

    def _items(self, node: Schema, inside: tuple[str, ...], sentences: list[str]) -> dict[str, Any]:
        """The items of a list; those of a tuple in words, too, since they differ by their place."""
        in_order = listed(node.get("prefixItems")) or listed(node.get("items"))
        rest = node.get("additionalItems" if isinstance(node.get("items"), list) else "items")
        if not in_order:
            if is_nothing(rest):
                sentences.append("Always empty.")
            return {"items": self._convert(rest, inside) or {}}
        converted = [self._convert(item, inside) or {} for item in in_order[:_MAX_TUPLE]]
        sentences.append(f"In this order: {'; '.join(map(_item_told, converted))}.")
        if is_nothing(rest):
            sentences.append("Nothing more.")
        if isinstance(rest, Mapping) and not is_nothing(rest):
            converted.append(self._convert(rest, inside) or {})
            sentences.append(f"Then any number of: {_item_told(converted[-1])}.")
        kinds = list({as_json(schema): schema for schema in map(_undescribed, converted)}.values())
        return {"items": {} if not all(kinds) else kinds[0] if len(kinds) == 1 else {"anyOf": kinds}}

    def _flat(self, node: Schema, path: tuple[str, ...]) -> Schema:
        """The schema with its reference resolved and the parts of `allOf` put together."""
        for _ in range(MAX_DEPTH):
            reference = node.get("$ref")
            if not isinstance(reference, str):
                break
            target = resolve(self._root, reference)
            node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
        parts = node.get("allOf")
        if not isinstance(parts, list) or len(path) > MAX_DEPTH:
            return node
        merged = {key: value for key, value in node.items() if key != "allOf"}
        for part in cast("list[Any]", parts)[:MAX_ENUM]:
            self._nodes += 1
            if is_nothing(part):
                return NOTHING
            if isinstance(part, Mapping) and self._nodes <= MAX_NODES:
                merged = _both(merged, self._flat(cast("Schema", part), (*path, "")))
        return merged


def _both(merged: dict[str, Any], part: Schema) -> dict[str, Any]:
    """Two schemas that both hold. A ban on other names is left out: each of them knows only its own."""
    properties = {**mapping(part.get("properties")), **mapping(merged.get("properties"))}
    required = [*listed(merged.get("required")), *listed(part.get("required"))]
    banned = {key for key in ("additionalProperties",) if merged.get(key) is False or part.get(key) is False}
    merged = {key: value for key, value in {**part, **merged}.items() if key not in banned}
    return {
        **merged,
        **({"properties": properties} if properties else {}),
        **({"required": required} if required else {}),
    }


def _either(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The schema of an argument that two alternatives have."""
    bare, other_bare = _undescribed(one), _undescribed(other)
    if bare == other_bare or not bare:
        return one
    if not other_bare:
        return other
    if "enum" in one and "enum" in other:
        return {**one, "enum": list(dict.fromkeys([*one["enum"], *other["enum"]]))}
    options = [each for schema in (one, other) for each in schema.get("anyOf", [schema])]
    return {"anyOf": [each for at, each in enumerate(options) if each not in options[:at]]}


def _described(converted: dict[str, Any], text: Any, told: Iterable[str]) -> dict[str, Any]:
    """The schema with a description: its own, the one of what it was converted from, and what else is told."""
    own, inner = visible(text).strip() if isinstance(text, str) else "", str(converted.get("description", ""))
    sentences = " ".join(told)
    text = own if inner == own else _joined(own, inner)
    room = max(0, MAX_DESCRIPTION - len(sentences) - 1)
    text = _joined(text if len(text) <= room else f"{text[: max(0, room - 1)]}…", sentences)[:MAX_DESCRIPTION]
    return {**converted, **({"description": text} if text else {})}


def _joined(first: str, second: str) -> str:
    end = "." if first[-1:].isalnum() and second else ""
    return f"{first}{end} {second}".strip()


def _undescribed(schema: Schema) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "description"}


def _item_told(schema: Schema) -> str:
    """An item of a tuple, in a few words."""
    kind = str(schema.get("type") or ("any value" if "anyOf" not in schema else "one of several types"))
    values = f" {', '.join(map(as_json, schema['enum']))}" if "enum" in schema else ""
    about = str(schema.get("description", "")).rstrip(".")
    return f"{kind}{values}{f' ({about})' if about else ''}"


def _values_told(node: Schema, kinds: Sequence[str]) -> Iterator[str]:
    values = values_of(node)
    if values and not (kinds == ["string"] and texts(values)):
        yield values_in_words(values)


def _default_told(node: Schema) -> Iterator[str]:
    default = node.get("default")
    if default is not None and default not in ("", [], {}):
        yield f"Default: {as_json(default)}."
