"""Files change while proposals are open, by the user or another tool: hunks move along, or are in conflict.

Heard of by `Overlay.watch`, looked at when it has been quiet for a moment.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.deferred_edits import DeferredEdits
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
from amanu.proposals.reanchor import Edit, line_edits, reanchor
from amanu.proposals.text_plan import target_made
from amanu.workspace.text_file import FileText, split_lines
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import HunkState, Proposal

QUIET = 0.3
"""Seconds without a change after which open hunks are moved to where the user's typing left their lines."""
MAX_SETTLED = 10
"""Proposals for one file whose applied hunks are looked after; older ones are found again when they are undone."""
_OPEN: Collection[HunkState] = (*UNDECIDED, "conflicted")

log = logging.getLogger(__name__)

_Key = tuple[str, Path]


@dataclass(frozen=True)
class _Watched:
    stop: Callable[[], None]
    disk: bool
    """Of the file on disk is heard, too."""


class FileTracking:
    def __init__(self, workspace: Workspace, live: LiveProposals) -> None:
        self._workspace = workspace
        self._live = live
        live.listeners.append(self.watch)
        self._watched: defaultdict[Path, dict[str, _Watched]] = defaultdict(dict)
        """Path → proposals that have the file, oldest first. One proposal may have hundreds of files."""
        self._timers: dict[_Key, asyncio.TimerHandle] = {}
        self._follow_tasks: set[asyncio.Task[None]] = set()

    def watch(self, proposal: Proposal) -> None:
        """Hear of changes of its files, as long as something of it is open or applied there. The disk is listened to
        only where something is open: it costs a waking daemon, and where applied hunks went to is found again when
        they are undone."""
        for file in proposal.files:
            states = {hunk.state for hunk in file.hunks}
            is_open = not states.isdisjoint(_OPEN)
            followed = is_open or (file.change == "edit" and "applied" in states)
            for path in filter(None, (file.path, file.new_path)):
                key = (proposal.proposal_id, Path(path))
                if followed:
                    self._watch_file(key, file.base_version, disk=is_open)
                else:
                    self._unwatch(key)

    def _watch_file(self, key: _Key, version: int | None, *, disk: bool) -> None:
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
            has_news = file.displace(await self._displacement(live, file, current))
        if has_news:
            live.attempted -= {hunk.hunk_id for hunk in file.hunks if hunk.state == "pending"}
            self._look_again((live.proposal_id, file.base.path))
        if file.change != "edit" or current is None:
            return has_news
        return await self._move_hunks(live, file, current, by_user=by_user) or has_news

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
        by_user = by_user and not (file.loaded and file.is_settled)
        file.loaded = False
        if file.deferred is not None and file.deferred.sha256 == current.sha256 and not is_newly_open:
            return False
        try:
            if len(file.base.text) + len(current.text) < SMALL_TEXT:
                moved = reanchor(file, current, by_user=by_user)
            else:
                moved = await asyncio.to_thread(reanchor, file, current, by_user=by_user)
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

    def _listen(self, key: _Key, disk: bool) -> "_Watched":
        return _Watched(self._workspace.overlay.watch(key[1], partial(self._schedule, key), disk=disk), disk)

    def _unwatch(self, key: _Key) -> None:
        if (watched := self._watched[key[1]].pop(key[0], None)) is not None:
            watched.stop()
        if (due := self._timers.pop(key, None)) is not None:
            due.cancel()

    def _unwatch_oldest(self, path: Path) -> None:
        """Settled proposals for that path but the newest are left."""
        for proposal_id in tuple(self._watched[path])[:-MAX_SETTLED]:
            if all(file.is_settled for file in self._live.find(proposal_id).files_at(path)):
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
        task = asyncio.create_task(self._logging_errors(self._follow(key)))
        self._follow_tasks.add(task)
        task.add_done_callback(self._follow_tasks.discard)

    async def _follow(self, key: _Key) -> None:
        async with self._live.lock:
            if key[0] in self._watched[key[1]]:
                live = self._live.find(key[0])
                await self.catch_up(live, [file for file in live.files if file.has_path(key[1])])

    async def _logging_errors(self, update: Awaitable[None]) -> None:
        try:
            await update
        except Exception:
            log.exception("hunks could not be moved")


def _reportable_state(file: LiveFile) -> object:
    """What must be told: of open hunks also where they are. The text around them need not: a version holds the whole
    of it, and of a big file that would be on record after every pause in typing."""
    return [(hunk.hunk_id, hunk.state, hunk.new_text, file.is_settled or hunk.old_start) for hunk in file.hunks]


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
            file.deferred = DeferredEdits(current.sha256, file.applied_ranges())


def _edits_between(old: FileText, new: FileText) -> list[Edit]:
    return line_edits(split_lines(old.text), split_lines(new.text))


def _defer(files: Sequence[LiveFile], edits: Sequence[Edit], old: FileText, new: FileText) -> bool:
    """Record the edits; False where they meet a hunk, or where the hunks are in `old` is unknown."""
    records = [file.deferred for file in files if file.deferred is not None and file.deferred.sha256 == old.sha256]
    ranges = [lines for record in records for lines in record.ranges]
    if len(records) < len(files) or any(edit.meets(*lines) for lines in ranges for edit in edits):
        return False
    for record in records:
        record.add(edits, split_lines(new.text), new.sha256)
    return True
