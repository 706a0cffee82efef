"""What the loop knows of a model: one method, `stream`, and one tree of errors.

ModelError
├── AuthFailed          no key, or a key the service refuses
├── RateLimited         429; `retry_after` if the service said
├── Overloaded          500, 502, 503, 529, capacity errors in mid-stream
├── Unreachable         DNS, connect, TLS, reset; the network's fault or the address's
├── StreamBroken        cut, silent, empty, malformed, or ended without its finish marker
├── ReplyTooLong        the reply passed one of the limits of `limits.py`
├── ContextTooLong      the prompt does not fit the window
└── RequestRefused      any other 4xx: our request is at fault, repeating it cannot help
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from amanu.conversation import Assistant, Conversation
from amanu_protocol.items import ModelInfo, Source

Effort = Literal["minimal", "low", "medium", "high"]
"""How much thinking; each translator maps it to what its models understand."""

StopReason = Literal["end", "calls", "outputLimit", "refused", "paused"]
"""`end`: the model is done · `calls`: it waits for results · `outputLimit`: cut by max output tokens ·
`refused`: safety or refusal, `Done.detail` says what the service said · `paused`: go on by asking again."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model sees it. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


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


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model began to write a call; its arguments follow and are only known with `Done`."""

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
class Done:
    """The last thing in every stream that did not fail. Exactly one."""

    message: Assistant
    usage: TokenUsage
    stop: StopReason
    detail: str = ""
    sources: Sequence[Source] = ()
    """What the text cites or is grounded on."""


Delta = TextDelta | ThoughtDelta | CallStarted | CallDelta | Done


class Model(Protocol):
    """One way to reach one vendor. Stateless but for caches and connections."""

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield deltas as they come, then exactly one `Done`. Raises `ModelError` and nothing else.

        One attempt, no retries: back-off is `retry.py`'s. Closing the iterator, or cancelling the task that
        waits on it, closes the HTTP stream at once. Never yields `Done` for a stream without its finish
        marker: that is `StreamBroken`.
        """
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


@dataclass(eq=False)
class ModelError(Exception):
    """A request to a model failed. `message` is a sentence for the person; it never holds a key."""

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


class Unreachable(ModelError): ...


class StreamBroken(ModelError): ...


class ReplyTooLong(ModelError): ...


class ContextTooLong(ModelError): ...


class RequestRefused(ModelError): ...


RETRYABLE = (RateLimited, Overloaded, Unreachable, StreamBroken)
"""What a second attempt can mend."""
