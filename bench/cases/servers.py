"""What configured MCP servers cost: the first prompt, and the tokens of their tools in each request."""

import asyncio
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from bench.plan import Plan
from bench.run import Failed, Run
from bench.subject import Place, Subject
from bench.subjects.amanu import AmanuAgent, start
from bench.subjects.environment import ROOT

COUNT = 5
WIRE = "anthropic"
"""Which vendor makes no difference here."""
START_SECONDS = 60.0


async def measure(run: Run) -> None:
    for subject in run.subjects:
        if subject.name.startswith("Amanu") and subject.wire == WIRE:
            with_servers = Subject(
                f"{subject.name} with servers", subject.wire, False, partial(_start, subject.wire), subject.uses, ""
            )
            await run.attempt(subject, "MCP servers", partial(_agree, run, subject, with_servers))
            for _ in range(run.repeat):
                await run.attempt(subject, "MCP servers", partial(_first_prompt, run, subject, with_servers))


async def _agree(run: Run, subject: Subject, with_servers: Subject) -> None:
    """Agree to the servers, once they have told their tools count what these take."""
    agent = await _start(subject.wire, run.stage.place(with_servers, run.workspace))
    try:
        await agent.initialize()
        session = await agent.open(run.workspace)
        for server in (await agent.call("amanu/mcp/list", session))["servers"]:
            await agent.call("amanu/mcp/approve", session, name=server["name"], digest=server["digest"])
        listed: dict[str, Any] = {"servers": [{"tools": []}]}
        async with asyncio.timeout(START_SECONDS):
            while not all(server["tools"] for server in listed["servers"]):
                await asyncio.sleep(0.1)
                listed = await agent.call("amanu/mcp/list", session)
        deferred = await _tool_tokens(agent, session)
    finally:
        await agent.stop()
    if not listed["deferred"]:
        raise Failed("the tools were not deferred")
    plain = await start(subject.wire, run.stage.place(subject, run.workspace))
    try:
        await plain.initialize()
        none = await _tool_tokens(plain, await plain.open(run.workspace))
    finally:
        await plain.stop()
    run.results.add("mcp.tools.none", subject.name, none)
    run.results.add("mcp.tools.listed", subject.name, none + sum(server["tokens"] for server in listed["servers"]))
    run.results.add("mcp.tools", subject.name, deferred)


async def _first_prompt(run: Run, subject: Subject, with_servers: Subject) -> None:
    place = run.stage.place(with_servers, run.workspace)
    started = time.monotonic()
    agent = await _start(subject.wire, place)
    try:
        await agent.initialize()
        turn = agent.prompt(await agent.open(run.workspace), Plan())
        await turn.over.wait()
        if turn.first is None:
            raise Failed(turn.reason)
        run.results.add("mcp.cold", subject.name, (turn.first - started) * 1000)
    finally:
        await agent.stop()


async def _start(wire: str, place: Place) -> AmanuAgent:
    config = place.home / "amanu" / "config"
    config.mkdir(parents=True, exist_ok=True)
    table = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(ROOT / 'bench' / 'mcp_server.py'))}]\n"
    (config / "mcp.toml").write_text("".join(f"[servers.bench{number}]\n{table}" for number in range(COUNT)))
    read = json.dumps([str(ROOT), str(Path(sys.prefix)), str(Path(sys.base_prefix))])
    return await start(wire, place, more=f"[sandbox]\nread = {read}\n")


async def _tool_tokens(agent: AmanuAgent, session: str) -> float:
    """What all tools take in a request, by the daemon's estimate."""
    turn = agent.prompt(session, Plan())
    await turn.over.wait()
    state: dict[str, Any] = (await agent.call("amanu/session/attach", session))["state"]
    return float(state["usage"]["context"]["tools"])
