"""One decision, carried out as a whole or not at all: text and rows, by the editors, on disk, and in repositories.

    plan      Each file and row is compared with the workspace. If one does not fit, that one is in conflict and says
              why, the others are open again and name it. Undo leaves it out instead, and says so.
    note      The proposal, with what is `accepted` or `undoing`, is in the session's journal, with the former texts of
              files; the audit log has its entries. All of it is durable before anything is changed.
    prepare   Repositories: objects are written and git's own locks are taken. Other gits wait; none sees a change.
    editors   Files that are open in an editor are changed there. If one refuses, the others are changed back.
    files     All else is written beside its place, then renamed into it; if one fails, all are put back.
    git       The last of the renames: locks to what they lock, the index, git's small files, logs, refs, HEAD. If one
              fails, these and the files are put back.
    done      The proposal, with what is `applied` or `reverted`, is in the journal.

If a kill or a loss of power interrupts this, `recovery.py` ends it when the session is next opened, by the note and by
what the workspace has. If nothing on disk was changed, by us or by an editor that saved, everything is open again, and
git's locks are removed; otherwise the rest follows, at the next opening if the disk is full at this one. Git's part is
the last, and needs its files on disk, so no commit is without them. If an editor left its text unsaved, the change may
be in that text alone: that file is not finished, and says so.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from amanu.core.tool import ToolError
from amanu.proposals.decisions import unmet_need
from amanu.proposals.editors import take_back_in_editor, write_in_editor
from amanu.proposals.model import FILE_CHANGED, STATES_BEFORE, LiveFile, LiveProposal
from amanu.proposals.row_plan import DENIED, Commit, RowPlan, RowPlanner, folders_made_for
from amanu.proposals.rows import LiveRow
from amanu.proposals.text_plan import TextPlan, plan_text
from amanu.workspace.disk import BaseChanged, NotWritten
from amanu.workspace.disk_changes import DiskChange, make_all, remove_empty_folders
from amanu.workspace.git.apply import Prepared
from amanu.workspace.overlay import Buffer, Editor
from amanu.workspace.shown_files import ShownFiles
from amanu.workspace.workspace import Workspace

SavePreimage = Callable[[str, Path, bytes | None, int | None], Awaitable[None]]
"""(turn id, path, bytes, permission bits); durable when it returns."""
OPENED = "The file was opened and changed in an editor at that moment. Try again."


class _Refused(Exception):
    """Raised for the file or row that cannot be changed; `str()` says why."""

    def __init__(self, change: LiveFile | LiveRow, why: str) -> None:
        super().__init__(why)
        self.change = change


@dataclass(frozen=True)
class _Plan:
    texts: Sequence[TextPlan]
    rows: Sequence[RowPlan]
    left_out: bool = False
    """Whether rows that cannot be undone are no part of it."""

    @property
    def on_disk(self) -> Sequence[TextPlan | RowPlan]:
        return [*(text for text in self.texts if not text.is_written_by_editor), *self.rows]

    @property
    def changed_paths(self) -> Sequence[Path]:
        rows = [plan.row.change for plan in self.rows if plan.row.change.kind != "git"]
        return [path for change in (*self.texts, *rows) for path in change.paths]


@dataclass(frozen=True)
class Transactions:
    """Carries out the decisions of one session. `durable` returns once the decision is in the journal and the audit
    log; `publish` tells of a new version of the proposal."""

    workspace: Workspace
    rows: RowPlanner | None
    save_preimage: SavePreimage
    durable: Callable[[], Awaitable[None]]
    publish: Callable[[LiveProposal], object]

    async def carry_out(self, live: LiveProposal, shown_files: ShownFiles) -> Sequence[Path]:
        """Carry out what is `accepted` or `undoing`; all of it is settled when this returns. Returns the paths that
        changed. `shown_files`: of the agent whose edits they are. Raises `AmanuError` if the decision could not be
        recorded; then nothing was changed."""
        plan = await self._made(live)
        while plan is None and live.interrupted:
            plan = await self._made(live)
        if plan is None:
            return []
        for change in live.interrupted:
            change.settle(None)
        for text in plan.texts:
            self._note_shown(text, shown_files)
        return plan.changed_paths

    async def _made(self, live: LiveProposal) -> _Plan | None:
        """Make all changes. Returns None if one does not fit or cannot be made: then none is made. Of an undo, those
        that do fit stay `undoing` if another does not."""
        try:
            plan = await self._plan(live)
        except _Refused as refused:
            self._refuse(live, refused, goes_on=all(change.is_undone for change in live.interrupted))
            return None
        try:
            await self._note(live, plan)
            async with self._prepared(plan) as repositories, self._written_by_editors(plan):
                await self._change_files(plan, repositories)
        except _Refused as refused:
            self._refuse(live, refused, goes_on=False)
            return None
        return plan

    async def _plan(self, live: LiveProposal) -> _Plan:
        """The plans of all that is not yet as it should be. Rows that cannot be undone are left out and say why. Raises
        `_Refused`."""
        texts: list[TextPlan] = []
        for file in live.files:
            if not file.is_interrupted:
                continue
            try:
                plan = await plan_text(self.workspace, file)
            except ToolError as error:
                raise _Refused(file, str(error)) from None
            if plan is None:
                file.settle(None)
                continue
            if self._is_denied(plan):
                raise _Refused(file, DENIED)
            texts.append(plan)
        rows = [row for row in live.rows if row.is_interrupted]
        if self.rows is None or not rows:
            return _Plan(texts, [])
        gone = {
            text.old_version.path: text.new_version.path if text.moves else None
            for text in texts
            if text.moves or text.new_version.text is None
        }
        fitting: list[RowPlan] = []
        left_out = False
        for row_plan in await self.rows.plans(rows, gone):
            row = row_plan.row
            fault = row_plan.fault or unmet_need(live, row, self.workspace.display_path)
            if not fault:
                fitting.append(row_plan)
            elif row.state == "undoing":
                row.settle(fault)
                left_out = True
            elif await asyncio.to_thread(self.rows.standing, row) == "after":
                row.settle(None)
            else:
                raise _Refused(row, fault)
        return _Plan(texts, fitting, left_out)

    def _is_denied(self, text: TextPlan) -> bool:
        """Whether a rule denies the change. Rules are not asked about undo."""
        if self.rows is None or not any(hunk.state == "accepted" for hunk in text.file.hunks):
            return False
        deleted = text.old_version.path if text.moves or text.new_version.text is None else None
        return any(self.rows.is_denied(path, deletes=path == deleted) for path in text.paths)

    async def _note(self, live: LiveProposal, plan: _Plan) -> None:
        if plan.left_out:  # a kill must not have them undone
            self.publish(live)
        for text in plan.texts:
            mode = None if text.current is None else text.current.mode
            await self.save_preimage(live.turn_id, text.old_version.path, text.old_bytes, mode)
        if plan.rows:
            await self.durable()

    @asynccontextmanager
    async def _prepared(self, plan: _Plan) -> AsyncGenerator[Sequence[tuple[RowPlan, Prepared]]]:
        """A context in which the repositories are locked and can be changed. Raises `_Refused`."""
        with ExitStack() as stack:

            def prepare(planner: RowPlanner, row: LiveRow) -> Prepared:
                try:
                    return stack.enter_context(planner.prepared(row))
                except ToolError as error:
                    raise _Refused(row, str(error)) from None

            rows = [each for each in plan.rows if each.row.change.kind == "git"]
            try:
                yield [(each, await asyncio.to_thread(prepare, self.rows, each.row)) for each in rows if self.rows]
            finally:
                await asyncio.to_thread(stack.close)

    @asynccontextmanager
    async def _written_by_editors(self, plan: _Plan) -> AsyncGenerator[None]:
        """A context in which editors have made their changes; if it fails, they take them back. If one does not, its
        change counts as applied, so that the user can undo it. Raises `_Refused`."""
        written: list[TextPlan] = []
        try:
            for text in plan.texts:
                if text.is_written_by_editor:
                    try:
                        await write_in_editor(self.workspace, text)
                    except ToolError as error:
                        raise _Refused(text.file, str(error)) from None
                    written.append(text)
            yield
        except _Refused:
            for text in reversed(written):
                if not await take_back_in_editor(self.workspace, text):
                    text.file.settle(None)
            raise

    def _check_editors(self, plan: _Plan) -> None:
        """Raise `_Refused` for a file that was opened and changed in an editor meanwhile, and for a commit of a file
        that an editor has not saved."""
        unsaved: dict[Path, str] = {}
        for text in plan.texts:
            path = text.old_version.path
            if not text.is_written_by_editor and any(buffer.typed for _, buffer in self._opened_since(text)):
                raise _Refused(text.file, OPENED)
            if text.is_written_by_editor and text.file.unsaved:
                unsaved[path] = self.workspace.display_path(path)
        for each in plan.rows:
            for path in each.row.change.committed if each.row.state == "accepted" else ():
                if path in unsaved:
                    raise _Refused(each.row, f"{unsaved[path]} is not saved in its editor. Save it, then try again.")

    def _opened_since(self, text: TextPlan) -> Sequence[tuple[Editor, Buffer]]:
        is_known = text.current is not None and text.current.from_buffer
        return [] if is_known else self.workspace.overlay.documents(text.old_version.path)

    async def _change_files(self, plan: _Plan, repositories: Sequence[tuple[RowPlan, Prepared]]) -> None:
        changes: list[tuple[DiskChange, TextPlan | RowPlan]] = [
            (change, each) for each in plan.on_disk for change in each.changes
        ]
        changes += [(Commit(each.row.change.path / ".git", ready), each) for each, ready in repositories]
        self._check_editors(plan)
        try:
            await asyncio.to_thread(make_all, self.workspace.guard, [change for change, _ in changes])
        except (BaseChanged, NotWritten) as error:
            failed = next(each for change, each in changes if change.path == error.path)
            why = FILE_CHANGED if isinstance(error, BaseChanged) else str(error)
            raise _Refused(failed.file if isinstance(failed, TextPlan) else failed.row, why) from None
        for text in plan.texts:
            if not text.is_written_by_editor:
                text.file.unsaved = False
        undone = [each.row for each in plan.rows if each.row.state == "undoing"]
        await asyncio.to_thread(remove_empty_folders, self.workspace.guard, folders_made_for(undone))

    def _refuse(self, live: LiveProposal, refused: _Refused, *, goes_on: bool) -> None:
        """Settle what does not fit. `goes_on`: text stands or falls together, but the rest goes on without it."""
        failed = refused.change
        path = failed.change.path if isinstance(failed, LiveRow) else failed.path_with(STATES_BEFORE)
        failed.settle(str(refused))
        reason = f"{self.workspace.display_path(path)} could not be changed, so nothing else was. {refused}"
        for change in live.interrupted:
            if not (goes_on and (isinstance(change, LiveRow) or isinstance(failed, LiveRow))):
                change.leave_open(reason)

    def _note_shown(self, plan: TextPlan, shown_files: ShownFiles) -> None:
        old_path, new_path = plan.old_version.path, plan.new_version.path
        if old_path == self.workspace.guard.memory:  # told with the next prompt; no tool reads it again
            return
        shown_files.edited(old_path, plan.current, None if plan.moves else plan.new_sha256)
        if plan.moves:
            shown_files.edited(new_path, None, plan.new_sha256)
