"""Makes rows of what a command changed in its layer: describes both sides, and keeps what is not text in the session's
file store. Everything here blocks."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from amanu.proposals.rows import RowChange
from amanu.sandbox.layers.transfer import leads_out
from amanu.storage.errors import is_full
from amanu.storage.file_store import MAX_HASHED, FileStore, hashed
from amanu.system.image_info import media_type
from amanu.system.untrusted_files import FILE, opened_file, opened_folder
from amanu.text.display import unbroken
from amanu.tools.shell.taken_files import TakenFile, TakenFolder
from amanu.workspace.disk_changes import with_executable
from amanu_protocol.items import BlobRef, Line, RowVersion

MAX_BASE = 64 << 20
"""Bytes up to which a file's former content is kept, for undo."""
MAX_STORE = 1 << 30
"""Bytes of one session's files after which no former content is kept."""
_MAX_PICTURE = 8 << 20
OUTSIDE = ", outside the workspace"
"""The end of the title of a link that leads out."""
NO_UNDO = "Amanu cannot undo this change: the former file cannot be read, or is more than the session can keep."
_HEAD = 16
_NEW = 0o644


def file_rows(files: Sequence[TakenFile], store: FileStore) -> tuple[list[RowChange], list[Path]]:
    """The rows of files and links; none for a file that is what it was before. Also the paths of files for which the
    disk has no room. Raises `OSError`."""
    bytes_left = MAX_STORE - store.size()
    rows: list[RowChange] = []
    unstored: list[Path] = []
    for file in files:
        before = _base(file.path, store, bytes_left)
        bytes_left -= 0 if before is None or before.size > MAX_BASE else before.size
        try:
            after = None if file.stored is None else _with_made_above(file.path, _stored(file.stored, store))
        except OSError as error:
            if not is_full(error):
                raise
            unstored.append(file.path)
            continue
        if after is not None and before is not None and after.file_id and after.file_id == before.file_id:
            rows += _mode_row(file, before, after)
        else:
            rows.append(_file_row(file, before, after, is_kept=before is None or store.has(before.file_id)))
    if files:
        store.sync()
    return rows, unstored


def bit_rows(executable: Mapping[Path, bool]) -> list[RowChange]:
    """The rows of text files whose executable bits are set or cleared."""
    rows: list[RowChange] = []
    for path, is_set in executable.items():
        mode = stat.S_IMODE(path.lstat().st_mode) if os.path.lexists(path) else None
        before = None if mode is None else RowVersion(kind="file", mode=mode)
        after = RowVersion(kind="file", mode=with_executable(mode or _NEW, is_set=is_set))
        rows.append(RowChange("mode", path, before, after))
    return rows


def folder_rows(made: Sequence[Path], removed: Sequence[Path]) -> list[RowChange]:
    folder = RowVersion(kind="folder")
    return [
        *(RowChange("folder", path, None, _with_made_above(path, folder)) for path in made),
        *(RowChange("deletion", path, folder, None) for path in removed),
    ]


def version_at(path: Path, store: FileStore | None = None, bytes_left: int = 0) -> RowVersion | None:
    """The workspace's version of that path; None for nothing. It is kept in the `store`, if there is one and the file
    is not too large. `bytes_left`: how many may be kept. Raises `OSError`."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return RowVersion(kind="link", target=str(path.readlink()))
    if stat.S_ISDIR(found.st_mode):
        return RowVersion(kind="folder")
    version = RowVersion(kind="file", size=found.st_size, mode=mode)
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_HASHED:
        return version
    try:
        handle = os.open(path, FILE)
    except PermissionError:
        return version
    try:
        if store is not None and found.st_size <= min(bytes_left, MAX_BASE):
            return _with_picture(version.model_copy(update={"file_id": store.add(handle)}), handle)
        return version.model_copy(update={"file_id": hashed(handle)})
    finally:
        os.close(handle)


def put_version(version: RowVersion, folder: TakenFolder, store: FileStore) -> Path:
    """Make that version of a file or link in that folder. Returns its path. Raises `OSError`, `Damaged`."""
    target = folder.new()
    if version.kind == "link":
        target.symlink_to(version.target)
    else:
        store.copy(version.file_id, target, version.mode & 0o777 or 0o644)
    return target


def _base(path: Path, store: FileStore, bytes_left: int) -> RowVersion | None:
    """The workspace's version of that path, kept if the disk has room for it."""
    try:
        return version_at(path, store, bytes_left)
    except OSError as error:
        if not is_full(error):
            raise
        return version_at(path)


def _stored(path: Path, store: FileStore) -> RowVersion:
    """A file or link that was taken out of a layer, kept in the store."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return RowVersion(kind="link", target=str(path.readlink()))
    with opened_folder(path.parent) as folder, opened_file(path.name, folder) as handle:
        version = RowVersion(kind="file", size=found.st_size, mode=stat.S_IMODE(found.st_mode))
        return _with_picture(version.model_copy(update={"file_id": store.add(handle)}), handle)


def _with_made_above(path: Path, version: RowVersion) -> RowVersion:
    return version.model_copy(update={"made_above": sum(not os.path.lexists(above) for above in path.parents)})


def _with_picture(version: RowVersion, handle: int) -> RowVersion:
    kind = media_type(os.pread(handle, _HEAD, 0)) if version.size <= _MAX_PICTURE else None
    if kind is None:
        return version
    picture = BlobRef(blob_id=version.file_id, size=version.size)
    return version.model_copy(update={"picture": picture, "media_type": kind})


def _mode_row(file: TakenFile, before: RowVersion, after: RowVersion) -> Iterator[RowChange]:
    if before.executable != after.executable:
        yield RowChange("mode", file.path, before, after, identity=file.below)


def _file_row(file: TakenFile, before: RowVersion | None, after: RowVersion | None, *, is_kept: bool) -> RowChange:
    is_lost = before is not None and before.kind == "file" and not is_kept
    lines = [Line(tone="warning", text=NO_UNDO)] if is_lost else []
    if after is None:
        return RowChange("deletion", file.path, before, None, lines=lines, identity=file.below)
    if after.kind == "link":
        leads = OUTSIDE if leads_out(file.path, after.target, file.root.path) else ""
        title = f"link to {unbroken(after.target)}{leads}"
        return RowChange("link", file.path, before, after, title, lines, file.below)
    title = "" if file.what == "" else _title(file.what, before, after)
    return RowChange("file", file.path, before, after, title, lines, file.below)


def _title(what: str, before: RowVersion | None, after: RowVersion) -> str:
    bits = ", executable" if after.executable else ""
    return f"{'new ' if before is None else ''}{what}, {after.size:,} bytes{bits}"


def can_undo(row: RowChange) -> bool:
    """Whether Amanu keeps what it needs to undo the change."""
    return not any(line.text == NO_UNDO for line in row.lines)
