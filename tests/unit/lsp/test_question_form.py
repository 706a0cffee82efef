"""A question as a form to be filled in: what is read of it, whatever the editor does to blanks and line ends."""

import pytest

from amanu.frontends.lsp.plain.question_form import form_text, read_form
from amanu_protocol.items import Question, QuestionField, QuestionOption

OPTIONS = [QuestionOption(label="Postgres", description="A server."), QuestionOption(label="SQLite")]
QUESTION = Question(
    item_id="question-1",
    turn_id="t",
    asker="Amanu",
    title="3 questions",
    fields=[
        QuestionField(
            field_id="q1", kind="choice", text="Which database?\n\nWe need one.", options=OPTIONS, other=True
        ),
        QuestionField(field_id="q2", kind="text", text="What is it called?"),
        QuestionField(field_id="q3", kind="choices", text="Which others?", options=OPTIONS, other=True),
    ],
)
FORM = form_text(QUESTION)
HEADING = "## 2. What is it called?\n"


def test_an_empty_form_answers_nothing_that_must_be_answered() -> None:
    assert read_form(QUESTION, FORM) == {"q3": []}


@pytest.mark.parametrize(
    ("filled", "answers"),
    [
        (FORM.replace("- [ ] SQLite", "- [x] SQLite", 1), {"q1": "SQLite", "q3": []}),
        (FORM.replace("- [ ] SQLite", "- [X] SQLite"), {"q1": "SQLite", "q3": ["SQLite"]}),
        (FORM.replace(HEADING, f"{HEADING}\nshop\n\n  or\nstore  \n"), {"q2": "shop\n\n  or\nstore", "q3": []}),
        (f"{FORM}\nOracle\n", {"q3": ["Oracle"]}),
    ],
)
@pytest.mark.parametrize("trimmed", [False, True])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_form_is_read(filled: str, answers: dict[str, object], trimmed: bool, line_end: str) -> None:
    lines = [line.rstrip() if trimmed else line for line in filled.split("\n")]
    assert read_form(QUESTION, line_end.join(lines)) == answers
