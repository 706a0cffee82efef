"""What the model is told of a background command: what it has printed since, and how it stands."""

import asyncio
from collections.abc import Sequence

from pydantic import JsonValue

from amanu.core.tool import Outcome
from amanu.text.amounts import plural, seconds
from amanu.text.wording import is_reachable
from amanu.tools.files.read_output import ID_LENGTH
from amanu.tools.shell.job import Job
from amanu.tools.shell.jobs import Jobs
from amanu_protocol.items import Job as ShownJob


async def report(
    job: Job, jobs: Jobs, limit: int, *, since: int | None = None, first: str = "", in_call: bool = False
) -> Outcome:
    """What it has printed since the model last read, or since that offset, at most so many characters; `first` comes
    before the other notes. The model now counts as told of the end. `in_call`: this ends the call that started it."""
    has_news = since is not None or job.output.size != job.read_size
    start = job.read_from if since is None else since
    snapshot = job.output.snapshot(start)
    text = await asyncio.to_thread(job.output.text, snapshot) if has_news else ""
    if job.ended.is_set() and snapshot.size < job.output.size:  # an end is reported with its last lines
        snapshot = job.output.snapshot(start)
        text = await asyncio.to_thread(job.output.text, snapshot)
    # No await from here on: the report must match the job's state.
    job.read_size, job.read_from = snapshot.size, snapshot.line_start
    shown = text if len(text) <= limit else _ends(text, limit)
    notes = [*([first] if first else ()), *_notes(job, jobs)]
    if shown != text:
        after = snapshot.pieces[0].end - len(snapshot.pieces[0].data) + len(text[: limit // 5].encode())
        notes.append(f'What was left out begins at byte {after}: read_command(job="{job.job_id}", offset={after}).')
    end = job.end
    fields: dict[str, JsonValue] = {"job": job.job_id, "state": job.shown.state, "output": shown}
    fields |= {"exit_code": job.shown.exit_code} if end is not None else {}
    fields |= {"port": job.shown.port} if job.shown.port is not None else {}
    fields |= {"duration_s": round(job.seconds, 1), "truncated": shown != text or "bytes left out …]" in text}
    fields["notes"] = "\n".join(notes)
    body = shown.rstrip("\n") or ("[no output]" if has_news or not job.output.size else "[no new output]")
    text_for_user = "\n".join(notes)
    job.in_call &= not in_call
    job.tell()
    return Outcome(
        f"{body}\n\n{text_for_user}",
        f"{shown[-limit:].rstrip()}\n{text_for_user}".lstrip(),
        is_error=in_call and end is not None and end.failed and not job.stopped_by,
        sandbox=job.shown.sandbox,
        fields=fields,
    )


def running_line(jobs: Sequence[ShownJob]) -> str:
    """Which background commands are running, as a sentence; "" for none."""
    if not jobs:
        return ""
    return f"{plural(len(jobs), 'background command')} {'is' if len(jobs) == 1 else 'are'} running: {names(jobs)}."


def names(jobs: Sequence[ShownJob]) -> str:
    """Which these are, on one line."""
    return ", ".join(f"{job.job_id} ({job.title}{f', port {job.port}' if job.port else ''})" for job in jobs)


def end_line(job: ShownJob) -> str:
    """How a background command ended, as a sentence."""
    stored = f' Output: read_output(id="{job.blob.blob_id[:ID_LENGTH]}").' if job.blob else ""
    return f"Background command {job.job_id} ({job.title}) has ended. {job.summary}.{stored}"


def _notes(job: Job, jobs: Jobs) -> list[str]:
    shown, end = job.shown, job.end
    notes: list[str] = []
    if end is None:
        listening = "" if shown.port is None else f" and listens on port {shown.port}"
        notes.append(f"{job.job_id} has been running for {seconds(job.seconds)}{listening}.")
        if shown.port is not None and not is_reachable(shown):
            notes.append(
                "Only commands in the same sandbox can reach that port: not the user's browser, not you. If that is "
                "needed, stop it and start it again with network=true."
            )
    else:
        notes.append(f"{job.job_id} has ended after {seconds(job.seconds)}. {end.note}")
        notes += [end.details] if end.details else []
    others = [other.shown for other in jobs.running if other is not job]
    return [*notes, *([f"Also: {running_line(others)}"] if others else [])]


def _ends(text: str, limit: int) -> str:
    first, last = limit // 5, limit - limit // 5
    return f"{text[:first]}\n[… {len(text) - limit:,} of {len(text):,} characters left out …]\n{text[-last:]}"
