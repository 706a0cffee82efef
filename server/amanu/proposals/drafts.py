"""The proposals that are drafts: the session's tools and commands see what is still open in them, whichever turn they
are from."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from amanu.core.tool import CallContext, ToolError
from amanu.proposals.live_proposals import LiveProposals
from amanu.proposals.model import FileEdit, LiveFile, LiveProposal, TakenOver, missing_file
from amanu.proposals.row_plan import RowPlanner
from amanu.proposals.rows import WITHDRAWN, LiveRow, RowChange
from amanu.proposals.tracking import FileTracking
from amanu.workspace.encodings import decode
from amanu.workspace.text_file import FileText
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import DraftRun, Proposal

_MAX_RUNS = 5
"""Commands kept with a draft, each with its last run."""


class Drafts:
    def __init__(
        self, workspace: Workspace, live: LiveProposals, tracking: FileTracking, rows: RowPlanner | None
    ) -> None:
        self._workspace = workspace
        self._rows = rows
        self._live = live
        self._tracking = tracking

    @property
    def is_open(self) -> bool:
        """Whether something drafted is not decided yet."""
        return any(live.is_open_draft for live in self._live)

    def has(self, path: Path) -> bool:
        """Whether that file has drafted changes that are not decided yet."""
        return self._find(path) is not None

    async def draft(self, path: Path) -> FileText | None:
        """See `workspace.Drafts`."""
        await self.follow(path)
        found = self._find(path)
        return await self._in_tree(path) if found is None else found[1].drafted_file(path)

    async def drafts(self) -> list[FileText]:
        """See `workspace.Drafts`."""
        paths = [path for live in self._live if live.draft for file in live.files for path in file.open_paths]
        return [file for path in dict.fromkeys(paths) if (file := await self.draft(path)) is not None]

    def open_rows(self) -> list[LiveRow]:
        """The open rows of all drafts. The caller must not change them."""
        return [row for live in self._live if live.draft for row in live.rows if row.is_open]

    def tree_around(self, path: Path) -> RowChange | None:
        """The drafted new folder that contains the path; None if there is none."""
        trees = (row.change for row in self.open_rows() if row.change.is_tree)
        return next((tree for tree in trees if tree.path in path.parents), None)

    def put_rows(self, live: LiveProposal, changes: Sequence[RowChange], call: CallContext) -> list[LiveProposal]:
        """Let that call add or change rows of `live`. A drafted row goes into the draft that has this row already,
        else into the one that has the text of that file. Returns the proposal of each. The caller holds the lock."""
        drafts = [other for other in self._live if other.draft] if live.draft else []
        known = {row.change.key: (each, row) for each in (*drafts, live) for row in each.rows if row.is_open}
        owners: list[LiveProposal] = []
        for change in changes:
            owner, row = known.get(change.key, (None, None))
            if owner is None:
                found = self._find(change.path) if live.draft else None
                owner = live if found is None else found[0]
            owner.put_row(row, change, call.turn_id, call.call_id)
            owners.append(owner)
        return owners

    def drop_bits(self, path: Path) -> None:
        """Drop the drafted executable bits of a file that is deleted or moved. The caller holds the lock."""
        for live in self._live:
            row = live.row_at(("mode", path)) if live.draft else None
            if row is not None:
                live.rows = [each for each in live.rows if each is not row]
                self._live.publish(live)

    async def drop_rows(self, row_ids: Collection[str], turn_id: str) -> None:
        """Drop these open rows, which a command of that turn has undone. Those that an earlier turn drafted are
        only withdrawn, so that a rewind can bring them back."""
        async with self._live.lock:
            for live in self._live:
                undone = [row for row in live.rows if row.row_id in row_ids and row.is_open]
                own = [
                    row.row_id for row in undone if {row.turn_id, *(each.turn_id for each in row.earlier)} == {turn_id}
                ]
                live.rows = [row for row in live.rows if row.row_id not in own]
                for row in undone:
                    if row.row_id not in own:
                        row.withdraw(turn_id)
                if undone:
                    self._live.publish(live)

    def drop_text(self, paths: Collection[Path]) -> None:
        """Drop the drafted text of these files: something that is not text takes its place. The caller holds the
        lock."""
        for path in paths:
            if (found := self._find(path)) is not None:
                live, file = found
                file.drop_open()
                if not file.hunks:
                    live.files.remove(file)
                self._live.publish(live)

    async def rewind_rows(self, turn_ids: Collection[str], reason: str) -> None:
        """Take back what these turns drafted besides text, and bring back what they overwrote or undid. A row without
        an earlier version is rejected for that reason."""
        async with self._live.lock:
            for proposal in list(self._live.stored.values()):
                if proposal.draft and any(row.reason == WITHDRAWN for row in proposal.rows):
                    self._live.find(proposal.proposal_id)
            for live in self._live:
                rows = [
                    row
                    for row in live.rows
                    if live.draft and (row.is_open or row.reason == WITHDRAWN) and row.turn_id in turn_ids
                ]
                for row in rows:
                    if not row.rewind(turn_ids):
                        row.state, row.reason, row.reviewed = "rejected", reason, True
                if rows:
                    self._live.publish(live)

    async def note_run(self, run: DraftRun) -> None:
        """Note that a command ran on the draft as it is now."""
        async with self._live.lock:
            for live in self._live:
                if live.is_open_draft:
                    live.add_run(run, _MAX_RUNS)
                    self._live.tell(live)

    async def begin_review(self, proposal_id: str, call_id: str) -> Proposal:
        """That call asks the user about the whole draft; clients show it there."""
        async with self._live.lock:
            live = self._live.find(proposal_id)
            if call_id not in live.tool_call_ids:
                live.tool_call_ids.append(call_id)
                return self._live.publish(live)
            return live.wire()

    async def follow(self, path: Path) -> None:
        """Move that file's drafted changes along with what the user did there."""
        if self._find(path) is not None:
            async with self._live.lock:
                if (found := self._find(path)) is not None:
                    await self._move_along(*found)

    async def follow_earlier(self, live: LiveProposal, edits: Sequence[FileEdit]) -> Mapping[Path, FileText]:
        """Move the changes that earlier drafts have in those files along with what the user did there: `live` takes
        them over (`carried_over`). Returns the files as they are now. The caller holds the lock. Raises `ToolError`."""
        texts: dict[Path, FileText] = {}
        for edit in edits:
            found = self._find(edit.base.path)
            if found is not None and found[0] is not live:
                texts |= await self._move_along(*found)
                if not found[1].is_open:
                    raise changed_meanwhile(self._workspace, edit.base.path)
        return texts

    async def give_back(self, turn_ids: Collection[str], reason: str) -> None:
        """The drafts of those turns are to be rejected: give what they took over back to the earlier ones, and reject
        what they made of it. Files in which something was decided meanwhile stay as they are."""
        async with self._live.lock:
            for live in reversed([live for live in self._live if live.draft and live.turn_id in turn_ids]):
                for taken in reversed(live.taken_over):
                    file = next((file for file in live.files if file.has_path(taken.path)), None)
                    if file is not None and file.is_undecided and await self._give_back(taken):
                        for hunk in file.hunks:
                            file.update_hunk(hunk.hunk_id, state="rejected", reason=reason, reviewed=True)
                live.taken_over.clear()
                self._live.publish(live)

    async def _give_back(self, taken: TakenOver) -> bool:
        earlier = self._live.find(taken.proposal_id)
        current = next((file for file in earlier.files if file.has_path(taken.file.base.path)), None)
        if current is None:
            earlier.files.append(taken.file)
        elif not current.take_back(taken.file):
            return False
        await self._tracking.catch_up(earlier, [current or taken.file])
        self._live.publish(earlier)
        return True

    async def carried_over(self, live: LiveProposal, path: Path, texts: Mapping[Path, FileText]) -> LiveFile | None:
        """The changes that an earlier draft still has open in that file, taken over into `live`; None if there are
        none. It does not matter that the rest is decided: they start from the file as it is, which is in `texts` as it
        was when the draft was moved along. What the user types after that moves them once more. Neither is published
        yet."""
        found = self._find(path) if live.draft else None
        if found is None:
            return None
        earlier, source = found
        base_path = source.base.path
        missing = replace(missing_file(base_path), encoding=source.base.encoding)
        base = texts.get(base_path) or await self._workspace.read_if_exists(base_path) or missing
        text = None if source.delete else source.proposed_file(base_path).text
        calls = sorted(frozenset[str]().union(*source.owners.values())) or earlier.tool_call_ids
        file = LiveFile(base, base.text)
        explanation = " ".join(dict.fromkeys(filter(None, source.explanations.values())))
        await live.propose(file, FileEdit(base, text, source.new_path, explanation), calls[-1])
        live.taken_over.append(TakenOver(earlier.proposal_id, replace(source), base_path))
        source.drop_open()
        if not source.hunks:
            earlier.files.remove(source)
        live.tool_call_ids += [call for call in calls[-1:] if call not in live.tool_call_ids]
        return file

    async def _in_tree(self, path: Path) -> FileText | None:
        """The file in the drafted new folder that contains the path; None if there is none. Raises `ToolError`."""
        tree = self.tree_around(path)
        if tree is None or self._rows is None:
            return None
        stored = await asyncio.to_thread(self._rows.file_in_tree, tree, path)
        if stored is None:
            return None
        text, encoding = await asyncio.to_thread(decode, stored.data, path)
        file = replace(missing_file(path), text=text, encoding=encoding, mode=stored.mode)
        return LiveFile(file, text).drafted_file(path)

    def _find(self, path: Path) -> tuple[LiveProposal, LiveFile] | None:
        """The draft with open changes in the file at that path, or in one that it moves there or away from there."""
        for live in reversed(self._live):
            for file in live.files if live.draft else ():
                if file.is_open and file.has_path(path):
                    return live, file
        return None

    async def _move_along(self, live: LiveProposal, file: LiveFile) -> Mapping[Path, FileText]:
        """Move that file's drafted changes along with what the user did there. Returns its text, by path. The caller
        holds the lock."""
        return await self._tracking.catch_up(live, [file])


def changed_meanwhile(workspace: Workspace, path: Path) -> ToolError:
    return ToolError(f"{workspace.display_path(path)} changed at the same moment. Read it and try again.")


def takes_draft(live: LiveProposal, call: CallContext, paths: Sequence[Path]) -> bool:
    """Whether edits of those files can join that draft: it is from the same turn, and none of its changes in them is
    decided."""
    theirs = [file for file in live.files if any(map(file.has_path, paths))]
    return live.draft and live.turn_id == call.turn_id and all(file.is_undecided for file in theirs)
