"""What the tools that change files share: a proposal in `preview`, its application and an exact report in `run`."""

import asyncio
from abc import abstractmethod
from typing import ClassVar, TypeVar

from amanu.tools.base import CallContext, Outcome, Params, Preview, Subject, Tool, ToolError
from amanu.tools.visible import visible
from amanu.workspace.files import FileText
from amanu.workspace.proposals import FileEdit, Proposals
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import Effect, Proposal


class PathParams(Params):
    path: str


P = TypeVar("P", bound=PathParams)
_SMALL = 64 * 1024  # characters that are worked on in the event loop
_DETAIL = 100_000  # characters of a diff in an approval; the proposal has it all


class EditTool(Tool[P]):
    """A tool that computes the new text of one file."""

    effect: ClassVar[Effect] = "write"

    def __init__(self, workspace: Workspace, proposals: Proposals) -> None:
        self._workspace = workspace
        self._proposals = proposals

    @abstractmethod
    def change(self, params: P, base: FileText) -> str:
        """The new text. CPU-bound, without effect; may run in a thread. Raises `ToolError`."""

    async def preview(self, params: P, call: CallContext) -> Preview:
        path = self._workspace.resolve(params.path)
        base = await self._proposals.text(call, path)
        try:
            small = len(base.text) < _SMALL
            text = self.change(params, base) if small else await asyncio.to_thread(self.change, params, base)
        except ToolError:
            if call.allowed([Subject("read_file", "read", self._workspace.relative(path))]):
                raise
            raise ToolError(  # the reason would quote what the person has not let the model read
                f"The edit does not fit {self._workspace.shown(path)}. Nothing was changed. Read the file first: that "
                "needs the person's yes."
            ) from None
        proposal = await self._proposals.draft(call, [FileEdit(base, text)])
        shown = self._workspace.relative(path)
        new = not (base.exists or base.from_buffer)
        diff = await asyncio.to_thread(self._proposals.diff, proposal.proposal_id)
        stat = "\n".join(
            f"{self._workspace.shown(self._workspace.resolve(file.path))}  +{file.added} −{file.removed}"
            for file in proposal.files
        )
        if len(diff) > _DETAIL:
            diff = diff[:_DETAIL] + "\n[the diff goes on; see the proposal]\n"
        return Preview(
            title=f"{'Create' if new else 'Edit'} {shown}",
            subject=Subject(self.name, self.effect, shown),
            detail=visible(f"{stat}\n\n{diff}"),
            reads=frozenset([str(path)]),
            writes=frozenset([str(path)]),
            proposal_id=proposal.proposal_id,
        )

    async def run(self, params: P, call: CallContext) -> Outcome:
        proposal = self._proposals.of_call(call.call_id)
        assert proposal is not None, "run without preview"
        if call.accept_all:
            await self._proposals.accept_all(proposal.proposal_id, call.call_id, by_person=call.by_person)
        report = await self._proposals.outcome(call.call_id)
        proposal = self._proposals.get(proposal.proposal_id)
        states = {hunk.state for file in proposal.files for hunk in file.hunks}
        failed = states.isdisjoint({"applied", "pending", "accepted"})
        return Outcome(report, _summary(proposal), refused=states == {"rejected"}, is_error=failed)

    async def reject(self, params: P, call: CallContext, reason: str) -> str | None:
        proposal = self._proposals.of_call(call.call_id)
        if proposal is not None:
            await self._proposals.reject_all(proposal.proposal_id, reason or None, call.call_id)
        return None


def _summary(proposal: Proposal) -> str:
    counts: dict[str, int] = {}
    for file in proposal.files:
        for hunk in file.hunks:
            counts[hunk.state] = counts.get(hunk.state, 0) + 1
    words = {"pending": "open", "conflicted": "in conflict", "revertedByPerson": "taken back"}
    parts = [f"{count} {words.get(state, state)}" for state, count in counts.items()]
    unsaved = ", not saved" if any(file.unsaved for file in proposal.files) else ""
    return f"Changes: {', '.join(parts)}{unsaved}"
