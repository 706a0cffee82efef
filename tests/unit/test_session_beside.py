"""Two things at once in a folder: a second session or client, background commands, drafts, undo, servers, the queue."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.session.session import Session
from amanu.session.sessions import open_sessions
from amanu_protocol import requests as r
from amanu_protocol.items import Mode
from support.agent_session import ask_agent, complete, user_agent
from support.draft_session import decide_all, edit, finish, open_drafts, results, turn
from support.mcp_in_memory import Server, ServersInMemory, text_answer
from support.required_programs import needs
from support.scripted_session import TWELVE, TWO_HUNKS, ScriptedSession, call, conversation, scripted_session, step
from support.session_client import Client, until
from unit.test_session_plan import EXIT, writes
from unit.tools.test_run_shell_command import running

pytestmark = pytest.mark.layers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


DONE = step("Done.")
TWO = TWELVE.replace("line 2\n", "line two\n")
ELEVEN = TWELVE.replace("line 11\n", "line eleven\n")
WHICH = step("", call("ask_user", questions=[{"question": "Which?", "header": "Which"}]))
READS = step("", call("read_file", path="notes.txt"))


def start(command: str) -> dict[str, Any]:
    return step("", call("run_shell_command", command=command, background=True, until="up"))


def heard(session: Session) -> str:
    return "\n".join(message.model_dump_json() for message in conversation(session))


async def second(d: ScriptedSession, tmp_path: Path, *steps: dict[str, Any], mode: Mode = "ask") -> Session:
    """Another session on the folder, which has been prompted."""
    script = tmp_path / "second.json"
    script.write_text(json.dumps(list(steps)))
    client = Client(os.environ, "two")
    params = r.SessionCreateParams(session_id="t", roots=[str(d.root)], model_id=f"scripted:{script}", mode=mode)
    await d.sessions.create(params, client)
    other = await d.sessions.get("t")
    await other.prompts.send(r.PromptSendParams(session_id="t", prompt_id="p", text="go"), client)
    return other


def another_client(d: ScriptedSession) -> Client:
    other = Client(os.environ, "two")
    other.state = d.session.attach(other, None, None).state
    return other


def same(d: ScriptedSession, other: Client) -> bool:
    assert other.state is not None
    return other.state.model_dump() == d.session.view().model_dump()


# Two sessions on one folder -----------------------------------------------------------------------


@pytest.mark.parametrize("end", ["close", "delete"])
async def test_the_end_of_one_session_ends_its_background_commands_alone(tmp_path: Path, end: str) -> None:
    ours, theirs = (f"77.{time.monotonic_ns()}{at}" for at in range(2))
    async with scripted_session(tmp_path, start(f"echo up; sleep {ours}"), DONE, mode="auto") as d:
        other = await second(d, tmp_path, start(f"echo up; sleep {theirs}"), DONE, mode="auto")
        await d.prompt("go")
        await d.ended()
        await until(other, lambda state: state.last_turn)
        await getattr(d.sessions, end)("t")
        assert running(theirs) == [] and running(ours)
        assert [job.state for job in d.session.state.jobs] == ["running"]


async def test_an_agent_of_one_session_asks_in_that_one_alone(tmp_path: Path) -> None:
    agents = step("", call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n"))
    user_agent(tmp_path, "editor", [agents, step("", complete())])
    async with scripted_session(tmp_path, step("", ask_agent("editor")), DONE) as d:
        same_line = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line zwei\n")
        other = await second(d, tmp_path, step("", same_line), DONE)
        await until(other, lambda state: state.approvals)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals)
        assert [asked.agent for asked in (*state.approvals, *other.state.approvals)] == ["editor", ""]
        await d.answer("allow")
        await d.ended()
        await until(other, lambda state: "conflicted" in str(state.proposals))
        assert d.file.read_text() == TWO and not other.state.agents
        await other.prompts.stop()


async def test_one_session_plans_while_another_works(tmp_path: Path) -> None:
    """Its commands see what the other has done, nothing of theirs stays; an approved plan is the mode of one."""
    looks = step("", call("run_shell_command", command="cat notes.txt; echo planned >> notes.txt"))
    steps = looks, step("", writes(), EXIT), DONE
    async with scripted_session(tmp_path, *steps, mode="plan") as d:
        other = await second(d, tmp_path, step("", edit("line 2\n", "line two\n")), DONE, mode="acceptEdits")
        await until(other, lambda state: state.last_turn)
        await d.prompt("plan it")
        await d.until(lambda state: state.approvals)
        assert "line two" in d.told() and d.file.read_text() == TWO
        await other.set_mode("ask")
        assert await d.answer("allow", mode="auto") == "resolved"
        await d.ended()
        assert (d.session.state.mode, other.state.mode, other.state.plan) == ("auto", "ask", None)


async def test_what_is_said_to_one_session_no_other_hears(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WHICH, DONE, step("And on.")) as d:
        other = await second(d, tmp_path, WHICH, DONE)
        turn_id = await d.prompt("go") or ""
        await d.until(lambda state: state.questions)
        await until(other, lambda state: state.questions)
        queued = r.PromptSendParams(session_id="s", prompt_id="p2", text="QUEUED")
        await d.session.prompts.send(queued, d.client)
        steering = r.PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text="STEERED")
        await d.session.prompts.steer(steering, d.client)
        await d.over("p2")
        assert len(other.state.questions) == 1 and not other.state.queue
        assert "STEERED" in d.told() and "QUEUED" in d.told()
        assert "STEERED" not in heard(other) and "QUEUED" not in heard(other)
        await other.prompts.stop()


@pytest.mark.parametrize("restored", [False, True])
async def test_undoing_one_session_s_edits_leaves_those_of_the_other(tmp_path: Path, restored: bool) -> None:
    async with scripted_session(tmp_path, step("", edit("line 2\n", "line two\n")), DONE, mode="acceptEdits") as d:
        await d.prompt("go")
        await d.ended()
        more = edit("line 11\n", "line eleven\n"), edit("line two\n", "line two and more\n")
        other = await second(d, tmp_path, step("", more[0]), step("", more[1]), DONE, mode="acceptEdits")
        await until(other, lambda state: state.last_turn)
        both = d.file.read_text()
        if restored:
            params = r.CheckpointRestoreParams(session_id="s", turn_id="turn-p1", conversation=True)
            await d.session.checkpoints.restore(params)
        else:
            (file,) = (await d.session.edits.undo(r.ProposalUndoParams(session_id="s", scope=r.EditScope()))).files
            assert file.skipped
        assert d.file.read_text() == both, "its line is the other's by now"
        await other.edits.undo(r.ProposalUndoParams(session_id="t", scope=r.EditScope()))
        assert d.file.read_text() == TWO


async def test_a_run_beside_an_open_session_changes_nothing_that_waits_there(tmp_path: Path) -> None:
    """A headless process of its own, like `amanu run` in the folder of an editor."""
    async with scripted_session(tmp_path, step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), DONE) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        script = tmp_path / "run.json"
        script.write_text(json.dumps([step("", edit("line 2\n", "line zwei\n")), DONE]))
        runs = open_sessions(headless=True)
        client = Client(os.environ)
        made = r.SessionCreateParams(
            session_id="run", roots=[str(d.root)], model_id=f"scripted:{script}", mode="acceptEdits"
        )
        await runs.create(made, client)
        run = await runs.get("run")
        await run.prompts.send(r.PromptSendParams(session_id="run", prompt_id="p", text="go"), client)
        await until(run, lambda state: state.last_turn)
        await runs.shutdown()
        await d.until(lambda state: "conflicted" in str(state.proposals))
        await d.answer("allow")
        await d.ended()
        assert "line zwei" in d.file.read_text() and "line two" not in d.file.read_text()
        assert "line zwei" not in str(d.session.state.items)


# A second client ----------------------------------------------------------------------------------


async def test_two_clients_decide_one_draft(tmp_path: Path) -> None:
    steps = step("", edit("line 2\n", "line two\n"), edit("line 11\n", "line eleven\n")), DONE
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        other = another_client(d)
        await turn(d)
        await d.decide("accept")
        assert d.file.read_text() == TWO and same(d, other)
        proposal = d.session.state.proposals[-1]
        seen = [r.SeenProposal(proposal_id=proposal.proposal_id, version=proposal.version)]
        params = r.ProposalDecideParams(session_id="s", scope=r.EditScope(), decision="reject", seen=seen)
        d.session.detach(d.client)
        assert (await d.session.edits.decide(params)).status == "resolved"
        d.client.state = d.session.attach(d.client, None, None).state
        assert d.file.read_text() == TWO and not open_drafts(d) and same(d, other)


async def test_one_client_undoes_what_the_other_accepted_and_both_see_it(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), DONE) as d:
        other = another_client(d)
        await d.prompt("go")
        await d.answer("allow", other)
        await d.ended()
        await d.session.edits.undo(r.ProposalUndoParams(session_id="s", scope=r.EditScope()))
        assert d.file.read_text() == TWELVE and same(d, other)
        params = r.CheckpointRestoreParams(session_id="s", turn_id="turn-p1", conversation=True)
        await d.session.checkpoints.restore(params)
        assert other.state is not None and not other.state.items and same(d, other)


# Background commands ------------------------------------------------------------------------------


async def test_a_background_command_outlives_the_servers_beside_it(tmp_path: Path) -> None:
    servers = ServersInMemory(Server("demo"))
    steps = start("echo up; sleep 60"), step("", call("mcp__demo__echo", text="hi")), DONE
    async with scripted_session(tmp_path, *steps, mode="auto", mcp=servers) as d:
        d.session.allow("mcp__demo__echo")
        await d.prompt("go")
        await d.ended()
        for number, argument in enumerate(("restart demo", "off demo")):
            await d.prompt(f"/mcp {argument}", f"m{number}")
        assert servers.all[0].calls == [("echo", {"text": "hi"})]
        assert [job.state for job in d.session.state.jobs] == ["running"]


@pytest.mark.parametrize("how", ["steered", "queued"])
async def test_the_end_of_a_background_command_and_what_is_said_meanwhile_are_both_heard_once(
    tmp_path: Path, how: str
) -> None:
    steps = start("echo up; read < fifo; exit 4"), WHICH, step("I see."), step("And on.")
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        os.mkfifo(d.root / "fifo")
        turn_id = await d.prompt("go") or ""
        await d.until(lambda state: state.questions)
        await asyncio.to_thread((d.root / "fifo").write_text, "go\n")
        await d.until(lambda state: state.jobs[0].state == "ended")
        if how == "steered":
            steering = r.PromptSteerParams(session_id="s", prompt_id="p2", turn_id=turn_id, text="STOP")
            await d.session.prompts.steer(steering, d.client)
            await d.ended()
        else:
            await d.session.prompts.send(r.PromptSendParams(session_id="s", prompt_id="p2", text="STOP"), d.client)
            (question,) = d.session.state.questions
            declined = r.QuestionAnswerParams(session_id="s", question_id=question.item_id, outcome="declined")
            await d.session.answer_question(declined, d.client)
            await d.over("p2")
        assert d.told().count("has ended. Exit code: 4") == 1
        assert d.told().count("STOP") == 1


# Drafts -------------------------------------------------------------------------------------------


async def test_a_draft_moves_along_with_what_a_server_writes(tmp_path: Path) -> None:
    """A server is no part of the draft: it sees and changes the workspace."""
    file = tmp_path / "work" / "notes.txt"

    async def write(arguments: Any, client: Any) -> Any:
        found = file.read_text()
        file.write_text("by the server\n" + found)
        return text_answer("line two" if "line two" in found else "as on disk")

    steps = step("", edit("line 2\n", "line two\n")), step("", call("mcp__demo__echo", text="x")), READS, DONE
    servers = ServersInMemory(Server("demo", answer=write))
    async with scripted_session(tmp_path, *steps, mode="draft", mcp=servers) as d:
        await d.prompt("go")
        await d.answer("allow")
        await finish(d)
        assert "as on disk" in d.told()
        read = results(d)[2]
        assert "by the server" in read and "line two" in read
        assert file.read_text() == "by the server\n" + TWELVE
        await decide_all(d, "accept")
        assert file.read_text() == "by the server\n" + TWO


@pytest.mark.parametrize("how", ["steered", "queued"])
async def test_what_is_said_at_the_review_of_a_draft_leaves_it_open(tmp_path: Path, how: str) -> None:
    steps = step("", edit("line 2\n", "line two\n")), DONE, step("", edit("line 11\n", "line eleven\n")), DONE
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        turn_id = await d.prompt("go") or ""
        await d.until(lambda state: state.approvals)
        if how == "steered":
            steering = r.PromptSteerParams(session_id="s", prompt_id="p2", turn_id=turn_id, text="also the eleventh")
            await d.session.prompts.steer(steering, d.client)
        else:
            await d.session.prompts.send(
                r.PromptSendParams(session_id="s", prompt_id="p2", text="also the eleventh"), d.client
            )
        await d.until(lambda state: "line eleven" in str(state.proposals))
        await d.until(lambda state: state.approvals)
        assert d.told().count("also the eleventh") == 1 and d.file.read_text() == TWELVE
        await d.answer("allow")
        await d.until(lambda state: state.turn is None)
        assert d.file.read_text() == TWO.replace("line 11\n", "line eleven\n")


# Undo, and a run ----------------------------------------------------------------------------------


async def test_a_rewind_forgets_what_was_said_into_the_turn_and_keeps_what_is_queued(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WHICH, WHICH, step("One."), step("Two.")) as d:
        turn_id = await d.prompt("go") or ""
        (first,) = (await d.until(lambda state: state.questions)).questions
        steering = r.PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text="STEERED")
        await d.session.prompts.steer(steering, d.client)
        await d.until(lambda state: state.questions and state.questions[0].item_id != first.item_id)
        assert "STEERED" in d.told()
        await d.session.prompts.send(r.PromptSendParams(session_id="s", prompt_id="p2", text="QUEUED"), d.client)
        await d.session.prompts.cancel(turn_id)
        await d.over("p1", "cancelled")
        params = r.CheckpointRestoreParams(session_id="s", turn_id=turn_id, conversation=True)
        await d.session.checkpoints.restore(params)
        assert [queued.text for queued in d.session.state.queue] == ["QUEUED"] and "STEERED" not in d.told()
        await d.reopen()
        assert [queued.text for queued in d.session.state.queue] == ["QUEUED"] and "STEERED" not in d.told()


async def test_what_a_run_changed_is_undone_by_whoever_opens_its_session(tmp_path: Path) -> None:
    steps = step("", edit("line 2\n", "line two\n")), DONE
    async with scripted_session(tmp_path, *steps, mode="acceptEdits", headless=True) as d:
        await d.prompt("go")
        await d.ended()
        await d.sessions.close("s")
        daemon = open_sessions()
        try:
            opened = await daemon.get("s")
            assert d.file.read_text() == TWO
            params = r.CheckpointRestoreParams(session_id="s", turn_id="turn-p1", conversation=True)
            await opened.checkpoints.restore(params)
            assert d.file.read_text() == TWELVE and list(conversation(opened)) == []
        finally:
            await daemon.shutdown()
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state
        assert not d.session.state.items
