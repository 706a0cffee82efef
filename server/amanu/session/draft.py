"""The end of a session's draft: what no proposal shows of it comes into the workspace once all of it was accepted, or
is forgotten."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amanu.session.core import SessionCore
from amanu.text.display import one_line
from amanu.tools.shell.layer_draft import LayerDraft
from amanu.tools.shell.report import file_list
from amanu_protocol.items import Hunk, Proposal

REWOUND = "The conversation was rewound to before this was proposed."
"""Why a hunk is rejected that nobody decided on."""


@dataclass(frozen=True)
class _DecidedDraft:
    """A draft that the user has decided on, until that is carried out."""

    proposal_ids: Collection[str]
    """Earlier ones are included: some of their changes may still be waiting to be applied."""
    layer_draft: LayerDraft
    recorded: Collection[str]
    """Paths of what those proposals have besides text."""
    lost: Mapping[str, Sequence[Path]]
    """Paths on record that the layer no longer has, by the reason."""
    accepted: bool
    """Whether all of it was accepted."""


class SessionDraft:
    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._open_ids: set[str] = set()
        """The proposals that the draft has been in since it was last decided."""
        self._decided_hunk_ids: set[str] = set()
        """Hunks that were decided with an earlier draft: a turn has one proposal."""
        self._conflict_reported = False
        """The user was told that it waits for a change in conflict."""
        self._ending: asyncio.Task[None] | None = None
        core.proposal_listeners.append(self._on_proposal)

    async def open(self) -> None:
        """Go on with an open draft, and with what could not be applied of an accepted one. Says what of it was lost; or
        what a daemon that was stopped may not have brought into the workspace."""
        drafts = [draft for draft in self._core.state.proposals if draft.draft]
        is_open = any(draft.state == "pending" for draft in drafts) or bool(_conflicts(drafts))
        ids = [draft.proposal_id for draft in drafts]
        recorded = dict.fromkeys(path for draft in drafts for path in draft.besides)
        await self._core.reopen_layer(recorded)
        lost = self._lost(recorded)
        if lost and is_open:
            text = f"No longer part of the draft, because Amanu was stopped: {self._names(lost)}. Ask for it again."
            self._core.notices.report_on_session("draftLost", "warning", text)
        elif lost and _is_accepted([draft for draft in drafts if draft.besides]):
            text = (
                "Amanu was stopped before all of the accepted draft was applied. Check these; they may be missing: "
                f"{self._names(lost)}. Ask for them again."
            )
            self._core.notices.report_on_session("draftLost", "warning", text)
        await self._core.proposals.drafts.forget_besides(ids, [*map(str, lost)])

    def _lost(self, recorded: Iterable[str]) -> list[Path]:
        return [path for paths in self._core.layer.lost(recorded).values() for path in paths]

    async def close(self) -> None:
        """Returns when nothing is being brought into the workspace."""
        if self._ending is not None:
            await self._ending

    def _on_proposal(self, proposal: Proposal) -> None:
        if not proposal.draft:
            return
        drafts = {other.proposal_id: other for other in self._core.state.proposals if other.draft}
        drafts[proposal.proposal_id] = proposal
        if proposal.state == "pending" and proposal.proposal_id not in self._open_ids:
            self._open_ids.add(proposal.proposal_id)
            if self._core.layer.holds_draft:  # what could not be applied of an earlier one comes with it
                self._ending = asyncio.create_task(self._note_drafted(self._ending))
        if not self._open_ids:
            return
        if any(draft.state == "pending" for draft in drafts.values()):
            if any(hunk.state == "pending" and hunk.reason for hunk in _hunks([*drafts.values()])):
                self._hold(_conflicts([*drafts.values()]))  # a yes applied nothing
            return
        decided = [drafts[proposal_id] for proposal_id in self._open_ids if proposal_id in drafts]
        if conflicts := _conflicts(decided):
            self._hold(conflicts)
            return
        self._conflict_reported = False
        self._open_ids.clear()
        accepted = _is_accepted(decided, self._decided_hunk_ids)
        self._decided_hunk_ids |= {hunk.hunk_id for hunk in _hunks(decided)}
        lost = self._core.layer.lost(path for draft in decided for path in draft.besides)
        # What is drafted from now on is another one.
        layer_draft = self._core.layer.decide_draft()
        recorded = {*map(str, layer_draft.paths), *(path for draft in drafts.values() for path in draft.besides)}
        decision = _DecidedDraft([*drafts], layer_draft, recorded, lost, accepted)
        self._ending = asyncio.create_task(self._carry_out(decision, self._ending))

    def _hold(self, conflicts: Sequence[Hunk]) -> None:
        """Some change of the draft could not be applied: the user may resolve that, and accept it after all."""
        layer = self._core.layer
        paths = sorted({*(file.path for file in layer.drafted), *layer.drafted_bits})
        if paths and not self._conflict_reported and not self._core.access.closed:
            why = " ".join(dict.fromkeys(hunk.reason for hunk in conflicts if hunk.reason))
            advice = "First resolve the changes in conflict: accept them again or reject them."
            text = f"Not applied yet: {self._names(paths)}. {advice} {why}"
            self._core.notices.report_on_session("draftEnded", "warning", text)
        self._conflict_reported = True

    async def _carry_out(self, decision: "_DecidedDraft", earlier: "asyncio.Task[None] | None") -> None:
        if earlier is not None:
            await earlier
        notes = await self._core.layer.end_draft(decision.layer_draft, self._core.approvals, accepted=decision.accepted)
        if decision.accepted:
            notes += [f"Not applied, because {why}: {self._names(paths)}." for why, paths in decision.lost.items()]
        if notes and not self._core.access.closed:
            self._core.notices.report_on_session("draftEnded", "info", "\n".join(notes))
        done = [*map(str, self._lost(decision.recorded))]
        await self._core.proposals.drafts.forget_besides(decision.proposal_ids, done)
        await self._core.layer.note_drafted()  # what could not be applied is part of a newer draft, if there is one

    async def _note_drafted(self, earlier: "asyncio.Task[None] | None") -> None:
        if earlier is not None:
            await earlier
        await self._core.layer.note_drafted()

    def _names(self, paths: Sequence[Path]) -> str:
        return file_list([one_line(self._core.workspace.display_path(path)) for path in paths])


def _hunks(drafts: Sequence[Proposal]) -> list[Hunk]:
    return [hunk for draft in drafts for file in draft.files for hunk in file.hunks]


def _conflicts(drafts: Sequence[Proposal]) -> list[Hunk]:
    return [hunk for hunk in _hunks(drafts) if hunk.state == "conflicted"]


def _is_accepted(drafts: Sequence[Proposal], decided_hunk_ids: Collection[str] = ()) -> bool:
    """Whether all of those drafts was accepted, and that was something. Hunks in `decided_hunk_ids`, and rewound ones,
    do not count."""
    hunks = [hunk for hunk in _hunks(drafts) if hunk.hunk_id not in decided_hunk_ids and hunk.reason != REWOUND]
    # What a rule denied was never the user's to accept.
    refused = any(hunk.state == "reverted" or (hunk.state == "rejected" and hunk.reviewed) for hunk in hunks)
    return any(hunk.state == "applied" for hunk in hunks) and not refused
