"""Lets the model ask the user; only where somebody is there to answer."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from amanu.core.questions import Asking
from amanu.core.tool import CallContext, Outcome, Params, Preview, Subject, ToolError
from amanu.text.display import one_line
from amanu.text.questions import report
from amanu.tools.environment import SessionTool
from amanu_protocol.items import QuestionField, QuestionOption

HEADER = 12
"""Characters of a header."""


class Option(BaseModel):
    label: str
    description: str = ""


class UserQuestion(BaseModel):
    header: str = Field(description="At most 12 characters.")
    question: str
    options: list[Option] = Field(
        default=[], max_length=4, description="2-4 short answers; the user can also type one."
    )
    multi_select: bool = False
    kind: Literal["text", "yes_no", "file"] = Field(default="text", description="If no options.")


class AskUserParams(Params):
    questions: list[UserQuestion] = Field(min_length=1, max_length=4, description="At most 4.")


class AskUser(SessionTool[AskUserParams]):
    name = "ask_user"
    effect = "read"
    description = (
        "Asks the user what you cannot find out by reading and must not assume: intent, preferences, trade-offs. Put "
        "your recommendation first and say so. If the user declines, decide and say what you assumed."
    )
    params = AskUserParams

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return "Ask you"

    async def preview(self, params: AskUserParams, call: CallContext) -> Preview:
        for question in params.questions:
            if not question.question.strip():
                raise ToolError("A question has no text. Write what you want to know.")
            labels = [one_line(option.label.strip()) for option in question.options]
            if len(labels) == 1 or "" in labels or len({*labels}) < len(labels):
                raise ToolError(f"The question {question.question!r} needs at least two different options, or none.")
        headers = ", ".join(question.header for question in params.questions)
        detail = "\n".join(question.question for question in params.questions)
        return Preview(title=f"Ask you: {headers}", subject=Subject(self.name, self.effect, ""), detail=detail)

    async def run(self, params: AskUserParams, call: CallContext) -> Outcome:
        questions = self._environment.questions
        if questions is None:
            raise ToolError("Nobody is there to answer. Decide yourself, and say what you assumed.")
        fields = [_field(number, question) for number, question in enumerate(params.questions, 1)]
        asker = Asking(call.turn_id, call.call_id, agent=call.agent)
        question = await questions.ask(fields, asker)
        return Outcome(report(question), question.summary)


def _field(number: int, question: UserQuestion) -> QuestionField:
    kind: Literal["text", "choice", "choices", "confirm", "file"]
    if question.options:
        kind = "choices" if question.multi_select else "choice"
    else:
        kind = "confirm" if question.kind == "yes_no" else question.kind
    header = question.header.strip()
    return QuestionField(
        field_id=f"q{number}",
        kind=kind,
        header=header if len(header) <= HEADER else f"{header[: HEADER - 1]}…",
        text=question.question,
        options=[QuestionOption(label=option.label, description=option.description) for option in question.options],
        other=bool(question.options),
    )
