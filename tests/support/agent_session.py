"""A session whose model has sub-agents: each of the user's own, with a scripted model of its own."""

import json
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from amanu.core.conversation import Results
from amanu.home import find_home
from amanu.mcp.model import McpServers
from amanu_protocol.items import Mode, SubAgent, ToolCall
from support.scripted_session import ScriptedSession, call, conversation, scripted_session


def ask_agent(name: str, prompt: str = "Do it.", **more: Any) -> dict[str, Any]:
    return call("run_agent", agent=name, prompt=prompt, description=f"the task of {name}", **more)


def complete(result: str = "Done.") -> dict[str, Any]:
    return call("complete_task", result=result)


def user_agent(folder: Path, name: str, steps: Sequence[dict[str, Any]], **fields: str) -> None:
    """Define an agent of the user's with those front matter fields, whose model plays these steps."""
    script = folder / f"{name}.json"
    script.write_text(json.dumps(list(steps)))
    agents = find_home(os.environ).make().agents
    agents.mkdir(exist_ok=True)
    head = {"name": name, "description": f"is {name}", "model": f"scripted:{script}", **fields}
    lines = [f"{key}: {value}" for key, value in head.items()]
    (agents / f"{name}.md").write_text("\n".join(["---", *lines, "---", f"You are {name}."]))


@asynccontextmanager
async def session_with_agents(
    tmp_path: Path,
    agents: Mapping[str, Sequence[dict[str, Any]]],
    *steps: dict[str, Any],
    settings: str = "",
    mode: Mode = "ask",
    mcp: McpServers | None = None,
) -> AsyncGenerator[ScriptedSession]:
    """`agents`: name → steps of its model. `settings`: added to `config.toml`."""
    with (find_home(os.environ).make().config / "config.toml").open("a") as file:
        file.write(settings)
    for name, agent_steps in agents.items():
        user_agent(tmp_path, name, agent_steps)
    async with scripted_session(tmp_path, *steps, mode=mode, mcp=mcp) as d:
        yield d


def agent(d: ScriptedSession, number: int = 1) -> SubAgent:
    return next(each for each in d.session.state.agents if each.agent_id == f"agent-{number}")


def results(d: ScriptedSession) -> list[str]:
    """What the session's model got of its calls, in order."""
    return [
        result.text for message in conversation(d.session) if isinstance(message, Results) for result in message.results
    ]


def nested(d: ScriptedSession, number: int = 1) -> list[ToolCall]:
    """The calls of a sub-agent that the session shows."""
    return [item for item in d.session.state.items if isinstance(item, ToolCall) and item.agent_id == f"agent-{number}"]
