"""Sessions with real MCP servers: agreed to in one session, used in two, one process for both."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from amanu.core.conversation import Results
from amanu.permissions import approvals
from amanu_protocol.items import Notice, Question, ToolCall
from amanu_protocol.requests import OfferedServer, PromptSendParams, QuestionAnswerParams, SessionCreateParams
from amanu_protocol.state import SessionState
from support.agent_session import ask_agent, complete, user_agent
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step
from support.session_client import Client, until

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def configured() -> None:  # pyright: ignore[reportUnusedFunction]
    config = Path(os.environ["AMANU_HOME"]) / "config"
    config.mkdir(parents=True, exist_ok=True)
    table = f"[servers.sample]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"
    (config / "mcp.toml").write_text(table)
    read = json.dumps([str(SERVER.parents[2]), sys.prefix, sys.base_prefix])  # what the sandbox hides of a home folder
    (config / "config.toml").write_text(f"[sandbox]\nread = {read}\n")


async def agreed(d: ScriptedSession) -> None:
    """Agree to the server with the slash command, and wait until its tools are there."""
    await d.session.core.services.sandbox.proved()
    await d.prompt("/mcp", "m1")
    await d.prompt("/mcp approve sample", "m2")
    async with asyncio.timeout(50):
        while not any(server.view.tools for server in d.session.own_parts.mcp.servers()):
            await asyncio.sleep(0.1)


def texts(session_state: SessionState) -> list[str]:
    return [item.text for item in session_state.items if isinstance(item, Notice) and item.code == "mcp"]


def results(d: ScriptedSession) -> list[str]:
    return [
        result.text for message in conversation(d.session) if isinstance(message, Results) for result in message.results
    ]


async def test_it_is_agreed_to_called_and_shared(tmp_path: Path) -> None:
    who = step("", call("mcp__sample__whoami"))
    steps = [who, step("", call("mcp__sample__echo", text="hello"), call("mcp__sample__picture")), step("done")]
    async with scripted_session(tmp_path, *steps) as d:
        assert str(SERVER) in texts(d.session.state)[0]
        await agreed(d)
        d.session.allow("mcp__sample__*")
        await d.prompt("go")
        await d.ended()
        pid, echoed, picture = results(d)
        assert "hello" in echoed
        assert "image 1" in picture

        script = tmp_path / "second.json"
        script.write_text(json.dumps([who, step("done")]))
        params = SessionCreateParams(session_id="t", roots=[str(d.root)], model_id=f"scripted:{script}")
        other = Client(os.environ, "two")
        await d.sessions.create(params, other)
        second = await d.sessions.get("t")
        second.allow("mcp__sample__whoami")
        await second.prompts.send(PromptSendParams(session_id="t", prompt_id="p", text="go"), other)
        await until(second, lambda state: state.last_turn)
        (message,) = [message for message in conversation(second) if isinstance(message, Results)]
        assert message.results[0].text == pid, "one process for both sessions"


async def test_the_server_asks_and_its_changed_tools_wait(tmp_path: Path) -> None:
    steps = [
        step("", call("mcp__sample__greet")),
        step("", call("mcp__sample__grow")),
        step("done"),
        step("", call("mcp__sample__echo", text="x")),
        step("done"),
    ]
    async with scripted_session(tmp_path, *steps) as d:
        await agreed(d)
        d.session.allow("mcp__sample__*")
        await d.prompt("go")
        (question,) = (await d.until(lambda state: state.questions)).questions
        assert question.asker == "sample"
        assert question.fields[0].text.startswith("Who is it?")
        answers = {field.field_id: field.default for field in question.fields}
        answers[question.fields[0].field_id] = "Ada"
        await d.session.answer_question(
            QuestionAnswerParams(session_id="s", question_id=question.item_id, outcome="answered", answers=answers),
            d.client,
        )
        await d.until(lambda state: any("off until you approve" in text for text in texts(state)))
        await d.ended()
        await d.prompt("more", "p2")
        await d.over("p2")
        greeted, _, echoed = results(d)
        assert "Ada" in greeted
        assert "Unknown tool 'mcp__sample__echo'" in echoed
        listed = d.session.own_parts.mcp_decisions.list().servers[0]
        assert {tool.name for tool in listed.changed_tools} == {"echo", "newcomer"}
        assert any("evil.example" in tool.diff for tool in listed.changed_tools)


async def test_an_offered_one_is_used_without_a_question_about_starting_it(tmp_path: Path) -> None:
    (Path(os.environ["AMANU_HOME"]) / "config" / "mcp.toml").unlink()
    token = "a1b2c3d4e5f6g7h8i9j0"
    offered = OfferedServer(
        name="of Zed", kind="stdio", command=sys.executable, args=[str(SERVER)], env={"GIT_TOKEN": token}
    )
    steps = [step("", call("mcp__of_Zed__echo", text="hello")), step("done")]
    async with scripted_session(tmp_path, *steps) as d:
        d.session.own_parts.mcp.offer([offered], "Zed")
        d.session.own_parts.mcp.offer([offered, offered.model_copy(update={"name": "two"})], "Zed")
        assert texts(d.session.state) == ["MCP servers from Zed: of_Zed.", "MCP servers from Zed: two."]
        async with asyncio.timeout(50):
            while not all(server.view.tools for server in d.session.own_parts.mcp.servers()):
                await asyncio.sleep(0.1)
        d.session.allow("mcp__of_Zed__*")
        await d.prompt("go")
        await d.ended()
        assert "hello" in results(d)[0]
        assert d.session.core.services.secrets.mask_content(f"It is {token}.") == "It is [hidden-by-amanu]."
        records = await d.session.core.journal.records()
        assert token not in repr(records)
    written = [path for path in Path(os.environ["AMANU_HOME"]).rglob("*") if path.is_file()]
    assert not [path for path in written if token.encode() in path.read_bytes()]


def answer_of(question: Question, name: str, session_id: str = "s") -> QuestionAnswerParams:
    return QuestionAnswerParams(
        session_id=session_id,
        question_id=question.item_id,
        outcome="answered",
        answers={question.fields[0].field_id: name, "times": "2"},
    )


@pytest.mark.parametrize("latest", ["asks", "other"])
async def test_a_question_appears_in_the_session_whose_call_it_is(tmp_path: Path, latest: str) -> None:
    """Two sessions share one process."""
    go, end = tmp_path / "work" / "go", tmp_path / "work" / "end"
    greets = step("", call("mcp__sample__greet_when", path=str(go)))
    script = tmp_path / "second.json"
    script.write_text(json.dumps([step("", call("mcp__sample__end_when", path=str(end))), step("done")]))
    async with scripted_session(tmp_path, greets, step("done")) as d:
        await agreed(d)
        client = Client(os.environ, "two")
        params = SessionCreateParams(session_id="t", roots=[str(d.root)], model_id=f"scripted:{script}")
        await d.sessions.create(params, client)
        second = await d.sessions.get("t")
        for session in (d.session, second):
            session.allow("mcp__sample__*")

        async def start(name: str) -> None:
            session = d.session if name == "asks" else second
            if name == "asks":
                await d.prompt("go")
            else:
                await second.prompts.send(PromptSendParams(session_id="t", prompt_id="p", text="go"), client)
            await until(session, lambda state: any(each.kind == "toolCall" for each in state.items))
            await until(session, lambda state: state.items[-1].state == "executing")  # type: ignore[union-attr]

        for name in ("other", "asks") if latest == "asks" else ("asks", "other"):
            await start(name)
        go.touch()
        end.touch()
        (question,) = (await d.until(lambda state: state.questions)).questions
        assert second.state.questions == []
        await d.session.answer_question(answer_of(question, "Ada"), d.client)
        await d.ended()
        assert "accept Who(name='Ada'" in results(d)[0]
        await until(second, lambda state: state.last_turn)


async def test_a_question_is_the_agents_or_its_parents(tmp_path: Path) -> None:
    go, end = tmp_path / "work" / "go", tmp_path / "work" / "end"
    user_agent(tmp_path, "asker", [step("", call("mcp__sample__greet_when", path=str(go))), step("", complete("x"))])
    work = step("", ask_agent("asker", background=True), call("mcp__sample__end_when", path=str(end)))
    async with scripted_session(tmp_path, work, step("done")) as d:
        await agreed(d)
        d.session.allow("mcp__sample__*")
        await d.prompt("go")
        for tool in ("mcp__sample__greet_when", "mcp__sample__end_when"):
            await d.until(
                lambda state, tool=tool: any(
                    isinstance(each, ToolCall) and each.tool == tool and each.state == "executing"
                    for each in state.items
                )
            )
        go.touch()
        end.touch()
        (question,) = (await d.until(lambda state: state.questions)).questions
        assert (question.agent_id, question.asker) == ("agent-1", "sample")
        await d.session.answer_question(answer_of(question, "Ada"), d.client)
        await d.ended()
        assert f"there: {end}" in results(d)[1]
        await d.until(lambda state: state.agents[0].state == "completed")
