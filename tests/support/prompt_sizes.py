"""What the fixed part of a request takes, by family: rules, note on the environment, tools as each wire declares them.
Part of docs/prompts.md (`vendor_matrix.py`)."""

import asyncio
import dataclasses
import json
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

from amanu.agent.system_prompt import system_prompt
from amanu.context.surroundings import Surroundings
from amanu.core.conversation import Conversation
from amanu.core.model import ToolSpec
from amanu.core.model_families import family
from amanu.core.token_estimate import estimate
from amanu.core.tool import AnyTool
from amanu.session.sessions import open_sessions
from amanu.tools.registry import make_tools
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace
from amanu_protocol.requests import SessionCreateParams
from support.session_client import Client
from support.strict_services.http import Say
from support.tool_harness import ToolHarness
from support.vendors import VENDORS, Vendor, answer, request, running

ROWS = ("anthropic", "openai", "gemini", "gemini-2.5", "local")
"""The vendors of `vendors.py` to show: one for each family with words of its own, and one for all the rest."""
TOOL_BUDGET = 4_500
"""Tokens that all tools of a session may take together, in any family. New tools may raise it, never above 5,000."""
SAMPLE = ("README.md", "pyproject.toml", "src/shop/__init__.py", "tests/test_shop.py", ".git/HEAD")
PROGRAMS = ("git", "rg", "make", "docker", "python3", "uv", "node", "npm")


def sizes_table() -> str:
    """The table, with what was counted and how."""
    return asyncio.run(_table())


async def _table() -> str:
    with tempfile.TemporaryDirectory() as folder:
        note = estimate(await _environment_note(Path(folder)))
        tools = await all_tools(Path(folder))
    rows = [await _row(vendor_named(name), note, tools) for name in ROWS]
    return "\n".join(
        [
            f"What that takes, in tokens, with the {len(tools)} tools that a session in an editor can have: as "
            "estimated before a service has counted (a quarter of a token per ASCII character), to ten. The rules are "
            "those above, with the family's words and the workspace root; `<environment>` is that of a small Python "
            "project, and goes with the first prompt; tools are counted as each wire declares them, and a test holds "
            f"them under {TOOL_BUDGET:,}. It is the same at the beginning of every request of a session, so caches "
            "hold it (`bench/cache.md`).",
            "",
            "| family | a model | rules | `<environment>` | tools | together |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


def vendor_named(name: str) -> Vendor:
    return next(each for each in VENDORS if each.name == name)


async def all_tools(folder: Path) -> list[ToolSpec]:
    """All that a session in an editor can have, for which the folder is a workspace."""
    environment = dataclasses.replace(ToolHarness(folder).environment, model_searches=True)
    params = SessionCreateParams(session_id="s", roots=[str(folder)], model_id="anthropic:claude-opus-5-5")
    sessions = open_sessions({"HOME": str(folder), "AMANU_HOME": str(folder / "amanu")})
    try:
        await sessions.create(params, Client({"ANTHROPIC_API_KEY": "sk-ant-x"}))
        session = await sessions.get("s")
        await session.core.parts.begin_turn()
        tools: list[AnyTool] = [*make_tools(environment).values(), *session.core.parts.tools()]
        return [tool.spec() for tool in tools]
    finally:
        await sessions.shutdown()


async def tool_tokens(vendor: Vendor, tools: list[ToolSpec]) -> dict[str, float]:
    """Tool → the tokens it takes as the vendor's wire declares it."""
    async with running(vendor, [Say(text="Hello.")]) as (service, model):
        await answer(model, request(vendor, tools=tools))
    body: dict[str, Any] = service.requests[-1].json
    declared: list[Any] = body["tools"]
    if "functionDeclarations" in declared[0]:
        declared = declared[0]["functionDeclarations"]
    texts = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in declared]
    return {tool.name: estimate(text) for tool, text in zip(tools, texts, strict=True)}


async def _row(vendor: Vendor, note: float, tools: list[ToolSpec]) -> str:
    facts = family(vendor.model_id)
    name, tools = facts.name, [tool for tool in tools if tool.name not in facts.withheld]
    rules = system_prompt(name, ["/home/ada/shop"]).core
    counts = [estimate(rules), note, sum((await tool_tokens(vendor, tools)).values())]
    cells = [f"{round(each, -1):,.0f}" for each in (*counts, sum(counts))]
    return f"| {name} | `{vendor.model_id}` | " + " | ".join(cells) + " |"


async def _environment_note(folder: Path) -> str:
    root, programs = folder / "shop", folder / "bin"
    for path in (*(root / name for name in SAMPLE), *(programs / name for name in PROGRAMS)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("ref: refs/heads/main\n")
        path.chmod(0o755)
    surroundings = Surroundings(
        Workspace([root], Overlay(), ripgrep=None),
        Conversation(),
        list,
        lambda: True,
        {"PATH": str(programs)},
    )
    return await surroundings.note(lambda: date(2026, 11, 24))
