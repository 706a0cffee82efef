"""A question through the real process, over every vendor's wire: two clients, a refused answer, a killed daemon."""

import signal
from pathlib import Path
from typing import Any

import pytest

from e2e.test_prompt_to_edit import VENDORS, Editor, editor, service, start, stop_daemon, tool_texts
from support.running_daemon import signal_daemon
from support.strict_services.http import Say, ToolUse

QUESTION = {
    "header": "Database",
    "question": "Which database?",
    "options": [{"label": "SQLite", "description": "One file."}, {"label": "Postgres", "description": "A server."}],
}
ASK = Say(text="One thing first.", calls=[ToolUse("ask_user", {"questions": [QUESTION]})])


async def asked(client: Editor) -> str:
    state = await client.until(lambda state: state.questions)
    return state.questions[0].item_id


async def answer(client: Editor, question_id: str, answers: dict[str, Any], **more: Any) -> Any:
    return await client.ask(
        "question/answer", sessionId="s1", questionId=question_id, outcome="answered", answers=answers, **more
    )


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_second_client_answers_and_the_first_is_told(vendor: str, tmp_path: Path) -> None:
    async with service(vendor, [ASK, Say(text="SQLite it is.")]) as (served, model_id, keys):
        async with editor(keys) as first, editor(keys) as second:
            await start(first, tmp_path, model_id, "make a shop")
            question_id = await asked(first)
            await second.attach("s1")
            assert second.state is not None and second.state.questions == first.state.questions  # pyright: ignore[reportOptionalMemberAccess]
            refused = await second.raw.request(
                "amanu/question/answer",
                {"sessionId": "s1", "questionId": question_id, "outcome": "answered", "answers": {"q1": 3}},
            )
            assert refused["error"]["data"]["kind"] == "invalidParams"
            assert refused["error"]["data"]["path"] == "answers.q1"
            unknown = await second.raw.request(
                "amanu/question/answer", {"sessionId": "s1", "questionId": question_id, "outcome": "maybe"}
            )
            assert unknown["error"]["data"]["kind"] == "invalidParams"
            assert (await answer(second, question_id, {"q1": "SQLite"}))["status"] == "answered"
            late = await answer(first, question_id, {"q1": "Postgres"})
            assert late["status"] == "alreadyAnswered"
            assert "too late" in late["summary"] and "SQLite" in late["summary"]
            state = await first.until(lambda state: state.last_turn)
            assert state.last_turn is not None and state.last_turn.reason == "completed"
        assert "Which database?\\nAnswer: SQLite" in tool_texts(served)
        assert not served.refused and not served.lint
    stop_daemon()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_question_outlives_the_daemon(number: signal.Signals, tmp_path: Path) -> None:
    async with service("anthropic", [ASK, Say(text="SQLite it is.")]) as (served, model_id, keys):
        async with editor(keys) as client:
            await start(client, tmp_path, model_id, "make a shop")
            question_id = await asked(client)
            signal_daemon(number)
            await client.raw.exit_code()
        async with editor(keys) as client:
            await client.attach("s1")
            listed = (await client.ask("session/list"))["sessions"][0]
            assert (listed["status"], listed["questions"][0]["questionId"]) == ("waiting", question_id)
            assert client.state is not None
            assert [question.item_id for question in client.state.questions] == [question_id]
            assert client.state.status == "waiting"
            call = next(item for item in client.state.items if item.kind == "toolCall")
            assert call.state == "cancelled"
            assert (await answer(client, question_id, {"q1": "SQLite"}))["status"] == "answered"
            state = await client.until(lambda state: state.last_turn and state.last_turn.reason == "completed")
            assert [item.kind for item in state.items] == [
                "userMessage", "answer", "toolCall", "question", "userMessage", "answer",
            ]  # fmt: skip
            assert state.questions == []
        assert "Which database?\\nAnswer: SQLite" in tool_texts(served)
        assert not served.refused and not served.lint
    stop_daemon()
