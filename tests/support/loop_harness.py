"""What the loop is tested with: tools that record what overlaps, a model that plays replies, an emit that keeps what
it is given."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from amanu.agent import usage as spending
from amanu.agent.budget import CostLimits, LimitGuard
from amanu.agent.fallback import Candidate
from amanu.agent.finishing import FinishTaskRequired
from amanu.agent.loop_guard.guard import LoopGuard
from amanu.agent.next_speaker import NextSpeaker
from amanu.agent.recovery import FaultReminders
from amanu.agent.steering import LateSteering, Steering
from amanu.agent.turn import Turn
from amanu.agent.usage import Ledger
from amanu.agent.window.window import ContextWindow
from amanu.config import ContextSettings as ContextSettings
from amanu.core.agent import AgentLimits, SystemPrompt
from amanu.core.conversation import Assistant, Call, Conversation, Entry, Results, Text, Thinking, User
from amanu.core.model import (
    CallStarted,
    Delta,
    ModelError,
    ReplyCompleted,
    Request,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
)
from amanu.core.tool import CallContext, NothingToDo, Outcome, Params, Preview, Subject, Tool, ToolError
from amanu.permissions.approvals import Approvals
from amanu.permissions.policy import PolicyContext
from amanu.tools.finish_task import FinishTask
from amanu_protocol.events import ApprovalRequested, Event, ItemDelta
from amanu_protocol.items import Mode, ModelInfo
from amanu_protocol.requests import ApprovalResolveParams
from amanu_protocol.state import SessionState, fold
from support.fake_policy import FakePolicy

INFO = ModelInfo(
    model_id="test:model",
    name="Test",
    context_window=100_000,
    max_output=1000,
    input_price=1.0,
    output_price=10.0,
    thinking=True,
    images=False,
    available=True,
)


class PathParams(Params):
    path: str = "a.py"
    fails: bool = False
    done_already: bool = False


class Recorder:
    """What the tools did: "start x" and "end x", in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.size = 0
        """Characters a tool adds to its result."""
        self.fields: dict[str, JsonValue] = {}
        """Of each tool's result."""

    async def work(self, name: str) -> None:
        self.log.append(f"start {name}")
        gate = self.gates.get(name)
        if gate is not None:
            await gate.wait()
        else:
            await asyncio.sleep(0)
        self.log.append(f"end {name}")


class FakeTool(Tool[PathParams]):
    description = "A tool of the tests."
    params = PathParams

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    async def preview(self, params: PathParams, call: CallContext) -> Preview:
        paths = frozenset({params.path})
        return Preview(
            title=f"{self.name} {params.path}",
            subject=Subject(self.name, self.effect, params.path),
            detail=params.path,
            reads=paths if self.effect == "read" else frozenset(),
            writes=paths if self.effect == "write" else frozenset(),
        )

    async def run(self, params: PathParams, call: CallContext) -> Outcome:
        await self.recorder.work(call.call_id)
        if params.fails:
            raise ToolError("it did not work; try another way")
        if params.done_already:
            raise NothingToDo("it is so already", advice="Go on.")
        more = (f" {call.call_id}" * self.recorder.size)[: self.recorder.size]
        text = f"{self.name} {params.path} for the model{more}"
        return Outcome(text, f"{self.name} for the user", fields=self.recorder.fields)


class Read(FakeTool):
    name = "read"
    effect = "read"


class Write(FakeTool):
    name = "write"
    effect = "write"


class Run(FakeTool):
    name = "run"
    effect = "run"


class Crash(FakeTool):
    name = "crash"
    effect = "read"

    async def run(self, params: PathParams, call: CallContext) -> Outcome:
        raise ZeroDivisionError("a bug of ours")


class Emitted:
    """Implements `Emit`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.entries: list[Entry] = []
        self.durable_after: list[int] = []
        self.watch: Callable[[Event], None] = lambda event: None
        self.state = SessionState(
            session_id="s", title="", roots=[], mode="ask", model_id="test:model", trusted=False, read_only=False
        )

    def __call__(self, event: Event, entry: Entry | None = None) -> None:
        self.events.append(event)
        fold(self.state, event)
        if entry is not None:
            self.entries.append(entry)
        self.watch(event)

    def delta(self, item_id: str, text: str) -> None:
        self(ItemDelta(item_id=item_id, text=text))

    def redact(self, text: str) -> str:
        return text

    async def durable(self) -> None:
        self.durable_after.append(len(self.events))


Reply = Sequence[Delta] | ModelError


class PlayedModel:
    """Plays one reply per request and keeps the requests' messages."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self.replies = list(replies)
        self.requests: list[list[Any]] = []
        self.budgets: list[tuple[int | None, str]] = []
        """`max_output` and `effort` of each request."""
        self.callable: list[frozenset[str] | None] = []
        self.block: asyncio.Event | None = None

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        request.conversation.check()
        self.requests.append(list(request.conversation))
        self.budgets.append((request.max_output, request.effort))
        self.callable.append(request.callable)
        reply = self.replies.pop(0)
        if isinstance(reply, ModelError):
            raise reply
        for delta in reply:
            if self.block is not None and isinstance(delta, ReplyCompleted):
                await self.block.wait()
            yield delta

    async def close(self) -> None:
        pass


numbers = itertools.count()


def call(tool: str, call_id: str, **arguments: Any) -> Call:
    return Call(call_id=call_id, tool=tool, arguments=arguments)


def says(text: str = "", *calls: Call, thought: str = "", stop: Any = None, cut: bool = False) -> list[Delta]:
    """A reply as deltas, with its Done."""
    parts: list[Any] = []
    deltas: list[Delta] = []
    if thought:
        parts.append(Thinking(text=thought))
        deltas.append(ThoughtDelta(thought))
    if text:
        parts.append(Text(text=text))
        deltas += [TextDelta(text[:2]), TextDelta(text[2:])] if len(text) > 2 else [TextDelta(text)]
    for each in calls:
        parts.append(each)
        deltas.append(CallStarted(each.call_id, each.tool))
    message = Assistant(parts=tuple(parts), cut=cut)
    return [*deltas, ReplyCompleted(message, TokenUsage(input=10, output=5), stop or ("calls" if calls else "end"))]


@dataclass
class LoopHarness:
    """Everything of one turn."""

    replies: Iterable[Reply]
    mode: Mode = "ask"
    answers: dict[str, str] = field(default_factory=dict[str, str])
    """Call id → decision word, given as soon as the guard time allows (the tests set it to nothing)."""
    headless: bool = False
    prompt: str = "do it"
    notes: list[list[str]] = field(default_factory=list[list[str]])
    max_steps: int = 20
    info: ModelInfo = INFO
    finishing: str | None = None
    loops: bool = True
    max_cost_usd: float | None = None
    tiers: ContextSettings = ContextSettings()  # noqa: RUF009  (frozen)
    kept: dict[str, str] = field(default_factory=dict[str, str])
    """What `read_output` would find."""

    async def keep(self, text: str) -> str:
        kept = f"kept{len(self.kept)}"
        self.kept[kept] = text
        return kept

    def __post_init__(self) -> None:
        self.recorder = Recorder()
        self.emitted = Emitted()
        self.model = PlayedModel(self.replies)
        self.conversation = Conversation([User(text=self.prompt)])
        self.approvals = Approvals(
            self.emitted, FakePolicy(lambda: PolicyContext(self.mode), lambda: ()), headless=self.headless
        )
        self.emitted.watch = self._answer
        tools: list[Tool[Any]] = [kind(self.recorder) for kind in (Read, Write, Run, Crash)]
        if self.finishing is not None:
            tools.append(FinishTask())
        guard = LoopGuard(self.prompt, [tool.spec() for tool in tools]) if self.loops else None
        allowance = CostLimits(self.max_cost_usd, None, self.emitted.state)
        self.turn = Turn(
            turn_id="t",
            session_id="s",
            candidate=Candidate(self.model, self.info),
            system_prompt_for=lambda info: SystemPrompt("", ""),
            tools={tool.name: tool for tool in tools},
            conversation=self.conversation,
            context=ContextWindow(self.conversation, self.tiers, self.keep, [Write.name]),
            approvals=self.approvals,
            emit=self.emitted,
            ledger=Ledger(spending.NO_USAGE, allowance),
            listeners=[
                LimitGuard(AgentLimits(self.max_steps, 3600), allowance, self.approvals),
                Steering(self),
                FaultReminders(),
                *([] if guard is None else [guard]),
                NextSpeaker() if self.finishing is None else FinishTaskRequired(self.finishing),
                LateSteering(self),
            ],
            reply_watch=guard,
        )

    def close(self) -> None:
        pass

    def take_notes(self) -> list[User]:
        return [User(text=text) for text in self.notes.pop(0)] if self.notes else []

    def _answer(self, event: Event) -> None:
        if isinstance(event, ApprovalRequested):
            call_id, digest = event.approval.tool_call_id, event.approval.digest
            if call_id in self.answers:
                word, _, reason = self.answers[call_id].partition(":")
                asyncio.get_running_loop().call_soon(
                    lambda: self.approvals.resolve(
                        ApprovalResolveParams(
                            session_id="s",
                            tool_call_id=call_id,
                            decision=word,
                            reason=reason or None,
                            digest=digest,
                        ),
                        "test",
                    )
                )

    def states(self) -> dict[str, str]:
        """Call id → final state."""
        return {item.item_id: item.state for item in self.emitted.state.items if item.kind == "toolCall"}

    def told(self) -> list[str]:
        """What the model was told in the daemon's name, as it is on record."""
        notes = [entry.notes for entry in self.emitted.entries if isinstance(entry, Results) and not entry.results]
        return [str(note) for each in notes for note in each]

    def shown(self, kind: str) -> list[str]:
        """The texts of the visible items of that kind, in order."""
        return [getattr(item, "text", "") for item in self.emitted.state.items if item.kind == kind]

    def results(self) -> list[tuple[str, str]]:
        """(call id, text) of the last results in the conversation."""
        for message in reversed(list(self.conversation)):
            if message.role == "results":
                return [(each.call_id, each.text) for each in message.results]
        return []
