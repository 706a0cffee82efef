"""Names of arguments as models write them, where Anthropic refuses the server's own.

A name stands for one name of the server, at every level of a tool: which one does not depend on the order of the
schema, nor on arguments beside it unless they would get the same name.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from amanu.tools.mcp.names import short_hash
from amanu.tools.mcp.schema_parts import Schema, mapping, resolve

MAX_NAME = 64
_PLAIN = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME}}}")
_MAX_PARTS = 200
"""Schemas that are looked at for one value."""


class ArgumentNames:
    """The names of all arguments in the input schema of a tool."""

    def __init__(self, schema: Schema) -> None:
        self._root = schema
        every = {*_declared(schema)}
        cleaned = {name: _cleaned(name) for name in every if not _PLAIN.fullmatch(name)}
        times = Counter(cleaned.values())
        self._of_own = {
            own: name if name and len(name) <= MAX_NAME and times[name] == 1 and name not in every else _unique(own)
            for own, name in cleaned.items()
        }
        self._own = {name: own for own, name in self._of_own.items()}
        self._found: dict[tuple[int, ...], list[Schema]] = {}
        """The parts that `_parts` found, by the identities of schemas within the root."""

    def name(self, own: str) -> str:
        """The name under which models know that name of the server."""
        return self._of_own.get(own, own)

    def for_model(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The arguments under the models' names, whichever they have."""
        return self._under(self.name, arguments)

    def for_server(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The arguments under the server's names, whichever they have."""
        return self._under(lambda own: own, arguments)

    def _under(self, named: Callable[[str], str], arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        if not self._own:
            return dict(arguments)
        return cast("dict[str, JsonValue]", self._renamed(named, dict(arguments), [self._root]))

    def _renamed(self, named: Callable[[str], str], value: JsonValue, schemas: Sequence[Any]) -> JsonValue:
        """The value, which one of the schemas is about. Only what they declare is renamed: other names are data."""
        if not isinstance(value, dict | list) or not schemas:
            return value
        parts = self._parts(schemas)
        if isinstance(value, list):
            return [self._renamed(named, item, [*_items(parts, at)]) for at, item in enumerate(value)]
        renamed: dict[str, JsonValue] = {}
        for key, member in value.items():
            own = self._own.get(key, key)
            declared = [part["properties"][own] for part in parts if own in mapping(part.get("properties"))]
            more = declared or [part.get("additionalProperties") for part in parts]
            renamed[named(own) if declared else key] = self._renamed(named, member, more)
        return renamed

    def _parts(self, schemas: Sequence[Any]) -> list[Schema]:
        """The schemas with all that they refer to and are made of."""
        asked = tuple(map(id, schemas))
        if asked in self._found:
            return self._found[asked]
        found: dict[int, Schema] = {}
        pending = [*schemas]
        while pending and len(found) < _MAX_PARTS:
            schema = pending.pop()
            if not isinstance(schema, Mapping) or id(cast("Schema", schema)) in found:
                continue
            part = found[id(cast("Schema", schema))] = cast("Schema", schema)
            if isinstance(reference := part.get("$ref"), str):
                pending.append(resolve(self._root, reference))
            for key in ("allOf", "anyOf", "oneOf"):
                pending += part[key] if isinstance(part.get(key), list) else []
        return self._found.setdefault(asked, [*found.values()])


def _declared(schema: Any) -> Iterator[str]:
    """Every name that stands below `properties` anywhere."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            members = cast("Schema", node)
            yield from mapping(members.get("properties"))
            pending += members.values()
        elif isinstance(node, list):
            pending += cast("list[Any]", node)


def _items(parts: Iterable[Schema], at: int) -> Iterator[Any]:
    for part in parts:
        for key in ("prefixItems", "items"):
            items = part.get(key)
            if isinstance(items, list):
                yield from cast("list[Any]", items)[at : at + 1]
            else:
                yield items


def _cleaned(own: str) -> str:
    """The name in plain letters, without marks above them; "" when nothing is left."""
    letters = (letter for letter in unicodedata.normalize("NFKD", own) if not unicodedata.combining(letter))
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", "".join(letters)).strip("_")


def _unique(own: str) -> str:
    tail = f"_{short_hash(own)}"
    return f"{(_cleaned(own) or 'argument')[: MAX_NAME - len(tail)]}{tail}"
