"""What a strict service is told to say, and what it was asked: plain data, the same for every vendor."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

FaultKind = Literal[
    "status",  # an HTTP error status, with `headers`
    "silence",  # nothing more, connection left open
    "unfinished",  # the stream ends in order, without its finish marker
    "cut",  # connection closed inside a JSON string
    "reset",  # TCP reset
    "errorEvent",  # the vendor's error event, after a 200
    "empty",  # 200, and a body without one event
    "malformed",  # an event whose data is not JSON
]


@dataclass(frozen=True)
class Fault:
    """What goes wrong, after `after` events of the reply (0: before the first one).

    `reset` with `headers_first=False` comes before the headers. `status`, `message`, `code` are what an error
    says; `code` is the vendor's error type or status word.
    """

    kind: FaultKind
    after: int = 0
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict[str, str])
    message: str = "Something went wrong."
    code: str = ""
    headers_first: bool = True


@dataclass(frozen=True)
class ToolUse:
    """A call the scripted model asks for. `arguments` as text is sent as it stands (to be malformed)."""

    tool: str
    arguments: dict[str, Any] | str
    call_id: str | None = None
    """The vendor's id; None lets the service mint one."""


@dataclass(frozen=True)
class Cite:
    """A page the scripted model's text rests on; without `url`, a document."""

    title: str
    url: str = ""
    quote: str = ""


@dataclass(frozen=True)
class Say:
    """One reply of the model: thought, then text, then calls; `stop` None follows from the calls.

    `stop` is neutral ("end", "calls", "outputLimit", "refused", "paused") or the vendor's own word.
    """

    thought: str | Sequence[str] = ""
    """A list is sent one delta each."""
    progress: str = ""
    """Anthropic 5.5: what it says before its calls, which comes as thinking."""
    redacted: Sequence[str] = ()
    """Anthropic: thoughts nobody may read, one block each, after those one may."""
    text: str | Sequence[str] = ""
    cites: Sequence[Cite] = ()
    """What the text rests on."""
    calls: Sequence[ToolUse] = ()
    stop: str | None = None
    fault: Fault | None = None
    delay: float = 0.0
    """Seconds between events."""
    wait: float = 0.0
    """Seconds before the headers."""
    until: asyncio.Event | None = None
    """Must be set before the last event is sent."""
    repeat: int = 1
    """Sends the text deltas so many times."""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    """`input`, `output`, `cache_read`, `cache_write`, `thoughts`; the service makes up what is absent."""
    tier: str = ""
    """The service tier that the reply names; without it the one that was asked for."""

    @property
    def thoughts(self) -> list[str]:
        return _pieces(self.thought)

    @property
    def texts(self) -> list[str]:
        return _pieces(self.text) * self.repeat


def _pieces(text: str | Sequence[str]) -> list[str]:
    if isinstance(text, str):
        return [text] if text else []
    return list(text)


@dataclass(frozen=True)
class Raw:
    """A reply written out by the test: events as they go over the wire, each already framed."""

    events: Sequence[bytes]
    delay: float = 0.0


Step = Say | Fault | Raw
Script = Iterable[Step] | Callable[["Received"], Step]


@dataclass
class Received:
    """One request. `dropped` is set when the client closed the connection before the reply was complete."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    at: float
    """Monotonic seconds."""
    dropped: asyncio.Event = field(default_factory=asyncio.Event)
    dropped_at: float | None = None
    refused: str | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Refusal:
    """Why the vendor would not take the request."""

    status: int
    message: str
    code: str = ""


def in_order(steps: Iterator[Step]) -> Callable[[Received], Step]:
    def take(_: Received) -> Step:
        try:
            return next(steps)
        except StopIteration:
            return Fault("status", status=400, message="The script has no further reply.", code="script_exhausted")

    return take


def load_script(text: str) -> Iterator[Step]:
    """Steps from a JSON list. Each object has the fields of `Say` (`calls`: objects of `tool`, `arguments`,
    `call_id`; `cites`, `fault`: the fields of `Cite` and `Fault`), plus `times`: how often the step comes in a row."""
    for entry in json.loads(text):
        times = entry.pop("times", 1)
        fault = entry.pop("fault", None)
        calls = [ToolUse(**call) for call in entry.pop("calls", ())]
        cites = [Cite(**cite) for cite in entry.pop("cites", ())]
        say = Say(**entry, calls=calls, cites=cites)
        if fault is not None:
            say = replace(say, fault=Fault(**fault))
        for _ in range(times):
            yield say
