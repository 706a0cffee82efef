"""Find the tools in hidden folders that a command may read: installations, and caches that work read-only."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from amanu.core import protected_paths as protected

_INSTALLED = (
    *(".pyenv", ".rbenv", ".nvm", ".volta", ".fnm", ".asdf", ".nodenv", ".goenv", ".jenv", ".phpenv", ".plenv"),
    *(".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv", ".local/share/pnpm"),
    *(".local/share/fnm", ".local/share/mise", ".local/share/virtualenvs", ".local/share/pyenv", ".local/share/gem"),
    *(".local/share/cargo/bin", ".local/share/rustup", ".local/share/nvim"),
    *(".cargo/bin", ".cargo/env", ".cargo/registry", ".cargo/git", ".cargo/config", ".cargo/config.toml", ".rustup"),
    *("go", ".go", ".m2/repository", ".m2/wrapper", ".gradle/wrapper", ".sdkman", ".ivy2/cache", ".cabal/bin"),
    *(".cabal/packages", ".ghcup", ".stack", ".opam", ".juliaup", ".julia", ".elan", ".swiftly", ".dotnet"),
    *(".nuget/packages",),
    *(".deno", ".bun", ".yarn", ".npm-global", ".npm-packages", ".gem/ruby", ".composer/vendor", ".pub-cache"),
    *(".conda", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".nix-profile", ".nix-defexpr"),
    *(".linuxbrew", "flutter", "Android/Sdk", ".tfenv", ".krew/bin", ".cache/pip", ".cache/ms-playwright"),
    *(".cache/puppeteer", ".cache/Cypress", ".cache/selenium", ".cache/node/corepack", "Library/Caches/ms-playwright"),
    *(".gitconfig", ".config/git", ".gitignore", ".gitignore_global", ".editorconfig", ".tool-versions"),
    *("Library/Python", "Library/Android/sdk"),
)  # fmt: skip
"""Paths below the home folder. Caches that tools must be able to write (npm, uv, go-build, pre-commit) are left out:
without them, the tools make empty ones in the private home folder. The setting `[sandbox] write` shares them."""

_ELSEWHERE = ("/home/linuxbrew/.linuxbrew", "/run/current-system", "/run/wrappers/bin", "/run/opengl-driver")
"""Installed tools below folders that are hidden."""
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
"""Names that only exist in a folder that is an installation as a whole."""
_PARTS = ("lib", "lib64", "libexec", "share", "include", "versions")
"""The folders beside a `bin` that its programs need."""


Visibility = Literal["always", "on request", "never"]
"""`on request`: hidden, but shown to what needs it. `never`: a home folder, what is above one, a place for secrets, and
what services put into `/run`: sockets, keys, the secrets of containers."""


@dataclass(frozen=True)
class Toolchains:
    """Installed tools, as absolute paths."""

    readable: tuple[Path, ...]
    """Real paths."""
    links: tuple[tuple[Path, Path], ...]
    """Symbolic links in a home folder, with their targets."""
    files: tuple[Path, ...] = ()
    """The paths in `readable` that were called by their paths."""


@lru_cache(maxsize=8)
def find_toolchains(path: str, home: Path | None, homes: tuple[Path, ...], moment: int) -> Toolchains:
    """The tools installed below hidden folders, including each folder of that PATH with the installation it is the
    `bin` of. A different `moment` looks again instead of reusing the result. Blocking."""
    installed = [*map(Path, _ELSEWHERE), *((home / name for name in _INSTALLED) if home is not None else ())]
    named = [Path(folder) for folder in path.split(os.pathsep) if os.path.isabs(folder)]  # noqa: PTH117
    of_path = [
        real for on_path in named for folder in (_real(on_path),) for real in (folder, *_installation(folder, homes))
    ]
    hidden = _hidden(homes)
    readable = [*(_real(path) for path in installed), *(path for path in of_path if not _holds_secrets(path, homes))]
    spelled = dict.fromkeys(
        path for path in (*installed, *named) if path.is_symlink() and _real(path.parent) == path.parent
    )
    return Toolchains(
        tuple(path for path in dict.fromkeys(readable) if path not in homes and _below(path, hidden) and path.exists()),
        tuple((path, _real(path)) for path in spelled if _below(path, homes)),
    )


def find_programs(programs: Iterable[str], homes: tuple[Path, ...]) -> Toolchains:
    """Programs that a command line calls by their absolute paths, each with its installation (for one in a
    `node_modules`, all of it) and the interpreter that a script names in its first line. Blocking."""
    hidden = _hidden(homes)
    called = [Path(program) for name in programs for program in (name, *_interpreter(name))]
    files = [file for path in called for file in (_real(path.parent) / path.name, _real(path))]
    folders = [
        folder
        for file in files
        if (installation := _installation(file.parent, homes))
        for folder in (file.parent, *installation)
    ]
    folders += [folder for file in files for folder in reversed(file.parents) if folder.name == "node_modules"]
    readable = [path for path in (*folders, *files) if not _holds_secrets(path, homes) and not path.is_symlink()]
    return Toolchains(
        tuple(path for path in dict.fromkeys(readable) if path not in homes and _below(path, hidden)),
        tuple(dict.fromkeys(link for path in called for link in _links(path) if _below(link[0], homes))),
        tuple(files),
    )


def visibility(folder: Path, homes: tuple[Path, ...]) -> Visibility:
    """Whether a program sees a folder outside the workspace, by its real path."""
    hidden, text = _hidden(homes), f"{str(folder).rstrip('/')}/"
    if any(f"{path}/".startswith(text) for path in hidden) or folder.parent in _shared_homes():
        return "never"
    if not is_inside(folder, hidden):
        return "always"
    is_service = is_inside(folder, _services()) and not is_inside(folder, _disks())
    return "never" if is_service or _is_secret(folder) or _holds_secrets(folder, homes) else "on request"


def _interpreter(program: str) -> list[str]:
    try:
        with open(program, "rb") as file:  # noqa: PTH123 (text)
            first = file.readline(300)
    except OSError:
        return []
    words = os.fsdecode(first[2:]).split() if first.startswith(b"#!") else []
    return [word for word in words[:1] if os.path.isabs(word)]  # noqa: PTH117 (text)


def _links(path: Path) -> Iterator[tuple[Path, Path]]:
    """The symbolic links on the way to a path, with their targets."""
    for part in (*reversed(path.parents), path):
        named = _real(part.parent) / part.name
        if named.is_symlink():
            yield named, _real(named)


@cache
def _shared_homes() -> tuple[Path, ...]:
    """The folders in which each folder belongs to a user."""
    return tuple(map(_real, ("/home", "/Users", "/mnt/c/Users")))


@cache
def _services() -> tuple[Path, ...]:
    return (_real("/run"),)


@cache
def _disks() -> tuple[Path, ...]:
    """The folders in which disks that a user plugs in are mounted."""
    return (_real("/run/media"),)


@lru_cache(maxsize=8)
def _hidden(homes: tuple[Path, ...]) -> tuple[Path, ...]:
    return (*homes, *map(_real, ("/run", "/tmp", "/var/tmp")))


def _installation(folder: Path, homes: tuple[Path, ...]) -> list[Path]:
    """The installation that a `bin` or `shims` folder belongs to, and the one a virtual environment was made from."""
    above = folder.parent
    if above in homes or folder.name not in ("bin", "shims", "sbin", "Scripts"):
        return []
    if not any((above / marker).exists() for marker in _ENVIRONMENT):  # a project may have a `bin` too
        return [real for name in _PARTS if (real := _real(above / name)).is_dir() and real.parent == above]
    python = _real(folder / "python")
    base = [python.parent.parent] if (above / "pyvenv.cfg").is_file() and python.parent.name == "bin" else []
    return [above, *base]


def _holds_secrets(folder: Path, homes: tuple[Path, ...]) -> bool:
    """Whether a folder is, contains or is inside a place for secrets: `~/.local` is the parent of `~/.local/bin`."""
    text = f"{folder}/".casefold()
    near = [home for home in _folded(homes) if text.startswith(f"{home}/") or f"{home}/".startswith(text)]
    for shared in _folded(_shared_homes()):
        if text.startswith(f"{shared}/"):
            near.append(f"{shared}/{text.removeprefix(f'{shared}/').partition('/')[0]}")
    return any(text.startswith(secret) or secret.startswith(text) for home in near for secret in _secret_places(home))


def _is_secret(folder: Path) -> bool:
    """Whether a folder is a secret one, or in one, wherever that is: `~/backup/.ssh`."""
    if not protected.is_secret(str(folder).lstrip("/")):
        return False
    return not any((path / "pyvenv.cfg").exists() for path in (folder, *folder.parents))  # an environment named `.env`


@lru_cache(maxsize=8)
def _folded(homes: tuple[Path, ...]) -> tuple[str, ...]:
    """On some systems `.SSH` is `.ssh`."""
    return tuple(str(home).casefold() for home in homes)


@lru_cache(maxsize=64)
def _secret_places(home: str) -> tuple[str, ...]:
    names = (*protected.SECRETS, *protected.HOME_SECRETS, ".local/state")
    return tuple(f"{home}/{name}/".casefold() for name in names)


def _below(path: Path, folders: tuple[Path, ...]) -> bool:
    return path not in folders and is_inside(path, folders)


def is_inside(path: Path, folders: Iterable[Path]) -> bool:
    """Whether the path is one of the folders or inside one. As text, since pathlib takes a hundred times as long."""
    text = f"{path}/"
    return any(text.startswith(f"{str(folder).rstrip('/')}/") for folder in folders)


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))
