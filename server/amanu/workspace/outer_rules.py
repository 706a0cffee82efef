"""The ignore rules that hold in a root and are not in it, as git has them: the `.gitignore`s above it up to the top of
its repository, `.git/info/exclude`, `core.excludesFile`. Beside a repository there are none.

No git is run for it: the configuration of a repository can name programs. Everything here is blocking.
"""

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from amanu.workspace.ignore import MAX_RULES, IgnoreRules, compiled_rules

SETTLED = 2_000_000_000
"""Nanoseconds after which a change of a file shows in its times."""
_SECTION = re.compile(r"\s*\[\s*([^\]]*?)\s*\]\s*")
_EXCLUDES = re.compile(r"\s*excludesfile\s*=\s*(?:\"([^\"]*)\"|([^#;]*))", re.IGNORECASE)
_ANCHORED = re.compile(r"!?[^#]*/.*[^/\s]")
_MOST = 100  # roots whose rules are kept

_Times = tuple[int, int, int, int, int]


@dataclass(frozen=True, eq=False)
class OuterRules:
    """The rules of one root at one moment. As long as nothing changes it is the same object."""

    in_repository: bool
    """False also for a root that the repository ignores: whoever opens it wants to see what is in it."""
    rules: IgnoreRules
    """The rules that are in force in the root before its own."""
    excludes: Path | None
    """The user's own, for all repositories."""
    is_plain: bool
    """Whether the files of rules are files: whoever opens a pipe waits."""
    is_settled: bool
    """Whether a later change must make another object."""
    seen: Mapping[Path, _Times | None]


_kept: dict[Path, OuterRules] = {}


def outer_rules(root: Path) -> OuterRules:
    """The outer rules of the root at that real path."""
    kept = _kept.get(root)
    if kept is None or not kept.is_settled or any(_times(path) != times for path, times in kept.seen.items()):
        if len(_kept) >= _MOST:
            _kept.clear()
        kept = _kept[root] = _look(root)
    return kept


def _look(root: Path) -> OuterRules:
    began = time.time_ns()
    repositories = [folder / ".git" for folder in (root, *root.parents)]
    git = next((path for path in repositories if os.path.lexists(path)), None)
    seen = {path: _times(path) for path in repositories[: None if git is None else repositories.index(git) + 1]}
    if git is None:
        return OuterRules(False, IgnoreRules(), None, True, _is_settled(seen, began), seen)
    top, store = git.parent, _store(git)
    parts = root.relative_to(top).parts
    configs = [store / "config", *_user_configs()]
    excludes = _excludes(configs, top) or _user_folder() / "git" / "ignore"
    above = [top.joinpath(*parts[:depth], ".gitignore") for depth in range(len(parts))]
    rules_files = [*above, store / "info" / "exclude"]
    seen |= {path: _times(path) for path in (*configs, *rules_files, excludes)}
    user = _read(excludes, follow=True)
    if parts and any(_ANCHORED.match(line) for line in user.decode("utf-8", "replace").splitlines()):
        user = b""  # ripgrep would take them for rules of the root
    plain = all((times := seen[path]) is None or stat.S_ISREG(times[0]) for path in rules_files)
    rules = _rules(above, parts, [_read(store / "info" / "exclude"), user])
    settled = _is_settled(seen, began)
    if rules is None:
        return OuterRules(False, IgnoreRules(), None, plain, settled, seen)
    return OuterRules(True, rules, excludes if user else None, plain, settled, seen)


def _rules(above: list[Path], parts: tuple[str, ...], lowest: list[bytes]) -> IgnoreRules | None:
    """The rules of the files above the root, the nearer before the farther; None when they ignore the root."""
    found = [(0, compiled_rules(data)) for data in lowest]
    for depth, path in enumerate(above):
        found.insert(0, (depth, compiled_rules(_read(path))))
        verdicts = (spec.check_file("/".join((*parts[base : depth + 1], ""))).include for base, spec in found)
        if next((verdict for verdict in verdicts if verdict is not None), False):
            return None
    specs = tuple((0, "".join(f"{part}/" for part in parts[base:]), spec) for base, spec in found if len(spec))
    return IgnoreRules("", specs, of_user=tuple(specs[-1:]) if lowest[-1] and specs else (), in_repository=True)


def _store(git: Path) -> Path:
    """The folder with the rules and settings of a repository; in a linked worktree `.git` is a file that names it."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if git.is_file():
            folder = git.parent / _read(git).decode().removeprefix("gitdir:").strip()
            return folder / _read(folder / "commondir").decode().strip()
    return git


def _user_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _user_configs() -> Iterator[Path]:
    """The later ones count less."""
    if one := os.environ.get("GIT_CONFIG_GLOBAL"):
        yield Path(one)
    else:
        yield from (Path.home() / ".gitconfig", _user_folder() / "git" / "config")
    yield Path("/etc/gitconfig")


def _excludes(configs: list[Path], top: Path) -> Path | None:
    """The path in `core.excludesFile`, the last one in the first file that has it. Included files are not looked at."""
    for config in configs:
        section, found = "", None
        for line in _read(config, follow=True).decode("utf-8", "replace").splitlines():
            if head := _SECTION.match(line):
                section, line = head[1].lower(), line[head.end() :]
            if section == "core" and (value := _EXCLUDES.match(line)):
                found = value[1] or (value[2] or "").strip()
        if found:
            return top / os.path.expanduser(found)  # noqa: PTH111 (also of another user)
    return None


def _read(path: Path, *, follow: bool = False) -> bytes:
    """b"" for what is no file. In a repository git follows no links to rules."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        handle = os.open(path, flags)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(handle, MAX_RULES) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(handle)


def _times(path: Path) -> _Times | None:
    """The state of a file of rules; of a `.git`, only whether it is there."""
    try:
        status = path.lstat() if path.name != "ignore" else path.stat()
    except (OSError, ValueError):
        return None
    if path.name == ".git" and stat.S_ISDIR(status.st_mode):
        return status.st_mode, 0, status.st_ino, 0, 0
    return status.st_mode, status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _is_settled(seen: Mapping[Path, _Times | None], began: int) -> bool:
    return all(times is None or max(times[3:]) < began - SETTLED for times in seen.values())
