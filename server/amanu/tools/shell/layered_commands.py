"""Commands that run on a private copy of the workspace, and what becomes of their changes."""

import asyncio
from dataclasses import replace

from amanu.core.tool import Blocked, CallContext, Outcome, ToolError
from amanu.permissions.policy import drafts
from amanu.proposals.rows import RowChange
from amanu.sandbox.layers.disk_floor import DiskFloor
from amanu.text.display import file_list, one_line
from amanu.tools.environment import ToolEnvironment
from amanu.tools.shell.command_analysis import CommandAnalyzer
from amanu.tools.shell.command_params import RunShellCommandParams
from amanu.tools.shell.command_process import CommandPlan
from amanu.tools.shell.command_question import short_line
from amanu.tools.shell.foreground_run import ForegroundRuns
from amanu.tools.shell.layer_changes import LayerChanges
from amanu.tools.shell.layer_review import LayerReview, with_notes
from amanu.tools.shell.places import opened
from amanu_protocol.items import DraftRun

_NO_ROOM = (
    "The command filled the disk that holds its private copy of the workspace ({folder}). The copy was deleted, with "
    "what earlier commands had built in it."
)
_FILLED = "it filled the disk with its private copy of the workspace"
_WITHOUT_DRAFT = "This command saw the workspace without the draft."
_OVERTAKEN = (
    "Not drafted, because another command drafted another version while this one ran: {names}. Run the command again."
)


class LayeredCommands:
    """The commands of one session that run in a layer."""

    def __init__(
        self, environment: ToolEnvironment, analyzer: CommandAnalyzer, runs: ForegroundRuns, review: LayerReview
    ) -> None:
        self._workspace = environment.workspace
        self._proposals = environment.proposals
        self._layer = environment.layer
        self._mode = environment.mode
        self._analyzer = analyzer
        self._runs = runs
        self._review = review

    async def run(self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext) -> Outcome:
        """Run it on a private copy of the workspace that keeps its changes. The outcome contains them; those of a
        blocked run are discarded, except ignored files."""
        place = plan.need.place
        async with opened(plan, call, self._layer) as at:
            layered = at.kept
            assert layered is not None
            floor = await asyncio.to_thread(DiskFloor, layered.folder)
            outcome = await self._runs.run(params, at.plan, call)
            if await asyncio.to_thread(floor.is_reached):
                layered.forget()
                outcome = with_notes(outcome, [_NO_ROOM.format(folder=layered.folder)])
                return replace(outcome, is_error=True, blocked=Blocked(frozenset({"write"}), _FILLED))
            looks = await self._runs.look_at_repositories(layered.layer, changes_repository=place.reach.writes_git)
            changes = replace(await layered.read(), need=plan.need)
            if looks:
                adds = not drafts(self._mode()) and await self._only_adds(params, call)
                await layered.describe_git(changes, looks, adds=adds)
                if self._review.guarded_in_git(changes, call):
                    changes.git.is_plain_staging = False
            reason = _unreviewable(changes, changes_repository=place.reach.writes_git)
        if place.then == "drafted" and outcome.blocked is None and not reason:
            changes, notes = await self._drafted(changes, call)
            outcome = with_notes(outcome, [*notes, *await self._review.left_notes(changes)])
            if not changes.edits or outcome.is_error:  # it ran on what the draft is now; a failure is not to be missed
                await self._proposals.drafts.note_run(_draft_run(params, outcome))
            return replace(outcome, changes=changes) if changes.needs_decision else outcome
        if outcome.blocked is None and not reason:
            outcome = await self._review.settle(outcome, changes, call)
            if place.reach.writes_git and self._proposals.drafts.is_open:
                outcome = with_notes(outcome, [_WITHOUT_DRAFT])
            return replace(outcome, changes=changes) if changes.needs_decision else outcome
        return replace(outcome, blocked=outcome.blocked or Blocked(frozenset({"write"}), reason))

    async def run_again(self, params: RunShellCommandParams, changes: LayerChanges, call: CallContext) -> Outcome:
        """Run the git command behind these changes once more, because its repository has changed since. Raises
        `ToolError` if it had the network: what it did there, it would do twice."""
        if changes.need.place.reach.network:
            raise ToolError("The repository changed meanwhile, and a command with network access is not run twice.")
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        plan = CommandPlan(params.command, folder, changes.need, by_user=False, still_valid=_always)
        return await self.run(params, plan, call)

    async def _drafted(self, changes: LayerChanges, call: CallContext) -> tuple[LayerChanges, list[str]]:
        """The changes to draft, and sentences about those left out: another command (of a sub-agent or a job) has
        drafted something else there since this one started. Drops the rows that the command has undone."""
        rows = {row.change.key: row for row in self._proposals.drafts.open_rows()}
        now = {part.key: part.digest for row in rows.values() for part in row.change.parts}

        def is_overtaken(row: RowChange) -> bool:
            own = {part.key: part.digest for part in row.parts}
            replaced = rows[row.key].change.parts if row.key in rows else ()
            keys = {*own, *(part.key for part in replaced)} & now.keys()
            return any(now[key] not in (changes.seen.get(key), own.get(key)) for key in keys)

        others = [row for row in changes.rows if is_overtaken(row)]
        gone = [rows[key] for key in changes.gone if key in rows and now[key] == changes.seen[key]]
        await self._proposals.drafts.drop_rows([row.row_id for row in gone], call.turn_id)
        kept = replace(changes, rows=[row for row in changes.rows if row not in others])
        names = file_list([self._workspace.display_path(row.path) for row in others])
        return kept, [_OVERTAKEN.format(names=names)] if others else []

    async def _only_adds(self, params: RunShellCommandParams, call: CallContext) -> bool:
        folder = self._workspace.resolve(params.path or str(self._workspace.roots[0]))
        return (await asyncio.to_thread(self._analyzer.analyze, params, folder, call)).only_adds


def _draft_run(params: RunShellCommandParams, outcome: Outcome) -> DraftRun:
    command, ended = one_line(short_line(params.command)), one_line(outcome.line)
    return DraftRun(command=command, ended=ended, failed=outcome.is_error, current=True)


def _unreviewable(changes: LayerChanges, *, changes_repository: bool) -> str:
    """Why what a command changed cannot be decided on afterwards; "" when it can. A line without a git command had
    unsaved text laid in, which must not get into git's history, nor be decided on by rules that name git commands."""
    if changes.git.refused or (changes.git.files and not changes_repository):
        return f"it changed .git/{changes.git.refused or changes.git.files[0].name.removeprefix('.git/')}"
    return changes.refused


async def _always() -> bool:
    return True
