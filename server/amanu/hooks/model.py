"""What a hook is: a command of the user's or of a workspace that runs at a moment of a session, is told about it as
JSON, and answers. The words on the wire are Claude Code's, or Gemini CLI's (`Dialect`); in here they are one.

    config.py → matching.py, pins.py → call_input.py → runner.py → output.py → merge.py
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from amanu.text.display import one_line

Event = Literal[
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "Notification",
    "BeforeModel",
    "AfterModel",
    "BeforeToolSelection",
]
"""The last three are Gemini CLI's; all others have Claude Code's names."""

Dialect = Literal["claude", "gemini"]
"""Whose words a hook reads and writes."""

Owner = Literal["user", "workspace", "plugin"]

PLUGIN_VARIABLES = ("CLAUDE_PLUGIN_ROOT", "PLUGIN_ROOT", "extensionPath")
"""What stands for the folder of a hook's plug-in in its command: Claude Code's, Codex's and Gemini CLI's."""

OnFailure = Literal["ask", "block", "continue"]
"""What a hook that could not answer (crashed, ran too long) counts as."""

State = Literal["on", "new", "changed", "untrusted", "off", "invalid"]
"""`new`, `changed`: the user has not approved what it starts, or what that is now · `untrusted`: it starts files
of a workspace that is not trusted · `off`: disabled by configuration · `invalid`: it cannot be run."""

_LABEL = 80  # characters

GATES: frozenset[Event] = frozenset({"PreToolUse", "PermissionRequest"})
"""Here a hook that fails makes the user be asked, unless it says otherwise."""


@dataclass(frozen=True)
class HookSource:
    """A file that configures hooks."""

    path: Path
    name: str
    """For the user: ".claude/settings.json" …"""
    owner: Owner
    dialect: Dialect
    folder: Path
    """What its hooks run in, and what relative paths in their commands are relative to."""
    plugin: Path | None = None
    """The folder of the plug-in it belongs to."""


@dataclass(frozen=True)
class Hook:
    """One command for one event."""

    event: Event
    matcher: str
    """"" for everything."""
    command: str
    """A line for bash; with `arguments` a program."""
    source: HookSource
    arguments: tuple[str, ...] | None = None
    """Of the program, which is then started without a shell."""
    condition: str = ""
    """Claude's `if`: `Bash(git *)`; "" for none."""
    name: str = ""
    timeout: float = 60.0
    """Seconds."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    sequential: bool = False
    """Gemini's: the hooks of this moment run one after the other, each sees what those before it changed."""
    network: bool = False
    outside: bool = False
    """Outside the sandbox: only the user's own hooks."""
    on_failure: OnFailure = "continue"
    fault: str = ""
    """Why it cannot be run, a sentence; "" when it can."""
    disabled: bool = False

    @property
    def line(self) -> str:
        """The whole command, for the user."""
        return " ".join((self.command, *(self.arguments or ())))

    @property
    def label(self) -> str:
        """The hook's name for the user, on one short line. It is untrusted text, as its answers are."""
        label = one_line(" ".join((self.name or self.line).split()))
        return label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…"


@dataclass(frozen=True)
class HookView:
    """A hook as it stands now."""

    hook: Hook
    state: State
    reason: str = ""
    """A sentence, unless it is on."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path of each file of a workspace or plug-in that its command names → SHA-256."""
    contents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The same paths → their bytes."""
    digest: str = ""
    """Of all that an approval is about."""


@dataclass(frozen=True)
class CallFacts:
    """The tool call a moment is about."""

    tool: str
    """By our name."""
    arguments: Mapping[str, JsonValue]
    """Under our names."""
    call_id: str
    writes: Sequence[str] = ()
    """Absolute paths that it changes."""
    commands: Sequence[str] = ()
    """For `Hook.condition`: what it is about, one text each: the commands of a line, or a path."""


@dataclass(frozen=True)
class HookMoment:
    """What happens, for the hooks of it."""

    event: Event
    about: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The fields of the event, beside those every event has and those of `call`."""
    subject: str = ""
    """What a matcher is matched against, without a call: a session's source, a compaction's trigger …"""
    call: CallFacts | None = None
    gemini: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """For a hook in Gemini's words: fields beside those of `about`, or instead of those with the same name."""


@dataclass(frozen=True)
class HookRun:
    """A hook has run."""

    hook: Hook
    exit_code: int | None
    """None: it was not started, or ended by us."""
    stdout: str
    stderr: str
    seconds: float
    failure: str = ""
    """Why it did not come to an end of its own, a sentence; "" when it did."""


Action = Literal["none", "allow", "ask", "deny"]
"""`deny` of a `Stop` or `SubagentStop` means: go on."""


@dataclass(frozen=True)
class HookDecision:
    """What one hook answered."""

    action: Action = "none"
    reason: str = ""
    """To the model with `deny`, to the user with `ask`."""
    context: str = ""
    """For the model."""
    message: str = ""
    """For the user."""
    updated_input: Mapping[str, JsonValue] | None = None
    """The call's arguments in the hook's words."""
    updated_output: str | None = None
    """Instead of the call's result, or of the model's reply."""
    selected_tools: frozenset[str] | None = None
    """The only tools that the next reply may call, by whatever names; None: no limit."""
    ends: bool = False
    """The turn is to end."""
    end_reason: str = ""


@dataclass(frozen=True)
class HookOutcome:
    """What the hooks of one moment answered together."""

    action: Action = "none"
    reason: str = ""
    decided_by: str = ""
    """The hook that decided, for the user."""
    contexts: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    updated_input: Mapping[str, JsonValue] | None = None
    updated_by: Hook | None = None
    updated_output: str | None = None
    selected_tools: frozenset[str] | None = None
    ends: bool = False
    end_reason: str = ""
    runs: tuple[HookRun, ...] = ()
