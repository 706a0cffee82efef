"""The tool that ends a background command."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject
from amanu.tools.environment import SessionTool
from amanu.tools.shell.job_report import report


class StopCommandParams(Params):
    job: str


class StopCommand(SessionTool[StopCommandParams]):
    name = "stop_command"
    effect = "read"  # it ends only what the session itself has started
    description = "Ends a background command with all its processes."
    params = StopCommandParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Stop {arguments.get('job', 'a background command')}"

    async def preview(self, params: StopCommandParams, call: CallContext) -> Preview:
        job = self._environment.jobs.require(params.job)
        return Preview(
            title=f"Stop {job.job_id}: {job.shown.title}",
            subject=Subject(self.name, self.effect, job.job_id),
            detail=f"{job.job_id} ({job.shown.title}) and all its processes end.",
        )

    async def run(self, params: StopCommandParams, call: CallContext) -> Outcome:
        jobs = self._environment.jobs
        job = jobs.require(params.job)
        had_ended = job.ended.is_set()
        await job.stop("by the model")
        outcome = await report(job, jobs, self._limits.shell_model)
        return replace(outcome, for_user="had already ended" if had_ended else "stopped")
