"""What becomes of a stream that is not what it should be: played to the real SDK, the translator, the retries and the
loop, in this process, with a strict service that judges every request.

Whatever the stream, the turn ends as one of `Outcome`; the transcript is valid and the strict service takes the next
request; what is seen is what is in the transcript; no stream is left open, nothing is raised but `ModelError`.
"""

import asyncio
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from amanu.agent import usage as spending
from amanu.agent.budget import CostLimits, LimitGuard
from amanu.agent.fallback import Candidate
from amanu.agent.loop import run_turn
from amanu.agent.next_speaker import NextSpeaker
from amanu.agent.recovery import FaultReminders
from amanu.agent.turn import Turn
from amanu.agent.usage import Ledger
from amanu.agent.window.window import ContextWindow
from amanu.config import ContextSettings as ContextSettings
from amanu.core.agent import AgentLimits, SystemPrompt
from amanu.core.conversation import Assistant, Conversation, User
from amanu.core.model import Model, ReplyCompleted, RequestRefused
from amanu.models import retry
from amanu.models.recording import Exchange, load
from amanu.models.session_transport import SessionTransport
from amanu.permissions.approvals import Approvals
from amanu_protocol.events import ItemCompleted, ItemStarted, ItemsWithdrawn, RetryChanged
from amanu_protocol.items import Answer, Notice, ToolCall
from recordings.make import FOLDER, PROMPT, SYSTEM, WAYS, Way, asked
from support.fake_policy import FakePolicy
from support.loop_harness import Emitted, Recorder
from support.loop_harness import Read as FakeRead
from support.strict_services.http import Fault, Received, Service
from support.vendors import TOOLS

Outcome = Literal["complete", "continued", "retried", "typed error"]
Kind = Literal["dropped", "ended", "error event"]
"""The connection drops · the body ends in order · an error event follows, between two of the events, then the end."""

_HEADERS = {
    "authorization": "Bearer k",
    "x-goog-api-key": "k",
    "anthropic-version": "1",
    "content-type": "application/json",
}
_STOPS_TWICE = ("several_stops", "two_finishes")
"""A reply that says it is finished before it is."""


class Broken(Exception):
    """Something that must hold did not."""


class Read(FakeRead):
    name = "read_file"


class Grep(FakeRead):
    name = "grep"


class _Writing:
    """Sees that every exchange ends."""

    def __init__(self, open_ones: set[object]) -> None:
        self._open = open_ones
        open_ones.add(self)

    def request(self, *_: object) -> None: ...

    def response(self, *_: object) -> None: ...

    def chunk(self, data: bytes) -> None: ...

    def end(self, *_: object) -> None:
        self._open.discard(self)


_SENT_ITSELF = "signature|thinking|reasoning_content|Extra inputs|tool_use: id"
"""What is refused of a history that goes back as a damaged stream had it."""


class Judge:
    """The service of one turn: judges requests, and answers the first one with `first`, its repetitions with `whole`,
    every other with a plain answer. Listens in as well: no exchange may stay open."""

    def __init__(self, service: Service, first: Exchange, whole: Exchange, plain: Exchange, damaged: bool) -> None:
        """`damaged`: it may have sent signatures and fields that it does not know itself, and does not mind them."""
        self._service = service
        self._damaged = damaged
        self._answers = iter((first, whole))
        self._plain = plain
        self._length: int | None = None
        self.open: set[object] = set()
        self.refused: list[str] = []

    def begin(self) -> _Writing:
        return _Writing(self.open)

    def answer(self, method: str, url: str, body: bytes) -> Exchange:
        parts = urlsplit(url)
        request = Received(method, parts.path, parts.query, _HEADERS, body, 0.0)
        refusal = self._service.check(request)
        if self._damaged:
            self._service.lint.clear()
            if refusal is not None and re.search(_SENT_ITSELF, refusal.message):
                refusal = None
        if refusal is not None or self._service.lint:
            self.refused.append(f"{refusal} {self._service.lint}")
            raise RequestRefused("refused")
        length = len(request.json.get("messages") or request.json.get("input") or request.json["contents"])
        self._length = self._length or length
        exchange = next(self._answers, self._plain) if length == self._length else self._plain
        if exchange is not self._plain:
            self._service.issue(exchange.data, request)
        return exchange


class Sweep:
    """The recordings of one way, and a client for them."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.model: Model = way.model("http://service.test")
        self._full: dict[str, object] = {}
        """What recordings say that were not cut."""
        self.recordings = {path.stem: load(path).exchanges[0] for path in sorted((FOLDER / way.name).glob("*.ndjson"))}

    async def close(self) -> None:
        await self.model.close()

    def cuts(self) -> Iterator[tuple[str, int, Kind]]:
        """All there are: recording, byte, kind."""
        for name, exchange in self.recordings.items():
            ends = set(itertools.accumulate(len(data) for _, data in exchange.chunks))
            for at in range(len(exchange.data)):
                yield name, at, "dropped"
                yield name, at, "ended"
                if at in ends or at == 0:
                    yield name, at, "error event"

    async def cut(self, name: str, at: int, kind: Kind) -> Outcome:
        """Cut a recording's body before byte `at`. A second attempt gets the whole of it where the connection dropped,
        a plain answer elsewhere (a sweep takes half the time). Raises `Broken`."""
        whole = self.recordings[name]
        second = whole if kind == "dropped" else self.recordings["text"]
        outcome, reply = await self.play(_cut(whole, at, kind, self.way), second)
        if outcome == "complete" and kind != "error event" and name not in _STOPS_TWICE:
            if name not in self._full:
                _, self._full[name] = await self.play(whole, whole)
            if reply != self._full[name]:
                raise Broken(f"a part was taken for the whole: {reply} of {self._full[name]}")
        return outcome

    async def play(self, first: Exchange, whole: Exchange, *, damaged: bool = False) -> tuple[Outcome, object]:
        """A turn whose first request is answered with `first`. Returns how it went, and what the first reply said."""
        judge = Judge(self.way.service(()), first, whole, self.recordings["text"], damaged)
        line = SessionTransport()
        line.player, line.recorder = judge, cast("Any", judge)
        emitted = Emitted()
        conversation = Conversation([User(text=PROMPT)])
        with line.used():
            ending = await run_turn(_turn(self.way, self.model, emitted, conversation))
            _check_visible(emitted, conversation)
            conversation.append(User(text="And now?"))
            conversation.check()
            with suppress(RequestRefused):
                await self._goes_on(conversation)
        if judge.refused:
            raise Broken(f"a request was refused: {judge.refused}")
        if judge.open:
            raise Broken("a stream was left open")
        if ending.reason not in ("completed", "refused", "failed"):
            raise Broken(f"ended with {ending}")
        if not ending.message and ending.reason != "completed":
            raise Broken(f"ended without a word: {ending}")
        first_reply = next((each for each in conversation if isinstance(each, Assistant)), None)
        said = first_reply and [part.model_dump(exclude={"call_id"}) for part in first_reply.parts]
        return _outcome(ending.reason, emitted), said

    async def _goes_on(self, conversation: Conversation) -> None:
        async with aclosing(cast("Any", self.model.stream(asked(self.way, conversation)))) as stream:
            seen = [delta async for delta in stream]
        if not isinstance(seen[-1], ReplyCompleted):
            raise Broken("the next request has no answer")


def sweeps() -> list[Sweep]:
    return [Sweep(way) for way in WAYS]


def at_once() -> None:
    """Retries without waiting, in this process."""
    retry.RetryPolicy.delay = lambda self, retry: 0.0


def _cut(whole: Exchange, at: int, kind: Kind, way: Way) -> Exchange:
    chunks: list[tuple[float, bytes]] = []
    left = at
    for after, data in whole.chunks:
        if left <= 0:
            break
        chunks.append((after, data[:left]))
        left -= len(data)
    match kind:
        case "dropped":
            error = "RemoteProtocolError: peer closed connection without sending complete message body"
            return replace(whole, chunks=chunks, end="failed", error=error)
        case "ended":
            return replace(whole, chunks=chunks, end="complete")
        case "error event":
            event = way.service(()).error_event(Fault("errorEvent", status=503))
            return replace(whole, chunks=[*chunks, (0.0, event)], end="complete")


def _turn(way: Way, model: Model, emitted: Emitted, conversation: Conversation) -> Turn:
    recorder = Recorder()
    request = asked(way, conversation)
    tools = {tool.name: tool for tool in (Read(recorder), Grep(recorder))}
    approvals = Approvals(emitted, FakePolicy(), headless=True)
    allowance = CostLimits(None, None, emitted.state)
    turn = Turn(
        turn_id="t",
        session_id=request.session_id,
        candidate=Candidate(model, request.model),
        system_prompt_for=lambda info: SystemPrompt(SYSTEM, ""),
        tools=tools,
        conversation=conversation,
        context=ContextWindow(conversation, ContextSettings(), _kept, []),
        approvals=approvals,
        emit=emitted,
        ledger=Ledger(spending.NO_USAGE, allowance),
        listeners=[LimitGuard(AgentLimits(12, 3600), allowance, approvals), FaultReminders(), NextSpeaker()],
    )
    turn.specs = TOOLS
    return turn


async def _kept(text: str) -> str:
    return "kept"


def _check_visible(emitted: Emitted, conversation: Conversation) -> None:
    """What is seen is what is kept, nothing is still being written, and all of it can be."""
    open_ones: set[str] = set()
    for event in emitted.events:
        match event:
            case ItemStarted(item=item):
                open_ones.add(item.item_id)
            case ItemCompleted(item=item):
                open_ones.discard(item.item_id)
            case ItemsWithdrawn(item_ids=ids):
                open_ones.difference_update(ids)
            case _:
                pass
    if open_ones:
        raise Broken(f"items were left open: {open_ones}")
    for each in (*emitted.state.items, *conversation):
        each.model_dump_json()  # it can be sent and kept
    items = emitted.state.items
    replies = [message for message in conversation if isinstance(message, Assistant)]
    seen = "".join(item.text for item in items if isinstance(item, Answer))
    kept = "".join(reply.text for reply in replies)
    if seen.split() != kept.split():
        raise Broken(f"seen was {seen!r}, kept is {kept!r}")
    calls = [call.call_id for reply in replies for call in reply.calls]
    if [item.item_id for item in items if isinstance(item, ToolCall)] != calls:
        raise Broken("other calls are seen than kept")


def _outcome(reason: str, emitted: Emitted) -> Outcome:
    if reason == "failed":
        return "typed error"
    if any(isinstance(event, RetryChanged) and event.retry for event in emitted.events):
        return "retried"
    told: Sequence[Any] = [item for item in emitted.state.items if isinstance(item, Notice)]
    return "continued" if told else "complete"


async def quiet(work: Any) -> Any:
    """Run it; what the event loop only complains about is an error too."""
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    try:
        result = await work
    finally:
        loop.set_exception_handler(before)
    if complaints:
        raise Broken(f"the event loop complains: {complaints}")
    return result
