"""A server over HTTP in sessions: two of them, one that is opened again, one that plans, a second client, undo."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from amanu.permissions import approvals
from amanu.session.session import Session
from amanu_protocol.items import Mode, ToolCall
from amanu_protocol.requests import CheckpointRestoreParams, PromptSendParams, QuestionAnswerParams, SessionCreateParams
from support.mcp_web_server import web_server
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step
from support.session_client import Client, until

DONE = step("done")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", 0.0)


def web(tool: str, **arguments: Any) -> dict[str, Any]:
    return step("", call(f"mcp__web__{tool}", **arguments))


def results(session: Session) -> list[str]:
    return [result.text for result in conversation(session).results()]


@asynccontextmanager
async def session(
    tmp_path: Path, *steps: dict[str, Any], mode: Mode = "ask", json_response: bool = False
) -> AsyncGenerator[ScriptedSession]:
    """A session with an approved server of the user's, and a rule that allows all its tools."""
    with web_server(json_response=json_response) as (address, _):
        config = find_home(os.environ).make().config
        (config / "mcp.toml").write_text(f'[servers.web]\nurl = "{address}"\n')
        (config / "config.toml").write_text('[[rule]]\ndecision = "allow"\nserver = "web"\n')
        async with scripted_session(tmp_path, *steps, mode=mode) as d:
            await d.session.core.services.sandbox.proved()
            await d.prompt("/mcp", "m1")
            await d.prompt("/mcp approve web", "m2")
            async with asyncio.timeout(50):
                while not all(server.view.tools for server in d.session.own_parts.mcp.servers()):
                    await asyncio.sleep(0.01)
            yield d


async def second(d: ScriptedSession, tmp_path: Path, *steps: dict[str, Any]) -> tuple[Session, Client]:
    """Another session on the folder, which has been prompted."""
    script = tmp_path / "second.json"
    script.write_text(json.dumps(list(steps)))
    client = Client(os.environ, "two")
    params = SessionCreateParams(session_id="t", roots=[str(d.root)], model_id=f"scripted:{script}")
    await d.sessions.create(params, client)
    other = await d.sessions.get("t")
    await other.prompts.send(PromptSendParams(session_id="t", prompt_id="p", text="go"), client)
    return other, client


def executing(session: Session) -> bool:
    return any(isinstance(item, ToolCall) and item.state == "executing" for item in session.state.items)


async def answer_name(session: Session, client: Client) -> None:
    (question,) = (await until(session, lambda state: state.questions)).questions
    answers: Any = {question.fields[0].field_id: "Ada"}
    params = QuestionAnswerParams(
        session_id=session.state.session_id, question_id=question.item_id, outcome="answered", answers=answers
    )
    await session.answer_question(params, client)


async def test_its_question_is_asked_in_the_session_whose_call_it_is_about(tmp_path: Path) -> None:
    """Though another's call began later, and waits."""
    async with session(tmp_path, web("greet"), DONE) as d:
        other, _ = await second(d, tmp_path, web("wait"), DONE)
        await until(other, lambda _: executing(other))
        await d.prompt("go")
        await d.until(lambda state: state.questions)
        assert not other.state.questions
        await answer_name(d.session, d.client)
        await d.ended()
        assert "accept" in results(d.session)[0] and "Ada" in results(d.session)[0]
        assert executing(other), "the other's call goes on"
        await other.prompts.stop()


@pytest.mark.parametrize("json_response", [False, True])
async def test_no_call_of_one_session_holds_up_or_ends_another_s(tmp_path: Path, json_response: bool) -> None:
    told = [] if json_response else [web("cancelled")]  # a server that streams nothing does not hear of it
    steps = web("wait"), *told, web("open_gate"), DONE
    async with session(tmp_path, *steps, json_response=json_response) as d:
        other, _ = await second(d, tmp_path, web("wait"), DONE)
        await until(other, lambda _: executing(other))
        turn_id = await d.prompt("go") or ""
        await d.until(lambda state: executing(d.session) and (json_response or "waiting" in str(state.items)))
        await d.session.prompts.cancel(turn_id)
        await d.over("p1", "cancelled")
        assert executing(other)
        await d.prompt("again", "p2")
        await d.over("p2")
        await until(other, lambda state: state.last_turn)
        assert "opened" in results(other)[0] and "open" in results(d.session)[-1]


async def test_a_session_that_is_opened_again_calls_it_without_a_further_yes(tmp_path: Path) -> None:
    async with session(tmp_path, web("echo", text="one"), DONE, web("echo", text="two"), DONE) as d:
        await d.prompt("go")
        await d.ended()
        await d.reopen()
        await d.prompt("again", "p2")
        await d.over("p2")
        assert ["one" in results(d.session)[0], "two" in results(d.session)[1]] == [True, True]


async def test_what_a_close_interrupts_is_told_and_can_be_called_again(tmp_path: Path) -> None:
    async with session(tmp_path, web("wait"), web("echo", text="two"), DONE) as d:
        await d.prompt("go")
        await d.until(lambda _: executing(d.session))
        await d.reopen()
        assert d.session.state.last_turn is not None and d.session.state.last_turn.reason != "completed"
        await d.prompt("again", "p2")
        await d.over("p2")
        interrupted, echoed = results(d.session)
        assert "may" in interrupted and "two" in echoed


async def test_a_plan_only_looks_though_a_rule_allows_all(tmp_path: Path) -> None:
    async with session(tmp_path, web("look"), web("echo", text="no"), DONE, mode="plan") as d:
        await d.prompt("go")
        state = await d.ended()
        looked, echoed = results(d.session)
        assert "looked" in looked and "<mcp_result" not in echoed
        calls = [item.state for item in state.items if isinstance(item, ToolCall)]
        assert calls == ["succeeded", "rejected"] and not state.approvals


async def test_a_second_client_answers_its_question(tmp_path: Path) -> None:
    async with session(tmp_path, web("greet"), DONE) as d:
        other = Client(os.environ, "two")
        other.state = d.session.attach(other, None, None).state
        await d.prompt("go")
        await d.until(lambda state: state.questions)
        d.session.detach(d.client)
        await answer_name(d.session, other)
        await d.ended()
        assert "Ada" in results(d.session)[0]
        d.client.state = d.session.attach(d.client, None, None).state
        assert other.state is not None and other.state.model_dump() == d.session.view().model_dump()


async def test_a_rewound_call_is_forgotten_and_its_effect_stays(tmp_path: Path) -> None:
    async with session(tmp_path, web("open_gate"), DONE) as d:
        await d.prompt("go")
        await d.ended()
        params = CheckpointRestoreParams(session_id="s", turn_id="turn-p1", conversation=True)
        await d.session.checkpoints.restore(params)
        assert results(d.session) == [] and not [item for item in d.session.state.items if isinstance(item, ToolCall)]
        other, _ = await second(d, tmp_path, web("wait"), DONE)
        await until(other, lambda state: state.last_turn)
        assert "opened" in results(other)[0]
