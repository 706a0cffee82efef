"""Which folders the user trusts, and what exactly they trusted in them.

Trust is about a *folder* and about *what it enables*: the files in it that Amanu takes as instructions. It is recorded
under the folder's real path, with device and inode and with the content of those files. So another folder put in its
place is not trusted, nor is one that merely claims to be the same (a `.git` file, a `commondir`). New or changed
content makes the folder `changed`: not trusted, until the user has seen the difference and says yes again. A deleted
file enables nothing and raises no question, except for rules: they forbid.

    memory    AGENTS.md, CLAUDE.md, GEMINI.md, in every folder, and what they import (`context/memory_files.py`)
    rules     .amanu/config.toml
    command, skill, agent   `context/extension_files.py` says where

What checkers read or run (pyproject.toml, eslint.config.js, node_modules) runs in the sandbox, and changes every other
day: a question about it would teach users to say yes. Trusting a folder trusts those files, whatever they become.

Files are checked again when they are used: whoever reads one passes what was read to `covers`, and content that the
user did not trust stays unread. So a file that turns up in a deep folder later, or is swapped between check and use,
has no effect.

An editor can take part (`trustedRoots`, for instance VS Code's workspace trust). Its trust counts for the folder, and
the files that are there when it is first heard are recorded as if the user had trusted them here; later changes raise a
question. A folder is trusted only if neither the editor nor the user here has refused it. Each root of a session must
be trusted by itself: trust does not extend to the folder above or to folders below.

    <config>/trust.json       the folders; also the plain list of paths that older versions wrote
    <state>/trust/SHA256      the files' texts, to show what changed
"""

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

from amanu.context.extension_files import MAX_BYTES, PLACES, ExtensionKind, find_files, place_of
from amanu.context.memory_files import NAMES, MemoryFiles
from amanu.core.tool import SubjectFilter, ToolError
from amanu.storage.errors import storage_error
from amanu.storage.files import read_blob, write_blob, write_whole
from amanu.text.display import visible
from amanu.workspace.hunks import text_with
from amanu.workspace.ignore import walk
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal
from amanu_protocol.requests import TrustedItem, TrustGetResult

Standing = Literal["untrusted", "trusted", "changed"]
FileKind = Literal["memory", "rules"] | ExtensionKind
Answer = Literal["yes", "no", "editor"]
"""What is recorded of a folder: the user's own answer; or that an editor said yes, which counts only while it does."""

SEARCH_SECONDS = 3.0
"""Time to find files in deep folders; a file that is not found in time is not trusted."""
MAX_DIFF_LINES = 200
"""Lines shown of the diff of one file."""

Files = Mapping[str, tuple[FileKind, str]]
"""Path → kind and SHA-256. The path is relative to the root, with `/`, and begins with `../` where the repository
begins above it."""
Contents = Mapping[str, "TrustedFile"]
"""The same paths → the files as they are on the disk."""


@dataclass(frozen=True)
class TrustedFile:
    """A file that trust enables, as it is on the disk."""

    kind: FileKind
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class TrustRecord:
    """What is recorded of one folder."""

    answer: Answer
    device: int | None = None
    """None, like `inode`, where an older version recorded only the path."""
    inode: int | None = None
    files: "Files | None" = None
    """None where nothing has been recorded yet."""


class TrustStore:
    """The folders one user trusts. All methods block, and are safe in threads. `file` is trust.json, `texts` the
    folder of the recorded texts, `allowed` says which files of a workspace are read without a question, `private` are
    Amanu's own folders."""

    def __init__(self, file: Path, texts: Path, allowed: SubjectFilter, private: Sequence[Path] = ()) -> None:
        self._file = file
        self._texts = texts
        self._allowed = allowed
        self._private = private
        self._lock = threading.RLock()
        self._temporary: dict[str, TrustRecord] = {}

    def standing(self, roots: Sequence[str], declared: Collection[str] | None = None) -> Standing:
        """Whether a session with those roots is trusted; the least trusted root decides. `declared` are the roots that
        the editor trusts, None when it takes no part. Raises `AmanuError` (storageError)."""
        editors = None if declared is None else {os.path.realpath(path) for path in declared}
        with self._lock:
            standings = {self._standing(os.path.realpath(root), editors) for root in roots} or {"untrusted"}
        return next(standing for standing in ("untrusted", "changed", "trusted") if standing in standings)

    def covers(self, roots: Sequence[str], path: Path, data: bytes) -> bool:
        """Whether the user trusted the file at that real path with that content, in one of the roots."""
        digest = hashlib.sha256(data).hexdigest()
        with self._lock:
            folders = self._read()
            for root in map(os.path.realpath, roots):
                folder = self._record_of(folders, root)
                if folder is None or folder.answer == "no" or folder.files is None:
                    continue
                if folder.files.get(_name(path, root), ("", ""))[1] == digest:
                    return True
        return False

    def look(self, root: str, declared: Collection[str] | None = None) -> TrustGetResult:
        """What trusting that folder enables, compared with what was trusted before."""
        real = os.path.realpath(root)
        with self._lock:
            standing = self.standing([root], declared)
            folder = self._record_of(self._read(), real)
            contents = self._contents(Path(real), None)
            trusted_files: Files = folder.files if folder is not None and folder.files is not None else {}
            enables = [
                self._compare(name, contents.get(name), trusted_files.get(name))
                for name in sorted({*contents, *trusted_files})
            ]
            if standing == "trusted" and any(_needs_review(item) for item in enables):
                standing = "changed"  # a deep folder that `standing` does not look into
            return TrustGetResult(state=standing, enables=enables, digest=_digest(real, contents))

    def set(self, root: str, trusted: bool, digest: str | None = None) -> None:
        """Record the user's answer. An approval covers what is there now; `digest` is that of what they were shown.
        Raises `AmanuError` (trustChanged) when that is not what is there."""
        real = os.path.realpath(root)
        with self._lock:
            self._temporary.pop(real, None)
            if not trusted:
                self._save(real, TrustRecord("no"))
                return
            contents = self._contents(Path(real), None)
            if digest is not None and digest != _digest(real, contents):
                raise AmanuError(
                    "trustChanged",
                    f"The files that trusting {real} would enable have changed since they were shown.",
                    hint="Review them again, then decide.",
                )
            self._save(real, self._record("yes", real, contents))

    def trust_for_now(self, root: str) -> None:
        """Trust the folder as it is now, for as long as this process lives; nothing is recorded on the disk."""
        real = os.path.realpath(root)
        with self._lock:
            self._temporary[real] = self._record("yes", real, self._contents(Path(real), None))

    def on_reviewed_change(self, roots: Sequence[str], path: Path, old_data: bytes, new_data: bytes) -> None:
        """The user has just approved a change of that file, seeing the diff. If they trusted the old content (or there
        was none), they trust the new."""
        with self._lock:
            for root in map(os.path.realpath, roots):
                folders = self._read()
                folder, name = self._record_of(folders, root), _name(path, root)
                if folder is None or folder.answer == "no" or folder.files is None:
                    continue
                was = folder.files.get(name)
                kind, digest = was if was is not None else (_kind_of(name), None)
                if kind is None or digest != (hashlib.sha256(old_data).hexdigest() if old_data else None):
                    continue
                pair: tuple[FileKind, str] = (kind, write_blob(self._texts, new_data))
                files: Files = {**folder.files, name: pair}
                changed = TrustRecord(folder.answer, folder.device, folder.inode, files)
                if root in self._temporary:
                    self._temporary[root] = changed
                else:
                    self._save(root, changed)

    # One folder -------------------------------------------------------------------------------------

    def _standing(self, root: str, editors: Collection[str] | None) -> Standing:
        folder = self._record_of(self._read(), root)
        editor_trusts = None if editors is None or root in self._temporary else root in editors
        answer = folder.answer if folder is not None else None
        if answer == "no" or editor_trusts is False or (answer != "yes" and editor_trusts is not True):
            return "untrusted"
        if folder is None:
            self._save(root, self._record("editor", root, self._contents(Path(root), None)))
            return "trusted"
        if folder.files is None:
            self._save(root, self._record(folder.answer, root, self._contents(Path(root), None)))
            return "trusted"
        if (folder.device, folder.inode) != _identity(root):
            return "untrusted"  # another folder at the same path
        contents = self._contents(Path(root), folder.files)
        names = {*contents, *folder.files}
        return (
            "changed" if any(_is_changed(contents.get(name), folder.files.get(name)) for name in names) else "trusted"
        )

    def _contents(self, root: Path, trusted_names: Collection[str] | None) -> Contents:
        """What the folder enables now. With `trusted_names`, deep folders are searched only where one of those lies:
        quick enough for every prompt."""
        pieces: dict[str, TrustedFile] = {}

        def take(path: Path, data: bytes) -> bool:
            pieces[_name(path, str(root))] = TrustedFile("memory", data)
            return True

        workspace = Workspace([root], Overlay(), private=self._private)
        names = list(_memory_names(workspace) if trusted_names is None else trusted_names)
        memory = MemoryFiles(workspace, None, self._allowed, covers=take)
        memory.base(trusted=True)
        deep = {(root / name).parent for name in names if PurePosixPath(name).name in NAMES and ".." not in name}
        memory.below(folder for folder in deep if folder != root)
        others: dict[str, FileKind] = {".amanu/config.toml": "rules"}
        for place in PLACES:
            others |= dict.fromkeys(find_files(workspace, root, place), place.kind)
        for name, kind in others.items():
            data = _read_data(workspace, name)
            if data is not None:
                pieces[name] = TrustedFile(kind, data)
        return pieces

    def _record(self, answer: Answer, root: str, contents: Contents) -> TrustRecord:
        try:
            self._texts.mkdir(mode=0o700, exist_ok=True)
            digests = {name: write_blob(self._texts, piece.data) for name, piece in contents.items()}
            return TrustRecord(
                answer, *_identity(root), {name: (contents[name].kind, digests[name]) for name in digests}
            )
        except OSError as error:
            raise storage_error(error, self._texts) from error

    def _compare(self, name: str, piece: TrustedFile | None, trusted_piece: tuple[FileKind, str] | None) -> TrustedItem:
        kind = piece.kind if piece is not None else trusted_piece[0] if trusted_piece is not None else "memory"
        if piece is not None and trusted_piece is not None and piece.sha256 == trusted_piece[1]:
            return TrustedItem(path=visible(name), kind=kind, state="same")
        old_data = b""
        if trusted_piece is not None:
            try:
                old_data = read_blob(self._texts, trusted_piece[1])
            except AmanuError:
                old_data = b"(the text that was trusted is no longer stored)\n"
        state = "new" if trusted_piece is None else "gone" if piece is None else "changed"
        return TrustedItem(
            path=visible(name), kind=kind, state=state, diff=_diff(name, old_data, piece.data if piece else b"")
        )

    # The file ---------------------------------------------------------------------------------------

    def _record_of(self, folders: Mapping[str, TrustRecord], root: str) -> TrustRecord | None:
        """The record of the folder: under its path, or under another spelling where the file system ignores case."""
        if root in self._temporary:
            return self._temporary[root]
        if root in folders:
            return folders[root]
        candidates = [folder for path, folder in folders.items() if path.casefold() == root.casefold()]
        identity = _identity(root) if candidates else None
        return next((folder for folder in candidates if (folder.device, folder.inode) == identity), None)

    def _save(self, root: str, folder: TrustRecord) -> None:
        folders = {**self._read(), root: folder}
        tree = {path: _as_json(folder) for path, folder in sorted(folders.items())}
        try:
            write_whole(self._file, json.dumps({"folders": tree}, indent=1).encode() + b"\n")
            in_use = (*folders.values(), *self._temporary.values())
            used = {digest for folder in in_use for _, digest in (folder.files or {}).values()}
            for path in self._texts.glob("[0-9a-f]*"):
                if path.name not in used:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, self._file.parent) from error

    def _read(self) -> dict[str, TrustRecord]:
        try:
            tree = json.loads(self._file.read_text(encoding="utf-8"))
            if isinstance(tree, list):  # versions that recorded only paths
                return {str(path): TrustRecord("yes") for path in cast("list[object]", tree)}
            return {path: _from_json(folder) for path, folder in tree["folders"].items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise AmanuError("storageError", f"{self._file} cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise AmanuError("storageError", f"{self._file} is damaged: {error}. Repair or delete it.") from error


def reviewed_changes(proposal: Proposal) -> list[tuple[Path, bytes, bytes]]:
    """For `TrustStore.on_reviewed_change`: (path, old content, new content) of the files all of whose applied hunks
    the user has reviewed."""
    changes: list[tuple[Path, bytes, bytes]] = []
    for file in proposal.files:
        applied = [hunk for hunk in file.hunks if hunk.state == "applied"]
        if not applied or not all(hunk.reviewed for hunk in applied) or file.change not in ("edit", "create"):
            continue
        if file.base_text is not None and len(file.base_text) <= MAX_BYTES:
            new_text = text_with(file, lambda hunk: hunk.state == "applied")
            changes.append((Path(file.path), file.base_text.encode(), new_text.encode()))
    return changes


def _is_changed(piece: TrustedFile | None, trusted_piece: tuple[FileKind, str] | None) -> bool:
    if piece is None:
        return trusted_piece is not None and trusted_piece[0] == "rules"
    return trusted_piece is None or piece.sha256 != trusted_piece[1]


def _needs_review(item: TrustedItem) -> bool:
    return item.state in ("new", "changed") or (item.state == "gone" and item.kind == "rules")


def _kind_of(name: str) -> FileKind | None:
    """The kind of a file of that name; None where the name does not tell, as for an imported file."""
    path = PurePosixPath(name)
    if path.name in NAMES:
        return "memory"
    if name == ".amanu/config.toml":
        return "rules"
    place = place_of(name)
    return None if place is None else place.kind


def _name(path: Path, root: str) -> str:
    return Path(os.path.relpath(os.path.realpath(path), root)).as_posix()


def _identity(root: str) -> tuple[int | None, int | None]:
    try:
        status = Path(root).stat()
    except OSError:
        return None, None
    return status.st_dev, status.st_ino


def _digest(root: str, contents: Contents) -> str:
    files = {name: (piece.kind, piece.sha256) for name, piece in sorted(contents.items())}
    return hashlib.sha256(json.dumps([root, *_identity(root), files]).encode()).hexdigest()


def _diff(name: str, old_data: bytes, new_data: bytes) -> str:
    """The unified diff with hidden characters made visible, cut at `MAX_DIFF_LINES`; "" when both are empty."""
    old_lines, new_lines = (visible(data.decode("utf-8", "replace")).splitlines() for data in (old_data, new_data))
    lines = list(unified_diff(old_lines, new_lines, f"a/{visible(name)}", f"b/{visible(name)}", lineterm=""))
    if len(lines) > MAX_DIFF_LINES:
        lines[MAX_DIFF_LINES:] = [f"({len(lines) - MAX_DIFF_LINES} more lines are not shown)"]
    return "".join(f"{line}\n" for line in lines)


def _memory_names(workspace: Workspace) -> Iterator[str]:
    """The names of all files that may be project memory, in any folder."""
    ends = time.monotonic() + SEARCH_SECONDS
    with contextlib.suppress(OSError, ToolError), workspace.guard.listing(workspace.roots[0]) as root:
        for name in walk(root):
            if _kind_of(name) == "memory":
                yield name
            if time.monotonic() > ends:
                return


def _read_data(workspace: Workspace, name: str) -> bytes | None:
    """The content of that file, links out of the root not followed; None when it is longer than Amanu reads."""
    if not os.path.lexists(workspace.roots[0] / name):
        return None
    try:
        with workspace.guard.file(workspace.resolve(name)) as handle, os.fdopen(os.dup(handle), "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ToolError):
        return None
    return data if len(data) <= MAX_BYTES else None


def _as_json(folder: TrustRecord) -> dict[str, Any]:
    files = folder.files and {name: [kind, digest] for name, (kind, digest) in sorted(folder.files.items())}
    return {"word": folder.answer, "device": folder.device, "inode": folder.inode, "files": files}


def _from_json(tree: Mapping[str, Any]) -> TrustRecord:
    files = tree["files"]
    # Older versions kept the settings of checkers too.
    trusted_files = (
        None if files is None else {name: (kind, sha) for name, (kind, sha) in files.items() if kind != "checker"}
    )
    return TrustRecord(tree["word"], tree["device"], tree["inode"], cast("Files | None", trusted_files))
