"""Reads hooks from configuration files: `hooks: {Event: [{matcher, hooks: [handler]}]}`.

    <config>/hooks.json                                    the user's
    <root>/.amanu/hooks.json                               a workspace's: read only once it is trusted
    <root>/.claude/settings.json, settings.local.json      the same
    <root>/.gemini/settings.json                           the same, in Gemini CLI's words

A handler has Claude Code's fields, and three of ours: `network`, `outside` (of the sandbox, the user's own only) and
`onFailure` ("ask", "block" or "continue").
"""

import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from amanu.core.tool import ToolError
from amanu.hooks.matching import matcher_fault
from amanu.hooks.model import GATES, Dialect, Event, Hook, HookSource, OnFailure
from amanu.workspace.workspace import Workspace

MAX_BYTES = 1 << 20
"""The most bytes of a configuration file that are read."""
MAX_HOOKS = 200
"""The most hooks taken from one file."""

PROJECT_FILES: tuple[tuple[str, Dialect], ...] = (
    (".amanu/hooks.json", "claude"),
    (".claude/settings.json", "claude"),
    (".claude/settings.local.json", "claude"),
    (".gemini/settings.json", "gemini"),
)
GEMINI_EVENTS: dict[str, Event] = {
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "BeforeAgent": "UserPromptSubmit",
    "AfterAgent": "Stop",
    "PreCompress": "PreCompact",
}
"""Gemini CLI's names for events that Claude Code calls by other names."""

_SETTINGS = ("enabled", "disabled", "notifications")
"""Gemini CLI's settings for all hooks, which it once had among the events."""
_SECONDS: dict[Dialect, float] = {"claude": 600.0, "gemini": 60.0}
"""Default time limits in seconds: those of Claude Code and Gemini CLI."""
_EVENT_SECONDS: dict[Event, float] = {"UserPromptSubmit": 30.0, "SessionEnd": 1.5, "SessionStart": 60.0}
"""Shorter limits where the user waits: Claude Code's, and ours for `SessionStart`, which holds up the first prompt."""
_MOST_SECONDS = 3600.0
_MOST_AT_END = 5.0
"""The longest limit for `SessionEnd`, in seconds: others wait for the session to be closed."""


def project_sources(roots: Sequence[Path]) -> list[HookSource]:
    """The files in which a workspace with those roots may configure hooks, whether or not they exist."""
    return [
        HookSource(root / name, name if len(roots) == 1 else f"{root.name}/{name}", "workspace", dialect, root)
        for root in roots
        for name, dialect in PROJECT_FILES
    ]


def user_source(config: Path, root: Path) -> HookSource:
    """The user's own file. `root` is the folder their hooks run in."""
    return HookSource(config / "hooks.json", "your hooks.json", "user", "claude", root)


def read_source(source: HookSource, workspace: Workspace) -> list[Hook]:
    """The hooks in that file; none if it does not exist or cannot be read. A file that is too long or no JSON object
    gives one hook, which is invalid and says why. Blocks."""
    data = _read(source, workspace)
    if data is None:
        return []
    try:
        tree = json.loads(data) if len(data) <= MAX_BYTES else None
    except (ValueError, RecursionError) as error:
        return [_invalid(source, f"{source.name} is not valid JSON: {error}.")]
    if not isinstance(tree, dict):
        return [_invalid(source, f"{source.name} is not a JSON object, or is longer than {MAX_BYTES:,} bytes.")]
    return hooks_of(cast("dict[str, Any]", tree), source)


def hooks_of(tree: Mapping[str, Any], source: HookSource) -> list[Hook]:
    """The hooks that a file's content configures, in order."""
    events: Any = tree.get("hooks")
    settings = _table(tree.get("hooksConfig"))
    if source.dialect == "gemini" and isinstance(events, dict):
        events = cast("dict[str, Any]", events)
        settings = {**{name: events[name] for name in _SETTINGS if name in events}, **settings}
        events = {name: groups for name, groups in events.items() if name not in _SETTINGS}
    everything_off = tree.get("disableAllHooks") is True or settings.get("enabled") is False
    disabled = {str(name) for name in _list(settings.get("disabled"))}
    hooks: list[Hook] = []
    for hook in _hooks(events, source):
        is_off = everything_off or bool(disabled & {hook.name, hook.command})
        hooks.append(replace(hook, disabled=is_off))
        if len(hooks) == MAX_HOOKS:
            return [*hooks, _invalid(source, f"{source.name} has more than {MAX_HOOKS} hooks; the rest are ignored.")]
    return hooks


def _hooks(tree: Any, source: HookSource) -> Iterator[Hook]:
    if tree is None:
        return
    if not isinstance(tree, dict):
        yield _invalid(source, "hooks must be an object: an event's name, then a list.")
        return
    for name, groups in cast("dict[str, Any]", tree).items():
        event = GEMINI_EVENTS.get(name, name)
        if event not in get_args(Event):
            yield _invalid(source, f"Unknown event {name!r}.")
            continue
        for group in _list(groups):
            handlers = _table(group).get("hooks")
            if not isinstance(handlers, list):
                yield _invalid(source, f"{name}: each entry must be an object with a list named hooks.")
                continue
            for handler in _list(handlers):
                yield _hook(cast("Event", event), _table(group), handler, source)


def _hook(event: Event, group: Mapping[str, Any], handler: Any, source: HookSource) -> Hook:
    matcher = group.get("matcher") or ""
    if not isinstance(handler, dict) or not isinstance(matcher, str):
        return _invalid(source, f"{event}: a hook must be an object, and its matcher a string.", event)
    fields = cast("dict[str, Any]", handler)
    command, arguments = fields.get("command"), fields.get("args")
    if fields.get("type", "command") != "command" or not isinstance(command, str) or not command.strip():
        kind = fields.get("type", "command")
        fault = "it has no command." if kind == "command" else f"hooks of type {kind!r} are not supported."
        return _invalid(source, f"{event}: {fault}", event)
    on_failure = fields.get("onFailure", "ask" if event in GATES else "continue")
    timeout, timeout_fault = _timeout(fields.get("timeout"), event, source.dialect)
    return Hook(
        event=event,
        matcher=matcher,
        command=command,
        source=source,
        arguments=tuple(map(str, arguments)) if isinstance(arguments, list) else None,  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        condition=str(fields.get("if") or ""),
        name=str(fields.get("name") or ""),
        timeout=timeout,
        environment={str(name): str(value) for name, value in _table(fields.get("env")).items()},
        sequential=group.get("sequential") is True,
        network=fields.get("network") is True,
        outside=fields.get("outside") is True,
        on_failure=cast("OnFailure", on_failure) if on_failure in get_args(OnFailure) else "ask",
        fault=timeout_fault or _fault(fields, on_failure, source.owner) or matcher_fault(matcher),
    )


def _fault(fields: Mapping[str, Any], on_failure: object, owner: str) -> str:
    """Why a handler cannot be run as it is written; "" when it can."""
    if fields.get("outside") is True and owner != "user":
        return "Only your own hooks may run outside the sandbox: remove `outside`."
    if fields.get("writes"):
        return "Hooks cannot change the workspace yet: remove `writes`, and let the agent run the command."
    if fields.get("async") is True:
        return "Background hooks are not supported: remove `async`."
    if on_failure not in get_args(OnFailure):
        return 'onFailure must be "ask", "block" or "continue".'
    if "\0" in str(fields.get("command")):
        return "Its command contains a NUL character."
    return ""


def _timeout(value: Any, event: Event, dialect: Dialect) -> tuple[float, str]:
    """(seconds, why the value is wrong or ""). Gemini's files give milliseconds; a value below 1000 there is taken for
    seconds, since nobody means to give a program less than one."""
    if value is None:
        return _EVENT_SECONDS.get(event, _SECONDS[dialect]), ""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return _SECONDS[dialect], "timeout must be a number above 0."
    seconds = value / 1000 if dialect == "gemini" and value >= 1000 else float(value)
    return min(seconds, _MOST_AT_END if event == "SessionEnd" else _MOST_SECONDS), ""


def _invalid(source: HookSource, fault: str, event: Event = "PreToolUse") -> Hook:
    return Hook(event, "", "", source, fault=fault)


def _read(source: HookSource, workspace: Workspace) -> bytes | None:
    """The bytes of the file, at most one more than allowed. A workspace's link is not followed out of it."""
    if not os.path.lexists(source.path):
        return None
    with contextlib.suppress(OSError, ToolError):
        if source.owner != "workspace":
            if not source.path.is_file():  # a pipe would hold us for ever
                return None
            with source.path.open("rb") as file:
                return file.read(MAX_BYTES + 1)
        with (
            workspace.guard.file(workspace.resolve(str(source.path))) as handle,
            os.fdopen(os.dup(handle), "rb") as file,
        ):
            return file.read(MAX_BYTES + 1)
    return None


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
