"""The parts of one session, asked in order. If one raises although it must not, that is logged, and the others are
still asked."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from amanu.core.agent import AgentRun
from amanu.core.listeners import TurnListener
from amanu.core.notes import SystemNote
from amanu.core.session_part import SLOTS, PromptListener, SessionPart, Slot
from amanu.core.tool import AnyTool
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode, UserMessage

T = TypeVar("T")
log = logging.getLogger(__name__)


class Parts:
    """Each method asks all parts; `core/session_part.py` says what they may do."""

    def __init__(self, parts: Sequence[SessionPart] = ()) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[SessionPart]:
        return iter(self._parts)

    def find(self, kind: type[T]) -> T | None:
        """The first part that is of that class or implements that interface; None if there is none."""
        return next((part for part in self._parts if isinstance(part, kind)), None)

    # The session ------------------------------------------------------------------------------------

    async def open(self, *, begins: bool) -> None:
        """Raises `AmanuError`, after stopping and closing the parts that were already open."""
        opened: list[SessionPart] = []
        for part in self._parts:
            try:
                await part.open(begins=begins)
            except BaseException:
                await Parts(opened).stop()
                await Parts(opened).close()
                raise
            opened.append(part)

    async def stop(self) -> None:
        for part in reversed(self._parts):
            with _logged():
                await part.stop()

    def resume(self) -> None:
        self._each(lambda part: part.resume())

    async def close(self) -> None:
        for part in reversed(self._parts):
            with _logged():
                await part.close()

    @property
    def idle(self) -> bool:
        return all(part.idle for part in self._parts)

    def on_mode(self, mode: Mode) -> None:
        self._each(lambda part: part.on_mode(mode))

    def on_trust(self, *, taken_back: bool) -> None:
        self._each(lambda part: part.on_trust(taken_back=taken_back))

    # A turn -----------------------------------------------------------------------------------------

    async def begin_turn(self) -> None:
        """Raises `AmanuError`."""
        await asyncio.gather(*(part.begin_turn() for part in self._parts))

    async def prepare_notes(self, window: int) -> None:
        """`window`: of the turn's model, in tokens."""
        await asyncio.gather(*(_prepare(part, window) for part in self._parts))

    def notes(self) -> Sequence[str]:
        """The texts that the model is sent with a prompt; some may be ""."""
        return self._each(lambda part: part.note())

    def on_prompt(self, message: UserMessage) -> None:
        self._each(lambda part: part.on_prompt(message))

    def turn_tools(self, window: int) -> list[AnyTool]:
        """`window`: of the turn's model, in tokens."""
        return [tool for tools in reversed(self._each(lambda part: part.turn_tools(window))) for tool in tools]

    def notes_between_steps(self) -> Sequence[SystemNote]:
        return [note for note in self._each(lambda part: part.note_between_steps()) if note is not None]

    def listeners(self, run: AgentRun, own: Mapping[Slot, Sequence[TurnListener]] | None = None) -> list[TurnListener]:
        """The listeners of that run, in the order of `SLOTS`. `own`: those of no part, first in their slots."""
        by_slot = [own or {}, *self._each(lambda part: part.listeners(run))]
        return [listener for slot in SLOTS for each in by_slot for listener in each.get(slot, ())]

    def tools(self) -> list[AnyTool]:
        return [tool for part in self._parts for tool in part.tools()]

    def program_files(self) -> Iterable[tuple[Path, str]]:
        return [file for files in self._each(lambda part: [*part.program_files()]) for file in files]

    # Asking -----------------------------------------------------------------------------------------

    def answers(self) -> Mapping[str, Callable[[str], Any]]:
        """Slash command → the function that answers it, given its arguments."""
        return {
            command.name: partial(command.answer, part) for part in self._parts for command in part.slash_commands()
        }

    async def ask(self, method: str, params: object, client: object) -> Any:
        """The answer to a request of the protocol. Raises `AmanuError`, including when no part answers it."""
        for part in self._parts:
            if (request := part.requests().get(method)) is not None:
                answer = request.call(part, params, client)
                return await answer if inspect.isawaitable(answer) else answer
        raise AmanuError("invalidParams", "This session has nothing that answers this request.")

    def _each(self, ask: Callable[[SessionPart], T]) -> list[T]:
        answers: list[T] = []
        for part in self._parts:
            with _logged():
                answers.append(ask(part))
        return answers


class PromptListeners:
    """The listeners of one prompt."""

    def __init__(self, parts: Iterable[SessionPart]) -> None:
        made = [part.listen_to_prompt() for part in parts]
        self._listeners: Sequence[PromptListener] = [listener for listener in made if listener is not None]

    @property
    def calls(self) -> Sequence[TurnListener]:
        return [listener.calls for listener in self._listeners if listener.calls is not None]

    async def begin(self) -> str:
        """See `PromptListener`."""
        return "\n\n".join(filter(None, [await listener.begin() for listener in self._listeners]))

    async def on_words(self, words: str, *, typed: str) -> str:
        """See `PromptListener`. Raises `PromptBlocked`."""
        said = [await listener.on_words(words, typed=typed) for listener in self._listeners]
        return "\n\n".join(filter(None, said))

    def told(self, *, opens_turn: bool) -> None:
        """See `PromptListener`."""
        for listener in self._listeners:
            listener.told(opens_turn=opens_turn)


async def _prepare(part: SessionPart, window: int) -> None:
    with _logged():
        await part.prepare_note(window)


@contextmanager
def _logged() -> Generator[None]:
    try:
        yield
    except Exception:
        log.exception("a part failed")
