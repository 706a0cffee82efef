"""Asks a user at a terminal what the model or a server wants to know: field by field, back and forth; several answers
are sent after a last look."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from amanu.cli.console import Console
from amanu.cli.review_prompt import UserInput
from amanu.cli.text import one_line, visible
from amanu.cli.ui.dialog import ALONE, Choice, Dialog, Place
from amanu.cli.ui.terminal import QuestionLeft, StopRequested
from amanu.client.session_view import SessionView
from amanu.text.sub_agents import asker_of
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Question, QuestionField
from amanu_protocol.labels import BUTTONS, IGNORED

YES, NO = ("y", "yes"), ("n", "no")
SEND = "y"
DECLINE = "or say why › "
DROPPED = "  Declining covers the whole form: answers already given are not sent."
_PARTS = re.compile(
    r"(\d{1,3}(?:(?:\s*(?:,|&|\+|and\b)|\s)\s*\d{1,3}\b)*)\s*(?:(?:,|;|&|\+)\s*(?:and\b)?|\band\b)\s*(\D.*)", re.S
)
"""Numbers of options, then words: `1,3 and something else`."""


class _Declined(Exception):
    """The user does not want to answer; the text is what they said."""


@dataclass
class _Form:
    """The answers so far to one question, which may have several fields."""

    question: Question
    at: int = 0
    """The field that is asked; behind the last one: the last look."""
    answers: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    passed: set[str] = field(default_factory=set[str])
    """Fields whose answer is the default."""
    typed: dict[int, str] = field(default_factory=dict[int, str])
    """Field → the text that stands there when the user comes back."""

    @property
    def fields(self) -> list[QuestionField]:
        return self.question.fields

    @property
    def has_last_look(self) -> bool:
        return len(self.fields) > 1

    @property
    def unanswered(self) -> list[int]:
        return [
            at
            for at, each in enumerate(self.fields)
            if each.field_id not in self.answers and each.field_id not in self.passed
        ]

    def go_on(self) -> None:
        """To what has no answer yet, or to the end."""
        later = [at for at in self.unanswered if at > self.at]
        self.at = next(iter(later or self.unanswered), len(self.fields))

    def move(self, by: int) -> bool:
        """False when there is nothing there."""
        at = self.at + by
        is_there = 0 <= at < len(self.fields) + self.has_last_look
        self.at = at if is_there else self.at
        return is_there


@dataclass
class QuestionPrompt:
    """Puts the open questions of one session to one user."""

    view: SessionView
    console: Console
    user_input: UserInput
    _forms: dict[str, _Form] = field(default_factory=dict[str, _Form])
    """Id of an open question → its form."""
    _form: _Form = field(init=False)
    _place: Callable[[], Place] = field(init=False)

    async def answer(self, question: Question, typed: str = "", place: Callable[[], Place] = lambda: ALONE) -> None:
        """Ask every field, and once more before several answers are sent; if the daemon refuses one, ask again from
        there. Returns when the question is over, here or elsewhere. Raises QuestionLeft when the user goes to another
        question. `typed` was left at this one."""
        form = self._form = self._forms.setdefault(question.item_id, _Form(question))
        self._place = place
        if typed:
            form.typed[form.at] = typed
        self.console.line(("heading", "? "), ("bold", f"{asker_of(question)} asks: {one_line(question.title)}"))
        while self._is_open(question):
            try:
                note = await self._fill_in(form)
                outcome = "answered"
            except _Declined as declined:
                outcome, note = "declined", str(declined)
            if not self._is_open(question):
                break
            try:
                result = await self.view.answer_question(question.item_id, outcome, form.answers, note)
            except AmanuError as error:
                self.console.line(("red", f"  {visible(str(error))}"))
                form.at = _field_at(question, error.data.path)
                if error.kind != "invalidParams":
                    raise
                form.answers.pop(form.fields[form.at].field_id, None)
                continue
            if result.status == "alreadyAnswered":
                self.console.line(("yellow", f"  {visible(result.summary)}"))
            await self.view.wait(lambda _: not self._is_open(question))
            self._forms.pop(question.item_id, None)
            return
        self._forms.pop(question.item_id, None)
        self.console.line(("dim", f"  {IGNORED['settled']}"))

    async def _fill_in(self, form: _Form) -> str:
        """Ask until all is answered, and the user has looked at it. The note that goes with the answers. Raises
        `_Declined`."""
        while self._is_open(form.question):
            try:
                if form.at < len(form.fields):
                    await self._ask(form.question, form.fields[form.at])
                    form.go_on()
                    if form.at == len(form.fields) and not form.has_last_look:
                        return ""
                elif (note := await self._look(form)) is not None:
                    return note
            except QuestionLeft as left:
                form.typed[form.at] = left.typed
                if not form.move(left.by) and self._place().count > 1:
                    raise QuestionLeft(left.by, "") from None
        return ""

    async def _look(self, form: _Form) -> str | None:
        """Show all answers before they are sent: the note to go with them, or None to change one."""
        for number, each in enumerate(form.fields, 1):
            answer = form.answers.get(each.field_id)
            shown = _said(answer) if answer is not None else "the default" if each.field_id in form.passed else ""
            name = one_line(each.header or each.text, 60)
            self.console.line(
                ("bold", f"  {number} "),
                ("", f"{name}: "),
                ("cyan" if shown else "yellow", shown or "not answered yet"),
            )
        send = [] if form.unanswered else [Choice(SEND, "Send the answers")]
        change = [
            Choice(
                f"change {number}",
                f"{'Answer' if number - 1 in form.unanswered else 'Change'} {number}",
                one_line(each.header or each.text, 60),
            )
            for number, each in enumerate(form.fields, 1)
        ]
        try:
            text = await self.user_input.ask(
                Dialog(
                    "or add a note › " if send else "› ",
                    [*send, *change],
                    valid=lambda: self._is_open(form.question),
                    typed=form.typed.pop(form.at, ""),
                    place=self._field_place,
                )
            )
        except StopRequested:
            await self._decline(form.question)
            return None
        chosen = next((at for at, each in enumerate(change) if each.value == text), None)
        if chosen is not None:
            form.at = chosen
        elif text and send:
            return "" if text in (SEND, *YES) else text
        elif text:
            form.typed[form.at] = text  # not all is answered: it may be a note later
        return None

    def _field_place(self) -> Place:
        """Among the fields and the last look; of a single field among the questions."""
        if not self._form.has_last_look:
            return self._place()
        return Place(self._form.at + 1, len(self._form.fields))

    async def _ask(self, question: Question, field: QuestionField) -> None:
        """Ask one field until it has an answer. Raises `_Declined`."""
        form = self._form
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
                        typed=form.typed.get(form.at, ""),
                        place=self._field_place,
                    )
                )
            except StopRequested:
                await self._decline(question)
                continue
            if text is None:
                continue
            form.typed[form.at] = text
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
            else:  # the daemon takes the default
                form.passed.add(field.field_id)
                form.answers.pop(field.field_id, None)
                return
            if answer is not None:
                form.answers[field.field_id] = answer
                form.passed.discard(field.field_id)
                return
            form.typed.pop(form.at)
            self.console.line(("yellow", f"  “{visible(text)}” is not one of the answers. Try again."))

    async def _decline(self, question: Question) -> None:
        """Raises `_Declined`, unless the user goes back."""
        if self._form.answers:
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


def _said(answer: JsonValue) -> str:
    match answer:
        case bool():
            return BUTTONS["yes"] if answer else BUTTONS["no"]
        case list():
            return ", ".join(one_line(str(each)) for each in answer)
        case _:
            return one_line(str(answer))


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
