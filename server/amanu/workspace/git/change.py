"""The change of one repository, by value: it can be stored as bytes, and compared with the repository as it is."""

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from amanu.workspace.git.index import Entry, Key
from amanu.workspace.git.refs import SYMBOLIC

HEAD = "HEAD"
STATE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "MERGE_AUTOSTASH")
"""Files that say what git is in the middle of. Git writes the other `FILES` anew each time."""
FILES = (*STATE, "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "MERGE_MODE", "MERGE_MSG", "SQUASH_MSG", "AUTO_MERGE")
_OBJECT = re.compile(r"[0-9a-f]{40}")
_REF_NAME = re.compile(r"refs(?:/[^/\x00-\x20\x7f~^:?*\[\\]+)+")
_VALUE = re.compile(rf"{SYMBOLIC}(?P<name>.+)|[0-9a-f]{{40}}|")
_MODES = (0o100644, 0o100755, 0o120000, 0o160000)
_FLAGS = ("is_assumed", "is_skipped", "is_intended")
_FORMAT = 1

T = TypeVar("T")
Refs = Mapping[str, tuple[str, str]]
"""Name → value before and after: 40 hexadecimal digits, "ref: NAME", or "" for none."""


@dataclass(frozen=True)
class Appended:
    """Lines that are added to a log."""

    lines: bytes
    size: int = -1
    """Size of the log before, in bytes, which tells added lines from the same lines that were there; -1: not known."""


@dataclass(frozen=True)
class Replaced:
    """A log that loses lines, or is removed; None for no log."""

    before: bytes | None
    after: bytes | None


@dataclass(frozen=True)
class RepositoryChange:
    """All that a command changed in a repository, but for the files of the workspace."""

    root: Path
    """The folder that has `.git`."""
    refs: Refs = field(default_factory=dict[str, tuple[str, str]])
    """Some of them stay as they are: the change fits only as long as they do."""
    entries: Mapping[Key, tuple[Entry | None, Entry | None]] = field(
        default_factory=dict[Key, tuple[Entry | None, Entry | None]]
    )
    """Entries of the index before and after."""
    logs: Mapping[str, Appended | Replaced] = field(default_factory=dict[str, Appended | Replaced])
    """Name of a ref → the change of its log."""
    files: Mapping[str, tuple[bytes | None, bytes | None]] = field(
        default_factory=dict[str, tuple[bytes | None, bytes | None]]
    )
    """Git's small files before and after."""
    objects: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name → id of the loose object in the session's store."""
    commits: Collection[str] = ()
    """Its new commits."""
    committed: Collection[str] = ()
    """Paths of the files that these commits change, relative to the root."""

    @property
    def moved(self) -> Refs:
        """The refs that do not stay as they are."""
        return {name: values for name, values in self.refs.items() if values[0] != values[1]}

    @property
    def committed_paths(self) -> list[Path]:
        return [self.root / path for path in self.committed]

    @property
    def paths(self) -> list[Path]:
        """The files of git's own that change, except objects, which are named after their content."""
        names = [*self.moved, *(f"logs/{name}" for name in self.logs), *self.files]
        names += ["index"] if self.entries else []
        names += ["packed-refs"] if any(not new for _, new in self.moved.values()) else []  # a deleted ref may be in it
        return [self.root / ".git" / name for name in names]

    def encode(self) -> bytes:
        return json.dumps(
            {
                "format": _FORMAT,
                "root": str(self.root),
                "refs": self.refs,
                "entries": [[*key, _listed(old), _listed(new)] for key, (old, new) in self.entries.items()],
                "logs": {name: _described(log) for name, log in self.logs.items()},
                "files": {name: [_text(old), _text(new)] for name, (old, new) in self.files.items()},
                "objects": self.objects,
                "commits": [*self.commits],
                "committed": [*self.committed],
            },
            sort_keys=True,
        ).encode()

    @classmethod
    def decode(cls, data: bytes) -> "RepositoryChange":
        """Raises `ValueError`, also for names that lead out of the repository."""
        try:
            read = json.loads(data)
            root = _string(read["root"])
            _require(read["format"] == _FORMAT and Path(root).is_absolute() and "\0" not in root)
            return cls(
                Path(root),
                _table(read["refs"], _is_ref, _values),
                dict(_entry(*each) for each in read["entries"]),
                _table(read["logs"], _is_ref, _log),
                _table(read["files"], FILES.__contains__, _sides),
                _table(read["objects"], _is_object, _string),
                tuple(_only(_is_object, read["commits"])),
                tuple(_only(_is_path, read["committed"])),
            )
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a change of a repository: {error!r}") from None


def changed_refs(before: Mapping[str, str], after: Mapping[str, str]) -> Refs:
    """The refs that move, and those that must stay as they are for that to fit: HEAD if it leads to a ref that moves;
    the refs that HEAD led and leads to if it moves itself."""
    moved = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    targets = {refs[HEAD].removeprefix(SYMBOLIC) for refs in (before, after) if refs.get(HEAD, "").startswith(SYMBOLIC)}
    if HEAD in moved:
        moved |= targets
    elif targets & moved:
        moved.add(HEAD)
    return {name: (before.get(name, ""), after.get(name, "")) for name in sorted(moved)}


def log_change(before: bytes | None, after: bytes | None) -> Appended | Replaced:
    if after is not None and after.startswith(before or b""):
        size = len(before or b"")
        return Appended(after[size:], size)
    return Replaced(before, after)


def _listed(entry: Entry | None) -> list[Any] | None:
    return None if entry is None else [entry.mode, entry.object, [name for name in _FLAGS if getattr(entry, name)]]


def _described(log: Appended | Replaced) -> dict[str, str | int | None]:
    if isinstance(log, Appended):
        return {"lines": _text(log.lines), "size": log.size}
    return {"before": _text(log.before), "after": _text(log.after)}


def _text(data: bytes | None) -> str | None:
    """The bytes as text: those that are not UTF-8 become lone surrogates, which JSON escapes."""
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _bytes(value: Any) -> bytes | None:
    return None if value is None else _string(value).encode("utf-8", "surrogateescape")


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("not a change of a repository")


def _string(value: Any) -> str:
    _require(isinstance(value, str))
    return value


def _only(accepts: Callable[[str], bool], values: Iterable[Any]) -> Iterable[str]:
    for value in values:
        _require(accepts(_string(value)))
        yield value


def _table(read: Any, accepts: Callable[[str], bool], value: Callable[[Any], T]) -> dict[str, T]:
    return dict(zip(_only(accepts, read), map(value, read.values()), strict=True))


def _values(value: Any) -> tuple[str, str]:
    before, after = (_string(each) for each in value)
    for each in (before, after):
        found = _VALUE.fullmatch(each)
        _require(found is not None and (found["name"] is None or _is_ref(found["name"])))
    return before, after


def _sides(value: Any) -> tuple[bytes | None, bytes | None]:
    before, after = map(_bytes, value)
    return before, after


def _log(value: Any) -> Appended | Replaced:
    if "lines" in value:
        _require(type(value["size"]) is int)
        return Appended(_string(value["lines"]).encode("utf-8", "surrogateescape"), value["size"])
    return Replaced(_bytes(value["before"]), _bytes(value["after"]))


def _entry(path: Any, stage: Any, old: Any, new: Any) -> tuple[Key, tuple[Entry | None, Entry | None]]:
    _require(_is_path(_string(path)) and type(stage) is int and 0 <= stage <= 3)
    return (path, stage), (_read_entry(old, stage), _read_entry(new, stage))


def _read_entry(value: Any, stage: int) -> Entry | None:
    if value is None:
        return None
    mode, name, flags = value
    _require(type(mode) is int and mode in _MODES and _is_object(_string(name)))
    return Entry(mode, name, stage, **dict.fromkeys(_only(_FLAGS.__contains__, flags), True))


def _is_object(text: str) -> bool:
    return _OBJECT.fullmatch(text) is not None


def _is_ref(name: str) -> bool:
    """Whether it is HEAD or a name below `refs/` that is a file in `.git`."""
    parts = name.split("/")
    is_plain = all(not part.startswith(".") and not part.endswith(".lock") for part in parts)
    return name == HEAD or (_REF_NAME.fullmatch(name) is not None and is_plain)


def _is_path(path: str) -> bool:
    """Whether it can be the path of a file in the workspace."""
    parts = path.casefold().split("/")
    return "\0" not in path and not {"", ".", "..", ".git"} & set(parts) and bool(os.fsencode(path))
