"""Which calls are allowed, asked about or denied, and by which rule.

A matching deny wins, then a matching must-ask, then a matching allow; where nothing matches the answer is ask. Modes
are sets of rules in files (`modes/`), not branches. How a rule is written: `amanu/core/rules.py`.

A command line is decided on command by command (`shell/`); one that is not understood can only be asked about.
"""

import importlib.resources
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, get_args

from amanu.core import protected_paths as protected
from amanu.core.command import Command
from amanu.core.rules import CommandPattern, Rule, RuleTable, format_command_pattern, parse_rule, with_grants
from amanu.core.tool import Subject
from amanu.permissions.destructive import destroying
from amanu.text.display import visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import CommandPart, Grant, Mode, Scope, ScopeOffer


@dataclass(frozen=True)
class PolicyContext:
    """What else a decision depends on."""

    mode: Mode = "ask"
    trusted: bool = False
    sandboxed: bool = True
    """Commands are held by a sandbox, or the user does without."""
    time: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True)
class Verdict:
    decision: Literal["allow", "ask", "deny"]
    rule: str
    """The rule that decided, with its origin."""
    rememberable: bool = True
    """False when only `once` can be answered."""
    network: bool = False
    """Allowed with the network."""
    unsandboxed: bool = False
    """Allowed outside the sandbox."""
    named: bool = False
    """Of a command: allowed by a rule that names it, so it is the user's."""
    why: str = ""
    """A sentence about the command, for the user."""


NOTHING_MATCHED = "no rule allows it"
HIDDEN = "its name holds characters that cannot be seen, or change the direction of text"
DESTROYS = "it destroys what no undo brings back, and no rule names that"
NOT_UNDERSTOOD = "a command that is not understood is always asked about"
NO_SANDBOX = "no sandbox works here, so rules for commands do not count (sandbox.without)"

_STRICT = ("deny", "ask", "allow")

PLAN_FILES = ".amanu/plans/*.md"

PROGRAMS = protected.GLOBS
"""Files that git, editors and agents run, or are led by."""


def decide(rules: Iterable[Rule], subject: Subject, when: PolicyContext | None = None) -> Verdict:
    """The verdict on one thing a call is about, with the rule that gave it."""
    when = when or PolicyContext()
    why = subject.command.why if subject.command is not None else ""
    could_be: Rule | None = None
    matching: list[Rule] = []
    for each in rules:
        match = _match(each, subject, when)
        if match == "yes":
            matching.append(each)
        elif match == "perhaps" and could_be is None:
            could_be = each
    for each in matching:
        if each.kind == "deny":
            return Verdict("deny", str(each), why=why)
    for each in matching:
        if each.kind == "mustAsk":
            return Verdict("ask", str(each), rememberable=False, why=why)
    if could_be is not None:
        return Verdict("ask", f"it could be what a rule is about: {could_be}", rememberable=False, why=why)
    if subject.unclear:
        return Verdict("ask", NOT_UNDERSTOOD, rememberable=False, why=subject.because)
    if subject.effect == "write" and ("\n" in subject.text or visible(subject.text) != subject.text):
        return Verdict("ask", HIDDEN, rememberable=False)
    named = subject.effect == "run" and any(map(_names, matching))
    for each in sorted(matching, key=lambda each: (not each.unsandboxed, not each.network)):
        if subject.effect != "run" or when.sandboxed or each.harmless or each.unsandboxed:
            given = {"network": each.network or each.unsandboxed, "unsandboxed": each.unsandboxed}
            return Verdict("allow", str(each), **given, named=named, why=why)
    rememberable = subject.command is None or subject.command.prefix is not None
    if matching:
        return Verdict("ask", NO_SANDBOX, rememberable=False, why=why)
    if subject.command is not None and _destroys(subject.command):
        return Verdict("ask", DESTROYS, rememberable=False, why=why)
    return Verdict("ask", NOTHING_MATCHED, rememberable, why=why)


def decide_all(
    rules: Sequence[Rule], subjects: Sequence[Subject], when: PolicyContext | None = None
) -> tuple[Verdict, list[Verdict]]:
    """(The verdict on a call about all of them, the verdict on each.) The strictest counts: of two that ask, the one no
    rule can answer. The commands of a line run in the same sandbox: with the network when each that has an effect may
    have it; when only some may, and need it, that is asked about. So with the sandbox."""
    when = when or PolicyContext()
    verdicts = [decide(rules, subject, when) for subject in subjects]
    first = min(verdicts, key=lambda verdict: (_STRICT.index(verdict.decision), verdict.rememberable))
    if first.decision != "allow":
        return replace(first, network=False, unsandboxed=False, named=False), verdicts
    acting = [(each, verdict) for each, verdict in zip(subjects, verdicts, strict=True) if acts(each) or _asks(each)]
    without = next((verdict for _, verdict in acting if not verdict.network), None)
    if without is not None and any(each.command is not None and each.command.network for each, _ in acting):
        over = f"it would have the network because of another command of the line: {without.rule}"
        return Verdict("ask", over, rememberable=False, why=without.why), verdicts
    decisive = acting[0][1] if acting else first  # what only looks needed no rule of the user's
    given = {
        "network": bool(acting) and without is None,
        "unsandboxed": bool(acting) and all(verdict.unsandboxed for _, verdict in acting),
        "named": bool(acting) and all(verdict.named for _, verdict in acting),
    }
    return replace(decisive, **given), verdicts


def acts(subject: Subject) -> bool:
    """It is a command that has an effect, or may have."""
    return subject.effect == "run" and (subject.command is None or subject.command.effect != "none")


def _asks(subject: Subject) -> bool:
    return subject.command is not None and bool(subject.command.asks)


def command_parts(judged: Iterable[tuple[Subject, Verdict]]) -> list[CommandPart]:
    """What is thought of each command among them, and of a line that is not understood. Of `find -exec rm` both have
    the same text: what is fine about it is not said beside what asks."""
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
    telling = {part.text for part in parts if part.decision != "allow"}
    return [part for part in parts if part.decision != "allow" or part.text not in telling]


def built_in() -> tuple[Rule, ...]:
    """The rules that hold in every mode."""
    obeyed = RuleTable(decision="mustAsk", tool="@write", path=PROGRAMS, reason="programs run or obey it")
    return (*_file("built-in", "built in"), *(_alone(obeyed.rule("built in"))))


def of_mode(mode: Mode) -> tuple[Rule, ...]:
    """The rules a mode is."""
    return _file(mode, f"mode {mode}")


def mode_text(mode: Mode) -> str:
    """What the model is told of a mode."""
    return str(_toml(mode)["model"])


def unasked(subjects: Iterable[Subject]) -> list[Subject]:
    """Those that are read without a question where no rule of the user's says otherwise."""
    rules = (*built_in(), *of_mode("ask"))
    return [subject for subject in subjects if decide(rules, subject).decision == "allow"]


def offers(judged: Sequence[tuple[Subject, Verdict]], *, allowed: int = 0) -> list[ScopeOffer]:
    """The ways to answer an approval about those, each with the rules it would save; `allowed` counts what else the
    call is about. Calls about several files are answered once; for commands a rule for each is saved, as far as a
    user can take them in."""
    once = ScopeOffer(scope="once", rule="", explanation="Only this time.")
    subjects = list({(subject.effect, suggested_rule(subject)): subject for subject, _ in judged}.values())
    commands = all(subject.effect == "run" for subject in subjects)
    if not subjects or len(subjects) > _TAKEN_IN or (not commands and len(subjects) + allowed > 1):
        return [once]
    if not all(verdict.rememberable and _plain(subject) for subject, verdict in judged):
        return [once]  # what is not seen is not agreed to for good
    text = "\n".join(suggested_rule(subject) for subject in subjects)
    scopes: Sequence[Scope] = ("turn", "session", "workspace", "user")
    explanation = f"{explain(text)}{_rewritable(subjects)}"
    return [once, *(ScopeOffer(scope=scope, rule=text, explanation=explanation) for scope in scopes)]


def _rewritable(subjects: Iterable[Subject]) -> str:
    """A sentence about what of the workspace those commands carry out: a rule is not for the bytes of now."""
    runs = dict.fromkeys(path for subject in subjects if subject.command is not None for path in subject.command.runs)
    names = [visible(path.rpartition("/")[2]) for path in runs]
    if not names:
        return ""
    listed = ", ".join(names[:_TAKEN_IN]) + (" …" if len(names) > _TAKEN_IN else "")
    return f" Also when {listed} says something else by then."


def suggested_rule(subject: Subject) -> str:
    """The rule to remember a call by: for a file that file, for a command the program and its sub-command."""
    if subject.effect != "run":
        return f"@{subject.effect}({_escape(subject.text)})"
    command = subject.command
    if command is None or command.prefix is None:
        return f"{subject.tool}({subject.text})"
    grants: list[Grant] = ["network"] if command.network or "network" in command.asks else []
    grants = ["unsandboxed"] if "unsandboxed" in command.asks else grants
    return with_grants(f"{subject.tool}({format_command_pattern(command.prefix, any_rest=True)})", grants)


def remember(
    text: str,
    scope: Scope,
    subjects: Sequence[Subject],
    when: PolicyContext | None = None,
    grants: Sequence[Grant] = (),
) -> list[Rule]:
    """Allow rules from the text a user saw or edited, one a line; those about commands with what the answer grants.
    Raises `AmanuError` (invalidRule) when one is no rule, or together they would not have covered what was asked."""
    rules = allow_rules(with_grants(text, grants), scope)
    missed = next((subject for subject in subjects if decide(rules, subject, when).decision != "allow"), None)
    if missed is not None:
        raise AmanuError(
            "invalidRule",
            f"The rule {text.strip()!r} would not have allowed this call.",
            hint=f"For example: {suggested_rule(missed)}",
        )
    return rules


def allow_rules(text: str, origin: str) -> list[Rule]:
    """The rules of a text, one a line. Raises `AmanuError` (invalidRule)."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise AmanuError("invalidRule", "A rule is missing.", hint="For example: run_shell_command(git commit *)")
    return [parse_rule("allow", line, origin) for line in lines]


def explain(text: str) -> str:
    """Sentences saying what allow rules of that text cover. Raises `AmanuError` (invalidRule)."""
    return " ".join(_explained(rule) for rule in allow_rules(text, ""))


_TAKEN_IN = 4
"""Rules one answer may save."""

_WHO = {
    "*": "every tool",
    "@read": "every tool that reads",
    "@write": "every tool that changes files",
    "@run": "every command",
}


def _explained(rule: Rule) -> str:
    (target,) = rule.targets
    who = _WHO.get(target, f"the tool {target}")
    ends = f" Until {rule.until:%Y-%m-%d}." if rule.until else ""
    if not rule.patterns:
        condition = " that is understood, in the sandbox" if target == "@run" else ""
        condition = " that is understood, without the sandbox" if rule.unsandboxed else condition
        return f"Allows {who}{condition}{' with network access' if rule.network else ''}.{ends}"
    if target not in ("@run", "run_shell_command"):
        return f"Allows {who}, for: {rule.patterns[0]}{ends and '.'}{ends}"
    (pattern,) = rule.commands
    command = format_command_pattern(pattern.tokens, any_rest=False)
    description = f"{command} with whatever follows" if pattern.any_rest else f"exactly {command}"
    description = description if pattern.tokens else "every command that is understood"
    how = "with network access" if rule.network else "without network access"
    how = "without the sandbox, with all your permissions" if rule.unsandboxed else how
    return f"Allows {description}, {how}.{ends}"


def _match(each: Rule, subject: Subject, when: PolicyContext) -> Literal["yes", "no", "perhaps"]:
    """Whether a rule is about the subject. `perhaps` only of deny and must-ask."""
    if not any(target in ("*", subject.tool, f"@{subject.effect}") for target in each.targets):
        return "no"
    if each.modes and when.mode not in each.modes:
        return "no"
    if (each.trusted is not None and each.trusted != when.trusted) or (
        each.until is not None and when.time > each.until
    ):
        return "no"
    fold = each.kind != "allow"  # on some systems `.ENV` is `.env` (a real incident in this field)
    for name, glob in each.arguments.items():
        if name not in subject.arguments or not _glob(glob, fold).fullmatch(_text(subject.arguments[name])):
            return "no"
    if subject.effect == "run":
        return _match_command(each, subject)
    if each.ruin or each.harmless is not None or each.network or each.unsandboxed:
        return "no"
    if each.secret and not protected.is_secret(subject.text):
        return "no"
    if any(_glob(glob, False).fullmatch(subject.text) for glob in each.unless):
        return "no"
    found = not each.patterns or any(_glob(glob, fold).fullmatch(subject.text) for glob in each.patterns)
    return "yes" if found else "no"


def _match_command(each: Rule, subject: Subject) -> Literal["yes", "no", "perhaps"]:
    command = subject.command
    if each.secret:
        return "no"
    effect = "some" if command is None else command.effect
    if each.ruin != (effect == "ruin") and (each.ruin or each.kind == "allow"):
        return "no"
    if each.harmless is not None and each.harmless != (effect == "none"):
        return "no"
    if each.kind == "allow":
        network = each.network or each.unsandboxed
        if subject.unclear or command is None or (command.network and not network and effect != "none"):
            return "no"
        if (
            ("network" in command.asks and not network)
            or ("unsandboxed" in command.asks and not each.unsandboxed)
            or ("secrets" in command.asks and not _names(each))
        ):
            return "no"
        return "yes" if not each.patterns or any(_allows(tokens, command) for tokens in each.commands) else "no"
    if not each.patterns:
        return "yes"
    if command is None:
        return "no"
    ways = (command, replace(command, words=command.spelled)) if command.spelled else (command,)
    found = {_forbids(tokens, way) for tokens in each.commands for way in ways}
    return "yes" if "yes" in found else "perhaps" if "perhaps" in found else "no"


def _allows(pattern: CommandPattern, command: Command) -> bool:
    """Token by token, from the first on; a word that is not known yet is no token. With harmless options left out, too:
    `make -j4 test` is `make test`."""
    count = len(pattern.tokens)
    if pattern.any_rest and count and (destroying := _destroys(command)) and not destroying & {*pattern.tokens}:
        return False  # `git *` was not meant for `git clean`
    if pattern.any_rest and command.prefix is not None and command.prefix[:count] == pattern.tokens:
        return True
    return command.words[:count] == pattern.tokens and (pattern.any_rest or len(command.words) == count)


def _destroys(command: Command) -> frozenset[str]:
    return destroying(command.words[command.assigned :])


def _names(each: Rule) -> bool:
    """It says which command it is about: no mode does, nor a rule for whatever may run."""
    return any(pattern.tokens for pattern in each.commands)


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def _forbids(pattern: CommandPattern, command: Command) -> Literal["yes", "no", "perhaps"]:
    """Like `_allows`, but in doubt it is: the program by any path, options between the tokens skipped with or without
    a value, and what is set for it, unless the pattern begins with such; where a word is not known, perhaps."""
    wanted = list(pattern.tokens)
    said = command.words if wanted and _ASSIGNMENT.match(wanted[0]) else command.words[command.assigned :]
    words = [word if at or word is None else word.rsplit("/", 1)[-1] for at, word in enumerate(said)]
    if wanted:
        wanted[0] = wanted[0].rsplit("/", 1)[-1]
    places = {0} if words else set[int]()  # how many words may have been used up by the tokens so far
    for number, token in enumerate(wanted):
        reached = sorted(places if number == 0 else _past_options(words, places))
        if any(words[at] is None for at in reached):
            return "perhaps"
        places = {at + 1 for at in reached if (words[at] or "").casefold() == token.casefold()}
        if not places:
            return "no"
    if pattern.any_rest or any(at == len(words) for at in places):
        return "yes"
    return "perhaps" if None in words else "no"


def _past_options(words: Sequence[str | None], places: Iterable[int]) -> set[int]:
    """Where the next token may stand: options in between may take a value or not."""
    reached: set[int] = set()
    todo = [index for index in places if index < len(words)]
    while todo:
        at = todo.pop()
        if at in reached:
            continue
        reached.add(at)
        if (words[at] or "").startswith("-"):
            todo += [next_index for next_index in (at + 1, at + 2) if next_index < len(words)]
    return reached


def _plain(subject: Subject) -> bool:
    """Nothing is hidden in what would be remembered."""
    text = suggested_rule(subject)
    return bool(subject.text) and "\n" not in text and visible(text) == text


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _file(name: str, origin: str) -> tuple[Rule, ...]:
    tables = [RuleTable.model_validate(table) for table in _toml(name)["rule"]]
    return tuple(alone for table in tables for alone in _alone(table.rule(origin)))


@cache
def _toml(name: str) -> dict[str, Any]:
    text = (importlib.resources.files("amanu.permissions") / "modes" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _alone(rule: Rule) -> list[Rule]:
    """A rule per target and pattern: so that the one named is the one that matched."""
    return [
        replace(rule, targets=(target,), patterns=patterns, text=_said(rule, target, patterns))
        for target in rule.targets
        for patterns in ([(pattern,) for pattern in rule.patterns] or [()])
    ]


def _said(rule: Rule, target: str, patterns: tuple[str, ...]) -> str:
    return (
        target
        + (f"({patterns[0]})" if patterns else "")
        + (f" unless {' | '.join(rule.unless)}" if rule.unless else "")
        + ("" if rule.harmless is None else f", {'without' if rule.harmless else 'with an'} effect")
        + (", ruinous" if rule.ruin else "")
        + (", files that hold secrets" if rule.secret else "")
    )


MODES: tuple[Mode, ...] = get_args(Mode)


@cache
def _glob(pattern: str, fold_case: bool) -> re.Pattern[str]:
    out: list[str] = []
    index = 0
    while index < len(pattern):
        if pattern.startswith("**/", index):
            out.append("(?:.*/)?")
            index += 3
        elif pattern.startswith("**", index):
            out.append(".*")
            index += 2
        elif pattern[index] == "*":
            out.append("[^/]*")
            index += 1
        elif pattern[index] == "?":
            out.append("[^/]")
            index += 1
        elif pattern[index] == "\\" and index + 1 < len(pattern):
            out.append(re.escape(pattern[index + 1]))
            index += 2
        else:
            out.append(re.escape(pattern[index]))
            index += 1
    return re.compile("".join(out), re.DOTALL | (re.IGNORECASE if fold_case else 0))


def _escape(path: str) -> str:
    return re.sub(r"([*?\\])", r"\\\1", path)
