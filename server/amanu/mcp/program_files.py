"""The files of a workspace that servers run, and their content: an approval of a server covers it, as one of a hook
does. What such a file loads in turn is not looked into."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from amanu.mcp.access import Reads
from amanu.mcp.config import ServerConfig
from amanu.mcp.opened_folders import OpenedFolders
from amanu.mcp.process import StartFailed
from amanu.mcp.variables import UserVariables
from amanu.system.named_files import named_files

_READ = 4 << 20
"""The most bytes of a file that are read; a longer one is known by its status, which changes with every write."""
_DATA = frozenset(
    (".db", ".sqlite", ".sqlite3", ".duckdb", ".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".log", ".pdf", ".png")
)
"""Endings of data files, which no program runs and a server changes as it works."""
_SETTINGS = frozenset((".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".xml", ".env"))
"""Endings of files that may say what is run, or that a server may write."""


_FOLDER = "a folder"


class ProgramFiles:
    """The files that all servers run. Methods block, for a few `stat` each."""

    def __init__(self, variables: UserVariables) -> None:
        self._variables = variables
        self._known: dict[Path, tuple[tuple[int, ...], str]] = {}
        """Path → its status when it was read, and its digest."""

    def paths(self, config: ServerConfig, roots: Sequence[Path]) -> list[Path]:
        """The files below the roots that the command, its arguments and its variables name."""
        if config.kind != "stdio" or not roots:
            return []
        table = config.table
        try:
            folder, home = self._variables.folder(config, roots), self._variables.home(config, roots)
        except StartFailed:  # it will not start
            return []
        found = named_files(
            [self._expanded(config, word, roots) for word in (table.command, *table.args, *table.env.values())],
            folder,
            str(home),
            lambda path: any(_spelled(path).is_relative_to(root) or _real(path).is_relative_to(root) for root in roots),
        )
        inert = _DATA | _SETTINGS if config.access.writes and config.access.sandbox else _DATA
        return [path for path in found if path.suffix not in inert or os.access(path, os.X_OK)]

    def opened(self, config: ServerConfig, roots: Sequence[Path]) -> OpenedFolders:
        """The folders outside the roots that it may read."""
        try:
            return self._variables.opened(config, roots)
        except StartFailed:  # it will not start
            return OpenedFolders()

    def reads(self, config: ServerConfig, roots: Sequence[Path]) -> Reads:
        """All that it reads, for the user."""
        try:
            own_folder = self._variables.own_folder(config, roots)
        except StartFailed:  # it will not start
            own_folder = None
        programs = sorted(relative_name(path, roots) for path in self.paths(config, roots))
        return Reads(programs, self.opened(config, roots), own_folder)

    def digests(self, config: ServerConfig, roots: Sequence[Path]) -> dict[str, str]:
        """Path → digest of the content, of each of the files; the folders, whatever they hold, end in a slash."""
        files = {str(path): self._digest(path) for path in self.paths(config, roots)}
        return files | {f"{folder}/": _FOLDER for folder in self.opened(config, roots).folders}

    def _expanded(self, config: ServerConfig, text: str, roots: Sequence[Path]) -> str:
        try:
            return self._variables.expanded(config, text, roots)
        except StartFailed:  # it will not start
            return text

    def _digest(self, path: Path) -> str:
        try:
            status = path.stat()
            seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            known = self._known.get(path)
            if known is None or known[0] != seen:
                content = path.read_bytes() if status.st_size <= _READ else repr(seen).encode()
                known = self._known[path] = seen, hashlib.sha256(content).hexdigest()
            return known[1]
        except OSError:
            return ""


def unapproved(approved: Mapping[str, str], current: Mapping[str, str], roots: Sequence[Path]) -> str:
    """The files that do not hold what was approved, and the folders not approved, as sentences; "" for none."""
    changed = [path for path, digest in current.items() if not digest or approved.get(path) != digest]
    files = ", ".join(relative_name(Path(path), roots) for path in changed if not path.endswith("/"))
    folders = ", ".join(path.rstrip("/") for path in changed if path.endswith("/"))
    sentences = [
        *([f"It runs {files} of the workspace, whose content you have not approved."] if files else []),
        *([f"It would also read {folders}, which you have not approved."] if folders else []),
    ]
    return " ".join(sentences)


def relative_name(path: Path, roots: Sequence[Path]) -> str:
    """The path as it is in its root."""
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return str(path if root is None else path.relative_to(root))


def _spelled(path: Path) -> Path:
    return Path(os.path.normpath(path))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
