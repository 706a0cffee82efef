"""Arguments in another shape than the schema wants, as models send them."""

import json
from pathlib import Path
from typing import Any

import pytest

from amanu.core.argument_shapes import as_meant
from amanu.core.tool import Tool, ToolError, tool_schema
from amanu.tools.registry import make_tools
from support.tool_harness import ToolHarness

STRING = {"type": "string"}
TEXTS = {"type": "array", "items": STRING}
COUNT = {"type": "integer"}
COUNTS = {"type": "array", "items": COUNT}
EDIT: dict[str, Any] = {"type": "object", "properties": {"old": STRING, "lines": TEXTS, "count": COUNT}}
EDITS = {"type": "array", "items": EDIT}
ANY: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ('["a", "b"]', TEXTS, ["a", "b"]),
        (' ["a"]\n', TEXTS, ["a"]),
        ('"[\\"a\\"]"', TEXTS, ["a"]),
        ("['a', 'b']", TEXTS, ["a", "b"]),
        ("[]", TEXTS, []),
        ("a", TEXTS, ["a"]),
        ("app/[id]/page.tsx", TEXTS, ["app/[id]/page.tsx"]),
        ("[slug].tsx", TEXTS, ["[slug].tsx"]),
        ("[1]", TEXTS, ["[1]"]),
        ("5", TEXTS, ["5"]),
        ("[1, 2]", COUNTS, [1, 2]),
        ('["1", "2"]', COUNTS, [1, 2]),
        (5, COUNTS, [5]),
        ("5", COUNTS, [5]),
        ("five", COUNTS, "five"),
        ("1" * 400, COUNT, int("1" * 400)),
        (int("1" * 400), COUNT, int("1" * 400)),
        (5, TEXTS, 5),
        ({"old": "x"}, EDITS, [{"old": "x"}]),
        ('{"old": "x"}', EDITS, [{"old": "x"}]),
        ('[{"old": "x"}]', EDITS, [{"old": "x"}]),
        (['{"old": "x"}', {"old": "y"}], EDITS, [{"old": "x"}, {"old": "y"}]),
        ('[{"old": "two\nlines"}]', EDITS, [{"old": "two\nlines"}]),
        (
            '{"old": "[\\"x\\"]", "lines": "[\\"x\\"]", "count": "3"}',
            EDIT,
            {"old": '["x"]', "lines": ["x"], "count": 3},
        ),
        ("{'old': True}", EDIT, {"old": True}),
        ("x", EDITS, "x"),
        ("x", EDIT, "x"),
        ({"old": "x"}, TEXTS, {"old": "x"}),
        *((nothing, TEXTS, None) for nothing in (None, "", "null", "None")),
        ('["a"]', STRING, '["a"]'),
        ('["a"]', ANY, '["a"]'),
        ('["a"]', {"anyOf": [STRING, TEXTS]}, '["a"]'),
        ('["a"]', {"anyOf": [TEXTS, COUNT]}, ["a"]),
        ('{"a": "[1]"}', {"type": "object", "additionalProperties": COUNTS}, {"a": [1]}),
        ('{"a": "[1]"}', {"type": "object"}, {"a": "[1]"}),
        ("3", COUNT, 3),
        ("3.5", {"type": "number"}, 3.5),
        ("3.5", COUNT, "3.5"),
        ("true", {"type": "boolean"}, True),
        ("True", {"type": "boolean"}, True),
        ("NaN", {"type": "number"}, "NaN"),
        ("1e999", {"type": "number"}, "1e999"),
        (True, COUNT, True),
        ("[" * 100_000, TEXTS, ["[" * 100_000]),
        ("{1: 2, (3,): {4}}", EDIT, "{1: 2, (3,): {4}}"),
    ],
)
def test_arguments_are_read_as_meant(value: Any, schema: dict[str, Any], expected: Any) -> None:
    assert as_meant(value, schema) == expected
    assert as_meant(expected, schema) == expected


CALLS: dict[str, dict[str, Any]] = {
    "edit_file": {"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]},
    "read_many_files": {"paths": ["a"]},
    "write_todos": {"todos": [{"text": "Test it", "status": "in_progress"}]},
    "ask_user": {"questions": [{"header": "H", "question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]},
}


@pytest.mark.parametrize("name", CALLS)
def test_lists_of_every_tool(name: str, tmp_path: Any) -> None:
    tool = make_tools(ToolHarness(tmp_path).environment)[name]
    argument, value = list(CALLS[name].items())[-1]
    for written in (json.dumps(value), json.dumps(json.dumps(value)), value[0], json.dumps(value[0]), str(value)):
        assert tool.parse({**CALLS[name], argument: written}) == tool.parse(CALLS[name])


def test_every_list_of_objects_is_read(tmp_path: Any) -> None:
    for tool in make_tools(ToolHarness(tmp_path).environment).values():
        for name, schema in tool_schema(tool.params)["properties"].items():
            if schema.get("type") == "array":
                assert f"{name}: Input should be a valid list" not in fault(tool, {name: "[]"})


DEEP = "lists and objects are nested more than 64 deep"


@pytest.mark.parametrize("depth", [66, 200, 900])
@pytest.mark.parametrize(
    ("tool", "argument", "is_read"),
    [("edit_file", "edits", True), ("read_many_files", "paths", True), ("write_file", "content", False)],
)
def test_what_is_nested_too_deeply_is_refused(
    tmp_path: Path, tool: str, argument: str, is_read: bool, depth: int
) -> None:
    text = "[" * depth + "]" * depth
    made = make_tools(ToolHarness(tmp_path).environment)[tool]
    assert (DEEP in fault(made, {"path": "a", argument: text})) is is_read
    assert DEEP in fault(made, {"path": "a", argument: json.loads(text)})
    assert DEEP not in fault(made, {"path": "a", argument: text[depth - 60 : depth + 60]})


def fault(tool: Tool[Any], arguments: dict[str, Any]) -> str:
    try:
        tool.parse(arguments)
    except ToolError as error:
        return str(error)
    return ""
