"""What the loop knows of a model: one method, `stream`, and one tree of errors.

ModelError
├── AuthFailed          no key, or a key the service refuses
├── RateLimited         429; `retry_after` if the service said
├── Overloaded          500, 502, 503, 529, capacity errors in mid-stream
├── QuotaExhausted      a day's quota, credit or spending limit used up: a minute's wait brings nothing back
├── Unreachable         DNS, connect, TLS, reset; the network's fault or the address's
├── StreamBroken        cut, silent, empty, malformed, or ended without its finish marker
├── ReplyTooLong        the reply passed one of the limits of `models/limits.py`
├── ContextTooLong      the prompt does not fit the window
└── RequestRefused      any other 4xx: our request is at fault, repeating it cannot help
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

from amanu.core.conversation import Assistant, Conversation
from amanu.core.model_families import MAX_TOOLS, TOOL_NAME, Effort
from amanu_protocol.items import ModelInfo, Source

EFFORTS: tuple[Effort, ...] = get_args(Effort)
"""From least to most."""

StopReason = Literal["end", "calls", "outputLimit", "refused", "paused", "cut"]
"""`end`: the model is done · `calls`: it waits for results · `outputLimit`: cut by max output tokens ·
`refused`: safety or refusal, `ReplyCompleted.detail` says what the service said · `paused`: go on by asking again ·
`cut`: we cut it off, no service says so."""

Breakage = Literal["broken", "noFinish", "thinkingOnly", "empty", "malformedCall", "unexpectedCall"]
"""How a reply came to nothing: cut off, silent or unreadable · in order, but without its finish marker · finished with
thoughts and nothing else · finished with nothing · given up by the service over a call it could not read · over a
call of a tool that is not there. What is done about each: `agent/recovery.py`."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model sees it. `parameters` is a JSON Schema object. `ValueError` for one that some service would
    refuse."""

    name: str
    description: str
    parameters: dict[str, Any]

    def __post_init__(self) -> None:
        if TOOL_NAME.fullmatch(self.name) is None:
            raise ValueError(f"Not every service takes a tool of that name: {self.name!r}")
        # Anthropic wants an object at the top, described as one.
        if self.parameters.get("type") != "object" or {"oneOf", "anyOf", "allOf"} & self.parameters.keys():
            raise ValueError(f"The parameters of {self.name} are no plain object.")


@dataclass(frozen=True)
class Request:
    """One request. `system`, `tools` and all but the end of `conversation` stay the same within a turn, to the
    byte, so that prompt caches and thinking blocks hold."""

    model: ModelInfo
    system: str
    tools: Sequence[ToolSpec]
    conversation: Conversation
    session_id: str
    effort: Effort = "medium"
    max_output: int | None = None
    """Tokens of the reply, thoughts included; None: what the model's family asks for. Never more than the model can."""
    side_query: bool = False
    """A question beside the session's conversation: a summary, a judgement."""

    def __post_init__(self) -> None:
        if len(self.tools) > MAX_TOOLS:
            raise ValueError(f"{len(self.tools)} tools; not every service takes more than {MAX_TOOLS}.")


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model began to write a call; its arguments follow and are only known with `ReplyCompleted`."""

    call_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of the arguments' JSON text."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Of one request. `input` excludes what a cache gave or took."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    """Without thoughts where the service tells them apart."""
    thoughts: int = 0
    tools: int = 0
    """Of `input`, what tools of the service put in."""

    @property
    def context(self) -> int:
        """What the request and its reply take of the window."""
        return self.input + self.cache_read + self.cache_write + self.output + self.thoughts


@dataclass(frozen=True, slots=True)
class ReplyCompleted:
    """The last thing in every stream that did not fail. Exactly one."""

    message: Assistant
    usage: TokenUsage
    stop: StopReason
    detail: str = ""
    sources: Sequence[Source] = ()
    """What the text cites or is grounded on."""
    window_full: bool = False
    """`outputLimit` because prompt and reply together filled the window."""


Delta = TextDelta | ThoughtDelta | CallStarted | CallDelta | ReplyCompleted


class Model(Protocol):
    """One way to reach one vendor. Stateless but for caches and connections."""

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield deltas as they come, then exactly one `ReplyCompleted`. Raises `ModelError` and nothing else.

        One attempt, no retries: back-off is `models/retry.py`'s. Closing the iterator, or cancelling the task that
        waits on it, closes the HTTP stream at once. Never yields `ReplyCompleted` for a stream without its finish
        marker: that is `StreamBroken`.
        """
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


class RemoteModel(Model, Protocol):
    """A model of a service."""

    async def connect(self) -> None:
        """Begin to open the connection of the first request. Sends none, and nobody hears of a failure."""
        ...


@dataclass(eq=False)
class ModelError(Exception):
    """A request to a model failed. `message` is a sentence for the user; it never holds a key."""

    message: str
    vendor: str = ""
    status: int | None = None
    retry_after: float | None = None
    """Seconds the service asks to wait; None if it did not say."""
    details: str = field(default="", repr=False)
    """The service's own words, secrets masked; for the log and for "details"."""

    def __str__(self) -> str:
        return self.message


class AuthFailed(ModelError): ...


class RateLimited(ModelError): ...


class Overloaded(ModelError): ...


class QuotaExhausted(ModelError): ...


class Unreachable(ModelError): ...


@dataclass(eq=False)
class StreamBroken(ModelError):
    breakage: Breakage = "broken"


class ReplyTooLong(ModelError): ...


class ContextTooLong(ModelError): ...


class RequestRefused(ModelError): ...


RETRYABLE = (RateLimited, Overloaded, Unreachable, StreamBroken)
"""What a second attempt can mend."""
