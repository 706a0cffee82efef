"""Plug-ins: folders that carry skills, commands, agents, hooks and MCP servers, in Claude Code's layout or Gemini
CLI's, read as they are. This is what the parts that use them read:

    enabled_plugins(store)          the plug-ins that are on, each with its hooks and servers
    plugin_folders(store, kind)     the folders of their commands, skills or agents

The user adds a plug-in (`amanu plugin add`), from a local folder, after reviewing its files. It is copied to the store
and pinned: a copy in which any file is new, changed or gone is off until the user has approved the change, and a file
is used only with the bytes that were reviewed.

    <store>/NAME/        the copy
    <store>/NAME.json    source, whether it is on, and the SHA-256 of each file
"""

import contextlib
import functools
import hashlib
import json
import os
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

from amanu.context.extension_files import ExtensionKind
from amanu.context.extension_folders import ExtensionFolder, read_file
from amanu.text.display import one_line
from amanu_protocol.errors import AmanuError

CLAUDE = ".claude-plugin/plugin.json"
GEMINI = "gemini-extension.json"
MANIFESTS = (CLAUDE, GEMINI)
ROOT_NAMES = ("${CLAUDE_PLUGIN_ROOT}", "${PLUGIN_ROOT}", "${extensionPath}")
"""What stands for the plug-in's folder in its files."""
DEPTH = 4
PATTERNS: Mapping[ExtensionKind, Sequence[str]] = {
    "command": ("*.md", "*.toml"),
    "skill": ("SKILL.md",),
    "agent": ("*.md",),
}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")

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


@dataclass(frozen=True)
class PluginRecord:
    """What is recorded of one plug-in."""

    name: str
    source: str
    enabled: bool
    files: Pins


@dataclass(frozen=True)
class PluginState:
    """A plug-in of the store."""

    record: PluginRecord
    plugin: Plugin | None
    """None when its copy cannot be read."""
    changed: Sequence[str]
    """Files that are not what was reviewed."""
    fault: str = ""
    """Why it cannot be read."""

    @property
    def is_on(self) -> bool:
        return self.record.enabled and self.plugin is not None and not self.changed


@dataclass(frozen=True)
class PluginFolder(ExtensionFolder):
    """A folder of a plug-in: what it holds is what was reviewed."""

    owned_by: Plugin
    base: str
    """The folder's path in the plug-in."""

    @property
    def plugin(self) -> str:
        return self.owned_by.name

    @property
    def plugin_folder(self) -> Path:
        return self.owned_by.folder

    def names(self) -> list[str]:
        start = PurePosixPath(self.base)
        paths = [PurePosixPath(path) for path in self.owned_by.files]
        below = [path.relative_to(start) for path in paths if path.is_relative_to(start)]
        return sorted(
            path.as_posix()
            for path in below
            if len(path.parts) <= self.depth + 1 and fnmatchcase(path.name, self.pattern)
        )

    def read(self, name: str) -> bytes | None:
        data = read_file(self.folder / name)
        pinned = self.owned_by.files.get((PurePosixPath(self.base) / name).as_posix())
        if data is None or hashlib.sha256(data).hexdigest() != pinned:
            return None
        for placeholder in ROOT_NAMES:
            data = data.replace(placeholder.encode(), os.fsencode(self.owned_by.folder))
        return data

    @contextmanager
    def listing(self, name: str) -> Generator[int]:
        handle = os.open(self.folder / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield handle
        finally:
            os.close(handle)


def enabled_plugins(store: Path) -> list[Plugin]:
    """The plug-ins that are on and unchanged, by name. Blocks: it looks at all their files."""
    return [state.plugin for state in plugin_states(store) if state.is_on and state.plugin is not None]


def plugin_folders(store: Path, kind: ExtensionKind) -> list[ExtensionFolder]:
    """The folders of that kind in the plug-ins that are on. Blocks."""
    return [folder for plugin in enabled_plugins(store) for folder in folders_of(plugin, kind)]


def memory_files(store: Path) -> list[Path]:
    """The memory files of the plug-ins that are on. Blocks."""
    return [plugin.folder / path for plugin in enabled_plugins(store) for path in plugin.memory_files]


def folders_of(plugin: Plugin, kind: ExtensionKind) -> list[ExtensionFolder]:
    """The folders of that kind in one plug-in."""
    paths = {"command": plugin.commands, "skill": plugin.skills, "agent": plugin.agents}[kind]
    folders: list[ExtensionFolder] = []
    for path in paths:
        if path in plugin.files:
            parent = PurePosixPath(path).parent.as_posix()
            pattern = re.sub(r"([\[*?])", r"[\1]", PurePosixPath(path).name)
            folders.append(PluginFolder("plugin", plugin.folder / parent, pattern, 0, plugin, parent))
        else:
            folders += [
                PluginFolder("plugin", plugin.folder / path, pattern, DEPTH, plugin, path) for pattern in PATTERNS[kind]
            ]
    return folders


def plugin_states(store: Path) -> list[PluginState]:
    """All plug-ins of the store, by name. Blocks."""
    if not store.is_dir():
        return []  # the usual case
    states: list[PluginState] = []
    for path in sorted(store.glob("*.json")):
        record = _record(path)
        if record is not None:
            folder = store.resolve() / record.name
            states.append(
                _state(folder, record.source, record.enabled, tuple(record.files.items()), _signature(folder))
            )
    return states


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
    if not isinstance(name, str) or not _NAME.match(name):
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


def _record(path: Path) -> PluginRecord | None:
    """None for a file that is no record."""
    try:
        tree = json.loads(path.read_bytes())
        files = {str(name): str(digest) for name, digest in tree["files"].items()}
        name = str(tree["name"])
        if name != path.stem or not _NAME.match(name):
            return None
        return PluginRecord(name, str(tree["source"]), tree["enabled"] is True, files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


Signature = tuple[tuple[str, int, int, int, int], ...]


def _signature(folder: Path) -> Signature:
    """(path, size, inode, times) of each file: what cannot stay the same when a file changes."""
    return tuple(
        (path, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        for path, status in sorted(walk_files(folder))
    )


def walk_files(folder: Path) -> Iterable[tuple[str, os.stat_result]]:
    """(path with `/`, status) of all below a folder but folders; links are not followed."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            with contextlib.suppress(OSError):
                yield path.relative_to(folder).as_posix(), path.lstat()


@functools.lru_cache(maxsize=64)
def _state(
    folder: Path, source: str, enabled: bool, pins: tuple[tuple[str, str], ...], signature: Signature
) -> PluginState:
    """Hashing all files costs too much to be done with every prompt: it is done when their signature is new."""
    record = PluginRecord(folder.name, source, enabled, dict(pins))
    present = {path: _sha256(folder / path) for path, *_ in signature}
    changed = sorted(path for path in {*present, *record.files} if present.get(path) != record.files.get(path))
    try:
        plugin = read_plugin(folder, record.files)
        if plugin.name != record.name:
            return PluginState(record, None, changed, "its name has changed since it was added.")
        return PluginState(record, plugin, changed)
    except AmanuError as error:
        return PluginState(record, None, changed, str(error))


def _sha256(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        try:
            return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return ""
