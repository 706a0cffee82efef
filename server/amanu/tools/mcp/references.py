"""References within the input schema of an MCP tool."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

Schema = Mapping[str, Any]

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
