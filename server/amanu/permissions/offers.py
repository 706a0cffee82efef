"""How long an approval may count: the scopes offered with a question, the rule each would save, and rules in words."""

import re
from collections.abc import Iterable, Iterator, Sequence

from amanu.core.command import Command
from amanu.core.rules import MCP, Kind, Rule, format_command_pattern, parse_rule, with_grants
from amanu.core.tool import Subject
from amanu.permissions.matching import escape_glob
from amanu.permissions.policy import PolicyContext, Verdict, acts, decide, decide_all, decide_each
from amanu.text.display import visible
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Grant, Scope, ScopeOffer

MAX_RULES = 4
"""Rules one answer may save: as many as a user can take in."""

_OF_HOSTS = ("web_fetch",)
"""Tools whose rules name hosts."""

_OF_SERVER = re.compile(rf"{MCP}(?P<server>(?:(?!__).)+)__(?P<tool>.+)")
"""The name of an MCP tool, or a glob for such names."""

_EXAMPLE = "For example: run_shell_command(git commit *)"


def offers(open_subjects: Sequence[tuple[Subject, Verdict]], *, allowed: int = 0) -> list[ScopeOffer]:
    """The ways to answer a question about what no rule allows, each with the rules it would save; `allowed` counts what
    else the call is about. A call about several files is answered once; for a line of commands a rule for each is
    saved, up to `MAX_RULES`."""
    once = ScopeOffer(scope="once", rule="", explanation="Only this time.")
    subjects = list({(subject.effect, suggested_rule(subject)): subject for subject, _ in open_subjects}.values())
    only_commands = all(subject.effect == "run" for subject in subjects)
    if not subjects or len(subjects) > MAX_RULES or (not only_commands and len(subjects) + allowed > 1):
        return [once]
    if not all(verdict.rememberable and _is_plain(subject) for subject, verdict in open_subjects):
        return [once]
    text = "\n".join(suggested_rule(subject) for subject in subjects)
    scopes: Sequence[Scope] = ("turn", "session", "workspace", "user")
    explanation = f"{explain(text)}{_changing_files(subjects)}{_whole_server(subjects)}"
    return [once, *(ScopeOffer(scope=scope, rule=text, explanation=explanation) for scope in scopes)]


def suggested_rule(subject: Subject) -> str:
    """The rule to remember a call by: for a file that file, for a page its host, for a command the program and its
    sub-command."""
    if subject.tool.startswith(MCP):
        return subject.tool
    if subject.server or subject.reach != "workspace":
        return f"{subject.tool}({escape_glob(subject.text)})"
    if subject.effect != "run":
        return f"@{subject.effect}({escape_glob(subject.text)})"
    command = subject.command
    if command is None or command.prefix is None:
        return f"{subject.tool}({subject.text})"
    pattern = format_command_pattern(command.prefix, any_rest=True)
    return with_grants(f"{subject.tool}({pattern})", _needed_grants(command))


def _needed_grants(command: Command) -> list[Grant]:
    if "unsandboxed" in command.asks:
        return ["unsandboxed"]
    return ["network"] if command.network or "network" in command.asks else []


def permitting(rules: Sequence[Rule], subjects: Sequence[Subject], context: PolicyContext) -> list[str]:
    """The allow rules, as text, that would let a call about all of those run without a question if added to `rules`;
    empty where it runs anyway, or where no rule can allow it. A user may write rules that no answer saves."""
    for network in (False, True):  # the commands of a line share one sandbox
        texts = [_covering(rules, subject, context, network=network and acts(subject)) for subject in subjects]
        added = [rule for text in texts if text for rule in rules_of(text, "")]
        if None not in texts and decide_all((*rules, *added), subjects, context)[0].decision == "allow":
            return list(dict.fromkeys(filter(None, texts)))
    return []


def _covering(rules: Sequence[Rule], subject: Subject, context: PolicyContext, *, network: bool) -> str | None:
    """The rule that would allow it, with the network if that is asked for; "" where one does, None where none can."""

    def allowed(text: str) -> bool:
        try:
            added = rules_of(text, "") if text else []
        except AmanuError:  # nothing a rule could be written for
            return False
        verdict = decide((*rules, *added), subject, context)
        return verdict.decision == "allow" and (bool(verdict.grants) or not network)

    texts = (with_grants(text, ["network"]) if network else text for text in ("", *_candidates(subject)))
    return next((text for text in texts if allowed(text)), None)


def _candidates(subject: Subject) -> Iterator[str]:
    """Rules that may cover what the call is about: the one to remember it by, one for exactly that command, and one
    for it outside the sandbox, where there is none."""
    yield suggested_rule(subject)
    command = subject.command
    if command is None or None in command.words:
        return
    words = tuple(word for word in command.words if word is not None)
    exactly = with_grants(f"{subject.tool}({format_command_pattern(words, any_rest=False)})", _needed_grants(command))
    yield exactly
    yield with_grants(exactly, ["unsandboxed"])


def remember(
    text: str,
    scope: Scope,
    subjects: Sequence[Subject],
    context: PolicyContext | None = None,
    grants: Sequence[Grant] = (),
) -> list[Rule]:
    """Allow rules from the text a user saw or edited, one a line; those about commands with what the answer grants.
    Raises `AmanuError` (invalidRule) when one is no rule, or together they would not have covered what was asked."""
    rules = rules_of(with_grants(text, grants), scope)
    verdicts = decide_each(rules, subjects, context)
    pairs = zip(subjects, verdicts, strict=True)
    if (uncovered := next((subject for subject, verdict in pairs if verdict.decision != "allow"), None)) is not None:
        raise AmanuError(
            "invalidRule",
            f"The rule {text.strip()!r} does not cover this call.",
            hint=f"For example: {suggested_rule(uncovered)}",
        )
    return rules


def rules_of(text: str, origin: str, kind: Kind = "allow") -> list[Rule]:
    """The rules of a text, one a line. Raises `AmanuError` (invalidRule)."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise AmanuError("invalidRule", "The rule is empty.", hint=_EXAMPLE)
    return [parse_rule(kind, line, origin) for line in lines]


def explain(text: str, kind: Kind = "allow") -> str:
    """Sentences saying what rules of that text cover. Raises `AmanuError` (invalidRule)."""
    return " ".join(explain_rule(rule) for rule in rules_of(text, "", kind))


_VERBS = {"allow": "Allows", "deny": "Never allows", "mustAsk": "Always asks before"}
_TARGETS = {
    "*": "every tool",
    "@read": "every tool that reads",
    "@write": "every tool that changes files",
    "@run": "every command that Amanu can fully analyze",
}


def explain_rule(rule: Rule) -> str:
    """A sentence saying what a rule that is written as text covers."""
    (target,) = rule.targets
    verb = _VERBS[rule.kind]
    tools = _TARGETS.get(target) or _mcp_tools(target) or f"the tool {target}"
    until = f" Until {rule.until:%Y-%m-%d}." if rule.until else ""
    if not rule.patterns:
        sandbox = "without the sandbox" if rule.unsandboxed else "in the sandbox" if target == "@run" else ""
        network = "with network access" if rule.network else ""
        conditions = " and ".join(filter(None, [sandbox, network]))
        return f"{verb} {tools}{conditions and ', '}{conditions}.{until}"
    if target in _OF_HOSTS:
        return f"{verb} {tools}, for this host: {rule.patterns[0]}{until and '.'}{until}"
    if target not in ("@run", "run_shell_command"):
        return f"{verb} {tools}, for these paths: {rule.patterns[0]}{until and '.'}{until}"
    (pattern,) = rule.commands
    command = format_command_pattern(pattern.tokens, any_rest=False)
    description = f"{command} with any arguments" if pattern.any_rest else f"exactly {command}"
    description = description if pattern.tokens else _TARGETS["@run"]
    if rule.kind != "allow":  # whatever it may reach
        return f"{verb} {description}.{until}"
    access = "with network access" if rule.network else "without network access"
    access = "without the sandbox, with all your permissions" if rule.unsandboxed else access
    return f"{verb} {description}, {access}.{until}"


def _mcp_tools(target: str) -> str:
    """What a name of MCP tools means; "" for any other."""
    match = _OF_SERVER.fullmatch(target)
    if match is None:
        return ""
    tool = "every tool" if match["tool"] == "*" else f"the tool {match['tool']}"
    return f"{tool} of the MCP server {match['server']}"


def _whole_server(subjects: Iterable[Subject]) -> str:
    """A sentence on how to allow all tools of the server."""
    match = next(filter(None, (_OF_SERVER.fullmatch(subject.tool) for subject in subjects if subject.server)), None)
    return "" if match is None else f" For all tools of this server, change it to {MCP}{match['server']}__*"


def _changing_files(subjects: Iterable[Subject]) -> str:
    """A sentence about the workspace's files that those commands run: a rule does not depend on what they say."""
    runs = dict.fromkeys(path for subject in subjects if subject.command is not None for path in subject.command.runs)
    names = [visible(path.rpartition("/")[2]) for path in runs]
    if not names:
        return ""
    listed = ", ".join(names[:MAX_RULES]) + (" …" if len(names) > MAX_RULES else "")
    return f" Also after {listed} {'changes' if len(names) == 1 else 'change'}."


def _is_plain(subject: Subject) -> bool:
    """Whether nothing is hidden in what would be remembered: nobody can agree for good to what they do not see."""
    text = suggested_rule(subject)
    return bool(subject.text) and "\n" not in text and visible(text) == text
