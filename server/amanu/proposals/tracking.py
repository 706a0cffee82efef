"""Files change while proposals are open, by the user or another tool: hunks move along, or are in conflict.

Heard of by `Overlay.watch`, looked at when it has been quiet for a moment.
"""

import asyncio
import contextlib
import logging
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.deferred_edits import DeferredEdits
from amanu.proposals.discarded import all_discarded, may_be_discarded
from amanu.proposals.live_proposals import LiveProposals
from amanu.proposals.model import (
    FILE_CHANGED,
    FILE_GONE,
    FILE_MADE,
    SMALL_TEXT,
    STATES_BEFORE,
    UNDECIDED,
    LiveFile,
    LiveProposal,
)
from amanu.proposals.presence import BY_HAND, Presence, follow_presence, follow_row, follows_hand, waits_for_file
from amanu.proposals.reanchor import Edit, Reanchored, line_edits, reanchor, without_discarded
from amanu.proposals.row_plan import RowPlanner, Standing
from amanu.proposals.rows import LiveRow
from amanu.proposals.staged import Look, keep_staged, keep_staged_row
from amanu.proposals.text_plan import target_made
from amanu.workspace.git.staged import StagedFiles, Staging
from amanu.workspace.overlay import Disk
from amanu.workspace.text_file import FileText, split_lines
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import HunkState, Proposal, ProposedFile

QUIET = 0.3
"""Seconds without a change after which open hunks are moved to where the user's typing left their lines."""
MAX_SETTLED = 10
"""Proposals for one file whose applied hunks are looked after; older ones are found again when they are undone."""
_OPEN: Collection[HunkState] = (*UNDECIDED, "conflicted")
_IN_FILE: Collection[HunkState] = ("accepted", "applied", "undoing")

log = logging.getLogger(__name__)

_Key = tuple[str, Path]


@dataclass(frozen=True)
class _Watched:
    stop: Callable[[], object]
    disk: Disk


@dataclass(frozen=True)
class _Discard:
    """All that was applied to a file was discarded at once."""

    text: str
    """The text before that."""
    files: Sequence[tuple[LiveProposal, LiveFile, LiveFile]]
    """Each with what was made of it, and as it was."""


class FileTracking:
    """`asked`: whether a question about that proposal is open."""

    def __init__(
        self,
        workspace: Workspace,
        live: LiveProposals,
        rows: RowPlanner | None = None,
        asked: Callable[[LiveProposal], bool] = lambda live: False,
        staged: StagedFiles | None = None,
    ) -> None:
        self._workspace = workspace
        self._live = live
        self._rows = rows
        self._asked = asked
        self._staged_files = staged
        self._is_looking = False
        """No decision is being made, so changes whose file is gone may be withdrawn; a yes finds them in conflict, and
        is held back."""
        self._taken: set[str] = set()
        """The ids of hunks and rows that the user's hand took away at some time."""
        self._staged: dict[Path, Staging] = {}
        """Files staged since, to be looked at."""
        live.listeners.append(self.watch)
        self._watched: defaultdict[Path, dict[str, _Watched]] = defaultdict(dict)
        """Path → proposals that have the file, oldest first. One proposal may have hundreds of files."""
        self._timers: dict[_Key, asyncio.TimerHandle] = {}
        self._due: defaultdict[str, set[Path]] = defaultdict(set)
        """Proposal → files to look at: a branch changes thousands at once."""
        self._discarded: dict[Path, _Discard] = {}
        self._without_file: set[_Key] = set()
        """Files that are gone, and whose hunks are still asked about."""
        self._follow_tasks: set[asyncio.Task[None]] = set()

    def watch(self, proposal: Proposal) -> None:
        """Hear of changes of its files, as long as something of it is open or applied there. Looking at the disk again
        and again costs a waking daemon, so that is done only where something is open. What waits to be reviewed, or the
        user's hand took away, the system's events must do for; where kept hunks went to is found again when they are
        undone."""
        wanted = _watched_paths(proposal)
        for path, (disk, version) in wanted.items():
            key = (proposal.proposal_id, Path(path))
            if disk is not None:
                self._watch_file(key, version, disk)
            else:
                self._unwatch(key)
        self._taken |= {row.row_id for row in proposal.rows if row.reason in BY_HAND}
        hunks = [hunk for file in proposal.files for hunk in file.hunks]
        self._taken |= {hunk.hunk_id for hunk in hunks if hunk.reason in BY_HAND}
        self._without_file = {key for key in self._without_file if key[0] != proposal.proposal_id} | {
            (proposal.proposal_id, Path(file.path)) for file in proposal.files if waits_for_file(file.hunks)
        }

    def watch_again(self, proposals: Iterable[Proposal]) -> None:
        """The same after a restart, for what the user is still to decide, and what their hand took away."""
        for proposal in proposals:
            if any(disk in ("looks", "events") for disk, _ in _watched_paths(proposal).values()):
                self.watch(proposal)

    def _watch_file(self, key: _Key, version: int | None, disk: Disk) -> None:
        proposals = self._watched[key[1]]
        if (watched := proposals.get(key[0])) is not None and watched.disk != disk:
            watched.stop()
            proposals[key[0]] = self._listen(key, disk)
        elif watched is None:
            proposals[key[0]] = self._listen(key, disk)
            buffer = self._workspace.overlay.buffer(key[1])
            if buffer is not None and buffer.version != version:
                self._schedule(key)
            self._unwatch_oldest(key[1])

    def close(self) -> None:
        for proposals in self._watched.values():
            for watched in proposals.values():
                watched.stop()
        for due in self._timers.values():
            due.cancel()
        self._watched.clear()
        self._timers.clear()

    def follows(self, live: LiveProposal, file: LiveFile) -> bool:
        """Whether what became of that file is known up to the last quiet moment: what is new there the user did."""
        return live.proposal_id in self._watched[file.base.path]

    async def catch_up(self, live: LiveProposal, files: Iterable[LiveFile]) -> dict[Path, FileText]:
        """Move the hunks of the files to their current texts, and publish the result. The caller has the lock. Returns
        the texts."""
        texts: dict[Path, FileText] = {}
        has_news = False
        for file in {id(file): file for file in files}.values():
            current = await self._read(file.base.path)
            if current is not None:
                texts[file.base.path] = current
            has_news = await self._move(live, file, current) or has_news
        if has_news:
            self._live.publish(live)
        return texts

    async def moved_copies(self, live: LiveProposal, hunk_ids: Collection[str]) -> list[LiveFile]:
        """The files in which one of these hunks waits, moved to their current texts; as copies, for of those nobody
        has followed it is not known what the user changed. The caller has the lock."""
        files = [file for file in live.files if any(hunk.waits and hunk.hunk_id in hunk_ids for hunk in file.hunks)]
        followed = [file for file in files if not file.is_settled or self.follows(live, file)]
        with self._looking():
            texts = await self.catch_up(live, followed)
        return [await self._moved_copy(file, texts.get(file.base.path)) for file in files]

    async def _moved_copy(self, file: LiveFile, current: FileText | None) -> LiveFile:
        """`current`: its text, if it was just read."""
        copy = file.copy()
        if file.change == "edit" and file.is_settled:
            current = current or await self._read(file.base.path)
            with contextlib.suppress(ToolError):
                moved = None if current is None else await self._reanchored(copy, current, by_user=False)
                if moved is not None:
                    moved.write_to(copy)
        return copy

    async def _reanchored(self, file: LiveFile, current: FileText, *, by_user: bool) -> Reanchored | None:
        if len(file.base.text) + len(current.text) < SMALL_TEXT:
            return reanchor(file, current, by_user=by_user)
        return await asyncio.to_thread(reanchor, file, current, by_user=by_user)

    async def catch_up_others(
        self, live: LiveProposal, files: Sequence[LiveFile], texts: Mapping[Path, FileText]
    ) -> list[FileText]:
        """Move the hunks of other proposals for these files to the current texts, before this proposal changes them.
        Returns those texts. `texts`: the ones that were just read."""
        before: list[FileText] = []
        for path in dict.fromkeys(file.base.path for file in files):
            others = self._others(live, path)
            current = (texts.get(path) or await self._read(path)) if others else None
            if current is None:
                continue
            for proposal in others:
                theirs = proposal.files_at(path)
                await self._move_all(proposal, theirs, current)
                if any(file.deferred is None for file in theirs):
                    await asyncio.to_thread(_begin_deferring, theirs, current)
            before.append(current)
        return before

    async def move_others(self, live: LiveProposal, files: Sequence[LiveFile], before: Sequence[FileText]) -> None:
        """This proposal changed these files, which were as `before`: that is not the user's doing."""
        texts = {text.path: text for text in before}
        for path in dict.fromkeys(file.base.path for file in files):
            others = self._others(live, path)
            old = texts.get(path)
            new = await self._read(path) if others else None
            edits = None if old is None or new is None else await asyncio.to_thread(_edits_between, old, new)
            for proposal in others:
                theirs = proposal.files_at(path)
                if old is None or new is None or edits is None or not _defer(theirs, edits, old, new):
                    await self._move_all(proposal, theirs, new, by_user=False)

    async def _move_all(
        self, live: LiveProposal, files: Sequence[LiveFile], current: FileText | None, *, by_user: bool = True
    ) -> None:
        if any([await self._move(live, file, current, by_user=by_user) for file in files]):
            self._live.publish(live)

    async def _move(
        self, live: LiveProposal, file: LiveFile, current: FileText | None, *, by_user: bool = True
    ) -> bool:
        """Move the hunks of the file to its current text; None when there is none. Returns whether the proposal must be
        published again."""
        has_news = False
        with contextlib.suppress(ToolError):  # what is there now is no text of ours; applying will say why
            has_news = by_user and await self._follow_presence(live, file, current)
            has_news = file.displace(await self._displacement(live, file, current)) or has_news
        if has_news:
            live.attempted -= {hunk.hunk_id for hunk in file.hunks if hunk.state == "pending"}
            self._look_again((live.proposal_id, file.base.path))
        if file.change != "edit" or current is None:
            return has_news
        return await self._move_hunks(live, file, current, by_user=by_user) or has_news

    async def _follow_presence(self, live: LiveProposal, file: LiveFile, current: FileText | None) -> bool:
        """Raises `ToolError` where what is there cannot be read."""
        path, new_path = file.base.path, file.new_path
        text = await self._workspace.read_if_exists(path) if current is None else current
        moved = None if new_path is None else await self._workspace.read_if_exists(new_path)
        paths = [path] if new_path is None else [path, new_path]
        if any(self._is_changed_by_us(live, file, each) for each in paths):
            return False
        presence = Presence(self._if_there(file, text), self._if_there(file, moved))
        decided = not self._is_looking
        return follow_presence(file, presence, asked=lambda: self._asked(live), decided=decided)

    def _if_there(self, file: LiveFile, text: FileText | None) -> FileText | None:
        """None also for a file that is gone and that an editor still shows, if nobody has typed in it."""
        if text is None or text.exists or not (file.base.exists or file.change == "create"):
            return text
        return text if any(buffer.typed for _, buffer in self._workspace.overlay.documents(text.path)) else None

    def _is_changed_by_us(self, live: LiveProposal, change: LiveFile | LiveRow, path: Path) -> bool:
        """Whether something else that is applied makes, moves, removes or replaces what is at the path."""
        is_mode = isinstance(change, LiveRow) and change.change.kind == "mode"
        for other in self._live.later_at(path, live):
            files = [each for each in other.files if each is not change and each.change != "edit"]
            if any(each.has_path(path) and any(hunk.state in _IN_FILE for hunk in each.hunks) for each in files):
                return not is_mode or other is not live
            rows = [row.change for row in other.rows if row is not change and row.state in _IN_FILE]
            if any(path in row.paths and (row.kind != "mode" or is_mode) for row in rows):
                return True
        return False

    async def _displacement(self, live: LiveProposal, file: LiveFile, current: FileText | None) -> str:
        """Why the file as a whole is not what the proposal is about; "" if it is, or somebody did the same already.
        Raises `ToolError` where that cannot be read."""
        path, new_path, old_text = file.base.path, file.new_path, file.version_with(STATES_BEFORE).text
        is_gone = current is None and await self._workspace.read_if_exists(path) is None
        match file.change:
            case "edit":
                return FILE_GONE if is_gone else ""
            case "create":
                return FILE_MADE if current is not None and current.text != file.text else ""
            case "rename" if is_gone and new_path is not None:
                moved = await self._workspace.read_if_exists(new_path)
                return "" if moved is not None and moved.text == file.text else FILE_GONE
            case _ if current is not None and current.text != old_text:
                return FILE_CHANGED
            case "rename" if new_path is not None and not live.files_at(new_path):
                is_free = await self._workspace.read_if_exists(new_path) is None
                return "" if is_free else target_made(self._workspace, new_path)
            case _:
                return ""

    async def _move_hunks(self, live: LiveProposal, file: LiveFile, current: FileText, *, by_user: bool) -> bool:
        is_newly_open = _is_newly_open(file, current)
        is_unsure = file.loaded and file.is_settled and len(self._live.later_at(file.base.path, live)) > 1
        by_user = by_user and not is_unsure
        file.loaded = False
        if file.deferred is not None and file.deferred.sha256 == current.sha256 and not is_newly_open:
            file.deferred.version = current.version
            return False
        try:
            moved = await self._reanchored(file, current, by_user=by_user)
            if moved is None and file.text_with("applied") == current.text:
                file.note_version(current)
                if is_newly_open:
                    self._live.tell(live)
            if moved is None:
                return False
        except ToolError:  # what is there now is no text of ours; applying will say why
            return False
        substance = _reportable_state(file)
        moved.write_to(file)
        live.attempted -= {hunk.hunk_id for hunk in file.hunks if hunk.state == "pending"}
        # The places of applied hunks can be found from any earlier text, best from the one they were applied to. They
        # are published only if the user changed them.
        # What a question shows is what a yes applies, so an open one's text is told whatever of it is new.
        is_open, small = not file.is_settled, len(file.base.text) < SMALL_TEXT
        is_told = (is_open and small) or ((is_open or by_user) and _reportable_state(file) != substance)
        return is_told or is_newly_open

    async def _read(self, path: Path) -> FileText | None:
        try:
            return await self._workspace.read_if_exists(path)
        except ToolError:
            return None

    def _others(self, live: LiveProposal, path: Path) -> list[LiveProposal]:
        return [self._live.find(each) for each in tuple(self._watched[path]) if each != live.proposal_id]

    def _listen(self, key: _Key, disk: Disk) -> "_Watched":
        path = key[1]
        stops = [self._workspace.overlay.watch(path, partial(self._schedule, key), disk=disk)]
        if self._staged_files is not None and disk != "no":
            stops.append(self._staged_files.follow(path, partial(self._keep_soon, path)))
        return _Watched(lambda: [stop() for stop in stops], disk)

    def question_ended(self) -> None:
        """No question is open any more: changes whose file is gone need not wait."""
        for key in tuple(self._without_file):
            self._look_again(key)

    def _unwatch(self, key: _Key) -> None:
        if (watched := self._watched[key[1]].pop(key[0], None)) is not None:
            watched.stop()
        if (due := self._timers.pop(key, None)) is not None:
            due.cancel()

    def _unwatch_oldest(self, path: Path) -> None:
        """Settled proposals for that path but the newest are left."""
        for proposal_id in tuple(self._watched[path])[:-MAX_SETTLED]:
            files = self._live.find(proposal_id).files_at(path)
            if all(file.is_settled for file in files):
                self._unwatch((proposal_id, path))

    def _schedule(self, key: _Key) -> None:
        if (due := self._timers.pop(key, None)) is not None:
            due.cancel()
        self._timers[key] = asyncio.get_running_loop().call_later(QUIET, self._start_following, key)

    def _look_again(self, key: _Key) -> None:
        """A file that comes and goes may do both between two looks at the disk, and then no event is told."""
        if key[0] in self._watched[key[1]]:
            self._schedule(key)

    def _start_following(self, key: _Key) -> None:
        del self._timers[key]
        due = self._due[key[0]]
        due.add(key[1])
        if len(due) > 1:
            return  # it will be looked at with those before it
        task = asyncio.create_task(self._logging_errors(self._follow(key[0])))
        self._follow_tasks.add(task)
        task.add_done_callback(self._follow_tasks.discard)

    async def _follow(self, proposal_id: str) -> None:
        async with self._live.lock:
            with self._looking():
                await self._look(proposal_id)

    @contextlib.contextmanager
    def _looking(self) -> Generator[None]:
        self._is_looking = True
        try:
            yield
        finally:
            self._is_looking = False

    async def _look(self, proposal_id: str) -> None:
        paths = {path for path in self._due.pop(proposal_id, ()) if proposal_id in self._watched[path]}
        if paths:
            live = self._live.find(proposal_id)
            await self._follow_discards(paths)
            files = [file for file in live.files if not paths.isdisjoint((file.base.path, file.new_path))]
            before = _taken_by_hand(files)
            await self._follow_rows(live, paths)
            await self.catch_up(live, files)
            after = _taken_by_hand(files)
            for path in {path for path, _ in before | after}:
                await self._follow_others(live, path, discarded=path in {path for path, _ in after - before})

    async def _follow_rows(self, live: LiveProposal, paths: set[Path]) -> None:
        rows = [row for row in live.rows if follows_hand(row) and not paths.isdisjoint(row.change.paths)]
        rows = [row for row in rows if not any(self._is_changed_by_us(live, row, path) for path in row.change.paths)]
        if self._rows is None or not rows:
            return
        found = await asyncio.to_thread(_look_at, self._rows, rows)
        if any([follow_row(row, standing, is_there=is_there) for row, standing, is_there in found]):
            self._live.publish(live)

    async def _follow_discards(self, paths: Iterable[Path]) -> None:
        """When the user discarded all that several proposals did to a file, or gave it all back, let them follow
        together."""
        for path in paths:
            edited = [(other, file) for other in reversed(self._live.at(path)) for file in other.files_at(path)]
            edited = [(other, file) for other, file in edited if _is_applied_edit(file)]
            current = await self._read(path) if len(edited) > 1 or path in self._discarded else None
            if current is None:
                continue
            if (discard := self._discarded.get(path)) is not None and discard.text == current.text:
                self._give_back(path, discard)
            elif edited and may_be_discarded(edited[0][1], current):
                await self._discard(path, edited, current)

    async def _discard(self, path: Path, edited: Sequence[tuple[LiveProposal, LiveFile]], current: FileText) -> None:
        previous = _known_text(edited[0][1], current)
        files = [file for _, file in edited]
        if previous.text == current.text:
            return
        found = await asyncio.to_thread(all_discarded, files, previous, current)
        if found is None:
            return
        left = [(live, replaced, file) for (live, file), replaced in zip(edited, found, strict=True)]
        self._discarded[path] = _Discard(previous.text, left)
        for live, replaced, file in left:
            live.files = [replaced if each is file else each for each in live.files]
        for live in dict.fromkeys(live.proposal_id for live, _, _ in left):
            self._live.publish(self._live.find(live))

    def _give_back(self, path: Path, discard: "_Discard") -> None:
        """The text is the one from before it was discarded: so are the hunks that nobody decided about since."""
        del self._discarded[path]
        for live, replaced, file in discard.files:
            is_same = replaced.hunks == [hunk for each in live.files if each is replaced for hunk in each.hunks]
            live.files = [file if each is replaced and is_same else each for each in live.files]
        for live in dict.fromkeys(live.proposal_id for live, _, _ in discard.files):
            self._live.publish(self._live.find(live))

    async def _follow_others(self, live: LiveProposal, path: Path, *, discarded: bool) -> None:
        """The user's hand took something away there (`discarded`: just now), or gave it back. That concerns those, too,
        that are not looked after any more, as there are so many newer ones; and edits on top of others."""
        for other in self._live.at(path):
            files = other.files_at(path)
            if other is not live and any(_disk(file) == "events" for file in files):
                await self.catch_up(other, files)
            current = await self._read(path) if discarded else None
            if current is not None:
                await self._drop_discarded(other, files, current)

    async def _drop_discarded(self, live: LiveProposal, files: Sequence[LiveFile], current: FileText) -> None:
        moved = [(file, await asyncio.to_thread(without_discarded, file, current)) for file in files]
        for file, found in moved:
            if found is not None:
                found.write_to(file)
        if any(found is not None for _, found in moved):
            self._live.publish(live)

    def _keep_soon(self, path: Path, staging: Staging) -> None:
        """All that is told of in one moment is looked at together: `git add -A` stages many files."""
        self._staged[path] = staging
        if len(self._staged) == 1:
            task = asyncio.create_task(self._logging_errors(self._keep_staged()))
            self._follow_tasks.add(task)
            task.add_done_callback(self._follow_tasks.discard)

    async def _keep_staged(self) -> None:
        """Keep what waits to be reviewed of the files that the user has staged."""
        async with self._live.lock:
            staged, self._staged = self._staged, {}
            changed: dict[str, LiveProposal] = {}
            for path, staging in staged.items():
                for live in self._live.at(path):
                    if await self._is_kept(live, path, staging):
                        changed[live.proposal_id] = live
            for live in changed.values():
                self._live.publish(live)

    async def _is_kept(self, live: LiveProposal, path: Path, staging: Staging) -> bool:
        """Returns whether anything of it was marked as reviewed."""
        files = [file for file in live.files if file.has_path(path) and _disk(file) in ("looks", "events")]
        rows = [row for row in live.rows if path in row.change.paths and follows_hand(row)]
        with contextlib.suppress(ToolError, OSError):
            await self.catch_up(live, files)
            text = await self._workspace.read_if_exists(path) if files else None
            if text is not None and text.unsaved:
                return False
            found = Look(self._workspace, path, staging)
            kept = [file for file in files if await asyncio.to_thread(keep_staged, file, found, self._taken)]
            rows = [row for row in rows if row.row_id not in self._taken]
            return any([*kept, *(keep_staged_row(row, found) for row in rows)])
        return False

    async def _logging_errors(self, update: Awaitable[None]) -> None:
        try:
            await update
        except Exception:
            log.exception("hunks could not be moved")


def _look_at(planner: RowPlanner, rows: Sequence[LiveRow]) -> list[tuple[LiveRow, Standing, bool]]:
    """Each row with what is at its paths, and whether anything is. Blocks."""
    return [(row, planner.standing(row), any(map(os.path.lexists, row.change.paths))) for row in rows]


def _watched_paths(proposal: Proposal) -> dict[str, tuple[Disk | None, int | None]]:
    """Path → how it is to be watched, and the version of the document that its hunks are of."""
    wanted: dict[str, tuple[Disk | None, int | None]] = {}
    for file in proposal.files:
        disk = _disk(file)
        wanted |= {path: (disk, file.base_version) for path in (file.path, file.new_path) if path is not None}
    for row in proposal.rows:
        for path in (row.path, row.new_path):
            if path is not None and wanted.get(path, (None, None))[0] in (None, "no"):
                disk, version = wanted.get(path, (None, None))
                wanted[path] = ("events" if follows_hand(row) else disk, version)
    return wanted


def _disk(file: ProposedFile | LiveFile) -> Disk | None:
    """The way to watch that file on disk; None: neither there nor in editors."""
    states = {hunk.state for hunk in file.hunks}
    if not states.isdisjoint(_OPEN):
        return "looks"
    if any((hunk.state == "applied" and not hunk.reviewed) or hunk.reason in BY_HAND for hunk in file.hunks):
        return "events"
    return "no" if file.change == "edit" and "applied" in states else None


def _is_applied_edit(file: LiveFile) -> bool:
    return file.change == "edit" and any(hunk.state == "applied" for hunk in file.hunks)


def _known_text(file: LiveFile, current: FileText) -> FileText:
    """The text that the file had when its hunks were last looked at."""
    text = file.text_with("applied")
    return current.with_text(text if file.deferred is None else file.deferred.applied_to(text))


def _taken_by_hand(files: Iterable[LiveFile]) -> set[tuple[Path, str]]:
    """The hunks that the user's hand took away, with their paths."""
    return {(file.base.path, hunk.hunk_id) for file in files for hunk in file.hunks if hunk.reason in BY_HAND}


def _reportable_state(file: LiveFile) -> object:
    """What must be told: of open hunks also where they are. The text around them need not: a version holds the whole
    of it, and of a big file that would be on record after every pause in typing."""
    return [(hunk.hunk_id, hunk.state, hunk.new_text, file.is_settled or hunk.base_lines.start) for hunk in file.hunks]


def _is_newly_open(file: LiveFile, current: FileText) -> bool:
    """Whether an editor opened the file since its hunks were last moved, and some of them wait. Until then nobody had
    to be told of every place; from then on the editor moves them along with the text."""
    if current.version is None or not file.waits:
        return False
    return file.base.version is None or current.version < file.base.version


def _begin_deferring(files: Sequence[LiveFile], current: FileText) -> None:
    """From now on, defer edits of the settled files whose text is the current one."""
    for file in files:
        fits = file.change == "edit" and file.is_settled
        if file.deferred is None and fits and file.text_with("applied") == current.text:
            file.deferred = DeferredEdits(current.sha256, file.applied_ranges(), current.version)


def _edits_between(old: FileText, new: FileText) -> list[Edit]:
    return line_edits(split_lines(old.text), split_lines(new.text))


def _defer(files: Sequence[LiveFile], edits: Sequence[Edit], old: FileText, new: FileText) -> bool:
    """Record the edits; False where they meet a hunk, or where the hunks are in `old` is unknown."""
    records = [file.deferred for file in files if file.deferred is not None and file.deferred.sha256 == old.sha256]
    ranges = [lines for record in records for lines in record.ranges]
    if len(records) < len(files) or any(edit.meets(*lines) for lines in ranges for edit in edits):
        return False
    for record in records:
        record.add(edits, new)
    return True
