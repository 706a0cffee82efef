"""A part is one feature, as one session has it. A session has a list of parts, and knows of no feature but by this list
and by the interfaces in `core/` that a part implements.

    made, tools → open → (begin_turn → listen_to_prompt → note → listeners → note_between_steps*)* → stop → close

A part is told and asked:

    tools              the session is made                    → tools of its agent
    open               the session can be written: it is new, read from disk, or begun for a sub-agent
    begin_turn         a turn is about to begin, and again if trust was found to have changed; this may take its time
    listen_to_prompt   a prompt is composed                   → a `PromptListener`, or None
    note               a prompt of the user's, or a sub-agent's task, opens a turn; not what steers one, nor `/compact`
                       and `! COMMAND`                        → a block (`text/fences.py`) for the model, or ""
    listeners          a turn begins                          → `TurnListener`s, by the slot they stand in
    note_between_steps a step has ended                       → what the model is told, or None
    on_mode, on_trust  the mode has changed, trust was given or taken
    program_files      a write is decided on                  → files that the part would run later
    stop, resume       nothing may start any more, and what runs ends · what the session had could not be saved: go on
    close              everything is saved; nothing is emitted any more
    requests, commands once for all sessions                  → requests of the protocol, and slash commands

`note` is synchronous: find out what it says in `begin_turn`. It is the first to go when the conversation is rewritten;
`Conversation.generation` says when that was.

**Order.** Parts are asked in the order of the list, `begin_turn` side by side. Tools and notes are in the bytes that a
model is sent, and caches hold their beginning: their order is fixed. Parts are stopped and closed in the opposite
order.

**Errors.** A method must not raise; if one does all the same, that is logged, and the other parts are asked. The
exceptions are `open` and `begin_turn`, whose `AmanuError` refuses what was about to happen and is shown to the user,
and `PromptBlocked` of a `PromptListener`, which does that to one prompt.

**Cancelling.** `open`, `stop` and `close` run to completion. The others may be cancelled, and let that through.

**After a restart** a part is made anew, from the session's state and its journal. It has no events of its own: what it
did it finds again in the records of events that there are (`Journal.read_through`); a new kind of event is a change of
the protocol. It may listen to events (`core.emit.listeners`), and emits none while it hears one.

**Sub-agents.** The session of a sub-agent has a list of its own, of parts made for it: `SessionCore.assignment` is its
task, and None once it is opened again as a session like any other. Its definition may narrow the tools. What a part
borrows from the session it works for, it neither stops nor closes.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amanu.core.agent import AgentRun
from amanu.core.listeners import TurnListener
from amanu.core.notes import SystemNote
from amanu.core.tool import AnyTool
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode

Slot = Literal["over", "limits", "context", "steering", "faults", "loops", "end", "calls", "late", "last"]
"""Where a listener stands among those of a turn. `over`: what was ended stays ended · `limits`: before anything that
costs a request · `context`: what the model is told between steps · `steering`: the user's messages, before the daemon's
notes on a reply · `faults`, `loops`, `end`: those notes, and whether the model is done · `calls`: what decides on
calls · `late`: the user's messages once more, for the others take time · `last`."""
SLOTS: Sequence[Slot] = ("over", "limits", "context", "steering", "faults", "loops", "end", "calls", "late", "last")


class PromptBlocked(AmanuError):
    """The prompt is refused: it goes on no record, and the model is not sent it."""

    def __init__(self, message: str) -> None:
        super().__init__("permissionDenied", message)


class PromptListener:
    """Watches one prompt while it is composed. A prompt that is refused or given up is not told."""

    calls: TurnListener | None = None
    """Hears of the calls that the prompt makes and no model asked for."""

    async def begin(self) -> str:
        """Nothing of the prompt has been read yet. Returns what the model is told with it, "" for nothing."""
        return ""

    async def on_words(self, words: str, *, typed: str) -> str:
        """The prompt's words are settled: those of its command or skill instead of what was `typed`. Nothing that it
        mentions has been read or run. Returns like `begin`. Raises `PromptBlocked`."""
        return ""

    def told(self, *, opens_turn: bool) -> None:
        """The model gets the prompt: it opens a turn, or was said into one."""


@dataclass(frozen=True)
class Request:
    """A request of the protocol. `call` takes the part, the params and the client, and may return an awaitable."""

    params: type[Any]
    call: Callable[[Any, Any, Any], Any]
    reads: bool = False
    """It has no effect, so it may be cut short."""


@dataclass(frozen=True)
class SlashCommand:
    """A slash command that the daemon answers at once, without a turn."""

    name: str
    description: str
    answer: Callable[[Any, str], Awaitable[None]]
    """Takes the part and the arguments. Raises `AmanuError`."""
    argument_hint: str = ""


class SessionPart:
    """The contract is in the module docstring. Each method does nothing unless overridden."""

    @classmethod
    def requests(cls) -> Mapping[str, Request]:
        """The requests by method; the session they are about is named by their params."""
        return {}

    @classmethod
    def commands(cls) -> Sequence[SlashCommand]:
        return ()

    async def open(self, *, begins: bool) -> None:
        """`begins`: the session is new."""

    async def stop(self) -> None: ...

    def resume(self) -> None: ...

    async def close(self) -> None: ...

    @property
    def idle(self) -> bool:
        """Whether nothing of it runs."""
        return True

    def on_mode(self, mode: Mode) -> None: ...

    def on_trust(self, *, taken_back: bool) -> None: ...

    async def begin_turn(self) -> None: ...

    def listen_to_prompt(self) -> PromptListener | None:
        return None

    def note(self) -> str:
        """What the model is told with the prompt; it is told now."""
        return ""

    def note_between_steps(self) -> SystemNote | None:
        """What the model is told between two steps of a turn; it is told now."""
        return None

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        """The listeners of that run, which may be on another conversation than the session's."""
        return {}

    def tools(self) -> Sequence[AnyTool]:
        return ()

    def program_files(self) -> Iterable[tuple[Path, str]]:
        """Files of the workspace that it would run later, each with the reason why writing it must be asked about.
        Blocking, for an instant."""
        return ()
