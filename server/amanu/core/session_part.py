"""A part is one feature within one session. A session has a list of parts, and knows a feature only through this list
and the interfaces in `core/` that a part implements; those in `session/own_parts.py` are known by name, too.

    made, tools → open → (begin_turn → listen_to_prompt → prepare_note → note → on_prompt → turn_tools → listeners →
    note_between_steps*)* → stop → close

What a part is told (left), when, and what it is asked for (→):

    tools              the session is made                    → tools for its agent
    open               the session can be written to: it is new, read from disk, or begun for a sub-agent
    begin_turn         a turn is about to begin, and again if trust was found to have changed; this may take its time
    listen_to_prompt   a prompt is composed                   → a `PromptListener`, or None
    prepare_note       a user's prompt, or a sub-agent's task, is about to open a turn; not for steering, `/compact` or
                       `! COMMAND`; this may take its time
    note               it opens the turn                      → a block (`text/fences.py`) for the model, or ""
    on_prompt          it is on record, with the notes
    turn_tools         a turn begins                          → tools for this turn alone, besides `tools`; the part
                                                              itself heeds what a sub-agent may use
    listeners          a turn begins                          → `TurnListener`s, by the slot they stand in
    note_between_steps a step has ended                       → what the model is told, or None
    on_mode, on_trust  the mode has changed; trust was given or taken back
    program_files      a write is being decided on            → files that the part would run later
    stop, resume       end what runs, and start nothing more · the session could not be saved and stays open: go on
    close              everything is saved; nothing may be emitted any more
    requests           once for all sessions                  → requests of the protocol
    slash_commands     once for all sessions                  → slash commands

`note` is synchronous: find out in `prepare_note` what it is to say; the turn may still be refused in between. The user
is told in `on_prompt`, by a notice of the code `modelTold` (`session/step_notes.py` does all three). Text of files in a
note is masked by the part (`core.services.secrets.mask_content`). A note may be lost when earlier messages are removed;
`Conversation.generation` grows when that happens.

**Order.** Parts are asked in the order of the list, those of `session/own_parts.py` first. Their `begin_turn` run
concurrently, and so do their `prepare_note`; the `turn_tools` of the first part stand last. Tools and notes are sent to
the model, and vendors cache the beginning of what is sent, so their order is fixed. Parts are stopped and closed in
reverse order.

**Errors.** A method must not raise; if one does all the same, the error is logged, and the other parts are asked. But
an error of `tools`, `idle`, `listen_to_prompt` or a `PromptListener` reaches the caller. `open` and `begin_turn` may
raise `AmanuError`, which refuses what was about to happen and is shown to the user, and a `PromptListener` may raise
`PromptBlocked`, which does the same to one prompt.

**Cancelling.** `open`, `stop` and `close` run to completion. The others may be cancelled, and must not suppress that.

**After a restart** a part is made anew, from the session's state and journal. It has no events of its own: it finds out
what it did from the records of existing events (`Journal.read_through`), such as its calls and its notices; a new kind
of event is a protocol change. Let one function take an event: `open` calls it with those on record, but for turns that
a `SessionRewound` took back, and `core.emit.listeners` with those to come. It must not emit while it handles one. Text
in a notice is masked.

**Sub-agents.** The session of a sub-agent has its own list, of parts made for it. `SessionCore.assignment` is its task;
it is None when the session is opened again later, like any other. The agent's definition may narrow its tools. What
concerns the user or the workspace is the parent's: such a part works with the parent's
(`core.assignment.parent.parts.find(Kind)`), and neither stops nor closes what it borrows. The calls of a sub-agent are
events in the parent's session, too, with its `agent_id`.
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
from amanu_protocol.items import Mode, UserMessage

Slot = Literal["over", "limits", "context", "steering", "faults", "loops", "end", "calls", "late", "last"]
"""The place of a listener among those of a turn. `over`: an ended turn stays ended · `limits`: before anything that
costs a request · `context`: what the model is told between steps · `steering`: the user's messages, before the daemon's
notes on a reply · `faults`, `loops`, `end`: those notes, and whether the model is done · `calls`: decisions on calls ·
`late`: the user's messages once more, since the others take time · `last`."""
SLOTS: Sequence[Slot] = ("over", "limits", "context", "steering", "faults", "loops", "end", "calls", "late", "last")


class PromptBlocked(AmanuError):
    """The prompt is refused: it is neither recorded nor sent to the model."""

    def __init__(self, message: str) -> None:
        super().__init__("permissionDenied", message)


class PromptListener:
    """Watches one prompt while it is composed. `told` is not called for a prompt that is refused or given up."""

    calls: TurnListener | None = None
    """Hears of the calls that the prompt itself makes, which no model asked for."""

    async def begin(self) -> str:
        """Called before anything in the prompt is read. Returns what the model is told with it, "" for nothing."""
        return ""

    async def on_words(self, words: str, *, typed: str) -> str:
        """The prompt's words are settled: if it names a command or skill, the text of that instead of what was `typed`.
        Nothing that they mention has been read or run. Returns as `begin` does. Raises `PromptBlocked`."""
        return ""

    def told(self, *, opens_turn: bool) -> None:
        """The model gets the prompt, which opens a turn or joins a running one."""


@dataclass(frozen=True)
class Request:
    """A request of the protocol. `call` takes whatever answers it, the params and the client, and may return an
    awaitable."""

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
        """Method → request; its params name the session it is about."""
        return {}

    @classmethod
    def slash_commands(cls) -> Sequence[SlashCommand]:
        return ()

    async def open(self, *, begins: bool) -> None:
        """`begins`: the session is new."""

    async def stop(self) -> None: ...

    def resume(self) -> None: ...

    async def close(self) -> None: ...

    @property
    def idle(self) -> bool:
        """Whether it has nothing running."""
        return True

    def on_mode(self, mode: Mode) -> None: ...

    def on_trust(self, *, taken_back: bool) -> None: ...

    async def begin_turn(self) -> None: ...

    def listen_to_prompt(self) -> PromptListener | None:
        return None

    async def prepare_note(self, window: int) -> None:
        """`window`: of the turn's model, in tokens."""

    def note(self) -> str:
        """The text for the model, sent with the prompt; it counts as told once this returns."""
        return ""

    def on_prompt(self, message: UserMessage) -> None: ...

    def turn_tools(self, window: int) -> Sequence[AnyTool]:
        """`window`: of the turn's model, in tokens."""
        return ()

    def note_between_steps(self) -> SystemNote | None:
        """The note for the model between two steps of a turn; it counts as told once this returns."""
        return None

    def listeners(self, run: AgentRun) -> Mapping[Slot, Sequence[TurnListener]]:
        """The listeners for that run, whose conversation may be another than the session's."""
        return {}

    def tools(self) -> Sequence[AnyTool]:
        return ()

    def program_files(self) -> Iterable[tuple[Path, str]]:
        """Files of the workspace that the part would run later, each with the reason to ask the user before writing it.
        Blocks for an instant."""
        return ()
