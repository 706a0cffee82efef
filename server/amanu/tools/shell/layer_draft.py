"""The parts of a session's draft that no proposal shows."""

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import Literal

from amanu.core.place import Place
from amanu.sandbox.layers.layer import Layer, LayerError, explained
from amanu.sandbox.layers.redo import noted
from amanu.sandbox.layers.transfer import set_executable
from amanu.tools.shell.held_files import Applied, HeldFile, HeldFolder, apply_held
from amanu.tools.shell.layer_changes import LayerChanges

NotUndone = Literal["file", "bit", "folder"]
"""A kind of change that undoing text leaves: a file that is no text, an executable bit, a new folder."""


def not_undone_name(kind: NotUndone, name: str) -> str:
    return {"file": name, "bit": f"the executable bit of {name}", "folder": f"the new folder {name}"}[kind]


@dataclass(eq=False)
class LayerDraft:
    """By path."""

    files: dict[Path, HeldFile] = field(default_factory=dict[Path, HeldFile])
    """Binary files, links and the like. They are in the layer from one command to the next."""
    executable: dict[Path, bool] = field(default_factory=dict[Path, bool])
    """Whether the draft makes the file executable; of text files, too."""
    folders: list[Path] = field(default_factory=list[Path])
    """New empty folders. They are in the layer, too."""
    emptied: list[Path] = field(default_factory=list[Path])
    """Folders deleted with everything in them, innermost first."""
    ignored: list[Path] = field(default_factory=list[Path])
    """What git ignores and comes with it, once it is decided."""
    turns: dict[Path, tuple[str, ...]] = field(default_factory=dict[Path, tuple[str, ...]])
    """The turns that changed each of these paths, in order."""

    @property
    def paths(self) -> set[Path]:
        """Paths of what can be lost with the layer."""
        return {*self.files, *self.executable}

    def forked(self, layer: Layer, left: Collection[Path]) -> "LayerDraft":
        """The same draft in a layer that has a copy of it, without the paths that were `left` out."""
        files = {path: _placed(file, layer) for path, file in self.files.items() if path not in left}
        return LayerDraft(files, dict(self.executable), list(self.folders), list(self.emptied), turns=dict(self.turns))

    def note_turn(self, path: Path, turn_id: str) -> None:
        """That turn has changed what is drafted there."""
        earlier = self.turns.get(path, ())
        self.turns[path] = earlier if earlier[-1:] == (turn_id,) else (*earlier, turn_id)

    def forget(self, paths: Collection[Path]) -> None:
        """What was drafted at those paths is not wanted any more. The files are still in the layer."""
        self.files = {path: file for path, file in self.files.items() if path not in paths}
        self.executable = {path: is_set for path, is_set in self.executable.items() if path not in paths}
        self.folders = [path for path in self.folders if path not in paths]
        self.emptied = [path for path in self.emptied if path not in paths]

    def keep(self, decided: "LayerDraft", paths: Collection[Path]) -> None:
        """Take over from a draft that was accepted what could not be applied at those paths; the layer still has it."""
        paths = [path for path in paths if path not in self.files]
        self.files |= {path: file for path, file in decided.files.items() if path in paths}
        self.executable = {
            path: is_set for path, is_set in decided.executable.items() if path in paths
        } | self.executable
        self.turns = {path: turns for path, turns in decided.turns.items() if path in paths} | self.turns

    def note(self, changes: LayerChanges, before: "LayerDraft", place: Place) -> None:
        """A command has drafted these besides files. When it started, the draft was as `before`: what was decided on
        meanwhile is no part of it any more."""
        if self.executable is before.executable:
            left = {path: before.executable[path] for path in changes.conflicts if path in before.executable}
            self.executable, self.folders = left | changes.executable, list(changes.folders)
            self.emptied = self.emptied if place.finds == "saved" else list(changes.emptied)
        else:
            self.executable = _new_bits(before, changes.executable)
            self.folders = [path for path in changes.folders if path not in before.folders]
            self.emptied = [path for path in changes.emptied if path not in before.emptied]

    def take(self, changes: "DraftChanges", layer: Layer) -> None:
        """Take over what a command changed in a fork of it. `layer` is this draft's, and has what it made already."""
        before, after = changes.before, changes.after
        for path in changes.gone:
            self.files.pop(path, None)
        for path in changes.fresh:
            below = self.files.get(path, after.files[path]).below
            self.files[path] = replace(_placed(after.files[path], layer), below=below)
        cleared = [path for path in before.executable if path not in after.executable]
        kept = {path: is_set for path, is_set in self.executable.items() if path not in cleared}
        self.executable = kept | _new_bits(before, after.executable)
        self.folders = _merged(self.folders, before.folders, after.folders)
        self.emptied = _merged(self.emptied, before.emptied, after.emptied)
        for path in changes.paths:
            self.note_turn(path, after.turns[path][-1])


@dataclass(frozen=True)
class DraftChanges:
    """What one command did to a draft."""

    before: LayerDraft
    after: LayerDraft
    fresh: Sequence[Path]
    """Files that it made or changed."""

    @property
    def paths(self) -> set[Path]:
        """All that it changed."""
        before, after = self.before, self.after
        folders = {*after.folders, *after.emptied} - {*before.folders, *before.emptied}
        return {*self.fresh, *_new_bits(before, after.executable), *folders}

    @property
    def gone(self) -> list[Path]:
        return [path for path in self.before.files if path not in self.after.files]


def _placed(file: HeldFile, layer: Layer) -> HeldFile:
    """The file in another layer."""
    root, name = layer.place(file.path)
    return replace(file, root=root, name=name)


def _merged(paths: Iterable[Path], before: Sequence[Path], after: Sequence[Path]) -> list[Path]:
    """Those paths, with what came to `before` and without what went from it."""
    left = [path for path in paths if path not in before or path in after]
    return [*dict.fromkeys([*left, *(path for path in after if path not in before)])]


def _new_bits(before: LayerDraft, executable: Mapping[Path, bool]) -> dict[Path, bool]:
    return {path: is_set for path, is_set in executable.items() if before.executable.get(path) != is_set}


def hand_over(source: Layer, layer: Layer, changes: DraftChanges) -> None:
    """Do in one layer what a command did in another one that began as its copy: all of it, or nothing when that
    fails. No command runs in either."""
    folder = HeldFolder(layer.folder / "held" / token_hex(8))
    try:
        files = [_copied(changes.after.files[path], source, layer, folder) for path in changes.fresh]
        drop(layer, changes.gone)
        put_back(layer, files)
        for made in changes.after.folders:
            layer.make_folder(made)
    finally:
        folder.remove()


def _copied(file: HeldFile, source: Layer, layer: Layer, folder: HeldFolder) -> HeldFile:
    """The file for another layer, copied into `folder`."""
    root, name = source.place(file.path)
    stored = None if file.stored is None else folder.copy(root, name)
    return replace(_placed(file, layer), stored=stored)


def take_out(layer: Layer, files: Mapping[Path, HeldFile], folder: HeldFolder | None = None) -> dict[Path, HeldFile]:
    """Take drafted files out of the layer for a while, into that folder or a new one."""
    folder = folder or HeldFolder(layer.folder / "held" / token_hex(8))
    aside: dict[Path, HeldFile] = {}
    with layer.locked():
        for path, file in files.items():
            stored = None if file.stored is None else folder.take(file.root, file.name)
            aside[path] = replace(file, stored=stored)
    drop(layer, [path for path, file in files.items() if file.stored is None])
    return aside


def save(layer: Layer, files: Mapping[Path, HeldFile]) -> dict[Path, HeldFile]:
    """Take drafted files out of a layer that is given up, as far as they are still there."""
    saved: dict[Path, HeldFile] = {}
    for path, file in files.items():
        with contextlib.suppress(OSError, LayerError):
            saved |= take_out(layer, {path: file})
    return saved


def moved_to(layer: Layer, files: Mapping[Path, HeldFile]) -> dict[Path, HeldFile]:
    """Put drafted files into a new layer. Raises `LayerError`, `OSError`."""
    moved = {path: _placed(file, layer) for path, file in files.items()}
    put_back(layer, moved.values())
    return moved


def put_back(layer: Layer, files: Iterable[HeldFile]) -> None:
    """Put them into the layer, where the next command finds them."""
    for file in files:
        if file.stored is None:
            layer.delete(file.path)
        else:
            layer.put(file.path, file.stored)


def apply_drafted(layer: Layer, files: Mapping[Path, HeldFile], executable: Mapping[Path, bool]) -> Applied:
    """Bring them into the workspace, and set or clear executable bits there. What cannot be applied stays in the
    layer. Raises `LayerError`, `OSError` when it cannot be put back there."""
    folder = HeldFolder(layer.folder / "held" / token_hex(8))
    taken: dict[Path, HeldFile] = {}
    try:
        for path, file in files.items():
            taken |= take_out(layer, {path: file}, folder)
        batches = [(file, folder.batch([file])) for file in taken.values()]
        with noted(layer.folder, [batch for _, batch in batches], executable=executable):
            faults = set_executable(layer, executable)
            applied = apply_held(batches)
            applied.note_bits(executable, faults)
    except (OSError, LayerError) as error:
        why = explained(error)
        applied = Applied(failed=[*{**files, **taken}.values()], fault=why, unset=dict.fromkeys(executable, why))
    put_back(layer, [file for file in applied.left if file.path in taken])
    return applied


def drop(layer: Layer, paths: Sequence[Path]) -> None:
    """Forget what the layer has at these paths: files before their folders, which are dropped once they are empty."""
    for path in sorted(dict.fromkeys(paths), key=lambda path: -len(path.parts)):
        root, name = layer.place(path)
        upper = root.upper / name
        if upper.is_dir() and not upper.is_symlink():
            with contextlib.suppress(OSError):
                upper.rmdir()
        else:
            layer.drop(path)


def drop_folders(layer: Layer, folders: Sequence[Path]) -> None:
    """Forget empty folders, and the folders above that were made for them."""
    above = [parent for folder in folders for parent in folder.parents if not os.path.lexists(parent)]
    drop(layer, [*folders, *above])


def lay_in_emptied(layer: Layer, folders: Sequence[Path]) -> None:
    """Delete, innermost first, those of the folders in which the layer no longer shows anything."""
    for folder in folders:
        with contextlib.suppress(OSError):  # it is gone in the workspace, too
            if not any(layer.visible(folder / name) for name in os.listdir(folder)):  # noqa: PTH208 (names only)
                layer.delete(folder)


def make_folders(folders: Sequence[Path]) -> dict[Path, str]:
    """Make them in the workspace. Returns why some were not made. Blocking."""
    faults: dict[Path, str] = {}
    for folder in folders:
        above = next((parent for parent in folder.parents if parent.exists()), folder)
        if os.path.realpath(above) != str(above):
            faults[folder] = "A link leads there."
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            faults[folder] = f"{error.strerror}."
    return faults


def remove_folders(folders: Sequence[Path]) -> dict[Path, str]:
    """Remove those that are empty now from the workspace. Returns why some were not removed. Blocking."""
    faults: dict[Path, str] = {}
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError as error:
            faults[folder] = f"{error.strerror}."
    return faults
