"""The layer of a session: its commands run in it, one after another, and what they change is read back.

Before a command, the session's view is laid in: unsaved text of open documents, and edits of the same step that are not
decided yet. After it, whatever the command changed is taken out again, but for what git ignores, which the session's
later commands find.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex

from amanu.core.tool import CallContext, Subject, ToolError
from amanu.proposals.proposals import FileEdit, Proposals
from amanu.sandbox.layers.apply import noted
from amanu.sandbox.layers.layer import Layer, LayerError, explained
from amanu.sandbox.layers.transfer import transfer
from amanu.sandbox.sandbox import Sandbox
from amanu.tools.shell.held_files import HeldFolder
from amanu.tools.shell.layer_changes import FoundChanges, LayerChanges, read_layer
from amanu.workspace.text_file import FileText
from amanu.workspace.workspace import Workspace

_EXECUTABLE = 0o111
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
        self._lock = asyncio.Lock()

    async def works(self, *, only_reads: bool) -> bool:
        """Whether commands can run in a layer here. Found out by trying, once. Raises `ToolError` when that cannot be
        known at the moment and the command does not only read."""
        if self._sandbox is None:
            return False
        try:
            return not await self._sandbox.layer_fault(self._roots())
        except LayerError as error:
            if only_reads:
                return False
            raise ToolError(f"{_FAILED}: {error}") from None

    async def shows_more(self, call: CallContext) -> bool:
        """Whether a command of that call finds something else in the layer than in the workspace."""
        return bool(self._ignored or self._proposals.pending_paths(call) or await self._workspace.unsaved())

    @property
    def built(self) -> list[Path]:
        """Ignored files and folders that commands have made, and that the workspace does not have. Blocking."""
        return [path for path in self._ignored if not os.path.lexists(path)]

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
                    if run.changes is None:  # it only read, or was cancelled: nothing of it stays but what is ignored
                        await asyncio.shield(run.read())
                    await self._keep(run)
            except (LayerError, OSError) as error:
                await self._discard()
                raise ToolError(f"{_FAILED}: {explained(error)}") from None

    async def bring_home(self, paths: Sequence[Path], call: CallContext, begun: int | None) -> list[str]:
        """Bring ignored files and folders into the workspace (see `transfer`), but for those that a rule denies.
        Returns the names of those that could not be brought, with why."""
        denied = {
            subject.text for subject in call.denied([subject for path in paths for subject in self._writes(path)])
        }
        allowed = [path for path in paths if not denied & {subject.text for subject in self._writes(path)}]
        async with self._lock:
            return [] if self._layer is None else await asyncio.to_thread(_bring_home, self._layer, allowed, begun)

    def _writes(self, path: Path) -> list[Subject]:
        name = self._workspace.relative(path)
        return [Subject("write_file", "write", text) for text in (name, f"{name}/x")]

    async def close(self) -> None:
        async with self._lock:
            await self._discard()
            for layer in self._discarded:
                with contextlib.suppress(LayerError, OSError):
                    await asyncio.to_thread(layer.remove)
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

    async def _keep(self, run: "LayeredRun") -> None:
        """Remember what is ignored. A layer that holds more than could be read is of no further use."""
        if run.changes is not None:
            self._ignored |= dict.fromkeys(run.changes.ignored)
        if not run.is_clean:
            await self._discard()

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
        return await asyncio.to_thread(_lay_in, layer, real)


class LayeredRun:
    """One command in the layer."""

    def __init__(
        self, layer: Layer, proposals: Proposals, laid_in: dict[Path, FileText | None], call: CallContext
    ) -> None:
        self.folder = layer.folder
        self.changes: LayerChanges | None = None
        """What `read` returned."""
        self.is_clean = True
        """Whether nothing is left in the layer but what is ignored."""
        self._layer = layer
        self._proposals = proposals
        self._laid_in = laid_in
        self._call = call
        self._begun = _tick()

    def lacks_room(self) -> bool:
        """Whether the disk with the layer is as good as full. Blocking."""
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize < _ROOM

    async def read(self) -> LayerChanges:
        """What the command changed, once it has ended. All of it is taken out of the layer, but for what is ignored.
        Raises `LayerError`, `OSError`."""
        held = HeldFolder(self._layer.folder / "held" / token_hex(8))
        found = FoundChanges(held, self._begun)
        try:
            await asyncio.to_thread(read_layer, self._layer, self._laid_in, found)
            self.changes = await self._compared(found)
            await asyncio.to_thread(_drop, self._layer, found.paths)
        except BaseException:
            self.is_clean = False
            raise
        self.is_clean = found.is_complete
        return self.changes

    async def _compared(self, found: FoundChanges) -> LayerChanges:
        """With what the user sees now of the files of text."""
        edits: list[FileEdit] = []
        moved, held = [*found.conflicts], [*found.held]
        executable: dict[Path, bool] = {}
        for path, new in found.texts.items():
            try:
                base = await self._proposals.text(self._call, path)
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
            found.refused,
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
            layer.write(path, data, file.mode or 0o644)
        laid_in[path] = file
    return laid_in


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
