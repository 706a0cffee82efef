"""A listener watches a turn, and may limit it, steer it or add to it. The loop (`agent/loop.py`) knows of nothing else
that does.

    request → calls → listeners

A turn has a list of listeners. Some are made for one turn, others live as long as their session. The loop asks them at
ten moments:

    before_request    the next request is about to be made                    → notes for the model, or an `Ending`
    before_compaction old messages are about to be replaced by a summary      → why they must stay, or None
    before_model      everything of the request is settled                    → `ReplyText`, an `Ending`,
                                                                                `ChangedRequest`, or None
    after_model       a whole reply has come                                  → `ReplyText` or None
      before_call     a call is parsed and previewed, but not yet decided     → `Block`, `ChangedArguments`, `MustAsk`,
                                                                                `Permitted`, or None
      before_question the user would be asked about a call                    → `Block`, `Permitted`, or None
      after_call      a call has its result                                   → the result, changed or not
      next_call       the same, and the calls beside it have ended            → a call that takes its place, or None
    after_step        all calls of a reply have their results                 → notes for the model, or an `Ending`
    on_stop           the model ended its reply without calling a tool        → `Continue`, an `Ending`, or None

**Order.** Listeners are asked one after another, in the order of the list, never two at once for the same turn. Only
the calls of one step run side by side, so `before_call` and `after_call` of different calls may interleave. What a
listener returns takes effect before the next one is asked: its notes are already in the conversation. The first
`Ending`, `Block`, `ChangedArguments` or `Continue` settles the moment; the listeners behind it are not asked. `MustAsk`
and `Permitted` settle nothing: the others are asked too, and a `MustAsk` of one outweighs the `Permitted` of another.
Nor does `ChangedRequest`: of several, each can only leave fewer tools.

**Errors.** A method must not raise: it handles its own failures and returns a safe answer. If it raises all the same,
the exception is logged and the turn goes on as if it had returned nothing. The exceptions are `before_call` and
`before_question`: when one raises, the call is blocked, because a guard that failed has not let anything pass.

**Cancelling.** When the turn is cancelled, the running method gets `CancelledError` and must let it through quickly. No
other method is called for that turn, not even for calls that are answered as cancelled. A call whose `after_call` is
cancelled has ended: it keeps its result, including what earlier listeners changed in it. Work that outlives a method is
started with `TurnView.start_task` and cancelled when the turn ends, however it ends.

**Changed arguments.** `ChangedArguments` make a new call under the old id: what the old preview prepared is undone, the
new arguments are parsed and previewed, and every listener is asked about the new call. Only then is it decided on. An
approval covers the digest of the new preview, so what the user saw is what runs. The conversation keeps the arguments
the model wrote; the result tells the model what was changed. A call that is changed more than `MAX_CHANGES` times is
blocked.

**A next call** is made for the listener who wants it, once the other calls of the step have ended: a call like any of
the model's, about which all listeners are asked and on which is decided as on any. The model gets its result in place
of the first one's. No more than `MAX_NEXT` follow one another.

**Notes** are appended to the conversation; what the model has already been sent never changes.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import JsonValue

from amanu.core.conversation import Assistant, Call, Conversation, Result, User
from amanu.core.emit import Emit
from amanu.core.ending import Ending
from amanu.core.model import ReplyCompleted, TextDelta, ThoughtDelta, ToolSpec
from amanu.core.notes import SystemNote
from amanu.core.tool import Preview
from amanu_protocol.items import ModelInfo, Spend

T = TypeVar("T")

MAX_CHANGES = 3
"""How often the arguments of one call may be changed."""

MAX_NEXT = 3
"""The most calls that may follow one call of the model (`TurnListener.next_call`)."""

Notes = Sequence[SystemNote | User]
"""What is appended for the model: system notes, which the loop puts on record and shows to the user as notices, or the
user's words, which are on record already."""


@dataclass(frozen=True)
class Block:
    """Do not run the call."""

    reason: str
    """The call's error result, for the model and the user."""


@dataclass(frozen=True)
class ChangedArguments:
    """Run the call with other arguments."""

    arguments: Mapping[str, JsonValue]
    """All arguments of the new call, not just the changed ones."""
    reason: str
    """Added to the result for the model: what was changed and why."""


@dataclass(frozen=True)
class MustAsk:
    """Only the user can allow the call, once, whatever the rules say."""

    reason: str
    """Why, as a clause for the user."""


@dataclass(frozen=True)
class Permitted:
    """Where no rule matches, the call may run without a question: something of the user's own says so. It beats no
    deny, nothing that must be asked about, and nothing that is not understood."""

    reason: str
    """What says so, for the user."""


@dataclass(frozen=True)
class ReplyText:
    """This is the reply: `before_model`, instead of asking the model; `after_model`, instead of all it wrote, its
    thoughts and calls included."""

    text: str


@dataclass(frozen=True)
class ChangedRequest:
    """Send this one request in another way."""

    callable: frozenset[str] | None = None
    """Names of the only tools that its reply may call; None: no limit."""
    conversation: Conversation | None = None
    """Messages to send in place of those of the turn, with the same calls and results; None: those of the turn."""


@dataclass(frozen=True)
class Continue:
    """The model is not done: ask it again after these notes. There must be at least one, because a request has to end
    with something the model did not say itself."""

    notes: Notes


@dataclass(frozen=True)
class StepRecord:
    """A step that has ended: one reply and the results of its calls."""

    number: int
    """1 for the first step of the turn."""
    reply: Assistant
    results: Sequence[Result]
    """One per call of the reply, in order."""
    touched: frozenset[str]
    """Absolute paths that the calls read or wrote."""


class TurnView(Protocol):
    """What a listener sees of a turn, and the few things it may do with it."""

    @property
    def turn_id(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def info(self) -> ModelInfo:
        """The model that gets the next request."""
        ...

    @property
    def conversation(self) -> Conversation:
        """Read-only: a listener adds notes by returning them."""
        ...

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The tools that the model is told of."""
        ...

    @property
    def emit(self) -> Emit:
        """For items of the listener's own."""
        ...

    @property
    def spent(self) -> Spend:
        """Tokens and money the turn has used so far."""
        ...

    @property
    def steering(self) -> Sequence[str]:
        """What the user said during the turn and the model has been sent, in order."""
        ...

    async def side_query(
        self, system: str, question: str, *, max_output: int, own_model: bool = False, once: bool = False
    ) -> str:
        """Ask a model something outside the conversation; the cost counts as the turn's. `max_output` is in tokens,
        thoughts included. `own_model`: ask the turn's model instead of the utility model. `once`: ask neither a second
        time nor another model. Raises `ModelError`."""
        ...

    def start_task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start background work; it is cancelled when the turn ends."""
        ...


class TurnListener(Protocol):
    """The contract is in the module docstring. Each method does nothing unless overridden."""

    async def before_request(self, turn: TurnView, step: int) -> Notes | Ending | None:
        """The request of step `step` (from 1) is about to be made. Asked before room is made in the context window, and
        again if that rewrote the conversation: earlier notes may have been dropped."""
        return None

    async def before_compaction(self, turn: TurnView, *, by_user: bool, focus: str) -> str | None:
        """Old messages are about to be replaced by a summary: why they must stay, a sentence; None: they need not. Not
        heeded where the next request would have no room. `by_user`: the user asked for it, `focus` says for what."""
        return None

    async def before_model(self, turn: TurnView, step: int) -> ReplyText | Ending | ChangedRequest | None:
        """The request of step `step` is sent next, unless a listener answers it."""
        return None

    async def after_model(self, turn: TurnView, reply: ReplyCompleted) -> ReplyText | None:
        """A whole reply has come; it is not in the conversation yet. Asked once a reply, not for one that was cut."""
        return None

    async def before_call(self, call: Call, preview: Preview) -> Block | ChangedArguments | MustAsk | Permitted | None:
        """The call would do what `preview` says; nothing is decided and nothing has happened. Not asked about calls
        that are invalid: an unknown tool, wrong arguments, a preview that failed."""
        return None

    async def before_question(self, call: Call, preview: Preview) -> Block | Permitted | None:
        """No rule allows or denies the call, so the user is about to be asked, or the call to be denied where nobody is
        there."""
        return None

    async def after_call(self, call: Call, result: Result) -> Result:
        """The call has run, failed or been rejected. Not asked about calls that were blocked or cancelled. The returned
        result may differ in `text` and `is_error`; `call_id` and `tool` stay as they are."""
        return result

    async def next_call(self, call: Call) -> Call | None:
        """The call has its result, which `after_call` was told: the call to make now, with an id of its own."""
        return None

    async def after_step(self, turn: TurnView, step: StepRecord) -> Notes | Ending | None:
        """All calls of a reply have their results. Not asked after a reply that was cut off or refused: its calls were
        not run."""
        return None

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending | None:
        """The reply has no calls: the turn is completed unless a listener goes on. Also asked when the reply was cut
        off in the middle of its text, by the output limit or a `ReplyWatch`; not when it was refused or paused."""
        return None


class ReplyWatch(Protocol):
    """Reads a reply while it streams. Must be quick: it is called, synchronously, for every piece."""

    def begin_reply(self) -> None:
        """A reply begins, or a new attempt at the same one."""
        ...

    def on_text(self, delta: TextDelta | ThoughtDelta) -> bool:
        """A piece of the reply arrived. True cuts the reply off here; `on_stop` is then asked, with `stop` "cut"."""
        ...
