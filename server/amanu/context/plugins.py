"""The plug-ins that are on, which bring skills, commands, agents, hooks and MCP servers:

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
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from amanu.context.extension_files import ExtensionKind
from amanu.context.extension_folders import ExtensionFolder, read_file
from amanu.context.plugin_manifest import PLUGIN_NAME, ROOT_NAMES, Pins, Plugin, read_plugin
from amanu_protocol.errors import AmanuError

DEPTH = 4
PATTERNS: Mapping[ExtensionKind, Sequence[str]] = {
    "command": ("*.md", "*.toml"),
    "skill": ("SKILL.md",),
    "agent": ("*.md",),
}


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


def _record(path: Path) -> PluginRecord | None:
    """None for a file that is no record."""
    try:
        tree = json.loads(path.read_bytes())
        files = {str(name): str(digest) for name, digest in tree["files"].items()}
        name = str(tree["name"])
        if name != path.stem or not PLUGIN_NAME.match(name):
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
