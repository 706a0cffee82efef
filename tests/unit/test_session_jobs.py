"""Background commands live with the session: past the turn, its cancellation and its clients, and no longer."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.sandbox.sandbox import Sandbox
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Job, Notice, UserMessage
from amanu_protocol.requests import (
    AuditQueryParams,
    JobInputParams,
    JobOutputParams,
    JobParams,
)
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.session_client import Client
from unit.tools.test_run_shell_command import running


@pytest.fixture(autouse=True)
def quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def start(command: str, **more: Any) -> dict[str, Any]:
    return call("run_shell_command", command=command, background=True, **more)


def job(d: ScriptedSession, at: int = 0) -> Job:
    return d.session.state.jobs[at]


async def test_it_outlives_its_turn_and_its_client_and_ends_with_the_session(tmp_path: Path) -> None:
    number = str(time.monotonic_ns())
    script = start(f"echo up; sleep 77.{number}", until="up")
    async with scripted_session(tmp_path, step("", script), step("Started."), mode="auto") as d:
        await d.prompt("start it")
        await d.ended()
        assert (job(d).state, job(d).title) == ("running", f"echo up; sleep 77.{number}")
        d.session.detach(d.client)
        assert not d.session.idle and running(number)
        other = Client(os.environ)
        state = d.session.attach(other, None, None).state
        assert state is not None and state.jobs == d.session.state.jobs
        d.client.state = d.session.attach(d.client, None, None).state
        await d.sessions.close("s")
        assert running(number) == []
        d.session = await d.sessions.get("s")
        assert job(d).state == "stopped" and job(d).summary.startswith("Stopped with the session, after ")
        d.client.state = d.session.attach(d.client, None, None).state


async def test_its_end_is_told_to_the_user_at_once_and_to_the_model_once(tmp_path: Path) -> None:
    steps = [
        step("", start("echo up; read < fifo; echo bye; exit 4", until="up")),
        step("Started."),
        step("", call("read_file", path="notes.txt")),
        step("I see."),
        step("Well."),
    ]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        os.mkfifo(d.root / "fifo")
        await d.prompt("start it", "p1")
        await d.over("p1")
        await asyncio.to_thread((d.root / "fifo").write_text, "go\n")
        await d.until(lambda state: state.jobs[0].state == "ended")
        assert job(d).exit_code == 4 and job(d).last_line == "bye" and not job(d).told
        notices = [item for item in d.session.state.items if isinstance(item, Notice) and item.code == "jobEnded"]
        assert len(notices) == 1 and notices[0].level == "warning" and "Exit code: 4" in notices[0].text
        for prompt in ("p2", "p3"):
            await d.prompt("and?", prompt)
            await d.over(prompt)
        assert d.told().count("job-1 (echo up; read < fifo; echo bye; exit 4) has ended. Exit code: 4") == 1
        assert job(d).told
        output = await d.session.core.jobs.output(JobOutputParams(session_id="s", job_id="job-1"))
        assert (output.text, output.next_offset) == ("up\nbye\n", 7)
        await d.reopen()
        output = await d.session.core.jobs.output(JobOutputParams(session_id="s", job_id="job-1"))
        assert output.text == "up\nbye\n", "also of the daemon before"
        entries = (await d.sessions.audit_query(AuditQueryParams(session_id="s"))).entries
        ends = [entry for entry in entries if "Background command job-1 ended" in entry.text]
        assert len(ends) == 1


async def test_its_end_within_a_turn_is_told_after_the_step(tmp_path: Path) -> None:
    steps = [
        step("", start("echo up; read < fifo; exit 4", until="up")),
        step("", call("run_shell_command", command="echo go > fifo; sleep 0.3")),
        step("", call("read_file", path="notes.txt")),
        step("Done."),
    ]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        os.mkfifo(d.root / "fifo")
        await d.prompt("go")
        await d.ended()
        assert d.told().count("has ended. Exit code: 4") == 1
        told = [item.text for item in d.session.state.items if isinstance(item, Notice) and item.code == "modelTold"]
        assert told == ["The model was told how 1 background command ended."]


async def test_the_model_sees_what_runs_with_each_prompt(tmp_path: Path) -> None:
    steps = [step("", start("sleep 300", wait_s=0.01)), step("Started."), step("Yes.")]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        for prompt in ("p1", "p2"):
            await d.prompt("go", prompt)
            await d.over(prompt)
        assert d.told().count("1 background command is running: job-1 (sleep 300).") == 1
        shown = [item.text for item in d.session.state.items if isinstance(item, UserMessage)]
        assert shown == ["go", "go"]


async def test_clients_stop_read_and_type(tmp_path: Path) -> None:
    steps = [step("", start("while read x; do echo got $x; done", wait_s=0.01)), step("Started.")]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        jobs = d.session.core.jobs
        await d.prompt("go")
        await d.ended()
        await jobs.input(JobInputParams(session_id="s", job_id="job-1", text="hello\n"))
        await d.until(lambda state: state.jobs[0].last_line == "got hello")
        params = JobOutputParams(session_id="s", job_id="job-1", raw=True)
        assert (await jobs.output(params)).text == "got hello\n"
        stop = JobParams(session_id="s", job_id="job-1")
        both = await asyncio.gather(jobs.end(stop), jobs.end(stop))
        assert [each.job.state for each in both] == ["stopped", "stopped"]
        assert (await jobs.end(stop)).job.summary.startswith("Stopped by the user, after ")
        for asked in (
            jobs.end(JobParams(session_id="s", job_id="job-9")),
            jobs.output(JobOutputParams(session_id="s", job_id="job-9")),
            jobs.input(JobInputParams(session_id="s", job_id="job-9", text="x")),
        ):
            with pytest.raises(AmanuError) as refused:
                await asked
            assert refused.value.kind == "jobNotFound"
        with pytest.raises(AmanuError, match="has ended: it takes no input") as refused:
            await jobs.input(JobInputParams(session_id="s", job_id="job-1", text="x"))
        assert refused.value.kind == "invalidParams"


async def test_a_cancelled_turn_leaves_what_its_earlier_calls_started(tmp_path: Path) -> None:
    number = str(time.monotonic_ns())
    steps = [
        step("", start("sleep 300", wait_s=0.01)),
        step("", start(f"sleep 77.{number}", until="never", wait_s=60)),
    ]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        turn_id = await d.prompt("go")
        await d.until(lambda state: len(state.jobs) == 2)
        assert turn_id is not None
        await d.session.prompts.cancel(turn_id)
        await d.ended("cancelled")
        assert [each.state for each in d.session.state.jobs] == ["running", "stopped"]
        assert running(number) == []


async def test_typing_asks_in_every_mode(tmp_path: Path) -> None:
    steps = [
        step("", start("bash", wait_s=0.01)),
        step("", call("write_command", job="job-1", text="echo typed\n")),
        step("Done."),
    ]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals)
        assert state.approvals[0].detail == "echo typed\n\nTyped into job-1: bash"
        await d.answer("allow")
        await d.ended()
        assert "typed\\n" in d.told()


KEEPS = "1 background command keeps running: job-1 (sleep 60)."
KEEP = "2 background commands keep running: job-1 (sleep 60), job-2 (sleep 61)."
TOLD = "Plan mode does not stop what runs in the background: "


@pytest.mark.parametrize("by_model", [False, True])
@pytest.mark.parametrize(("commands", "said"), [([], ""), (["sleep 60"], KEEPS), (["sleep 60", "sleep 61"], KEEP)])
async def test_what_goes_on_in_plan_mode_is_said_to_the_user_and_the_model(
    tmp_path: Path, commands: list[str], said: str, by_model: bool
) -> None:
    began = [step("", *(start(command, wait_s=0.01) for command in commands))] if commands else []
    enters = [step("", call("enter_plan_mode", reason="Two designs."))] if by_model else []
    async with scripted_session(tmp_path, *began, step("Started."), *enters, step("Planned."), mode="auto") as d:
        await d.prompt("start", "p1")
        await d.over("p1")
        if not by_model:
            await d.session.set_mode("plan")
            await d.session.set_mode("plan")
        await d.prompt("plan it", "p2")
        if by_model:
            await d.answer("allow")
        state = await d.over("p2")
        notices = [item.text for item in state.items if isinstance(item, Notice) and item.code == "jobsGoOn"]
        assert notices == ([said] if said else [])
        assert d.told().count(TOLD) == len(notices)
        assert (TOLD + said.partition(": ")[2] in d.told()) == bool(said)


async def test_no_command_of_any_session_is_blamed_for_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted: list[tuple[str, str]] = []

    async def accept(sandbox: Sandbox, path: Path) -> None:
        accepted.append((path.name, path.read_text()))

    monkeypatch.setattr(Sandbox, "accept", accept)
    steps = [step("", call("write_file", path="new.txt", content="new\n")), step("Done.")]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        await d.prompt("go")
        await d.ended()
        assert accepted == [("new.txt", "new\n")], "though this session runs nothing in the background"
