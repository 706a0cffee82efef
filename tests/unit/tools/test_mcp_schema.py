"""Schemas and arguments of MCP tools: what every vendor accepts, whatever the server sends, in bounded time."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from amanu.core.tool import ToolError
from amanu.tools.mcp.argument_names import ArgumentNames
from amanu.tools.mcp.arguments import MAX_ARGUMENTS, MAX_CHECKED, check, require_short
from amanu.tools.mcp.input_schema import MAX_DESCRIPTION, MAX_NODES, model_schema
from amanu.tools.mcp.names import model_name

STRING = {"type": "string"}
NUMBER = {"type": "number"}


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
        (of(a=True, b={}), of(a={}, b={})),
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


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"enum": ["auto", True, False, None]}, {"description": 'One of: "auto", true, false, null.'}),
        ({"const": None}, {"description": "One of: null."}),
        ({"const": True}, {"type": "boolean", "description": "One of: true."}),
        ({"enum": [1, 2.5]}, {"type": "number", "description": "One of: 1, 2.5."}),
        ({"enum": [1, 2]}, {"type": "integer", "description": "One of: 1, 2."}),
        ({"enum": [{"a": True}, [None]]}, {"description": 'One of: {"a": true}, [null].'}),
        ({"type": "integer", "enum": [*range(30)]}, f"One of: {', '.join(map(str, range(20)))}, … (30 values)."),
        ({"enum": [f"v{n}" for n in range(300)]}, "… (300 values)."),
        ({**STRING, "enum": [256, 512]}, {"type": "integer", "description": "One of: 256, 512."}),
        ({"type": "number", "enum": [1, 2]}, {"type": "number", "description": "One of: 1, 2."}),
        ({"anyOf": [{"const": 6}, {"const": 7.5}]}, {"type": "number", "description": "One of: 6, 7.5."}),
        ({"anyOf": [{"const": "a"}, {"enum": ["b"]}, {"type": "null"}]}, {"type": "string", "enum": ["a", "b"]}),
        (
            {"oneOf": [{"const": "a", "description": "The first."}, {"const": "b"}]},
            {"anyOf": [{**STRING, "enum": ["a"], "description": "The first."}, {**STRING, "enum": ["b"]}]},
        ),
        ({"type": ["string", "null"], "enum": ["x", None]}, {"type": "string", "enum": ["x"]}),
        ({"type": "boolean", "default": True}, {"type": "boolean", "description": "Default: true."}),
        ({"type": "boolean", "default": False}, {"type": "boolean", "description": "Default: false."}),
        ({"type": "number", "default": 1.5}, {"type": "number", "description": "Default: 1.5."}),
        ({**STRING, "default": "main"}, {**STRING, "description": 'Default: "main".'}),
        ({**STRING, "default": ""}, STRING),
        ({"type": "array", "items": STRING, "default": ["a"]}, 'Default: ["a"].'),
        ({"type": "integer", "minimum": 1, "maximum": 100}, {"type": "integer", "minimum": 1, "maximum": 100}),
        ({"type": "integer", "minimum": -(2**63), "maximum": 2**53 - 1}, {"type": "integer"}),
        ({"type": "integer", "minimum": "1", "maximum": True}, {"type": "integer"}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "description": "More than 0."}),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, "More than 0."),
        ({"type": "number", "multipleOf": 0.5}, {"type": "number", "description": "A multiple of 0.5."}),
        ({"minimum": 1}, {"description": "At least 1."}),
        ({**STRING, "format": "date-time"}, {**STRING, "description": "Format: date-time."}),
        ({**STRING, "pattern": "(a+)+$", "maxLength": 3}, "At most 3 characters. Matches `(a+)+$`."),
        ({**STRING, "description": "Its code", "minLength": 2}, "Its code. At least 2 characters."),
        ({**STRING, "description": "x" * 2000, "maxLength": 9}, "… At most 9 characters."),
        (
            {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3, "uniqueItems": True},
            {"type": "array", "items": STRING, "minItems": 1, "maxItems": 3, "description": "No item twice."},
        ),
        ({"type": "array", "prefixItems": [NUMBER, NUMBER]}, {"type": "array", "items": NUMBER}),
        ({"type": "array", "items": [NUMBER, STRING], "additionalItems": False}, "number; string. Nothing more."),
        (
            {"prefixItems": [{**NUMBER, "description": "Longitude."}, STRING], "items": {"type": "boolean"}},
            "In this order: number (Longitude); string. Then any number of: boolean.",
        ),
        ({"type": "array", "items": False}, {"type": "array", "items": {}, "description": "Always empty."}),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        ({"type": "object", "additionalProperties": False}, of() | {"additionalProperties": False}),
        ({"type": "object", "additionalProperties": True}, of()),
        (of(x=False, y=True) | {"required": ["x", "y"]}, of(y={}) | {"required": ["y"]}),
        ({"patternProperties": {"^x-": STRING}, "additionalProperties": False}, "Other names match `^x-`."),
        ({"anyOf": [STRING, False]}, STRING),
        ({"anyOf": [STRING, True]}, {}),
        ({"$ref": "#/$defs/any"}, {}),
        (
            {"anyOf": [{"type": "integer", "exclusiveMaximum": 9}, {"type": "null"}], "description": "How many"},
            {"type": "integer", "description": "How many. Less than 9."},
        ),
        (
            of(k={**STRING}) | {"anyOf": [{"required": ["k"]}, {"properties": {"j": STRING}}]},
            of(k={**STRING}, j=STRING),
        ),
        (
            {"type": "object", "properties": {}, "oneOf": [of(k={"const": "a"}), of(k={"const": "b"}, v=NUMBER)]},
            of(k={**STRING, "enum": ["a", "b"]}, v=NUMBER),
        ),
    ],
)
def test_what_an_argument_may_be(schema: dict[str, Any], expected: dict[str, Any] | str) -> None:
    """`expected` is a text where only the end of the description matters."""
    got: Any = model_schema(of(a=schema) | {"$defs": {"any": True}})["properties"]
    if isinstance(expected, str):
        assert got["a"]["description"].endswith(expected)
        assert len(got["a"]["description"]) <= MAX_DESCRIPTION
    else:
        assert {key: value for key, value in got["a"].items() if key in expected} == expected
        assert "description" not in got["a"] or "description" in expected or "order" in got["a"]["description"]


@pytest.mark.parametrize(
    "never",
    [
        *(False, {"not": {}}, {"not": True}, {"enum": []}, {"$ref": "#/$defs/never"}),
        *({"anyOf": [False, {"not": {}}]}, {"oneOf": [{"$ref": "#/$defs/never"}]}, {"allOf": [STRING, False]}),
    ],
)
def test_what_no_value_fits_is_left_out(never: Any) -> None:
    assert model_schema(of(a=never, b=STRING) | {"required": ["a"], "$defs": {"never": False}}) == of(b=STRING)


ISSUES = {
    **{"filter[status]": "filter_status", "@type": "type", "rule_name[]": "rule_name", "$filter": "filter"},
    **{"naïve café": "naive_cafe", "X-Api-Key:": "X-Api-Key", "a/b": "a_b", "projects.any": "projects.any"},
    **{"StartTime<": "StartTime_", "StartTime>": "StartTime_", "城市": "argument_", "": "argument_"},
    **{"page id": "page_id_", "page_id": "page_id", "page\u200bid": "page_id_"},
    **{f"settings__{'approved__' * 6}{end}": "settings__approved__" for end in ("list", "denied")},
}
"""Names that servers have → how models write them, or how that begins where names would be the same."""


@pytest.mark.parametrize(
    "around",
    [
        lambda it: it,
        lambda it: of(a=it) | {"required": ["a"]},
        lambda it: of(a={"type": "array", "items": it}),
        lambda it: of(a={"type": "array", "prefixItems": [STRING, it]}),
        lambda it: of(a={"anyOf": [STRING, it]}),
        lambda it: of(a={"type": "object", "additionalProperties": it}),
        lambda it: of(a={"$ref": "#/$defs/t"}) | {"$defs": {"t": it}},
        lambda it: of(**{"filter[status]": {"type": "array", "items": {"oneOf": [it, {"type": "null"}]}}}),
        lambda it: {"allOf": [it, of(other=STRING)]},
        lambda it: {"anyOf": [it, of(other=STRING)]},
    ],
)
def test_names_that_vendors_refuse_are_renamed_and_back(around: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    schema = around(of(**{own: STRING for own in ISSUES}) | {"required": [*ISSUES]})
    names = ArgumentNames(schema)
    converted = model_schema(schema, names)
    found: dict[str, Any] = next(node for node in nodes(converted) if isinstance(node, dict) and "page_id" in node)  # pyright: ignore[reportUnknownVariableType]
    assert len(found) >= len(ISSUES)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) for name in found)
    for own, begins in ISSUES.items():
        name = names.name(own)
        assert name == begins or (name.startswith(begins) and name != begins and begins.endswith("_")) or len(own) > 64
        assert name == own or own.strip().replace("\u200b", "<U+200B>") in found[name]["description"]
    of_model = sample(converted)
    of_server: dict[str, Any] = names.for_server(of_model)
    check("t", converted, of_model)
    assert {*ISSUES} <= {key for node in nodes(of_server) if isinstance(node, dict) for key in node}  # pyright: ignore[reportUnknownVariableType]
    assert names.for_model(of_server) == of_model
    assert names.for_server(of_server) == of_server
    assert ArgumentNames(json.loads(json.dumps(schema, sort_keys=True))).for_server(of_model) == of_server


def sample(schema: Any) -> Any:
    """A value with every property."""
    if "anyOf" in schema:
        return sample(schema["anyOf"][-1])
    match schema.get("type"):
        case "object":
            more = schema.get("additionalProperties")
            members = {name: sample(member) for name, member in schema["properties"].items()}
            return members | ({"filter_status": sample(more)} if more else {})
        case "array":
            return [sample(schema["items"])] * 2
        case _:
            return "x"


def test_names_that_are_data_stay() -> None:
    free = {"type": "object", "additionalProperties": STRING}
    names = ArgumentNames(of(**{"filter[status]": STRING, "labels": free, "any": {}}))
    data: dict[str, Any] = {"labels": {"filter_status": "x"}, "any": {"filter_status": [{"filter_status": 1}]}}
    assert names.for_server({**data, "filter_status": "y"}) == {**data, "filter[status]": "y"}


def test_names_are_found_as_deep_as_a_schema_contains_itself() -> None:
    tree = of(**{"城市": STRING, "kids": {"type": "array", "items": {"$ref": "#"}}})
    names = ArgumentNames(tree)
    name, value = names.name("城市"), {"城市": "x"}
    for _ in range(30):
        value = {"城市": "y", "kids": [value]}
    assert names.for_server(json.loads(json.dumps(value, ensure_ascii=False).replace("城市", name))) == value


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
        ({"l": [1] * MAX_CHECKED}, ""),
    ],
)
def test_arguments_are_held_against_the_schema(arguments: dict[str, Any], fault: str) -> None:
    if not fault:
        check("t", SCHEMA, arguments)
        return
    with pytest.raises(ToolError, match=fault):
        check("t", SCHEMA, arguments)


def test_arguments_have_a_limit() -> None:
    with pytest.raises(ToolError, match="too long"):
        require_short("t", {"a": "x" * MAX_ARGUMENTS})
    for depth in (70, 900):
        with pytest.raises(ToolError, match="nested more than 64 deep"):
            require_short("t", {"a": json.loads("[" * depth + "]" * depth)})


def test_what_only_a_schema_forbids_is_for_the_server_to_refuse() -> None:
    check("t", model_schema(of(a=STRING) | {"additionalProperties": False}), {"a": "x", "b": 1})


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
