"""Hooks for tests: scripts of a workspace or of the user, configured, and agreed to."""

import importlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amanu.config import Settings
from amanu.home import find_home
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import Notice, ToolCall
from amanu_protocol.requests import AuditQueryParams
from support.scripted_session import ScriptedSession

PROJECT = ".amanu/hooks.json"
GEMINI = ".gemini/settings.json"


TELLS = """printf '{"systemMessage": "%s"}' "$(sed 's/[\\\\"]/\\\\&/g')\""""
"""A command that shows the user all it is told."""


def script(root: Path, name: str, text: str) -> str:
    """A script in the root; returns a command that starts it."""
    path = root / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f'"$CLAUDE_PROJECT_DIR"/hooks/{name}'


def handler(command: str, *, matcher: str = "", **fields: Any) -> dict[str, Any]:
    """A group with one hook. Fields of the group: `sequential`."""
    group = {"sequential": True} if fields.pop("sequential", False) else {}
    return {"matcher": matcher, **group, "hooks": [{"type": "command", "command": command, **fields}]}


def answer(specific: Mapping[str, Any] | None = None, /, **fields: Any) -> str:
    """A command that answers with that JSON, whatever it is told."""
    tree = {**fields, **({"hookSpecificOutput": dict(specific)} if specific else {})}
    return f"cat > /dev/null; echo {_quoted(json.dumps(tree))}"


def configure(root: Path, name: str = PROJECT, /, **events: Any) -> None:
    """Configure the workspace's hooks: event → groups. `_config`: further keys of the file."""
    more = events.pop("_config", {})
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"hooks": events, **more}))


def configure_user(**events: Any) -> None:
    """Configure the user's own hooks."""
    home = find_home(os.environ).make()
    (home.config / "hooks.json").write_text(json.dumps({"hooks": events}))


def hooks_of_user() -> Any:
    """The `Hooks` of a daemon. Imported by name: files with a single test of hooks are read without the part, too."""
    return importlib.import_module("amanu.hooks.part").DaemonHooks(find_home(os.environ).make(), Settings(), None).hooks


def agree(root: Path) -> None:
    """The user agrees to all hooks of that workspace as they are now."""
    hooks = hooks_of_user()
    hooks.pins.approve(hooks.views(Workspace([root], Overlay()), trusted=True))


def notices(d: ScriptedSession, code: str = "hook") -> str:
    """What the user was shown, with what stands behind it."""
    return "\n".join(
        f"{item.text}\n{item.detail}"
        for item in d.session.state.items
        if isinstance(item, Notice) and item.code == code
    )


def tool_calls(d: ScriptedSession) -> list[ToolCall]:
    return [item for item in d.session.state.items if isinstance(item, ToolCall)]


async def hook_entries(d: ScriptedSession) -> list[dict[str, Any]]:
    """What the audit log holds of hooks."""
    log = await d.sessions.audit_query(AuditQueryParams(session_id="s", limit=1000))
    return [{**entry.data, "call": entry.tool_call_id} for entry in log.entries if entry.kind == "hook"]


async def trust_hooks(d: ScriptedSession) -> None:
    """The user trusts the folder and agrees to its hooks."""
    agree(d.root)
    await d.trust()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
