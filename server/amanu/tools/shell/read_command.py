"""The tool that reads what a background command has printed, or waits for it."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject
from amanu.tools.environment import SessionTool
from amanu.tools.shell.job import check_pattern
from amanu.tools.shell.job_report import report


class ReadCommandParams(Params):
    job: str
    wait_s: float = Field(
        default=0, ge=0, le=300, description="Longest wait for `until`, or for any new output; at most 300."
    )
    until: str | None = Field(default=None, max_length=500, description="A regex to wait for.")
    offset: int | None = Field(default=None, ge=0, description="Read again from this byte on.")


class ReadCommand(SessionTool[ReadCommandParams]):
    name = "read_command"
    effect = "read"
    description = "Returns what a background command has printed since you last read, or how it ended."
    params = ReadCommandParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"Read {arguments.get('job', 'a background command')}"

    async def preview(self, params: ReadCommandParams, call: CallContext) -> Preview:
        job = self._environment.jobs.require(params.job)
        await check_pattern(params.until)
        return Preview(
            title=f"Read {job.job_id}: {job.shown.title}",
            subject=Subject(self.name, self.effect, job.job_id),
            detail=f"The output of {job.job_id} ({job.shown.title})",
        )

    async def run(self, params: ReadCommandParams, call: CallContext) -> Outcome:
        jobs = self._environment.jobs
        job = jobs.require(params.job)
        first = ""
        if params.until is not None:
            reached = await job.wait(params.wait_s or 30, until=params.until, start=job.read_from)
            if reached != "ready":
                first = f"Nothing in its output matches {params.until!r} yet."
        elif params.wait_s:
            await job.wait_for_output(params.wait_s, job.read_size)
        return await report(job, jobs, self._limits.shell_model, since=params.offset, first=first)
