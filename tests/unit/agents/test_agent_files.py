"""Definitions of sub-agents: ours, Claude Code's and Gemini CLI's are read; nothing in them gives rights."""

from pathlib import Path
from typing import Any

import pytest

from amanu.agents.definitions import BUILT_IN, AgentPlaces, built_in, read_definition
from amanu.core.sub_agents import AgentDefinition
from amanu.core.tool import Tool
from amanu.tools.registry import make_tools, tools_of_agent
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace
from support.tool_harness import ToolHarness

CLAUDE = """---
name: code-reviewer
description: Use this agent when: code was written
tools: Read, Grep, Bash(git diff:*), Task
disallowedTools: [WebFetch]
model: sonnet
maxTurns: 12
permissionMode: plan
color: blue
---

You review."""
GEMINI = """---
name: docs
description: writes docs
kind: local
tools:
  - read_file
  - grep_search
  - replace
  - mcp_github_*
temperature: 0.2
max_turns: 5
timeout_mins: 3
---
You write."""


def read(text: str, **more: Any) -> tuple[AgentDefinition | None, list[str]]:
    found = read_definition(Path("a.md"), text.encode(), **more)
    return found.definition, found.warnings


def test_claudes_form() -> None:
    agent, warnings = read(CLAUDE)
    assert agent is not None
    assert agent.name == "code-reviewer" and agent.description == "Use this agent when: code was written"
    assert agent.tools is not None and {"read_file", "grep", "run_shell_command"} <= {*agent.tools}
    assert "run_agent" not in agent.tools and "Task" not in agent.tools
    assert (agent.without_tools, agent.model, agent.steps, agent.prompt) == (("web_fetch",), None, 12, "You review.")
    for part in ("not valid YAML", "model sonnet is ignored", "permissionMode is not supported", "in brackets"):
        assert any(part in warning for warning in warnings), part
    assert not any("color" in warning for warning in warnings)


def test_geminis_form() -> None:
    agent, warnings = read(GEMINI)
    assert agent is not None and not warnings
    assert agent.tools == ("read_file", "grep", "edit_file", "mcp__github_*")
    assert (agent.steps, agent.seconds) == (5, 180)


def head(**fields: str) -> str:
    lines = {"name": "a", "description": "is a", **fields}
    return "\n".join(["---", *(f"{key}: {value}" for key, value in lines.items()), "---", "Do."])


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (head(name="../x"), "is not a valid agent name"),
        (head(name="a\x1b[2J"), "is not a valid agent name"),
        (head(description="''"), "needs a description"),
        ("---\nname: a\ndescription: b\n---\n", "instructions"),
        ("Just text.", "needs a description"),
        (head(kind="remote"), "only local agents"),
        ("---\nname: a\n" + "x: y\n" * 20_000 + "---\nDo.", "more than 64 KiB"),
    ],
)
def test_what_defines_no_agent(text: str, warning: str) -> None:
    agent, warnings = read(text)
    assert agent is None and any(warning in each for each in warnings), warnings


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"max_turns": "-3"}, "max_turns must be a whole number"),
        ({"timeout_mins": "soon"}, "timeout_mins must be a whole number"),
        ({"output_schema": "{type: array}"}, "must be a JSON Schema of type object"),
        ({"output_schema": "{type: object, properties: 3}"}, "not a valid JSON Schema"),
        ({"isolation": "worktree"}, "isolation is not supported"),
    ],
)
def test_a_wrong_field_is_ignored_with_a_warning(fields: dict[str, str], warning: str) -> None:
    agent, warnings = read(head(**fields))
    assert agent is not None and any(warning in each for each in warnings), warnings
    assert (agent.steps, agent.seconds, agent.output_schema) == (None, None, None)


def test_a_workspaces_file_gives_no_rights() -> None:
    fields = {"model": "openai:gpt-9", "permissionMode": "bypassPermissions", "hooks": "{}", "tools": '"*"'}
    agent, warnings = read(head(**fields), narrows=True)
    assert agent is not None and agent.model is None and agent.tools is None
    assert [warning.split()[1] for warning in warnings] == ["model", "permissionMode", "hooks"]
    assert read(head(**fields))[0] is not None, "the user's own may name a model"


def test_whose_definition_counts(tmp_path: Path) -> None:
    root, user = tmp_path / "work", tmp_path / "agents"
    for folder in (user, root / ".amanu" / "agents", root / ".claude" / "agents"):
        folder.mkdir(parents=True)
    (user / "mine.md").write_text(head(name="both", description="the user's"))
    (root / ".amanu" / "agents" / "both.md").write_text(head(name="both", description="the workspace's"))
    (root / ".amanu" / "agents" / "theirs.md").write_text(head(name="theirs", description="first"))
    (root / ".claude" / "agents" / "theirs.md").write_text(head(name="theirs", description="second"))
    (root / ".claude" / "agents" / "general.md").write_text(head(name="general", description="of the project"))
    (root / ".claude" / "agents" / "link.md").symlink_to(tmp_path / "elsewhere.md")
    (tmp_path / "elsewhere.md").write_text(head(name="link"))
    trusted, covered = True, True
    workspace = Workspace([root], Overlay())
    places = AgentPlaces([user], workspace, list, lambda path, data: covered, lambda: trusted)

    def described() -> dict[str, str]:
        return {agent.name: agent.description for agent in places.find().agents if agent.source != "built in"}

    expected = {"both": "the user's", "general": "of the project", "theirs": "first"}
    assert described() == expected
    covered = False
    assert described() == {"both": "the user's"}, "what was trusted was another content"
    trusted, covered = False, True
    assert described() == {"both": "the user's"}
    assert [agent.name for agent in places.find().agents][: len(BUILT_IN)] == [*BUILT_IN]


def test_the_tools_of_those_built_in(tmp_path: Path) -> None:
    tools: dict[str, Tool[Any]] = make_tools(ToolHarness(tmp_path).environment)
    for agent in built_in():
        chosen = tools_of_agent(tools, agent)
        assert agent.tools is None or list(chosen) == [name for name in tools if name in agent.tools]
        assert len(chosen) == len(agent.tools or chosen), "every tool it names exists"
        if agent.name != "general":
            assert {tool.effect for tool in chosen.values()} == {"read"}
        assert not {"run_agent", "save_memory", "exit_plan_mode"} & {*chosen}
