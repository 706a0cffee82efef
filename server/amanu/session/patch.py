"""Changes of a session as a patch that `git apply` takes."""

import asyncio
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.model import FILE_CHANGED, FILE_GONE, STATES_BEFORE
from amanu.session.core import SessionCore
from amanu.session.review import Selection, Selections, SessionEdits, TextChange
from amanu.storage.file_store import Damaged
from amanu.system.folder_list import list_folder
from amanu.text.amounts import byte_count
from amanu.workspace.git.refs import read_refs
from amanu.workspace.git_patch import PatchError, PatchFile, git_patch
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Hunk, HunkState, ProposedFile, Row, RowVersion

MAX_CONTENT = 64 << 20
"""Bytes of the files in one patch, both sides together."""
MAX_FILES = 5_000
_NO_COMMITS = "Commits and other changes to a repository are not part of a patch."
_NO_FOLDERS = "Git does not keep empty folders."
_MIXED = "Its changes do not follow from each other. Name fewer of them, or only the latest turn."
_NOT_KEPT = "Amanu does not have its content."
_OUTSIDE = "It is outside the workspace."
_TOO_LARGE = f"A patch holds at most {MAX_FILES:,} files and {byte_count(MAX_CONTENT)}."


class _Left(Exception):
    """A row cannot be part of the patch; the message is a sentence."""


class SessionPatch:
    """Raises `AmanuError`."""

    def __init__(self, core: SessionCore, edits: SessionEdits) -> None:
        self._core = core
        self._edits = edits

    async def patch(self, params: r.ProposalPatchParams) -> r.ProposalPatchResult:
        """See `amanu/proposal/patch`."""
        self._core.access.require_writable()  # what another process has open is not loaded here
        is_open = params.state == "open"
        sides = _Sides(self._core, is_open)
        if is_open:
            for proposal_id in list(self._changes(params)):
                await self._core.proposals.catch_up(proposal_id)
        rows: list[Row] = []
        selection: dict[str, Selection] = {}
        for proposal_id, changes in self._changes(params).items():
            for path, change in changes:
                if change.state == "conflicted":
                    sides.leave(path, change.reason or "It is in conflict.")
                elif isinstance(change, Row):
                    rows.append(change)
            hunks = (change for _, change in changes if isinstance(change, Hunk) and change.state != "conflicted")
            selection[proposal_id] = Selection([hunk.hunk_id for hunk in hunks])
        for text in self._open_texts(selection) if is_open else await self._edits.applied_texts(selection):
            sides.add_text(text)
        return await asyncio.to_thread(self._made, sides, rows)

    def _changes(self, params: r.ProposalPatchParams) -> Mapping[str, Sequence[tuple[str, Hunk | Row]]]:
        """Proposal id → the changes that the patch is about, each with its path; only proposals that have some."""
        states: Collection[HunkState] = ("pending", "conflicted") if params.state == "open" else ("applied",)
        named = list(map(Path, params.paths))

        def is_meant(change: ProposedFile | Row) -> bool:
            paths = [Path(path) for path in (change.path, change.new_path) if path is not None]
            is_named = not named or any(path.is_relative_to(name) for path in paths for name in named)
            return is_named and not self._core.workspace.guard.is_plan(paths[0])

        found: dict[str, Sequence[tuple[str, Hunk | Row]]] = {}
        for proposal in self._core.state.proposals:
            if params.turn_id in (None, proposal.turn_id):
                files = filter(is_meant, proposal.files)
                changes = [(file.path, hunk) for file in files for hunk in file.hunks if hunk.state in states]
                rows = [(row.path, row) for row in filter(is_meant, proposal.rows) if row.state in states]
                if changes or rows:
                    found[proposal.proposal_id] = [*changes, *rows]
        return found

    def _open_texts(self, selection: Selections) -> Iterable[TextChange]:
        for proposal_id, selected in selection.items():
            for file in self._core.proposals.files(proposal_id):
                if any(hunk.hunk_id in selected.hunk_ids for hunk in file.hunks):
                    old, new = file.version_with(STATES_BEFORE), file.version_with((*STATES_BEFORE, "pending"))
                    yield TextChange(old, new, file.base)

    def base(self) -> r.PatchBase:
        """The folder that the paths of a patch are relative to, and its commit. Blocking."""
        roots = self._core.workspace.roots
        shared = roots[0] if len(roots) == 1 else Path(os.path.commonpath(roots))
        folder = next((folder for folder in (shared, *shared.parents) if (folder / ".git").exists()), shared)
        try:
            commit = read_refs(folder / ".git").resolved("HEAD")
        except OSError:
            commit = ""
        return r.PatchBase(folder=str(folder), commit=commit)

    def _made(self, sides: "_Sides", rows: Sequence[Row]) -> r.ProposalPatchResult:
        """Blocking."""
        # A file's bits come after its content, and a folder is empty if no other change has something in it.
        for row in sorted(rows, key=lambda row: row.kind == "mode" or _is_empty_folder(row)):
            sides.add_row(row)
        sides.drop_nested()
        base = self.base()
        folder = Path(base.folder)
        before, after = (
            {path.relative_to(folder).as_posix(): file for path, file in side.items()}
            for side in (sides.before, sides.after)
        )
        try:
            patch, files = git_patch(before, after)
        except PatchError as error:
            raise AmanuError("internalError", str(error)) from None
        changes = [
            r.FileChange(
                path=str(folder / file.path),
                change=file.change,
                new_path=None if file.new_path is None else str(folder / file.new_path),
                added=file.added,
                removed=file.removed,
            )
            for file in files
        ]
        return r.ProposalPatchResult(patch=patch, base=base, files=changes, left=sides.left)


@dataclass
class _Sides:
    """The files of a patch before and after it, by absolute path."""

    core: SessionCore
    is_open: bool
    """Whether the changes are not applied yet, so that the workspace has the version before them."""
    before: dict[Path, PatchFile] = field(default_factory=dict[Path, PatchFile])
    after: dict[Path, PatchFile] = field(default_factory=dict[Path, PatchFile])
    left: list[r.LeftOut] = field(default_factory=list[r.LeftOut])
    bytes_left: int = MAX_CONTENT
    dropped: set[Path] = field(default_factory=set[Path])
    """Files and folders that are left out, whatever comes."""
    moved: list[tuple[Path, Path]] = field(default_factory=list[tuple[Path, Path]])
    with_bits: set[Path] = field(default_factory=set[Path])
    """Files of which the former executable bits are known."""

    def leave(self, path: str, reason: str) -> None:
        """Name a path that is not in the patch, and the first reason."""
        if all(each.path != path for each in self.left):
            self.left.append(r.LeftOut(path=path, reason=reason))

    def add_text(self, change: TextChange) -> None:
        executable = bool((change.like.mode or 0) & 0o111)
        try:
            old, new = (
                None if version.text is None else PatchFile(change.like.encode(version.text), executable)
                for version in (change.old, change.new)
            )
            self._add(change.old.path, change.new.path, old, new)
        except (ToolError, _Left) as error:
            self.drop(change.old.path, change.new.path)
            self.leave(str(change.old.path), str(error))

    def add_row(self, row: Row) -> None:
        """Blocking."""
        path = Path(row.path)
        if row.kind == "git":
            self.leave(row.path, _NO_COMMITS)
        elif _is_empty_folder(row):
            if not any(path in file.parents for file in self.after):
                self.leave(row.path, _NO_FOLDERS)
        else:
            try:
                self._add_row(row, path)
            except (_Left, OSError, Damaged) as error:
                self.drop(path, path if row.new_path is None else Path(row.new_path))
                self.leave(row.path, str(error) or _NOT_KEPT)

    def _add_row(self, row: Row, path: Path) -> None:
        if row.undecidable:
            raise _Left(row.undecidable)
        if row.kind == "mode":
            self._add_bits(path, row)
        elif row.after is not None and row.after.kind == "folder":
            self._add_folder(path, row.after)
        elif row.before is None or row.before.kind != "folder":
            new_path = path if row.new_path is None else Path(row.new_path)
            old = self._version(path, row.before, is_present=self.is_open)
            self._add(path, new_path, old, self._version(new_path, row.after, is_present=not self.is_open))

    def _add(self, old_path: Path, new_path: Path, old: PatchFile | None, new: PatchFile | None) -> None:
        """Add a change, on top of those before it. Raises `_Left` if it does not follow from them."""
        paths = (old_path, new_path)
        if not all(any(map(path.is_relative_to, self.core.workspace.roots)) for path in paths):
            raise _Left(_OUTSIDE)
        self.bytes_left -= sum(len(side.data) for side in (old, new) if side is not None)
        if self.bytes_left < 0 or len(self.after) >= MAX_FILES:
            raise _Left(_TOO_LARGE)
        is_known = old_path in self.after or old_path in self.before
        is_taken = old_path != new_path and new_path in self.after
        is_dropped = bool(self.dropped & (_with_folders(old_path) | _with_folders(new_path)))
        if is_dropped or is_taken or (is_known and not _same(self.after.get(old_path), old)):
            raise _Left(_MIXED)
        self.after.pop(old_path, None)
        if old is not None and not is_known:
            self.before[old_path] = old
        if new is not None:
            self.after[new_path] = new
        if old_path != new_path:
            self.moved.append(paths)

    def drop(self, *paths: Path) -> None:
        """Leave out these files, all in these folders, and what was moved to or from there."""
        todo = {*paths}
        while todo:
            path = todo.pop()
            self.dropped.add(path)
            for side in (self.before, self.after):
                for each in [each for each in side if each.is_relative_to(path)]:
                    del side[each]
            moved = [pair for pair in self.moved if any(each.is_relative_to(path) for each in pair)]
            todo |= {each for pair in moved for each in pair} - self.dropped

    def drop_nested(self) -> None:
        """Leave out what one change has as a file, and another as a folder."""
        for side in (self.before, self.after):
            for path in {above for file in side for above in file.parents if above in side}:
                self.drop(path)
                self.leave(str(path), _MIXED)

    def _add_folder(self, path: Path, version: RowVersion) -> None:
        """Add all files of a new folder."""
        files = self.core.files
        place = files.path(version.file_id) if files.has(version.file_id) else path
        if not place.is_dir() or place.is_symlink():
            raise _Left(FILE_GONE)
        listing = list_folder(place)
        if not files.is_listed(version.file_id, listing):
            raise _Left(FILE_CHANGED)
        if version.size > self.bytes_left or len(self.after) + len(listing.entries) > MAX_FILES:
            raise _Left(_TOO_LARGE)
        for entry in listing.entries:
            inner = path / entry.path
            if entry.kind == "file":
                self._add(inner, inner, None, PatchFile(_read(place / entry.path), entry.executable))
            elif entry.kind == "link":
                self._add(inner, inner, None, PatchFile(os.fsencode(entry.target), is_link=True))

    def _add_bits(self, path: Path, row: Row) -> None:
        if path not in self.before and path not in self.after:
            file = PatchFile(_read(path))
            self._add(path, path, file, file)
        if row.before is not None and path in self.before and path not in self.with_bits:
            self.before[path] = replace(self.before[path], executable=row.before.executable)
        if row.after is not None and path in self.after:
            self.after[path] = replace(self.after[path], executable=row.after.executable)
        self.with_bits.add(path)

    def _version(self, path: Path, version: RowVersion | None, *, is_present: bool) -> PatchFile | None:
        """The file in that version, from the session's store, or from the workspace if it is the present one."""
        if version is None:
            return None
        if version.kind == "link":
            return PatchFile(os.fsencode(version.target), is_link=True)
        if version.size > self.bytes_left:
            raise _Left(_TOO_LARGE)
        if self.core.files.has(version.file_id):
            data = self.core.files.path(version.file_id).read_bytes()
        elif is_present:
            data = _read(path)
            if hashlib.sha256(data).hexdigest() != version.file_id:
                raise _Left(FILE_CHANGED)
        else:
            raise _Left(_NOT_KEPT)
        return PatchFile(data, version.executable)


def _is_empty_folder(row: Row) -> bool:
    return row.after is not None and row.after.kind == "folder" and not row.after.file_id


def _with_folders(path: Path) -> set[Path]:
    return {path, *path.parents}


def _same(one: PatchFile | None, other: PatchFile | None) -> bool:
    """Whether both are the same but for executable bits."""
    if one is None or other is None:
        return one is other
    return (one.data, one.is_link) == (other.data, other.is_link)


def _read(path: Path) -> bytes:
    """Read a file without following a link. Raises `OSError`, also if it is too large or not a regular file."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_CONTENT:
            raise OSError(_TOO_LARGE)
        return file.read()
