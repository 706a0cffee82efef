"""`amanu tool NAME '{json}'`: one tool, through the same guard, policy and proposals as in a turn. JSON out."""

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from amanu.cli import exits
from amanu.cli.report import decision_json
from amanu.cli.text import visible
from amanu.client.session_view import GUARD_SECONDS, mint
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ApprovalRequested, Event, ItemCompleted, ProposalChanged
from amanu_protocol.items import Approval, Mode, Proposal, ToolCall
from amanu_protocol.requests import ApprovalResolveParams
from amanu_protocol.state import SessionState

if TYPE_CHECKING:
    from amanu.core.conversation import Entry
    from amanu.session.core import SessionCore

TURN = "tool"


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu tool",
        description="Run one tool as the agent would: same path guard, same policy. Prints one JSON object.",
        epilog="exit codes: 0 succeeded · 1 failed · 2 wrong usage · 3 denied · 130 cancelled",
    )
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("arguments", nargs="?", metavar="JSON", help="a JSON object; - reads it from standard input")
    parser.add_argument("--list", action="store_true", help="print names, descriptions and schemas")
    parser.add_argument(
        "--workspace", metavar="DIR", action="append", default=[], help="workspace folder (default: the current one)"
    )
    parser.add_argument("--mode", choices=get_args(Mode), help="what is allowed without asking (default: ask)")
    parser.add_argument("--allow", metavar="RULE", action="append", default=[], help="e.g. @write(src/**); repeatable")
    parser.add_argument("--yes", action="store_true", help="approve whatever needs approval")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    if arguments.list:
        print(json.dumps({"tools": _specs()}, indent=2))
        return exits.OK
    roots = [Path(folder).resolve() for folder in arguments.workspace or ["."]]
    text = sys.stdin.read() if arguments.arguments == "-" else arguments.arguments
    try:
        tree: Any = json.loads(text or "{}")
    except ValueError as error:
        return _misused(f"The arguments are not JSON: {error}.")
    if arguments.name is None:
        return _misused("Name a tool; amanu tool --list shows them.")
    if not isinstance(tree, dict):
        return _misused("The arguments must be a JSON object.")
    missing = [root for root in roots if not root.is_dir()]
    if missing:
        return _misused(f"{missing[0]} is not a folder.")
    use = ToolUse(
        arguments.name, cast("dict[str, Any]", tree), roots, arguments.mode, arguments.allow, yes=arguments.yes
    )
    try:
        answer = asyncio.run(run(use, os.environ))
    except AmanuError as error:
        print(json.dumps({"error": {"kind": error.kind, "message": str(error), "hint": error.data.hint}}))
        return exits.of_error(error)
    print(json.dumps(answer, indent=2))
    return _CODES[answer["state"]]


_CODES = {"succeeded": exits.OK, "failed": exits.FAILED, "rejected": exits.DENIED, "cancelled": exits.CANCELLED}


@dataclass(frozen=True)
class ToolUse:
    """One use of one tool."""

    name: str
    arguments: dict[str, Any]
    roots: list[Path]
    mode: Mode | None = None
    allow: list[str] = field(default_factory=list[str])
    yes: bool = False
    """Somebody answers what is asked, and says yes."""


async def run(use: ToolUse, environ: Mapping[str, str]) -> dict[str, Any]:
    """Use the tool. Raises AmanuError for a rule or settings that are wrong; what the tool does wrong is in the
    answer. Ctrl-C cancels it in order."""
    from amanu.agent.calls import CallEnvironment, Calls
    from amanu.config import load_settings
    from amanu.core.agent import AgentLimits, AgentRun, SystemPrompt
    from amanu.core.conversation import Call
    from amanu.home import find_home
    from amanu.parts import daemon_parts
    from amanu.permissions.offers import rules_of
    from amanu.session.core import SessionCore
    from amanu.session.daemon_part import parts_of
    from amanu.session.restore import Restored
    from amanu.session.services import make_services
    from amanu.storage.journal import Journal
    from amanu.system import logs
    from amanu.tools.registry import make_tools

    home = find_home(environ).make()
    settings = load_settings(home, environ)
    for warning in settings.warnings:
        print(visible(warning), file=sys.stderr)
    logs.start(home, settings.log_level)
    services = make_services(home, settings, headless=not use.yes)
    services.auth.learn(environ)
    roots = [str(root) for root in use.roots]
    folder = home.state / "tool" / mint()
    journal = await Journal.open(folder)
    state = SessionState(
        session_id=f"tool-{folder.name}",
        title="amanu tool",
        roots=roots,
        mode=use.mode or settings.mode,
        model_id="",
        trusted=services.trust.standing(roots) == "trusted",
        read_only=False,
    )
    core = SessionCore(services, journal, Restored(state))
    core.environment.replace(environ)
    core.workspace.ripgrep = shutil.which("rg", path=environ.get("PATH"))
    core.proposal_listeners.append(core.approvals.on_proposal)
    events = ToolEvents(core, yes=use.yes)
    core.parts = parts_of(core, [part(home, settings, None) for part in daemon_parts()])
    try:
        await services.sandbox.proved()
        for text in use.allow:
            for rule in rules_of(text, "--allow"):
                core.approvals.allow_in_session(rule)
        tools = make_tools(core.tool_environment(), headless=True)
        alone = AgentRun(TURN, "", core.conversation, lambda _: SystemPrompt(""), tools, AgentLimits(1, 1), core.emit)
        listeners = core.parts.listeners(alone)
        calls = Calls(
            [Call(call_id=mint(), tool=use.name, arguments=use.arguments)],
            1,
            CallEnvironment(TURN, tools, core.approvals, events, _whole, listeners),
        )
        task = asyncio.create_task(calls.run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
        await asyncio.gather(task, return_exceptions=True)
        assert events.item is not None, "every call ends with its item"
        diff = "" if events.proposal is None else core.proposals.diff(events.proposal.proposal_id)
        return _answer(events.item, calls.results[0].text, diff)
    finally:
        await core.parts.stop()
        await core.jobs.stop()
        await core.layer.close()
        await core.proposals.close()
        await services.sandbox.close()
        await journal.close()
        await services.audit.close()
        await services.watching.close()
        services.events.close()
        if not events.applied:  # no pre-image in it is needed one day
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


class ToolEvents:
    """Takes what happens; implements `core.emit.Emit`. `yes`: somebody answers what is asked, and says yes."""

    def __init__(self, core: "SessionCore", *, yes: bool) -> None:
        self._core = core
        self._yes = yes
        self.item: ToolCall | None = None
        self.proposal: Proposal | None = None
        self.applied = False
        self._answers: set[asyncio.Task[None]] = set()
        core.emit.listeners.append(self._on_event)

    def __call__(self, event: Event, entry: "Entry | None" = None) -> None:
        self._core.emit(event, entry)

    def delta(self, item_id: str, text: str) -> None:
        """Live output goes to stderr, where a user may watch it."""
        print(visible(text), end="", file=sys.stderr, flush=True)

    def redact(self, text: str) -> str:
        return self._core.emit.redact(text)

    async def durable(self) -> None:
        await self._core.emit.durable()

    def _on_event(self, event: Event, position: int) -> None:
        match event:
            case ItemCompleted(item=ToolCall() as item):
                self.item = item
            case ProposalChanged(proposal=proposal):
                self.proposal = proposal
                states = {change.state for change in proposal.changes}
                self.applied = self.applied or not states.isdisjoint({"accepted", "applied"})
            case ApprovalRequested(approval=approval) if self._yes:
                task = asyncio.create_task(self._allow(approval))
                self._answers.add(task)
                task.add_done_callback(self._answers.discard)
            case _:
                pass

    async def _allow(self, approval: Approval) -> None:
        await asyncio.sleep(GUARD_SECONDS)
        params = ApprovalResolveParams(
            session_id=TURN,
            tool_call_id=approval.tool_call_id,
            decision="allow",
            digest=approval.digest,
            grants=approval.likely_grants,
        )
        self._core.approvals.resolve(params, "amanu tool --yes")


def _answer(item: ToolCall, result: str, diff: str) -> dict[str, Any]:
    ok = item.state == "succeeded"
    return {
        "tool": item.tool,
        "title": item.title,
        "state": item.state,
        "decision": decision_json(item.decision),
        "output": result if ok or item.error is None else "",
        "diff": diff,
        "error": item.error,
    }


def _specs() -> list[dict[str, Any]]:
    from amanu.config import Settings
    from amanu.tools.registry import preview_tools
    from amanu.workspace.overlay import Overlay
    from amanu.workspace.workspace import Workspace

    tools = preview_tools(Workspace([Path("/")], Overlay(), ripgrep=None), {}, Settings())
    return [
        {"name": spec.name, "effect": tool.effect, "description": spec.description, "parameters": spec.parameters}
        for tool in tools.values()
        for spec in [tool.spec()]
    ]


def _misused(message: str) -> int:
    print(visible(message), file=sys.stderr)
    return exits.USAGE


async def _whole(text: str) -> str:
    """No model reads it: nothing is too long."""
    return text
