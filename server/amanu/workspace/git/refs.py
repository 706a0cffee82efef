"""A repository before and after a command: its refs as their files have them, and its new commits."""

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.workspace.git.folder import FILE

PACKED = "packed-refs"
MAX_COMMITS = 200
"""New commits of one command; nobody reviews more."""
_KINDS = {"refs/heads/": "branch ", "refs/tags/": "tag ", "refs/remotes/": "remote branch "}
_MOST = 1 << 26
_SHORT = 10
SYMBOLIC = "ref: "
_PACKED_LINE = re.compile(r"(?P<commit>[0-9a-f]{40}) (?P<name>refs/[^\s]+)|\^[0-9a-f]{40}|")


@dataclass(frozen=True)
class Refs:
    """Name → commit, or "ref: NAME"."""

    loose: Mapping[str, str]
    """The refs that have a file each, and HEAD; they win over packed ones."""
    packed: Mapping[str, str]

    @property
    def values(self) -> Mapping[str, str]:
        return {**self.packed, **self.loose}

    @property
    def commits(self) -> list[str]:
        return [value for value in dict.fromkeys(self.values.values()) if not value.startswith(SYMBOLIC)]

    def resolved(self, name: str) -> str:
        """The commit; "" for none."""
        for _ in range(5):
            value = self.values.get(name, "")
            if not value.startswith(SYMBOLIC):
                return value
            name = value.removeprefix(SYMBOLIC)
        return ""


@dataclass(frozen=True)
class Commit:
    id: str
    parents: Sequence[str]
    subject: str
    files: Sequence[str]
    """The files that differ from its first parent's: "a.txt", "b.txt (new)", "c.txt (deleted)"."""
    contents: Sequence[tuple[str, str, str]]
    """Path, mode and object of each of these files in the commit."""


@dataclass(frozen=True)
class RepositoryLook:
    """A repository as it is in a layer, from the objects themselves."""

    before: Refs
    """The refs in the workspace."""
    commits: Sequence[Commit]
    """The commits that no ref of the workspace leads to, the newest first."""
    head: Mapping[str, tuple[int, str]]
    """Path → mode and object in HEAD, of files that the workspace's HEAD has otherwise; an object of zeros for none."""
    staged: Collection[str] | None
    """Paths that are staged in the workspace; None: not known."""


def read_refs(repository: Path) -> Refs:
    """Read the refs of a `.git` folder. Raises `OSError`. Blocking."""
    paths = [Path("HEAD"), *(path.relative_to(repository) for path in _files(repository / "refs"))]
    loose = {path.as_posix(): read_ref(repository / path) for path in paths if (repository / path).is_file()}
    packed = repository / PACKED
    try:
        return Refs(loose, read_packed(packed) if packed.is_file() else {})
    except ValueError as error:
        raise OSError(str(error)) from None


def read_ref(path: Path) -> str:
    return read_text(path).strip()


def read_packed(path: Path) -> Mapping[str, str]:
    """The refs of that file. Raises `ValueError` where git might read others: names that are not in order, or lines of
    another form."""
    return parse_packed(read_text(path))


def parse_packed(text: str) -> Mapping[str, str]:
    """See `read_packed`."""
    refs: dict[str, str] = {}
    last = ""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("#") and not refs:
            continue
        if (found := _PACKED_LINE.fullmatch(line)) is None or (found["name"] or "~") <= last:
            raise ValueError(f"packed-refs has the line {line[:200]!r}")
        if found["name"]:
            last = found["name"]
            refs[last] = found["commit"]
    return refs


def without_packed(text: str, names: Collection[str]) -> str:
    """The text of that file without these refs, and without the objects that their tags lead to."""
    kept: list[str] = []
    is_kept = True
    for line in text.splitlines(keepends=True):
        if not line.startswith("^"):
            is_kept = line.removesuffix("\n").partition(" ")[2] not in names or line.startswith("#")
        if is_kept:
            kept.append(line)
    return "".join(kept)


def read_text(path: Path) -> str:
    return read_bytes(path).decode("utf-8", "replace")


def read_bytes(path: Path) -> bytes:
    """The content of a file of git's, up to 64 MiB; empty for anything but a file. Raises `OSError`. Blocking."""
    with open(os.open(path, FILE), "rb") as file:  # noqa: PTH123
        return file.read(_MOST) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""


def moves(before: Refs, after: Refs) -> Iterator[str]:
    """A line for the user about each ref that was moved, made or deleted."""
    old, new = before.values, after.values
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        if was is None:
            yield f"new {ref_title(name)}: {value_title(now or '')}"
        elif now is None:
            yield f"{ref_title(name)} is deleted, it was {value_title(was)}"
        else:
            yield f"{ref_title(name)}: {value_title(was)} → {value_title(now)}"


def ref_title(name: str) -> str:
    return next((f"{kind}{name.removeprefix(start)}" for start, kind in _KINDS.items() if name.startswith(start)), name)


def value_title(value: str) -> str:
    return ref_title(value.removeprefix(SYMBOLIC)) if value.startswith(SYMBOLIC) else value[:_SHORT]


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)
