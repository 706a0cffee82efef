"""The user's approvals: of a hook together with the content of the files it starts.

A configuration line says little about what runs, since the script it names may change. So an approval covers the event,
the matcher, the command, what it may do, and the bytes of every file of the workspace (or plug-in) that the command
names. After any change, the hook is off until the user approves it again. A user's own hook that names no such file
needs no approval: their configuration is one.

Whatever a script starts in turn is not checked: the sandbox confines it.

    <state>/hooks.json      the approvals
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from amanu.core.tool import ToolError
from amanu.hooks.model import PLUGIN_VARIABLES, Hook, HookView
from amanu.system import named_files as files_of_command
from amanu.system.named_files import MAX_FILES
from amanu.system.private_file import PrivateFile
from amanu.workspace.workspace import Workspace

MAX_FILE = 4 << 20
"""The most bytes of a file that can be approved."""


class HookPins:
    """Safe in threads: each change replaces the file as a whole. Methods block, and raise `AmanuError`
    (storageError)."""

    def __init__(self, path: Path) -> None:
        self._file = PrivateFile(path)

    def view(self, hook: Hook, workspace: Workspace, home: str = "") -> HookView:
        """How a hook stands now. `home` is the user's home folder."""
        if hook.fault:
            return HookView(hook, "invalid", hook.fault)
        paths = named_files(hook, workspace, home)
        contents: dict[str, bytes] = {}
        for path in paths:
            data = _read(path)
            if data is None:
                return HookView(hook, "invalid", f"{path} cannot be read, or is longer than {MAX_FILE:,} bytes.")
            contents[str(path)] = data
        if len(paths) > MAX_FILES:
            return HookView(hook, "invalid", f"Its command names more than {MAX_FILES} files.")
        files = {path: hashlib.sha256(data).hexdigest() for path, data in contents.items()}
        view = HookView(hook, "on", "", files, contents, _digest(hook, files))
        if hook.disabled:
            return _with(view, "off", f"{hook.source.name} turns it off.")
        if _is_reviewed(hook, paths):
            return view
        approved = self._approved().get(_key(hook))
        if approved is None:
            return _with(view, "new", "It needs your approval.")
        if approved.get("digest") == view.digest:
            return view
        return _with(view, "changed", _difference(approved, files))

    def program_files(self, hook: Hook, workspace: Workspace, home: str = "") -> list[Path]:
        """The files of a hook that is approved or needs no approval, even if it has changed since. None is read."""
        if hook.fault or hook.disabled:
            return []
        paths = named_files(hook, workspace, home)
        return paths if _is_reviewed(hook, paths) or _key(hook) in self._approved() else []

    def approve(self, views: Sequence[HookView]) -> None:
        """Record that the user approves these hooks, as they were when the views were made."""
        entries = {
            _key(view.hook): {
                "digest": view.digest,
                "event": view.hook.event,
                "command": view.hook.label,
                "files": dict(view.files),
                "at": int(time.time()),
            }
            for view in views
        }
        self._file.write({"hooks": {**self._approved(), **entries}})

    def _approved(self) -> Mapping[str, Mapping[str, Any]]:
        hooks = self._file.read().get("hooks")
        return cast("dict[str, dict[str, Any]]", hooks) if isinstance(hooks, dict) else {}


def named_files(hook: Hook, workspace: Workspace, home: str = "") -> list[Path]:
    """The files of the workspace or of the hook's plug-in that its command names, as real paths, sorted."""
    folder = hook.source.folder
    variables = {
        **{name: str(folder) for name in ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "GEMINI_CWD", "PWD")},
        **dict.fromkeys(PLUGIN_VARIABLES, str(hook.source.plugin or folder)),
        "HOME": home,
        **hook.environment,
    }
    texts = [files_of_command.expanded(text, variables) for text in (hook.command, *(hook.arguments or ()))]
    return files_of_command.named_files(texts, folder, home, lambda path: _is_theirs(path, hook, workspace))


def _is_reviewed(hook: Hook, paths: Sequence[Path]) -> bool:
    """Whether a hook that names those files needs no approval: it is the user's and names none, or is a plug-in's and
    names only files of the plug-in. The user has reviewed those, and any change to them turns the plug-in off."""
    if hook.source.owner == "user" and not paths:
        return True
    plugin = hook.source.plugin
    return plugin is not None and all(path.is_relative_to(plugin) for path in paths)


def own_files(hook: Hook, workspace: Workspace, home: str = "") -> list[Path]:
    """The files outside the workspace that the command of a user's hook names: their own scripts."""
    if hook.source.owner != "user":
        return []
    words = [
        word
        for text in (hook.command, *(hook.arguments or ()))
        for word in files_of_command.words_of(files_of_command.expanded(text, {"HOME": home}), home)
    ]
    paths = [Path(word) for word in dict.fromkeys(words) if os.path.isabs(word)]  # noqa: PTH117
    return [path for path in paths if _is_file(path) and workspace.guard.inside(path) is None]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_theirs(path: Path, hook: Hook, workspace: Workspace) -> bool:
    """Whether the file belongs to the workspace or the hook's plug-in, by its path or by where that really leads."""
    real = Path(os.path.realpath(path))
    if hook.source.plugin is not None and real.is_relative_to(os.path.realpath(hook.source.plugin)):
        return True
    spelled = Path(os.path.normpath(path))
    if any(spelled.is_relative_to(root) or real.is_relative_to(root) for root in workspace.roots):
        return True
    try:
        return workspace.guard.inside(real) is not None
    except (OSError, ToolError):
        return False


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError:
        return None
    return data if len(data) <= MAX_FILE else None


def _with(view: HookView, state: Any, reason: str) -> HookView:
    return HookView(view.hook, state, reason, view.files, view.contents, view.digest)


def _difference(approved: Mapping[str, Any], files: Mapping[str, str]) -> str:
    before = approved.get("files")
    before = cast("dict[str, str]", before) if isinstance(before, dict) else {}
    changed = sorted(path for path in {*before, *files} if before.get(path) != files.get(path))
    if changed:
        return f"Changed since you approved it: {', '.join(changed)}."
    return "What it may do, or how it is run, has changed since you approved it."


def _key(hook: Hook) -> str:
    """The identity of a hook, whatever its files contain."""
    place = [str(hook.source.path), str(hook.source.folder)]
    line = [hook.event, hook.matcher, hook.command, list(hook.arguments or ())]
    return hashlib.sha256(json.dumps([place, line]).encode("utf-8", "surrogatepass")).hexdigest()


def _digest(hook: Hook, files: Mapping[str, str]) -> str:
    conditions = [hook.condition, hook.sequential, hook.on_failure]
    grants = [hook.network, hook.outside, sorted(hook.environment.items()), hook.arguments is None]
    whole = json.dumps([_key(hook), conditions, grants, sorted(files.items())])
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
