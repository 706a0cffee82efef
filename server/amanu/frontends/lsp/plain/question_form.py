"""A question to the user as a Markdown document to be filled in, and the answers that are written there."""

import re
from collections.abc import Mapping

from pydantic import JsonValue

from amanu.text.display import one_line
from amanu.text.sub_agents import asker_of
from amanu_protocol.items import Question, QuestionField
from amanu_protocol.labels import BUTTONS

SEND_ANSWERS = "Amanu: send the answers"
DECLINE = f"Amanu: {BUTTONS['decline'].lower()}"
_BOX = re.compile(r"^- \[(.?)\] ?(.*)$")


def form_text(question: Question) -> str:
    """The document: a heading for each field, a box for each option."""
    lines = [
        f"# {asker_of(question)} asks: {question.title}",
        "",
        "Put an x into the box of what you choose, or write your own answer on a separate line under the question. "
        f"Then use the code action “{SEND_ANSWERS}”, or “{DECLINE}”.",
        "",
    ]
    for number, field in enumerate(question.fields, 1):
        head, *further_lines = field.text.split("\n")
        header = f"{field.header}: " if field.header else ""
        lines += [f"{_start(number)}{header}{head}", *(f"> {line}" for line in further_lines)]
        lines += ["", *(f"- [ ] {option}" for option in _options(field)), ""]
    return "\n".join(lines)


def read_form(question: Question, text: str) -> Mapping[str, JsonValue]:
    """The answers as far as there are any; the daemon says what is missing. Blanks at the end of a line count for
    nothing: editors add and remove them."""
    ours = {line.rstrip() for line in form_text(question).split("\n")} - {""}
    sections: list[list[str]] = [[] for _ in question.fields]
    at = -1
    for line in map(str.rstrip, text.split("\n")):
        starts = next((number for number in range(len(sections)) if line.startswith(_start(number + 1))), None)
        if starts is not None:
            at = starts
        elif at >= 0 and line not in ours:
            sections[at].append(line)
    answers = {field.field_id: _read(field, lines) for field, lines in zip(question.fields, sections, strict=True)}
    return {field_id: answer for field_id, answer in answers.items() if answer is not None}


def _start(number: int) -> str:
    return f"## {number}. "


def _options(field: QuestionField) -> list[str]:
    """The lines of the options, without their boxes."""
    if field.kind == "confirm":
        return [BUTTONS["yes"], BUTTONS["no"]]
    return [
        option.label + (f" — {one_line(option.description)}" if option.description else "") for option in field.options
    ]


def _read(field: QuestionField, lines: list[str]) -> JsonValue:
    options = _options(field)
    chosen: list[int] = []
    words: list[str] = []
    for line in lines:
        box = _BOX.match(line)
        if box is None:
            words.append(line)
        elif box[1].strip() and box[2].strip() in options:
            chosen.append(options.index(box[2].strip()))
    own = "\n".join(words).strip()
    match field.kind:
        case "confirm":
            return chosen[0] == 0 if len(chosen) == 1 else own or None
        case "choices":
            return [*(field.options[at].label for at in chosen), *([own] if own else [])]
        case "choice" if chosen and not own:
            labels: list[JsonValue] = [field.options[at].label for at in chosen]
            return labels[0] if len(labels) == 1 else labels
        case _:
            return own or None
