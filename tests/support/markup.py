"""A model whose text is read for markup, and what comes of a reply."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from amanu.agent.markup.model import MarkupRead
from amanu.core.conversation import Assistant, Call, Conversation, Text, User
from amanu.core.model import (
    CallDelta,
    CallStarted,
    Delta,
    HeldBack,
    ReplyCompleted,
    Request,
    StopReason,
    TextDelta,
    TextWasThought,
    ThoughtDelta,
    TokenUsage,
)
from amanu.core.tool import AnyTool, CallContext, Outcome, Params, Preview, Tool
from support.loop_harness import INFO


class ReadParams(Params):
    path: str


class RunParams(Params):
    command: str
    description: str = ""


class ReadFile(Tool[ReadParams]):
    name, effect, description, params = "read_file", "read", "Reads.", ReadParams

    async def preview(self, params: ReadParams, call: CallContext) -> Preview:
        raise NotImplementedError

    async def run(self, params: ReadParams, call: CallContext) -> Outcome:
        raise NotImplementedError


class Run(Tool[RunParams]):
    name, effect, description, params = "run", "run", "Runs.", RunParams

    async def preview(self, params: RunParams, call: CallContext) -> Preview:
        raise NotImplementedError

    async def run(self, params: RunParams, call: CallContext) -> Outcome:
        raise NotImplementedError


TOOLS: Mapping[str, AnyTool] = {"read_file": ReadFile(), "run": Run()}


class _Played:
    def __init__(self, pieces: Sequence[Delta]) -> None:
        self._pieces = pieces

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        for piece in self._pieces:
            yield piece

    async def close(self) -> None:
        pass


@dataclass
class Seen:
    """A reply as the user saw it, and as the loop got it."""

    answer: str
    thought: str
    steps: list[str]
    """The answer after each delta."""
    end: ReplyCompleted

    @property
    def calls(self) -> list[tuple[str, object]]:
        return [(call.tool, call.arguments) for call in self.end.message.calls]


async def read(
    text: str,
    conversation: Conversation | None = None,
    *,
    size: int = 1_000_000,
    stop: StopReason = "end",
    tools: Mapping[str, AnyTool] = TOOLS,
    native: Sequence[Call] = (),
    system: str = "",
) -> Seen:
    """The reply `text`, which came in pieces of `size` characters, before calls of the service's own."""
    request = Request(
        model=INFO,
        system=system,
        tools=[tool.spec() for tool in tools.values()],
        conversation=conversation or Conversation([User(text="Hello.")]),
        session_id="s",
    )
    pieces: list[Delta] = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    pieces += [CallStarted(call.call_id, call.tool) for call in native]
    parts = (*([Text(text=text)] if text else []), *native)
    pieces.append(ReplyCompleted(Assistant(parts=parts), TokenUsage(), stop))
    seen = Seen("", "", [], ReplyCompleted(Assistant(parts=()), TokenUsage(), "end"))
    async for delta in MarkupRead(_Played(pieces), tools).stream(request):
        match delta:
            case TextDelta(text=shown):
                seen.answer += shown
            case ThoughtDelta(text=shown):
                seen.thought += shown
            case TextWasThought():
                seen.thought, seen.answer = seen.answer, ""
            case ReplyCompleted():
                seen.end = delta
            case CallStarted() | CallDelta() | HeldBack():
                pass
            case _:
                raise AssertionError(delta)
        seen.steps.append(seen.answer)
    return seen
