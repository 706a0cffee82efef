"""Whether a rule is about a call.

An allow rule covers what it certainly means; deny and must-ask rules also catch what it may come to once it runs:
paths in any case, a program by any path, options between the words of a pattern.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, lru_cache
from typing import Literal

from amanu.core import protected_paths as protected
from amanu.core.command import Command
from amanu.core.rules import MCP, CommandPattern, Rule
from amanu.core.tool import Reach, Subject
from amanu.permissions.destructive import destroying
from amanu_protocol.items import Effect, Mode

Match = Literal["yes", "no", "perhaps"]
"""`perhaps`: a word is known only when the command runs. Deny and must-ask rules alone can match so."""


_ESCAPED = re.compile(r"\\([*?\\])")


class RulesInForce:
    """The rules that are in force in a session of that mode and trust. A call may be about hundreds of files, and there
    is a rule for each protected name: so what does not depend on a file is found out once."""

    def __init__(self, rules: Iterable[Rule], mode: Mode, time: datetime, *, trusted: bool) -> None:
        self._rules = [rule for rule in rules if _applies(rule, mode, time, trusted=trusted)]
        self._by_tool: dict[tuple[str, Effect, Reach], _RulesOfTool] = {}

    def match(self, subject: Subject) -> tuple[list[Rule], list[Rule]]:
        """(The rules that are about the subject, those that perhaps are.)"""
        matches: dict[Match, list[Rule]] = {"yes": [], "perhaps": [], "no": []}
        for rule in self._candidates(subject):
            matches[_match_rule(rule, subject)].append(rule)
        return matches["yes"], matches["perhaps"]

    def _candidates(self, subject: Subject) -> Sequence[Rule]:
        if subject.server:
            return [rule for rule in self._rules if _names_tool(rule, subject)]
        key = (subject.tool, subject.effect, subject.reach)
        if key not in self._by_tool:
            named = [rule for rule in self._rules if _names_tool(rule, subject)]
            self._by_tool[key] = _RulesOfTool(named, with_globs=subject.effect != "run")
        return self._by_tool[key].candidates(subject.text)


def exact_paths(rules: Iterable[Rule]) -> frozenset[str] | None:
    """The lower-case names of the only files that these rules can match; None if one of them can match others."""
    rules = list(rules)
    patterns = [pattern for rule in rules for pattern in rule.patterns]
    names = [_ESCAPED.sub(r"\1", pattern) for pattern in patterns]
    pairs = zip(names, patterns, strict=True)
    if not all(rule.patterns for rule in rules) or any(
        escape_glob(name) != pattern or not name.isascii() for name, pattern in pairs
    ):
        return None
    return frozenset(name.casefold() for name in names)


class _RulesOfTool:
    """The rules that name one tool. `with_globs`: their patterns are globs, not commands."""

    def __init__(self, rules: Sequence[Rule], *, with_globs: bool) -> None:
        self._all = rules
        self._others: list[Rule] = []
        globs: list[str] = []
        for rule in rules:
            if with_globs and rule.kind != "allow" and rule.patterns:
                globs += rule.patterns
            else:
                self._others.append(rule)
        self._any_glob = _any_compiled(tuple(globs))

    def candidates(self, text: str) -> Sequence[Rule]:
        """Those that may be about that text."""
        return self._all if self._any_glob.fullmatch(_composed(text)) is not None else self._others


def _match_rule(rule: Rule, subject: Subject) -> Match:
    """Whether a rule that names its tool is about the subject."""
    if not _has_arguments(rule, subject):
        return "no"
    if subject.effect == "run" and not subject.server:
        return _match_command(rule, subject)
    return "yes" if _matches_path(rule, subject) else "no"


def names_command(rule: Rule) -> bool:
    """Whether the rule says which command it is about: no mode does, nor a rule for whatever may run."""
    return any(pattern.tokens for pattern in rule.commands)


def destroying_words(command: Command) -> frozenset[str]:
    """The words of the command that destroy work, see `destructive.py`."""
    return destroying(command.words[command.assigned :])


def _applies(rule: Rule, mode: Mode, time: datetime, *, trusted: bool) -> bool:
    """Whether the rule is in force."""
    return (
        (not rule.modes or mode in rule.modes)
        and rule.trusted in (None, trusted)
        and (rule.until is None or time <= rule.until)
    )


def _names_tool(rule: Rule, subject: Subject) -> bool:
    """Whether the rule is about that tool, or its effect. What a call is about matters only for servers' tools."""
    if rule.servers and (not subject.server or not {subject.server, "*"} & {*rule.servers}):
        return False
    beyond = subject.reach != "workspace" or (subject.server and not rule.servers)
    targets = rule.targets
    return (
        subject.tool in targets
        or (bool(rule.servers) and subject.text in targets)
        or (not (rule.kind == "allow" and beyond) and ("*" in targets or f"@{subject.effect}" in targets))
        or any(_names_mcp_tool(rule, target, subject) for target in targets if subject.server)
    )


def _has_arguments(rule: Rule, subject: Subject) -> bool:
    return all(
        name in subject.arguments and _matches(rule, glob, _as_text(subject.arguments[name]))
        for name, glob in rule.arguments.items()
    )


def _names_mcp_tool(rule: Rule, target: str, subject: Subject) -> bool:
    """Whether the target is a glob for the names of MCP tools, such as `mcp__git__*`, and covers this one."""
    return bool(subject.server) and target.startswith(MCP) and _matches(rule, target, subject.tool)


def _matches_path(rule: Rule, subject: Subject) -> bool:
    about_commands = rule.ruin or rule.harmless is not None or rule.network or rule.unsandboxed
    if about_commands or (rule.secret and not protected.is_secret(subject.text)):
        return False
    if rule.plan not in (None, subject.plan):
        return False
    if any(_compiled(glob, fold_case=False).fullmatch(subject.text) for glob in rule.unless):
        return False
    if (
        rule.kind == "allow" and subject.reach == "local"
    ):  # whoever allowed a whole tool did not mean their own database
        return escape_glob(subject.text) in rule.patterns
    return not rule.patterns or any(_matches(rule, glob, subject.text) for glob in rule.patterns)


def _matches(rule: Rule, glob: str, text: str) -> bool:
    if rule.kind == "allow":
        return _compiled(glob, fold_case=False).fullmatch(text) is not None
    # on some systems `.ENV` is `.env`, and a name may be on the disk in another Unicode form than in a rule
    return _compiled(_composed(glob), fold_case=True).fullmatch(_composed(text)) is not None


# Commands -----------------------------------------------------------------------------------------


def _match_command(rule: Rule, subject: Subject) -> Match:
    command = subject.command
    effect = "some" if command is None else command.effect
    if rule.secret or (rule.harmless is not None and rule.harmless != (effect == "none")):
        return "no"
    if rule.ruin != (effect == "ruin") and (rule.ruin or rule.kind == "allow"):
        return "no"
    if rule.kind == "allow":
        return "yes" if _allows(rule, subject) else "no"
    if not rule.patterns:
        return "yes"
    if command is None:
        return "no"
    spellings = (command, replace(command, words=command.spelled)) if command.spelled else (command,)
    matches = {_catches(pattern, spelling) for pattern in rule.commands for spelling in spellings}
    return "yes" if "yes" in matches else "perhaps" if "perhaps" in matches else "no"


def _allows(rule: Rule, subject: Subject) -> bool:
    """Whether an allow rule covers the command, and grants all it asks for."""
    command = subject.command
    if command is None or subject.unclear:
        return False
    network = rule.network or rule.unsandboxed
    needs_network = "network" in command.asks or (command.network and command.effect != "none")
    granted = (
        (network or not needs_network)
        and (rule.unsandboxed or "unsandboxed" not in command.asks)
        and (names_command(rule) or "secrets" not in command.asks)
    )
    return granted and (not rule.patterns or any(_covers(pattern, command) for pattern in rule.commands))


def _covers(pattern: CommandPattern, command: Command) -> bool:
    """Token by token, from the first on; a word that is not known yet is no token. With harmless options left out, too:
    `make -j4 test` is `make test`."""
    count = len(pattern.tokens)
    if pattern.any_rest and count and (words := destroying_words(command)) and not words & {*pattern.tokens}:
        return False  # `git *` was not meant for `git clean`
    if pattern.any_rest and command.prefix is not None and command.prefix[:count] == pattern.tokens:
        return True
    return command.words[:count] == pattern.tokens and (pattern.any_rest or len(command.words) == count)


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def _catches(pattern: CommandPattern, command: Command) -> Match:
    """Like `_covers`, but in doubt it does: the program is meant by any path; options between the tokens are skipped,
    with or without a value; so is what is set for the program, unless the pattern begins with such an assignment.
    `perhaps` where a word is not known."""
    tokens = list(pattern.tokens)
    with_assignments = bool(tokens) and _ASSIGNMENT.match(tokens[0]) is not None
    words = list(command.words if with_assignments else command.words[command.assigned :])
    if tokens:
        tokens[0] = tokens[0].rsplit("/", 1)[-1]
    if words and words[0] is not None:
        words[0] = words[0].rsplit("/", 1)[-1]
    ends = {0} if words else set[int]()  # how many words may have been used up by the tokens so far
    for number, token in enumerate(tokens):
        starts = sorted(ends if number == 0 else _past_options(words, ends))
        if any(words[start] is None for start in starts):
            return "perhaps"
        ends = {start + 1 for start in starts if (words[start] or "").casefold() == token.casefold()}
        if not ends:
            return "no"
    if pattern.any_rest or len(words) in ends:
        return "yes"
    return "perhaps" if None in words else "no"


def _past_options(words: Sequence[str | None], ends: Iterable[int]) -> set[int]:
    """Where the next token may stand: options in between may take a value or not."""
    starts: set[int] = set()
    todo = [end for end in ends if end < len(words)]
    while todo:
        start = todo.pop()
        if start in starts:
            continue
        starts.add(start)
        if (words[start] or "").startswith("-"):
            todo += [following for following in (start + 1, start + 2) if following < len(words)]
    return starts


# Globs --------------------------------------------------------------------------------------------


def escape_glob(path: str) -> str:
    """A glob that matches that path and no other."""
    return re.sub(r"([*?\\])", r"\\\1", path)


@cache
def _compiled(glob: str, *, fold_case: bool) -> re.Pattern[str]:
    return re.compile(_translated(glob), re.DOTALL | (re.IGNORECASE if fold_case else 0))


@lru_cache(maxsize=32)
def _any_compiled(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Matches what any of them matches, in any case."""
    return re.compile("|".join(map(_translated, map(_composed, globs))), re.DOTALL | re.IGNORECASE)


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _translated(glob: str) -> str:
    out: list[str] = []
    index = 0
    while index < len(glob):
        if glob.startswith("**/", index):
            out.append("(?:.*/)?")
            index += 3
        elif glob.startswith("**", index):
            out.append(".*")
            index += 2
        elif glob[index] == "*":
            out.append("[^/]*")
            index += 1
        elif glob[index] == "?":
            out.append("[^/]")
            index += 1
        elif glob[index] == "\\" and index + 1 < len(glob):
            out.append(re.escape(glob[index + 1]))
            index += 2
        else:
            out.append(re.escape(glob[index]))
            index += 1
    return "".join(out)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
