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
from amanu.cli.view import GUARD_SECONDS, mint
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ApprovalRequested, Event, ItemCompleted, ProposalChanged
from amanu_protocol.items import Approval, Mode, Proposal, ToolCall
from amanu_protocol.requests import ApprovalResolveParams
from amanu_protocol.state import SessionState, fold

if TYPE_CHECKING:
    from amanu.core.conversation import Entry
    from amanu.permissions.approvals import Approvals
    from amanu.session.audit_recorder import Audited
    from amanu.storage.journal import Journal
    from amanu.text.redaction import Secrets

TURN = "tool"


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amanu tool",
        description="Use one tool as the agent would: same guard, same policy. Prints one JSON object.",
        epilog="exit codes: 0 succeeded · 1 failed · 2 wrong usage · 3 denied · 130 cancelled",
    )
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("arguments", nargs="?", metavar="JSON", help="a JSON object; - reads it from standard input")
    parser.add_argument("--list", action="store_true", help="print names, descriptions and schemas")
    parser.add_argument(
        "--workspace", metavar="DIR", action="append", default=[], help="workspace folder (default: this one)"
    )
    parser.add_argument("--mode", choices=get_args(Mode), help="what may happen unasked (default: ask)")
    parser.add_argument("--allow", metavar="RULE", action="append", default=[], help="e.g. @write(src/**); repeatable")
    parser.add_argument("--yes", action="store_true", help="answer yes to what would be asked")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    if arguments.list:
        print(json.dumps({"tools": _specs()}, indent=2))
        return exits.OK
    roots = [Path(each).resolve() for each in arguments.workspace or ["."]]
    text = sys.stdin.read() if arguments.arguments == "-" else arguments.arguments
    try:
        given: Any = json.loads(text or "{}")
    except ValueError as error:
        return _misused(f"The arguments are not JSON: {error}.")
    if arguments.name is None:
        return _misused("Which tool? There is: amanu tool --list")
    if not isinstance(given, dict):
        return _misused("The arguments must be a JSON object.")
    missing = [root for root in roots if not root.is_dir()]
    if missing:
        return _misused(f"{missing[0]} is not a folder.")
    use = Use(arguments.name, cast("dict[str, Any]", given), roots, arguments.mode, arguments.allow, yes=arguments.yes)
    try:
        answer = asyncio.run(run(use, os.environ))
    except AmanuError as error:
        print(json.dumps({"error": {"kind": error.kind, "message": str(error), "hint": error.data.hint}}))
        return exits.of_error(error)
    print(json.dumps(answer, indent=2))
    return _CODES[answer["state"]]


_CODES = {"succeeded": exits.OK, "failed": exits.FAILED, "rejected": exits.DENIED, "cancelled": exits.CANCELLED}


@dataclass(frozen=True)
class Use:
    """One use of one tool."""

    name: str
    arguments: dict[str, Any]
    roots: list[Path]
    mode: Mode | None = None
    allow: list[str] = field(default_factory=list[str])
    yes: bool = False
    """Somebody answers what is asked, and says yes."""


async def run(use: Use, environ: Mapping[str, str]) -> dict[str, Any]:
    """Use the tool. Raises AmanuError for a rule or settings that are wrong; what the tool does wrong is in the
    answer. Ctrl-C cancels it in order."""
    from amanu.agent.calls import Calls
    from amanu.config import load_settings
    from amanu.core.conversation import Call
    from amanu.home import find_home
    from amanu.models.credentials import Auth
    from amanu.permissions.approvals import Approvals
    from amanu.permissions.policy import Circumstances, allow_rules, unasked
    from amanu.permissions.rule_store import Consent
    from amanu.permissions.trust_store import Trust
    from amanu.proposals.proposals import Proposals
    from amanu.sandbox.sandbox import Sandbox
    from amanu.session.audit_recorder import Audited
    from amanu.storage.audit_log import Audit
    from amanu.storage.journal import Journal
    from amanu.system import logs
    from amanu.text.redaction import Secrets
    from amanu.tools.environment import ToolEnvironment
    from amanu.tools.registry import make_tools
    from amanu.workspace.overlay import Overlay
    from amanu.workspace.workspace import Workspace

    home = find_home(environ).make()
    settings = load_settings(home, environ)
    logs.start(home, settings.log_level)
    sandbox = Sandbox(settings.sandbox, home)
    consent = Consent(home.config, settings)
    names = [str(root) for root in use.roots]
    trust = Trust(home.config / "trust.json", home.state / "trust", unasked, home.private)
    trusted = trust.standing(names) == "trusted"
    folder = home.state / "tool" / mint()
    journal = await Journal.open(folder)
    secrets = Secrets()
    Auth(home.config / "auth.json", secrets).learn(environ)
    secrets.learn(environ.get(name, "") for name in settings.key_variables)
    logs.hide(secrets)
    state = SessionState(
        session_id=f"tool-{folder.name}",
        title="amanu tool",
        roots=names,
        mode=use.mode or settings.mode,
        model_id="",
        trusted=trusted,
        read_only=False,
    )
    audit = Audit(home.audit, secrets, settings.history.keep_audit_mb)
    emit = Events(journal, secrets, Audited(audit, state))
    try:
        ripgrep = shutil.which("rg", path=environ.get("PATH"))
        workspace = Workspace(use.roots, Overlay(), ripgrep=ripgrep, private=home.private)
        proposals = Proposals(
            workspace, lambda proposal: emit(ProposalChanged(proposal=proposal)), journal.save_preimage
        )
        walls = (await sandbox.proved()).tier != "none" or settings.sandbox.without == "accept"
        circumstances = Circumstances(use.mode or settings.mode, trusted, walls)
        approvals = Approvals(
            emit,
            lambda: circumstances,
            lambda: consent.rules(names, trusted=trusted),
            lambda scope, rule: None,
            proposal=lambda proposal_id: emit.proposal,
            headless=not use.yes,
        )
        for text in use.allow:
            for rule in allow_rules(text, "--allow"):
                approvals.allow_in_session(rule)
        emit.answering = approvals if use.yes else None
        environment = ToolEnvironment(
            workspace, proposals, journal, environ, settings, secrets, sandbox, trusted=lambda: trusted
        )
        call = Call(call_id=mint(), tool=use.name, arguments=use.arguments)
        calls = Calls(
            [call],
            turn_id=TURN,
            step=1,
            tools=make_tools(environment, headless=True),
            approvals=approvals,
            emit=emit,
            fitting=_whole,
        )
        task = asyncio.create_task(calls.run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
        await asyncio.gather(task, return_exceptions=True)
        assert emit.item is not None, "every call ends with its item"
        diff = "" if emit.proposal is None else proposals.diff(emit.proposal.proposal_id)
        return _answer(emit.item, calls.results[0].text, diff)
    finally:
        await sandbox.close()
        await journal.close()
        await audit.close()
        if not emit.applied:  # no pre-image in it is needed one day
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


class Events:
    """Takes what happens; implements `agent.emit.Emit`."""

    def __init__(self, journal: "Journal", secrets: "Secrets", audited: "Audited") -> None:
        self._journal = journal
        self._secrets = secrets
        self._audited = audited
        self.item: ToolCall | None = None
        self.proposal: Proposal | None = None
        self.applied = False
        self.answering: Approvals | None = None
        self._answers: set[asyncio.Task[None]] = set()

    def __call__(self, event: Event, entry: "Entry | None" = None) -> None:
        fold(self._audited.state, event)
        self._audited.see(event, 0)
        match event:
            case ItemCompleted(item=ToolCall() as item):
                self.item = item
            case ProposalChanged(proposal=proposal):
                self.proposal = proposal
                states = {hunk.state for file in proposal.files for hunk in file.hunks}
                self.applied = self.applied or not states.isdisjoint({"accepted", "applied"})
            case ApprovalRequested(approval=approval) if self.answering is not None:
                task = asyncio.create_task(self._yes(self.answering, approval))
                self._answers.add(task)
                task.add_done_callback(self._answers.discard)
            case _:
                pass

    def delta(self, item_id: str, text: str) -> None:
        """Live output goes to stderr, where a person may watch it."""
        print(visible(text), end="", file=sys.stderr, flush=True)

    def plain(self, text: str) -> str:
        return self._secrets.mask_content(text)

    async def durable(self) -> None:
        await asyncio.gather(self._journal.durable(), self._audited.audit.durable())

    async def _yes(self, approvals: "Approvals", approval: Approval) -> None:
        await asyncio.sleep(GUARD_SECONDS)
        params = ApprovalResolveParams(
            session_id=TURN,
            tool_call_id=approval.tool_call_id,
            decision="allow",
            digest=approval.digest,
            grants=approval.wants,
        )
        approvals.resolve(params, "amanu tool --yes")


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
