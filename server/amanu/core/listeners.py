"""The seam: what watches a turn, and may steer it, is a listener. The loop (`agent/loop.py`) knows no other.

    request → calls → listeners

A turn has a list of listeners, made for it or for its session. At each of five moments the loop asks them:

    before_request    the next request is about to be made                     → notes for the model, or an `Ending`
      before_call     a call is understood and previewed, not yet decided on   → `Block`, `ChangedArguments`, or nothing
      after_call      a call has its result                                    → the result, changed or not
    after_step        all calls of a reply have their results                  → notes for the model, or an `Ending`
    on_stop           the model ended its reply without a call                 → `Continue`, an `Ending`, or nothing

**Order.** Listeners are asked one after the other, in the order of the list, never two at once for the same turn; only
the calls of one step run side by side, so `before_call` and `after_call` of different calls may interleave. What one
returns takes effect before the next is asked: its notes are in the conversation. The first `Ending`, `Block` or
`Continue` settles the moment, and the listeners behind it are not asked.

**Failing.** A method must not raise: what goes wrong inside it is its own affair, and it returns what is safe. If it
does raise, the exception is logged and the turn goes on as if it had returned nothing; but a `before_call` that raises
blocks its call, for a guard that failed has not let anything pass.

**Cancelling.** When the turn is cancelled, the method that runs gets `CancelledError` and must let it through, quickly;
no further method is called for that turn, not even for calls that are answered as cancelled. A call whose `after_call`
is cancelled has ended: it keeps its result, with what the listeners before this one changed. Work that outlives a
method is started with `TurnView.start`; it is cancelled when the turn ends, however it ends.

**Changed arguments.** `ChangedArguments` make a new call under the old id: what the old preview had prepared is taken
back, the arguments are parsed, the call is previewed anew, and every listener is asked again about it. Only then is it
decided on, and approved by the digest of what it is now: what the user saw is what runs. The conversation keeps what
the model wrote; the result tells it of the change. A call that is changed more than `MAX_CHANGES` times is blocked.

**Notes** go to the end of the conversation, never into what the model has already been sent.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import JsonValue

from amanu.core.conversation import Assistant, Call, Conversation, Result, User
from amanu.core.emit import Emit
from amanu.core.ending import Ending
from amanu.core.model import ReplyCompleted, TextDelta, ThoughtDelta
from amanu.core.notes import SystemNote
from amanu.core.tool import Preview
from amanu_protocol.items import ModelInfo, Spend

T = TypeVar("T")

MAX_CHANGES = 3
"""Times the arguments of one call may be changed."""

Notes = Sequence[SystemNote | User]
"""What the model is to hear: the daemon's words, which the loop puts on record with a notice for the user; or the
user's words, which are on record already."""


@dataclass(frozen=True)
class Block:
    """The call is not run."""

    reason: str
    """For the model, as the error that is the call's result, and for the user."""


@dataclass(frozen=True)
class ChangedArguments:
    """The call is run with other arguments."""

    arguments: Mapping[str, JsonValue]
    """All of them."""
    reason: str
    """For the model, with the result: what was changed and why."""


@dataclass(frozen=True)
class Continue:
    """The model is not done: it is asked again, after these notes. At least one: a request ends with what somebody
    else than the model said."""

    notes: Notes


@dataclass(frozen=True)
class StepRecord:
    """A step that is over."""

    number: int
    """1 for the first of the turn."""
    reply: Assistant
    results: Sequence[Result]
    """One for each call of the reply, in order."""
    touched: frozenset[str]
    """Absolute paths of what was read or written."""


class TurnView(Protocol):
    """What a listener may see of a turn, and the few things it may do with it."""

    @property
    def turn_id(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def info(self) -> ModelInfo:
        """The model that is asked next."""
        ...

    @property
    def conversation(self) -> Conversation:
        """To be read only: notes are returned."""
        ...

    @property
    def emit(self) -> Emit:
        """For items of its own."""
        ...

    @property
    def spent(self) -> Spend:
        """What the turn took so far."""
        ...

    @property
    def steering(self) -> Sequence[str]:
        """What the user said into the turn, and the model has heard, in order."""
        ...

    async def side_query(self, system: str, question: str, *, max_output: int, own_model: bool = False) -> str:
        """Ask a model something that is no part of the conversation; counted as the turn's. `own`: the turn's own
        model, not the utility model. Raises `ModelError`."""
        ...

    def start_task(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Work beside the turn, cancelled at its end."""
        ...


class TurnListener(Protocol):
    """See the module. Each method does nothing unless overridden."""

    async def before_request(self, turn: TurnView, step: int) -> Notes | Ending | None:
        """Request `step`, from 1, is about to be made. Asked before room is made in the window, and again when that
        rewrote the conversation: what the model was told before may be gone."""
        return None

    async def before_call(self, call: Call, preview: Preview) -> Block | ChangedArguments | None:
        """The call would do what `preview` says; nothing is decided and nothing has happened. Not asked about a call
        that is wrong in itself."""
        return None

    async def after_call(self, call: Call, result: Result) -> Result:
        """The call has run, failed or been rejected; not asked about one that was blocked or cancelled. May change text
        and `is_error`, and must keep `call_id` and `tool`."""
        return result

    async def after_step(self, turn: TurnView, step: StepRecord) -> Notes | Ending | None:
        """All calls of a whole reply have their results. Not asked after a reply that was cut or refused, whose calls
        were not run."""
        return None

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending | None:
        """The reply asks for no call: the turn is completed unless somebody goes on. Also asked when the reply was cut
        at the output limit in the middle of a text, or by a `ReplyWatch`; not when it was refused or paused."""
        return None


class ReplyWatch(Protocol):
    """Reads the reply while it streams. Synchronous and quick: called for every piece."""

    def begin_reply(self) -> None:
        """A reply begins, or another attempt at it."""
        ...

    def on_text(self, delta: TextDelta | ThoughtDelta) -> bool:
        """A piece came. True: the reply is cut off here; then `on_stop` is asked, with `stop` "cut"."""
        ...
