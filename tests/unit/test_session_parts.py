"""The parts of a session are asked in their order, and one that fails keeps nothing from the others."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from amanu.core.agent import AgentRun
from amanu.core.listeners import TurnListener
from amanu.core.notes import SystemNote
from amanu.core.session_part import PromptListener, Request, SessionPart, SlashCommand, Slot
from amanu.session.parts import Parts, PromptListeners
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode
from amanu_protocol.requests import Empty

RUN = cast("AgentRun", None)
"""The parts here look at nothing of it."""
ASKED = ("stop", "close", "resume", "on_trust", "on_mode", "note", "note_between_steps", "listeners", "program_files")


class Failing(SessionPart):
    def __getattribute__(self, name: str) -> Any:
        if name in ASKED:
            raise RuntimeError(name)
        return super().__getattribute__(name)


class Named(SessionPart):
    def __init__(self, name: str, heard: list[str]) -> None:
        self.name = name
        self.heard = heard

    def listen_to_prompt(self) -> PromptListener:
        return Prompted(self.name, self.heard)

    async def stop(self) -> None:
        self.heard.append(f"{self.name} stops")

    def resume(self) -> None:
        self.heard.append(f"{self.name} resumes")

    async def close(self) -> None:
        self.heard.append(f"{self.name} closes")

    def on_trust(self, *, taken_back: bool) -> None:
        self.heard.append(f"{self.name} hears of trust")

    def on_mode(self, mode: Mode) -> None:
        self.heard.append(f"{self.name} hears of the mode")

    def note(self) -> str:
        return f"{self.name} tells"

    def note_between_steps(self) -> SystemNote | None:
        return SystemNote(f"{self.name} tells", "")

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        return {"calls": [Listener(f"{self.name} on calls")], "over": [Listener(f"{self.name} on the end")]}

    @classmethod
    def requests(cls) -> Mapping[str, Request]:
        return {"amanu/test/name": Request(Empty, lambda part, params, client: part.answer(client))}

    @classmethod
    def slash_commands(cls) -> Sequence[SlashCommand]:
        return [SlashCommand("name", "", lambda part, arguments: part.answer(arguments))]

    async def answer(self, asked: object) -> str:
        return f"{self.name} answers {asked}"


class Prompted(PromptListener):
    def __init__(self, name: str, heard: list[str]) -> None:
        self.name, self.heard = name, heard
        self.calls = Listener(name)

    async def begin(self) -> str:
        return f"{self.name} begins"

    async def on_words(self, words: str, *, typed: str) -> str:
        return "" if self.name == "a" else f"{self.name} adds to {words} ({typed})"

    def told(self, *, opens_turn: bool) -> None:
        self.heard.append(f"{self.name} told")


class Listener(TurnListener):
    def __init__(self, name: str) -> None:
        self.name = name


def names(listeners: Sequence[TurnListener]) -> list[str]:
    return [listener.name for listener in listeners if isinstance(listener, Listener)]


TOLD: dict[str, tuple[Callable[[Parts], Awaitable[None] | None], list[str]]] = {
    "stop": (lambda parts: parts.stop(), ["b stops", "a stops"]),
    "close": (lambda parts: parts.close(), ["b closes", "a closes"]),
    "resume": (lambda parts: parts.resume(), ["a resumes", "b resumes"]),
    "trust": (lambda parts: parts.on_trust(taken_back=True), ["a hears of trust", "b hears of trust"]),
    "mode": (lambda parts: parts.on_mode("plan"), ["a hears of the mode", "b hears of the mode"]),
}


@pytest.mark.parametrize("between", [[], [Failing()]], ids=["", "one fails"])
@pytest.mark.parametrize("told", TOLD)
async def test_all_are_told_in_order(told: str, between: list[SessionPart]) -> None:
    tell, expected = TOLD[told]
    heard: list[str] = []
    if (answer := tell(Parts([Named("a", heard), *between, Named("b", heard)]))) is not None:
        await answer
    assert heard == expected


@pytest.mark.parametrize("between", [[], [Failing()]], ids=["", "one fails"])
def test_what_they_say_is_in_order(between: list[SessionPart]) -> None:
    parts = Parts([Named("a", []), *between, Named("b", [])])
    assert parts.notes() == ["a tells", "b tells"]
    assert [note.text for note in parts.notes_between_steps()] == ["a tells", "b tells"]
    assert names(parts.listeners(RUN, {"over": [Listener("own")], "late": [Listener("late")]})) == [
        *("own", "a on the end", "b on the end"),
        *("a on calls", "b on calls", "late"),
    ]


async def test_a_prompt_is_heard_of_by_all() -> None:
    heard: list[str] = []
    listeners = PromptListeners(Parts([Named("a", heard), SessionPart(), Named("b", heard)]))
    assert names(listeners.calls) == ["a", "b"]
    assert await listeners.begin() == "a begins\n\nb begins"
    assert await listeners.on_words("words", typed="/words") == "b adds to words (/words)"
    listeners.told(opens_turn=True)
    assert heard == ["a told", "b told"]


async def test_the_first_that_knows_a_request_answers_it() -> None:
    parts = Parts([SessionPart(), Named("a", []), Named("b", [])])
    assert await parts.ask("amanu/test/name", Empty(), "me") == "a answers me"
    assert await parts.answers()["name"]("more") == "b answers more"
    with pytest.raises(AmanuError, match="nothing that answers"):
        await parts.ask("amanu/test/other", Empty(), "me")
