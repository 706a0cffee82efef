"""The layer of a session: its commands run in it, one after another, and what they change is read back.

Before a command, the session's view is laid in: unsaved text of open documents, and edits of the same step that are not
decided yet. After it, whatever the command changed is taken out again, except what git ignores, which the session's
later commands find.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from amanu.core.place import LOOK, Place
from amanu.core.tool import CallContext, Subject, SubjectFilter, ToolError
from amanu.proposals.proposals import Proposals
from amanu.proposals.rows import RowChange
from amanu.sandbox.layers.copying import copy_in, copy_paths
from amanu.sandbox.layers.layer import Layer, LayerError, explained
from amanu.sandbox.layers.redo import noted
from amanu.sandbox.layers.transfer import files_in, transfer
from amanu.sandbox.sandbox import Sandbox
from amanu.storage.file_store import Damaged, FileStore
from amanu.system.tasks import run_to_completion
from amanu.text.display import file_list, one_line
from amanu.tools.shell.discarded_layer import DiscardedLayer
from amanu.tools.shell.layer_changes import DROPPED
from amanu.tools.shell.layer_contents import drop, drop_folders, lay_in_emptied
from amanu.tools.shell.layered_run import Filled, LayeredRun, View, content
from amanu.tools.shell.row_changes import put_version
from amanu.tools.shell.taken_files import TakenFolder
from amanu.workspace.disk_changes import with_executable
from amanu.workspace.replacement import Identity
from amanu.workspace.text_file import FileText
from amanu.workspace.workspace import Workspace

_PLAIN = 0o644
_COPIED = 1 << 30
"""Bytes that are copied for a command in a layer of its own: a `node_modules` of 300 MB takes a second or two."""
_FAILED = "The command's private copy of the workspace failed"


class SessionLayer:
    """Of one session, or of one sub-agent. `proposals` and `workspace` are the session's."""

    def __init__(self, workspace: Workspace, proposals: Proposals, sandbox: Sandbox | None, store: FileStore) -> None:
        self._workspace = workspace
        self._proposals = proposals
        self._sandbox = sandbox
        self.store = store
        self._layer: Layer | None = None
        self._ignored: dict[Path, None] = {}
        """Paths in the layer that git ignores."""
        self._filled: dict[Path, Filled] = {}
        """Path → the drafted row that the layer has there."""
        self._touched: dict[Path, Identity] = {}
        """See `View.touched`."""
        self._origin: SessionLayer | None = None
        """The layer that this one begins as a copy of, if any."""
        self._too_large: list[Path] = []
        """What was too large to be copied from there."""
        self._lock = asyncio.Lock()
        self.unknown = ""
        """Why it could not be found out just now whether layers work; "" if it could."""

    def apart(self) -> "SessionLayer":
        """A separate layer, for a sub-agent or a background command. Its first command finds what a command in this
        layer would find at that time."""
        layer = SessionLayer(self._workspace, self._proposals, self._sandbox, self.store)
        layer._origin = self
        return layer

    @property
    def too_large_note(self) -> str:
        """What a copy of another layer lacks, for the model; "" for nothing."""
        return (
            f"Missing from the copy, because they are too large: {self._names(self._too_large)}."
            if self._too_large
            else ""
        )

    async def works(self) -> bool:
        """Whether commands can run in a layer here. Found out by trying, once; if that fails for lack of space,
        `unknown` says so, and it is tried again the next time."""
        self.unknown = ""
        try:
            return self._sandbox is not None and not await self._sandbox.layer_fault(self._roots())
        except LayerError as error:
            self.unknown = f"{_FAILED}: {error}"
            return False

    async def shows_more(self, call: CallContext) -> bool:
        """Whether a command of that call would find the layer different from the workspace."""
        begun = self if self._layer is not None or self._origin is None else self._origin
        return bool(
            begun._ignored
            or self._proposals.drafts.open_rows()
            or self._proposals.pending_paths(call)
            or await self._workspace.unsaved()
        )

    @property
    def built(self) -> list[Path]:
        """Ignored files and folders that commands have made, and that the workspace does not have. Blocking."""
        return _missing(self._ignored)

    @asynccontextmanager
    async def command(self, call: CallContext, place: Place = LOOK) -> AsyncGenerator["LayeredRun"]:
        """A context to run one command in, at that place; others wait. Raises `ToolError`."""
        async with self._lock:
            drafted = self._drafted() if place.finds == "session" else []
            try:
                layer = await self._ready()
                await asyncio.to_thread(self._drop_changed, layer)
                await asyncio.to_thread(self._fill, layer, self._filled, drafted)
                laid_in = await self._lay_in(layer, call, drafted) if place.finds == "session" else {}
                renames = self._renames() if drafted else []
                view = View(laid_in, drafted, renames, self._filled, self._touched, [*self._ignored], place)
                run = LayeredRun(layer, self._proposals, self.store, view, call)
                try:
                    yield run
                finally:
                    await run_to_completion(self._end(run))
            except (LayerError, OSError) as error:
                await run_to_completion(self._discard())
                raise ToolError(f"{_FAILED}: {explained(error)}") from None

    @asynccontextmanager
    async def discarded(self, call: CallContext, place: Place) -> AsyncGenerator[DiscardedLayer]:
        """A context to run one command in, like `command`, but in a layer of its own: later commands find nothing of
        what it changes. Raises `ToolError`."""
        layer: Layer | None = None
        try:
            layer = await asyncio.to_thread(self._create)
            there: list[Path] = []
            if place.finds == "session":
                drafted = self._drafted()
                async with self._lock:
                    await self._copy_to(layer)
                await asyncio.to_thread(self._fill, layer, {}, drafted)
                laid_in = await self._lay_in(layer, call, drafted)
                there = [*laid_in, *(row.path for row in drafted), *self._ignored]
            yield await asyncio.to_thread(DiscardedLayer, layer, there)
        except (LayerError, OSError) as error:
            raise ToolError(f"{_FAILED}: {explained(error)}") from None
        finally:
            if layer is not None:
                await run_to_completion(asyncio.to_thread(_remove, layer))

    def _drafted(self) -> list[RowChange]:
        """The drafted changes besides text, without those of repositories; a rename as its two parts."""
        rows = self._proposals.drafts.open_rows()
        return [part for row in rows if row.change.kind != "git" for part in row.change.parts]

    def _renames(self) -> list[RowChange]:
        return [row.change for row in self._proposals.drafts.open_rows() if row.change.new_path is not None]

    async def _copy_to(self, layer: Layer) -> list[Path]:
        """Copy the files in this layer that git ignores to another one. Returns the paths that are too large for that.
        The caller has the lock. Raises `LayerError`, `OSError`."""
        if self._layer is None and not self._origin:
            return []
        source, paths = await self._ready(), [*self._ignored]
        return await run_to_completion(asyncio.to_thread(copy_paths, source, layer, paths, _COPIED)) if paths else []

    def _drop_changed(self, layer: Layer) -> None:
        """Have the layer forget files that were the same in the workspace and have been changed there since. Raises
        `LayerError`, `OSError`. Blocks."""
        for path, identity in self._touched.items():
            found = path.lstat() if os.path.lexists(path) else None
            if found is None or (found.st_ino, found.st_ctime_ns) != identity:
                layer.drop(path)
        self._touched.clear()

    def _fill(self, layer: Layer, filled: dict[Path, Filled], drafted: Sequence[RowChange]) -> None:
        """Make the layer have what is drafted besides text, and note it in `filled`. Raises `LayerError`, `OSError`.
        Blocking."""
        wanted = {row.path: row for row in drafted if row.key[0] == "path" and not _is_removed_folder(row)}
        for path in [path for path in filled if path not in wanted or filled[path].digest != wanted[path].digest]:
            self._forget(layer, path, filled.pop(path))
        folder = TakenFolder(layer.folder)
        try:
            for path, row in wanted.items():
                if path not in filled:
                    tree = row.after.file_id if row.after is not None and row.is_tree else ""
                    filled[path] = Filled(row.digest, self._put(layer, row, folder), tree)
        except Damaged:
            raise LayerError("A file of the draft is missing from Amanu's store, or was changed there.") from None
        finally:
            folder.remove()

    def _forget(self, layer: Layer, path: Path, filled: Filled) -> None:
        """Have the layer forget what was put there for a drafted row."""
        if filled.tree:  # moved aside: to remove a hundred thousand files takes long
            root, name = layer.place(path)
            if os.path.lexists(root.upper / name):
                TakenFolder(layer.folder).take(root, name)
        elif filled.content is not None:
            drop(layer, [path])
            return
        drop_folders(layer, [path])

    def _put(self, layer: Layer, row: RowChange, folder: TakenFolder) -> tuple[int, int, int, int] | None:
        if row.after is None:
            layer.delete(row.path)
        elif row.is_tree:
            if not self.store.has(row.after.file_id):
                raise Damaged
            copy_in(layer, row.path, self.store.path(row.after.file_id))
        elif row.after.kind == "folder":
            layer.make_folder(row.path)
        else:
            stored = put_version(row.after, folder, self.store)
            layer.put(row.path, stored)
            root, name = layer.place(row.path)
            return content(root.upper / name)
        return None

    async def bring_home(self, paths: Sequence[Path], call: CallContext, begun: int | None) -> list[str]:
        """Bring ignored files and folders into the workspace (see `transfer`), except those that a rule denies or asks
        about. Returns sentences about those that were not brought, with the reasons."""
        async with self._lock:
            return [] if self._layer is None else await self._bring(self._layer, paths, begun, call.guarded)

    async def bring_built(self, guarded: SubjectFilter) -> list[str]:
        """Bring what commands have built into the workspace, where it has nothing yet; do nothing while a command runs.
        Returns notes, like `bring_home`."""
        if self._lock.locked():
            return []
        async with self._lock:
            built = await asyncio.to_thread(lambda: self.built)
            return [] if self._layer is None else await self._bring(self._layer, built, None, guarded)

    async def _bring(self, layer: Layer, paths: Sequence[Path], begun: int | None, guarded: SubjectFilter) -> list[str]:
        def write(path: Path) -> Subject:
            return Subject("write_file", "write", self._workspace.relative(path))

        def bring() -> list[str]:
            subjects = (write(path) for path in _ignored_files(layer, paths))
            names = {subject.text for subject in guarded(subjects)}
            kept = (
                [path for path in _ignored_files(layer, paths) if self._workspace.relative(path) in names]
                if names
                else []
            )
            notes, left, overtaken, dropped = _bring_home(layer, paths, begun, kept)
            if left:
                notes.append(
                    f"Not moved into the workspace, but kept in this session's private copy: {self._names(left)}. "
                    "A rule denies or asks about writing there, a link leads out of the workspace, or it is "
                    "nested too deep."
                )
            if overtaken:
                notes.append(
                    "Changed in the workspace while the command ran, so the command's version was not applied: "
                    f"{self._names(overtaken)}. Later commands see what is there now."
                )
            if dropped:
                notes.append(DROPPED.format(names=self._names(dropped)))
            return notes

        return await asyncio.to_thread(bring)

    def _names(self, paths: Iterable[Path]) -> str:
        return file_list([one_line(self._workspace.display_path(path)) for path in paths])

    async def close(self) -> None:
        async with self._lock:
            await self._discard()

    async def _discard(self) -> None:
        """Remove the layer; the next command gets a new one."""
        if self._layer is not None:
            await asyncio.to_thread(_remove, self._layer)
        self._layer = None
        self._ignored.clear()
        self._filled.clear()
        self._touched.clear()

    async def _end(self, run: LayeredRun) -> None:
        """Finish a command's run. If its changes were never read, they are dropped, except ignored files."""
        if run.changes is None:
            await run.read()
        assert run.changes is not None
        if not run.is_clean:
            await self._discard()
            return
        await asyncio.to_thread(run.taken.remove)
        self._ignored = await asyncio.to_thread(_there, run.layer, [*self._ignored, *run.changes.ignored])

    def _roots(self) -> list[Path]:
        return [self._workspace.guard.real(root) for root in self._workspace.roots]

    async def _ready(self) -> Layer:
        if self._layer is None:
            self._layer = await run_to_completion(self._begin())
        return self._layer

    async def _begin(self) -> Layer:
        """A new layer, or a copy of `_origin`'s."""
        self._layer = layer = await asyncio.to_thread(self._create)
        try:
            if self._origin is not None:
                async with self._origin._lock:
                    self._too_large = await self._origin._copy_to(layer)
                    self._ignored = {path: None for path in self._origin._ignored if path not in self._too_large}
        except BaseException:
            await self._discard()
            raise
        return layer

    def _create(self) -> Layer:
        """Blocking."""
        assert self._sandbox is not None
        return self._sandbox.create_layer(self._roots())

    async def _lay_in(
        self, layer: Layer, call: CallContext, drafted: Sequence[RowChange]
    ) -> dict[Path, FileText | None]:
        """Lay the session's view in. Returns what was laid in, by real path; None for a deletion."""
        laid_in: dict[Path, FileText | None] = {}
        taken = {row.path for row in drafted if row.key[0] == "path"}
        for file in await self._workspace.unsaved():
            if file.path not in taken:
                laid_in[file.path] = file
        for path in self._proposals.pending_paths(call):
            proposed = await self._proposals.text_for_command(call, path)
            laid_in[path] = proposed if proposed.exists else None
        for row in drafted:
            path = row.path
            if row.key[0] == "mode" and (file := laid_in.get(path) or await self._proposals.read_if_text(path)):
                laid_in[path] = replace(file, mode=with_executable(file.mode or _PLAIN, is_set=row.is_executable))
        real = {self._workspace.guard.real(path): file for path, file in laid_in.items()}
        laid = await asyncio.to_thread(_lay_in, layer, real)
        removed = [row.path for row in drafted if _is_removed_folder(row)]
        await asyncio.to_thread(lay_in_emptied, layer, sorted(removed, key=lambda path: -len(path.parts)))
        return laid


def _missing(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if not os.path.lexists(path)]


def _there(layer: Layer, paths: Iterable[Path]) -> dict[Path, None]:
    """Those that the layer has."""
    places = {path: layer.place(path) for path in dict.fromkeys(paths)}
    return {path: None for path, (root, name) in places.items() if os.path.lexists(root.upper / name)}


def _is_removed_folder(row: RowChange) -> bool:
    return row.kind == "deletion" and row.before is not None and row.before.kind == "folder"


def _lay_in(layer: Layer, files: dict[Path, FileText | None]) -> dict[Path, FileText | None]:
    """Returns what was laid in, without files whose encoding cannot hold their text."""
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
    """Remove it. The next daemon removes what cannot be removed now."""
    try:
        layer.remove()
    except (LayerError, OSError):
        layer.close()


def _ignored_files(layer: Layer, paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        root, name = layer.place(path)
        with contextlib.suppress(OSError, LayerError):
            yield from (root.path / each for each in files_in(root, name))


def _bring_home(
    layer: Layer, paths: Sequence[Path], begun: int | None, kept: Sequence[Path]
) -> tuple[list[str], list[Path], list[Path], list[Path]]:
    """Returns faults, what stays in the layer, what others have changed, and what nobody can keep."""
    faults: list[str] = []
    left: list[Path] = []
    overtaken: list[Path] = []
    dropped: list[Path] = []
    moved = [path for path in paths if begun is not None or not os.path.lexists(path)]
    if not moved:
        return [], [], [], []
    names = [layer.place(path)[1] for path in kept]
    try:
        places = [layer.place(path) for path in moved]
        with noted(layer.folder, places, begun=begun, kept=names):
            for path, (root, name) in zip(moved, places, strict=True):
                try:
                    found = transfer(root, name, begun, frozenset(names))
                    left += [root.path / each for each in found.kept]
                    overtaken += [root.path / each for each in found.overtaken]
                    dropped += [root.path / each for each in found.dropped]
                except (OSError, LayerError) as error:
                    faults.append(f"Not all of {path.name} was moved into the workspace: {explained(error)}")
    except (OSError, LayerError) as error:
        faults.append(f"Files ignored by git were not moved into the workspace: {explained(error)}")
    return faults, left, overtaken, dropped
