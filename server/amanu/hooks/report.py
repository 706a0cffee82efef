"""Describes hooks to the user."""

from collections.abc import Sequence

from amanu.hooks.matching import TOOL_NAMES, matches_tool, names
from amanu.hooks.model import Event, Hook, HookView
from amanu.text.display import one_line, visible

_STATES = {
    "on": "on",
    "new": "off: needs your approval",
    "changed": "off: changed since you approved it",
    "off": "off",
    "untrusted": "off: the folder is not trusted",
    "invalid": "off: cannot be run",
}

_NOT_DONE: dict[Event, str] = {
    "BeforeModel": "in llm_request, all but the texts of messages (you choose the model)",
    "BeforeToolSelection": "the force of mode ANY (it only limits the tools)",
    "Stop": "clearContext (only you can shorten a conversation)",
}
"""Event → the part of Gemini CLI's answers to it that Amanu does not support."""


def off_sentence(views: Sequence[HookView]) -> str:
    """The text that says which hooks are off, and what the user can do."""
    count = "One hook is off" if len(views) == 1 else f"{len(views)} hooks are off"
    lines = [f"{_place(view.hook)}: {one_line(view.hook.label)}. {visible(view.reason)}" for view in views]
    text = "\n".join([f"{count}:", *(f"  {line}" for line in lines)])
    if any(view.state in ("new", "changed") for view in views):
        text += "\n/hooks shows them; /hooks approve NUMBER approves one."
    return text


def listing(views: Sequence[HookView], unread: Sequence[str] = ()) -> str:
    """All hooks, numbered from 1. `unread`: files that are not read until the workspace is trusted."""
    lines = [line for number, view in enumerate(views, 1) for line in _described(number, view)]
    if unread:
        lines.append(f"Not read, because the folder is not trusted: {', '.join(unread)}.")
    return "\n".join(lines or ["No hooks are configured."])


def _described(number: int, view: HookView) -> list[str]:
    hook = view.hook
    lines = [f"{number}. {_place(hook)}: {_STATES[view.state]}"]
    lines += [f"   {visible(hook.name)}:"] if hook.name else []
    lines += [f"   {line}" for line in visible(hook.line).splitlines()]  # in full, since that is what is approved
    lines += [f"   with {one_line(name)}={visible(value)}" for name, value in hook.environment.items()]
    lines += [f"   if {visible(hook.condition)}"] if hook.condition else []
    if view.reason and view.state != "new":
        lines.append(f"   {visible(view.reason)}")
    lines += [f"   runs {visible(path)} (sha256 {digest[:12]})" for path, digest in view.files.items()]
    if not hook.fault:
        lines.append(f"   {access(hook)}; at most {hook.timeout:g} s")
        if hook.event in _NOT_DONE and (hook.event != "Stop" or hook.source.dialect == "gemini"):
            lines.append(f"   not supported: {_NOT_DONE[hook.event]}")
        if hook.event in ("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"):
            lines += _unmatched(hook)
    return lines


def access(hook: Hook) -> str:
    """The words for what a hook may do."""
    if hook.outside:
        return "not sandboxed: it can do anything you can"
    network = "with the network" if hook.network else "no network"
    return f"sandboxed: reads the workspace, changes nothing, {network}"


def _place(hook: Hook) -> str:
    matcher = f" {one_line(hook.matcher)}" if hook.matcher not in ("", "*") else ""
    return f"{hook.event}{matcher} ({hook.source.name})"


def _unmatched(hook: Hook) -> list[str]:
    known = [name for tool in TOOL_NAMES for name in names(tool)]
    if "mcp" in hook.matcher or matches_tool(hook, known):
        return []
    return ["   its matcher matches no known tool, so it may never run"]
