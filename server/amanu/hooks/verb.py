"""`amanu hooks`: lists the hooks for a folder with their states, tries those of an event, and approves what they start.
It reads and writes the files itself: a running daemon sees each change with the next event."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from amanu.cli import exits
from amanu.cli.text import one_line, visible
from amanu_protocol.errors import AmanuError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from amanu.hooks.model import HookDecision, HookMoment, HookRun, HookView

DIGITS = 16
"""The number of digits of a digest, as it is shown and accepted."""


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="amanu hooks", description="Show, approve and test the hooks of a folder.")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("list", help="list them: what they run, what they may do, which are off and why")
    show.add_argument("--json", action="store_true", help="one JSON object per hook")
    approve = commands.add_parser("approve", help="approve hooks as they are now, with the files they run")
    approve.add_argument("digest", nargs="*", metavar="DIGEST", help="as printed by `list`")
    approve.add_argument("--all", action="store_true", help="all that need your approval")
    test = commands.add_parser("test", help="run the hooks of an event, and show what they answer")
    test.add_argument("event", metavar="EVENT", help="such as PreToolUse")
    test.add_argument("--tool", metavar="NAME", default="run_shell_command", help="the tool of the call")
    test.add_argument("--input", metavar="JSON", default='{"command": "true"}', help="its arguments")
    test.add_argument("--prompt", metavar="TEXT", default="Hello", help="for UserPromptSubmit")
    for subparser in (show, approve, test):
        subparser.add_argument(
            "--workspace", metavar="DIR", default=".", help="workspace folder (default: the current one)"
        )
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv or ["list"])  # the bare word looks
    try:
        folder = _HookFolder(Path(arguments.workspace))
        match arguments.command:
            case "list":
                return _list(folder, as_json=arguments.json)
            case "approve":
                return _approve(folder, arguments.digest, everything=arguments.all)
            case _:
                return asyncio.run(_test(folder, arguments))
    except AmanuError as error:
        print(visible(f"{error} {error.data.hint or ''}".rstrip()), file=sys.stderr)
        return exits.of_error(error)


class _HookFolder:
    """A workspace folder and its hooks. Raises `AmanuError` for invalid settings."""

    def __init__(self, folder: Path) -> None:
        from amanu.config import load_settings
        from amanu.home import find_home
        from amanu.hooks.hooks import Hooks
        from amanu.hooks.plugin_hooks import plugin_hooks
        from amanu.permissions.policy import unasked
        from amanu.permissions.trust_store import TrustStore
        from amanu.workspace.overlay import Overlay
        from amanu.workspace.workspace import Workspace

        if not folder.is_dir():
            raise AmanuError("invalidParams", f"{folder} is not a folder.", path="workspace")
        self.home = find_home(os.environ).make()
        self.settings = load_settings(self.home, os.environ)
        for warning in self.settings.warnings:
            print(visible(warning), file=sys.stderr)
        self.workspace = Workspace([folder.resolve()], Overlay(), private=self.home.private)
        trust = TrustStore(self.home.config / "trust.json", self.home.state / "trust", unasked, self.home.private)
        self.trusted = trust.standing([str(folder.resolve())]) == "trusted"
        self.hooks = Hooks(self.home.config, self.home.state / "hooks.json", partial(plugin_hooks, self.home.plugins))

    def views(self) -> "list[HookView]":
        return self.hooks.views(self.workspace, trusted=self.trusted, home=os.environ.get("HOME", ""))


def _list(folder: _HookFolder, *, as_json: bool) -> int:
    from amanu.hooks.report import listing

    views = folder.views()
    if as_json:
        for view in views:
            print(json.dumps(_wire(view)))
        return exits.OK
    unread = [] if folder.trusted else folder.hooks.unread(folder.workspace)
    print(visible(listing(views, unread)))
    waiting = [view for view in views if view.state in ("new", "changed")]
    if waiting:
        print("\nTo approve one as it is now, with the files it runs:")
    for view in waiting:
        print(f"  amanu hooks approve {view.digest[:DIGITS]}   # {one_line(view.hook.label)}")
    return exits.OK


def _wire(view: "HookView") -> dict[str, Any]:
    hook = view.hook
    return {
        "event": hook.event,
        "matcher": hook.matcher,
        "command": hook.command,
        "source": str(hook.source.path),
        "owner": hook.source.owner,
        "state": view.state,
        "reason": view.reason,
        "files": dict(view.files),
        "digest": view.digest,
    }


def _approve(folder: _HookFolder, digests: Sequence[str], *, everything: bool) -> int:
    waiting = [view for view in folder.views() if view.state in ("new", "changed")]
    chosen = waiting if everything else [view for view in waiting if view.digest[:DIGITS] in digests]
    missing = (
        [] if everything else [digest for digest in digests if digest not in {view.digest[:DIGITS] for view in chosen}]
    )
    if missing or not (digests or everything):
        what = f"No hook with the digest {missing[0]} needs your approval" if missing else "Give the digest of a hook"
        print(f"{what}; `amanu hooks list` shows them.", file=sys.stderr)
        return exits.USAGE
    folder.hooks.pins.approve(chosen)
    for view in chosen:
        print(f"Approved {view.hook.event}: {one_line(view.hook.label)}")
        for path in view.files:
            print(f"  {one_line(path)}")
    if not chosen:
        print("No hook needs your approval.")
    return exits.OK


async def _test(folder: _HookFolder, arguments: argparse.Namespace) -> int:
    from amanu.hooks.config import GEMINI_EVENTS
    from amanu.hooks.dispatch import run_hooks
    from amanu.hooks.matching import matches
    from amanu.hooks.model import Event
    from amanu.hooks.runner import HookPlace, HookRunner
    from amanu.sandbox.sandbox import Sandbox

    event = GEMINI_EVENTS.get(arguments.event, arguments.event)
    if event not in get_args(Event):
        print(f"There is no event {event!r}. Events: {', '.join(get_args(Event))}.", file=sys.stderr)
        return exits.USAGE
    moment = _moment(event, arguments)
    due = [view for view in folder.views() if matches(view.hook, moment)]
    for view in due:
        if view.state != "on":
            print(visible(f"Not run: {view.hook.label} {view.reason}"))
    sandbox = Sandbox(folder.settings.sandbox, folder.home)
    place = HookPlace(
        sandbox,
        folder.workspace,
        dict(os.environ),
        folder.settings.key_variables,
        "test",
        without_sandbox=folder.settings.sandbox.without == "accept",
    )
    try:
        outcome = await run_hooks(due, moment, place, HookRunner(), _print_run)
    finally:
        await sandbox.close()
    if not outcome.runs:
        print(f"No hook ran for {event}.")
        return exits.OK
    ends = f" The turn would end: {outcome.end_reason}" if outcome.ends else ""
    print(visible(f"Result: {outcome.action}. {outcome.reason}{ends}".rstrip()))
    return exits.OK


def _moment(event: "Any", arguments: argparse.Namespace) -> "HookMoment":
    from amanu.hooks.model import CallFacts, HookMoment

    match event:
        case "PreToolUse" | "PermissionRequest" | "PostToolUse" | "PostToolUseFailure":
            try:
                tree: Any = json.loads(arguments.input)
            except ValueError as error:
                raise AmanuError("invalidParams", f"--input is not JSON: {error}.") from None
            if not isinstance(tree, dict):
                raise AmanuError("invalidParams", "--input is not a JSON object.")
            call = cast("dict[str, Any]", tree)
            texts = [str(call[name]) for name in ("command", "path") if name in call]
            response: dict[str, JsonValue] = {"tool_response": {"content": "an example"}}
            return HookMoment(
                event,
                response if event == "PostToolUse" else {},
                call=CallFacts(arguments.tool, call, "test", commands=texts),
            )
        case "UserPromptSubmit":
            return HookMoment(event, {"prompt": arguments.prompt})
        case "SessionStart":
            return HookMoment(event, {"source": "startup"}, "startup")
        case "SessionEnd":
            return HookMoment(event, {"reason": "other"}, "other")
        case "PreCompact":
            return HookMoment(event, {"trigger": "manual", "custom_instructions": ""}, "manual")
        case _:
            return HookMoment(event, {"stop_hook_active": False, "last_assistant_message": "Done."})


def _print_run(run: "HookRun", decision: "HookDecision") -> None:
    how = run.failure or f"exit code {run.exit_code}"
    print(visible(f"{one_line(run.hook.label)}: {decision.action}, {how}, {run.seconds:.2f} s"))
    parts = {
        "reason": decision.reason,
        "context": decision.context,
        "message": decision.message,
        "input": "" if decision.updated_input is None else json.dumps(dict(decision.updated_input)),
        "next call": "" if decision.next_call is None else decision.next_call.tool,
        "not supported": " ".join(decision.ignored),
    }
    for name, text in parts.items():
        if text:
            print(visible(f"  {name}: {text}"))
