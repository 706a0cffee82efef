"""What a model is to the loop: one method, `stream`, and one tree of errors.

ModelError
├── AuthFailed          no key, or a key the service refuses
├── ModelNotFound       the service has no such model, or none for this account
├── RateLimited         429; `retry_after` if the service said
├── Overloaded          500, 502, 503, 529, and capacity errors in mid-stream
├── QuotaExhausted      a daily quota, credit or spending limit is used up: a minute's wait does not help
├── Unreachable         DNS, connect, TLS, reset: the network or the address is at fault
├── StreamBroken        the stream was cut off, silent, empty, malformed, or ended without its finish marker
├── ReplyTooLong        the reply exceeded one of the limits in `models/limits.py`
├── ContextTooLong      the prompt does not fit into the context window
└── RequestRefused      any other 4xx: our request is at fault, and repeating it does not help
"""

import functools
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from amanu.core.conversation import Assistant, Conversation
from amanu.core.model_families import MAX_TOOLS, TOOL_NAME
from amanu.core.token_estimate import estimate
from amanu_protocol.items import Effort, ModelInfo, ServiceTier, Source

StopReason = Literal["end", "calls", "outputLimit", "refused", "paused", "cut"]
"""`end`: the model is done · `calls`: it waits for results, even if no call came · `outputLimit`: it reached its
maximum of output tokens · `refused`: a refusal or safety filter, see `ReplyCompleted.detail` · `paused`: ask again and
it continues · `cut`: we cut the reply off; no service reports this."""

Breakage = Literal["broken", "noFinish", "thinkingOnly", "empty", "missingCalls", "malformedCall", "unexpectedCall"]
"""A stream's failure. `broken`: cut off, silent or unreadable · `noFinish`: intact, but without its finish marker ·
`thinkingOnly`: finished with nothing but thoughts · `empty`: finished with nothing · `missingCalls`: finished to have
calls run, without any · `malformedCall`, `unexpectedCall`: given up by the service over a call it could not read, or of
a tool it does not know. The remedies are in `agent/recovery.py`."""


@dataclass(frozen=True)
class Freeform:
    """How a tool may be called where the model can write text that is no JSON: as the value of `argument`, in a form
    that `grammar` (in Lark's notation) describes."""

    argument: str
    grammar: str


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model sees it. `parameters` is a JSON Schema object. Raises `ValueError` for a name or schema that
    some service would refuse."""

    name: str
    description: str
    parameters: dict[str, Any]
    freeform: Freeform | None = None

    def __post_init__(self) -> None:
        if TOOL_NAME.fullmatch(self.name) is None:
            raise ValueError(f"Some services do not accept this tool name: {self.name!r}")
        # Anthropic wants an object at the top, described as one.
        if self.parameters.get("type") != "object" or {"oneOf", "anyOf", "allOf"} & self.parameters.keys():
            raise ValueError(f"The schema of {self.name}'s parameters is not a plain object.")

    @functools.cached_property
    def tokens(self) -> float:
        """What it takes in every request, uncalibrated."""
        return estimate(f"{self.name}{self.description}{json.dumps(self.parameters)}")


@dataclass(frozen=True)
class Request:
    """One request to a model. Within a turn, `system`, `tools` and all but the end of `conversation` stay the same to
    the byte, so that prompt caches and thinking blocks stay valid."""

    model: ModelInfo
    system: str
    tools: Sequence[ToolSpec]
    conversation: Conversation
    session_id: str
    effort: Effort = "medium"
    service_tier: ServiceTier = "standard"
    """The tier is ignored where the model does not have it."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further fields of the body, of the user's own; never one that the wire sets itself."""
    max_output: int | None = None
    """Tokens of the reply, thoughts included; None: the model family's default. Never more than the model can write."""
    whole: bool = False
    """Ask for the reply in one piece: streams of it broke off."""
    tokens: int = 0
    """The tokens of the prompt as far as they are known; 0: unknown."""
    cached: int = 0
    """The part of `tokens` that was in an earlier request, too, and so may be in a cache."""
    side_query: bool = False
    """The request is no part of the session's conversation: a summary, a judgement."""
    web_search: bool = False
    """The service is to search the web for its answer, with its own tool. Only for a side query without tools, to a
    model that `searches`."""
    progress: bool = False
    """Thoughts are shown to nobody: the model may say what it does between calls instead, where its service tells that
    from what it thinks."""
    user_may_pause: bool = False
    """A user may take longer over a review, or over the next prompt, than a cache lasts by itself."""
    callable: frozenset[str] | None = None
    """Names of the only tools that the reply may call; None: all."""

    def __post_init__(self) -> None:
        if len(self.tools) > MAX_TOOLS:
            raise ValueError(f"{len(self.tools)} tools: some services accept no more than {MAX_TOOLS}.")

    @property
    def callable_tools(self) -> Sequence[ToolSpec]:
        """The tools that this reply may call."""
        return self.tools if self.callable is None else [tool for tool in self.tools if tool.name in self.callable]

    @property
    def declared_tools(self) -> Sequence[ToolSpec]:
        """The tools to declare where a service can forbid all calls but has no word for some: all of them when none may
        be called, since a history with calls needs them and caches hold them, otherwise those that may be."""
        return self.callable_tools or self.tools


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    text: str


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The model has written more, of which nothing can be shown yet."""


@dataclass(frozen=True, slots=True)
class TextWasThought:
    """All text so far was a thought; only the mark at its end showed it."""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model began to write a call; its arguments are only complete with `ReplyCompleted`."""

    call_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of the JSON text of a call's arguments."""

    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of one request. `input` excludes what was read from or written to a cache."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_hour: int = 0
    """The part of `cache_write` that stays for an hour, which costs more."""
    output: int = 0
    """Without thoughts, where the service counts them separately."""
    thoughts: int = 0
    tools: int = 0
    """The part of `input` that the service's own tools added."""
    searches: int = 0
    """The number of times the service searched the web, each for a fee."""
    told_usd: float = 0.0
    """US dollars that the service says it charges for the request, all fees included; 0 if it does not say."""
    repeated: int = 0
    """The part of `input` and `cache_read` that was sent again so that the reply could go on: it costs, and takes no
    more room."""
    service_tier: ServiceTier = "standard"
    """The tier at which it is charged."""

    @property
    def prompt(self) -> int:
        """Tokens of the request, whether or not a cache had them, each counted once."""
        return self.input + self.cache_read + self.cache_write - self.repeated

    @property
    def context(self) -> int:
        """Tokens of the context window that the request and its reply take."""
        return self.prompt + self.output + self.thoughts


@dataclass(frozen=True, slots=True)
class UsageCounted:
    """The tokens the service has counted for the reply so far. It charges for them even if the reply comes to
    nothing."""

    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class ReplyCompleted:
    """The last delta of every stream that did not fail, exactly once."""

    message: Assistant
    usage: TokenUsage
    stop: StopReason
    detail: str = ""
    sources: Sequence[Source] = ()
    """Sources the text cites or is grounded on."""
    window_full: bool = False
    """`stop` is `outputLimit` because prompt and reply together filled the context window."""
    recommended: str = ""
    """The model that the service recommends for what this one refused, by its own name; "" for none."""
    unmade_call: str = ""
    """The reason, for the model, that a call it wrote as text was not made; "" for none."""
    quoted_call: bool = False
    """The reply ends with a call as text that was not made because the model may have read it."""
    finish_reason: str = ""
    """The service's own word for `stop`, as it came; "" if it said none."""
    request_id: str = ""
    """The service's own id of the request; "" for none."""


Delta = TextDelta | ThoughtDelta | HeldBack | TextWasThought | CallStarted | CallDelta | UsageCounted | ReplyCompleted


class Model(Protocol):
    """One way to reach one vendor's models. Stateless except for caches and connections."""

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Yield deltas as they arrive, then exactly one `ReplyCompleted`. Raises `ModelError` and nothing else.

        One attempt, no retries: `models/retry.py` does those. Closing the iterator, or cancelling the task that
        waits on it, closes the HTTP stream at once. Never yields `ReplyCompleted` for a stream without its finish
        marker: that is `StreamBroken`.
        """
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


def searches(model: Model) -> bool:
    """Whether the model's service can search the web (`Request.web_search`): it then has the attribute `searches`."""
    return getattr(model, "searches", False) is True


class RemoteModel(Model, Protocol):
    """A model that is reached over the network."""

    async def connect(self) -> None:
        """Open the connection for the first request ahead of time. Sends no request, and reports no failure."""
        ...


@dataclass(eq=False)
class ModelError(Exception):
    """A request to a model failed. `message` is a sentence for the user; it never holds a key."""

    message: str
    vendor: str = ""
    status: int | None = None
    retry_after: float | None = None
    """Seconds the service asks us to wait; None if it did not say."""
    details: str = field(default="", repr=False)
    """The service's own words with secrets masked, for the log and for "details"."""

    def __str__(self) -> str:
        return self.message


class AuthFailed(ModelError): ...


class ModelNotFound(ModelError): ...


@dataclass(eq=False)
class RateLimited(ModelError):
    limit: int | None = None
    """Input tokens a minute, if the service names them and does not say what it would have needed."""
    counts_cached: bool = False
    """Tokens read from a cache count towards that limit, too."""


class Overloaded(ModelError): ...


class QuotaExhausted(ModelError): ...


class Unreachable(ModelError): ...


@dataclass(eq=False)
class StreamBroken(ModelError):
    breakage: Breakage = "broken"


class ReplyTooLong(ModelError): ...


@dataclass(eq=False)
class ContextTooLong(ModelError):
    limit: int | None = None
    """Tokens that fit, as the service says; None if it does not."""
    prompt: int | None = None
    """Tokens of the request without its reply, likewise."""


class RequestRefused(ModelError): ...


RETRYABLE = (RateLimited, Overloaded, Unreachable, StreamBroken)
"""Errors after which a second attempt can succeed."""
