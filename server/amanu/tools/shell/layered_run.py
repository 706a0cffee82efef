"""One command in a session's layer: what it finds there, and what it changed."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex

from amanu.core import protected_paths as protected
from amanu.core.place import Place
from amanu.core.tool import CallContext, Subject, ToolError
from amanu.proposals.model import FileEdit
from amanu.proposals.proposals import Proposals
from amanu.sandbox.layers.layer import Layer
from amanu.tools.shell.held_files import HeldFile, HeldFolder
from amanu.tools.shell.layer_changes import FoundChanges, LayerChanges, read_layer
from amanu.tools.shell.layer_draft import drop, drop_folders, put_back
from amanu.workspace.text_file import UNKNOWN, FileText, decode_as, encode, same_bytes

EXECUTABLE = 0o111
_TICK = 0.002


@dataclass(frozen=True)
class View:
    """What a command finds in the layer."""

    laid_in: dict[Path, FileText | None]
    """None: it was deleted."""
    drafted: Mapping[Path, HeldFile]
    """What else is drafted; it is in the layer already."""
    place: Place


class LayeredRun:
    """One command in the layer."""

    def __init__(self, layer: Layer, proposals: Proposals, view: View, call: CallContext) -> None:
        self.folder = layer.folder
        self.changes: LayerChanges | None = None
        """What `read` returned."""
        self.is_clean = True
        """Whether nothing is left in the layer but what is ignored."""
        self.layer = layer
        self._proposals = proposals
        self.place = view.place
        self._is_taken_back = False
        self._laid_in = view.laid_in
        self._drafted = {
            path: None if file.stored is None else _content(file.root.upper / file.name)
            for path, file in view.drafted.items()
        }
        self._call = call
        self.turn_id = call.turn_id
        self._begun = _tick()

    @property
    def drafts(self) -> bool:
        """Whether what no proposal shows of its changes stays in the layer, as part of the draft."""
        return self.place.then == "drafted" and not self._is_taken_back

    def forget(self) -> None:
        """Nobody reads what it changes; the layer is of no further use."""
        self.changes = LayerChanges(HeldFolder(self.layer.folder / "held" / token_hex(8)))
        self.is_clean = False

    async def read(self) -> LayerChanges:
        """What the command changed, once it has ended. All of it is taken out of the layer, but for what is ignored.
        Raises `LayerError`, `OSError`."""
        held = HeldFolder(self.layer.folder / "held" / token_hex(8))
        found = FoundChanges(held, self._begun)
        try:
            await asyncio.to_thread(read_layer, self.layer, self._laid_in, found)
            changes = await self._compared(found)
            shown = bool(changes.edits) or self._proposals.drafts.is_open
            kept = found.folders if self.drafts else ()
            await asyncio.to_thread(drop, self.layer, [path for path in found.paths if path not in kept])
            drafts = self.drafts and shown and not self._call.denied(map(self._write, changes.held))
            drafted = [file for file in changes.held if drafts or self._is_drafted(file)]
            fresh = [file.path for file in drafted if not self._is_drafted(file)]
            await asyncio.to_thread(put_back, self.layer, drafted)
            held = [file for file in changes.held if file not in drafted]
            self.changes = replace(changes, held=held, drafted=drafted, fresh=fresh)
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
        self.changes, self._is_taken_back = replace(self.changes, drafted=kept), True
        await asyncio.to_thread(drop, self.layer, taken_back)
        await asyncio.to_thread(drop_folders, self.layer, self.changes.folders)

    async def _base(self, path: Path) -> FileText:
        """What the command's version of the file is compared with."""
        if self.place.finds == "saved":
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
            if self.place.finds == "saved" and self._proposals.drafts.has(path):
                refused = refused or f"it changed {self._proposals.relative(path)}, which has an open draft"
                continue
            try:
                base = await self._base(path)
            except ToolError:  # what it was is no text
                held.append(new.file)
                continue
            laid = self._laid_in.get(path)
            if path in self._laid_in and base.text != ("" if laid is None else laid.text):
                if new.text != (None if laid is None else laid.text):
                    moved.append(path)
                    continue
                new = replace(new, text=base.text if base.exists or base.from_buffer else None)  # it left it alone
            text = new.text
            if text is not None and base.exists and not same_bytes(new.encoding, base.encoding):
                text = decode_as(encode(text, new.encoding), base.encoding) if new.encoding == UNKNOWN else None
                if text is None:
                    held.append(new.file)
                    continue
            if new.text is not None and bool(new.mode & EXECUTABLE) != bool((base.mode or 0) & EXECUTABLE):
                executable[path] = bool(new.mode & EXECUTABLE)
                if protected.is_guarded(new.file.name):
                    refused = refused or f"it changed whether {new.file.name} is executable"
            if text != (base.text if base.exists or base.from_buffer else None):
                edits.append(FileEdit(base, text))
        writes = {path: Subject("write_file", "write", self._proposals.relative(path)) for path in executable}
        forbidden = {subject.text for subject in self._call.denied(writes.values())}
        denied = [path for path, subject in writes.items() if subject.text in forbidden]
        return LayerChanges(
            found.folder,
            edits,
            held,
            {path: is_set for path, is_set in executable.items() if path not in denied},
            denied,
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
