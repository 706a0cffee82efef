"""A policy rule, as text and as a table of TOML.

As text, what approvals show and remember:

    edit_file(src/**)                      a tool, and a glob on the path relative to its root
    @write                                 every tool that writes; also @read, @run, and * for all
    run_shell_command(npm test)            a command, token by token: exactly this
    run_shell_command(npm run *)           and whatever follows
    run_shell_command(A=1 npm test *)      with that set for it, and nothing else
    @run+network(npm install *)            with the network
    @run+unsandboxed(docker ps *)          outside the sandbox
    @write(docs/**) until 2026-12-24       to the end of that day, UTC

As a table, in `[[rule]]` of the settings: the same and more, see `RuleTable`.
"""

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Grant, Mode

Kind = Literal["allow", "deny", "mustAsk"]

_TEXT = re.compile(
    r"(?P<target>\*|@?[A-Za-z][A-Za-z0-9_-]*)(?P<network>\+network)?(?P<unsandboxed>\+unsandboxed)?(?:\((?P<pattern>.+)\))?"
    r"(?:\s+until\s+(?P<until>\d{4}-\d{2}-\d{2}))?",
    re.DOTALL,
)
_GRANTS: tuple[Grant, ...] = ("network", "unsandboxed")
_EFFECTS = ("@read", "@write", "@run")


@dataclass(frozen=True)
class CommandPattern:
    """A command pattern: `git commit *` is the tokens git, commit, and that more may follow."""

    tokens: tuple[str, ...]
    any_rest: bool


@dataclass(frozen=True)
class Rule:
    """One rule and where it comes from ("mode plan", "session", "your config.toml" …)."""

    kind: Kind
    text: str
    """As text, or as near to it as a table can be said."""
    origin: str
    targets: tuple[str, ...]
    """Names of tools, `@read`, `@write`, `@run`, `*`: one of them."""
    patterns: tuple[str, ...] = ()
    """One of them: globs on a path; for commands see `commands`. None: whatever it is about."""
    unless: tuple[str, ...] = ()
    """Globs that are excepted."""
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    """Argument → glob on its value as text; all of them."""
    modes: tuple[Mode, ...] = ()
    trusted: bool | None = None
    until: datetime | None = None
    network: bool = False
    """Of an allowed command: with the network."""
    unsandboxed: bool = False
    """Of an allowed command: outside the sandbox."""
    harmless: bool | None = None
    """Only commands that have no effect (True), only such that have or may have (False)."""
    ruin: bool = False
    """Only commands that destroy what nobody can bring back."""
    secret: bool = False
    """Only files that hold secrets (`protected.is_secret`)."""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.origin}: {self.kind} {self.text}" + (f" ({self.reason})" if self.reason else "")

    @property
    def commands(self) -> tuple[CommandPattern, ...]:
        """The patterns as those of commands."""
        return tuple(map(parse_command_pattern, self.patterns))


def parse_rule(kind: Kind, text: str, origin: str) -> Rule:
    """A rule from its text. Raises `AmanuError` (invalidRule) saying what is wrong."""
    text = text.strip()
    match = _TEXT.fullmatch(text)
    if match is None:
        raise AmanuError(
            "invalidRule",
            f"{text!r} is not a rule.",
            hint="A rule is a tool's name, @read, @write or @run, and may have a pattern: edit_file(src/**)",
        )
    target, pattern, network = match["target"], match["pattern"], match["network"] is not None
    if target.startswith("@") and target not in _EFFECTS:
        raise AmanuError("invalidRule", f"{target} is not an effect; there are @read, @write and @run.")
    unsandboxed = match["unsandboxed"] is not None
    if target in ("@read", "@write") and (network or unsandboxed):
        suffix = "+network" if network else "+unsandboxed"
        raise AmanuError("invalidRule", f"{suffix} is for commands, and {target} is about none.")
    if pattern is not None and _about_commands(target):
        parse_command_pattern(pattern)  # says what is wrong with it
    return Rule(
        kind,
        text,
        origin,
        (target,),
        (pattern,) if pattern is not None else (),
        until=_end_of(match["until"]) if match["until"] else None,
        network=network,
        unsandboxed=unsandboxed,
    )


def with_grants(text: str, grants: Collection[Grant], *, only: bool = False) -> str:
    """The rules of a text, one a line: those about commands with these grants as well, or with these alone. What is no
    rule stays as it is."""

    def line(text: str) -> str:
        match = _TEXT.fullmatch(text.strip())
        if match is None or match["target"] in ("@read", "@write"):
            return text
        all_grants = {*grants} | ({grant for grant in _GRANTS if match[grant]} if not only else set[Grant]())
        suffix = text.strip()[max(match.end(group) for group in ("target", *_GRANTS)) :]
        return match["target"] + "".join(f"+{grant}" for grant in _GRANTS if grant in all_grants) + suffix

    return "\n".join(map(line, text.splitlines()))


class RuleTable(BaseModel):
    """A rule with conditions; all that are given must hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    decision: Kind
    """`deny` goes before `mustAsk`, that before `allow`."""
    tool: tuple[str, ...] | str = "*"
    """Name of a tool, `@read`, `@write`, `@run`, `*`; or a list of them."""
    path: tuple[str, ...] | str = ()
    """Globs on the path relative to its root: `*` stays in a folder, `**` does not."""
    unless: tuple[str, ...] | str = ()
    """Globs on the path that are excepted."""
    command: tuple[str, ...] | str = ()
    """Commands by their tokens: `git commit` exactly, `git commit *` whatever follows."""
    arguments: Mapping[str, str] = Field(default_factory=dict)
    """Argument → glob on its value."""
    mode: tuple[Mode, ...] | Mode = ()
    """Only in that mode, or one of those."""
    trusted: bool | None = None
    """Only where the workspace is trusted, or is not."""
    until: date | None = None
    """To the end of that day, UTC."""
    network: bool = False
    """Of an allowed command: it may have the network."""
    unsandboxed: bool = False
    """Of an allowed command: it runs outside the sandbox, with all the user's rights."""
    harmless: bool | None = None
    """Only commands that are known to have no effect, or only others."""
    ruin: bool = False
    """Only commands that destroy what nobody can bring back (`rm -rf ~`)."""
    secret: bool = False
    """Only files whose names say that they hold secrets (`.env`, `id_rsa`, `*.pem` …)."""
    reason: str = ""
    """For the user, shown with the decision."""

    @model_validator(mode="after")
    def _fits(self) -> "RuleTable":
        if _tuple(self.path) and _tuple(self.command):
            raise ValueError("a rule is about paths or about commands, not both")
        for tool in _tuple(self.tool):
            if not re.fullmatch(r"\*|@read|@write|@run|[A-Za-z][A-Za-z0-9_-]*", tool):
                raise ValueError(f"{tool!r} is no name of a tool, and not @read, @write, @run or *")
        for tool in _tuple(self.command):
            try:
                parse_command_pattern(tool)
            except AmanuError as error:
                raise ValueError(str(error)) from None
        return self

    def rule(self, origin: str) -> Rule:
        """The rule this table says."""
        patterns = _tuple(self.command) or _tuple(self.path)
        # "@run" is what a command pattern is about, whatever tool runs it.
        targets = ("@run",) if _tuple(self.command) and self.tool == "*" else _tuple(self.tool)
        return Rule(
            self.decision,
            self._text(targets, patterns),
            origin,
            targets,
            patterns,
            unless=_tuple(self.unless),
            arguments=self.arguments,
            modes=_tuple(self.mode),  # pyright: ignore[reportArgumentType]
            trusted=self.trusted,
            until=None if self.until is None else _end_of(self.until.isoformat()),
            network=self.network,
            unsandboxed=self.unsandboxed,
            harmless=self.harmless,
            ruin=self.ruin,
            secret=self.secret,
            reason=self.reason,
        )

    def _text(self, targets: tuple[str, ...], patterns: tuple[str, ...]) -> str:
        conditions = [
            *(f"{name} like {value}" for name, value in self.arguments.items()),
            *(["mode " + "/".join(_tuple(self.mode))] if self.mode else []),
            *([("" if self.trusted else "not ") + "trusted"] if self.trusted is not None else []),
            *([f"until {self.until}"] if self.until else []),
            *([("without" if self.harmless else "with an") + " effect"] if self.harmless is not None else []),
            *(["ruinous"] if self.ruin else []),
            *(["files that hold secrets"] if self.secret else []),
        ]
        text = "/".join(targets) + ("+network" if self.network else "") + ("+unsandboxed" if self.unsandboxed else "")
        text += f"({' | '.join(patterns)})" if patterns else ""
        text += f" unless {' | '.join(_tuple(self.unless))}" if self.unless else ""
        return text + (f", {', '.join(conditions)}" if conditions else "")


@cache
def parse_command_pattern(pattern: str) -> CommandPattern:
    """A command pattern in its tokens, quotes as in a shell. Raises `AmanuError` (invalidRule)."""
    pattern = pattern.strip()
    any_rest = pattern == "*" or pattern.endswith(" *")
    try:
        literal_tokens = tuple(shlex.split(pattern[:-1] if any_rest else pattern))
    except ValueError:
        raise AmanuError("invalidRule", f"A quote is left open in {pattern!r}.") from None
    if not literal_tokens and not any_rest:
        raise AmanuError("invalidRule", "A pattern of a command needs a word: git commit *")
    return CommandPattern(literal_tokens, any_rest)


def format_command_pattern(words: tuple[str, ...], *, any_rest: bool) -> str:
    """The pattern that has these tokens."""
    return shlex.join(words) + (" *" if any_rest else "")


def _about_commands(target: str) -> bool:
    return target in ("@run", "run_shell_command")


def _end_of(day: str) -> datetime:
    try:
        return datetime.combine(date.fromisoformat(day), time.max, UTC)
    except ValueError:
        raise AmanuError("invalidRule", f"{day} is no day of the calendar.") from None


def _tuple(value: tuple[str, ...] | str) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
