"""The layer of a session: its commands run in it, one after another, and what they change is read back.

Before a command, the session's view is laid in: unsaved text of open documents, and edits of the same step that are not
decided yet. After it, whatever the command changed is taken out again, except what git ignores, which the session's
later commands find.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from amanu.core.place import LOOK, Place
from amanu.core.tool import CallContext, Subject, SubjectFilter, ToolError
from amanu.proposals.proposals import Proposals
from amanu.sandbox.layers.copying import copy_paths
from amanu.sandbox.layers.layer import Layer, LayerError, explained
from amanu.sandbox.layers.redo import noted
from amanu.sandbox.layers.transfer import files_in, transfer, with_executable
from amanu.sandbox.sandbox import Sandbox
from amanu.system.tasks import run_to_completion
from amanu.text.display import one_line
from amanu.tools.shell.discarded_layer import DiscardedLayer
from amanu.tools.shell.held_files import HeldFile
from amanu.tools.shell.layer_draft import (
    DraftChanges,
    LayerDraft,
    NotUndone,
    apply_drafted,
    drop,
    drop_folders,
    hand_over,
    lay_in_emptied,
    make_folders,
    moved_to,
    put_back,
    remove_folders,
    save,
    take_out,
)
from amanu.tools.shell.layered_run import LayeredRun, View
from amanu.tools.shell.report import file_list
from amanu.workspace.text_file import FileText
from amanu.workspace.workspace import Workspace

_PLAIN = 0o644
_COPIED = 1 << 30
"""Bytes that are copied for a command in a layer of its own: a `node_modules` of 300 MB takes a second or two."""
_COPY_LOST = "the session's private copy was lost"
_REWOUND = "a turn that was rewound had overwritten it"
_FAILED = "The command's private copy of the workspace failed"


class WriteRules(Protocol):
    """The session's rules, about writing files."""

    def denied_to_user(self, subjects: Iterable[Subject]) -> list[Subject]:
        """The subjects that a rule denies, whatever the mode."""
        ...

    def guarded(self, subjects: Iterable[Subject]) -> list[Subject]:
        """The subjects that one of the user's rules denies or asks about."""
        ...


class SessionLayer:
    """Of one session, or of one sub-agent. `proposals` and `workspace` are the session's."""

    def __init__(self, workspace: Workspace, proposals: Proposals, sandbox: Sandbox | None) -> None:
        self._workspace = workspace
        self._proposals = proposals
        self._sandbox = sandbox
        self._layer: Layer | None = None
        self._discarded: list[Layer] = []
        self._ignored: dict[Path, None] = {}
        """Paths in the layer that git ignores."""
        self._draft = LayerDraft()
        self._decided_drafts: list[LayerDraft] = []
        """Decided drafts that wait until the running command ends."""
        self._recorded_paths: set[Path] = set()
        """The draft's paths that are on record."""
        self.applied: dict[tuple[NotUndone, Path], str] = {}
        """Applied changes of drafts that no proposal showed → the turn that made them."""
        self._lost: set[Path] = set()
        """Drafted paths that could not be kept."""
        self._rewound: set[Path] = set()
        """The lost paths that a rewound turn had overwritten."""
        self._origin: SessionLayer | None = None
        """The layer that this one begins as a copy of, if any."""
        self._too_large: list[Path] = []
        """What was too large to be copied from there."""
        self._lock = asyncio.Lock()
        self.unknown = ""
        """Why it could not be found out just now whether layers work; "" if it could."""

    def apart(self) -> "SessionLayer":
        """A separate layer, for a sub-agent or a background command. Its first command finds what a command in this
        layer would find at that time; what is drafted in it is handed over to this layer."""
        layer = SessionLayer(self._workspace, self._proposals, self._sandbox)
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
            or begun._draft.files
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
        as_saved = place.finds == "saved"
        async with self._lock:
            aside: dict[Path, HeldFile] = {}
            try:
                layer = await self._ready()
                laid_in = {} if as_saved else await self._lay_in(layer, call)
                aside = await asyncio.to_thread(take_out, layer, self._draft.files) if as_saved else {}
                view = View(laid_in, {} if as_saved else self._draft.files, place)
                run = LayeredRun(layer, self._proposals, view, call)
                before = replace(self._draft)
                try:
                    yield run
                finally:
                    await run_to_completion(self._end(run, before, aside))
            except (LayerError, OSError) as error:
                await run_to_completion(self._give_up(aside))
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
                async with self._lock:
                    await self._copy_to(layer)
                there = [*await self._lay_in(layer, call), *self._draft.paths, *self._draft.folders, *self._ignored]
            yield await asyncio.to_thread(DiscardedLayer, layer, there)
        except (LayerError, OSError) as error:
            raise ToolError(f"{_FAILED}: {explained(error)}") from None
        finally:
            if layer is not None:
                await run_to_completion(asyncio.to_thread(_remove, layer))

    async def _copy_to(self, layer: Layer) -> list[Path]:
        """Copy what commands find in this layer, except drafted and unsaved text, to another one. Returns the paths
        that are too large for that. The caller has the lock. Raises `LayerError`, `OSError`."""
        if self._layer is None and not (self._draft.files or self._origin):
            return []
        source = await self._ready()
        paths = [*self._draft.files, *self._draft.folders, *self._ignored]
        return await run_to_completion(asyncio.to_thread(copy_paths, source, layer, paths, _COPIED)) if paths else []

    async def _take(self, changes: DraftChanges, source: Layer) -> None:
        """Take over what a command changed in a copy of this layer: all of it, or nothing. Raises `LayerError`,
        `OSError`."""
        async with self._lock:
            layer = await self._ready()
            await asyncio.to_thread(hand_over, source, layer, changes)
            self._draft.take(changes, layer)

    async def bring_home(self, paths: Sequence[Path], call: CallContext, begun: int | None) -> list[str]:
        """Bring ignored files and folders into the workspace (see `transfer`), except those that a rule denies or asks
        about. Returns sentences about those that were not brought, with the reasons."""
        async with self._lock:
            return [] if self._layer is None else await self._bring(self._layer, paths, begun, call.guarded)

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
            notes, left, overtaken = _bring_home(layer, paths, begun, kept)
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
            return notes

        return await asyncio.to_thread(bring)

    def _not_denied(self, paths: Iterable[Path], denied: SubjectFilter) -> list[Path]:
        paths = list(paths)
        names = {subject.text for subject in denied([subject for path in paths for subject in self._writes(path)])}
        return [path for path in paths if names.isdisjoint(subject.text for subject in self._writes(path))]

    @property
    def drafted(self) -> list[HeldFile]:
        """The files of the draft that no proposal shows."""
        return list(self._draft.files.values())

    @property
    def drafted_bits(self) -> Mapping[Path, bool]:
        """Files that the draft makes executable, or not."""
        return self._draft.executable

    async def note_drafted(self) -> None:
        """Put on record what the layer has of the draft: it is lost when this daemon ends."""
        if self._origin is not None:
            return await self._origin.note_drafted()
        now = self._draft.paths
        await self._proposals.drafts.note_besides(now, self._recorded_paths - now - self._lost)
        self._recorded_paths = now | (self._recorded_paths & self._lost)

    def lost(self, paths: Iterable[str]) -> dict[str, list[Path]]:
        """Reason, as a clause → the recorded paths that the layer no longer has."""
        there = self._draft.paths
        lost: dict[str, list[Path]] = {}
        for path in dict.fromkeys(map(Path, paths)):
            if path not in there:
                lost.setdefault(_REWOUND if path in self._rewound else _COPY_LOST, []).append(path)
        return lost

    @property
    def holds_draft(self) -> bool:
        """Whether it alone holds some part of a draft."""
        return bool(self._draft.paths or self._draft.folders or self._draft.emptied)

    async def adopt(self, earlier: "SessionLayer", paths: Collection[str]) -> None:
        """Go on with what the layer of this session held when it was closed. If not all of its draft is in `paths`, on
        record, another process has had the session since: then nothing is kept."""
        if not {*map(str, earlier._draft.paths)} <= {*paths}:
            await earlier.close()
            return
        self._layer, self._discarded, self._ignored = earlier._layer, earlier._discarded, earlier._ignored
        self._draft, self._recorded_paths = earlier._draft, earlier._recorded_paths
        self._lost, self._rewound, self.applied = earlier._lost, earlier._rewound, earlier.applied

    async def rewind(self, turn_ids: Collection[str]) -> None:
        """Forget what commands of those turns drafted besides text. Never raises: files that cannot be dropped stay in
        the layer, but are not drafted any more."""
        async with self._lock:
            turns = {path: turns for path, turns in self._draft.turns.items() if turns[-1] in turn_ids}
            paths = set(turns)
            # What these turns overwrote of an earlier turn's changes cannot be recovered.
            overwritten = {path for path, path_turns in turns.items() if not {*path_turns} <= {*turn_ids}}
            self._lost |= (overwritten := overwritten & self._draft.paths)
            self._rewound |= overwritten
            files = [path for path in self._draft.files if path in paths]
            folders = [path for path in self._draft.folders if path in paths]
            self._draft.forget(paths)
            if self._layer is not None:
                with contextlib.suppress(LayerError, OSError):
                    await asyncio.to_thread(drop, self._layer, files)
                    await asyncio.to_thread(drop_folders, self._layer, folders)
        await self.note_drafted()

    def decide_draft(self) -> LayerDraft:
        """The draft as it is now, for `end_draft`: it is decided, and what is drafted from now on is another one. What
        git ignores belongs to it only if no command is changing that just now."""
        decided, self._draft = self._draft, LayerDraft()
        decided.ignored = [] if self._lock.locked() else list(self._ignored)
        self._recorded_paths, self._lost, self._rewound = set(), set(), set()
        self._decided_drafts.append(decided)
        return decided

    async def end_draft(self, decided: LayerDraft, rules: WriteRules, *, accepted: bool) -> list[str]:
        """Bring the parts of a decided draft that no proposal showed, and ignored files that are new there, into the
        workspace, except what a rule denies; or forget them. Returns sentences for the user and the model about what
        became of them."""
        async with self._lock:
            try:
                return await self._end_draft(decided, rules, accepted=accepted)
            except (LayerError, OSError) as error:
                left, lost = decided.paths if accepted else set[Path](), set(self._lost)
                self._draft.keep(decided, left)
                decided.files = {}
                await self._give_up({})
                notes = [f"Not applied: {self._names(sorted(left))}. {explained(error)}"] if left else []
                return [*notes, *self._kept_notes(left - (self._lost - lost))]
            finally:
                self._decided_drafts.remove(decided)

    async def _end_draft(self, draft: LayerDraft, rules: WriteRules, *, accepted: bool) -> list[str]:
        notes: list[str] = []
        kept: set[Path] = set()
        if redrafted := [path for path in draft.files if path in self._draft.files]:
            draft.files = {path: file for path, file in draft.files.items() if path not in redrafted}
            if accepted:
                notes.append(
                    f"Not applied, because a command changed the draft's version later: {self._names(redrafted)}."
                )
        if accepted:
            notes += await self._change_folders(draft.folders, draft.turns, rules, make_folders, "Folder not made")
        if self._layer is not None:
            gone = [folder for folder in draft.folders if folder not in self._draft.folders]
            await asyncio.to_thread(drop_folders, self._layer, gone)
        if accepted and (draft.files or draft.executable or draft.ignored):
            notes += await self._take_over(await self._ready(), draft, rules, kept)
        elif draft.files:
            await asyncio.to_thread(drop, await self._ready(), list(draft.files))
            notes.append(f"Not applied, because not all of the draft was accepted: {self._names(draft.files)}.")
        if accepted:
            notes += await self._change_folders(draft.emptied, draft.turns, rules, remove_folders, "Folder not removed")
        self._draft.keep(draft, kept)
        return [*notes, *self._kept_notes(kept)]

    async def _change_folders(
        self,
        folders: Sequence[Path],
        turns: Mapping[Path, Sequence[str]],
        rules: WriteRules,
        change: Callable[[Sequence[Path]], Mapping[Path, str]],
        lead: str,
    ) -> list[str]:
        """Make or remove folders of an accepted draft. Returns sentences about those that were not."""
        allowed = self._not_denied(folders, rules.denied_to_user)
        faults = dict(await asyncio.to_thread(change, allowed))
        denied = [folder for folder in folders if folder not in allowed]
        faults |= dict.fromkeys(denied, "A rule denies writing there.")
        if change is make_folders:
            self._note_applied("folder", [each for each in allowed if each not in faults], turns)
        return [f"{lead}: {self._names([folder])}. {why}" for folder, why in faults.items()]

    async def _take_over(self, layer: Layer, draft: LayerDraft, rules: WriteRules, kept: set[Path]) -> list[str]:
        """Bring the files of an accepted draft, and ignored files that are new there, into the workspace. Adds those
        that a rule or the disk refused to `kept`. One that the user changed meanwhile is theirs: it is forgotten."""
        notes: list[str] = []
        allowed = {path: draft.files[path] for path in self._not_denied(draft.files, rules.denied_to_user)}
        bits = {path: draft.executable[path] for path in self._not_denied(draft.executable, rules.denied_to_user)}
        if denied := [path for path in draft.files if path not in allowed] + [
            path for path in draft.executable if path not in bits
        ]:
            notes.append(f"Not applied, because a rule denies writing there: {self._names(denied)}.")
        applied = await asyncio.to_thread(apply_drafted, layer, allowed, bits)
        self._note_applied("file", [file.path for file in applied.files], draft.turns)
        self._note_applied("bit", applied.bits, draft.turns)
        await asyncio.to_thread(drop, layer, [file.path for file in applied.changed])
        kept |= {*denied, *applied.unset, *(file.path for file in applied.failed)} - {*_missing(applied.unset)}
        built = await asyncio.to_thread(_missing, draft.ignored)
        faults = await self._bring(layer, built, None, rules.guarded)
        return [*applied.notes(self._names, " with the draft", advice=" Ask for it again."), *notes, *faults]

    def _note_applied(self, kind: NotUndone, paths: Iterable[Path], turns: Mapping[Path, Sequence[str]]) -> None:
        self.applied |= {(kind, path): turns.get(path, ("",))[-1] for path in paths}

    def _kept_notes(self, paths: Collection[Path]) -> list[str]:
        if not paths:
            return []
        return [f"This stays in the draft: {self._names(sorted(paths))}. It comes with the next draft that you accept."]

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
        """Stop using the layer; the next command gets a new one. What is held in it for a decision stays until
        `close`."""
        if self._layer is not None:
            self._discarded.append(self._layer)
            with contextlib.suppress(LayerError, OSError):
                await asyncio.to_thread(self._layer.clear)
        self._layer = None
        self._ignored.clear()

    async def _give_up(self, aside: Mapping[Path, HeldFile]) -> None:
        """Stop using the layer. What was drafted in it is kept for the next one, as far as it can be saved; `aside` was
        taken out already."""
        for draft in (self._draft, *self._decided_drafts):
            inside = {path: file for path, file in draft.files.items() if path not in aside}
            saved = {} if self._layer is None else await asyncio.to_thread(save, self._layer, inside)
            lost = [path for path in inside if path not in saved] if self._layer is not None else []
            self._lost |= set(lost)
            draft.files = {path: aside.get(path) or saved.get(path, file) for path, file in draft.files.items()}
            for path in lost:
                del draft.files[path]
        await self._discard()

    async def _end(self, run: LayeredRun, before: LayerDraft, aside: Mapping[Path, HeldFile]) -> None:
        """Finish a command's run. If its changes were never read, they are dropped, except ignored files."""
        if run.changes is None:
            await run.read()
            await run.take_back()
        assert run.changes is not None
        if not run.is_clean:
            await self._give_up(aside)
            return
        changes, draft = run.changes, self._draft
        self._ignored = await asyncio.to_thread(_there, run.layer, [*self._ignored, *changes.ignored])
        # What was decided on meanwhile is no part of the draft any more.
        is_undecided = draft.files is before.files
        drafted_files = [file for file in changes.drafted if is_undecided or file.path in changes.fresh]
        former = {**before.files, **aside}
        # It replaces what the workspace had when it was first drafted.
        files = {file.path: replace(file, below=former.get(file.path, file).below) for file in drafted_files}
        draft.files = {**{path: file for path, file in aside.items() if path in draft.files}, **files}
        await asyncio.to_thread(put_back, run.layer, aside.values())
        if run.drafts:
            draft.note(changes, before, run.place)
            draft_changes = DraftChanges(before, draft, changes.fresh)
            for path in draft_changes.paths:
                draft.note_turn(path, run.turn_id)
            if self._origin is not None:
                await self._origin._take(draft_changes, run.layer)

    def _roots(self) -> list[Path]:
        return [self._workspace.guard.real(root) for root in self._workspace.roots]

    async def _ready(self) -> Layer:
        if self._layer is None:
            self._layer = await run_to_completion(self._begin())
        return self._layer

    async def _begin(self) -> Layer:
        """A new layer containing the draft, or a copy of `_origin`'s."""
        layer = await asyncio.to_thread(self._create)
        try:
            for draft in (self._draft, *self._decided_drafts):
                draft.files = await asyncio.to_thread(moved_to, layer, draft.files)
            await asyncio.to_thread(_make_folders, layer, self._draft.folders)
            if self._origin is not None:
                async with self._origin._lock:
                    self._too_large = await self._origin._copy_to(layer)
                    self._ignored = {path: None for path in self._origin._ignored if path not in self._too_large}
                    self._draft = self._origin._draft.forked(layer, self._too_large)
        except BaseException:
            self._layer = layer
            await self._give_up({})
            raise
        self._layer = layer
        return layer

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
        for path, is_set in self._draft.executable.items():
            file = laid_in.get(path) or await self._proposals.read_if_text(path)
            if file is not None:
                laid_in[path] = replace(file, mode=with_executable(file.mode or _PLAIN, is_set=is_set))
        real = {self._workspace.guard.real(path): file for path, file in laid_in.items()}
        laid = await asyncio.to_thread(_lay_in, layer, real)
        await asyncio.to_thread(lay_in_emptied, layer, self._draft.emptied)
        return laid


def _missing(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if not os.path.lexists(path)]


def _there(layer: Layer, paths: Iterable[Path]) -> dict[Path, None]:
    """Those that the layer has."""
    places = {path: layer.place(path) for path in dict.fromkeys(paths)}
    return {path: None for path, (root, name) in places.items() if os.path.lexists(root.upper / name)}


def _make_folders(layer: Layer, folders: Iterable[Path]) -> None:
    for folder in folders:
        layer.make_folder(folder)


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
    with contextlib.suppress(LayerError, OSError):
        layer.remove()


def _ignored_files(layer: Layer, paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        root, name = layer.place(path)
        with contextlib.suppress(OSError, LayerError):
            yield from (root.path / each for each in files_in(root, name))


def _bring_home(
    layer: Layer, paths: Sequence[Path], begun: int | None, kept: Sequence[Path]
) -> tuple[list[str], list[Path], list[Path]]:
    """Returns faults, what stays in the layer, and what others have changed."""
    faults: list[str] = []
    left: list[Path] = []
    overtaken: list[Path] = []
    moved = [path for path in paths if begun is not None or not os.path.lexists(path)]
    if not moved:
        return [], [], []
    names = [layer.place(path)[1] for path in kept]
    try:
        places = [layer.place(path) for path in moved]
        with noted(layer.folder, ignored=places, begun=begun, kept=names):
            for path, (root, name) in zip(moved, places, strict=True):
                try:
                    found = transfer(root, name, begun, frozenset(names))
                    left += [root.path / each for each in found.kept]
                    overtaken += [root.path / each for each in found.overtaken]
                except (OSError, LayerError) as error:
                    faults.append(f"Not all of {path.name} was moved into the workspace: {explained(error)}")
    except (OSError, LayerError) as error:
        faults.append(f"Files ignored by git were not moved into the workspace: {explained(error)}")
    return faults, left, overtaken
