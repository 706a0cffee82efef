"""Schemas and arguments of MCP tools: what every vendor accepts, whatever the server sends, in bounded time."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from amanu.core.tool import ToolError
from amanu.tools.mcp.arguments import MAX_ARGUMENTS, MAX_CHECKED, check
from amanu.tools.mcp.input_schema import MAX_NODES, model_schema
from amanu.tools.mcp.names import model_name

STRING = {"type": "string"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, of()),
        ({"type": "string"}, of()),
        (of(a=STRING) | {"required": ["a", "gone", 3]}, of(a=STRING) | {"required": ["a"]}),
        (of(a={"type": ["string", "null"]}), of(a=STRING)),
        (of(a={"type": ["string", "integer"]}), of(a={"anyOf": [STRING, {"type": "integer"}]})),
        (of(a={"anyOf": [STRING, {"type": "null"}], "default": None}), of(a=STRING)),
        (of(a={"oneOf": [STRING, {"type": "array"}]}), of(a={"anyOf": [STRING, {"type": "array", "items": {}}]})),
        (of(a={"enum": ["x", "y"]}), of(a={"type": "string", "enum": ["x", "y"]})),
        (of(a={"const": "x"}), of(a={"type": "string", "enum": ["x"]})),
        (of(a={"type": "integer", "enum": [1, 2]}), of(a={"type": "integer", "description": "One of: 1, 2."})),
        (of(a={"type": "integer", "default": 3}), of(a={"type": "integer", "description": "Default: 3."})),
        (of(a={**STRING, "pattern": "(a+)+$", "format": "uri", "maxLength": 3}), of(a=STRING)),
        (of(a=True, b={}), of(a={}, b={})),
        (of(**{"bad name": STRING, "x" * 65: STRING, "é": STRING, "ok-1.x": STRING}), of(**{"ok-1.x": STRING})),
        (of(a={"$ref": "#/$defs/t"}) | {"$defs": {"t": STRING}}, of(a=STRING)),
        (of(a={"$ref": "https://evil/x"}, b={"$ref": "#/none"}), of(a={}, b={})),
        ({"$ref": "#/$defs/t", "$defs": {"t": of(a=STRING)}}, of(a=STRING)),
        ({"allOf": [of(a=STRING), of(b=STRING) | {"required": ["b"]}]}, of(a=STRING, b=STRING) | {"required": ["b"]}),
        (
            {"anyOf": [of(a=STRING, b=STRING) | {"required": ["a", "b"]}, of(a=STRING) | {"required": ["a"]}]},
            of(a=STRING, b=STRING) | {"required": ["a"]},
        ),
        (of(a={"type": "object", "additionalProperties": STRING}), of(a=of() | {"additionalProperties": STRING})),
        (of(a={**STRING, "description": "read \u202ethis"}), of(a={**STRING, "description": "read <U+202E>this"})),
    ],
)
def test_schemas(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert model_schema(schema) == expected


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = STRING
    for _ in range(depth):
        schema = of(a=schema)
    return schema


TREE = {"$ref": "#/$defs/n", "$defs": {"n": of(kids={"type": "array", "items": {"$ref": "#/$defs/n"}})}}
BOMB = of(a={"$ref": "#/$defs/d0"}) | {
    "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 20} for n in range(20)}
}
ALL = {"allOf": [{"$ref": "#"}] * 50}


@pytest.mark.parametrize("schema", [TREE, BOMB, ALL, nested(200), of(**{f"a{n}": STRING for n in range(50_000)})])
def test_hostile_schemas_cost_little_and_refer_to_nothing(schema: dict[str, Any]) -> None:
    started = time.process_time()
    converted = model_schema(schema)
    assert time.process_time() - started < 1
    text = json.dumps(converted)
    assert "$ref" not in text
    assert len([*nodes(converted)]) <= 4 * MAX_NODES
    assert not {"anyOf", "oneOf", "allOf"} & converted.keys()


def nodes(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict):
        for member in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from nodes(member)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from nodes(item)


SCHEMA: dict[str, Any] = model_schema(of(a=STRING, n={"type": "integer"}, l={"type": "array", "items": STRING}))


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"a": "x"}, ""),
        ({"a": None}, ""),
        ({"unknown": 1}, ""),
        ({"a": 1}, "a: 1 is not of type 'string'"),
        ({"l": ["x", 2]}, "l.1: 2 is not of type 'string'"),
        ({"n": "x\x1b"}, "n: 'x\\\\x1b' is not of type 'integer'"),
        ({"a": "x" * MAX_ARGUMENTS}, "too long"),
        ({"l": [1] * MAX_CHECKED}, ""),
    ],
)
def test_arguments(arguments: dict[str, Any], fault: str) -> None:
    if not fault:
        check("t", SCHEMA, arguments)
        return
    with pytest.raises(ToolError, match=fault):
        check("t", SCHEMA, arguments)


@pytest.mark.parametrize(
    ("server", "tool", "begins"),
    [
        ("git", "commit", "mcp__git__commit"),
        ("git", "a.b", "mcp__git__a_b_"),
        ("git", "x" * 64, "mcp__git__xxx"),
        ("git__x", "a", "mcp__git_x-"),
        ("git_", "a", "mcp__git-"),
        ("g" * 60, "t" * 60, "mcp__ggg"),
        ("git", "ｃommit", "mcp__git___ommit_"),
    ],
)
def test_names(server: str, tool: str, begins: str) -> None:
    name = model_name(server, tool)
    assert name.startswith(begins)
    assert len(name) <= 64
    assert name == model_name(server, tool)
    assert name not in {model_name(server, f"{tool}x"), model_name(f"{server}x", tool)}
