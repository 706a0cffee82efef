"""A message said into a turn reaches that session's own model and settles what it has asked; nothing else."""

import os
from pathlib import Path
from typing import Any

import pytest

from amanu.mcp.model import CallAnswer, CallClient
from amanu.permissions import approvals as approval
from amanu.session.session import Session
from amanu_protocol.items import Mode, Question
from amanu_protocol.requests import PromptSendParams, PromptSteerParams, QuestionAnswerParams
from support.agent_session import agent, ask_agent, complete, nested, results, session_with_agents
from support.mcp_in_memory import Server, ServersInMemory, text_answer
from support.scripted_session import TWO_HUNKS, ScriptedSession, call, conversation, scripted_session, step
from support.session_client import Client
from unit.test_session_plan import EXIT, writes


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


STOP = "STOP: do not touch prod"
WITH_FILE = "STOP: see @notes.txt"


def question(text: str) -> dict[str, Any]:
    return call("ask_user", questions=[{"question": text, "header": "Which"}])


EDIT = call("write_file", path="notes.txt", content=TWO_HUNKS)
ASKING = [step("", question("The agent's?")), step("", complete("Asked."), expect="Answer: That one.")]
EDITING = [step("", EDIT), step("", complete("Edited."))]


async def say(d: ScriptedSession, how: str, text: str = STOP, client: Client | None = None) -> None:
    """Into the running turn of the session, or behind it."""
    turn = d.session.state.turn
    assert turn is not None
    if how == "queued":
        params = PromptSendParams(session_id="s", prompt_id="said", text=text)
        await d.session.prompts.send(params, client or d.client)
    else:
        steering = PromptSteerParams(session_id="s", prompt_id="said", turn_id=turn.turn_id, text=text)
        await d.session.prompts.steer(steering, client or d.client)


async def answer_question(d: ScriptedSession, asked: Question) -> None:
    answers: Any = {asked.fields[0].field_id: "That one."}
    params = QuestionAnswerParams(session_id="s", question_id=asked.item_id, outcome="answered", answers=answers)
    await d.session.answer_question(params, d.client)


def heard(session: Session, text: str) -> int:
    return sum(message.model_dump_json().count(text) for message in conversation(session))


@pytest.mark.parametrize("text", [STOP, WITH_FILE])
@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_a_question_of_an_agent_stays_open_and_the_model_hears(
    tmp_path: Path, background: bool, text: str
) -> None:
    steps = [step("", ask_agent("asker", background=background), question("Mine?")), step("I stop.", expect="STOP")]
    async with session_with_agents(tmp_path, {"asker": ASKING}, *steps) as d:
        await d.prompt("go")
        state = await d.until(lambda state: len(state.questions) == 2)
        of_agent = next(each for each in state.questions if each.agent_id is not None)
        await say(d, "steered", text)
        assert [each.item_id for each in d.session.state.questions] == [of_agent.item_id]
        if background:
            await d.ended()
        await answer_question(d, of_agent)
        await d.until(lambda state: state.agents[0].state == "completed")
        await d.ended()
        own = "see the message" if text == WITH_FILE else text
        assert results(d)[1] == f"The user declined to answer. They said: {own}"
        assert heard(d.session, text) == 1
        assert heard(await d.sessions.get(agent(d).session_id), "STOP") == 0


@pytest.mark.parametrize("how", ["steered", "queued"])
@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_a_review_of_an_agent_stays_open(tmp_path: Path, background: bool, how: str) -> None:
    more = [question("Mine?")] if background else []
    steps = [step("", ask_agent("editor", background=background), *more), step("Well."), step("And that.")]
    async with session_with_agents(tmp_path, {"editor": EDITING}, *steps) as d:
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals and (state.questions or not background))
        (asked,) = state.approvals
        await say(d, how)
        assert d.session.state.approvals == [asked]
        await d.answer("allow")
        await d.until(lambda state: state.agents[0].state == "completed")
        if d.session.state.questions:
            await answer_question(d, d.session.state.questions[0])
        await (d.over("said") if how == "queued" else d.over("p1"))
        assert d.file.read_text() == TWO_HUNKS and heard(d.session, STOP) == 1
        assert nested(d)[0].state == "succeeded"


async def test_what_is_said_to_an_agent_settles_what_the_agent_asked_alone(tmp_path: Path) -> None:
    agents = {
        "asker": [
            step("", question("The agent's?"), call("write_file", path="new.txt", content="a\n")),
            step("", complete("Heard."), expect=STOP),
        ],
        "editor": EDITING,
    }
    steps = [step("", ask_agent("asker"), ask_agent("editor"), question("Mine?")), step("Done.")]
    async with session_with_agents(tmp_path, agents, *steps) as d:
        await d.prompt("go")
        state = await d.until(lambda state: len(state.questions) == 2 and len(state.approvals) == 2)
        (asker,) = (each for each in state.agents if each.name == "asker")
        child = d.sessions.opened(asker.session_id)
        assert child is not None and child.state.turn is not None
        steering = PromptSteerParams(
            session_id=child.state.session_id, prompt_id="said", turn_id=child.state.turn.turn_id, text=STOP
        )
        await child.prompts.steer(steering, d.client)
        state = await d.until(lambda state: any(each.state == "completed" for each in state.agents))
        assert [each.agent_id for each in state.questions] == [None]
        assert [each.agent for each in state.approvals] == ["editor"]
        assert heard(child, STOP) == 1
        await answer_question(d, state.questions[0])
        await d.answer("allow")
        await d.ended()
        assert heard(d.session, STOP) == 0 and d.file.read_text() == TWO_HUNKS


async def ask_as_a_server(arguments: Any, client: CallClient) -> CallAnswer:
    asked = await client.ask("demo", "Who are you?", [])
    return text_answer(asked.state if asked else "nobody")


@pytest.mark.parametrize("by_agent", [False, True])
async def test_a_question_of_a_server_stays_open_and_the_model_hears(tmp_path: Path, by_agent: bool) -> None:
    """The server would get a no, without the words."""
    calls = step("", call("mcp__demo__echo", text="hi"))
    agents = {"caller": [calls, step("", complete("Called."))]}
    steps = [step("", ask_agent("caller")) if by_agent else calls, step("I stop.", expect=STOP)]
    servers = ServersInMemory(Server("demo", answer=ask_as_a_server))
    async with session_with_agents(tmp_path, agents, *steps, mcp=servers) as d:
        d.session.allow("mcp__demo__echo")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.questions)).questions
        assert (asked.asker, asked.agent_id) == ("demo", "agent-1" if by_agent else None)
        await say(d, "steered")
        assert d.session.state.questions == [asked]
        params = QuestionAnswerParams(
            session_id="s", question_id=asked.item_id, outcome="answered", answers={"confirm": True}
        )
        await d.session.answer_question(params, d.client)
        await d.ended()
        assert heard(d.session, STOP) == 1


def waiting_for(what: str) -> tuple[Mode, list[dict[str, Any]]]:
    """A mode, and calls that wait for the user."""
    match what:
        case "an edit":
            return "ask", [EDIT]
        case "a question":
            return "ask", [question("Mine?")]
        case _:
            return "plan", [writes(), EXIT]


@pytest.mark.parametrize("how", ["steered", "queued"])
@pytest.mark.parametrize("who", ["the one who prompted", "another", "another, alone"])
@pytest.mark.parametrize("what", ["an edit", "a question", "a plan"])
async def test_what_one_client_asked_for_is_not_settled_by_what_another_says(
    tmp_path: Path, what: str, who: str, how: str
) -> None:
    mode, calls = waiting_for(what)
    async with scripted_session(tmp_path, step("", *calls), step("Well."), step("And that."), mode=mode) as d:
        other = Client(os.environ, "two")
        other.state = d.session.attach(other, None, None).state
        await d.prompt("go")
        await d.until(lambda state: state.approvals or state.questions)
        if who == "another, alone":
            d.session.detach(d.client)
        await say(d, how, client=d.client if who == "the one who prompted" else other)
        settles = who != "another" and (how == "steered" or what == "an edit")
        open_now = [*d.session.state.approvals, *d.session.state.questions]
        assert len(open_now) == (0 if settles else 1)
        if not settles and what == "a question":
            await answer_question(d, d.session.state.questions[0])
        elif not settles:
            await d.answer("reject")
        await (d.over("said") if how == "queued" else d.over("p1"))
        assert heard(d.session, STOP) == 1
        d.client.state = d.session.attach(d.client, None, None).state
