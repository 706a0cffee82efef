"""The layer of a session: its commands run in it, one after another, and what they change is read back.

Before a command, the session's view is laid in: unsaved text of open documents, and edits of the same step that are not
decided yet. After it, whatever the command changed is taken out again: files that git ignores stay, for the session's
later commands; of the rest, text becomes edits for a proposal, and anything else is held beside the layer.
"""

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from amanu.core import protected_paths as protected
from amanu.core.tool import CallContext, ToolError
from amanu.proposals.proposals import FileEdit, Proposals
from amanu.sandbox.layers.changes import Change, changed_link, opened_change, read_changes
from amanu.sandbox.layers.layer import Layer, LayerError, LayerRoot
from amanu.sandbox.layers.transfer import transfer
from amanu.sandbox.sandbox import Sandbox
from amanu.workspace.ignore import IgnoredPaths
from amanu.workspace.text_file import MAX_FILE, FileText, decode
from amanu.workspace.workspace import Workspace

MAX_CHANGES = 1000
"""Changed paths of one command; nobody reviews more."""
_EXECUTABLE = 0o111
_TICK = 0.002


@dataclass(frozen=True)
class HeldFile:
    """A changed path that no proposal can show: a binary file, a link, a deletion of one."""

    path: Path
    what: str
    """For the user: "binary, 4,096 bytes", "link to ../x", "deleted"."""
    below: tuple[int, int] | None
    """Inode and ctime in nanoseconds of what the workspace had there; None for nothing."""


@dataclass
class GitChanges:
    """What it changed of git's own files, which come home all or not at all."""

    files: list[HeldFile] = field(default_factory=list["HeldFile"])
    messages: list[str] = field(default_factory=list[str])
    """What git noted of it: "3f2a41c commit: Strip prices"."""
    refused: Path | None = None
    """A file that does not come home from a layer: a setting, a hook."""

    @property
    def is_open(self) -> bool:
        """Whether more was changed than what is staged."""
        return any(_in_git(file.path) not in ("index", "objects") for file in self.files)


@dataclass(frozen=True)
class LayerChanges:
    """What one command changed."""

    edits: Sequence[FileEdit] = ()
    held: Sequence[HeldFile] = ()
    modes: dict[Path, int] = field(default_factory=dict[Path, int])
    """Files whose executable bits it changed → the permission bits."""
    folders: Sequence[Path] = ()
    """New folders with nothing in them."""
    ignored: Sequence[Path] = ()
    """Topmost ignored files and folders in which something changed."""
    moved: Sequence[Path] = ()
    """Changed in the workspace as well meanwhile: the command's version is not taken."""
    git: "GitChanges" = field(default_factory=lambda: GitChanges())
    too_many: bool = False

    @property
    def is_open(self) -> bool:
        """Whether there is something to decide. What was only staged is no decision of its own."""
        return bool(self.edits or self.held or self.git.is_open)


class SessionLayer:
    """Of one session. `proposals` and `workspace` are the session's."""

    def __init__(self, workspace: Workspace, proposals: Proposals, sandbox: Sandbox | None) -> None:
        self._workspace = workspace
        self._proposals = proposals
        self._sandbox = sandbox
        self._layer: Layer | None = None
        self._ignored: dict[Path, None] = {}
        """What git ignores and the layer has."""
        self._lock = asyncio.Lock()

    async def works(self) -> bool:
        """Whether commands can run in a layer here. Found out by trying, once."""
        return self._sandbox is not None and not await self._sandbox.layer_fault(self._roots())

    async def shows_more(self, call: CallContext) -> bool:
        """Whether a command of that call finds something else in the layer than in the workspace."""
        return bool(self._ignored or self._proposals.pending_paths(call) or await self._workspace.unsaved())

    @asynccontextmanager
    async def command(self, call: CallContext, *, as_saved: bool = False) -> AsyncGenerator["LayeredRun"]:
        """A context to run one command in; others wait. `as_saved`: it finds what is saved and accepted, and nothing
        that is not. Raises `ToolError`."""
        async with self._lock:
            try:
                layer = await self._ready()
                laid_in = {} if as_saved else await self._lay_in(layer, call)
                run = LayeredRun(layer, self._proposals, laid_in, call)
                try:
                    yield run
                finally:
                    changes = run.changes  # none: it only read, or was cancelled
                    changes = await asyncio.shield(run.read()) if changes is None else changes
                    self._ignored |= dict.fromkeys(changes.ignored)
            except (LayerError, OSError) as error:
                raise ToolError(f"The command's private copy of the workspace failed: {error}") from None

    async def bring_home(self, paths: Sequence[Path]) -> list[str]:
        """Bring what the layer has at those paths into the workspace. Returns what could not be brought, in words."""
        async with self._lock:
            for path in paths:
                self._ignored.pop(path, None)
            return [] if self._layer is None else await asyncio.to_thread(_bring_home, self._layer, paths)

    async def bring_ignored_home(self) -> list[str]:
        """The same for all that git ignores: a command that works on the workspace finds what earlier ones built."""
        return await self.bring_home([*self._ignored])

    async def bring_git_home(self, git: GitChanges) -> str:
        """The same for git's own files: all or none. Returns why it could not be, as a sentence; "" for done."""
        async with self._lock:
            return "" if self._layer is None else await asyncio.to_thread(_bring_git_home, self._layer, git)

    async def drop(self, paths: Sequence[Path]) -> None:
        """Forget what the layer has at those paths."""
        async with self._lock:
            if self._layer is not None:
                await asyncio.to_thread(_drop, self._layer, paths)

    async def close(self) -> None:
        async with self._lock:
            layer, self._layer = self._layer, None
            if layer is not None:
                with contextlib.suppress(LayerError, OSError):
                    await asyncio.to_thread(layer.remove)

    def _roots(self) -> list[Path]:
        return [self._workspace.guard.real(root) for root in self._workspace.roots]

    async def _ready(self) -> Layer:
        if self._layer is None:
            assert self._sandbox is not None
            self._layer = await asyncio.to_thread(self._sandbox.create_layer, self._roots())
        return self._layer

    async def _lay_in(self, layer: Layer, call: CallContext) -> dict[Path, FileText | None]:
        """Lay the session's view in. Returns what was laid in, by real path; None for a deletion."""
        laid_in: dict[Path, FileText | None] = {}
        for file in await self._workspace.unsaved():
            laid_in[file.path] = file
        for path in self._proposals.pending_paths(call):
            proposed = await self._proposals.text(call, path)
            laid_in[path] = proposed if proposed.exists else None
        real = {self._workspace.guard.real(path): file for path, file in laid_in.items()}
        await asyncio.to_thread(_lay_in, layer, real)
        return real


class LayeredRun:
    """One command in the layer."""

    def __init__(
        self, layer: Layer, proposals: Proposals, laid_in: dict[Path, FileText | None], call: CallContext
    ) -> None:
        self.folder = layer.folder
        self.changes: LayerChanges | None = None
        """What `read` returned."""
        self._layer = layer
        self._proposals = proposals
        self._laid_in = laid_in
        self._call = call
        self._begun = _tick()

    async def read(self) -> LayerChanges:
        """What the command changed, once it has ended; taken out of the layer, but for what is ignored and what is
        held: that is the caller's to bring home or to drop. Raises `LayerError`, `OSError`."""
        found = await asyncio.to_thread(_read, self._layer, self._laid_in, self._begun)
        self.changes = await self._with_edits(found)
        return self.changes

    async def _with_edits(self, found: "_Found") -> LayerChanges:
        edits: list[FileEdit] = []
        moved = [*found.moved]
        held = [*found.held]
        modes = {**found.modes}
        for path, new in found.texts.items():
            try:
                base = await self._proposals.text(self._call, path)
            except ToolError:  # what it was is no text
                held.append(HeldFile(path, new.what, new.below))
                continue
            laid = self._laid_in.get(path)
            if path in self._laid_in and base.text != ("" if laid is None else laid.text):
                moved.append(path)
            elif new.text is not None and base.exists and new.encoding != base.encoding:
                held.append(HeldFile(path, new.what, new.below))
            elif (new.text if new.text is not None else None) == (base.text if base.exists else None):
                if new.text is not None and new.mode != base.mode:
                    modes[path] = new.mode
            else:
                edits.append(FileEdit(base, new.text))
                if new.text is not None and new.mode & _EXECUTABLE != (base.mode or 0) & _EXECUTABLE:
                    modes[path] = new.mode
        keep = {file.path for file in (*held, *found.git.files)}
        await asyncio.to_thread(_drop, self._layer, [path for path in found.paths if path not in keep])
        return LayerChanges(edits, held, modes, found.folders, found.ignored, moved, found.git, found.too_many)


@dataclass(frozen=True)
class _NewText:
    text: str | None
    """None: deleted."""
    encoding: str
    mode: int
    what: str
    below: tuple[int, int] | None


@dataclass
class _Found:
    texts: dict[Path, _NewText] = field(default_factory=dict[Path, _NewText])
    held: list[HeldFile] = field(default_factory=list[HeldFile])
    modes: dict[Path, int] = field(default_factory=dict[Path, int])
    folders: list[Path] = field(default_factory=list[Path])
    ignored: list[Path] = field(default_factory=list[Path])
    moved: list[Path] = field(default_factory=list[Path])
    paths: list[Path] = field(default_factory=list[Path])
    """All that is to be taken out of the layer."""
    git: GitChanges = field(default_factory=GitChanges)
    too_many: bool = False


def _tick() -> int:
    """The time in nanoseconds as file systems note it: what changes from now on is noted as later than what was changed
    before."""
    clock = getattr(time, "CLOCK_REALTIME_COARSE", 5)  # Linux's number of it
    begun = time.clock_gettime_ns(clock)
    while (now := time.clock_gettime_ns(clock)) == begun:
        time.sleep(_TICK)
    return now


def _lay_in(layer: Layer, files: dict[Path, FileText | None]) -> None:
    for path, file in files.items():
        if file is None:
            layer.delete(path)
        else:
            layer.write(path, file.encode(file.text), file.mode or 0o644)


def _read(layer: Layer, laid_in: dict[Path, FileText | None], begun: int) -> _Found:
    found = _Found()
    with layer.locked():
        for root in layer.roots:
            _read_root(root, laid_in, begun, found)
    found.paths += laid_in
    return found


def _read_root(root: LayerRoot, laid_in: dict[Path, FileText | None], begun: int, found: _Found) -> None:
    with root.opened() as opened:
        assert opened.below is not None
        ignored = IgnoredPaths(opened.below)

        def prune(path: str, is_folder: bool) -> bool:
            folder, _, name = path.rpartition("/")
            if path == ".git/objects":
                return True  # new ones come home with whatever names them
            guarded = protected.is_protected(name, folder.rpartition("/")[2]) or protected.is_secret(path)
            return not (guarded or path.startswith(".git/")) and ignored.hides(path, is_folder)

        changes = read_changes(root, limit=MAX_CHANGES, prune=prune)
    found.too_many = found.too_many or not changes.complete
    filled = {change.path.rpartition("/")[0] for change in changes.found}
    for change in changes.found:
        path = root.path / change.path
        if change.path.startswith(".git/") or "/.git/" in change.path:
            found.paths.append(path)
            _read_git(root, path, change, begun, found)
            continue
        if change.kind == "pruned":
            found.ignored.append(path)
            continue
        if change.path == ".":
            continue
        found.paths.append(path)
        if change.path.endswith("/.git") or (change.path == ".git" and change.kind != "folder"):
            found.git.refused = path
        elif change.path == ".git":
            found.git.refused = path if change.below is None else found.git.refused
        elif change.below is not None and change.below.st_ctime_ns >= begun and path not in laid_in:
            found.moved.append(path)
        elif change.kind == "folder":
            if change.below is None and change.path not in filled:
                found.folders.append(path)
        elif change.kind == "deleted":
            _read_deletion(path, change, found)
        elif change.kind == "symlink":
            found.held.append(HeldFile(path, f"link to {changed_link(root, change)}", _identity(change)))
        elif change.kind == "file":
            _read_file(root, path, change, found)


_GIT_FILES = frozenset(
    {
        *("index", "objects", "refs", "logs", "packed-refs", "HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG"),
        *("MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"),
        *("rebase-merge", "rebase-apply", "MERGE_AUTOSTASH"),
    }
)
"""What of git's own may come home: never settings, hooks, other work trees and submodules, which run programs."""
_GIT_ORDER = ("objects", "logs", "packed-refs", "refs")
"""What is named comes home before what names it."""


def _in_git(path: Path) -> str:
    """The part of git's folder that the path is in: "refs"."""
    parts = path.parts
    return parts[len(parts) - parts[::-1].index(".git")]


def _read_git(root: LayerRoot, path: Path, change: Change, begun: int, found: _Found) -> None:
    part = _in_git(path)
    is_ours = change.path.startswith(".git/") and part in _GIT_FILES and not path.name.endswith(".lock")
    if change.kind == "folder":
        return
    if not is_ours or (change.below is not None and change.below.st_ctime_ns >= begun and part != "objects"):
        found.git.refused = path
        return
    found.git.files.append(HeldFile(path, change.kind, _identity(change)))
    if change.path == ".git/logs/HEAD" and change.kind == "file":
        with opened_change(root, change) as handle:
            os.lseek(handle, change.below.st_size if change.below is not None else 0, os.SEEK_SET)
            lines = _all(handle).decode("utf-8", "replace").splitlines()
        for line in lines:
            commits, _, message = line.partition("\t")
            found.git.messages.append(f"{commits.split()[1][:10] if commits.count(' ') else ''} {message}".strip())


def _bring_git_home(layer: Layer, git: GitChanges) -> str:
    if not git.files:
        return ""
    root, _ = layer.place(git.files[0].path)
    lock = root.path / ".git" / "index.lock"
    try:
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return f"Git is busy in the workspace ({error.strerror}), so nothing of git's was taken over. Run it again."
    os.close(handle)
    try:
        if any(not is_unchanged(file) for file in git.files if _in_git(file.path) != "objects"):
            return "The repository has changed meanwhile, so nothing of git's was taken over. Run it again."
        for file in sorted(git.files, key=lambda file: _rank(_in_git(file.path))):
            transfer(*layer.place(file.path))
    except (OSError, LayerError) as error:
        return f"Git's files could not be taken over: {error}"
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()
    return ""


def _rank(part: str) -> int:
    return len(_GIT_ORDER) + (part == "index") if part not in _GIT_ORDER else _GIT_ORDER.index(part)


def is_unchanged(file: HeldFile) -> bool:
    """Whether the workspace has there what it had. Blocking."""
    try:
        status = file.path.lstat()
    except OSError:
        return file.below is None
    return file.below == (status.st_ino, status.st_ctime_ns)


def _read_file(root: LayerRoot, path: Path, change: Change, found: _Found) -> None:
    below = change.below
    with opened_change(root, change) as handle:
        size = os.fstat(handle).st_size
        data = b"" if size > MAX_FILE else _all(handle)
    what = f"{'new ' if below is None else ''}binary file, {size:,} bytes"
    replaces = below is not None and not stat.S_ISREG(below.st_mode)
    try:
        if size > MAX_FILE or replaces:
            raise ToolError("")
        text, encoding = decode(data, path)
    except ToolError:
        found.held.append(HeldFile(path, what, _identity(change)))
        return
    found.texts[path] = _NewText(text, encoding, change.mode, what, _identity(change))


def _read_deletion(path: Path, change: Change, found: _Found) -> None:
    assert change.below is not None
    if stat.S_ISREG(change.below.st_mode):
        found.texts[path] = _NewText(None, "", 0, "deleted", _identity(change))
        return
    found.held.append(HeldFile(path, "deleted", _identity(change)))


def _identity(change: Change) -> tuple[int, int] | None:
    return None if change.below is None else (change.below.st_ino, change.below.st_ctime_ns)


def _all(handle: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(handle, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _drop(layer: Layer, paths: Sequence[Path]) -> None:
    """Files before the folders they are in: a folder goes when nothing of it is left."""
    for path in sorted(paths, key=lambda path: -len(path.parts)):
        root, name = layer.place(path)
        upper = root.upper / name
        if upper.is_dir() and not upper.is_symlink():
            with contextlib.suppress(OSError):
                upper.rmdir()
            continue
        with contextlib.suppress(OSError):
            layer.drop(path)


def _bring_home(layer: Layer, paths: Sequence[Path]) -> list[str]:
    faults: list[str] = []
    for path in paths:
        try:
            transfer(*layer.place(path))
        except (OSError, LayerError) as error:
            faults.append(f"{path.name}: {error}")
    return faults
