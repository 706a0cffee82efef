"""Whether the answers to a question fit it."""

from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from amanu_protocol.errors import AmanuError
from amanu_protocol.items import QuestionField

MAX_ANSWER = 10_000
"""Characters of one answer."""
MAX_CHOICES = 100


def read_answers(fields: Sequence[QuestionField], answers: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The answers by field, in the fields' order, with defaults where none was given. Raises `AmanuError`
    (invalidParams) whose `path` names the first field that is wrong or does not exist."""
    field_ids = {field.field_id for field in fields}
    for field_id in answers:
        if field_id not in field_ids:
            raise _fault(field_id, "The question has no such field.")
    read: dict[str, JsonValue] = {}
    for field in fields:
        answer = answers.get(field.field_id)
        if _is_empty(answer):
            answer = field.default
        if _is_empty(answer):
            if field.required:
                raise _fault(field.field_id, f"“{field.header or field.text}” needs an answer.")
            continue
        read[field.field_id] = _read(field, answer)
    return read


def _is_empty(answer: JsonValue) -> bool:
    return answer is None or answer == [] or (isinstance(answer, str) and not answer.strip())


def _read(field: QuestionField, answer: JsonValue) -> JsonValue:
    match field.kind:
        case "confirm":
            if not isinstance(answer, bool):
                raise _fault(field.field_id, "The answer must be true or false.")
            return answer
        case "choices":
            if not isinstance(answer, list) or not all(isinstance(text, str) for text in answer):
                raise _fault(field.field_id, "The answer must be a list of texts.")
            if len(answer) > MAX_CHOICES:
                raise _fault(field.field_id, f"At most {MAX_CHOICES} can be chosen.")
            chosen = list(dict.fromkeys(_option(field, text) for text in cast("list[str]", answer) if text.strip()))
            return cast("JsonValue", chosen)
        case "choice":
            return _option(field, answer)
        case "text" | "file":
            return _text(field, answer)


def _option(field: QuestionField, answer: JsonValue) -> str:
    text = _text(field, answer)
    if not field.other and all(option.label != text for option in field.options):
        raise _fault(field.field_id, f"“{text[:80]}” is not one of the options.")
    return text


def _text(field: QuestionField, answer: JsonValue) -> str:
    if not isinstance(answer, str):
        raise _fault(field.field_id, "The answer must be a text.")
    if len(answer) > MAX_ANSWER:
        raise _fault(field.field_id, f"The answer is longer than {MAX_ANSWER:,} characters.")
    return answer.strip()


def _fault(field_id: str, message: str) -> AmanuError:
    return AmanuError("invalidParams", message, path=f"answers.{field_id}")
