"""A plug-in as its manifest describes it, in Claude Code's layout or Gemini CLI's."""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from amanu.context.extension_folders import read_file
from amanu.text.display import one_line
from amanu_protocol.errors import AmanuError

CLAUDE = ".claude-plugin/plugin.json"
GEMINI = "gemini-extension.json"
ROOT_NAMES = ("${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}", "${extensionPath}")
"""What stands for the plug-in's folder in its files."""
PLUGIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")

Pins = Mapping[str, str]
"""Path in the plug-in, with `/` → SHA-256 of the file."""


@dataclass(frozen=True)
class Plugin:
    """A plug-in, as its files say."""

    name: str
    layout: Literal["claude", "gemini"]
    folder: Path
    """Its copy, by its real path."""
    files: Pins
    version: str = ""
    description: str = ""
    commands: Sequence[str] = ("commands",)
    skills: Sequence[str] = ("skills",)
    agents: Sequence[str] = ("agents",)
    """Paths of folders or single files in it; a folder need not exist."""
    hooks: Sequence[Mapping[str, Any]] = ()
    """Each event → groups of hooks, as in the file, in the layout's own words; the plug-in's folder is filled in."""
    mcp_servers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Name → configuration as in the file; the plug-in's folder is filled in."""
    memory_files: Sequence[str] = ()
    """Paths of files in it that tell every model something (Gemini CLI's `contextFileName`)."""
    warnings: Sequence[str] = ()
    """What of it could not be read: sentences for the user."""

    @property
    def digest(self) -> str:
        """Of all its files."""
        return digest_of(self.files)


def read_plugin(folder: Path, files: Pins) -> Plugin:
    """The plug-in in that folder, which holds those files. Raises `AmanuError` (invalidParams) when it is none."""
    layout = "claude" if CLAUDE in files else "gemini"
    manifest = _json(folder, CLAUDE if layout == "claude" else GEMINI)
    if manifest is None:
        raise AmanuError(
            "invalidParams",
            f"{one_line(str(folder))} is not a plug-in: it has no readable {CLAUDE} or {GEMINI}.",
        )
    name = manifest.get("name")
    if not isinstance(name, str) or not PLUGIN_NAME.match(name):
        raise AmanuError(
            "invalidParams", f"The plug-in's name {one_line(str(name))!r} is not valid: use letters, digits, - and _."
        )
    plugin = Plugin(
        name=name,
        layout=layout,
        folder=Path(os.path.realpath(folder)),
        files=files,
        version=one_line(str(manifest.get("version") or "")),
        description=one_line(str(manifest.get("description") or "")),
    )
    reader = _Reader(plugin, manifest)
    return replace(
        plugin,
        commands=reader.paths("commands"),
        skills=reader.paths("skills"),
        agents=reader.paths("agents"),
        hooks=reader.hooks(),
        mcp_servers=reader.servers(),
        memory_files=reader.memory_files(),
        warnings=reader.warnings,
    )


def digest_of(files: Pins) -> str:
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()


@dataclass
class _Reader:
    """Reads the parts that a manifest names."""

    plugin: Plugin
    manifest: Mapping[str, Any]
    warnings: list[str] = field(default_factory=list[str])

    def paths(self, key: str) -> tuple[str, ...]:
        """The usual folder, and those that the manifest names besides."""
        value = self.manifest.get(key)
        named = cast("list[object]", value) if isinstance(value, list) else [value] if isinstance(value, str) else []
        return tuple(dict.fromkeys([key, *(path for path in map(self._inside, named) if path is not None)]))

    def hooks(self) -> list[Mapping[str, Any]]:
        configurations: list[object] = [self._file("hooks/hooks.json")]
        value = self.manifest.get("hooks")
        configurations += [self._file(path)] if (path := self._inside(value)) is not None else [value]
        trees = [cast("Mapping[str, Any]", tree) for tree in configurations if isinstance(tree, dict)]
        events = [tree["hooks"] if isinstance(tree.get("hooks"), dict) else tree for tree in trees]
        return [self._filled(event) for event in events if event]

    def servers(self) -> dict[str, Mapping[str, Any]]:
        value = self.manifest.get("mcpServers")
        configurations: list[object] = [self._file(".mcp.json")] if self.plugin.layout == "claude" else []
        configurations += [self._file(path)] if (path := self._inside(value)) is not None else [value]
        servers: dict[str, Mapping[str, Any]] = {}
        for tree in configurations:
            if isinstance(tree, dict):
                inner: object = cast("Mapping[str, Any]", tree).get("mcpServers", tree)
                if isinstance(inner, dict):
                    named = cast("Mapping[str, object]", inner)
                    servers |= {
                        name: self._filled(server) for name, server in named.items() if isinstance(server, dict)
                    }
        return servers

    def memory_files(self) -> list[str]:
        if self.plugin.layout == "claude":
            return []
        value = self.manifest.get("contextFileName", "GEMINI.md")
        named = cast("list[object]", value) if isinstance(value, list) else [value]
        return [path for path in map(self._inside, named) if path is not None and path in self.plugin.files]

    def _inside(self, value: object) -> str | None:
        """The path in the plug-in that a manifest names; None when it names none."""
        if not isinstance(value, str):
            return None
        path = os.path.normpath(value.replace("\\", "/"))
        for placeholder in ROOT_NAMES:
            path = path.removeprefix(f"{placeholder}/")
        if path.startswith(("/", "..")) or "\0" in path:
            self.warnings.append(f"{one_line(value)} is outside the plug-in; it is not used.")
            return None
        return path

    def _file(self, path: str) -> Mapping[str, Any] | None:
        if path not in self.plugin.files:
            return None
        tree = _json(self.plugin.folder, path)
        if tree is None:
            self.warnings.append(f"{path} is not a JSON object; it is not used.")
        return tree

    def _filled(self, tree: Any) -> Any:
        match tree:
            case str():
                for placeholder in ROOT_NAMES:
                    tree = tree.replace(placeholder, str(self.plugin.folder))
                return tree.replace("${/}", "/").replace("${pathSeparator}", "/")
            case list():
                return [self._filled(item) for item in cast("list[Any]", tree)]
            case dict():
                return {key: self._filled(value) for key, value in cast("dict[str, Any]", tree).items()}
            case _:
                return tree


def _json(folder: Path, path: str) -> dict[str, Any] | None:
    data = read_file(folder / path)
    try:
        tree = json.loads(data or b"")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else None
