"""The questions of one session to its user, and who waits for the answers.

A question is an item, open until somebody answers or declines, or its turn is cancelled. When the daemon stops, one of
the session's own model stays open; what waited for it is gone then, so its answer becomes a prompt
(`Session.answer_question`).
"""

import asyncio
from collections.abc import Callable, Sequence

from amanu.core.questions import OURSELVES, Asking, outlives_its_call
from amanu.core.tool import CallCancelled
from amanu.permissions.user_wait import UserWait
from amanu.session.access import Access
from amanu.session.answers import read_answers
from amanu.session.events import EventStream
from amanu.text import questions as wording
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import ItemCompleted, ItemStarted
from amanu_protocol.items import Question, QuestionField
from amanu_protocol.requests import QuestionAnswerParams
from amanu_protocol.state import SessionState

OTHER_ANSWER = "see my other answer"
"""With the second of two questions that one message ends."""


class Questions:
    """Implements `core.questions.UserQuestions`."""

    def __init__(self, state: SessionState, emit: EventStream, access: Access, wait: UserWait) -> None:
        self._state = state
        self._emit = emit
        self._access = access
        self._wait = wait
        self._waiting: dict[str, asyncio.Future[Question]] = {}
        """By question: those that a call of this process waits for."""
        self._of_servers: set[str] = set()
        """The ones that a server asks: no model reads the answer."""
        self._over: dict[str, Question] = {}

    async def ask(self, fields: Sequence[QuestionField], asking: Asking) -> Question:
        """Ask, and wait for the user; see `core.questions.UserQuestions`."""
        fields = [wording.explain_field(field) for field in fields]
        question = Question(
            item_id=f"question-{self._emit.epoch}.{self._emit.seq}",
            turn_id=asking.turn_id,
            tool_call_id=asking.call_id,
            asker=asking.agent.name if asking.agent is not None and asking.asker == OURSELVES else asking.asker,
            agent_id=None if asking.agent is None else asking.agent.agent_id,
            title=wording.title(fields),
            fields=fields,
        )
        answer = self._waiting[question.item_id] = asyncio.get_running_loop().create_future()
        if asking.asker != OURSELVES:
            self._of_servers.add(question.item_id)
        self._wait.begin()
        try:
            asked = ItemStarted(item=question)
            await self._emit.save(asked)  # whoever has seen it will find it again
            self._emit(asked)
            return await answer
        except BaseException as error:
            over = self._over.get(question.item_id)
            if over is not None and isinstance(error, asyncio.CancelledError):
                return over  # the user has said something: the model must hear that, not that it was cut short
            if self._access.closed and over is None and outlives_its_call(question):
                raise CallCancelled(wording.STILL_OPEN) from None
            if over is None:
                self.settle(question.model_copy(update={"state": "cancelled"}))
            raise
        finally:
            self._wait.end()
            del self._waiting[question.item_id]
            self._of_servers.discard(question.item_id)

    def open(self, question_id: str) -> Question | None:
        """The question, if it is open."""
        return next((question for question in self._state.questions if question.item_id == question_id), None)

    def over(self, question_id: str) -> Question:
        """The question, which is not open any more. Raises `AmanuError` (questionNotFound)."""
        question = self._over.get(question_id) or self._state.item(question_id)
        if not isinstance(question, Question):
            raise AmanuError("questionNotFound", "This session has asked no such question.")
        return question

    def awaited(self, question_id: str) -> bool:
        """Whether a call waits for the answer."""
        return question_id in self._waiting

    def waited_for(self, agent_id: str | None) -> list[Question]:
        """The open questions of that sub-agent's model (None: the session's own), the oldest first."""
        return [
            question
            for question in self._state.questions
            if question.agent_id == agent_id
            and self.awaited(question.item_id)
            and question.item_id not in self._of_servers
        ]

    def decline(self, words: str, client: str, agent_id: str | None) -> None:
        """The user said something to that agent instead of answering: each of its questions ends with that."""
        for question in self.waited_for(agent_id):
            self.settle(question.model_copy(update={"state": "declined", "note": words, "client": client}))
            words = OTHER_ANSWER

    def read(
        self, question: Question, params: QuestionAnswerParams, client: str, mask: Callable[[str], str]
    ) -> Question:
        """The question with a client's answer; nothing has happened yet. `mask` hides secrets. Raises `AmanuError`
        (invalidParams)."""
        answered = params.outcome == "answered"
        answers = read_answers(question.fields, params.answers) if answered else {}
        for field_id, answer in answers.items():
            if isinstance(answer, str):
                answers[field_id] = mask(answer)
            elif isinstance(answer, list):
                answers[field_id] = [mask(choice) if isinstance(choice, str) else choice for choice in answer]
        return question.model_copy(
            update={"state": params.outcome, "answers": answers, "note": mask(params.note.strip()), "client": client}
        )

    def settle(self, question: Question) -> Question:
        """The question is over: tell everybody, and whoever waits for it."""
        question = question.model_copy(update={"summary": wording.summary(question)})
        self._over[question.item_id] = question
        self._emit(ItemCompleted(item=question))
        waiting = self._waiting.get(question.item_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(question)
        return question
