"""A hook is a command of the user, a workspace or a plug-in that runs at a certain moment of a session, is told about
it as JSON, and answers. On the wire it uses Claude Code's words or Gemini CLI's (`Dialect`); in here both are the same.

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
"""The last three are Gemini CLI's; all others go by Claude Code's names."""

Dialect = Literal["claude", "gemini"]
"""The tool whose words a hook reads and writes."""

Owner = Literal["user", "workspace", "plugin"]

PLUGIN_VARIABLES = ("CLAUDE_PLUGIN_ROOT", "PLUGIN_ROOT", "extensionPath")
"""Variables for the folder of a hook's plug-in in its command: Claude Code's, Codex's and Gemini CLI's."""

OnFailure = Literal["ask", "block", "continue"]
"""The answer assumed for a hook that could not answer (crashed, ran too long)."""

State = Literal["on", "new", "changed", "untrusted", "off", "invalid"]
"""`new`: the user has not approved what it starts · `changed`: they have, but not as it is now · `untrusted`: it starts
files of a workspace that is not trusted · `off`: disabled by configuration · `invalid`: it cannot be run."""

_LABEL = 80  # characters

GATES: frozenset[Event] = frozenset({"PreToolUse", "PermissionRequest"})
"""The events at which the user is asked if a hook fails, unless it says otherwise."""


@dataclass(frozen=True)
class HookSource:
    """A file that configures hooks."""

    path: Path
    name: str
    """For the user: ".claude/settings.json" …"""
    owner: Owner
    dialect: Dialect
    folder: Path
    """The folder its hooks run in; relative paths in their commands are relative to it."""
    plugin: Path | None = None
    """The folder of the plug-in it belongs to."""


@dataclass(frozen=True)
class Hook:
    """One command for one event."""

    event: Event
    matcher: str
    """"" matches everything."""
    command: str
    """A line for bash or, with `arguments`, a program."""
    source: HookSource
    arguments: tuple[str, ...] | None = None
    """The program's arguments; it is then started without a shell."""
    condition: str = ""
    """Claude's `if`: `Bash(git *)`; "" for none."""
    name: str = ""
    timeout: float = 60.0
    """Seconds."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    sequential: bool = False
    """Gemini's: the hooks of this moment run one after the other, and each is told what those before it changed or
    added."""
    network: bool = False
    outside: bool = False
    """It runs outside the sandbox; only the user's own hooks may."""
    on_failure: OnFailure = "continue"
    fault: str = ""
    """A sentence that says why it cannot be run; "" if it can."""
    disabled: bool = False

    @property
    def line(self) -> str:
        """The whole command, for the user."""
        return " ".join((self.command, *(self.arguments or ())))

    @property
    def label(self) -> str:
        """The hook's name for the user, on one short line. It is untrusted text, like the hook's answers."""
        label = one_line(" ".join((self.name or self.line).split()))
        return label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}…"


@dataclass(frozen=True)
class HookView:
    """A hook as it stands now."""

    hook: Hook
    state: State
    reason: str = ""
    """A sentence that says why, unless it is on."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Path of each file of a workspace or plug-in that its command names → SHA-256."""
    contents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """The same paths → their bytes."""
    digest: str = ""
    """The digest of all that an approval is about."""


@dataclass(frozen=True)
class CallFacts:
    """The tool call a moment is about."""

    tool: str
    """Its name here."""
    arguments: Mapping[str, JsonValue]
    """The arguments under the names they have here."""
    call_id: str
    writes: Sequence[str] = ()
    """The absolute paths that it changes."""
    commands: Sequence[str] = ()
    """The subjects of the call, for `Hook.condition`: the commands of its line, or its paths."""


@dataclass(frozen=True)
class HookMoment:
    """A moment of a session, as its hooks are to be told of it."""

    event: Event
    about: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The fields of the event, apart from those that every event has and those of `call`."""
    subject: str = ""
    """The text that a matcher is matched against if there is no call: a session's source, a compaction's trigger …"""
    call: CallFacts | None = None
    gemini: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Fields for hooks that use Gemini's words: they add to those of `about`, or replace those with the same name."""


@dataclass(frozen=True)
class HookRun:
    """One run of a hook."""

    hook: Hook
    exit_code: int | None
    """None: the hook was not started, or we ended it."""
    stdout: str
    stderr: str
    seconds: float
    failure: str = ""
    """A sentence that says why the run failed; "" if it did not."""


Action = Literal["none", "allow", "ask", "deny"]
"""`deny` of a `Stop` or `SubagentStop` means: go on."""


@dataclass(frozen=True)
class WantedCall:
    """A call that a hook wants to take the place of the one it heard of, in the hook's words."""

    tool: str
    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True)
class HookDecision:
    """The answer of one hook."""

    action: Action = "none"
    reason: str = ""
    """Shown to the model with `deny`, to the user with `ask`."""
    context: str = ""
    """Text for the model."""
    message: str = ""
    """Text for the user."""
    updated_input: Mapping[str, JsonValue] | None = None
    """The call's arguments in the hook's words."""
    updated_output: str | None = None
    """Text that replaces the call's result, or the model's reply."""
    selected_tools: frozenset[str] | None = None
    """The only tools that the next reply may call, under any of their names; None: no limit."""
    next_call: WantedCall | None = None
    request: Mapping[str, JsonValue] | None = None
    """The fields that the request to the model is to have instead, in Gemini CLI's form."""
    ends: bool = False
    """The turn is to end."""
    end_reason: str = ""
    ignored: tuple[str, ...] = ()
    """The parts of its answer that Amanu does not support; a sentence each, for the user."""


@dataclass(frozen=True)
class HookOutcome:
    """The merged answer of the hooks of one moment."""

    action: Action = "none"
    reason: str = ""
    decided_by: str = ""
    """The labels of the hooks that decided, for the user."""
    contexts: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    updated_input: Mapping[str, JsonValue] | None = None
    updated_by: Hook | None = None
    updated_output: str | None = None
    selections: tuple[frozenset[str], ...] = ()
    """The next reply may call only tools that are in each of them, under any of their names."""
    next_call: WantedCall | None = None
    next_by: Hook | None = None
    request: Mapping[str, JsonValue] | None = None
    ends: bool = False
    end_reason: str = ""
    ignored: tuple[tuple[str, str], ...] = ()
    """(label of the hook, a sentence about a part of its answer that Amanu does not do)."""
    runs: tuple[HookRun, ...] = ()
