"""What the model, or a server, asks the user: a short choice by window/showMessageRequest, the rest as a document to be
filled in (`question_form.py`). What no dialog is open for is a diagnostic with code actions.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lsprotocol import types
from pydantic import JsonValue

from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.frontends.lsp.plain.command_arguments import QuestionAnswerArguments, QuestionArguments
from amanu.frontends.lsp.plain.documents import Documents
from amanu.frontends.lsp.plain.editor import ERROR, MESSAGE, PlainEditor
from amanu.frontends.lsp.plain.question_form import DECLINE, SEND_ANSWERS, form_text, read_form
from amanu.text.display import one_line
from amanu.text.sub_agents import asker_of
from amanu.workspace.diagnostics import OWN
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Question
from amanu_protocol.labels import BUTTONS
from amanu_protocol.requests import QuestionAnswerParams

if TYPE_CHECKING:
    from amanu.session.events import Client
    from amanu.session.session import Session

UNANSWERED = 15.0
"""Seconds after which a question is also a diagnostic: an editor may never have shown it."""
SHORT = 4
"""Options that fit into a dialog."""
LATER, OTHER, NO_ANSWER = BUTTONS["later"], BUTTONS["other"], BUTTONS["decline"]
Outcome = Literal["answered", "declined"]


class UserQuestions:
    """`client` is who answers. `listeners` are called when the diagnostics have changed."""

    def __init__(self, editor: PlainEditor, documents: Documents, client: "Client") -> None:
        self._editor = editor
        self._documents = documents
        self._client = client
        self.listeners: list[Callable[[], None]] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._undecided: dict[str, Question] = {}
        """Questions no dialog is open for, as far as we know."""
        self._forms: dict[Path, tuple[str, Question]] = {}
        """Documents → session and question."""

    def update(self, session: "Session") -> None:
        """Ask what is new; forget what is over."""
        is_open = {question.item_id: question for question in session.state.questions}
        undecided = {question_id: is_open[question_id] for question_id in self._undecided if question_id in is_open}
        if undecided != self._undecided:
            self._undecided = undecided
            self._changed()
        for question_id, question in is_open.items():
            if question_id not in self._tasks:
                self._tasks[question_id] = asyncio.create_task(self._ask(session, question))

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    def diagnostics(self) -> list[types.Diagnostic]:
        """The questions at the head of whatever the user looks at."""
        start = types.Position(0, 0)
        return [
            types.Diagnostic(
                types.Range(start, start),
                f"{_head(question)}\nAnswer with a code action."[:MESSAGE],
                types.DiagnosticSeverity.Warning,
                source=OWN,
            )
            for question in self._undecided.values()
        ]

    def offers(self, path: Path) -> list[tuple[str, str, dict[str, Any]]]:
        """The code actions of a form: title, command, argument."""
        form = self._forms.get(path)
        if form is None:
            return []
        session_id, question = form
        return [
            (SEND_ANSWERS, "amanu.answerQuestion", _arguments(session_id, question, "answered", None)),
            (DECLINE, "amanu.answerQuestion", _arguments(session_id, question, "declined", None)),
        ]

    async def show(self, session: "Session", arguments: QuestionArguments) -> None:
        """Open that question as a form before the user."""
        question = next(
            (question for question in session.state.questions if question.item_id == arguments.question), None
        )
        if question is None:
            raise AmanuError("questionNotFound", "That question is no longer open.")
        document = self._documents.of(session.state.session_id, f"{question.item_id}.md")
        if document.path not in self._forms:
            await document.replace(form_text(question))
        self._forms[document.path] = session.state.session_id, question
        line = form_text(question).partition("\n## ")[0].count("\n") + 1
        await self._editor.show(document.path, focus=True, line=line)

    async def answer(self, session: "Session", arguments: QuestionAnswerArguments) -> None:
        """Pass an answer on, of the form where it has none of its own, and say what became of it."""
        answers = arguments.answers
        form = next(
            (path for path, (_, question) in self._forms.items() if question.item_id == arguments.question), None
        )
        if answers is None and form is not None and arguments.outcome == "answered":
            answers = dict(read_form(self._forms[form][1], await self._documents.at(form).text() or ""))
        params = QuestionAnswerParams(
            session_id=session.state.session_id,
            question_id=arguments.question,
            outcome=arguments.outcome,
            answers=answers or {},
        )
        result = await session.answer_question(params, self._client)
        self._editor.say(f"Amanu: {result.summary}")

    async def _ask(self, session: "Session", question: Question) -> None:
        choices = dialog(question, preselects=self._editor.quirks.preselects)
        if not choices:
            self._leave(session, question)
            self._editor.say(f"{_head(question)} Answer with a code action.")
            return
        timer = asyncio.get_running_loop().call_later(UNANSWERED, self._leave, session, question)
        arguments = QuestionArguments(session=session.state.session_id, question=question.item_id)
        try:
            title = await self._editor.choose(_text(question), list(choices))
            if title == OTHER:
                await self.show(session, arguments)
            elif title is not None and title != LATER:
                outcome: Outcome = "declined" if title == NO_ANSWER else "answered"
                answer = QuestionAnswerArguments(**dict(arguments), outcome=outcome, answers=choices[title])
                await self.answer(session, answer)
        except ClientError:
            pass
        except AmanuError as error:
            self._editor.say(str(error), ERROR)
        finally:
            timer.cancel()
        self._leave(session, question)

    def _leave(self, session: "Session", question: Question) -> None:
        """Leave it to the code actions, if it is still open."""
        if question in session.state.questions:
            self._undecided[question.item_id] = question
            self._changed()

    def _changed(self) -> None:
        for listener in self.listeners:
            listener()


def dialog(question: Question, *, preselects: bool) -> dict[str, dict[str, JsonValue]]:
    """The answers a dialog offers, by title; none when the question needs a form. Where Enter takes the first one, it
    decides nothing."""
    field, *others = question.fields
    if others or len(_text(question)) > MESSAGE or len(field.options) > SHORT:
        return {}
    match field.kind:
        case "choice":
            answers: dict[str, JsonValue] = {option.label: option.label for option in field.options}
        case "confirm":
            answers = {BUTTONS["yes"]: True, BUTTONS["no"]: False}
        case _:
            return {}
    if not answers.keys().isdisjoint((LATER, OTHER, NO_ANSWER)):
        return {}
    choices: dict[str, dict[str, JsonValue]] = {LATER: {}} if preselects else {}
    choices |= {title: {field.field_id: answer} for title, answer in answers.items()}
    return choices | ({OTHER: {}} if field.other else {}) | {NO_ANSWER: {}}


def question_actions(session_id: str, question: Question) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The code actions that answer it, wherever the user is: title, command, argument."""
    for title, answers in dialog(question, preselects=False).items():
        if answers:
            label = f"Amanu: answer {title}: {one_line(question.title)}"
            yield label, "amanu.answerQuestion", _arguments(session_id, question, "answered", answers)
    arguments = QuestionArguments(session=session_id, question=question.item_id)
    yield f"Amanu: answer: {one_line(question.title)}", "amanu.question", arguments.model_dump(by_alias=True)
    declined = _arguments(session_id, question, "declined", None)
    yield f"{DECLINE}: {one_line(question.title)}", "amanu.answerQuestion", declined


def _arguments(
    session_id: str, question: Question, outcome: Outcome, answers: Mapping[str, JsonValue] | None
) -> dict[str, Any]:
    arguments = QuestionAnswerArguments(
        session=session_id, question=question.item_id, outcome=outcome, answers=None if answers is None else {**answers}
    )
    return arguments.model_dump(mode="json", by_alias=True)


def _head(question: Question) -> str:
    return f"{asker_of(question)} asks: {question.title}"


def _text(question: Question) -> str:
    """The question of a dialog, with what its options mean."""
    field = question.fields[0]
    meanings = [f"{option.label}: {one_line(option.description)}" for option in field.options if option.description]
    return "\n".join([f"{asker_of(question)} asks: {field.text}", *meanings])
