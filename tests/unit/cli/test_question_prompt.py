"""Questions at a terminal: what is typed, what is sent, and who was first."""

import io
from collections.abc import AsyncIterator
from typing import Any

import pytest

from amanu.cli.console import PlainConsole
from amanu.cli.question_prompt import DROPPED, QuestionPrompt
from amanu.cli.ui.dialog import Dialog
from amanu.cli.ui.terminal import QuestionLeft, StopRequested
from amanu.client.daemon_client import DaemonClient
from amanu.client.session_view import SessionView, create
from amanu_protocol import requests as r
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Question, QuestionField, QuestionOption
from support.fake_daemon import SESSION, FakeDaemon, Refusal, connected, state

OPTIONS = [QuestionOption(label="SQLite", description="One file."), QuestionOption(label="Postgres")]
CHOICE = QuestionField(
    field_id="q1", kind="choice", header="Database", text="Which database?", options=OPTIONS, other=True
)
CHOICES = CHOICE.model_copy(update={"kind": "choices"})
TEXT = QuestionField(field_id="q2", kind="text", header="Name", text="What is it called?")
CONFIRM = QuestionField(field_id="q3", kind="confirm", text="Really?")
FILE = QuestionField(field_id="q4", kind="file", text="Which file?")
OPTIONAL = TEXT.model_copy(update={"required": False})
STOP, NEXT, PREVIOUS = object(), object(), object()


class User:
    """Answers in order."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.typed = list[str]()
        """The texts that stood there when each was asked."""

    async def ask(self, dialog: Dialog) -> str | None:
        assert dialog.valid()
        answer = self.answers.pop(0)
        self.typed.append(dialog.typed)
        if answer is STOP:
            raise StopRequested
        if answer in (NEXT, PREVIOUS):
            raise QuestionLeft(1 if answer is NEXT else -1, f"half {len(self.typed)}")
        return answer

    async def edit(self, text: str, suffix: str) -> str | None:
        return None

    async def view(self, text: str) -> None:
        pass


@pytest.fixture
async def pair() -> AsyncIterator[tuple[DaemonClient, FakeDaemon]]:
    client, daemon = await connected()
    yield client, daemon
    await client.close()
    await daemon.close()


async def put(
    pair: tuple[DaemonClient, FakeDaemon], fields: list[QuestionField], user: User, answer: Any = None
) -> tuple[str, list[dict[str, Any]], SessionView]:
    client, daemon = pair
    question = Question(item_id="q", turn_id="t", asker="Amanu", title="Some questions", fields=fields)
    daemon.answers["amanu/session/create"] = lambda _: r.SessionResult(
        state=state(items=[question], questions=[question]), epoch=1, from_seq=1
    ).model_dump(mode="json")

    def settle(params: dict[str, Any]) -> dict[str, Any]:
        if answer is not None and (said := answer(params)) is not None:
            return said
        over = question.model_copy(update={"state": params["outcome"]})
        daemon.event(ItemCompleted(item=over))
        return {"status": "answered", "outcome": params["outcome"], "client": None, "summary": "Answered"}

    daemon.answers["amanu/question/answer"] = settle
    view = await create(client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
    out = io.StringIO()
    await QuestionPrompt(view, PlainConsole(out), user).answer(question)
    assert user.answers == [], "every answer was asked for"
    return out.getvalue(), daemon.said("amanu/question/answer"), view


TYPED: list[tuple[list[QuestionField], list[Any], dict[str, Any]]] = [
    ([CHOICE, TEXT, CONFIRM], ["2", "shop", "n", "y"], {"q1": "Postgres", "q2": "shop", "q3": False}),
    ([CHOICE, TEXT], ["2", PREVIOUS, "1", "shop", "y"], {"q1": "SQLite", "q2": "shop"}),
    ([CHOICE, TEXT], [NEXT, "shop", "2", "y"], {"q1": "Postgres", "q2": "shop"}),
    ([CHOICE, TEXT], [NEXT, NEXT, "change 1", "2", "shop", "y"], {"q1": "Postgres", "q2": "shop"}),
    ([CHOICE, TEXT], [NEXT, NEXT, "y", PREVIOUS, "shop", "1", "yes"], {"q1": "SQLite", "q2": "shop"}),
    ([CHOICE, TEXT], ["2", "shop", "change 2", "market", "y"], {"q1": "Postgres", "q2": "market"}),
    ([CHOICE, TEXT], [PREVIOUS, "2", "shop", NEXT, NEXT, "y"], {"q1": "Postgres", "q2": "shop"}),
    ([CONFIRM, OPTIONAL], ["y", "", "y"], {"q3": True}),
    ([CHOICE], ["sqlite"], {"q1": "SQLite"}),
    ([CHOICE], ["Something else"], {"q1": "Something else"}),
    ([CHOICE], ["3", "1 2", "1"], {"q1": "SQLite"}),
    ([CHOICE.model_copy(update={"other": False})], ["Oracle", "1"], {"q1": "SQLite"}),
    ([CHOICES], ["2, 1"], {"q1": ["Postgres", "SQLite"]}),
    ([CHOICES], ["1, 2 and something else"], {"q1": ["SQLite", "Postgres", "something else"]}),
    ([CHOICES], ["1 and 2"], {"q1": ["SQLite", "Postgres"]}),
    ([CHOICES], ["2 and a cache"], {"q1": ["Postgres", "a cache"]}),
    ([CHOICES], ["2, cached"], {"q1": ["Postgres", "cached"]}),
    ([CHOICES], ["2 databases and a cache"], {"q1": ["2 databases and a cache"]}),
    ([CHOICES], ["7 and a cache"], {"q1": ["7 and a cache"]}),
    ([FILE], ["nope.txt", "/etc/hosts"], {"q4": "/etc/hosts"}),
    ([CHOICES], ["7", "both of them"], {"q1": ["both of them"]}),
    ([CONFIRM], ["perhaps", "YES"], {"q3": True}),
    ([TEXT.model_copy(update={"required": False})], [""], {}),
    ([TEXT.model_copy(update={"default": "shop"})], [""], {}),
    ([TEXT], ["", "", None, "shop"], {"q2": "shop"}),
    ([TEXT], [STOP, "", "shop"], {"q2": "shop"}),
]


@pytest.mark.parametrize(("fields", "typed", "answers"), TYPED)
async def test_what_is_typed_is_sent(
    pair: tuple[DaemonClient, FakeDaemon], fields: list[QuestionField], typed: list[Any], answers: dict[str, Any]
) -> None:
    _, (sent,), _ = await put(pair, fields, User(*typed))
    assert (sent["outcome"], sent["answers"], sent["note"]) == ("answered", answers, "")


DECLINED: list[tuple[list[Any], str]] = [
    (["", "y"], ""),
    (["", "You decide."], "You decide."),
    ([STOP, "y"], ""),
    ([STOP, STOP], ""),
]


@pytest.mark.parametrize(("typed", "note"), DECLINED)
async def test_nothing_and_escape_lead_to_declining(
    pair: tuple[DaemonClient, FakeDaemon], typed: list[Any], note: str
) -> None:
    _, (sent,), _ = await put(pair, [CHOICE], User(*typed))
    assert (sent["outcome"], sent["note"]) == ("declined", note)


async def test_the_question_is_shown_with_its_options(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    shown, _, _ = await put(pair, [CHOICE, TEXT], User("1", NEXT, "change 2", "shop", "y"))
    assert shown == (
        "? Amanu asks: Some questions\n  1 of 2 · Database: Which database?\n  2 of 2 · Name: What is it called?\n"
        "  1 Database: SQLite\n  2 Name: not answered yet\n"
        "  2 of 2 · Name: What is it called?\n"
        "  1 Database: SQLite\n  2 Name: shop\n"
    )


@pytest.mark.parametrize(
    ("fields", "typed", "stood", "note"),
    [
        ([CHOICE, TEXT], ["1", PREVIOUS, "1", "shop", "y"], ["", "", "1", "half 2", ""], ""),
        ([CHOICE, TEXT], [NEXT, "shop", "1", "y"], ["", "", "half 1", ""], ""),
        ([CHOICE, TEXT], ["1", "shop", "change 2", "market", "y"], ["", "", "", "shop", ""], ""),
        (
            [CHOICE, TEXT],
            [
                "1",
                "shop",
                "as you like",
            ],
            ["", "", ""],
            "as you like",
        ),
        (
            [CHOICE, TEXT],
            [NEXT, NEXT, "a note", PREVIOUS, "shop", "1", "y"],
            ["", "", "", "a note", "half 2", "half 1", "half 4"],
            "",
        ),
    ],
)
async def test_nothing_typed_is_lost_on_the_way(
    pair: tuple[DaemonClient, FakeDaemon], fields: list[QuestionField], typed: list[Any], stood: list[str], note: str
) -> None:
    user = User(*typed)
    _, (sent,), _ = await put(pair, fields, user)
    assert (user.typed, sent["note"]) == (stood, note)


async def test_one_question_is_said_once(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    shown, _, _ = await put(pair, [CONFIRM.model_copy(update={"text": "Some questions"})], User("y"))
    assert shown == "? Amanu asks: Some questions\n"


async def test_who_declines_after_an_answer_is_told_what_becomes_of_it(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    shown, (sent,), _ = await put(pair, [CHOICE, TEXT], User("1", STOP, "y"))
    assert DROPPED.strip() in shown and sent["outcome"] == "declined"


async def test_a_refused_answer_is_asked_for_again(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    def refuse(params: dict[str, Any]) -> None:
        if params["answers"]["q2"] == "bad":
            raise Refusal("invalidParams", "Not that name.", path="answers.q2")

    shown, sent, _ = await put(pair, [CHOICE, TEXT], User("1", "bad", "y", "good", "y"), refuse)
    assert [each["answers"] for each in sent] == [{"q1": "SQLite", "q2": "bad"}, {"q1": "SQLite", "q2": "good"}]
    assert "Not that name." in shown


async def test_somebody_else_was_first(pair: tuple[DaemonClient, FakeDaemon]) -> None:
    _, daemon = pair

    def late(params: dict[str, Any]) -> dict[str, Any]:
        question = Question(item_id="q", turn_id="t", asker="Amanu", title="", fields=[CHOICE], state="answered")
        daemon.event(ItemCompleted(item=question))
        return {"status": "alreadyAnswered", "outcome": "answered", "client": "Neovim", "summary": "Too late: SQLite"}

    shown, _, view = await put(pair, [CHOICE], User("2"), late)
    assert "Too late: SQLite" in shown
    assert view.state.questions == []
