"""A command that goes on after its call."""

import asyncio

from amanu.core.tool import CallContext, Outcome
from amanu.system.tasks import run_to_completion
from amanu.text.display import one_line
from amanu.tools.environment import ToolEnvironment
from amanu.tools.shell.command_params import RunShellCommandParams
from amanu.tools.shell.command_process import CommandLauncher, CommandPlan
from amanu.tools.shell.command_question import short_line
from amanu.tools.shell.command_result import CommandResults
from amanu.tools.shell.job import Job, JobEnd
from amanu.tools.shell.job_report import report
from amanu.tools.shell.places import opened
from amanu.tools.shell.report import CommandEnd

_READY_SECONDS, _BRIEF_SECONDS = 30.0, 2.0
"""How long to wait for a background command if the call does not say: for it to be ready; and, where nothing says when
that is, for it to fail at once."""
_DRAFTED_JOB = (
    "The command runs on a private copy of the workspace, with the draft as it was when the command started. It does "
    "not see later changes, and what it writes is not kept."
)


class BackgroundRuns:
    """The background commands of one session."""

    def __init__(self, environment: ToolEnvironment, launcher: CommandLauncher) -> None:
        self._environment = environment
        self._limits = environment.limits
        self._sandbox = environment.sandbox
        self._launcher = launcher
        self._results = CommandResults(environment, launcher)

    async def start(self, params: RunShellCommandParams, plan: CommandPlan, call: CallContext) -> Outcome:
        """Start it as a job and wait until it is ready. A cancelled call ends the job: it belongs to the session only
        once the model knows of it."""
        limit, place = params.timeout_s, plan.need.place
        if plan.is_held_short:
            limit = min(limit or self._limits.shell_read_only, self._limits.shell_read_only)

        copied = ""

        async def run(job: Job) -> JobEnd:
            nonlocal copied
            end = CommandEnd()
            async with (
                opened(plan, call, self._environment.layer) as at,
                self._launcher.launched(at.plan, end) as process,
            ):
                copied = at.note
                end.stop_reason = await job.follow(process, limit, self._limits.shell_endless)
            return await self._results.job_end(job.output, end, plan)

        jobs = self._environment.jobs
        sandbox = None if self._sandbox is None else self._sandbox.describe(place)
        title = one_line(short_line(params.command))
        job = await jobs.start(call.call_id, title, run, sandbox=sandbox, tty=params.tty)
        waits = params.until is not None or params.port is not None
        try:
            seconds = params.wait_s or (_READY_SECONDS if waits else _BRIEF_SECONDS)
            reached = await job.wait(seconds, until=params.until, port=params.port)
            first = _not_ready(params, seconds) if waits and reached == "timeout" else ""
            first = " ".join(filter(None, [first, _DRAFTED_JOB, copied])) if place.on_copy else first
            return await report(job, jobs, self._limits.shell_model, first=first, in_call=True)
        except asyncio.CancelledError:
            await run_to_completion(job.stop("with its call"))
            raise


def _not_ready(params: RunShellCommandParams, seconds: float) -> str:
    awaited = [f"nothing in its output matches {params.until!r}"] if params.until is not None else []
    awaited += [f"nothing listens on port {params.port}"] if params.port is not None else []
    return f"Not ready after {seconds:g} s: {' and '.join(awaited)}. It is still running."
