"""Git's own files: where a repository keeps them, and which a command must never change because git runs or obeys
them."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_RUNS = ("hooks", "config", "config.worktree", "info/attributes", "info/grafts", "refs/replace", "commondir")
"""The files in a repository's folder that git runs, or that redirect it, also to other commits than there are."""
HOOKS = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit", "post-merge"),
    *("pre-rebase", "post-rewrite", "post-checkout", "pre-push", "reference-transaction", "post-index-change"),
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-auto-gc"),
)
"""Hooks that git commands in a working tree run, githooks(5)."""
_MODULES = 200  # most submodules that are looked at
_DEPTH = 4  # most levels of a submodule's name, which may contain slashes
_POINTER = 4096  # bytes of a `.git` file
_SETTINGS = 256 * 1024  # bytes of a file of settings
_ALTERNATES = 10  # most object folders of other repositories


@dataclass(frozen=True)
class GitDirs:
    """Git's own files of one working tree."""

    folder: Path
    """The folder with index and HEAD."""
    common: Path
    """The folder with objects, refs, hooks and settings: the main worktree's for a linked one, else `folder`."""
    top: Path
    """The top folder of the working tree."""

    def executed_paths(self) -> Iterator[Path]:
        """The paths a command must not change even when it may change the rest; they need not exist. Blocking."""
        for folder in dict.fromkeys((self.folder, self.common)):
            yield from (folder / name for name in _RUNS)
        yield self.common / "objects" / "info" / "alternates"
        yield from (entry / name for entry in _entries(self.common / "worktrees") for name in ("gitdir", *_RUNS))
        if self.folder != self.common:
            yield self.folder / "gitdir"
        for module in _modules(self.common / "modules", _DEPTH):
            yield from (module / name for name in _RUNS)
        yield from hooks_folders(self, None)


_SECTION = re.compile(r"\s*\[\s*([\w.-]+)[^\]]*\]")
_SETTING = re.compile(r"\s*([\w-]+)\s*=\s*(.*)")


def repository(git: Path) -> GitDirs | None:
    """The repository of a `.git`: a folder, or a file that points to one. None when it is neither, or when the file
    points to a folder that does not belong to this working tree. It belongs when it has the same owner, and either
    names this very file in return (a worktree, also of a bare repository), or is inside the working tree or in the
    `.git/modules` of a folder above (a submodule). Blocking."""
    try:
        if git.is_symlink():
            return None
        if git.is_dir():
            return GitDirs(git, git, git.parent)
        folder = _gitdir_target(git)
        if folder is None or folder.stat().st_uid != git.lstat().st_uid:
            return None
        if folder.parent.name == "worktrees":
            common = folder.parent.parent
            back = Path((folder / "gitdir").read_text("utf-8", "surrogateescape").strip())
            if _same(folder / back, git) and (_is_whole(common) or common.name == ".git"):
                return GitDirs(folder, common, git.parent)
        elif any(above in folder.parents for above in (git.parent, *_module_folders(git))):
            return GitDirs(folder, folder, git.parent)
    except (OSError, ValueError):
        pass
    return None


def borrowed_objects(repository: GitDirs) -> list[Path]:
    """Object folders of other repositories that a repository reads, as after `git clone --shared`: only those of its
    remotes. A command may write the list of object folders, but not the remotes, so it cannot add any. Blocking."""
    object_folders: list[Path] = []
    todo = [repository.common]
    while todo and len(object_folders) < _ALTERNATES:
        common = todo.pop(0)
        remotes = {os.path.realpath(common.parent / remote) for remote in _remotes(common / "config")}
        for line in _text(common / "objects" / "info" / "alternates").splitlines():
            objects = Path(os.path.realpath(common / "objects" / line))
            named = remotes & {
                str(objects.parent),
                *([str(objects.parent.parent)] if objects.parent.name == ".git" else ()),
            }
            if named and objects.name == "objects" and objects not in object_folders and _is_whole(objects.parent):
                object_folders.append(objects)
                todo.append(objects.parent)
    return object_folders


def enclosing_worktree(root: Path, homes: tuple[Path, ...]) -> Path | None:
    """The working tree of this user that contains a root, when it is not the root itself: a command in a part of it
    must be able to read the rest. Never a home folder, or one above it. Blocking."""
    for above in root.parents:
        if above == Path(above.anchor) or any(home == above or above in home.parents for home in homes):
            return None
        try:
            if above.stat().st_uid != root.stat().st_uid:
                return None
            if (above / ".git").exists():
                return above
        except OSError:
            return None
    return None


def hooks_of(folder: Path, home: Path | None) -> list[str]:
    """The names of the hooks git runs for commands in that folder: its repository's, else the user's. Blocking."""
    for above in (folder, *folder.parents):
        if os.path.lexists(above / ".git"):
            if (git_dirs := repository(above / ".git")) is None:
                return []
            hooks = _hooks_paths(git_dirs.common / "config")
            hooks_folder = git_dirs.top / hooks[-1] if hooks else user_hooks(home) or git_dirs.common / "hooks"
            return [name for name in HOOKS if os.access(hooks_folder / name, os.X_OK)]
    return []


def user_hooks(home: Path | None) -> Path | None:
    """The folder with the user's hooks for all repositories; None when there is none. Blocking."""
    for config in () if home is None else (home / ".gitconfig", home / ".config" / "git" / "config"):
        if home is not None and (named := _hooks_paths(config)):
            return home / named[-1].removeprefix("~/")
    return None


def hooks_folders(git_dirs: GitDirs, home: Path | None) -> list[Path]:
    """The folders for hooks that the settings of a repository name, as husky sets them, or those of the user for all
    repositories. Blocking."""
    named = [name for config in settings_files(git_dirs, home) for name in _hooks_paths(config)]
    if home is not None:
        named = [str(home / name.removeprefix("~/")) if name.startswith("~/") else name for name in named]
    folders = [top / name for name in named for top in (git_dirs.top, git_dirs.common.parent)]
    return [Path(os.path.normpath(folder)) for folder in dict.fromkeys(folders)]


def settings_files(git_dirs: GitDirs, home: Path | None) -> list[Path]:
    """The files with a repository's settings, and the user's if `home` is given; they need not exist."""
    users = [] if home is None else [home / ".gitconfig", home / ".config" / "git" / "config", Path("/etc/gitconfig")]
    if home is not None and (configured := os.environ.get("XDG_CONFIG_HOME")):
        users.append(Path(configured) / "git" / "config")
    return [git_dirs.common / "config", git_dirs.folder / "config.worktree", *users]


def repository_of(folder: Path) -> GitDirs | None:
    """The repository that a folder is in. Blocking."""
    git = next((above / ".git" for above in (folder, *folder.parents) if os.path.lexists(above / ".git")), None)
    return None if git is None else repository(git)


def _hooks_paths(config: Path, depth: int = 5) -> list[str]:
    """The values of `core.hooksPath` in a file of settings and in those that it includes, whatever the condition."""
    named: list[str] = []
    section = ""
    for line in _text(config).splitlines():
        if header := _SECTION.match(line):
            section, line = header[1].lower(), line[header.end() :]
        if (found := _SETTING.match(line)) is None:
            continue
        key, value = found[1].lower(), _plain_value(found[2])
        if (section, key) == ("core", "hookspath"):
            named.append(value)
        elif section in ("include", "includeif") and key == "path" and depth:
            named += _hooks_paths(config.parent / os.path.expanduser(value), depth - 1)  # noqa: PTH111
    return named


def _plain_value(value: str) -> str:
    """A value of git's settings, without quotes and comment."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"|([^"#;]+)|([#;])', value)
    plain = ""
    for quoted, bare, comment in parts:
        if comment:
            break
        plain += quoted or bare
    return plain.strip()


def _is_whole(folder: Path) -> bool:
    """Whether a folder has what every repository has, bare or not, gitrepository-layout(5)."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _module_folders(git: Path) -> Iterator[Path]:
    return (above / ".git" / "modules" for above in git.parent.parents)


def remote_addresses(folder: Path) -> list[str]:
    """The addresses of the remotes of the repository that the folder is in. Blocking."""
    for above in (folder, *folder.parents):
        if os.path.lexists(above / ".git"):
            git_dirs = repository(above / ".git")
            return [] if git_dirs is None else _addresses(git_dirs.common / "config")
    return []


def _addresses(config: Path) -> list[str]:
    return re.findall(r"^\s*(?:push)?url\s*=\s*\"?([^\"\n]+?)\"?\s*$", _text(config), re.I | re.M)


def _remotes(config: Path) -> list[str]:
    """The remotes in git settings that are paths on this machine."""
    paths = (address.removeprefix("file://") for address in _addresses(config))
    return [path for path in paths if ":" not in path]


def _text(path: Path) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # what is there may be a pipe
        with os.fdopen(handle, "rb") as file:
            return file.read(_SETTINGS).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _gitdir_target(git: Path) -> Path | None:
    with git.open("rb") as file:
        text = file.read(_POINTER).decode("utf-8", "surrogateescape")
    match = re.fullmatch(r"gitdir: (.+?)\s*", text)
    return None if match is None else Path(os.path.realpath(git.parent / match[1]))


def _same(path: Path, second: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(second)


def _entries(folder: Path) -> list[Path]:
    try:
        return [entry for entry in sorted(folder.iterdir())[:_MODULES] if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return []


def _modules(folder: Path, depth: int) -> Iterator[Path]:
    for entry in _entries(folder):
        if (entry / "HEAD").is_file():
            yield entry
            yield from _modules(entry / "modules", depth)
        elif depth:
            yield from _modules(entry, depth - 1)
