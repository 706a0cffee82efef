"""Which folders the user trusts, and what exactly they trusted in them.

Trust is a word about a *folder* and about *what it enables*: the files in it that Amanu takes as instructions. It is
kept under the folder's real path with device and inode, so that a folder put in its place, or one that merely says it
is the same (a `.git` file, a `commondir`), has nothing of it; and with the content of those files. Content that is new
or another makes the folder `changed`: not trusted, until the user has seen the difference and says yes again. What is
*gone* enables nothing any more and asks nothing, but for rules: they forbid.

    memory    AGENTS.md, CLAUDE.md, GEMINI.md, in every folder, and what they import (`context/memory_files.py`)
    rules     .amanu/config.toml
    command   .amanu/commands/*.md

What checkers read or run (pyproject.toml, eslint.config.js, node_modules) is held by the sandbox, and changes every
other day: a question about it would teach people to say yes. Trusting a folder trusts those, whatever they become.

Nothing is taken on the word of this look alone: who reads one of these files shows what was read to `covers`, and what
is not what the user trusted stays unread. So a file that turns up in some deep folder later, or is swapped between
look and use, counts for nothing.

An editor can have a say (`trustedRoots`, as VS Code's workspace trust). Its yes holds for the folder, and what was
there when it was first heard is kept as if the user had said so here; what changes later is asked about. Its no
holds over a yes given here, and a no given here over its yes: the narrower word wins. Each root of a session must be
trusted, each by itself: neither the folder above nor one below is meant.

    <config>/trust.json       the folders; a plain list of paths, as older versions wrote it, is understood
    <state>/trust/SHA256      the files' texts, for showing what changed
"""

import contextlib
import fnmatch
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

from amanu.context.memory_files import NAMES, MemoryFiles
from amanu.context.slash_commands import MAX_BYTES
from amanu.core.tool import SubjectFilter, ToolError
from amanu.storage.errors import storage_error
from amanu.storage.files import read_blob, write_blob, write_whole
from amanu.text.display import visible
from amanu.workspace.diff import compose, first_line
from amanu.workspace.ignore import walk
from amanu.workspace.overlay import Overlay
from amanu.workspace.text_file import split_lines
from amanu.workspace.workspace import Workspace
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal
from amanu_protocol.requests import TrustedItem, TrustGetResult

Standing = Literal["untrusted", "trusted", "changed"]
What = Literal["memory", "rules", "command"]
Word = Literal["yes", "no", "editor"]
"""What is kept of a folder: the user's word here; or that an editor's yes was heard, which counts only with it."""

LOOK_SECONDS = 3.0
"""For finding files in deep folders; what is not found in time is not trusted when it turns up."""
SHOWN_LINES = 200
"""Of the difference of one file."""
MOST_COMMANDS = 200

Files = Mapping[str, tuple[What, str]]
"""What each is and its SHA-256, by path relative to the root, with `/`; `../` where the repository begins above it."""
Contents = Mapping[str, "TrustedFile"]
"""By path like those."""


@dataclass(frozen=True)
class TrustedFile:
    """A file that trust enables, as it is."""

    kind: What
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class TrustRecord:
    """What is kept of one."""

    word: Word
    device: int | None = None
    """With `inode` None where an older version kept only the path."""
    inode: int | None = None
    files: "Files | None" = None
    """None where nobody looked yet."""


class TrustStore:
    """Of one user. Everything here blocks, and is safe in threads. `file` is trust.json, `texts` a folder of our own,
    `allowed` says what of a workspace is read without a question."""

    def __init__(self, file: Path, texts: Path, allowed: SubjectFilter, private: Sequence[Path] = ()) -> None:
        self._file = file
        self._texts = texts
        self._allowed = allowed
        self._private = private
        self._lock = threading.RLock()
        self._for_now: dict[str, TrustRecord] = {}

    def standing(self, roots: Sequence[str], declared: Collection[str] | None = None) -> Standing:
        """How a session of those roots stands, the least trusted root deciding. `declared` is what the editor says:
        the roots it trusts, or None when it has no say. Raises `AmanuError` (storageError)."""
        editors = None if declared is None else {os.path.realpath(path) for path in declared}
        with self._lock:
            standings = {self._standing(os.path.realpath(root), editors) for root in roots} or {"untrusted"}
        return next(standing for standing in ("untrusted", "changed", "trusted") if standing in standings)

    def covers(self, roots: Sequence[str], path: Path, data: bytes) -> bool:
        """Whether the user trusted that file with that content, by a root of theirs. Where it lies is said by its
        real path."""
        digest = hashlib.sha256(data).hexdigest()
        with self._lock:
            folders = self._read()
            for root in map(os.path.realpath, roots):
                folder = self._of(folders, root)
                if folder is None or folder.word == "no" or folder.files is None:
                    continue
                if folder.files.get(_name(path, root), ("", ""))[1] == digest:
                    return True
        return False

    def look(self, root: str, declared: Collection[str] | None = None) -> TrustGetResult:
        """What trusting that folder enables, against what was trusted before."""
        real = os.path.realpath(root)
        with self._lock:
            standing = self.standing([root], declared)
            folder = self._of(self._read(), real)
            contents = self._contents(Path(real), None)
            trusted_files: Files = folder.files if folder is not None and folder.files is not None else {}
            enables = [
                self._enabled(name, contents.get(name), trusted_files.get(name))
                for name in sorted({*contents, *trusted_files})
            ]
            if standing == "trusted" and any(_asks(item) for item in enables):
                standing = "changed"  # in a folder so deep that only this look saw it
            return TrustGetResult(state=standing, enables=enables, digest=_digest(real, contents))

    def set(self, root: str, trusted: bool, digest: str | None = None) -> None:
        """The user's word. With a yes what is there now counts as seen; `digest` is that of what they were shown:
        raises `AmanuError` (trustChanged) when it is not what is there."""
        real = os.path.realpath(root)
        with self._lock:
            self._for_now.pop(real, None)
            if not trusted:
                self._keep(real, TrustRecord("no"))
                return
            contents = self._contents(Path(real), None)
            if digest is not None and digest != _digest(real, contents):
                raise AmanuError(
                    "trustChanged",
                    f"What {real} enables has changed since it was shown.",
                    hint="Look at it again, then decide.",
                )
            self._keep(real, self._folder("yes", real, contents))

    def for_now(self, root: str) -> None:
        """The user trusts the folder as it is now for as long as this process lives; nothing is kept."""
        real = os.path.realpath(root)
        with self._lock:
            self._for_now[real] = self._folder("yes", real, self._contents(Path(real), None))

    def reviewed(self, roots: Sequence[str], path: Path, old_data: bytes, new_data: bytes) -> None:
        """The user has just decided that a file's content becomes another one, seeing the difference. If they
        trusted what it was (or there was nothing), they trust what it is."""
        with self._lock:
            for root in map(os.path.realpath, roots):
                folders = self._read()
                folder, name = self._of(folders, root), _name(path, root)
                if folder is None or folder.word == "no" or folder.files is None:
                    continue
                was = folder.files.get(name)
                kind, digest = was if was is not None else (_what(name), None)
                if kind is None or digest != (hashlib.sha256(old_data).hexdigest() if old_data else None):
                    continue
                pair: tuple[What, str] = (kind, write_blob(self._texts, new_data))
                files: Files = {**folder.files, name: pair}
                changed = TrustRecord(folder.word, folder.device, folder.inode, files)
                if root in self._for_now:
                    self._for_now[root] = changed
                else:
                    self._keep(root, changed)

    # One folder -------------------------------------------------------------------------------------

    def _standing(self, root: str, editors: Collection[str] | None) -> Standing:
        folder = self._of(self._read(), root)
        says = None if editors is None or root in self._for_now else root in editors
        word = folder.word if folder is not None else None
        if word == "no" or says is False or (word != "yes" and says is not True):
            return "untrusted"
        if folder is None:
            self._keep(root, self._folder("editor", root, self._contents(Path(root), None)))
            return "trusted"
        if folder.files is None:
            self._keep(root, self._folder(folder.word, root, self._contents(Path(root), None)))
            return "trusted"
        if (folder.device, folder.inode) != _identity(root):
            return "untrusted"  # another folder, at the same place
        contents = self._contents(Path(root), folder.files)
        return (
            "changed"
            if any(_differs(contents.get(name), folder.files.get(name)) for name in {*contents, *folder.files})
            else ("trusted")
        )

    def _contents(self, root: Path, trusted_names: Collection[str] | None) -> Contents:
        """What the folder enables now. With `known` names deep folders are only looked into where one of those is:
        fit for every prompt."""
        pieces: dict[str, TrustedFile] = {}

        def take(path: Path, data: bytes) -> bool:
            pieces[_name(path, str(root))] = TrustedFile("memory", data)
            return True

        workspace = Workspace([root], Overlay(), private=self._private)
        names = list(_deep(workspace) if trusted_names is None else trusted_names)
        memory = MemoryFiles(workspace, None, self._allowed, covers=take)
        memory.base(trusted=True)
        deep = {(root / name).parent for name in names if PurePosixPath(name).name in NAMES and ".." not in name}
        memory.below(folder for folder in deep if folder != root)
        others: dict[str, What] = {".amanu/config.toml": "rules"}
        others |= {f".amanu/commands/{name}": "command" for name in _listed(workspace, ".amanu/commands", "*.md")}
        for name, kind in others.items():
            data = _data(workspace, name)
            if data is not None:
                pieces[name] = TrustedFile(kind, data)
        return pieces

    def _folder(self, word: Word, root: str, contents: Contents) -> TrustRecord:
        try:
            self._texts.mkdir(mode=0o700, exist_ok=True)
            digests = {name: write_blob(self._texts, piece.data) for name, piece in contents.items()}
            return TrustRecord(word, *_identity(root), {name: (contents[name].kind, digests[name]) for name in digests})
        except OSError as error:
            raise storage_error(error, self._texts) from error

    def _enabled(self, name: str, piece: TrustedFile | None, trusted_piece: tuple[What, str] | None) -> TrustedItem:
        kind = piece.kind if piece is not None else trusted_piece[0] if trusted_piece is not None else "memory"
        if piece is not None and trusted_piece is not None and piece.sha256 == trusted_piece[1]:
            return TrustedItem(path=visible(name), kind=kind, state="same")
        old_data = b""
        if trusted_piece is not None:
            try:
                old_data = read_blob(self._texts, trusted_piece[1])
            except AmanuError:
                old_data = b"(what it was is not kept any more)\n"
        state = "new" if trusted_piece is None else "gone" if piece is None else "changed"
        return TrustedItem(
            path=visible(name), kind=kind, state=state, diff=_diff(name, old_data, piece.data if piece else b"")
        )

    # The file ---------------------------------------------------------------------------------------

    def _of(self, folders: Mapping[str, TrustRecord], root: str) -> TrustRecord | None:
        """What is kept of the folder: under its path, or, where case does not count, another spelling of that."""
        if root in self._for_now:
            return self._for_now[root]
        if root in folders:
            return folders[root]
        spelt = [folder for path, folder in folders.items() if path.casefold() == root.casefold()]
        identity = _identity(root) if spelt else None
        return next((folder for folder in spelt if (folder.device, folder.inode) == identity), None)

    def _keep(self, root: str, folder: TrustRecord) -> None:
        folders = {**self._read(), root: folder}
        tree = {path: _as_json(folder) for path, folder in sorted(folders.items())}
        try:
            write_whole(self._file, json.dumps({"folders": tree}, indent=1).encode() + b"\n")
            in_use = (*folders.values(), *self._for_now.values())
            used = {digest for folder in in_use for _, digest in (folder.files or {}).values()}
            for path in self._texts.glob("[0-9a-f]*"):
                if path.name not in used:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, self._file.parent) from error

    def _read(self) -> dict[str, TrustRecord]:
        try:
            tree = json.loads(self._file.read_text(encoding="utf-8"))
            if isinstance(tree, list):  # of versions that kept only paths
                return {str(path): TrustRecord("yes") for path in cast("list[object]", tree)}
            return {path: _folder_of(folder) for path, folder in tree["folders"].items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise AmanuError("storageError", f"{self._file} cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise AmanuError("storageError", f"{self._file} is damaged: {error}. Mend or delete it.") from error


def reviewed_changes(proposal: Proposal) -> list[tuple[Path, bytes, bytes]]:
    """For `TrustStore.reviewed`: files that trust may be about, all of whose applied hunks the user has seen."""
    changes: list[tuple[Path, bytes, bytes]] = []
    for file in proposal.files:
        applied = [hunk for hunk in file.hunks if hunk.state == "applied"]
        if not applied or not all(hunk.reviewed for hunk in applied) or file.change not in ("edit", "create"):
            continue
        if file.base_text is not None and len(file.base_text) <= MAX_BYTES:
            used = [(first_line(hunk), hunk.old_lines, hunk.new_text) for hunk in applied]
            new_text = compose(split_lines(file.base_text), used)
            changes.append((Path(file.path), file.base_text.encode(), new_text.encode()))
    return changes


def _differs(piece: TrustedFile | None, trusted_piece: tuple[What, str] | None) -> bool:
    if piece is None:
        return trusted_piece is not None and trusted_piece[0] == "rules"
    return trusted_piece is None or piece.sha256 != trusted_piece[1]


def _asks(item: TrustedItem) -> bool:
    return item.state in ("new", "changed") or (item.state == "gone" and item.kind == "rules")


def _what(name: str) -> What | None:
    """What a file of that name would be; None for one that is nothing by its name, as an import."""
    path = PurePosixPath(name)
    if path.name in NAMES:
        return "memory"
    if name == ".amanu/config.toml":
        return "rules"
    if path.parent == PurePosixPath(".amanu/commands") and path.suffix == ".md":
        return "command"
    return None


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


def _diff(name: str, old: bytes, new: bytes) -> str:
    """Unified, of what can be seen, and cut; "" when neither says anything."""
    old_lines, new_lines = (visible(data.decode("utf-8", "replace")).splitlines() for data in (old, new))
    lines = list(unified_diff(old_lines, new_lines, f"a/{visible(name)}", f"b/{visible(name)}", lineterm=""))
    if len(lines) > SHOWN_LINES:
        lines[SHOWN_LINES:] = [f"({len(lines) - SHOWN_LINES} more lines are not shown)"]
    return "".join(f"{line}\n" for line in lines)


def _deep(workspace: Workspace) -> Iterator[str]:
    """Names of files in all folders that may be memory."""
    ends = time.monotonic() + LOOK_SECONDS
    with contextlib.suppress(OSError, ToolError), workspace.guard.listing(workspace.roots[0]) as root:
        for name in walk(root):
            if _what(name) == "memory":
                yield name
            if time.monotonic() > ends:
                return


def _listed(workspace: Workspace, folder: str, *patterns: str) -> list[str]:
    """The names in that folder that a pattern fits; of each pattern the first `MOST_COMMANDS`. With every prompt: the
    folder is read once, and a root may hold thousands of files."""
    if not os.path.lexists(workspace.roots[0] / folder):
        return []  # as almost everywhere; the guard looks at much more
    with contextlib.suppress(OSError, ToolError), workspace.guard.listing(workspace.resolve(folder)) as handle:
        names = os.listdir(handle)  # noqa: PTH208 (of a handle)
        return [name for pattern in patterns for name in sorted(fnmatch.filter(names, pattern))[:MOST_COMMANDS]]
    return []


def _data(workspace: Workspace, name: str) -> bytes | None:
    """What is in that file, links out not followed; None for what is too long to be read by anyone."""
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
    return {"word": folder.word, "device": folder.device, "inode": folder.inode, "files": files}


def _folder_of(tree: Mapping[str, Any]) -> TrustRecord:
    files = tree["files"]
    # Older versions kept the settings of checkers too.
    trusted_files = (
        None if files is None else {name: (kind, sha) for name, (kind, sha) in files.items() if kind != "checker"}
    )
    return TrustRecord(tree["word"], tree["device"], tree["inode"], cast("Files | None", trusted_files))
