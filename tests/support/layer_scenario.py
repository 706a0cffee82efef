"""A command that changes a workspace in every way that is decided on, and the standing of each of its changes."""

import os
import stat
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Mode = Literal["ask", "acceptEdits", "auto", "draft"]
Standing = Literal["before", "after"]
Kind = Literal["text", "bits", "row", "ignored", "commit"]

_TEXTS = (
    "sed -i 's/^two$/TWO/' a.txt && sed -i 's/^two$/TWO/' b.txt && mv poem.txt verse.txt && rm old.txt dead/x.txt "
    "&& rmdir dead && mkdir -p d/sub && echo new > d/sub/new.txt"
)
_NEW = (
    "printf 'new\\0' > new.bin && printf '\\211PNG\\r\\n\\032\\n\\0' > new.png && ln -s a.txt link "
    "&& chmod +x run.sh also.sh && mkdir out fresh && rmdir hollow && echo built > out/x"
)
_REPLACED = "printf 'pic\\0two' > pic.bin && rm gone.bin && mv song.bin tune.bin"
_FILES = f"{_TEXTS} && {_NEW} && {_REPLACED}"
_COMMIT = "git add -A && git commit -qm second"
COMMANDS: dict[Mode, str] = {
    "ask": f"{_FILES} && {_COMMIT}",
    "acceptEdits": _FILES,
    "auto": f"{_FILES} && {_COMMIT}",
    "draft": _FILES,
}
"""Text changed, made, renamed and deleted; files that are no text: made, a picture, a link, changed, renamed, deleted;
executable bits; folders made and deleted; what git ignores; a commit of all that. As much of it as a mode takes without
a question, or with one at the end."""
OPEN = "a.txt"
"""The text that an editor has open."""
_BEFORE: dict[str, bytes] = {
    "a.txt": b"one\ntwo\n",
    "b.txt": b"one\ntwo\n",
    "poem.txt": b"roses\nviolets\n",
    "old.txt": b"old\n",
    "pic.bin": b"pic\0one",
    "gone.bin": b"gone\0",
    "song.bin": b"song\0",
    "run.sh": b"#!/bin/sh\n",
    "also.sh": b"#!/bin/sh\n",
    "dead/x.txt": b"x\n",
    ".gitignore": b"out/\n",
}


@dataclass(frozen=True)
class Unit:
    """A change that a user sees as one."""

    name: str
    kind: Kind
    paths: Mapping[str, tuple[bytes | None, bytes | None]]
    """Path → as it is before and after; see `_found`."""

    def standing(self, root: Path) -> str:
        """A `Standing`, or a description of what is neither."""
        found = {name: _found(root / name) for name in self.paths}
        for at, standing in enumerate(("before", "after")):
            if found == {name: versions[at] for name, versions in self.paths.items()}:
                return standing
        return f"neither: {found}"


def _unit(name: str, kind: Kind, before: bytes | None, after: bytes | None) -> Unit:
    return Unit(name, kind, {name: (before, after)})


def _rename(source: str, target: str, kind: Kind) -> Unit:
    return Unit(f"{source} → {target}", kind, {source: (_BEFORE[source], None), target: (None, _BEFORE[source])})


COMMIT = "the commit"
UNITS: tuple[Unit, ...] = (
    _unit("a.txt", "text", b"one\ntwo\n", b"one\nTWO\n"),
    _unit("b.txt", "text", b"one\ntwo\n", b"one\nTWO\n"),
    _rename("poem.txt", "verse.txt", "text"),
    _unit("old.txt", "text", b"old\n", None),
    _unit("dead/x.txt", "text", b"x\n", None),
    _unit("d/sub/new.txt", "text", None, b"new\n"),
    _unit("run.sh", "bits", b"#!/bin/sh\n", b"#!/bin/sh\n (executable)"),
    _unit("also.sh", "bits", b"#!/bin/sh\n", b"#!/bin/sh\n (executable)"),
    _unit("pic.bin", "row", b"pic\0one", b"pic\0two"),
    _unit("new.bin", "row", None, b"new\0"),
    _unit("gone.bin", "row", b"gone\0", None),
    _rename("song.bin", "tune.bin", "row"),
    _unit("new.png", "row", None, b"\x89PNG\r\n\x1a\n\0"),
    _unit("link", "row", None, b"-> a.txt"),
    _unit("fresh", "row", None, b"/"),
    _unit("hollow", "row", b"/", None),
    _unit("dead", "row", b"/", None),
    _unit("out/x", "ignored", None, b"built\n"),
)
"""All units but the commit."""
_KINDS: Mapping[str, Kind] = {**{unit.name: unit.kind for unit in UNITS}, COMMIT: "commit"}
_FOLDERS = {"d", "d/sub", "dead", "fresh", "hollow", "out"}


def lay_out(root: Path) -> None:
    for name, data in _BEFORE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "hollow").mkdir()
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
        _git(root, *line.split())


def standings(root: Path) -> dict[str, str]:
    """The standing of each unit and of the commit. Raises `AssertionError` if the repository is damaged, or if there is
    something that nobody decided on."""
    _has_nothing_else(root)
    return {unit.name: unit.standing(root) for unit in UNITS} | {COMMIT: _commit(root)}


def of_kind(found: Mapping[str, str], *kinds: Kind) -> dict[str, str]:
    return {name: standing for name, standing in found.items() if _KINDS[name] in kinds}


def tree(root: Path) -> dict[str, tuple[int, bytes | None]]:
    """Path → permission bits and content. Without git's own files, what git ignores, and the folders that a new text
    needed: undo of text leaves those, as they may hold other things by now."""
    names = [path.relative_to(root) for path in sorted(root.rglob("*"))]
    return {
        str(name): (stat.S_IMODE((root / name).lstat().st_mode), _found(root / name))
        for name in names
        if name.parts[0] not in (".git", "out") and str(name) not in ("d", "d/sub")
    }


def _commit(root: Path) -> Standing:
    assert not list((root / ".git").rglob("*.lock")), "a lock is left"
    _git(root, "fsck", "--strict")
    history = _git(root, "log", "--format=%s").splitlines()
    assert history in (["first"], ["second", "first"]), history
    assert _git(root, "diff", "--cached", "--name-only") == "", "the index is another commit's"
    head, logged = _git(root, "rev-parse", "HEAD"), _git(root, "reflog", "-1", "--format=%H")
    assert head == logged, "the log is another commit's"
    return "before" if history == ["first"] else "after"


def _has_nothing_else(root: Path) -> None:
    known = {*_BEFORE, *(name for unit in UNITS for name in unit.paths)}
    paths = {path.relative_to(root).as_posix(): path for path in root.rglob("*")}
    own = {name: path for name, path in paths.items() if not f"{name}/".startswith(".git/")}
    folders = {name for name, path in own.items() if path.is_dir() and not path.is_symlink()}
    _assert_none("files", own.keys() - folders - known)
    _assert_none("folders", folders - _FOLDERS)
    _assert_none("files in the repository", [name for name in paths.keys() - own.keys() if "/." in name])


def _assert_none(what: str, names: Collection[str]) -> None:
    assert not names, f"nobody decided on the {what} {sorted(names)}"


def _found(path: Path) -> bytes | None:
    """The content of a file, with a mark if it is executable; the target of a link; "/" of a folder."""
    if path.is_symlink():
        return f"-> {path.readlink()}".encode()
    if path.is_dir():
        return b"/"
    if not path.exists():
        return None
    return path.read_bytes() + (b" (executable)" if os.access(path, os.X_OK) else b"")


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout
