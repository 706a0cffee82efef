"""A policy rule, written as text or as a TOML table.

Text is what approvals show and remember:

    edit_file(src/**)                      a tool, and a glob for the path relative to its root
    @write                                 every tool that writes; likewise @read, @run, and * for all
    run_shell_command(npm test)            exactly this command, token by token
    run_shell_command(npm run *)           this, followed by anything
    run_shell_command(A=1 npm test *)      with exactly this variable set
    @run+network(npm install *)            with network access
    @run+unsandboxed(docker ps *)          outside the sandbox
    @write(docs/**) until 2026-12-24       until the end of that day, UTC
    mcp__git__commit                       a tool of the MCP server "git"; mcp__git__* all of them

A table, `[[rule]]` in the settings, can say the same and more: see `RuleTable`.
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
    r"(?P<target>\*|mcp__[A-Za-z0-9_*-]+|@?[A-Za-z][A-Za-z0-9_-]*)(?P<network>\+network)?(?P<unsandboxed>\+unsandboxed)?(?:\((?P<pattern>.+)\))?"
    r"(?:\s+until\s+(?P<until>\d{4}-\d{2}-\d{2}))?",
    re.DOTALL,
)
_GRANTS: tuple[Grant, ...] = ("network", "unsandboxed")
_EFFECTS = ("@read", "@write", "@run")
MCP = "mcp__"
"""How the name of every tool of an MCP server begins: `mcp__server__tool`."""


@dataclass(frozen=True)
class CommandPattern:
    """`git commit *` is the tokens "git" and "commit", with anything after them (`any_rest`)."""

    tokens: tuple[str, ...]
    any_rest: bool


@dataclass(frozen=True)
class Rule:
    """One rule and where it comes from ("mode plan", "session", "your config.toml" …)."""

    kind: Kind
    text: str
    """The rule as text; for a table, as close to that as possible."""
    origin: str
    targets: tuple[str, ...]
    """The rule applies to any of these: names of tools, `@read`, `@write`, `@run`, `*`; `mcp__git__*` is a glob."""
    patterns: tuple[str, ...] = ()
    """Any of these must match: globs for a path; for commands see `commands`. Empty: matches everything."""
    unless: tuple[str, ...] = ()
    """Globs for paths that are excepted."""
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    """Argument → glob for its value as text; all must match."""
    servers: tuple[str, ...] = ()
    """Only calls of these MCP servers, `*` for any. Empty: it is about other calls, too."""
    modes: tuple[Mode, ...] = ()
    trusted: bool | None = None
    until: datetime | None = None
    network: bool = False
    """An allowed command has network access."""
    unsandboxed: bool = False
    """An allowed command runs outside the sandbox."""
    harmless: bool | None = None
    """True: only commands without an effect. False: only commands that have or may have one."""
    ruin: bool = False
    """Only commands that destroy what nobody can bring back."""
    secret: bool = False
    """Only files that hold secrets (`protected_paths.is_secret`)."""
    plan: bool | None = None
    """True: only the session's plan. False: only other files."""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.origin}: {self.kind} {self.text}" + (f" ({self.reason})" if self.reason else "")

    @property
    def commands(self) -> tuple[CommandPattern, ...]:
        """`patterns`, parsed as command patterns."""
        return tuple(map(parse_command_pattern, self.patterns))


def parse_rule(kind: Kind, text: str, origin: str) -> Rule:
    """The rule a text stands for. Raises `AmanuError` (invalidRule), which says what is wrong."""
    text = text.strip()
    match = _TEXT.fullmatch(text)
    if match is None:
        raise AmanuError(
            "invalidRule",
            f"{text!r} is not a rule.",
            hint="A rule is a tool's name, @read, @write or @run, optionally with a pattern: edit_file(src/**)",
        )
    target, pattern, network = match["target"], match["pattern"], match["network"] is not None
    if target.startswith("@") and target not in _EFFECTS:
        raise AmanuError("invalidRule", f"{target} is not an effect. Use @read, @write or @run.")
    unsandboxed = match["unsandboxed"] is not None
    if (target in ("@read", "@write") or target.startswith(MCP)) and (network or unsandboxed):
        suffix = "+network" if network else "+unsandboxed"
        raise AmanuError("invalidRule", f"{suffix} applies only to commands, not to {target}.")
    if pattern is not None and _about_commands(target):
        parse_command_pattern(pattern)  # raises if it is invalid
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
    """A text with one rule per line, its rules about commands with `grants` added, or with only these. Lines that are
    no rules stay as they are."""

    def line(text: str) -> str:
        match = _TEXT.fullmatch(text.strip())
        if match is None or match["target"] in ("@read", "@write") or match["target"].startswith(MCP):
            return text
        all_grants = {*grants} | ({grant for grant in _GRANTS if match[grant]} if not only else set[Grant]())
        suffix = text.strip()[max(match.end(group) for group in ("target", *_GRANTS)) :]
        return match["target"] + "".join(f"+{grant}" for grant in _GRANTS if grant in all_grants) + suffix

    return "\n".join(map(line, text.splitlines()))


class RuleTable(BaseModel):
    """A rule with conditions; all of those given must hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    decision: Kind
    """`deny` takes precedence over `mustAsk`, and `mustAsk` over `allow`."""
    tool: tuple[str, ...] | str = "*"
    """A tool's name, `@read`, `@write`, `@run` or `*`; or a list of these. With `server` also that server's own name
    for a tool."""
    server: tuple[str, ...] | str = ()
    """Only tools of this MCP server, or of one of these; `*` for any server."""
    path: tuple[str, ...] | str = ()
    """Globs for the path relative to its root: `*` stays within a folder, `**` does not."""
    unless: tuple[str, ...] | str = ()
    """Globs for paths that are excepted."""
    command: tuple[str, ...] | str = ()
    """Commands by their tokens: `git commit` means exactly that, `git commit *` anything that follows too."""
    arguments: Mapping[str, str] = Field(default_factory=dict)
    """Argument → glob for its value."""
    mode: tuple[Mode, ...] | Mode = ()
    """Only in this mode, or in one of these."""
    trusted: bool | None = None
    """Only where the workspace is trusted (true) or is not (false)."""
    until: date | None = None
    """Valid until the end of that day, UTC."""
    network: bool = False
    """An allowed command has network access."""
    unsandboxed: bool = False
    """An allowed command runs outside the sandbox, with all the user's rights."""
    harmless: bool | None = None
    """Only commands that are known to have no effect (true), or only others (false)."""
    ruin: bool = False
    """Only commands that destroy what nobody can bring back (`rm -rf ~`)."""
    secret: bool = False
    """Only files whose names say that they hold secrets (`.env`, `id_rsa`, `*.pem` …)."""
    plan: bool | None = None
    """Only the session's plan (true), or only other files (false)."""
    reason: str = ""
    """For the user, shown with the decision."""

    @model_validator(mode="after")
    def _validate(self) -> "RuleTable":
        if _tuple(self.path) and _tuple(self.command):
            raise ValueError("a rule is about paths or about commands, not both")
        if _tuple(self.server) and _tuple(self.command):
            raise ValueError("a rule is about a server or about commands, not both")
        for tool in _tuple(self.tool):
            if not self.server and not re.fullmatch(
                r"\*|@read|@write|@run|mcp__[A-Za-z0-9_*-]+|[A-Za-z][A-Za-z0-9_-]*", tool
            ):
                raise ValueError(f"{tool!r} is not the name of a tool, @read, @write, @run or *")
        for pattern in _tuple(self.command):
            try:
                parse_command_pattern(pattern)
            except AmanuError as error:
                raise ValueError(str(error)) from None
        return self

    def rule(self, origin: str) -> Rule:
        """The rule this table stands for."""
        patterns = _tuple(self.command) or _tuple(self.path)
        # A command pattern applies to commands, whichever tool runs them.
        targets = ("@run",) if _tuple(self.command) and self.tool == "*" else _tuple(self.tool)
        return Rule(
            self.decision,
            self._describe(targets, patterns),
            origin,
            targets,
            patterns,
            servers=_tuple(self.server),
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
            plan=self.plan,
            reason=self.reason,
        )

    def _describe(self, targets: tuple[str, ...], patterns: tuple[str, ...]) -> str:
        conditions = [
            *([f"server {'/'.join(_tuple(self.server))}"] if self.server else []),
            *(f"{name} like {value}" for name, value in self.arguments.items()),
            *(["mode " + "/".join(_tuple(self.mode))] if self.mode else []),
            *([("" if self.trusted else "not ") + "trusted"] if self.trusted is not None else []),
            *([f"until {self.until}"] if self.until else []),
            *([("without" if self.harmless else "with an") + " effect"] if self.harmless is not None else []),
            *(["ruinous"] if self.ruin else []),
            *(["files that hold secrets"] if self.secret else []),
            *([] if self.plan is None else ["the plan" if self.plan else "other files than the plan"]),
        ]
        text = "/".join(targets) + ("+network" if self.network else "") + ("+unsandboxed" if self.unsandboxed else "")
        text += f"({' | '.join(patterns)})" if patterns else ""
        text += f" unless {' | '.join(_tuple(self.unless))}" if self.unless else ""
        return text + (f", {', '.join(conditions)}" if conditions else "")


@cache
def parse_command_pattern(pattern: str) -> CommandPattern:
    """The tokens of a command pattern, quoted as in a shell. Raises `AmanuError` (invalidRule)."""
    pattern = pattern.strip()
    any_rest = pattern == "*" or pattern.endswith(" *")
    try:
        literal_tokens = tuple(shlex.split(pattern[:-1] if any_rest else pattern))
    except ValueError:
        raise AmanuError("invalidRule", f"Unclosed quote in {pattern!r}.") from None
    if not literal_tokens and not any_rest:
        raise AmanuError("invalidRule", "A command pattern needs at least one word: git commit *")
    return CommandPattern(literal_tokens, any_rest)


def format_command_pattern(words: tuple[str, ...], *, any_rest: bool) -> str:
    """The text of the command pattern with these tokens."""
    return shlex.join(words) + (" *" if any_rest else "")


def _about_commands(target: str) -> bool:
    return target in ("@run", "run_shell_command")


def _end_of(day: str) -> datetime:
    try:
        return datetime.combine(date.fromisoformat(day), time.max, UTC)
    except ValueError:
        raise AmanuError("invalidRule", f"{day} is not a valid date.") from None


def _tuple(value: tuple[str, ...] | str) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
