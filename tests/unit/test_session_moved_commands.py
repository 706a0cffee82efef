"""A command that the user puts in the background: its call ends at once, and it goes on as a job of the session."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.tools.shell import foreground_run
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Job, Mode, ToolCall
from amanu_protocol.requests import (
    CheckpointRestoreParams,
    JobBeginParams,
    JobInputParams,
    JobOutputParams,
    JobParams,
)
from support.agent_session import ask_agent, complete, session_with_agents
from support.required_programs import needs
from support.scripted_session import ScriptedSession, call, scripted_session, step
from unit.tools.test_run_shell_command import running

pytestmark = pytest.mark.layers

DONE = step("Done.")
HOLDS = "until [ -e go ]; do sleep 0.02; done"
"""Runs until there is a file `go` in the workspace, which a private copy never has."""
SLOW = "sleep 1"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(foreground_run, "MOVABLE_SECONDS", 0.0)


def shell(command: str, **more: Any) -> dict[str, Any]:
    return call("run_shell_command", command=command, **more)


def last_call(d: ScriptedSession) -> ToolCall:
    return [item for item in d.session.state.items if isinstance(item, ToolCall)][-1]


async def printed(d: ScriptedSession, text: str) -> ToolCall:
    """The call whose command has printed that, and still runs."""

    def found() -> ToolCall | None:
        calls = [item for item in d.session.state.items if isinstance(item, ToolCall)]
        return next((each for each in calls if text in each.output and each.state == "executing"), None)

    await d.until(lambda _: found())
    found_call = found()
    assert found_call is not None
    return found_call


async def move(d: ScriptedSession, **more: Any) -> list[Job]:
    return (await d.session.core.jobs.begin(JobBeginParams(session_id="s", **more))).jobs


async def output(d: ScriptedSession, job_id: str = "job-1") -> str:
    return (await d.session.core.jobs.output(JobOutputParams(session_id="s", job_id=job_id))).text


MOVES: dict[str, tuple[Mode, str, dict[str, Any], bool]] = {
    "only reads": ("auto", f"echo up; {HOLDS}; echo bye", {}, True),
    "allowed in the workspace": ("ask", f"echo up; {HOLDS}; echo bye | tee made", {"network": True}, True),
    "plan mode, only reads": ("plan", f"echo up; {HOLDS}; echo bye", {}, True),
    "plan mode, writes": ("plan", f"echo up; {SLOW}; echo bye | tee made", {}, True),
    "its changes are proposed": ("ask", f"echo up; {SLOW}; echo bye | tee made", {}, False),
    "its changes are drafted": ("draft", f"echo up; {SLOW}; echo bye | tee made", {}, False),
}


@pytest.mark.parametrize("what", MOVES)
async def test_where_it_runs_decides_whether_it_can(tmp_path: Path, what: str) -> None:
    mode, command, more, moves = MOVES[what]
    async with scripted_session(tmp_path, step("", shell(command, **more)), DONE, mode=mode) as d:
        await d.prompt("go")
        if more:
            await d.answer("allow")
        shown = await printed(d, "up")
        if moves:
            await d.until(lambda _: last_call(d).movable)
            [job] = await move(d)
            assert (job.job_id, job.tool_call_id, job.state) == ("job-1", shown.item_id, "running")
            await d.ended()
            assert last_call(d).state == "succeeded" and not last_call(d).movable
            assert "put this command in the background" in d.told() and "it goes on as job-1" in d.told()
        else:
            with pytest.raises(AmanuError, match="stays in the foreground") as refused:
                await move(d)
            assert refused.value.kind == "commandNotMovable" and not last_call(d).movable
        (d.root / "go").touch()
        if moves:
            await d.until(lambda state: state.jobs[0].state == "ended")
            assert d.session.state.jobs[0].exit_code == 0
            assert await output(d) == "up\nbye\n"
        else:
            await d.until(lambda state: state.approvals)
            assert d.session.state.jobs == [] and d.session.state.proposals
            await d.answer("allow")
        await d.ended()
        assert (d.root / "made").exists() == ("made" in command and mode != "plan")


LOOKS = f"echo up; {HOLDS}; echo bye"


async def test_what_does_not_run_is_not_moved_and_nothing_twice(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(LOOKS)), DONE, mode="auto") as d:

        async def refused(**more: Any) -> bool:
            with pytest.raises(AmanuError, match="No command is running") as error:
                await move(d, **more)
            return error.value.kind == "commandNotMovable"

        assert await refused()
        await d.prompt("go")
        shown = await printed(d, "up")
        assert await refused(tool_call_id="another")
        assert len(await move(d, tool_call_id=shown.item_id)) == 1
        await d.ended()
        assert await refused() and len(d.session.state.jobs) == 1


async def test_two_clients_at_once_move_it_once(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(LOOKS)), DONE, mode="auto") as d:
        await d.prompt("go")
        await printed(d, "up")
        both = await asyncio.gather(move(d), move(d), return_exceptions=True)
        assert sorted(type(each).__name__ for each in both) == ["AmanuError", "list"]
        await d.ended()
        assert len(d.session.state.jobs) == 1


async def test_all_that_runs_beside_one_another_is_moved(tmp_path: Path) -> None:
    both = step("", shell(f"echo one; {HOLDS}"), shell(f"echo two; {HOLDS}"))
    async with scripted_session(tmp_path, both, DONE, mode="auto") as d:
        await d.prompt("go")
        await printed(d, "one")
        moved = await move(d)
        if len(moved) == 1:  # the second waited for the first
            await printed(d, "two")
            moved += await move(d)
        await d.ended()
        assert [job.title.partition(";")[0] for job in moved] == ["echo one", "echo two"]


async def test_what_the_model_hears_of_it(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(LOOKS)), step("I go on."), DONE, mode="auto") as d:
        await d.prompt("go", "p1")
        await printed(d, "up")
        await move(d)
        await d.over("p1")
        shown = last_call(d)
        assert shown.title == f"Run in the background: {LOOKS}"
        assert shown.output == "up\nGoes on in the background as job-1."
        (d.root / "go").touch()
        await d.until(lambda state: state.jobs[0].state == "ended")
        await d.prompt("and?", "p2")
        await d.over("p2")
        assert "it goes on as job-1" in d.told() and d.told().count("has ended. Exit code: 0") == 1


async def test_stopping_the_turn_does_not_end_it_and_stopping_it_does(tmp_path: Path) -> None:
    number = str(time.monotonic_ns())
    steps = [step("", shell(f"echo up; {HOLDS}; echo {number}")), step("", shell(f"echo more; {HOLDS}")), DONE]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        turn_id = await d.prompt("go")
        await printed(d, "up")
        await move(d)
        await printed(d, "more")
        assert turn_id is not None
        await d.session.prompts.cancel(turn_id)
        await d.ended("cancelled")
        assert [job.state for job in d.session.state.jobs] == ["running"] and running(number)
        await d.session.core.jobs.end(JobParams(session_id="s", job_id="job-1"))
        assert [job.state for job in d.session.state.jobs] == ["stopped"] and running(number) == []


async def test_a_stop_at_the_same_moment_leaves_nothing_unseen(tmp_path: Path) -> None:
    number = str(time.monotonic_ns())
    async with scripted_session(tmp_path, step("", shell(f"echo up; {HOLDS}; echo {number}")), DONE, mode="auto") as d:
        turn_id = await d.prompt("go")
        await printed(d, "up")
        assert turn_id is not None
        await asyncio.gather(move(d), d.session.prompts.cancel(turn_id), return_exceptions=True)
        await d.ended("cancelled")
        shown = [job.state for job in d.session.state.jobs]
        assert bool(running(number)) == (shown == ["running"])


async def test_it_outlives_the_sub_agent_that_called_it_as_its_own_background_commands_do(tmp_path: Path) -> None:
    agents = {"asker": [step("", shell(LOOKS)), step("", complete())]}
    steps = [step("", ask_agent("asker")), DONE]
    async with session_with_agents(tmp_path, agents, *steps, mode="auto") as d:
        await d.prompt("go")
        await d.until(lambda _: d.session.core.jobs.jobs.foreground and d.session.core.jobs.jobs.foreground[0].may_move)
        await move(d)
        await d.ended()
        assert [job.state for job in d.session.state.jobs] == ["running"]
        (d.root / "go").touch()
        await d.until(lambda state: state.jobs[0].state == "ended")
        assert d.session.state.jobs[0].exit_code == 0 and await output(d) == "up\nbye\n"
        await d.reopen()
        assert await output(d) == "up\nbye\n"


async def test_it_ends_with_the_session_and_is_known_to_the_next_daemon(tmp_path: Path) -> None:
    number = str(time.monotonic_ns())
    async with scripted_session(tmp_path, step("", shell(f"echo up; {HOLDS}; echo {number}")), DONE, mode="auto") as d:
        await d.prompt("go")
        await printed(d, "up")
        await move(d)
        await d.ended()
        await d.reopen()
        assert running(number) == []
        assert d.session.state.jobs[0].summary.startswith("Stopped with the session")
        assert await output(d) == "up\n"
        assert not any(item.movable for item in d.session.state.items if isinstance(item, ToolCall))


async def test_undo_and_going_back_leave_it_running(tmp_path: Path) -> None:
    edit = call("write_file", path="new.txt", content="new\n")
    async with scripted_session(tmp_path, step("", edit), step("", shell(LOOKS)), DONE, mode="auto") as d:
        await d.prompt("go")
        await printed(d, "up")
        await move(d)
        await d.ended()
        [point] = (await d.session.checkpoints.list()).checkpoints
        restore = CheckpointRestoreParams(session_id="s", turn_id=point.turn_id, conversation=True)
        await d.session.checkpoints.restore(restore)
        assert not (d.root / "new.txt").exists()
        assert [job.state for job in d.session.state.jobs] == ["running"]


async def test_it_takes_no_input(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(LOOKS)), DONE, mode="auto") as d:
        await d.prompt("go")
        await printed(d, "up")
        await move(d)
        with pytest.raises(AmanuError, match="started without input"):
            await d.session.core.jobs.input(JobInputParams(session_id="s", job_id="job-1", text="x\n"))
        await d.ended()


async def test_an_own_command_can_be_moved_too(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, mode="auto") as d:
        await d.prompt(f"! {LOOKS}")
        await printed(d, "up")
        await move(d)
        await d.ended()
        assert [job.state for job in d.session.state.jobs] == ["running"]
