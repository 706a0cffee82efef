"""What the model may ask, and how the user sees it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amanu.core.questions import Asking
from amanu.core.tool import CallContext, ToolError
from amanu.text.questions import explain_field
from amanu.tools.ask_user import AskUser
from amanu_protocol.items import Question, QuestionField
from support.tool_harness import ToolHarness

CALL = CallContext("c1", "t1", 1)


class Asked:
    """Answers at once."""

    def __init__(self) -> None:
        self.fields: list[QuestionField] = []

    async def ask(self, fields: Sequence[QuestionField], asking: Asking) -> Question:
        assert (asking.turn_id, asking.call_id) == ("t1", "c1")
        self.fields = [explain_field(field) for field in fields]
        answers: dict[str, Any] = {field.field_id: "fine" for field in fields}
        return Question(
            item_id="q", turn_id="t1", asker="Amanu", title="", fields=self.fields, state="answered", answers=answers
        )


def options(*labels: str) -> list[dict[str, str]]:
    return [{"label": label} for label in labels]


def question(**more: Any) -> dict[str, Any]:
    return {"header": "H", "question": "What?", **more}


SHOWN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (question(), {"kind": "text", "other": False, "options": []}),
    (question(kind="yes_no"), {"kind": "confirm"}),
    (question(kind="file"), {"kind": "file"}),
    (question(options=options("a", "b")), {"kind": "choice", "other": True}),
    (question(options=options("a", "b"), multi_select=True), {"kind": "choices", "other": True}),
    (question(header="A very long header"), {"header": "A very long…"}),
    (question(header="one\ntwo\x1b[31m"), {"header": "one<U+000A>two<U+001B>[31m"}),
    (question(question=" What\x1b[2J?\n\nReally? "), {"text": "What<U+001B>[2J?\n\nReally?"}),
    (
        question(options=[{"label": "a\nb", "description": "c\u202ed"}, {"label": "b"}]),
        {"options": [{"label": "a<U+000A>b", "description": "c<U+202E>d"}, {"label": "b", "description": ""}]},
    ),
]


@pytest.mark.parametrize(("asked", "shown"), SHOWN)
async def test_what_is_asked_is_shown(tmp_path: Path, asked: dict[str, Any], shown: dict[str, Any]) -> None:
    user = Asked()
    tool = AskUser(replace(ToolHarness(tmp_path).environment, questions=user))
    params = tool.parse({"questions": [asked]}).params
    preview = await tool.preview(params, CALL)
    assert preview.subject.effect == "read"
    outcome = await tool.run(params, CALL)
    assert outcome.for_model.endswith("\nAnswer: fine")
    field = user.fields[0].model_dump(by_alias=True)
    assert {key: field[key] for key in shown} == shown


REFUSED: list[tuple[list[dict[str, Any]], str]] = [
    ([], "questions: List should have at least 1 item"),
    ([question()] * 5, "questions: List should have at most 4 items"),
    ([question(question=" ")], "has no text"),
    ([question(options=options("a"))], "at least two different options"),
    ([question(options=options("a", "a "))], "at least two different options"),
    ([question(options=options("a", ""))], "at least two different options"),
    ([question(options=options("a", "b", "c", "d", "e"))], "at most 4 items"),
    ([{"header": "H"}], "question: Field required"),
]


@pytest.mark.parametrize(("asked", "why"), REFUSED)
async def test_what_cannot_be_asked_is_refused(tmp_path: Path, asked: Any, why: str) -> None:
    tool = AskUser(ToolHarness(tmp_path).environment)
    with pytest.raises(ToolError, match=why):
        await tool.preview(tool.parse({"questions": asked}).params, CALL)
