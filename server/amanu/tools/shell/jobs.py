"""The background commands of one session. They belong to it and not to the turn that started them."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Sequence

from amanu.core.tool import ToolError
from amanu.text.amounts import plural
from amanu.tools.shell.foreground_command import ForegroundCommand
from amanu.tools.shell.job import Job, JobEnd, JobListener
from amanu.tools.shell.job_output import JobOutput
from amanu.tools.shell.output import Mask
from amanu_protocol.items import MAX_JOBS, BlobRef, CommandSandbox
from amanu_protocol.items import Job as ShownJob

log = logging.getLogger(__name__)

MAX_RUNNING = 16
"""Jobs that run at the same time."""

Run = Callable[[Job], Awaitable[JobEnd]]
"""Runs the command of a job to its end; `Job.follow` is called once it has started. Raises `ToolError` before that."""


class _Nobody:
    def changed(self, job: ShownJob) -> None: ...

    def progress(self, job_id: str, last_line: str, output_size: int) -> None: ...

    def ended(self, job: Job) -> None: ...


class Jobs:
    """Starts and finds jobs. `earlier`: those of the session before this daemon. `keep` stores the output of one that
    has ended where the session finds it, whichever agent started it."""

    def __init__(
        self,
        listener: JobListener | None = None,
        mask: Mask = str,
        earlier: Sequence[ShownJob] = (),
        keep: Callable[[bytes], Awaitable[BlobRef]] | None = None,
    ) -> None:
        self.keep = keep
        self._listener = listener or _Nobody()
        self._mask = mask
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.foreground: list[ForegroundCommand] = []
        """The commands that calls wait for."""
        numbers = (job.job_id.removeprefix("job-") for job in earlier)
        self._count = max((int(number) for number in numbers if number.isdecimal()), default=0)
        self._closed = False

    @property
    def running(self) -> list[Job]:
        return [job for job in self._jobs.values() if job.started.is_set() and not job.ended.is_set()]

    def find(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def require(self, job_id: str) -> Job:
        """The job of that id. Raises `ToolError`."""
        job = self._jobs.get(job_id)
        if job is None:
            job_ids = ", ".join(self._jobs) or "none"
            raise ToolError(f"There is no background command {job_id!r}. Known: {job_ids}.")
        return job

    async def start(
        self, call_id: str, title: str, run: Run, *, sandbox: CommandSandbox | None = None, tty: bool = False
    ) -> Job:
        """Start a command, and return once it runs. Cancelling this ends the command. Raises `ToolError`."""
        if self._closed:
            raise ToolError("The session is being closed, so nothing can be started.")
        if len(self.running) >= MAX_RUNNING:
            raise ToolError(f"{plural(MAX_RUNNING, 'background command')} are running. Stop one with stop_command.")
        self._count += 1
        shown = ShownJob(
            job_id=f"job-{self._count}",
            tool_call_id=call_id,
            title=title,
            state="running",
            started_at=int(time.time() * 1000),
            tty=tty,
            sandbox=sandbox,
        )
        job = self._jobs[shown.job_id] = Job(shown, JobOutput(self._mask), self._listener)
        task = asyncio.create_task(self._run(job, run), name=f"command {job.job_id}")
        self._tasks[job.job_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(job.job_id, None))
        starting = asyncio.create_task(job.started.wait())
        try:
            await asyncio.wait([task, starting], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()  # what has started ends before the task does
            await asyncio.gather(task, return_exceptions=True)
            raise
        finally:
            starting.cancel()
        if not job.started.is_set():
            await task  # raises why it could not be started
            raise ToolError("The command could not be started.")
        return job

    @contextlib.contextmanager
    def waited_for(self, command: ForegroundCommand) -> Generator[None]:
        """Stay in the context while a call waits for that command."""
        self.foreground.append(command)
        try:
            yield
        finally:
            self.foreground.remove(command)

    async def move(self, command: ForegroundCommand) -> Job:
        """Put that command in the background, which may be. Raises `ToolError`."""
        command.may_move = False
        try:
            return await self.start(command.call_id, command.title, command.go_on, sandbox=command.sandbox)
        except ToolError:
            command.may_move = not command.has_ended
            raise

    async def stop_all(self, by: str) -> None:
        """Stop all jobs; none starts until `reopen`."""
        self._closed = True
        tasks = list(self._tasks.values())
        for job_id, task in self._tasks.items():
            job = self._jobs.get(job_id)  # None: it has just failed to start
            if job is not None and not job.started.is_set():
                task.cancel()
        await asyncio.gather(*(job.stop(by) for job in self.running))
        await asyncio.gather(*tasks, return_exceptions=True)

    def reopen(self) -> None:
        """Jobs can be started again: the session stays open after all."""
        self._closed = False

    async def _run(self, job: Job, run: Run) -> None:
        try:
            end = await run(job)
        except asyncio.CancelledError:
            job.stopped_by = job.stopped_by or "with its call"
            self._close(job, JobEnd(None, "Stopped with its call."))
            raise
        except ToolError as error:
            self._close(job, JobEnd(None, str(error), failed=True))
            if not job.started.is_set():
                raise
        except Exception:
            log.exception("%s failed unexpectedly", job.job_id)
            self._close(job, JobEnd(None, "Ended because of an internal error in Amanu.", failed=True))
        else:
            self._close(job, end)

    def _close(self, job: Job, end: JobEnd) -> None:
        if job.started.is_set():
            job.finish(end)
        else:
            del self._jobs[job.job_id]
        ended = [job_id for job_id, job in self._jobs.items() if job.ended.is_set()]
        for job_id in ended[: max(0, len(self._jobs) - MAX_JOBS)]:
            del self._jobs[job_id]
