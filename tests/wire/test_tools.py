"""Every tool of a session, over all vendors: declared, called, and its result taken."""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from amanu.core.conversation import Conversation, Result, Results, User
from amanu.tools.mcp.mcp_tool import McpTool
from amanu.tools.registry import make_tools
from support.mcp_in_memory import Server, server_tool
from support.prompt_sizes import ROWS, TOOL_BUDGET, all_tools, tool_tokens, vendor_named
from support.strict_services.http import Say, ToolUse
from support.tool_harness import ToolHarness
from support.vendor_sweeps import over_cases, over_vendors
from support.vendors import Vendor, answer, request, results, running

ARGUMENTS: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a.pdf", "pages": "2-3"},
    "read_many_files": {"paths": ["a.py", "b.ipynb"]},
    "list_directory": {"path": "."},
    "glob": {"pattern": "*.py"},
    "grep": {"pattern": "x", "include": "*.py"},
    "get_diagnostics": {"path": "a.py"},
    "find_definition": {"path": "a.py", "line": 1, "symbol": "x"},
    "find_references": {"path": "a.py", "line": 1, "symbol": "x"},
    "list_symbols": {"query": "x"},
    "inspect_symbol": {"path": "a.py", "line": 1, "symbol": "x", "show": "incoming_calls"},
    "read_output": {"id": "c29378a8677d1554"},
    "edit_file": {"path": "a.py", "old_text": "x", "new_text": "y"},
    "write_file": {"path": "a.py", "content": "x = 1\n"},
    "apply_patch": {"patch": "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"},
    "move_file": {"path": "a.py", "new_path": "b.py"},
    "delete_file": {"path": "a.py"},
    "rename_symbol": {"path": "a.py", "line": 1, "symbol": "x", "new_name": "y"},
    "run_shell_command": {"command": "npm run dev", "background": True, "until": "ready", "port": 3000, "wait_s": 5},
    "read_command": {"job": "job-1", "until": "GET", "wait_s": 5},
    "write_command": {"job": "job-1", "text": "quit\n"},
    "stop_command": {"job": "job-1"},
    "web_fetch": {"url": "https://example.org/", "prompt": "What is it about?"},
    "web_search": {"query": "example"},
    "write_todos": {"todos": [{"text": "Test it", "status": "in_progress"}]},
    "enter_plan_mode": {"reason": "Two designs."},
    "exit_plan_mode": {},
    "save_memory": {"fact": "Run the tests with `make check`.", "scope": "project"},
    "ask_user": {
        "questions": [
            {
                "header": "Store",
                "question": "Which one?",
                "options": [{"label": "SQLite", "description": "One file"}, {"label": "Postgres"}],
                "multi_select": False,
            }
        ]
    },
}


@over_vendors()
async def test_every_tool_is_declared_called_and_answered(vendor: Vendor, tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path)
    tools = make_tools(dataclasses.replace(harness.environment, model_searches=True))
    assert set(tools) == set(ARGUMENTS)
    says = [
        Say(text="All of them.", calls=[ToolUse(name, given) for name, given in ARGUMENTS.items()]),
        Say(text="Ok."),
    ]
    async with running(vendor, says) as (_, model):
        specs = tuple(tool.spec() for tool in tools.values())
        conversation = Conversation([User(text="Hello.")])
        reply = (await answer(model, request(vendor, conversation=conversation, tools=specs))).message
        assert [call.tool for call in reply.calls] == [*ARGUMENTS]
        conversation.append(reply)
        for call in reply.calls:
            assert isinstance(call.arguments, dict)
            tools[call.tool].parse(call.arguments)
        made = [Result(call_id=call.call_id, tool=call.tool, text="Done.") for call in reply.calls]
        conversation.append(Results(results=tuple(made)))
        await answer(model, request(vendor, conversation=conversation, tools=specs))


@over_vendors()
async def test_a_reply_is_offered_only_the_tools_that_it_may_call(vendor: Vendor) -> None:
    """Earlier replies called others. Strict services refuse a choice that they would not take."""
    choices: list[tuple[frozenset[str] | None, set[str]]] = [
        (None, {"read_file", "grep"}),
        (frozenset({"grep"}), {"grep"}),
        (frozenset(), set()),
        (frozenset({"unknown"}), set()),
        (None, {"read_file", "grep"}),
    ]
    says = [Say(calls=[ToolUse("read_file", {"path": "a"})]), *[Say(text="Ok.")] * len(choices)]
    async with running(vendor, says, lint_ok=True) as (service, model):
        conversation = Conversation([User(text="Hello.")])
        reply = (await answer(model, request(vendor, conversation=conversation))).message
        conversation.append(reply)
        conversation.append(results(reply, "text of a"))
        for choice, offered in choices:
            asked = request(vendor, conversation=conversation, callable=choice)
            conversation.append((await answer(model, asked)).message)
            conversation.append(User(text="And now?"))
            assert _offered(service.requests[-1].json) == offered


def _offered(body: dict[str, Any]) -> set[str]:
    """The names of the tools that a service lets the model call."""
    tools: list[dict[str, Any]] = body.get("tools") or []
    declared: set[str] = {each["name"] for tool in tools for each in tool.get("functionDeclarations", ())}
    declared |= {tool.get("function", tool)["name"] for tool in tools if "functionDeclarations" not in tool}
    match body.get("tool_choice", body.get("toolConfig")):
        case "none" | {"type": "none"} | {"functionCallingConfig": {"mode": "NONE"}}:
            return set()
        case {"type": "allowed_tools", "mode": "auto", "tools": allowed}:
            return {tool["name"] for tool in allowed}
        case None:
            return declared
        case other:
            raise AssertionError(other)


TEXT: dict[str, Any] = {"type": "string"}
ODD_SCHEMAS: dict[str, dict[str, Any]] = {
    "names": {
        "filter[status]": TEXT,
        "@type": TEXT,
        "城市": TEXT,
        "x" * 90: TEXT,
        "a b": TEXT,
        "a_b": TEXT,
        "$top": TEXT,
    },
    "names within": {
        "list": {"type": "array", "items": {"type": "object", "properties": {"@type": TEXT, "b[]": TEXT}}}
    },
    "values": {"a": {"enum": ["auto", True, False, None]}, "b": {"const": None}, "c": {"enum": [1, 2.5]}},
    "limits": {
        "a": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2, "format": "uint64"},
        "b": {**TEXT, "pattern": "^a", "minLength": 1, "format": "date-time", "default": "x"},
        "c": {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3, "uniqueItems": True},
    },
    "tuples": {
        "a": {"type": "array", "prefixItems": [TEXT, {"type": "number"}], "items": False},
        "b": {"items": [TEXT]},
    },
    "booleans": {"a": True, "b": False, "c": {"type": "array", "items": False}, "d": {"anyOf": [True, TEXT]}},
    "maps": {"a": {"type": "object", "additionalProperties": False}, "b": {"patternProperties": {"^x": TEXT}}},
    "nothing": {},
}
GEMINI_TAKES = {
    *("type", "description", "enum", "items", "minItems", "maxItems", "minimum", "maximum"),
    *("anyOf", "properties", "additionalProperties", "required"),
}
"""Words of a schema, within what its documentation lists for `parametersJsonSchema`."""


@over_cases("properties", ODD_SCHEMAS)
async def test_whatever_schema_a_server_sends_is_declared_and_called(
    vendor: Vendor, properties: dict[str, Any], tmp_path: Path
) -> None:
    texts = [own for own, each in properties.items() if each == TEXT]
    schema = {"type": "object", "properties": properties, "required": texts, "additionalProperties": False}
    listed = server_tool("odd", "", schema)
    tool = McpTool("mcp__s__odd", Server("s", [listed]), listed, ToolHarness(tmp_path).environment)
    assert {*_words(tool.spec().parameters)} <= GEMINI_TAKES
    names = cast("dict[str, Any]", tool.spec().parameters["properties"])
    arguments: dict[str, Any] = {name: "x" for name, each in names.items() if each.get("type") == "string"}
    says = [Say(text="Now.", calls=[ToolUse(tool.name, arguments)]), Say(text="Ok.")]
    async with running(vendor, says) as (_, model):
        conversation = Conversation([User(text="Hello.")])
        reply = (await answer(model, request(vendor, conversation=conversation, tools=(tool.spec(),)))).message
        conversation.append(reply)
        given = reply.calls[0].arguments
        assert isinstance(given, dict)
        assert {*tool.parse(given).arguments} >= {*texts}
        made = Result(call_id=reply.calls[0].call_id, tool=tool.name, text="Done.")
        conversation.append(Results(results=(made,)))
        await answer(model, request(vendor, conversation=conversation, tools=(tool.spec(),)))


def _words(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from schema
    within = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    for part in (*within, schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, Mapping):
            yield from _words(cast("Mapping[str, Any]", part))


@pytest.mark.parametrize("name", ROWS)
async def test_all_tools_together_cost_little(name: str, tmp_path: Path) -> None:
    tokens = await tool_tokens(vendor_named(name), await all_tools(tmp_path))
    largest = sorted(tokens, key=lambda tool: -tokens[tool])[:3]
    assert sum(tokens.values()) <= TOOL_BUDGET, "the largest: " + ", ".join(
        f"{tool} ({tokens[tool]:.0f} tokens)" for tool in largest
    )
