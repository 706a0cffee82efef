"""What the fixed part of a request takes, by family: rules, note on the environment, tools as each wire declares them.
Part of docs/prompts.md (`vendor_matrix.py`)."""

import asyncio
import json
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

from amanu.agent.system_prompt import system_prompt
from amanu.agent.window.token_gauge import estimate
from amanu.context.surroundings import Surroundings
from amanu.core.conversation import Conversation
from amanu.core.model import ToolSpec
from amanu.core.model_families import family
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace
from support.strict_services.http import Say
from support.tool_harness import ToolHarness
from support.vendors import VENDORS, Vendor, answer, request, running

ROWS = ("anthropic", "openai", "gemini", "gemini-2.5", "local")
"""The vendors of `vendors.py` to show: one for each family with words of its own, and one for all the rest."""
SAMPLE = ("README.md", "pyproject.toml", "src/shop/__init__.py", "tests/test_shop.py", ".git/HEAD")
PROGRAMS = ("git", "rg", "make", "docker", "python3", "uv", "node", "npm")


def sizes_table() -> str:
    """The table, with what was counted and how."""
    return asyncio.run(_table())


async def _table() -> str:
    with tempfile.TemporaryDirectory() as folder:
        note = estimate(await _environment_note(Path(folder)))
        tools = [tool.spec() for tool in ToolHarness(Path(folder)).tools.values()]
    rows = [await _row(next(each for each in VENDORS if each.name == name), note, tools) for name in ROWS]
    return "\n".join(
        [
            f"What that takes, in tokens, with the {len(tools)} tools of a session in an editor: as estimated before a "
            "service has counted (a quarter of a token per ASCII character), to ten. The rules are those above, with "
            "the family's words and the workspace root; `<environment>` is that of a small Python project, and goes "
            "with the first prompt; tools are counted as each wire declares them. It is the same at the beginning of "
            "every request of a session, so caches hold it (`bench/cache.md`).",
            "",
            "| family | a model | rules | `<environment>` | tools | together |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


async def _row(vendor: Vendor, note: float, tools: list[ToolSpec]) -> str:
    name = family(vendor.model_id).name
    rules = system_prompt(name, ["/home/ada/shop"]).core
    async with running(vendor, [Say(text="Hello.")]) as (service, model):
        await answer(model, request(vendor, system=rules, tools=tools))
    body: dict[str, Any] = service.requests[-1].json
    declared = json.dumps(body["tools"], ensure_ascii=False, separators=(",", ":"))
    counts = [estimate(rules), note, estimate(declared)]
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
