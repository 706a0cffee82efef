"""The background commands of a session, as clients see, read and stop them, and what the model is told of their end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from amanu.core.session_part import SessionPart
from amanu.core.tool import ToolError
from amanu.session.events import EventStream
from amanu.session.notices import Notices
from amanu.storage.journal import Journal
from amanu.text.amounts import plural
from amanu.text.fences import block
from amanu.tools.shell.job import Job
from amanu.tools.shell.job_report import end_line, names, running_line
from amanu.tools.shell.jobs import Jobs
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import JobChanged, JobProgress
from amanu_protocol.items import Job as ShownJob
from amanu_protocol.requests import (
    JobBeginParams,
    JobBeginResult,
    JobInputParams,
    JobOutputParams,
    JobOutputResult,
    JobParams,
    JobResult,
)
from amanu_protocol.state import SessionState

_PIECE = 64 * 1024  # bytes of output in one answer
_NOTHING_RUNS = "No command is running that could be put in the background."
_STAYS = (
    "This command stays in the foreground: it runs on a private copy of the workspace, or is only tried, and what "
    "comes of it is decided on when it ends."
)
_INSTEAD = "Tell the agent to stop it and run it in the background."


def running_jobs(state: SessionState) -> list[ShownJob]:
    """The background commands that run now."""
    return [job for job in state.jobs if job.state == "running"]


class SessionJobs(SessionPart):
    """The jobs of one session. It is their `JobListener`."""

    def __init__(
        self, state: SessionState, emit: EventStream, notices: Notices, journal: Journal, mask: Callable[[str], str]
    ) -> None:
        self._state = state
        self._emit = emit
        self._notices = notices
        self._journal = journal
        self.jobs = Jobs(self, mask, state.jobs, journal.put_blob)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        return not self.jobs.running

    def report_going_on(self) -> None:
        """Tell the user what plan mode, which is entered now, does not stop."""
        if jobs := running_jobs(self._state):
            keep = f"{plural(len(jobs), 'background command')} {'keeps' if len(jobs) == 1 else 'keep'} running"
            self._notices.report_on_session("jobsGoOn", "info", f"{keep}: {names(jobs)}.")

    async def stop(self) -> None:
        await self.jobs.stop_all("with the session")
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def resume(self) -> None:
        self.jobs.reopen()

    # Requests ---------------------------------------------------------------------------------------

    async def begin(self, params: JobBeginParams) -> JobBeginResult:
        """Put what calls wait for in the background. Raises `AmanuError` (commandNotMovable)."""
        waited_for = [each for each in self.jobs.foreground if params.tool_call_id in (None, each.call_id)]
        refusal = _STAYS if waited_for else _NOTHING_RUNS
        begun: list[ShownJob] = []
        for command in [each for each in waited_for if each.may_move]:
            try:
                begun.append((await self.jobs.move(command)).shown)
            except ToolError as error:
                refusal = str(error)
        if not begun:
            raise AmanuError("commandNotMovable", refusal, hint=_INSTEAD if refusal == _STAYS else None)
        await self._emit.durable()
        return JobBeginResult(jobs=begun)

    async def end(self, params: JobParams) -> JobResult:
        """End a job, unless it has ended. Raises `AmanuError` (jobNotFound)."""
        job = self.jobs.find(params.job_id)
        if job is not None:
            await job.stop("by the user")
        await self._emit.durable()
        return JobResult(job=self._shown(params.job_id))

    async def output(self, params: JobOutputParams) -> JobOutputResult:
        """A piece of what a job has printed. Raises `AmanuError` (jobNotFound, blobNotFound)."""
        job = self.jobs.find(params.job_id)
        if job is None:
            blob = self._shown(params.job_id).blob
            data = b"" if blob is None else await self._journal.get_blob(blob.blob_id)
            return JobOutputResult(text=data[params.offset :].decode("utf-8", "replace"), next_offset=len(data))
        output = job.output
        if params.raw:
            text, piece = output.terminal_text(params.offset, _PIECE, ended=job.ended.is_set())
        else:
            text, piece = output.readable_piece(params.offset, _PIECE)
        return JobOutputResult(text=text, next_offset=piece.end, missing=piece.missing)

    async def input(self, params: JobInputParams) -> None:
        """Type into a job. Raises `AmanuError`: jobNotFound; invalidParams when it takes no input (any more)."""
        job = self.jobs.find(params.job_id)
        if job is None or job.process is None or job.ended.is_set():
            raise AmanuError("invalidParams", f"{self._shown(params.job_id).title} has ended: it takes no input.")
        try:
            await job.process.write(params.text.encode("utf-8", "replace"))
        except ToolError as error:
            raise AmanuError("invalidParams", str(error)) from None

    # For the model ----------------------------------------------------------------------------------

    def end_notes(self) -> list[str]:
        """A sentence for each job that has ended without the model knowing; it counts as told when this returns."""
        ended = [job for job in self._state.jobs if job.state != "running" and not job.told]
        ended = [job for job in ended if not ((live := self.jobs.find(job.job_id)) and live.in_call)]  # its call tells
        for job in ended:
            self._emit(JobChanged(job=job.model_copy(update={"told": True})))
        return [end_line(job) for job in ended]

    def note(self) -> str:
        """Names the jobs that ended, and those that run."""
        lines = [*self.end_notes(), running_line([job.shown for job in self.jobs.running])]
        text = "\n".join(filter(None, lines))
        return block("background_commands", text) if text else ""

    # JobListener ------------------------------------------------------------------------------------

    def changed(self, job: ShownJob) -> None:
        """What runs is on disk soon: after a kill the session must know of it."""
        self._emit(JobChanged(job=job))
        self._wait_for(self._emit.durable())

    def progress(self, job_id: str, last_line: str, output_size: int) -> None:
        self._emit(JobProgress(job_id=job_id, last_line=last_line, output_size=output_size))

    def ended(self, job: Job) -> None:
        """Tell the user at once, unless it only ended because somebody stopped it."""
        end = job.end
        assert end is not None
        if job.stopped_by and not end.details:
            return
        text = f"{job.job_id} ({job.shown.title}): {job.shown.summary}."
        text += f"\n{end.details}" if end.details else ""
        level = "warning" if end.details or (end.failed and not job.stopped_by) else "info"
        self._notices.report_on_session("jobEnded", level, text)

    def _wait_for(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it in the background."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget_task)

    def _forget_task(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # a full disk: whoever waits for the journal is told

    def _shown(self, job_id: str) -> ShownJob:
        for job in self._state.jobs:
            if job.job_id == job_id:
                return job
        raise AmanuError("jobNotFound", f"This session has no background command {job_id}.")
