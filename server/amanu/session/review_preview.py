"""The edits of a session that wait, file by file, as they stand now: for a client to show before the user decides."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from amanu.proposals.model import SMALL_TEXT, FileVersion, LiveFile, LiveProposal
from amanu.proposals.places import OPEN_STATES
from amanu.session.core import SessionCore
from amanu.session.review import SessionEdits
from amanu.text.display import one_line
from amanu.workspace.diff import unified, unified_lines
from amanu.workspace.hunks import line_counts
from amanu.workspace.text_file import split_lines
from amanu_protocol import requests as r
from amanu_protocol.items import PRESENT_STATES, PROPOSED_STATES, Hunk, HunkState, Proposal

CONTEXT = 3
"""Lines around a hunk."""
_WAITING_STATES: Collection[HunkState] = (*OPEN_STATES, "applied")


@dataclass(frozen=True)
class _Waiting:
    """A file with hunks that wait."""

    proposal_id: str
    version: int
    file: LiveFile
    hunks: Sequence[Hunk]
    """The hunks that wait and are asked for, with their places."""

    @property
    def characters(self) -> int:
        return len(self.file.base.text) + len(self.file.text)


class SessionPreview:
    """Raises `AmanuError`."""

    def __init__(self, core: SessionCore, edits: SessionEdits) -> None:
        self._proposals = core.proposals
        self._access = core.access
        self._relative = core.workspace.relative
        self._edits = edits

    async def preview(self, params: r.ProposalPreviewParams) -> r.ProposalPreviewResult:
        """See `amanu/proposal/preview`."""
        waiting: list[_Waiting] = []
        for proposal_id, selection in self._edits.select(params.scope, _WAITING_STATES).items():
            proposal = self._edits.proposal(proposal_id)
            ids = set(selection.hunk_ids)
            if any(hunk.waits and hunk.hunk_id in ids for file in proposal.files for hunk in file.hunks):
                waiting += await self._waiting(proposal, ids)
        if sum(each.characters for each in waiting) < SMALL_TEXT:
            files = [self._previewed(each, texts=params.texts) for each in waiting]
        else:
            files = await asyncio.to_thread(lambda: [self._previewed(each, texts=params.texts) for each in waiting])
        return r.ProposalPreviewResult(files=files)

    async def _waiting(self, proposal: Proposal, ids: Collection[str]) -> list[_Waiting]:
        """The files of the proposal in which some of these hunks wait, as they are now; in a session that another
        process has open, as they were last seen."""
        if self._access.writable:
            version, files = await self._proposals.moved_copies(proposal.proposal_id, ids)
        else:
            version, files = proposal.version, LiveProposal.load(proposal).files
        found: list[_Waiting] = []
        for file in files:
            if hunks := [hunk for hunk in file.placed_hunks if hunk.waits and hunk.hunk_id in ids]:
                found.append(_Waiting(proposal.proposal_id, version, file, hunks))
        return found

    def _previewed(self, waiting: _Waiting, *, texts: bool) -> r.PreviewedFile:
        file = waiting.file
        wire = file.wire()
        present, proposed = file.version_with(PRESENT_STATES), file.version_with(PROPOSED_STATES)
        lines = split_lines(present.text or "")
        added, removed = file.renamed_line_counts if file.change == "rename" else line_counts(waiting.hunks)
        return r.PreviewedFile(
            proposal_id=waiting.proposal_id,
            version=waiting.version,
            path=wire.present_path,
            change=file.change,
            new_path=wire.new_path,
            title=_title(file),
            added=added,
            removed=removed,
            diff=self._diff(file, present, proposed),
            text=(proposed.text or "") if texts else None,
            base=file.version_with(()).text if texts else None,
            hunks=[_previewed_hunk(hunk, lines) for hunk in waiting.hunks],
        )

    def _diff(self, file: LiveFile, present: FileVersion, proposed: FileVersion) -> str:
        old_path, new_path = self._relative(present.path), self._relative(proposed.path)
        open_hunks = [hunk for hunk in file.placed_hunks if hunk.state in OPEN_STATES]
        if file.change == "edit" and not any(hunk.edited_by_user for hunk in open_hunks):
            replaced = [(hunk.lines.start, hunk.lines.end, hunk.new_text) for hunk in open_hunks]
            return unified_lines(new_path, split_lines(present.text or ""), replaced)
        head = f"rename from {old_path}\nrename to {new_path}\n" if old_path != new_path else ""
        return head + unified(new_path, present.text or "", proposed.text or "")


def _previewed_hunk(hunk: Hunk, lines: Sequence[str]) -> r.PreviewedHunk:
    """`lines`: of the file as it is."""
    before = lines[max(0, hunk.lines.start - CONTEXT) : hunk.lines.start]
    after = lines[hunk.lines.end : hunk.lines.end + CONTEXT]
    return r.PreviewedHunk(hunk=hunk, context_before=_without_ends(before), context_after=_without_ends(after))


def _without_ends(lines: Sequence[str]) -> list[str]:
    return [line.rstrip("\r\n") for line in lines]


def _title(file: LiveFile) -> str:
    name = file.base.path.name
    match file.change:
        case "create":
            return one_line(f"{name} (new file)")
        case "delete":
            return one_line(f"{name} (deleted)")
        case "rename" if file.new_path is not None:
            return one_line(f"{name} → {file.new_path.name}")
        case _:
            return one_line(name)
