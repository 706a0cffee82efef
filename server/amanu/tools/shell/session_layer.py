"""The layer of a session: its commands run in it, one after another, and what they change is read back.

Before a command, the session's view is laid in: unsaved text of open documents, and edits of the same step that are not
decided yet. After it, whatever the command changed is taken out again, but for what git ignores, which the session's
later commands find.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex

from amanu.core.tool import CallContext, Subject, SubjectFilter, ToolError
from amanu.proposals.proposals import FileEdit, Proposals
from amanu.sandbox.layers.layer import Layer, LayerError, explained
from amanu.sandbox.layers.redo import noted
from amanu.sandbox.layers.transfer import set_executable, transfer, with_executable
from amanu.sandbox.sandbox import Sandbox
from amanu.system.tasks import run_to_completion
from amanu.text.display import one_line
from amanu.tools.shell.discarded_layer import DiscardedLayer
from amanu.tools.shell.held_files import Applied, HeldFile, HeldFolder, apply_held
from amanu.tools.shell.layer_changes import FoundChanges, LayerChanges, read_layer
from amanu.tools.shell.report import file_list
from amanu.workspace.text_file import FileText
from amanu.workspace.workspace import Workspace

_EXECUTABLE = 0o111
_PLAIN = 0o644
_TICK = 0.002
_ROOM = 1 << 20
"""Bytes that are free when a command that failed did so for want of room."""
_FAILED = "The command's private copy of the workspace failed"


class SessionLayer:
    """Of one session, or of one sub-agent. `proposals` and `workspace` are the session's."""

    def __init__(self, workspace: Workspace, proposals: Proposals, sandbox: Sandbox | None) -> None:
        self._workspace = workspace
        self._proposals = proposals
        self._sandbox = sandbox
        self._layer: Layer | None = None
        self._discarded: list[Layer] = []
        self._ignored: dict[Path, None] = {}
        """What git ignores and the layer has."""
        self._noted: set[Path] = set()
        """What is on record of `_drafted` and `_executable`."""
        self._drafted: dict[Path, HeldFile] = {}
        """What the layer has of the draft that no proposal shows."""
        self._executable: dict[Path, bool] = {}
        """Of drafted files and others: whether the draft has them executable."""
        self._folders: list[Path] = []
        """Empty folders of the draft."""
        self._lock = asyncio.Lock()
        self.unknown = ""
        """Why it could not be found out just now whether layers work; "" where it was."""

    def apart(self) -> "SessionLayer":
        """A layer of its own, with nothing in it yet but the executable bits of the draft."""
        layer = SessionLayer(self._workspace, self._proposals, self._sandbox)
        layer._executable = dict(self._executable)
        return layer

    async def works(self) -> bool:
        """Whether commands can run in a layer here. Found out by trying, once; where that fails for want of room,
        `unknown` says so, and it is tried again."""
        self.unknown = ""
        try:
            return self._sandbox is not None and not await self._sandbox.layer_fault(self._roots())
        except LayerError as error:
            self.unknown = f"{_FAILED}: {error}"
            return False

    async def shows_more(self, call: CallContext) -> bool:
        """Whether a command of that call finds something else in the layer than in the workspace."""
        return bool(
            self._ignored or self._drafted or self._proposals.pending_paths(call) or await self._workspace.unsaved()
        )

    @property
    def built(self) -> list[Path]:
        """Ignored files and folders that commands have made, and that the workspace does not have. Blocking."""
        return [path for path in self._ignored if not os.path.lexists(path)]

    @asynccontextmanager
    async def command(
        self, call: CallContext, *, as_saved: bool = False, draft: bool = False
    ) -> AsyncGenerator["LayeredRun"]:
        """A context to run one command in; others wait. `as_saved`: it finds what is saved and accepted, and nothing
        that is not. `draft`: what no proposal shows of its changes stays in the layer. Raises `ToolError`."""
        async with self._lock:
            try:
                layer = await self._ready()
                laid_in = {} if as_saved else await self._lay_in(layer, call)
                aside = await asyncio.to_thread(_take_out, layer, self._drafted) if as_saved else {}
                run = LayeredRun(
                    layer, self._proposals, View(laid_in, {} if as_saved else self._drafted, as_saved), call
                )
                run.drafts = draft
                try:
                    yield run
                finally:
                    if run.changes is None:  # it only read, or was cancelled: nothing of it stays but what is ignored
                        await asyncio.shield(run.read())
                    await self._keep(run, aside)
            except (LayerError, OSError) as error:
                await self._discard()
                raise ToolError(f"{_FAILED}: {explained(error)}") from None

    @asynccontextmanager
    async def discarded(self, call: CallContext, *, as_saved: bool) -> AsyncGenerator[DiscardedLayer]:
        """A context to run one command in, like `command`, but in a layer of its own: nothing that it changes is found
        by later ones. Raises `ToolError`."""
        layer: Layer | None = None
        try:
            layer = await asyncio.to_thread(self._create)
            laid_in = {} if as_saved else await self._lay_in(layer, call)
            yield await asyncio.to_thread(DiscardedLayer, layer, laid_in)
        except (LayerError, OSError) as error:
            raise ToolError(f"{_FAILED}: {explained(error)}") from None
        finally:
            if layer is not None:
                await run_to_completion(asyncio.to_thread(_remove, layer))

    async def bring_home(self, paths: Sequence[Path], call: CallContext, begun: int | None) -> list[str]:
        """Bring ignored files and folders into the workspace (see `transfer`), but for those that a rule denies.
        Returns the names of those that could not be brought, with why."""
        allowed = self._not_denied(paths, call.denied)
        async with self._lock:
            return [] if self._layer is None else await asyncio.to_thread(_bring_home, self._layer, allowed, begun)

    def _not_denied(self, paths: Iterable[Path], denied: SubjectFilter) -> list[Path]:
        paths = list(paths)
        names = {subject.text for subject in denied([subject for path in paths for subject in self._writes(path)])}
        return [path for path in paths if names.isdisjoint(subject.text for subject in self._writes(path))]

    @property
    def drafted(self) -> list[HeldFile]:
        """What the layer has of the draft that no proposal shows."""
        return list(self._drafted.values())

    async def note_drafted(self) -> None:
        """Have on record what the layer has of the draft: it is gone with this daemon."""
        now = {*self._drafted, *self._executable}
        await self._proposals.note_besides(now, self._noted - now)
        self._noted = now

    def lost(self, paths: Iterable[str]) -> list[Path]:
        """Those of the paths on record that the layer does not have any more."""
        return [path for path in map(Path, paths) if path not in self._drafted and path not in self._executable]

    async def end_draft(self, denied: SubjectFilter, *, accepted: bool) -> list[str]:
        """The draft is decided: bring what no proposal showed of it into the workspace, and what is ignored and new
        there, but for what a rule denies; or forget it. Returns what became of that, in sentences for the user and the
        model."""
        async with self._lock:
            drafted, self._drafted = self._drafted, {}
            executable, self._executable = self._executable, {}
            folders, self._folders = self._folders, []
            if accepted:
                await asyncio.to_thread(make_folders, self._not_denied(folders, denied))
            if self._layer is not None:
                await asyncio.to_thread(_drop_folders, self._layer, folders)
            executable = executable if accepted else {}
            if self._layer is None and (drafted or executable):
                self._drafted = drafted
                await self._ready()
                drafted, self._drafted = self._drafted, {}
            if self._layer is None or not (drafted or accepted):
                return []
            if not accepted:
                await asyncio.to_thread(_drop, self._layer, list(drafted))
                return [f"Not applied, because not all of the draft was accepted: {self._names(drafted)}."]
            allowed = self._not_denied(drafted, denied)
            if left := [path for path in drafted if path not in allowed]:
                await asyncio.to_thread(_drop, self._layer, left)
                drafted = {path: drafted[path] for path in allowed}
            applied = await asyncio.to_thread(_apply_drafted, self._layer, drafted, executable)
            faults = [f"Not applied, because a rule denies it: {self._names(left)}."] if left else []
            built = self._not_denied(self.built, denied)
            faults += await asyncio.to_thread(_bring_home, self._layer, built, None)
        return applied.notes(self._names, " with the draft") + faults

    def _names(self, paths: Iterable[Path]) -> str:
        return file_list([one_line(self._workspace.display_path(path)) for path in paths])

    def _writes(self, path: Path) -> list[Subject]:
        name = self._workspace.relative(path)
        return [Subject("write_file", "write", text) for text in (name, f"{name}/x")]

    async def close(self) -> None:
        async with self._lock:
            await self._discard()
            for layer in self._discarded:
                await asyncio.to_thread(_remove, layer)
            self._discarded.clear()

    async def _discard(self) -> None:
        """Use the layer no more; the next command gets a new one. What is held in it for a decision stays until
        `close`."""
        if self._layer is not None:
            self._discarded.append(self._layer)
            with contextlib.suppress(LayerError, OSError):
                await asyncio.to_thread(self._layer.clear)
        self._layer = None
        self._ignored.clear()
        self._drafted.clear()
        self._executable.clear()
        self._folders.clear()

    async def _keep(self, run: "LayeredRun", aside: Mapping[Path, HeldFile]) -> None:
        """Remember what is ignored and what is drafted. A layer that holds more than could be read is of no further
        use; what was drafted in it before goes into the next one."""
        before = {**self._drafted, **aside}
        if run.changes is not None:
            self._ignored |= dict.fromkeys(run.changes.ignored)
            known = {file.path: file for file in run.changes.drafted}
            # It replaces what the workspace had when it was first drafted.
            first = {path: replace(file, below=self._drafted.get(path, file).below) for path, file in known.items()}
            self._drafted = {**aside, **first}
            if run.drafts:
                self._executable = dict(run.changes.executable)
                self._folders = list(run.changes.folders)
        if run.is_clean and self._layer is not None:
            await asyncio.to_thread(_put_back, self._layer, aside.values())
        elif self._layer is None or not before:
            await self._discard()
        else:
            inside = {path: file for path, file in before.items() if path not in aside}
            saved = {**aside, **await asyncio.to_thread(_save, self._layer, inside)}
            executable = self._executable
            await self._discard()
            self._drafted, self._executable = saved, executable

    def _roots(self) -> list[Path]:
        return [self._workspace.guard.real(root) for root in self._workspace.roots]

    async def _ready(self) -> Layer:
        if self._layer is None:
            self._layer = await asyncio.to_thread(self._create)
            self._drafted = await asyncio.to_thread(_moved_to, self._layer, self._drafted)
        return self._layer

    def _create(self) -> Layer:
        """Blocking."""
        assert self._sandbox is not None
        return self._sandbox.create_layer(self._roots())

    async def _lay_in(self, layer: Layer, call: CallContext) -> dict[Path, FileText | None]:
        """Lay the session's view in. Returns what was laid in, by real path; None for a deletion."""
        laid_in: dict[Path, FileText | None] = {}
        for file in await self._workspace.unsaved():
            laid_in[file.path] = file
        for path in self._proposals.pending_paths(call):
            proposed = await self._proposals.text_for_command(call, path)
            laid_in[path] = proposed if proposed.exists else None
        for path, is_set in self._executable.items():
            file = laid_in.get(path) or await self._proposals.read_if_text(path)
            if file is not None:
                laid_in[path] = replace(file, mode=with_executable(file.mode or _PLAIN, is_set=is_set))
        real = {self._workspace.guard.real(path): file for path, file in laid_in.items()}
        return await asyncio.to_thread(_lay_in, layer, real)


@dataclass(frozen=True)
class View:
    """What a command finds in the layer."""

    laid_in: dict[Path, FileText | None]
    """None: it was deleted."""
    drafted: Mapping[Path, HeldFile]
    """What else is drafted; it is in the layer already."""
    as_saved: bool
    """Neither what is unsaved nor what is not decided."""


class LayeredRun:
    """One command in the layer."""

    def __init__(self, layer: Layer, proposals: Proposals, view: View, call: CallContext) -> None:
        self.folder = layer.folder
        self.changes: LayerChanges | None = None
        """What `read` returned."""
        self.is_clean = True
        """Whether nothing is left in the layer but what is ignored."""
        self._layer = layer
        self._proposals = proposals
        self.drafts = False
        """What no proposal shows of its changes stays in the layer, as part of the draft."""
        self._view = view
        self._laid_in = view.laid_in
        self._drafted = {
            path: None if file.stored is None else _content(file.root.upper / file.name)
            for path, file in view.drafted.items()
        }
        self._call = call
        self._begun = _tick()

    def lacks_room(self) -> bool:
        """Whether the disk with the layer is as good as full. Blocking."""
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize < _ROOM

    def forget(self) -> None:
        """Nobody reads what it changes; the layer is of no further use."""
        self.changes = LayerChanges(HeldFolder(self._layer.folder / "held" / token_hex(8)))
        self.is_clean = False

    async def read(self) -> LayerChanges:
        """What the command changed, once it has ended. All of it is taken out of the layer, but for what is ignored.
        Raises `LayerError`, `OSError`."""
        held = HeldFolder(self._layer.folder / "held" / token_hex(8))
        found = FoundChanges(held, self._begun)
        try:
            await asyncio.to_thread(read_layer, self._layer, self._laid_in, found)
            changes = await self._compared(found)
            shown = bool(changes.edits) or self._proposals.has_draft
            kept = found.folders if self.drafts else ()
            await asyncio.to_thread(_drop, self._layer, [path for path in found.paths if path not in kept])
            drafts = self.drafts and shown and not self._call.denied(map(self._write, changes.held))
            drafted = [file for file in changes.held if drafts or self._is_drafted(file)]
            await asyncio.to_thread(_put_back, self._layer, drafted)
            held = [file for file in changes.held if file not in drafted]
            self.changes = replace(changes, held=held, drafted=drafted)
        except BaseException:
            self.is_clean = False
            raise
        self.is_clean = found.is_complete
        return self.changes

    async def take_back(self) -> None:
        """What it changed does not count: take what no proposal shows out of the layer again, but for what replaced a
        file that was drafted before."""
        assert self.changes is not None
        kept = [file for file in self.changes.drafted if file.path in self._drafted]
        taken_back = [file.path for file in self.changes.drafted if file not in kept]
        self.changes, self.drafts = replace(self.changes, drafted=kept), False
        await asyncio.to_thread(_drop, self._layer, taken_back)
        await asyncio.to_thread(_drop_folders, self._layer, self.changes.folders)

    async def _base(self, path: Path) -> FileText:
        """What the command's version of the file is compared with."""
        if self._view.as_saved:
            return await self._proposals.text_without_edits(path)
        return await self._proposals.text_for_command(self._call, path)

    def _write(self, file: HeldFile) -> Subject:
        tool = "delete_file" if file.stored is None else "write_file"
        return Subject(tool, "write", self._proposals.relative(file.path))

    def _is_drafted(self, file: HeldFile) -> bool:
        """Whether it is as an earlier command has drafted it."""
        return file.path in self._drafted and self._drafted[file.path] == _content(file.stored)

    async def _compared(self, found: FoundChanges) -> LayerChanges:
        """With what the user sees now of the files of text."""
        edits: list[FileEdit] = []
        moved, held = [*found.conflicts], [*found.held]
        executable: dict[Path, bool] = {}
        refused = found.refused
        for path, new in found.texts.items():
            if self._view.as_saved and self._proposals.is_drafted(path):
                refused = refused or f"it changed {self._proposals.relative(path)}, of which a draft is open"
                continue
            try:
                base = await self._base(path)
            except ToolError:  # what it was is no text
                held.append(new.held())
                continue
            laid = self._laid_in.get(path)
            if path in self._laid_in and base.text != ("" if laid is None else laid.text):
                moved.append(path)
                continue
            if new.text is not None and base.exists and new.encoding != base.encoding:
                held.append(new.held())
                continue
            if new.text is not None and bool(new.mode & _EXECUTABLE) != bool((base.mode or 0) & _EXECUTABLE):
                executable[path] = bool(new.mode & _EXECUTABLE)
            if new.text != (base.text if base.exists or base.from_buffer else None):
                edits.append(FileEdit(base, new.text))
        return LayerChanges(
            found.folder,
            edits,
            held,
            executable,
            found.folders,
            found.emptied,
            found.ignored,
            moved,
            found.git,
            refused,
            self._begun,
        )


def _tick() -> int:
    """The time in nanoseconds as file systems note it: what changes from now on is noted as later than what was changed
    before."""
    clock = getattr(time, "CLOCK_REALTIME_COARSE", 5)  # Linux's number of it
    begun = time.clock_gettime_ns(clock)
    while (now := time.clock_gettime_ns(clock)) == begun:
        time.sleep(_TICK)
    return now


def _content(path: Path | None) -> tuple[int, int, int] | None:
    """Something that differs when a file of the layer comes to be another; None for a deletion."""
    if path is None:
        return None
    status = path.lstat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _take_out(layer: Layer, drafted: Mapping[Path, HeldFile]) -> dict[Path, HeldFile]:
    """Take what is drafted out of the layer for a while."""
    folder = HeldFolder(layer.folder / "held" / token_hex(8))
    aside: dict[Path, HeldFile] = {}
    with layer.locked():
        for path, file in drafted.items():
            stored = None if file.stored is None else folder.take(file.root, file.name)
            aside[path] = replace(file, stored=stored)
    _drop(layer, [path for path, file in drafted.items() if file.stored is None])
    return aside


def make_folders(folders: Sequence[Path]) -> None:
    """Make them in the workspace. Blocking."""
    for folder in folders:
        above = next((parent for parent in folder.parents if parent.exists()), folder)
        if os.path.realpath(above) == str(above):
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)


def _save(layer: Layer, drafted: Mapping[Path, HeldFile]) -> dict[Path, HeldFile]:
    """Take what is drafted out of a layer that is given up: what is still there of it."""
    saved: dict[Path, HeldFile] = {}
    for path, file in drafted.items():
        with contextlib.suppress(OSError, LayerError):
            saved |= _take_out(layer, {path: file})
    return saved


def _moved_to(layer: Layer, drafted: Mapping[Path, HeldFile]) -> dict[Path, HeldFile]:
    """Put what is drafted into a new layer."""
    moved: dict[Path, HeldFile] = {}
    for path, file in drafted.items():
        root, name = layer.place(path)
        moved[path] = replace(file, root=root, name=name)
    _put_back(layer, moved.values())
    return moved


def _put_back(layer: Layer, files: Iterable[HeldFile]) -> None:
    """Put them into the layer, where the next command finds them."""
    for file in files:
        if file.stored is None:
            layer.delete(file.path)
        else:
            layer.put(file.path, file.stored)


def _apply_drafted(layer: Layer, drafted: Mapping[Path, HeldFile], executable: Mapping[Path, bool]) -> Applied:
    """Bring them into the workspace."""
    names = HeldFolder(layer.folder / "held" / token_hex(8))
    try:
        files = [(file, names.batch([file])) for file in _take_out(layer, drafted).values()]
        with noted(layer.folder, [batch for _, batch in files], executable=executable):
            set_executable(layer, executable)
            return apply_held(files)
    except (OSError, LayerError) as error:
        return Applied(failed=list(drafted.values()), fault=explained(error))


def _lay_in(layer: Layer, files: dict[Path, FileText | None]) -> dict[Path, FileText | None]:
    """Returns what was laid in: not what its encoding cannot hold."""
    laid_in: dict[Path, FileText | None] = {}
    for path, file in files.items():
        if file is None:
            layer.delete(path)
        else:
            try:
                data = file.encode(file.text)
            except ToolError:
                continue
            layer.write(path, data, file.mode or _PLAIN)
        laid_in[path] = file
    return laid_in


def _remove(layer: Layer) -> None:
    """What cannot be removed, the next daemon removes."""
    with contextlib.suppress(LayerError, OSError):
        layer.remove()


def _drop(layer: Layer, paths: Sequence[Path]) -> None:
    """Forget what the layer has there: files before the folders they are in, which go when nothing of them is left."""
    for path in sorted(dict.fromkeys(paths), key=lambda path: -len(path.parts)):
        root, name = layer.place(path)
        upper = root.upper / name
        if upper.is_dir() and not upper.is_symlink():
            with contextlib.suppress(OSError):
                upper.rmdir()
        else:
            layer.drop(path)


def _drop_folders(layer: Layer, folders: Sequence[Path]) -> None:
    """Forget folders with nothing in them, and those above that were made for them."""
    above = [parent for folder in folders for parent in folder.parents if not os.path.lexists(parent)]
    _drop(layer, [*folders, *above])


def _bring_home(layer: Layer, paths: Sequence[Path], begun: int | None) -> list[str]:
    if not paths:
        return []
    faults: list[str] = []
    moved = [path for path in paths if begun is not None or not os.path.lexists(path)]
    try:
        places = [layer.place(path) for path in moved]
        with noted(layer.folder, ignored=places, begun=begun):
            for path, (root, name) in zip(moved, places, strict=True):
                try:
                    transfer(root, name, begun)
                except (OSError, LayerError) as error:
                    faults.append(f"Not all of {path.name} was moved into the workspace: {explained(error)}")
    except (OSError, LayerError) as error:
        faults.append(f"Files ignored by git were not moved into the workspace: {explained(error)}")
    return faults
