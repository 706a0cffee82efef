"""The tool that puts a draft to the user when its turn is done. No model calls it: the daemon does."""

import asyncio
from pathlib import Path

from amanu.core.tool import CallContext, NothingToDo, Outcome, Params, Preview, Subject
from amanu.text.amounts import files_and_folders, plural
from amanu.text.display import file_list, one_line, unbroken, visible
from amanu.text.wording import DRAFT_WAITS
from amanu.tools.environment import SessionTool, ToolEnvironment
from amanu_protocol.items import Line, Proposal, Row

_OPEN = ("pending", "conflicted")
_CONFLICT_ADVICE = "Remove what is in the way and accept again, reject the change, or ask for it again."


class ReviewDraftParams(Params):
    proposal_id: str


class ReviewDraft(SessionTool[ReviewDraftParams]):
    name = "review_draft"
    effect = "write"
    description = "Asks the user to review the draft."
    lead = "The user was asked to review the draft."
    params = ReviewDraftParams

    def __init__(self, environment: ToolEnvironment) -> None:
        super().__init__(environment)
        self._proposals = environment.proposals
        self._layer = environment.layer

    async def preview(self, params: ReviewDraftParams, call: CallContext) -> Preview:
        proposal = await self._proposals.drafts.begin_review(params.proposal_id, call.call_id)
        files = [file for file in proposal.files if any(hunk.state in _OPEN for hunk in file.hunks)]
        rows = [row for row in proposal.rows if row.state in _OPEN]
        if not (files or rows):
            raise NothingToDo("The user has decided on all of the draft already.")
        diff = await asyncio.to_thread(self._proposals.diff, proposal.proposal_id)
        lines = [*_run_lines(proposal), *await asyncio.to_thread(self._built_lines)]
        paths = [path for file in files for path in (file.path, file.new_path) if path is not None]
        paths = list(dict.fromkeys([*paths, *(path for row in rows for path in _paths(row))]))
        listed = [
            unbroken(f"{' → '.join(self._name(Path(path)) for path in _paths(row))}: {row.title}") for row in rows
        ]
        folders = {row.path for row in rows if row.is_folder}
        changed = {*(file.path for file in files), *(row.path for row in rows)} - folders
        relative = [self._workspace.relative(self._workspace.resolve(path)) for path in paths]
        subject, *also = [Subject("write_file", "write", path, must_ask=DRAFT_WAITS) for path in relative]
        return Preview(
            title=f"Apply the draft: {files_and_folders(len(changed), len(folders))}",
            subject=subject,
            extra_subjects=tuple(also),
            detail=visible("\n\n".join(filter(None, ["\n".join([*(line.text for line in lines), *listed]), diff]))),
            reads=frozenset(paths),
            writes=frozenset(paths),
            proposal_id=proposal.proposal_id,
            notes=tuple(lines),
            review=True,
        )

    async def preview_again(self, params: ReviewDraftParams, call: CallContext) -> Preview | None:
        await self._proposals.catch_up(params.proposal_id)
        return None

    async def run(self, params: ReviewDraftParams, call: CallContext) -> Outcome:
        if call.accept_all:
            await self._proposals.accept_all(params.proposal_id)
        report = await self._proposals.review_report(params.proposal_id)
        proposal = self._proposals.get(params.proposal_id)
        changes = [(file.path, hunk) for file in proposal.files for hunk in file.hunks]
        changes += [(row.path, row) for row in proposal.rows]
        states = [change.state for _, change in changes]
        applied, still_open = states.count("applied"), states.count("pending")
        conflicts = {self._name(Path(path)): each.reason or "" for path, each in changes if each.state == "conflicted"}
        left = f"; {still_open} still to review" if still_open else ""
        said = f"{applied} of {plural(len(changes), 'change')} applied{left}"
        if conflicts:
            named = " ".join(f"{name}: {reason}" for name, reason in conflicts.items())
            said += f"; {states.count('conflicted')} in conflict. {named} {_CONFLICT_ADVICE}"
        # The answer was a yes, but it applied only a part, or nothing.
        is_refused_yes = bool(conflicts) and (call.accept_all or bool(call.decision and call.decision.reason))
        title = ""
        if is_refused_yes or (applied and (still_open or conflicts)):
            title = f"Applied {applied} of {plural(len(changes), 'change')} of the draft"
        elif still_open or conflicts:
            title = f"Left the draft for later: {plural(len({path for path, _ in changes}), 'file')}"
        refused = all(state == "rejected" for state in states)
        return Outcome(report or said, said, title=title, refused=refused, is_error=is_refused_yes)

    async def reject(self, params: ReviewDraftParams, call: CallContext, reason: str) -> str | None:
        if not call.by_user:  # a rule or a mode that forbids it now: what is drafted is not lost for that
            return f"The draft was not applied, and the user can still decide on it. {reason}"
        await self._proposals.reject_all(params.proposal_id, reason or None)
        return await self._proposals.review_report(params.proposal_id)

    def _built_lines(self) -> list[Line]:
        """The files that git ignores and that come with the draft, if all of it is accepted. Blocking."""
        names = [*map(self._name, self._layer.built)]
        lead = (
            "Not reviewed (caches, build output, what git ignores), and moved into the workspace if you accept the "
            "whole draft"
        )
        return [Line(tone="warning", text=f"{lead}: {file_list(names)}")] if names else []

    def _name(self, path: Path) -> str:
        return one_line(self._workspace.display_path(path))


def _paths(row: Row) -> list[str]:
    return [path for path in (row.path, row.new_path) if path is not None]


def _run_lines(proposal: Proposal) -> list[Line]:
    """The commands that ran on the draft, and whether it is still the same."""
    lines: list[Line] = []
    for run in proposal.runs:
        stale = "" if run.current else "; the draft has changed since"
        tone = "plain" if not run.current else "bad" if run.failed else "good"
        lines.append(Line(tone=tone, text=f"Ran on the draft: `{run.command}` — {run.ended or 'no output'}{stale}"))
    return lines
