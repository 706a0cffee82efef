"""A sub-agent works in its parent's mode, whenever that changes, and in no other."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import get_args

import pytest

from amanu.permissions import approvals as approval
from amanu.session.summaries import Summaries
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import SessionChanged
from amanu_protocol.items import Mode
from amanu_protocol.requests import QuestionAnswerParams
from amanu_protocol.state import SessionState
from support.agent_session import agent, ask_agent, complete, nested, session_with_agents
from support.required_programs import needs
from support.scripted_session import ScriptedSession, call, step
from support.session_agents import agents_of


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


ASKS = step("", call("ask_user", questions=[{"question": "Which?", "header": "Which"}]))
RUNS = step("", call("run_shell_command", command="echo made > made.txt"))
OUTCOMES: dict[Mode, tuple[bool, bool, bool]] = {
    "plan": (False, False, False),
    "ask": (False, True, False),
    "acceptEdits": (True, False, False),
    "draft": (False, False, True),
    "auto": (True, False, False),
}
"""Mode → whether a command's file is in the workspace, the user is asked about it, it is drafted: as for the session's
own commands."""
MOMENTS = ("before", "while its session is opened", "when its session is open", "while it runs")


@asynccontextmanager
async def agent_at_work(
    tmp_path: Path, mode: Mode, moment: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[ScriptedSession]:
    """A session in another mode, which changes to this one at that moment; then its agent runs a command."""
    steps = [step("", ask_agent("runner")), step("So.")]
    start: Mode = "plan" if mode == "acceptEdits" else "acceptEdits"
    agents = {"runner": [ASKS, RUNS, step("", complete())]}
    async with session_with_agents(tmp_path, agents, *steps, mode=start) as d:
        put = Summaries.put

        async def put_and_change(summaries: Summaries, state: SessionState, *, closed: bool = False) -> None:
            if state.parent_session_id is not None and d.session.state.mode == start:
                await d.session.set_mode(mode)
            await put(summaries, state, closed=closed)

        match MOMENTS.index(moment):
            case 0:
                await d.session.set_mode(mode)
            case 1:
                monkeypatch.setattr(Summaries, "put", put_and_change)
            case 2:
                agents_of(d.session).on_start.append(lambda _: d.session.core.emit(SessionChanged(mode=mode)))
            case _:
                pass
        await d.prompt("go")
        question = (await d.until(lambda state: state.questions)).questions[0]
        if moment == "while it runs":
            await d.session.set_mode(mode)
        assert d.session.state.mode == mode
        params = QuestionAnswerParams(
            session_id="s", question_id=question.item_id, outcome="answered", answers={"q1": "That one."}
        )
        await d.session.answer_question(params, d.client)
        yield d


@pytest.mark.layers
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("mode", get_args(Mode))
async def test_the_mode_that_holds_is_its_parents(
    tmp_path: Path, mode: Mode, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bwrap")
    async with agent_at_work(tmp_path, mode, moment, monkeypatch) as d:
        state = await d.until(lambda state: state.approvals or not state.agents[0].works)
        made = (d.root / "made.txt").exists()
        drafted = any(proposal.draft and proposal.state == "pending" for proposal in state.proposals)
        asked = bool(state.approvals) and not drafted  # the review of the draft may follow at once
        assert (made, asked, drafted) == OUTCOMES[mode]
        if asked:
            child = d.sessions.opened(agent(d).session_id)
            assert child is not None and child.state.mode == mode
            await d.answer("reject")
        if mode == "draft":
            await d.answer("finish")
        await d.ended()
        assert [item.tool for item in nested(d)] == ["ask_user", "run_shell_command"]
        assert (await d.sessions.get(agent(d).session_id)).state.mode == mode


@pytest.mark.layers
async def test_nobody_changes_it_in_the_agents_own_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("bwrap")
    async with session_with_agents(
        tmp_path,
        {"runner": [ASKS, RUNS, step("", complete())]},
        step("", ask_agent("runner")),
        step("So."),
        mode="plan",
    ) as d:
        await d.prompt("go")
        question = (await d.until(lambda state: state.questions)).questions[0]
        child = d.sessions.opened(agent(d).session_id)
        assert child is not None and child.state.at_work and not d.session.state.at_work
        for mode in get_args(Mode):
            with pytest.raises(AmanuError, match="works in the mode of the session it works for") as refused:
                await child.set_mode(mode)
            assert refused.value.kind == "invalidParams" and refused.value.data.hint == "Change the mode there."
        params = QuestionAnswerParams(session_id="s", question_id=question.item_id, outcome="declined", answers={})
        await d.session.answer_question(params, d.client)
        state = await d.ended()
        assert not (d.root / "made.txt").exists() and not state.proposals
        over = await d.sessions.get(agent(d).session_id)
        assert not over.state.at_work
        await over.set_mode("ask")
        assert (over.state.mode, d.session.state.mode) == ("ask", "plan")
