"""Rows: changes of a proposal that no hunk shows."""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from amanu.text.display import unbroken
from amanu_protocol.items import HunkState, Line, Row, RowKind, RowTurn, RowVersion

OPEN: Collection[HunkState] = ("pending", "accepted", "conflicted")
_SIDE_FILES = ("-wal", "-shm", "-journal")
"""Endings of the files without which an SQLite database is incomplete."""
_RENAMED = "renamed, "
WITHDRAWN = "A later command has undone it."
NOT_KEPT = "An older Amanu did not keep these changes to the repository. Ask for them again."


RowKey = tuple[str, Path]
"""A word and a path, the same for every change of one thing: "mode" for a file's executable bits, "git" for a
repository, "path" for what is at the path."""


@dataclass(frozen=True)
class RowChange:
    """A change to what is at one path, or the rename of a file, which keeps its bytes."""

    kind: RowKind
    path: Path
    before: RowVersion | None = None
    after: RowVersion | None = None
    title: str = ""
    """If it is "", `row_title` makes one."""
    lines: Sequence[Line] = ()
    identity: tuple[int, int] | None = None
    """Inode and ctime (nanoseconds) of `before` in the workspace; None: not known."""
    committed: Sequence[Path] = ()
    """The files that the commits of a `git` row change."""
    new_path: Path | None = None
    """The new path of a renamed file."""

    @property
    def paths(self) -> Sequence[Path]:
        return [self.path] if self.new_path is None else [self.path, self.new_path]

    @property
    def parts(self) -> "Sequence[RowChange]":
        """The deletion and the new file that a rename stands for; of any other change, the change itself."""
        if self.new_path is None:
            return [self]
        words = self.title.removeprefix(_RENAMED)
        title = f"new {words}" if self.title else ""
        return [
            RowChange("deletion", self.path, self.before, lines=self.lines, identity=self.identity),
            RowChange("file", self.new_path, None, self.after, title),
        ]

    @property
    def key(self) -> RowKey:
        is_bits = self.kind == "mode" and (self.after is None or not self.after.file_id)  # else it is the whole file
        return self.kind if is_bits or self.kind == "git" else "path", self.path

    @property
    def is_executable(self) -> bool:
        """Whether the file is executable after the change."""
        return self.after is not None and self.after.executable

    @property
    def is_tree(self) -> bool:
        """Whether it is a new folder with all that is in it."""
        return self.after is not None and self.after.kind == "folder" and self.after.file_id != ""

    @property
    def digest(self) -> str:
        sides = [None if side is None else side.model_dump() for side in (self.before, self.after)]
        lines = [line.text for line in self.lines] if self.kind == "git" else []
        described = [self.kind, str(self.path), sides, lines, *map(str, self.paths[1:])]
        return hashlib.sha256(json.dumps(described).encode("utf-8", "surrogatepass")).hexdigest()


class RowStep(NamedTuple):
    """The change at one path that carrying out a row makes."""

    path: Path
    old: RowVersion | None
    """The version that was there before."""
    new: RowVersion | None


@dataclass
class LiveRow:
    """A row of a live proposal."""

    row_id: str
    turn_id: str
    change: RowChange
    owners: frozenset[str] = frozenset()
    """The calls that made it."""
    state: HunkState = "pending"
    reason: str | None = None
    reviewed: bool = False
    earlier: list[RowTurn] = field(default_factory=list[RowTurn])

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def is_interrupted(self) -> bool:
        """Whether a decision on it is not carried out yet."""
        return self.state in ("accepted", "undoing")

    @property
    def is_undone(self) -> bool:
        """Whether it is not to be applied."""
        return self.state != "accepted"

    @property
    def undecidable(self) -> str:
        is_lost = self.change.kind == "git" and self.change.after is None
        return NOT_KEPT if is_lost and self.state not in ("applied", "undoing") else ""

    @property
    def sides(self) -> tuple[RowVersion | None, RowVersion | None]:
        """The versions in the workspace before and after the row is carried out."""
        change = self.change
        return (change.after, change.before) if self.state == "undoing" else (change.before, change.after)

    @property
    def steps(self) -> Sequence[RowStep]:
        """The changes that carrying it out makes: a renamed file is made first, then removed from its other path."""
        (old, new), (path, *others) = self.sides, self.change.paths
        if not others:
            return [RowStep(path, old, new)]
        source, target = (others[0], path) if self.state == "undoing" else (path, others[0])
        return [RowStep(target, None, new), RowStep(source, old, None)]

    def settle(self, fault: str | None) -> None:
        """Note that it was carried out or, if there is a `fault`, that it was not."""
        if self.state == "accepted":
            self.state = "applied" if fault is None else "conflicted"
        elif self.state == "undoing":
            self.state = "reverted" if fault is None else "applied"
        else:
            return
        self.reason = fault

    def leave_open(self, reason: str | None) -> None:
        """Note that it was not carried out, without a fault of its own: it is pending again, or applied again."""
        if self.state == "accepted":
            self.state, self.reason, self.reviewed = "pending", reason, False
        elif self.state == "undoing":
            self.state, self.reason = "applied", reason

    def redraft(self, change: RowChange, turn_id: str, call_id: str) -> None:
        """Take over the new version that a command has drafted."""
        if turn_id != self.turn_id:
            self.earlier.append(self._as_turn())
        self.change = replace(change, before=self.change.before, identity=self.change.identity)
        self.turn_id, self.owners = turn_id, self.owners | {call_id}
        self.state, self.reason = "pending", None

    def withdraw(self, turn_id: str) -> None:
        """Withdraw the row, which a command of that later turn has undone. A rewind brings it back."""
        self.earlier.append(self._as_turn())
        self.turn_id, self.state, self.reason = turn_id, "rejected", WITHDRAWN

    def rewind(self, turn_ids: Collection[str]) -> bool:
        """Go back to the version from before these turns. False when there is none."""
        if self.turn_id not in turn_ids:
            return True
        if self.reason == WITHDRAWN:
            self.state, self.reason = "pending", None
        while self.earlier:
            turn = self.earlier.pop()
            if turn.turn_id not in turn_ids:
                new_path = None if turn.new_path is None else Path(turn.new_path)
                self.change = replace(
                    self.change,
                    kind=turn.kind,
                    after=turn.after,
                    title=turn.title,
                    lines=turn.lines,
                    new_path=new_path,
                )
                self.turn_id = turn.turn_id
                return True
        return False

    def _as_turn(self) -> RowTurn:
        change = self.change
        new_path = None if change.new_path is None else str(change.new_path)
        return RowTurn(
            turn_id=self.turn_id,
            kind=change.kind,
            title=change.title,
            lines=list(change.lines),
            after=change.after,
            new_path=new_path,
        )

    def wire(self, needs: Sequence[str]) -> Row:
        change = self.change
        return Row(
            row_id=self.row_id,
            kind=change.kind,
            path=str(change.path),
            new_path=None if change.new_path is None else str(change.new_path),
            before=change.before,
            after=change.after,
            state=self.state,
            reason=self.reason,
            reviewed=self.reviewed,
            title=change.title or row_title(change),
            lines=list(change.lines),
            needs=list(needs) if self.is_open else [],
            undecidable=self.undecidable,
            digest=change.digest,
            committed=[*map(str, change.committed)],
            earlier=list(self.earlier),
            turn_id=self.turn_id,
        )

    @classmethod
    def load(cls, row: Row) -> "LiveRow":
        new_path = None if row.new_path is None else Path(row.new_path)
        committed = [*map(Path, row.committed)]
        change = RowChange(
            row.kind,
            Path(row.path),
            row.before,
            row.after,
            row.title,
            row.lines,
            committed=committed,
            new_path=new_path,
        )
        return cls(row.row_id, row.turn_id, change, frozenset(), row.state, row.reason, row.reviewed, list(row.earlier))


def rename_row(deletion: RowChange, file: RowChange) -> RowChange:
    """The deletion of a file and a new file with the same bytes, as one change."""
    title = f"{_RENAMED}{file.title.removeprefix('new ')}" if file.title else ""
    return RowChange(
        "rename", deletion.path, deletion.before, file.after, title, identity=deletion.identity, new_path=file.path
    )


def row_title(change: RowChange) -> str:
    """The change for the user, to go after its path: "new binary file, 4,096 bytes"."""
    before, after = change.before, change.after
    match change.kind:
        case "folder":
            return "new folder"
        case "mode":
            return "becomes executable" if change.is_executable else "is no longer executable"
        case "deletion":
            return "the folder is removed" if before is not None and before.kind == "folder" else "deleted"
        case "link" if after is not None:
            return f"link to {unbroken(after.target)}"
        case "rename" if change.new_path is not None:
            return f"{_RENAMED}{row_title(change.parts[1]).removeprefix('new ')}"
        case "file" if after is not None:
            was = f"{before.size:,} → " if before is not None and before.kind == "file" else ""
            bits = ", executable" if after.executable else ""
            return f"{'new ' if before is None else ''}binary file, {was}{after.size:,} bytes{bits}"
        case _:
            return change.kind


def needed_paths(row: LiveRow, paths: Collection[Path]) -> Iterable[Path]:
    """The paths that the row may need, some of which may not be among `paths`. See `needs_path`."""
    own, kind = row.change.path, row.change.kind
    match kind:
        case "git":
            return row.change.committed
        case "mode":
            return (own,)
        case "deletion" if row.change.before is not None and row.change.before.kind == "folder":
            return [path for path in paths if own in path.parents]
        case "deletion":
            return ()
        case _:
            return [Path(f"{each}{ending}") for each in row.change.paths for ending in _SIDE_FILES]


def needs_path(row: LiveRow, path: Path, *, is_new_file: bool) -> bool:
    """Whether the row cannot be accepted without what is proposed at that path. `is_new_file`: it is a new text file,
    without which there are no executable bits to set."""
    return path in needed_paths(row, (path,)) and (row.change.kind != "mode" or is_new_file)
