"""Which calls are allowed, asked about or denied, and by which rule.

A rule is a text: `tool`, `tool(pattern)`, `@effect` or `@effect(pattern)`; effects are read, write, run. For files the
pattern is a glob on the path relative to its root (`*` stays in a folder, `**` does not); for commands it is the
exact command, nothing else: until commands are understood, similar is not the same.

A matching deny wins, then a matching must-ask, then a matching allow; where nothing matches the answer is ask.
Modes are sets of rules, not branches.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from amanu.tools.base import Subject
from amanu.tools.visible import visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode, Scope, ScopeOffer

Kind = Literal["allow", "deny", "mustAsk"]


@dataclass(frozen=True)
class Rule:
    """One rule and where it comes from ("mode plan", "session", "your config.toml" …)."""

    kind: Kind
    text: str
    origin: str
    unless: str | None = None
    """A glob that is excepted; only built-in rules have one."""

    def __str__(self) -> str:
        return f"{self.origin}: {self.kind} {self.text}" + (f" unless {self.unless}" if self.unless else "")

    def matches(self, subject: Subject) -> bool:
        target, pattern = parse(self.text)
        if target not in ("*", subject.tool, f"@{subject.effect}"):
            return False
        if self.unless is not None and _glob(self.unless, False).fullmatch(subject.text):
            return False
        if subject.effect == "run":
            return pattern == subject.text or (pattern is None and self.kind != "allow")
        # Deny and must-ask fold case: on some systems `.ENV` is `.env` (a real incident in this field).
        return pattern is None or _glob(pattern, self.kind != "allow").fullmatch(subject.text) is not None


@dataclass(frozen=True)
class Verdict:
    decision: Literal["allow", "ask", "deny"]
    rule: str
    """The rule that decided, with its origin."""
    rememberable: bool = True
    """False when a must-ask rule decided: then only `once` can be answered."""


NOTHING_MATCHED = "no rule allows it"

PLAN_FILES = ".amanu/plans/*.md"

PROGRAMS = (
    *("**/.git", "**/.git/**", "**/.gitmodules", "**/.husky/**"),  # `.git` may be a file that leads to another
    *(
        "**/.vscode/**",
        "**/*.code-workspace",
        "**/.idea/**",
        "**/.zed/**",
        "**/.devcontainer/**",
        "**/.devcontainer.json",
    ),
    *("**/.exrc", "**/.nvimrc", "**/.nvim.lua", "**/.vimrc", "**/.dir-locals.el", "**/.helix/**"),
    *("**/.mcp.json", "**/.cursor/**", "**/.claude/**", "**/.gemini/**", "**/.ripgreprc", "**/.gitconfig"),
    *("**/AGENTS.md", "**/CLAUDE.md", "**/GEMINI.md"),  # project memory: what one session writes, all later ones obey
)
"""Files that git, editors and agents run, or are led by (facts/security.md §2, cases 5, 15, 18, 21)."""

BUILT_IN: tuple[Rule, ...] = (
    *(
        Rule("mustAsk", f"@{effect}({files})", "built in")
        for effect in ("read", "write")
        for files in ("**/.env*", "**/.env*/**")
    ),
    *(Rule("mustAsk", f"@write({files})", "built in") for files in PROGRAMS),
    Rule("mustAsk", "@write(**/.amanu/**)", "built in", unless=PLAN_FILES),
)

MODES: dict[Mode, tuple[Rule, ...]] = {
    "plan": (
        Rule("allow", "@read", "mode plan"),
        Rule("allow", f"@write({PLAN_FILES})", "mode plan"),
        Rule("deny", "@write", "mode plan", unless=PLAN_FILES),
        Rule("deny", "@run", "mode plan"),
    ),
    "ask": (Rule("allow", "@read", "mode ask"),),
    "acceptEdits": (Rule("allow", "@read", "mode acceptEdits"), Rule("allow", "@write", "mode acceptEdits")),
    "auto": (
        Rule("allow", "@read", "mode auto"),
        Rule("allow", "@write", "mode auto"),
        Rule("allow", "@run", "mode auto"),  # matches nothing yet: an allow for a command needs its exact text
    ),
}


def decide(rules: Iterable[Rule], subject: Subject) -> Verdict:
    """The verdict on one call, with the rule that gave it."""
    matching = [rule for rule in rules if rule.matches(subject)]
    for kind, decision in (("deny", "deny"), ("mustAsk", "ask"), ("allow", "allow")):
        for rule in matching:
            if rule.kind == kind:
                return Verdict(decision, str(rule), rememberable=kind != "mustAsk")  # pyright: ignore[reportArgumentType]
    return Verdict("ask", NOTHING_MATCHED)


def offers(subjects: Sequence[Subject], verdict: Verdict) -> list[ScopeOffer]:
    """The ways to answer an approval, each with the rule it would save. A rule is for one thing: what is about several
    is answered once."""
    once = ScopeOffer(scope="once", rule="")
    subject = subjects[0]
    if any(each != subject for each in subjects):
        return [once]
    hidden = "\n" in subject.text or visible(subject.text) != subject.text
    if not verdict.rememberable or hidden or not subject.text:  # what is not seen is not agreed to for good
        return [once]
    rule = suggested_rule(subject)
    scopes: Sequence[Scope] = ("turn", "session", "workspace", "user")
    return [once, *(ScopeOffer(scope=scope, rule=rule) for scope in scopes)]


def suggested_rule(subject: Subject) -> str:
    """The narrowest rule that would have allowed this call."""
    if subject.effect == "run":
        return f"{subject.tool}({subject.text})"
    return f"@{subject.effect}({_escape(subject.text)})"


def remember(text: str, scope: Scope, subject: Subject) -> Rule:
    """An allow rule from the text a person saw or edited. Raises `AmanuError` (invalidRule) when it is not a
    rule, or would not have covered the call it answers."""
    rule = Rule("allow", text.strip(), scope)
    parse(rule.text)
    if not rule.matches(subject):
        raise AmanuError(
            "invalidRule",
            f"The rule {rule.text!r} would not have allowed this call.",
            hint=f"For example: {suggested_rule(subject)}",
        )
    return rule


@cache
def parse(text: str) -> tuple[str, str | None]:
    """Target and pattern of a rule's text. Raises `AmanuError` (invalidRule) saying what is wrong."""
    found = re.fullmatch(r"(\*|@?[A-Za-z][A-Za-z0-9_-]*)(?:\((.+)\))?", text, re.DOTALL)
    if found is None:
        raise AmanuError(
            "invalidRule",
            f"{text!r} is not a rule.",
            hint="A rule is a tool name or @read, @write, @run, optionally with a pattern: edit_file(src/**)",
        )
    target, pattern = found.groups()
    if target.startswith("@") and target not in ("@read", "@write", "@run"):
        raise AmanuError("invalidRule", f"{target} is not an effect; there are @read, @write and @run.")
    return target, pattern


def explain(text: str) -> str:
    """A sentence saying what an allow rule of that text covers."""
    target, pattern = parse(text)
    who = {
        "*": "every tool that only reads or writes files",
        "@read": "every tool that reads",
        "@write": "every tool that changes files",
        "@run": "every tool that runs commands",
    }.get(target, f"the tool {target}")
    if pattern is None:
        return f"Allows {who}." + (" Commands need their exact text." if target == "@run" else "")
    return f"Allows {who}, for exactly or by glob: {pattern}"


@cache
def _glob(pattern: str, fold_case: bool) -> re.Pattern[str]:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        elif pattern[at] == "*":
            out.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            out.append("[^/]")
            at += 1
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            out.append(re.escape(pattern[at + 1]))
            at += 2
        else:
            out.append(re.escape(pattern[at]))
            at += 1
    return re.compile("".join(out), re.DOTALL | (re.IGNORECASE if fold_case else 0))


def _escape(path: str) -> str:
    return re.sub(r"([*?\\])", r"\\\1", path)
