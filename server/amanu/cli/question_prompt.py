"""Asks a user at a terminal what the model or a server wants to know: field by field; then all answers are sent."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from amanu.cli.console import Console
from amanu.cli.review_prompt import UserInput
from amanu.cli.text import one_line, visible
from amanu.cli.ui.dialog import Choice, Dialog
from amanu.cli.ui.terminal import StopRequested
from amanu.client.session_view import SessionView
from amanu.text.sub_agents import asker_of
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Question, QuestionField
from amanu_protocol.labels import BUTTONS, IGNORED

YES, NO = ("y", "yes"), ("n", "no")
DECLINE = "or say why › "
DROPPED = "  Declining covers the whole form: answers already given are not sent."
_PARTS = re.compile(
    r"(\d{1,3}(?:(?:\s*(?:,|&|\+|and\b)|\s)\s*\d{1,3}\b)*)\s*(?:(?:,|;|&|\+)\s*(?:and\b)?|\band\b)\s*(\D.*)", re.S
)
"""Numbers of options, then words: `1,3 and something else`."""


class _Declined(Exception):
    """The user does not want to answer; the text is what they said."""


@dataclass
class QuestionPrompt:
    """Puts the open questions of one session to one user."""

    view: SessionView
    console: Console
    user_input: UserInput
    _answers: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    async def answer(self, question: Question) -> None:
        """Ask every field and send the answers; if the daemon refuses one, ask again from there. Returns when the
        question is over, here or elsewhere."""
        self._answers = {}
        self.console.line(("heading", "? "), ("bold", f"{asker_of(question)} asks: {one_line(question.title)}"))
        start = 0
        while self._is_open(question):
            try:
                for field in question.fields[start:]:
                    await self._ask(question, field)
                outcome, note = "answered", ""
            except _Declined as declined:
                outcome, note = "declined", str(declined)
            if not self._is_open(question):
                break
            try:
                result = await self.view.answer_question(question.item_id, outcome, self._answers, note)
            except AmanuError as error:
                self.console.line(("red", f"  {visible(str(error))}"))
                start = _field_at(question, error.data.path)
                if error.kind != "invalidParams":
                    raise
                continue
            if result.status == "alreadyAnswered":
                self.console.line(("yellow", f"  {visible(result.summary)}"))
            await self.view.wait(lambda _: not self._is_open(question))
            return
        self.console.line(("dim", f"  {IGNORED['settled']}"))

    async def _ask(self, question: Question, field: QuestionField) -> None:
        """Ask one field until it has an answer. Raises `_Declined`."""
        self._show(question, field)
        while self._is_open(question):
            try:
                text = await self.user_input.ask(
                    Dialog(
                        _hint(field),
                        _choices(field),
                        valid=lambda: self._is_open(question),
                        again=lambda: self._show(question, field),
                        roots=self.view.state.roots if field.kind == "file" else (),
                    )
                )
            except StopRequested:
                await self._decline(question)
                continue
            if text is None:
                continue
            if text and field.kind == "file" and not self._exists(text):
                self.console.line(
                    ("yellow", f"  There is no {visible(text)} here. Type another path; Tab completes it.")
                )
                continue
            if text:
                answer = _read(field, text)
            elif field.required and field.default is None:
                await self._decline(question)
                continue
            else:
                return  # the daemon takes the default
            if answer is not None:
                self._answers[field.field_id] = answer
                return
            self.console.line(("yellow", f"  “{visible(text)}” is not one of the answers. Try again."))

    async def _decline(self, question: Question) -> None:
        """Raises `_Declined`, unless the user goes back."""
        if self._answers:
            self.console.line(("yellow", DROPPED))
        try:
            choices = [Choice("y", BUTTONS["decline"]), Choice("", "Back")]
            reason = await self.user_input.ask(Dialog(DECLINE, choices, valid=lambda: self._is_open(question)))
        except StopRequested:
            if self.view.state.turn is not None:
                raise
            raise _Declined("") from None
        if reason:
            raise _Declined("" if reason.lower() in YES else reason)

    def _show(self, question: Question, field: QuestionField) -> None:
        head, *further_lines = visible(field.text).split("\n")
        if len(question.fields) > 1:
            number = f"{question.fields.index(field) + 1} of {len(question.fields)}"
            self.console.line(("bold", " · ".join(filter(None, [f"  {number}", one_line(field.header)])) + f": {head}"))
        elif one_line(field.text) != one_line(question.title):
            self.console.line(("bold", f"  {head}"))
        for line in further_lines:
            self.console.line(("", f"  {line}"))
        for number, option in enumerate([] if _choices(field) else field.options, 1):
            about = f" — {one_line(option.description)}" if option.description else ""
            self.console.line(("bold", f"    {number} "), ("", one_line(option.label)), ("dim", about))

    def _exists(self, path: str) -> bool:
        return any(Path(root, path).expanduser().exists() for root in self.view.state.roots)

    def _is_open(self, question: Question) -> bool:
        return any(open_question.item_id == question.item_id for open_question in self.view.state.questions)


def _field_at(question: Question, path: str | None) -> int:
    ids = [f"answers.{field.field_id}" for field in question.fields]
    return ids.index(path) if path in ids else 0


def _choices(field: QuestionField) -> Sequence[Choice]:
    """The rows of a field that takes one answer; of one that takes several the numbers are typed."""
    match field.kind:
        case "confirm":
            return [Choice("y", BUTTONS["yes"]), Choice("n", BUTTONS["no"])]
        case "choice":
            options = enumerate(field.options, 1)
            return [Choice(str(number), one_line(each.label), one_line(each.description)) for number, each in options]
        case _:
            return []


def _hint(field: QuestionField) -> str:
    match field.kind:
        case "confirm" | "choice":
            return "or your own words › " if field.options and field.other else "› "
        case "choices":
            return f"numbers, such as 1 3{', or your own words' if field.other else ''} › "
        case "text" | "file":
            return " · ".join(filter(None, [one_line(field.placeholder), "Enter sends", "Esc declines"])) + " › "


def _read(field: QuestionField, text: str) -> JsonValue:
    """The answer that the text means; None if it means none."""
    labels = [option.label for option in field.options]
    match field.kind:
        case "confirm":
            return {**dict.fromkeys(YES, True), **dict.fromkeys(NO, False)}.get(text.lower())
        case "choice":
            chosen = _numbered(labels, text)
            if chosen is not None:
                return chosen[0] if len(chosen) == 1 else None
            return _named(labels, text) or (text if field.other else None)
        case "choices":
            chosen = _numbered(labels, text)
            if chosen is not None:
                return [*chosen] or None
            named = _named(labels, text)
            return [named] if named else [*_numbered_and_said(labels, text)] if field.other else None
        case "text" | "file":
            return text


def _numbered(labels: list[str], text: str) -> list[str] | None:
    """The options with those numbers: empty when one is wrong, None when the text is not numbers."""
    words = re.sub(r"[,&+]|\band\b", " ", text).split()
    if not words or not all(word.isdecimal() and len(word) < 4 for word in words):
        return None
    numbers = [int(word) for word in words]
    return [labels[number - 1] for number in numbers] if all(1 <= number <= len(labels) for number in numbers) else []


def _numbered_and_said(labels: list[str], text: str) -> list[str]:
    """The options whose numbers begin the text and the user's own words after them; else the text is all words."""
    parts = _PARTS.fullmatch(text)
    chosen = _numbered(labels, parts[1]) if parts is not None else None
    return [*chosen, parts[2]] if parts is not None and chosen else [text]


def _named(labels: list[str], text: str) -> str | None:
    return next((label for label in labels if label.lower() == text.lower()), None)
