"""Adds plug-ins to the store, and takes them out (`context/plugins.py` reads them).

What the user reviews is the copy that will be used: a plug-in is staged first, shown, and then installed or discarded.
"""

import hashlib
import json
import os
import secrets
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from amanu.context.plugin_manifest import Pins, Plugin, read_plugin
from amanu.context.plugins import PluginRecord, PluginState, plugin_states
from amanu.storage.errors import storage_error
from amanu.storage.files import write_whole
from amanu.text.display import one_line
from amanu_protocol.errors import AmanuError

MAX_FILES = 5_000
MAX_TOTAL = 100 * 2**20
"""Files and bytes of one plug-in."""
SKIPPED = {".git", ".hg", ".svn", "__pycache__"}
"""Folders that are not copied: nothing of a plug-in is in them."""


@dataclass(frozen=True)
class StagedPlugin:
    """A copy that waits for the user's approval."""

    plugin: Plugin
    source: str
    left_out: tuple[str, ...]
    """Links, devices and sockets: they are not copied."""
    previous: PluginState | None
    """The plug-in of the same name that is in the store."""


class PluginStore:
    """The user's plug-ins. Methods block, and raise `AmanuError`: invalidParams, storageError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def states(self) -> list[PluginState]:
        """All plug-ins, by name."""
        return plugin_states(self._folder)

    def state(self, name: str) -> PluginState:
        """The plug-in of that name."""
        states = self.states()
        found = next((state for state in states if state.record.name == name), None)
        if found is None:
            names = ", ".join(state.record.name for state in states)
            raise AmanuError("invalidParams", f"There is no plug-in {one_line(name)!r}. Added: {names or 'none'}.")
        return found

    def stage(self, source: Path, said_source: str | None = None) -> StagedPlugin:
        """Copy a local folder, to be reviewed. `said_source`: where it came from, if not from there."""
        if not source.is_dir():
            raise AmanuError("invalidParams", f"{one_line(str(source))} is not a folder.")
        target = self._folder / f".new-{secrets.token_hex(8)}"
        try:
            target.mkdir(mode=0o700, parents=True)
            copy = _Copy(source, target)
            copy.folder("")
            plugin = read_plugin(target, copy.files)
        except OSError as error:
            shutil.rmtree(target, ignore_errors=True)
            raise storage_error(error, target) from error
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        previous = next((state for state in self.states() if state.record.name == plugin.name), None)
        return StagedPlugin(plugin, said_source or str(source), tuple(copy.left_out), previous)

    def install(self, staged: StagedPlugin) -> None:
        """Put it into the store, on, in the place of the one that has its name."""
        plugin = staged.plugin
        target = self._folder / plugin.name
        try:
            if target.exists():
                shutil.rmtree(target)
            plugin.folder.rename(target)
            self._write(PluginRecord(plugin.name, staged.source, True, plugin.files))
        except OSError as error:
            raise storage_error(error, target) from error

    def discard(self, staged: StagedPlugin) -> None:
        shutil.rmtree(staged.plugin.folder, ignore_errors=True)

    def turn(self, name: str, *, on: bool) -> None:
        """Turn it on or off. Raises `AmanuError` (invalidParams) when it has changed and is to be on."""
        state = self.state(name)
        if on and (state.changed or state.plugin is None):
            raise AmanuError("invalidParams", f"The plug-in {name} has changed since it was reviewed.")
        record = state.record
        self._write(PluginRecord(record.name, record.source, on, record.files))

    def remove(self, name: str) -> None:
        self.state(name)
        try:
            (self._folder / f"{name}.json").unlink(missing_ok=True)
            shutil.rmtree(self._folder / name, ignore_errors=True)
        except OSError as error:
            raise storage_error(error, self._folder) from error

    def copy_of(self, name: str) -> Path:
        return self._folder / name

    def _write(self, record: PluginRecord) -> None:
        tree = {
            "name": record.name,
            "source": record.source,
            "enabled": record.enabled,
            "files": dict(sorted(record.files.items())),
        }
        write_whole(self._folder / f"{record.name}.json", json.dumps(tree, indent=1).encode() + b"\n")


class _Copy:
    """Copies the regular files of a folder; links are not followed."""

    def __init__(self, source: Path, target: Path) -> None:
        self._source = source
        self._target = target
        self.files: dict[str, str] = {}
        self.left_out: list[str] = []
        self._bytes_left = MAX_TOTAL

    def folder(self, path: str) -> None:
        (self._target / path).mkdir(mode=0o700, exist_ok=True)
        with os.scandir(self._source / path) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
        for entry in ordered:
            name = f"{path}/{entry.name}" if path else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED:
                    self.folder(name)
            elif entry.is_file(follow_symlinks=False):
                self._file(name)
            else:
                self.left_out.append(name)

    def _file(self, name: str) -> None:
        try:
            name.encode()
        except UnicodeEncodeError:
            self.left_out.append(ascii(name))
            return
        handle = os.open(self._source / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            data = file.read(self._bytes_left + 1)
        self._bytes_left -= len(data)
        if self._bytes_left < 0 or len(self.files) >= MAX_FILES:
            raise AmanuError(
                "invalidParams",
                f"The folder is too big for a plug-in: at most {MAX_FILES:,} files and {MAX_TOTAL // 2**20} MiB.",
            )
        target = self._target / name
        target.write_bytes(data)
        target.chmod(0o700 if status.st_mode & stat.S_IXUSR else 0o600)
        self.files[name] = hashlib.sha256(data).hexdigest()


def changed_files(staged: StagedPlugin) -> list[str]:
    """The files that the user has not approved before, what tells a model or starts something first."""
    known: Pins = staged.previous.record.files if staged.previous is not None else {}
    return sorted(
        (path for path, digest in staged.plugin.files.items() if known.get(path) != digest),
        key=lambda path: (_order(path), path),
    )


def _order(path: str) -> int:
    if path.endswith(".json") and path.count("/") <= 1:
        return 0
    return 1 if path.endswith((".md", ".toml", ".sh", ".py", ".js", ".ts")) else 2
