"""The end of a sub-agent, however it comes, ends nothing of the session it worked for."""

from pathlib import Path
from typing import Any

import pytest

from amanu.checks import proposal_checks as verdicts
from amanu.permissions import approvals as approval
from amanu.proposals import tracking as following
from amanu_protocol.items import SubAgent
from amanu_protocol.requests import AgentParams, QuestionAnswerParams
from support.agent_session import ask_agent, complete, results, session_with_agents
from support.hook_files import TELLS, configure_user, handler, notices
from support.mcp_in_memory import Server, ServersInMemory
from support.required_programs import needs
from support.scripted_session import TWO_HUNKS, ScriptedSession, call, step
from support.session_agents import agents_of
from unit.test_proposal_checks import EDIT, TEXT, Linter, said
from unit.test_session_typing import Editor


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(following, "QUIET", 0.01)
    monkeypatch.setattr(verdicts, "PAUSE", 0.0)


QUESTION = step("", call("ask_user", questions=[{"question": "Which?", "header": "Which"}]))
ENDS: dict[str, list[dict[str, Any]]] = {
    "completed": [QUESTION, step("", complete())],
    "failed": [QUESTION, step("I think so."), step("No idea.")],
    "cancelled": [QUESTION],
}
"""State at its end → the steps of its model."""


def asker(d: ScriptedSession) -> SubAgent:
    return next(each for each in d.session.state.agents if each.name == "asker")


async def end_agent(d: ScriptedSession, end: str) -> None:
    question = (await d.until(lambda state: state.questions)).questions[0]
    if end == "cancelled":
        await agents_of(d.session).stop(AgentParams(session_id="s", agent_id=asker(d).agent_id))
    else:
        answers: Any = {"q1": "That one."}
        params = QuestionAnswerParams(session_id="s", question_id=question.item_id, outcome="answered", answers=answers)
        await d.session.answer_question(params, d.client)
    await d.until(lambda state: asker(d).state == end)
    await d.until(lambda state: d.sessions.opened(asker(d).session_id) is None)


def job(until: str) -> dict[str, Any]:
    return call("run_shell_command", command=f"echo {until}; sleep 77", background=True, until=until)


@pytest.mark.layers
@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
@pytest.mark.parametrize("end", ENDS)
async def test_all_that_it_shared_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, background: bool
) -> None:
    needs("bwrap")
    linter = Linter(tmp_path, monkeypatch)
    configure_user(PostToolUse=[handler(TELLS, matcher="mcp__.*")])
    steps = [
        step("", job("up")),
        step("Started."),
        step("", ask_agent("asker", background=background), ask_agent("editor")),
        step("", call("write_file", path="a.sh", content="wrong again\n")),
        step(
            "", call("run_shell_command", command="echo new > new.txt"), call("mcp__demo__echo", text="hi"), job("on")
        ),
        step("Done."),
    ]
    servers = ServersInMemory(Server("demo"))
    edits = [step("", call("write_file", path="notes.txt", content=TWO_HUNKS), EDIT), step("", complete())]
    agents = {"asker": ENDS[end], "editor": edits}
    async with session_with_agents(tmp_path, agents, *steps, mode="auto", mcp=servers) as d:
        (d.root / "a.sh").write_text(TEXT)
        await d.trust()
        await d.session.record(str(tmp_path / "recording"))
        await d.prompt("start")
        await d.over("p1")
        await d.session.set_mode("ask")
        editor = Editor(d)
        await d.prompt("go", "p2")
        await d.until(lambda state: len(state.approvals) == 2)
        await d.until(lambda state: "shellcheck running" in str(said(state)))

        await end_agent(d, end)

        assert [job.state for job in d.session.state.jobs] == ["running"]
        editor.type(1, "mine\n", 2)  # the proposal follows the user's typing
        await d.until(lambda state: "conflicted" in str(state.proposals))
        linter.open()
        await d.until(lambda state: "shellcheck done +1 -1" in said(state))
        recorder = d.session.recording.line.recorder
        assert recorder is not None
        recorder.begin().end("failed")
        assert '"exchange":1' in (tmp_path / "recording").read_text()

        while (await d.until(lambda state: state.approvals or (state.last_turn and state.turn is None))).approvals:
            await d.answer("allow")
        await d.over("p2")
        assert "Checked a.sh: this change adds 1 error" in d.told()
        assert (d.root / "new.txt").read_text() == "new\n"
        assert servers.all[0].calls == [("echo", {"text": "hi"})] and "mcp__demo__echo" in notices(d)
        assert [job.state for job in d.session.state.jobs] == ["running", "running"], results(d)
