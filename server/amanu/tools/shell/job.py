"""One background command: what it prints, what it waits for, and its end."""

import asyncio
import contextlib
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from amanu.core.tool import ToolError
from amanu.system.listening_ports import listening_ports
from amanu.system.tasks import Process, kill, start_process
from amanu.text.wording import summarize_job
from amanu.tools.shell.job_output import JobOutput
from amanu_protocol.items import BlobRef
from amanu_protocol.items import Job as ShownJob

PROGRESS_SECONDS = 0.5
"""Between two reports of what a job prints."""
_PAUSE_SECONDS = 0.1  # without output, after which what was printed counts as complete
_PORT_SECONDS = 0.1  # between two looks for a port that is waited for
_LOOK_SECONDS = (0.25, 5.0)  # between two looks for any port: at first, and later
_HELD_SECONDS = 1.0  # between two checks of whether a command has ended while others hold its pipe

Reached = Literal["ready", "ended", "timeout"]


class JobProcess(Protocol):
    """The process of a job. Implemented by `command_process.CommandProcess`."""

    process: Process

    async def read(self, take: Callable[[bytes, bool], None]) -> None: ...

    async def drain(self, reading: "asyncio.Task[None]") -> None: ...

    async def write(self, data: bytes) -> None: ...

    async def interrupt(self) -> None: ...


class JobListener(Protocol):
    """Hears of the jobs of a session. Nothing here raises or waits."""

    def changed(self, job: ShownJob) -> None: ...

    def progress(self, job_id: str, last_line: str, output_size: int) -> None: ...

    def ended(self, job: "Job") -> None:
        """It has ended, after its call."""
        ...


@dataclass(frozen=True)
class JobEnd:
    """How a job came to its end."""

    code: int | None
    """Its exit code; negative for a signal."""
    note: str
    """The same as a sentence, and why it was ended if it was."""
    details: str = ""
    """What else there is to say to user and model, a line each."""
    blob: BlobRef | None = None
    failed: bool = False


class Job:
    """A background command of a session. It goes on until it ends by itself or is stopped."""

    def __init__(self, shown: ShownJob, output: JobOutput, listener: JobListener) -> None:
        self.shown = shown
        """As clients see it."""
        self.output = output
        self.process: JobProcess | None = None
        self.began = time.monotonic()
        self.end: JobEnd | None = None
        self.stopped_by = ""
        """Who stopped it, as a clause: "by the model"; "" while nobody has."""
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self.in_call = True
        """The call that started it has not returned."""
        self.read_from = 0
        """Where the model reads on: the beginning of the last line it saw."""
        self.read_size = 0
        """The size of the output when the model read it last."""
        self._listener = listener
        self._stop = asyncio.Event()
        self._news = asyncio.Event()
        self._reported = 0.0
        self._report_timer: asyncio.TimerHandle | None = None

    @property
    def job_id(self) -> str:
        return self.shown.job_id

    @property
    def seconds(self) -> float:
        """How long it runs, or ran."""
        if self.shown.ended_at is not None:
            return (self.shown.ended_at - self.shown.started_at) / 1000
        return time.monotonic() - self.began

    # For whoever runs it ----------------------------------------------------------------------------

    def take_over(self, began: float, printed: bytes) -> None:
        """It has been running since that time of the monotonic clock, and has printed that."""
        self.began = began
        started_at = int((time.time() - self.seconds) * 1000)
        self.shown = self.shown.model_copy(update={"started_at": started_at})
        self.output.add(printed)

    async def follow(self, process: JobProcess, seconds: float | None, most_bytes: int) -> str:
        """Collect its output until it has ended or must be ended. Returns why it must be, as a sentence; "" when it
        ended by itself."""
        self.process = process
        self.show()
        self.started.set()
        reading = asyncio.create_task(process.read(self._take))
        tasks = [asyncio.create_task(process.process.wait()), asyncio.create_task(self._stop.wait())]
        looking = asyncio.create_task(self._look_for_port())
        until = None if seconds is None else time.monotonic() + seconds
        try:
            while True:
                remaining = _HELD_SECONDS if until is None else min(_HELD_SECONDS, until - time.monotonic())
                await asyncio.wait(tasks, timeout=max(0.0, remaining), return_when=asyncio.FIRST_COMPLETED)
                if self._stop.is_set():
                    return f"The command was stopped {self.stopped_by}."
                if process.process.returncode is not None:
                    await process.drain(reading)
                    return ""
                if until is not None and time.monotonic() >= until:
                    return f"The command was ended after {seconds:g} s, its time limit."
                if self.output.size > most_bytes:
                    return f"The command was ended after {self.output.size:,} bytes of output."
        finally:
            for task in (reading, looking, *tasks):
                task.cancel()

    def finish(self, end: JobEnd) -> None:
        """It is over."""
        self.end = end
        self.show(
            state="stopped" if self.stopped_by else "ended",
            ended_at=int(time.time() * 1000),
            exit_code=end.code,
            blob=end.blob,
        )
        if self._report_timer is not None:
            self._report_timer.cancel()
        self.ended.set()
        self._wake()
        if not self.in_call:
            self._listener.ended(self)

    def show(self, **changes: object) -> None:
        """Tell clients what has changed."""
        current = {"last_line": self.output.last_line, "output_size": self.output.size}
        shown = self.shown.model_copy(update={**current, **changes})
        note = "" if self.end is None else f"Stopped {self.stopped_by}" if self.stopped_by else self.end.note
        self.shown = summarize_job(shown, note)
        self._listener.changed(self.shown)

    def tell(self) -> None:
        """The model is being told that it has ended, if it has."""
        if self.ended.is_set() and not self.shown.told:
            self.show(told=True)

    # For whoever waits for it -----------------------------------------------------------------------

    async def stop(self, by: str) -> None:
        """End it with all its processes, and return when it has ended: also if somebody else stops it, or it ended
        already."""
        self.stopped_by = self.stopped_by or ("" if self.ended.is_set() else by)
        self._stop.set()
        await self.ended.wait()

    async def wait(
        self, seconds: float, *, until: str | None = None, port: int | None = None, start: int = 0
    ) -> Reached:
        """Wait for output that matches from that offset on, for a port, or, where neither is given, for the end."""
        tasks = [asyncio.create_task(self._match(until, start))] if until is not None else []
        tasks += [asyncio.create_task(self._listens_on(port))] if port is not None else []
        tasks = tasks or [asyncio.create_task(self._until_end())]
        try:
            finished_tasks, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if any(task.result() for task in finished_tasks):
            return "ready"
        return "ended" if self.ended.is_set() else "timeout"

    async def wait_for_output(self, seconds: float, size: int) -> None:
        """Wait until it has printed more than so many bytes and pauses, or has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.output.size <= size and not self.ended.is_set():
                    await self._news.wait()
                while not self.ended.is_set() and await self._prints():
                    pass

    async def _prints(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE_SECONDS):
                await self._news.wait()
                return True
        return False

    # Inside -----------------------------------------------------------------------------------------

    def _take(self, data: bytes, is_error: bool) -> None:
        self.output.add(data)
        self._wake()
        if self._report_timer is None:
            loop = asyncio.get_running_loop()
            due = self._reported + PROGRESS_SECONDS - loop.time()
            self._report_timer = loop.call_later(max(0.0, due), self._report)

    def _report(self) -> None:
        self._report_timer = None
        self._reported = asyncio.get_running_loop().time()
        self._listener.progress(self.job_id, self.output.last_line, self.output.size)

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _until_end(self) -> bool:
        await self.ended.wait()
        return False

    async def _look_for_port(self) -> None:
        delay, longest = _LOOK_SECONDS
        while self.shown.port is None:
            await asyncio.sleep(delay)
            delay = min(delay * 1.5, longest)
            ports = await self._ports()
            if ports and self.shown.port is None:
                self.show(port=ports[0])

    async def _listens_on(self, port: int) -> bool:
        while not self.ended.is_set():
            if port in await self._ports() or await _connects(port):
                if self.shown.port != port:
                    self.show(port=port)
                return True
            await asyncio.sleep(_PORT_SECONDS)
        return False

    async def _ports(self) -> list[int]:
        return [] if self.process is None else await asyncio.to_thread(listening_ports, self.process.process.pid)

    async def _match(self, pattern: str, start: int) -> bool:
        """Whether the output comes to match before the job has ended."""
        worker = Path(__file__).with_name("pattern_worker.py")
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await start_process(
            kill, sys.executable, "-I", "-S", str(worker), stdin=pipe, stdout=pipe, stderr=nothing, env={}
        )
        assert process.stdin is not None and process.stdout is not None
        answer = asyncio.create_task(process.stdout.readline())
        process.stdin.write(json.dumps(pattern).encode() + b"\n")
        try:
            while not answer.done():
                news, is_last = self._news, self.ended.is_set()
                snapshot = self.output.snapshot(start)
                text, start = await asyncio.to_thread(self.output.text, snapshot), snapshot.line_start
                with contextlib.suppress(ConnectionError):  # it has found what it looks for
                    process.stdin.write(json.dumps(text).encode() + b"\n")
                    await process.stdin.drain()
                    if is_last:
                        process.stdin.write_eof()
                if is_last:
                    break
                waiting = asyncio.create_task(news.wait())
                await asyncio.wait([answer, waiting], return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
            return bool(await answer)
        finally:
            answer.cancel()
            await kill(process)


async def check_pattern(pattern: str | None) -> None:
    """Raises `ToolError` if it is no regular expression. In a thread: some take half a second to compile."""
    if pattern is not None:
        try:
            await asyncio.to_thread(re.compile, pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolError(f"`until` is not a regular expression: {error}. Correct it, or escape it.") from None


async def _connects(port: int) -> bool:
    """Whether something accepts connections there, where that cannot be read from /proc."""
    if sys.platform == "linux":
        return False
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return True
    return False
