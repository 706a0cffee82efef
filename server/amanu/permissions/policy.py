"""Which calls are allowed, asked about or denied, and by which rule.

A matching deny wins, then a matching must-ask, then a matching allow; where nothing matches the answer is ask. Modes
are sets of rules in files (`modes/`), not branches. How a rule is written: `core/rules.py`; when it matches:
`matching.py`; what an answer may remember: `offers.py`.

A command line is decided on command by command (`shell/`); one that is not understood can only be asked about.
"""

import importlib.resources
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from amanu.core import protected_paths as protected
from amanu.core.rules import Kind, Rule, RuleTable
from amanu.core.tool import Subject
from amanu.permissions.matching import RulesInForce, destroying_words, names_command
from amanu.text.display import visible
from amanu.text.wording import NO_RULE
from amanu_protocol.items import CommandPart, Grant, Mode


@dataclass(frozen=True)
class PolicyContext:
    """What else a decision depends on."""

    mode: Mode = "ask"
    trusted: bool = False
    sandboxed: bool = True
    """Commands run in a sandbox, or the user has accepted that they do not."""
    time: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True)
class Verdict:
    """What policy says about a subject, or about a whole call."""

    decision: Literal["allow", "ask", "deny"]
    rule: str
    """The rule that decided, with its origin; or why no rule did, as a clause: "no rule allows it"."""
    rememberable: bool = True
    """False when only `once` can be answered."""
    grants: tuple[Grant, ...] = ()
    """The access it has besides, if it is allowed."""
    named: bool = False
    """The command is allowed by a rule that names it, so by one of the user's."""
    why: str = ""
    """A sentence about the command, for the user."""
    may_be_tried: bool = False
    """A command that is asked about, but may first be tried where it can change nothing: no rule is about it."""


NOTHING_MATCHED = NO_RULE
HIDDEN = "its name contains characters that are invisible or change the direction of text"
DESTROYS = "it destroys work that cannot be undone, and no rule allows that explicitly"
NOT_UNDERSTOOD = "Amanu cannot fully analyze this command"
NO_SANDBOX = "no sandbox works on this machine, so rules cannot allow commands (setting sandbox.without)"
MAY_MATCH = "this rule may apply, depending on what the command expands to when it runs"
NOT_READ_ONLY = "in plan mode a tool of an MCP server needs one of your rules to allow it"
NOT_FOR_PLANNING = (
    "in plan mode your rule allows only tools the server calls read-only; this tool needs a rule with mode = 'plan'"
)
DRAFTED = "it is drafted, and reviewed later"
TRIAL = "it is tried first, on a private copy of the workspace or with nothing writable"
NO_NETWORK = "the commands of this line share one sandbox, and this rule does not allow network access"


def decide(rules: Collection[Rule], subject: Subject, context: PolicyContext | None = None) -> Verdict:
    """The verdict on one thing a call is about, with the rule that gave it."""
    return decide_each(rules, [subject], context)[0]


def decide_each(
    rules: Collection[Rule], subjects: Iterable[Subject], context: PolicyContext | None = None
) -> list[Verdict]:
    """The verdict on each of them: in a fraction of the time that as many calls of `decide` take."""
    context = context or PolicyContext()
    in_force = RulesInForce(rules, context.mode, context.time, trusted=context.trusted)
    return [_decide(rules, in_force, subject, context) for subject in subjects]


def _decide(rules: Collection[Rule], in_force: RulesInForce, subject: Subject, context: PolicyContext) -> Verdict:
    command = subject.command
    why = command.why if command is not None else ""
    matching, perhaps = in_force.match(subject)
    if (deny := _first(matching, "deny")) is not None:
        return Verdict("deny", str(deny), why=why)
    if (must_ask := _first(matching, "mustAsk")) is not None:
        return Verdict("ask", str(must_ask), rememberable=False, why=why)
    if perhaps:
        return Verdict("ask", f"{MAY_MATCH}: {perhaps[0]}", rememberable=False, why=why)
    if subject.must_ask:
        return Verdict("ask", subject.must_ask, rememberable=False)
    if subject.unclear:
        return Verdict(
            "ask",
            NOT_UNDERSTOOD,
            rememberable=False,
            why=subject.because,
            may_be_tried=not any(_forbids_commands(rule, subject) for rule in rules),
        )
    if subject.effect == "write" and ("\n" in subject.text or visible(subject.text) != subject.text):
        return Verdict("ask", HIDDEN, rememberable=False)
    if subject.server and is_read_only(context.mode):
        return _in_read_only_mode(matching, subject, context.mode)
    if (allowed := _allowed(matching, subject, why, sandboxed=context.sandboxed)) is not None:
        return allowed
    if matching:
        return Verdict("ask", NO_SANDBOX, rememberable=False, why=why)
    if command is not None and destroying_words(command):
        return Verdict("ask", DESTROYS, rememberable=False, why=why, may_be_tried=drafts(context.mode))
    if subject.permitted_by and subject.reach == "workspace" and (context.sandboxed or subject.effect != "run"):
        return Verdict("allow", subject.permitted_by, why=why)
    rememberable = command is None or command.prefix is not None
    return Verdict("ask", NOTHING_MATCHED, rememberable=rememberable, why=why, may_be_tried=command is not None)


def _forbids_commands(rule: Rule, subject: Subject) -> bool:
    """Whether the rule denies or asks about some commands that an unclear line could contain."""
    return rule.kind != "allow" and bool(rule.patterns) and bool({"@run", "*", subject.tool} & {*rule.targets})


def _in_read_only_mode(matching: Iterable[Rule], subject: Subject, mode: Mode) -> Verdict:
    """The verdict on a call of an MCP server where nothing may change. Nothing holds a server to that, so only a rule
    of the user's allows it: one for this mode, or, if the server says that the tool only reads, any. Without one the
    user is asked about a tool that is said to only read, and any other is denied."""
    matching = list(matching)
    rule = next((rule for rule in matching if subject.read_only or mode in rule.modes), None)
    if rule is None and subject.read_only:
        return Verdict("ask", NOTHING_MATCHED)
    if rule is None:
        reason = NOT_FOR_PLANNING if matching else NOT_READ_ONLY
        return Verdict("deny", f"mode {mode}: deny {subject.tool} ({reason})")
    return Verdict("allow", str(rule))


def _first(rules: Iterable[Rule], kind: Kind) -> Rule | None:
    return next((rule for rule in rules if rule.kind == kind), None)


def _allowed(matching: Sequence[Rule], subject: Subject, why: str, *, sandboxed: bool) -> Verdict | None:
    """The verdict of the matching allow rule that grants most. None when there is none, or none that counts for a
    command without a sandbox."""
    runs = subject.effect == "run" and not subject.server  # a server has the sandbox it was approved with
    for rule in sorted(matching, key=lambda rule: (not rule.unsandboxed, not rule.network)):
        if not runs or sandboxed or rule.harmless or rule.unsandboxed:
            return Verdict(
                "allow",
                str(rule),
                grants=_grants(rule),
                named=runs and any(map(names_command, matching)),
                why=why,
            )
    return None


def _grants(rule: Rule) -> tuple[Grant, ...]:
    """Return the rule's grants. `unsandboxed` alone says enough: nothing keeps such a command from the network."""
    return ("unsandboxed",) if rule.unsandboxed else ("network",) if rule.network else ()


_STRICTEST_FIRST = ("deny", "ask", "allow")


def decide_all(
    rules: Sequence[Rule], subjects: Sequence[Subject], context: PolicyContext | None = None
) -> tuple[Verdict, list[Verdict]]:
    """(The verdict on a call about all of them, the verdict on each.) The strictest counts: of two that ask, the one no
    rule can answer. The commands of a line run in the same sandbox: with the network when each that has an effect may
    have it; when only some may, and need it, that is asked about. So with the sandbox."""
    context = context or PolicyContext()
    verdicts = decide_each(rules, subjects, context)
    strictest = min(verdicts, key=lambda verdict: (_STRICTEST_FIRST.index(verdict.decision), verdict.rememberable))
    if strictest.decision != "allow":
        may_be_tried = all(verdict.may_be_tried for verdict in verdicts if verdict.decision != "allow")
        return replace(strictest, grants=(), named=False, may_be_tried=may_be_tried), verdicts
    pairs = zip(subjects, verdicts, strict=True)
    acting = [(subject, verdict) for subject, verdict in pairs if acts(subject) or _asks(subject)]
    if not acting:  # what only looks needed no rule of the user's
        return replace(strictest, grants=(), named=False), verdicts
    offline = next((verdict for _, verdict in acting if not verdict.grants), None)
    if offline is not None and any(subject.command and subject.command.network for subject, _ in acting):
        return Verdict("ask", f"{NO_NETWORK}: {offline.rule}", rememberable=False, why=offline.why), verdicts
    verdict = replace(
        acting[0][1],
        grants=("unsandboxed",)
        if all("unsandboxed" in verdict.grants for _, verdict in acting)
        else ("network",)
        if offline is None
        else (),
        named=all(verdict.named for _, verdict in acting),
    )
    return verdict, verdicts


def acts(subject: Subject) -> bool:
    """Whether it is a command that has an effect, or may have one."""
    return subject.effect == "run" and (subject.command is None or subject.command.effect != "none")


def _asks(subject: Subject) -> bool:
    return subject.command is not None and bool(subject.command.asks)


def command_parts(judged: Iterable[tuple[Subject, Verdict]]) -> list[CommandPart]:
    """The verdict on each command among them, and on a line that is not understood, for the user. Of `find -exec rm`
    both commands have the same text: then the one that is allowed is left out."""
    parts: list[CommandPart] = []
    for subject, verdict in judged:
        if subject.command is None and not subject.because:
            continue
        sentence = subject.because if subject.command is None else subject.command.why
        part = CommandPart(
            text=visible(subject.text),
            decision=verdict.decision,
            rule=verdict.rule,
            reason=visible(verdict.why or sentence),
        )
        if part not in parts:
            parts.append(part)
    objected = {part.text for part in parts if part.decision != "allow"}
    return [part for part in parts if part.decision != "allow" or part.text not in objected]


# Rules that come with Amanu -----------------------------------------------------------------------


@cache
def built_in() -> tuple[Rule, ...]:
    """The rules that hold in every mode."""
    reason = "programs run this file or take settings from it"
    protected_files = RuleTable(decision="mustAsk", tool="@write", path=protected.GLOBS, reason=reason)
    return (*_rules_of_file("built-in", "built in"), *_separate(protected_files, "built in"))


def of_mode(mode: Mode) -> tuple[Rule, ...]:
    """The rules a mode is."""
    return _rules_of_file(mode, f"mode {mode}")


def mode_text(mode: Mode) -> str:
    """What the model is told about a mode. In that of `plan`, `{plan}` stands for the path of the plan."""
    return str(_toml(mode)["model"])


def is_read_only(mode: Mode) -> bool:
    """Whether nothing that commands change is kept."""
    return bool(_toml(mode).get("read_only", False))


def drafts(mode: Mode) -> bool:
    """Whether what calls change is drafted, and nothing that is only drafted is asked about."""
    return bool(_toml(mode).get("draft", False))


def runs_on_copy(mode: Mode) -> bool:
    """Whether commands that the mode allows run on a private copy of the workspace, where that works."""
    return bool(_toml(mode).get("private_copy", False))


def unasked(subjects: Iterable[Subject]) -> list[Subject]:
    """Those that are read without a question where no rule of the user's says otherwise."""
    rules = (*built_in(), *of_mode("ask"))
    subjects = list(subjects)
    verdicts = decide_each(rules, subjects)
    return [subject for subject, verdict in zip(subjects, verdicts, strict=True) if verdict.decision == "allow"]


@cache
def _rules_of_file(name: str, origin: str) -> tuple[Rule, ...]:
    tables = [RuleTable.model_validate(table) for table in _toml(name)["rule"]]
    return tuple(rule for table in tables for rule in _separate(table, origin))


@cache
def _toml(name: str) -> dict[str, Any]:
    text = (importlib.resources.files("amanu.permissions") / "modes" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _separate(table: RuleTable, origin: str) -> tuple[Rule, ...]:
    """A rule for each target and path of the table: so that the one named is the one that matched."""
    tools = (table.tool,) if isinstance(table.tool, str) else table.tool
    paths = (table.path,) if isinstance(table.path, str) else table.path or ((),)
    tables = (table.model_copy(update={"tool": tool, "path": path}) for tool in tools for path in paths)
    return tuple(single.rule(origin) for single in tables)
