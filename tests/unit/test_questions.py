"""Questions to the user: which answers fit, who may give them, and what becomes of them. The model is scripted."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from amanu.core.conversation import Result
from amanu.mcp.model import CallAnswer, CallClient
from amanu.session import restore
from amanu.session.answers import read_answers
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Question, QuestionField, QuestionOption
from amanu_protocol.requests import (
    PromptSteerParams,
    QuestionAnswerParams,
    QuestionAnswerResult,
    SessionListParams,
    TurnCancelParams,
)
from amanu_protocol.state import SessionState
from support.agent_session import ask_agent, complete, user_agent
from support.mcp_in_memory import Server, ServersInMemory, text_answer
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step
from support.session_client import Client

OPTIONS = [{"label": "SQLite", "description": "One file."}, {"label": "Postgres", "description": "A server."}]
ASK = call(
    "ask_user",
    questions=[
        {"header": "Database", "question": "Which database?", "options": OPTIONS},
        {"header": "Name", "question": "What is it called?"},
    ],
)
GOOD: dict[str, Any] = {"q1": "SQLite", "q2": "shop"}


def field(kind: Any = "text", **more: Any) -> QuestionField:
    options = [QuestionOption(label="a"), QuestionOption(label="b")] if kind.startswith("choice") else []
    return QuestionField(field_id="f", kind=kind, header="F", text="What?", options=options, **more)


FITS: list[tuple[QuestionField, Any, Any]] = [
    (field(), " some text\n", "some text"),
    (field("file"), "src/a.py", "src/a.py"),
    (field("choice"), "a", "a"),
    (field("choice", other=True), "c", "c"),
    (field("choices"), ["b", "a", "b"], ["b", "a"]),
    (field("choices", other=True), ["a", "something else"], ["a", "something else"]),
    (field("confirm"), False, False),
    (field(default="x"), None, "x"),
    (field(default="x"), "  ", "x"),
    (field("confirm", default=True), None, True),
]


@pytest.mark.parametrize(("asked", "given", "read"), FITS)
def test_an_answer_that_fits_is_read(asked: QuestionField, given: Any, read: Any) -> None:
    assert read_answers([asked], {"f": given}) == {"f": read}


FAULTS: list[tuple[QuestionField, dict[str, Any], str, str]] = [
    (field(), {}, "answers.f", "needs an answer"),
    (field(), {"f": "   "}, "answers.f", "needs an answer"),
    (field("choices"), {"f": []}, "answers.f", "needs an answer"),
    (field(), {"f": "x", "g": "y"}, "answers.g", "no such field"),
    (field(), {"f": 3}, "answers.f", "must be a text"),
    (field(), {"f": "x" * 10_001}, "answers.f", "longer than 10,000"),
    (field("choice"), {"f": "c"}, "answers.f", "not one of the options"),
    (field("choice"), {"f": ["a"]}, "answers.f", "must be a text"),
    (field("choices"), {"f": "a"}, "answers.f", "list of texts"),
    (field("choices"), {"f": ["a", 3]}, "answers.f", "list of texts"),
    (field("choices"), {"f": ["a", "c"]}, "answers.f", "not one of the options"),
    (field("choices", other=True), {"f": [f"{n}" for n in range(101)]}, "answers.f", "At most 100"),
    (field("confirm"), {"f": "yes"}, "answers.f", "true or false"),
]


@pytest.mark.parametrize(("asked", "given", "path", "message"), FAULTS)
def test_an_answer_that_does_not_fit_is_refused_at_its_field(
    asked: QuestionField, given: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(AmanuError, match=message) as refused:
        read_answers([asked], given)
    assert (refused.value.kind, refused.value.data.path) == ("invalidParams", path)


def test_what_need_not_be_answered_may_stay_open() -> None:
    assert read_answers([field(required=False)], {}) == {}


async def asked(d: ScriptedSession) -> Question:
    state = await d.until(lambda state: state.questions)
    return state.questions[0]


async def answer(
    d: ScriptedSession, question: Question, client: Client | None = None, outcome: Any = "answered", **more: Any
) -> QuestionAnswerResult:
    params = QuestionAnswerParams(session_id="s", question_id=question.item_id, outcome=outcome, **more)
    return await d.session.answer_question(params, client or d.client)


def heard(d: ScriptedSession) -> Result:
    results = [message for message in conversation(d.session) if message.role == "results"]
    return results[-1].results[0]


def messages(state: SessionState) -> list[str]:
    return [item.text for item in state.items if item.kind == "userMessage"]


async def test_an_answer_is_what_the_call_returns(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("Thanks.")) as d:
        await d.prompt("make it")
        question = await asked(d)
        assert (question.title, question.asker) == ("2 questions: Database, Name", "Amanu")
        assert [each.kind for each in question.fields] == ["choice", "text"]
        assert d.session.state.status == "waiting"
        (summary,) = (await d.sessions.summaries.list(SessionListParams())).sessions
        assert [each.question_id for each in summary.questions] == [question.item_id]
        result = await answer(d, question, answers=GOOD, note="for now")
        assert (result.status, result.outcome) == ("answered", "answered")
        state = await d.ended()
        assert state.questions == []
        assert heard(d).text == (
            "Which database?\nAnswer: SQLite\n\nWhat is it called?\nAnswer: shop\n\nThe user adds: for now"
        )
        assert not heard(d).is_error
        over = next(item for item in state.items if item.kind == "question")
        assert over.state == "answered" and over.answers == GOOD
        assert over.summary == result.summary == "Answered in one: Database: SQLite; Name: shop (“for now”)"
        call_item = next(item for item in state.items if item.kind == "toolCall")
        assert (call_item.state, call_item.output) == ("succeeded", over.summary)


@pytest.mark.parametrize(
    ("note", "told"),
    [
        ("", "The user declined to answer."),
        ("You know better.", "The user declined to answer. They said: You know better."),
    ],
)
async def test_to_decline_is_an_answer(tmp_path: Path, note: str, told: str) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("I take SQLite.")) as d:
        await d.prompt("make it")
        result = await answer(d, await asked(d), outcome="declined", answers={"ignored": 1}, note=note)
        assert (result.status, result.outcome) == ("answered", "declined")
        await d.ended()
        assert (heard(d).text, heard(d).is_error) == (told, False)


async def test_of_two_answers_the_first_counts_and_the_second_is_told(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("Thanks.")) as d:
        await d.prompt("make it")
        question = await asked(d)
        other = Client(os.environ)
        other.name = "Neovim"
        first, second = await asyncio.gather(
            answer(d, question, other, answers=GOOD),
            answer(d, question, answers={**GOOD, "q1": "Postgres"}),
        )
        assert (first.status, second.status) == ("answered", "alreadyAnswered")
        assert (second.outcome, second.client) == ("answered", "Neovim")
        assert second.summary == ("Your answer came too late. Answered in Neovim: Database: SQLite; Name: shop")
        await d.ended()
        assert "SQLite" in heard(d).text


async def test_a_wrong_answer_leaves_the_question_open(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("Thanks.")) as d:
        await d.prompt("make it")
        question = await asked(d)
        for answers in ({}, {**GOOD, "q9": "x"}, {**GOOD, "q2": 3}):
            with pytest.raises(AmanuError) as refused:
                await answer(d, question, answers=answers)
            assert refused.value.kind == "invalidParams"
        with pytest.raises(AmanuError) as refused:
            await answer(d, question.model_copy(update={"item_id": "no such"}), answers=GOOD)
        assert refused.value.kind == "questionNotFound"
        assert d.session.state.questions == [question]
        await answer(d, question, answers=GOOD)
        await d.ended()


async def test_a_cancelled_turn_takes_its_question_along(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK)) as d:
        await d.prompt("make it")
        question = await asked(d)
        turn = d.session.state.turn
        assert turn is not None
        await d.session.prompts.cancel(TurnCancelParams(session_id="s", turn_id=turn.turn_id).turn_id)
        state = await d.ended("cancelled")
        assert state.questions == []
        assert next(item for item in state.items if item.kind == "question").state == "cancelled"
        late = await answer(d, question, answers=GOOD)
        assert (late.status, late.outcome) == ("alreadyAnswered", "cancelled")


WHERE = call("ask_user", questions=[{"header": "Where", "question": "Where to?"}])
WORDS = "SQLite, and call it shop."
SEE_FILE = "see @notes.txt"

SPOKEN: list[tuple[list[dict[str, Any]], str, list[str], int]] = [
    ([ASK], WORDS, [f"They said: {WORDS}"], 0),
    ([ASK, WHERE], WORDS, [f"They said: {WORDS}", "They said: see my other answer"], 0),
    ([ASK], SEE_FILE, ["They said: see the message"], 1),
]
"""What is asked, what the user says into the turn, what the calls return, and how often it is said beside them."""


@pytest.mark.parametrize(("asks", "text", "returned", "beside"), SPOKEN)
async def test_a_message_into_the_turn_answers_in_other_words(
    tmp_path: Path, asks: list[dict[str, Any]], text: str, returned: list[str], beside: int
) -> None:
    async with scripted_session(tmp_path, step("", *asks), step("Heard.")) as d:
        turn_id = await d.prompt("make it")
        await d.until(lambda state: len(state.questions) == len(asks))
        params = PromptSteerParams(session_id="s", turn_id=str(turn_id), prompt_id="p2", text=text)
        await asyncio.gather(d.session.prompts.steer(params, d.client), d.session.prompts.steer(params, d.client))
        state = await d.ended()
        results = next(message for message in conversation(d.session) if message.role == "results")
        assert [result.text for result in results.results] == [
            f"The user declined to answer. {each}" for each in returned
        ]
        said = [note for note in results.notes if isinstance(note, str) and text in note]
        assert len(said) == beside
        assert [item.state for item in state.items if item.kind == "question"] == ["declined"] * len(asks)
        assert messages(state) == ["make it", text]


def into(turn_id: str | None, text: str = WORDS) -> PromptSteerParams:
    return PromptSteerParams(session_id="s", turn_id=turn_id or "", prompt_id="p2", text=text)


@pytest.mark.parametrize("order", ["said, then cancelled", "said and cancelled", "cancelled and said"])
async def test_a_message_into_a_turn_that_is_cancelled_with_it_is_heard(tmp_path: Path, order: str) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("Heard.")) as d:
        turn_id = await d.prompt("make it") or ""
        await asked(d)
        steering, cancel = d.session.prompts.steer(into(turn_id), d.client), d.session.prompts.cancel(turn_id)
        if order == "said, then cancelled":  # before the call that asked has heard of its answer
            await steering
            await cancel
        else:
            await asyncio.gather(*([steering, cancel] if order == "said and cancelled" else [cancel, steering]))
        await d.ended("cancelled")
        await d.prompt("go on", "p3")
        state = await d.over("p3")
        assert d.told().count(WORDS) == 1
        assert messages(state) == ["make it", WORDS, "go on"]


async def test_wherever_the_journal_ends_a_message_that_answers_is_not_lost(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("Heard.")) as d:
        turn_id = await d.prompt("make it")
        await asked(d)
        await d.session.prompts.steer(into(turn_id), d.client)
        await d.ended()
        records = await d.session.core.journal.records()
        first = next(index for index, record in enumerate(records) if WORDS in record.event)
        for end in range(first + 1, len(records) + 1):
            restored = restore.restore("s", records[:end], read_only=True)
            heard = [message.model_dump_json() for message in restored.conversation]
            heard += [message.text for message, _ in restored.steering.values()]
            assert WORDS in "".join(heard), f"after {records[end - 1].event}"


async def test_a_queued_prompt_waits_for_the_answer(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("Thanks."), step("And that.")) as d:
        await d.prompt("make it")
        question = await asked(d)
        await d.prompt("and then test it", "p2")
        assert d.session.state.questions == [question]
        assert [queued.text for queued in d.session.state.queue] == ["and then test it"]
        await answer(d, question, answers=GOOD)
        await d.over("p2")
        assert d.told().count("and then test it") == 1


async def test_the_time_a_user_takes_is_not_the_turns(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("Thanks.")) as d:
        await d.prompt("make it")
        question = await asked(d)
        wait = d.session.approvals.wait
        assert wait.seconds == 0
        await answer(d, question, answers=GOOD)
        await d.ended()
        assert wait.seconds > 0


async def test_a_question_outlives_its_session_and_the_answer_is_a_prompt_then(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("Thanks.", expect="Answer: SQLite")) as d:
        await d.prompt("make it")
        question = await asked(d)
        await d.reopen()
        assert d.session.state.questions == [question]
        assert d.session.state.status == "waiting"
        assert heard(d).text.startswith("Interrupted before the user answered. The question is still open")
        with pytest.raises(AmanuError):
            await answer(d, question, answers={})
        first, second = await asyncio.gather(answer(d, question, answers=GOOD), answer(d, question, answers=GOOD))
        assert (first.status, second.status) == ("answered", "alreadyAnswered")
        state = await d.over(f"answer-{question.item_id}")
        said = messages(state)
        assert len(said) == 2
        assert said[1].startswith("My answer to what you asked before you were interrupted:\n\nWhich database?")
        assert [item.text for item in state.items if item.kind == "answer"] == ["Thanks."]
        assert state.questions == []


async def ask_as_a_server(arguments: Any, client: CallClient) -> CallAnswer:
    question = await client.ask("demo", "Your password?", [field()])
    return text_answer("nobody" if question is None else question.state)


@pytest.mark.parametrize("how", ["closed", "killed"])
@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
@pytest.mark.parametrize("who", ["server", "agent", "server of an agent"])
async def test_a_question_of_a_server_or_an_agent_ends_with_the_session(
    tmp_path: Path, who: str, background: bool, how: str
) -> None:
    """The answer is for none but who asked: the model would get what was meant for a server."""
    asks = step("", ASK if who == "agent" else call("mcp__demo__echo", text="x"))
    user_agent(tmp_path, "asker", [asks, step("", complete())])
    steps = [asks if who == "server" else step("", ask_agent("asker", background=background)), step("Well.")]
    servers = ServersInMemory(Server("demo", answer=ask_as_a_server))
    async with scripted_session(tmp_path, *steps, mcp=servers) as d:
        d.session.allow("mcp__demo__echo")
        await d.prompt("go")
        (question,) = (await d.until(lambda state: state.questions)).questions
        if how == "killed":
            await d.session.emit.durable()
            restored = restore.restore("s", await d.session.core.journal.records(), read_only=False)
            ended = [event.item for event, _ in restored.closing_events if isinstance(event, ItemCompleted)]
            assert [(each.item_id, each.state) for each in ended if isinstance(each, Question)] == [
                (question.item_id, "cancelled")
            ]
            await d.session.prompts.stop()
            return
        await d.reopen()
        assert d.session.state.questions == []
        late = await answer(d, question, answers={"f": "mango"} if "server" in who else GOOD)
        assert late.status == "alreadyAnswered" and "was not used" in late.summary
        assert not d.session.running and not d.session.state.queue and "mango" not in d.told()


@pytest.mark.parametrize(
    "more", [{"answers": {"q1": "Yes"}}, {"answers": {"q1": "as in @.env"}}, {"outcome": "declined", "note": "later"}]
)
async def test_no_answer_attaches_what_the_model_named_in_its_question(tmp_path: Path, more: dict[str, Any]) -> None:
    question = {"header": "Settings", "question": "Keep the @.env settings?", "options": [*OPTIONS, {"label": "Yes"}]}
    async with scripted_session(tmp_path, step("", call("ask_user", questions=[question])), step("Thanks.")) as d:
        (d.root / ".env").write_text("NAME=shop\n")
        await d.prompt("make it")
        open_question = await asked(d)
        await d.reopen()
        await answer(d, open_question, **more)
        await d.over(f"answer-{open_question.item_id}")
        assert "Keep the \\@.env settings?" in messages(d.session.state)[-1]
        assert "NAME=shop" not in d.told()


async def test_a_session_that_was_put_away_waits_for_nobody(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK)) as d:
        await d.prompt("make it")
        question = await asked(d)
        await d.sessions.close("s")
        (summary,) = (await d.sessions.summaries.list(SessionListParams())).sessions
        assert (summary.status, summary.questions) == ("closed", [])
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state
        assert d.session.state.questions == [question]


@pytest.mark.parametrize(("note", "prompts"), [("", 1), ("Ask me tomorrow.", 2)])
async def test_to_decline_later_says_something_only_with_a_note(tmp_path: Path, note: str, prompts: int) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("As you like.")) as d:
        await d.prompt("make it")
        question = await asked(d)
        await d.reopen()
        await answer(d, question, outcome="declined", note=note)
        state = await d.until(lambda state: state.turn is None)
        assert state.questions == []
        assert sum(item.kind == "userMessage" for item in state.items) == prompts
        await d.until(lambda state: state.turn is None and state.last_turn)


async def test_keys_in_answers_are_hidden(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "A1b2C3d4" * 10 + "-AAAAAAAA"
    async with scripted_session(tmp_path, step("", ASK), step("Thanks.")) as d:
        await d.prompt("make it")
        await answer(d, await asked(d), answers={**GOOD, "q2": f"it is {key}"}, note=key)
        state = await d.ended()
        assert key not in state.model_dump_json()
        assert key not in d.told()


async def test_headless_there_is_no_such_tool(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", ASK), step("Then not."), headless=True) as d:
        await d.prompt("make it")
        await d.ended()
        assert heard(d).text.startswith("Unknown tool 'ask_user'")
