"""`/jobs` in the chat: the background commands of a session, listed, stopped, their output printed."""

import time

from amanu.cli.console import Console, Style
from amanu.cli.text import one_line, visible
from amanu.client.session_view import SessionView
from amanu.text.amounts import plural, seconds
from amanu_protocol import requests as r
from amanu_protocol.items import Job
from amanu_protocol.state import SessionState

_STYLES: dict[str, Style] = {"running": "green", "ended": "", "stopped": "dim"}
USAGE = "Usage: /jobs [stop ID | output ID]"


def running_count(state: SessionState) -> str:
    """For the line below the prompt; "" when nothing runs."""
    count = sum(job.state == "running" for job in state.jobs)
    return f"{count} in the background" if count else ""


def describe(job: Job, now: float) -> str:
    """A job on one line: what it is, how it stands, for how long, its last line."""
    parts = [f"{job.job_id}  {one_line(job.title, 60)}"]
    summary = one_line(job.summary)
    if job.port is not None and (where := summary.removeprefix(f"Port {job.port}")) != summary:
        parts[0] += f" on port {job.port}{where}"
    else:
        parts.append(summary)
    if job.state == "running":
        parts.append(seconds(max(0.0, now - job.started_at / 1000)))
    if job.last_line:
        parts.append(f"last line: {one_line(job.last_line, 80)}")
    return " · ".join(parts)


def running(state: SessionState) -> str:
    """What runs, for who comes back; "" when nothing does."""
    lines = [describe(job, time.time()) for job in state.jobs if job.state == "running"]
    return "In the background: " + "; ".join(lines) if lines else ""


def farewell(state: SessionState, idle_seconds: float | None) -> str:
    """What becomes of the commands that run, for who leaves; "" when none does. `idle_seconds`: how long the daemon
    stays without a client; None: it ends with the chat."""
    jobs = [job for job in state.jobs if job.state == "running"]
    if not jobs:
        return ""
    count = plural(len(jobs), "background command")
    titles = ", ".join(one_line(job.title, 60) for job in jobs)
    one = len(jobs) == 1
    if idle_seconds is None:
        return f"{count} {'ends' if one else 'end'} with the chat: {titles}."
    hour = 3600
    how_long = f"{idle_seconds / hour:.3g} h" if idle_seconds >= hour else seconds(idle_seconds).removesuffix(" 0 s")
    return (
        f"{count} {'keeps' if one else 'keep'} running for at least {how_long}: {titles}. "
        f"amanu chat --continue returns to {'it' if one else 'them'}."
    )


def standing(job: Job, now: float) -> str:
    """Its state, for how long it runs, its last line."""
    parts = [one_line(job.summary)]
    if job.state == "running":
        parts.append(seconds(max(0.0, now - job.started_at / 1000)))
    if job.last_line:
        parts.append(one_line(job.last_line, 80))
    return " · ".join(parts)


class JobSlashCommands:
    """The slash commands of the chat that are about background commands. Raise `AmanuError`."""

    def __init__(self, view: SessionView, console: Console) -> None:
        self._view = view
        self._console = console

    async def run(self, argument: str) -> None:
        word, _, job_id = argument.partition(" ")
        match word, job_id.strip():
            case "", "":
                self._list()
            case "stop", job_id if job_id:
                await self._stop(job_id)
            case "output", job_id if job_id:
                await self._output(job_id)
            case _:
                self._console.line(("red", USAGE))

    def _list(self) -> None:
        for job in self._view.state.jobs:
            self._console.line((_STYLES[job.state], describe(job, time.time())))
        if not self._view.state.jobs:
            self._console.line(("dim", "No background commands."))

    async def _stop(self, job_id: str) -> None:
        params = r.JobParams(session_id=self._view.session_id, job_id=_full(job_id))
        answer = await self._view.client.request("amanu/job/stop", params, r.JobResult)
        self._console.line(("dim", describe(answer.job, time.time())))

    async def _output(self, job_id: str) -> None:
        offset = 0
        while True:
            params = r.JobOutputParams(session_id=self._view.session_id, job_id=_full(job_id), offset=offset)
            answer = await self._view.client.request("amanu/job/output", params, r.JobOutputResult)
            if answer.missing:
                self._console.line(("dim", f"[… {plural(answer.missing, 'byte')} left out …]"))
            if answer.next_offset == offset:
                break
            offset = answer.next_offset
            self._console.verbatim(("", visible(answer.text.rstrip("\n"))))
        if not offset:
            self._console.line(("dim", "No output."))


def _full(job_id: str) -> str:
    """The id, also when only its number was typed."""
    return f"job-{job_id}" if job_id.isdecimal() else job_id
