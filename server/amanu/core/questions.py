"""How a question to the user is asked, by a tool or by a server that wants to know something."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from amanu.core.tool import AgentLabel
from amanu_protocol.items import Question, QuestionField

OURSELVES = "Amanu"


@dataclass(frozen=True)
class Asking:
    """Whose question it is."""

    turn_id: str
    call_id: str | None = None
    """The call that waits for the answer."""
    asker: str = OURSELVES
    """For the user: who wants to know."""
    agent: AgentLabel | None = None
    """The sub-agent that wants to know; None: the session's own agent, or no agent."""


def outlives_its_call(question: Question) -> bool:
    """Whether it stays open when its session is closed: the session's own model can still be told the answer. A server
    or a sub-agent has ended with the call, and the answer is for nobody else."""
    return question.agent_id is None and question.asker == OURSELVES


class UserQuestions(Protocol):
    """Asks the user of a session. Implemented by `session/questions.py`."""

    async def ask(self, fields: Sequence[QuestionField], asking: Asking) -> Question:
        """The question with what became of it: `answered` or `declined`. Waits as long as the user takes; cancelling
        the task withdraws the question, but one that is over already is returned. Raises `AmanuError`
        (storageError)."""
        ...
