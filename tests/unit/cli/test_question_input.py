"""What is typed at a question is an answer, unless it is a command: that is run, or refused, and never sent."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from amanu.cli.console import PlainConsole
from amanu.cli.question_input import QuestionInput
from amanu.cli.ui.dialog import Dialog


@dataclass(frozen=True)
class Known:
    names: Sequence[str] = ("/help", "/jobs", "/undo", "/review")


COMMANDS = Known()
"""The last as a file of the user's own would make it."""


class Typist:
    def __init__(self, *typed: str | None) -> None:
        self.typed = list(typed)

    async def ask(self, dialog: Dialog) -> str | None:
        return self.typed.pop(0)

    async def edit(self, text: str, suffix: str) -> str | None:
        return None

    async def view(self, text: str) -> None:
        pass


RUN, REFUSED, UNKNOWN = "run", "must wait until the question is answered. Nothing was sent.", "There is no command"

ANSWERS = ["a", "no, /help is wrong", "/src/x.py why?", "/src/x.py", "/srv why", "", None]
COMMANDED = [
    ("/help", RUN),
    ("/jobs output 1", RUN),
    ("/undo", REFUSED),
    ("/undo session", REFUSED),
    ("/review this", REFUSED),
    ("/helpp", "There is no command /helpp. Did you mean /help? Nothing was sent."),
    ("/clear", REFUSED),
    ("/exit", RUN),
    ("/memory", UNKNOWN),
    ("?", ""),
]


async def asked(*typed: str | None) -> tuple[str | None, list[str], str, int]:
    """The answer, the commands that were run, what was said, how often the question was shown again."""
    out, ran, shown = io.StringIO(), list[str](), list[bool]()

    async def run(text: str) -> None:
        ran.append(text)

    person = Typist(*typed)
    question = QuestionInput(person, PlainConsole(out), COMMANDS, run, lambda: False)
    answer = await question.ask(Dialog("May I?", valid=lambda: True, again=lambda: shown.append(True)))
    assert person.typed == []
    return answer, ran, out.getvalue(), len(shown)


@pytest.mark.parametrize("typed", ANSWERS)
async def test_an_answer_is_an_answer(typed: str | None) -> None:
    echo = f"  › {typed}\n" if typed else ""
    assert await asked(typed) == (typed, [], echo, 0)


@pytest.mark.parametrize(("typed", "outcome"), COMMANDED)
async def test_a_command_is_none(typed: str, outcome: str) -> None:
    answer, ran, said, shown = await asked(typed, "a")
    assert (answer, ran, shown) == ("a", [typed] if outcome == RUN else [], 1)
    assert said == "  › a\n" if outcome in (RUN, "") else outcome in said


async def test_what_is_settled_meanwhile_is_not_asked_again() -> None:
    question = QuestionInput(Typist("?"), PlainConsole(io.StringIO()), COMMANDS, lambda _: None, lambda: False)  # pyright: ignore[reportArgumentType]
    assert await question.ask(Dialog("May I?", valid=lambda: False)) is None
