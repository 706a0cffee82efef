"""The folders outside the workspace that a server may read, since its command line names them, or scripts in them: who
approves it is told of each.

A folder that is named is opened as it is (`server-filesystem ~/notes`, `uv run --directory ~/weather server.py`). For a
script, its project is opened: the nearest folder above it with a manifest or a repository, or else the folder it is in.
A home folder, what is above one, and places for secrets are never opened.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.sandbox.filesystem_view import home_folders
from amanu.sandbox.toolchains import visibility

SCRIPTS = frozenset(
    (".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".rb", ".php", ".pl", ".sh", ".jar", ".dll")
)
"""Endings of files that interpreters run, `java -jar` and `dotnet` among them."""
_MANIFESTS = (".git", "pyproject.toml", "setup.py", "requirements.txt", "deno.json", "Cargo.toml", "go.mod", "Gemfile")
_PACKAGE = re.compile(rb'"(name|dependencies|(dev|peer|optional)Dependencies)"\s*:')
"""A field of a package.json that describes a package, and not only the kind of modules in a folder that was built."""
_MAX_PACKAGE = 1 << 20
"""Bytes of a package.json that are read."""
_PERSONAL = frozenset(
    ("Desktop", "Documents", "Downloads", "Movies", "Music", "Pictures", "Public", "Templates", "Videos", "Library")
)
"""Folders of a home folder with all sorts of things (xdg-user-dirs; macOS): a script in one is opened alone."""
_SEARCHED = ("PATH", "PYTHONPATH", "NODE_PATH")
"""Variables with folders of programs."""


@dataclass(frozen=True)
class OpenedFolders:
    """Real paths."""

    folders: tuple[Path, ...] = ()
    """Folders that the server may read, but for the secrets in them."""
    closed: tuple[Path, ...] = ()
    """Folders that its command names or needs, but that it may never read."""

    def outside(self, folder: Path | None) -> "OpenedFolders":
        """The same, but for the folders inside that one."""
        return OpenedFolders(
            tuple(path for path in self.folders if folder is None or not path.is_relative_to(folder)), self.closed
        )


def opened_folders(
    words: Sequence[str], variables: Mapping[str, str], environment: Mapping[str, str], roots: Sequence[Path]
) -> OpenedFolders:
    """The folders for a command. `words`: it and its arguments, with references replaced; `variables`: those that the
    configuration sets; `environment`: all that the server gets. Blocking, for some `stat` each."""
    search = _Search(environment)
    for at, word in enumerate(words):
        for path in _paths(word, roots):
            search.add(path, is_command=at == 0)
    for word in (word for name in _SEARCHED for word in variables.get(name, "").split(os.pathsep)):
        for path in _paths(word, roots):
            search.add(path)
    folders = [path for path in search.folders if not any(path.is_relative_to(root) for root in roots)]
    outer = [path for path in folders if not any(path != other and path.is_relative_to(other) for other in folders)]
    return OpenedFolders(tuple(outer), tuple(search.closed))


def _paths(word: str, roots: Sequence[Path]) -> Iterator[Path]:
    """The paths that a word names absolutely: its own, or that of an option (`--directory=…`). Whatever is reached
    through the workspace does not count: a repository could make that lead anywhere."""
    name = word.partition("=")[2] if word.startswith("-") else word
    if os.path.isabs(name) and os.path.exists(name):  # noqa: PTH110, PTH117 (text)
        real = Path(os.path.realpath(name))
        if not is_reached_through(name, roots) and not any(real.is_relative_to(root) for root in roots):
            yield real


def is_reached_through(name: str, roots: Sequence[Path]) -> bool:
    """Whether a folder above that absolute path is in the roots, whatever they link to. Blocking."""
    above = [Path(os.path.realpath(folder)) for folder in Path(name).parents]
    return any(folder.is_relative_to(root) for folder in above for root in roots)


class _Search:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._homes = home_folders(environment)
        self.folders: dict[Path, None] = {}
        self.closed: dict[Path, None] = {}

    def add(self, path: Path, *, is_command: bool = False) -> None:
        """Add what goes with a path; a command that is no script may be one of an installation."""
        if path.is_dir():
            self._open(path)
        elif path.suffix in SCRIPTS:
            above = self._above(path)
            if (project := _project(above)) is None and len(above) == 1 and path.parent.name in _PERSONAL:
                self.closed[path.parent] = None
            else:
                self._open(project or path.parent)
            for folder in above:
                if (modules := folder / "node_modules").is_dir():  # a package's manager may put them further up
                    self._open(Path(os.path.realpath(modules)))
        elif is_command:
            above = self._above(path)
            project = _project(above)
            if project is not None and not above[-1].name.startswith("."):  # `~/.nvm` is a repository
                self._open(project)

    def _open(self, folder: Path) -> None:
        match visibility(folder, self._homes):
            case "on request":
                self.folders[folder] = None
            case "never":
                self.closed[folder] = None
            case "always":
                pass

    def _above(self, file: Path) -> list[Path]:
        """The folders above a file that can be opened, the nearest first."""
        above: list[Path] = []
        for folder in file.parents:
            if visibility(folder, self._homes) != "on request":
                break
            above.append(folder)
        return above


def _project(above: Sequence[Path]) -> Path | None:
    return next((folder for folder in above if _is_project(folder)), None)


def _is_project(folder: Path) -> bool:
    if any(os.path.lexists(folder / name) for name in _MANIFESTS):
        return True
    try:
        with (folder / "package.json").open("rb") as file:
            return _PACKAGE.search(file.read(_MAX_PACKAGE)) is not None
    except OSError:
        return False
