"""Questions to the user in words: for the user, whatever asks is made visible; for the model, the answers."""

from collections.abc import Sequence
from typing import cast

from pydantic import JsonValue

from amanu.text.display import one_line, visible
from amanu_protocol.items import Question, QuestionField, QuestionOption
from amanu_protocol.labels import BUTTONS

_MAX_ANSWER = 80
"""Characters of one answer in a summary."""
_STATES = {"answered": "Answered", "declined": "Declined", "cancelled": "Cancelled"}
NO_ANSWER = "(no answer)"
STILL_OPEN = "Interrupted before the user answered. The question is still open: the answer will come as a message."
"""The result of the call that asked, when its daemon or session ends."""


def explain_field(field: QuestionField) -> QuestionField:
    """The field as the user sees it: nothing hidden in it, and what stands on one line on one line."""
    return field.model_copy(
        update={
            "header": one_line(field.header.strip()),
            "text": visible(field.text.strip()),
            "placeholder": one_line(field.placeholder),
            "options": [
                QuestionOption(label=one_line(option.label.strip()), description=visible(option.description.strip()))
                for option in field.options
            ],
        }
    )


def title(fields: Sequence[QuestionField]) -> str:
    """One line for what is asked."""
    if len(fields) == 1:
        return one_line(fields[0].text.partition("\n")[0])
    headers = ", ".join(field.header or one_line(field.text) for field in fields)
    return one_line(f"{len(fields)} questions: {headers}")


def summary(question: Question) -> str:
    """One line for what became of it."""
    where = f" in {question.client}" if question.client and question.state != "cancelled" else ""
    outcome = f"{_STATES.get(question.state, '')}{where}"
    if question.state == "answered":
        answers = [_with_header(field, question.answers[field.field_id]) for field in _answered(question)]
        outcome += f": {'; '.join(answers)}" if answers else ""
    if question.note:
        outcome += f" (“{_short(question.note)}”)" if question.state == "answered" else f": {_short(question.note)}"
    return one_line(f"{outcome}." if question.state == "cancelled" else outcome)


def late(question: Question) -> str:
    """To a user whose answer came after the question was over."""
    if question.state == "cancelled":
        asker = "turn" if question.agent_id is None else "sub-agent"
        return f"This question was cancelled with its {asker}; your answer was not used."
    return one_line(f"Your answer came too late. {question.summary}")


def report(question: Question) -> str:
    """What the user answered, for the model."""
    if question.state == "declined":
        return "The user declined to answer." + (f" They said: {question.note}" if question.note else "")
    lines: list[str] = []
    for field in question.fields:
        answer = question.answers.get(field.field_id)
        lines.append(f"{field.text}\nAnswer: {NO_ANSWER if answer is None else spoken(answer)}")
    return "\n\n".join([*lines, *([f"The user adds: {question.note}"] if question.note else [])])


def late_report(question: Question) -> str:
    """The same as a prompt of the user, when the turn that asked is over."""
    if question.state == "declined":
        return f"About what you asked before you were interrupted ({question.title}): {question.note}"
    return f"My answer to what you asked before you were interrupted:\n\n{report(question)}"


def spoken(answer: JsonValue) -> str:
    """An answer as text."""
    match answer:
        case bool():
            return BUTTONS["yes"] if answer else BUTTONS["no"]
        case list():
            return "; ".join(map(str, cast("list[object]", answer)))
        case _:
            return str(answer)


def _answered(question: Question) -> list[QuestionField]:
    return [field for field in question.fields if field.field_id in question.answers]


def _with_header(field: QuestionField, answer: JsonValue) -> str:
    return f"{field.header}: {_short(spoken(answer))}" if field.header else _short(spoken(answer))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_ANSWER else f"{text[: _MAX_ANSWER - 1]}…"
