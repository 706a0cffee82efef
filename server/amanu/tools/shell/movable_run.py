"""A command that its call waits for only until the user puts it in the background."""

import asyncio
from dataclasses import replace

from amanu.core.tool import CallContext, Outcome
from amanu.system.tasks import run_to_completion
from amanu.tools.environment import ToolEnvironment
from amanu.tools.shell.command_params import RunShellCommandParams
from amanu.tools.shell.command_process import CommandPlan
from amanu.tools.shell.command_question import short_line
from amanu.tools.shell.foreground_command import ForegroundCommand
from amanu.tools.shell.foreground_run import ForegroundRuns
from amanu.tools.shell.job import Job, JobEnd
from amanu.tools.shell.job_report import report
from amanu.tools.shell.layer_review import with_notes
from amanu.tools.shell.places import OpenedPlace, opened

_MOVED = (
    "The user put this command in the background before it had ended, and it goes on as {job}: what it has printed so "
    'far is above. read_command(job="{job}") returns what it prints from now on, stop_command ends it, and you are '
    "told when it ends. Go on with what does not need its result."
)
_FOR_USER = "Goes on in the background as {job}."
_THROWN_AWAY = "Plan mode: what this command changed in the workspace was thrown away."


class MovableRuns:
    """The movable commands of one session."""

    def __init__(self, environment: ToolEnvironment, runs: ForegroundRuns) -> None:
        self._environment = environment
        self._runs = runs

    async def run(
        self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext, command: ForegroundCommand
    ) -> Outcome:
        """Run it to its end, or until it is in the background."""
        work = command.work = asyncio.create_task(self._work(params, plan, call, command))
        moved = asyncio.create_task(command.moved.wait())
        try:
            await asyncio.wait({work, moved}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as error:
            if command.job is None or not command.moved.is_set():
                work.cancel(*error.args)
                await run_to_completion(asyncio.wait({work}))
                if not work.cancelled():
                    work.exception()
            else:
                command.job.in_call = False
            raise
        finally:
            moved.cancel()
        if command.job is not None and command.moved.is_set():
            return await self._moved(params, command.job)
        ended = work.result()
        assert isinstance(ended, Outcome)
        return ended

    async def _moved(self, params: RunShellCommandParams, job: Job) -> Outcome:
        first = _MOVED.format(job=job.job_id)
        try:
            outcome = await report(
                job, self._environment.jobs, self._environment.limits.shell_model, first=first, in_call=True
            )
        except asyncio.CancelledError:
            job.in_call = False  # the user wants it to go on; the model hears of it with its next request
            raise
        return replace(
            outcome,
            for_user=f"{str(outcome.fields['output']).rstrip()}\n{_FOR_USER.format(job=job.job_id)}".lstrip(),
            title=f"Run in the background: {short_line(params.command)}",
        )

    async def _work(
        self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext, command: ForegroundCommand
    ) -> Outcome | JobEnd:
        async with opened(plan, call, self._environment.layer) as at:
            ended = await self._runs.run_movable(params, at.plan, call, command if _may_go_on(at, call) else None)
            if at.dropped is None or not await at.dropped.has_changes():
                return ended
            if isinstance(ended, Outcome):
                return with_notes(ended, [_THROWN_AWAY])
            return replace(ended, details="\n".join(filter(None, [ended.details, _THROWN_AWAY])))


def _may_go_on(at: OpenedPlace, call: CallContext) -> bool:
    """Whether it needs nothing that ends with its call, or that later commands wait for, and nothing is asked about it
    when it has ended."""
    command = None if call.preview is None else call.preview.command
    place = at.plan.need.place
    is_asked_later = command is not None and command.placing.approved.writes and place.tried and not place.writes
    return (at.plan.need.layer is None or at.dropped is not None) and not is_asked_later
