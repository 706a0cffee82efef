"""Every tool of a session, over all vendors: declared, called, and its result taken."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from amanu.core.conversation import Conversation, Result, Results, User
from amanu.tools.registry import make_tools
from support.prompt_sizes import ROWS, TOOL_BUDGET, all_tools, tool_tokens, vendor_named
from support.strict_services.http import Say, ToolUse
from support.tool_harness import ToolHarness
from support.vendor_sweeps import over_vendors
from support.vendors import Vendor, answer, request, running

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


@pytest.mark.parametrize("name", ROWS)
async def test_all_tools_together_cost_little(name: str, tmp_path: Path) -> None:
    tokens = await tool_tokens(vendor_named(name), await all_tools(tmp_path))
    largest = sorted(tokens, key=lambda tool: -tokens[tool])[:3]
    assert sum(tokens.values()) <= TOOL_BUDGET, "the largest: " + ", ".join(
        f"{tool} ({tokens[tool]:.0f} tokens)" for tool in largest
    )
