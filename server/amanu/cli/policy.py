"""`amanu policy`: what policy decides about a call, and by which rule. Runs nothing."""

import argparse
import asyncio
import contextlib
import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from amanu.cli import exits
from amanu.cli.console import Console, open_console
from amanu.cli.text import one_line, visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import CommandPart, Mode, ScopeOffer

if TYPE_CHECKING:
    from amanu.config import LimitSettings
    from amanu.core.rules import Rule
    from amanu.core.tool import Subject
    from amanu.permissions.policy import Verdict

SHELL = "run_shell_command"
_FIELDS = {"id", "tool", "arguments", "rules", "mode", "trusted", "workspace"}
_STYLES: dict[str, Literal["green", "yellow", "red"]] = {"allow": "green", "ask": "yellow", "deny": "red"}


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="amanu policy", description="What is allowed without asking, and why.")
    commands = parser.add_subparsers(dest="command", required=True)
    explain = commands.add_parser(
        "explain",
        help="explain the decision about a command or another tool call",
        epilog="With --stdin: one JSON object per line, {id, tool, arguments, rules?: {allow: [...], deny: [...]}, "
        "mode?, trusted?, workspace?}; the rules are command prefixes, added to yours. Answers in the "
        "same order: {id, decision, rule, why, tried, scopes}. Decisions assume a working sandbox; without "
        "one, rules for commands do not count (sandbox.without). Exit codes: 0 answered · 2 wrong usage",
    )
    explain.add_argument("line", nargs="?", metavar="COMMAND", help="a command line, in quotes")
    explain.add_argument("--stdin", action="store_true", help="many calls, one JSON object per line")
    explain.add_argument(
        "--tool", metavar="NAME", default=SHELL, help=f"a tool other than {SHELL}; its arguments are JSON"
    )
    explain.add_argument("--workspace", metavar="DIR", default=".", help="workspace folder (default: the current one)")
    explain.add_argument("--mode", choices=get_args(Mode), default=None, help="default: from your settings")
    explain.add_argument("--allow", metavar="RULE", action="append", default=[], help="as if you also had this rule")
    explain.add_argument("--trusted", action="store_true", default=None, help="as if you trusted the folder")
    explain.add_argument("--json", action="store_true", help="one JSON object")
    rules = commands.add_parser("rules", help="list all rules in force, by mode and folder")
    rules.add_argument("--workspace", metavar="DIR", default=".", help="workspace folder (default: the current one)")
    rules.add_argument("--mode", choices=get_args(Mode), default=None, help="default: from your settings")
    return parser


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    try:
        if arguments.command == "rules":
            return _show_rules(arguments)
        if arguments.stdin:
            return asyncio.run(_many())
        return asyncio.run(_one(arguments))
    except AmanuError as error:
        print(visible(f"{error} {error.data.hint or ''}".rstrip()), file=sys.stderr)
        return exits.of_error(error)


@dataclass(frozen=True)
class PolicyQuery:
    """One call to explain."""

    tool: str
    arguments: Mapping[str, Any]
    workspace: str = "."
    mode: Mode | None = None
    trusted: bool | None = None
    rules: Sequence["Rule"] = ()
    """Beside those in force."""


@dataclass(frozen=True)
class PolicyExplanation:
    decision: Literal["allow", "ask", "deny", "error"]
    rule: str
    why: str
    parts: list[CommandPart] = field(default_factory=list[CommandPart])
    scopes: list[ScopeOffer] = field(default_factory=list[ScopeOffer])
    until: str = ""
    """How often in a turn, where that is counted. A sentence."""
    tried: bool = False
    """It is tried first, on a private copy or with nothing writable; the user is asked only if that blocks it."""
    permitted_by: list[str] = field(default_factory=list[str])
    """The rules that would allow what needs approval, if the user wrote them; none where no rule can."""

    def wire(self) -> dict[str, Any]:
        scopes = [scope.model_dump(mode="json") for scope in self.scopes]
        return {
            "decision": self.decision,
            "rule": self.rule,
            "why": self.why,
            "tried": self.tried,
            "scopes": scopes,
        }


async def explain(query: PolicyQuery) -> PolicyExplanation:
    """What would be decided about that call, and what each answer would save. A call no tool would take is an `error`
    that says why. Raises `AmanuError` for settings and rules that are wrong."""
    from amanu.core.tool import ToolError
    from amanu.permissions.offers import offers, permitting
    from amanu.permissions.policy import PolicyContext, command_parts, decide, decide_all

    context = _place(query.workspace)
    when = PolicyContext(query.mode or context.mode, context.trusted if query.trusted is None else query.trusted)
    rules = (*_in_force(when.mode, context), *query.rules)

    def allowed(subjects: "Sequence[Subject]") -> "list[Subject]":
        return [subject for subject in subjects if decide(rules, subject, when).decision == "allow"]

    try:
        subjects = await _subjects(query, context, allowed, trusted=when.trusted)
    except _Outside as error:
        return PolicyExplanation("deny", "the path guard", str(error))
    except ToolError as error:
        return PolicyExplanation("error", "", str(error))
    verdict, verdicts = decide_all(rules, subjects, when)
    verdict, until = _within_ceilings(verdict, subjects, context.settings.limits)
    judged = list(zip(subjects, verdicts, strict=True))
    open_ones = [entry for entry in judged if entry[1].decision != "allow"]
    offered = offers(open_ones if verdict.rememberable else [], allowed=len(judged) - len(open_ones))
    scopes = offered if verdict.decision == "ask" else []
    parts = command_parts(judged)
    why = next((part.reason for part in parts if part.decision == verdict.decision and part.rule == verdict.rule), "")
    permitted_by = permitting(rules, subjects, when) if verdict.decision == "ask" else []
    tried = verdict.may_be_tried and _is_worth_trying(query, subjects)
    return PolicyExplanation(
        verdict.decision, verdict.rule, why or _sentence(verdict), parts, scopes, until, tried, permitted_by
    )


def _is_worth_trying(query: PolicyQuery, subjects: "Sequence[Subject]") -> bool:
    from amanu.tools.shell.command_params import RunShellCommandParams, is_worth_trying

    if query.tool != SHELL:
        return False
    params = RunShellCommandParams.model_validate(query.arguments)
    return not params.background and is_worth_trying(
        params, [subject.command for subject in subjects if subject.command is not None]
    )


async def _subjects(query: PolicyQuery, context: "_WorkspacePolicy", allowed: Any, *, trusted: bool) -> "list[Subject]":
    from amanu.core.tool import CallContext, Subject, ToolError

    tool = context.tools(trusted).get(query.tool)
    if tool is None:
        raise ToolError(f"Unknown tool {query.tool!r}. Available: {', '.join(sorted(context.tools(trusted)))}.")
    params = tool.parse(query.arguments).params
    if tool.effect == "run":
        preview = await tool.preview(params, CallContext("explained", "", 1, allowed=allowed))
        return [preview.subject, *preview.extra_subjects]
    try:
        paths = [context.workspace.relative(context.workspace.resolve(path)) for path in _paths(query)]
    except ToolError as error:
        raise _Outside(str(error)) from None
    return [Subject(query.tool, tool.effect, path, arguments=query.arguments) for path in paths]


def _paths(query: PolicyQuery) -> Iterator[str]:
    """What a call of a file tool is about, looked at no closer than its arguments."""
    from amanu.tools.edits.patch import parse_patch

    paths = [query.arguments.get("path"), query.arguments.get("new_path"), *query.arguments.get("paths", ())]
    if "patch" in query.arguments:
        for file in parse_patch(query.arguments["patch"]):
            paths += [file.path, file.new_path]
    named = [str(path) for path in paths if path]
    yield from named or ["."]


class _Outside(Exception):
    """No tool reaches that path, whatever rules say."""


class _WorkspacePolicy:
    """A workspace folder, as the user's rules see it."""

    def __init__(self, folder: Path) -> None:
        from amanu.config import load_settings
        from amanu.home import find_home
        from amanu.permissions.policy import unasked
        from amanu.permissions.rule_store import RuleStore
        from amanu.permissions.trust_store import TrustStore
        from amanu.workspace.overlay import Overlay
        from amanu.workspace.workspace import Workspace

        home = find_home(os.environ)
        self.settings = load_settings(home, os.environ)
        for warning in self.settings.warnings:
            print(visible(warning), file=sys.stderr)
        self.mode: Mode = self.settings.mode
        self.root = str(folder)
        self.consent = RuleStore(home.config, self.settings)
        trust = TrustStore(home.config / "trust.json", home.state / "trust", unasked, home.private)
        self.trusted = trust.standing([self.root]) == "trusted"
        self.workspace: Workspace = Workspace([folder], Overlay(), private=home.private)

    @cache  # noqa: B019 - as many as there are folders to explain
    def tools(self, trusted: bool) -> dict[str, Any]:
        from amanu.tools.registry import preview_tools

        return preview_tools(self.workspace, os.environ, self.settings, trusted=trusted)


@cache
def _place(folder: str) -> _WorkspacePolicy:
    path: Path | None = None
    with contextlib.suppress(OSError, ValueError, RuntimeError):  # a NUL, too long, a ring of links
        path = Path(folder).resolve()
        path = path if path.is_dir() else None
    if path is None:
        raise AmanuError("invalidParams", f"{folder!r} is not a folder.", path="workspace")
    return _WorkspacePolicy(path)


def _in_force(mode: Mode, context: _WorkspacePolicy) -> "tuple[Rule, ...]":
    from amanu.permissions.policy import built_in, of_mode

    return (*built_in(), *of_mode(mode), *context.consent.rules([context.root], trusted=context.trusted))


def _within_ceilings(
    verdict: "Verdict", subjects: "Sequence[Subject]", limits: "LimitSettings"
) -> "tuple[Verdict, str]":
    """A session counts what rules allow in a turn; here there is none. So that is said, and nothing is left where the
    ceiling is the floor."""
    from amanu.permissions.policy import Verdict, acts

    if verdict.decision != "allow" or not any(map(acts, subjects)):
        return verdict, ""
    for name, most in (("commands", limits.unasked_commands), ("seconds", limits.unasked_seconds)):
        if not most:
            return Verdict("ask", f"limits.unasked_{name} is 0", rememberable=False, why=verdict.why), ""
    return verdict, (
        f"Per turn, for {limits.unasked_commands} such commands, and until they took {limits.unasked_seconds:g} s; "
        "then it is asked about (limits.unasked_…)."
    )


def _sentence(verdict: "Verdict") -> str:
    from amanu.text.wording import rule_in_words

    outcome = {"allow": "Allowed without asking", "ask": "Needs approval", "deny": "Denied"}[verdict.decision]
    return f"{outcome}: {rule_in_words(verdict.rule)}."


async def _one(arguments: argparse.Namespace) -> int:
    from amanu.permissions.offers import rules_of

    if arguments.line is None:
        print('amanu policy explain: give a command in quotes, e.g. "git status", or --stdin', file=sys.stderr)
        return exits.USAGE
    call_arguments = {"command": arguments.line} if arguments.tool == SHELL else _object(arguments.line)
    rules = [rule for text in arguments.allow for rule in rules_of(text, "--allow")]
    query = PolicyQuery(arguments.tool, call_arguments, arguments.workspace, arguments.mode, arguments.trusted, rules)
    explanation = await explain(query)
    if arguments.json:
        parts = [part.model_dump(mode="json") for part in explanation.parts]
        print(json.dumps({**explanation.wire(), "parts": parts, "until": explanation.until}))
    else:
        _draw(open_console(sys.stdout), explanation)
    return exits.USAGE if explanation.decision == "error" else exits.OK


_TRIED = (
    "It runs at once, on a private copy of the workspace or with nothing writable; you are asked if that blocks it."
)


def _draw(console: Console, explanation: PolicyExplanation) -> None:
    console.line(
        (_STYLES.get(explanation.decision, "red"), explanation.decision), ("", f"  {one_line(explanation.why, 400)}")
    )
    if explanation.rule:
        console.line(("dim", f"       {one_line(explanation.rule, 400)}"))
    if explanation.tried:
        console.line(("", f"       {_TRIED}"))
    if explanation.until:
        console.line(("dim", f"       {explanation.until}"))
    if len(explanation.parts) > 1:
        for part in explanation.parts:
            console.line((_STYLES[part.decision], f"  {part.decision:5}"), ("", f" {one_line(part.text, 200)}"))
            console.line(("dim", f"        {one_line(part.reason or part.rule, 400)}"))
    saved = {offer.rule: offer for offer in explanation.scopes if offer.rule}
    for rule, offer in saved.items():
        scopes = ", ".join(offer.scope for offer in explanation.scopes if offer.rule == rule)
        for line in rule.splitlines():
            console.line(("dim", "an approval could save: "), ("", one_line(line, 200)), ("dim", f"  ({scopes})"))
        console.line(("dim", f"  {offer.explanation}"))
    if explanation.decision == "ask" and not saved:
        _draw_unsaved(console, explanation)


def _draw_unsaved(console: Console, explanation: PolicyExplanation) -> None:
    """No answer can save a rule for it; a rule the user writes may allow it all the same."""
    if not explanation.permitted_by:
        console.line(("dim", "No rule can allow this: it needs approval each time."))
        return
    console.line(("dim", "It needs approval each time, unless a rule you write (config.toml, --allow) allows it:"))
    for rule in explanation.permitted_by:
        console.line(("", f"  {one_line(rule, 200)}"))


async def _many() -> int:
    for data in sys.stdin.buffer:
        line = data.decode("utf-8", "replace")
        if line.strip():
            print(json.dumps(await _answer(line)), flush=True)
    return exits.OK


async def _answer(line: str) -> dict[str, Any]:
    request: dict[str, Any] = {}
    try:
        request = _object(line)
        explanation = await explain(_query(request))
    except AmanuError as error:
        explanation = PolicyExplanation("error", "", str(error))
    except Exception as error:  # a line nobody thought of must not cost the others their answers
        explanation = PolicyExplanation("error", "", f"Internal error ({type(error).__name__}).")
    return {"id": request.get("id"), **explanation.wire()}


def _query(request: dict[str, Any]) -> PolicyQuery:
    from amanu.core.rules import format_command_pattern, parse_rule

    unknown = set(request) - _FIELDS
    if unknown:
        raise AmanuError("invalidParams", f"Unknown field {sorted(unknown)[0]!r}.", path=sorted(unknown)[0])
    tool, arguments = request.get("tool", SHELL), request.get("arguments")
    mode, workspace, trusted = request.get("mode"), request.get("workspace") or ".", request.get("trusted")
    if not isinstance(tool, str) or not isinstance(arguments, dict) or not isinstance(workspace, str):
        raise AmanuError("invalidParams", "tool and workspace must be strings, arguments an object.")
    if mode is not None and mode not in get_args(Mode):
        raise AmanuError(
            "invalidParams", f"{mode!r} is not a mode; available: {', '.join(get_args(Mode))}.", path="mode"
        )
    if trusted is not None and not isinstance(trusted, bool):
        raise AmanuError("invalidParams", "trusted must be true or false.", path="trusted")
    rules = [
        parse_rule(kind, f"@run({format_command_pattern(_tokens(prefix), any_rest=True)})", "given")
        for kind, prefixes in _prefixes(request.get("rules")).items()
        for prefix in prefixes
    ]
    return PolicyQuery(tool, cast("dict[str, Any]", arguments), workspace, mode, trusted, rules)


def _prefixes(rules: object) -> "dict[Literal['allow', 'deny'], list[object]]":
    if rules is None:
        return {}
    prefixes = cast("dict[Literal['allow', 'deny'], list[object]]", rules)
    if not isinstance(rules, dict) or set(prefixes) - {"allow", "deny"}:
        raise AmanuError("invalidParams", "rules must be an object with the lists allow and deny.", path="rules")
    if not all(isinstance(entry, list) for entry in prefixes.values()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise AmanuError("invalidParams", "rules must be an object with the lists allow and deny.", path="rules")
    return prefixes


def _tokens(prefix: object) -> tuple[str, ...]:
    """A token prefix, as a text or as a list of tokens."""
    try:
        tokens = shlex.split(prefix) if isinstance(prefix, str) else cast("list[str]", prefix)
        tokens = tokens[:-1] if tokens[-1:] == ["*"] else tokens
        if tokens and all(isinstance(word, str) for word in tokens):  # pyright: ignore[reportUnnecessaryIsInstance]
            return tuple(tokens)
    except (TypeError, ValueError):
        pass
    raise AmanuError("invalidRule", f"{prefix!r} is not a command prefix such as 'git commit'.", path="rules")


def _object(text: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AmanuError("invalidParams", f"This is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise AmanuError("invalidParams", "This is not a JSON object.")
    return cast("dict[str, Any]", value)


def _show_rules(arguments: argparse.Namespace) -> int:
    context = _place(arguments.workspace)
    mode = arguments.mode or context.mode
    console = open_console(sys.stdout)
    console.line(("dim", f"Mode {mode}. A matching deny wins, then mustAsk, then allow; anything else needs approval."))
    for rule in _in_force(mode, context):
        style = _STYLES.get(rule.kind, "yellow")
        reason = f"  {rule.reason}" if rule.reason else ""
        console.line((style, f"{rule.kind:8}"), ("", visible(rule.text)), ("dim", f"  {visible(rule.origin)}{reason}"))
    return exits.OK
