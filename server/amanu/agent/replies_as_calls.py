"""A model that answers in text, seen by the loop as one that calls a tool: the whole reply is the call's argument.

So a task of a single reply gets all that a turn has: retries, costs, live edits, the decision on the call, the journal.
The model itself is offered no tools, and hears a conversation of its own.
"""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import uuid4

from amanu.agent.fallback import Candidate, Fallbacks
from amanu.agent.markup.model import MarkupRead
from amanu.core.conversation import Assistant, Call, Conversation
from amanu.core.model import CallDelta, CallStarted, Delta, Model, ReplyCompleted, Request, TextDelta


@dataclass(frozen=True)
class ReplyCall:
    """The call that a reply becomes."""

    tool: str
    path: str
    """Its other argument."""
    conversation: Conversation
    """What the model hears. Its reply is appended."""


class ReplyAsCall:
    """`Model` that makes each reply of `model` a call. For whoever remembers models it is `model` itself."""

    def __init__(self, model: Model, call: ReplyCall) -> None:
        self._model = model
        self._call = call

    def __eq__(self, other: object) -> bool:
        return self._model == (other._model if isinstance(other, ReplyAsCall) else other)

    def __hash__(self) -> int:
        return hash(self._model)

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """Little thinking: the user waits at the cursor."""
        call_id = f"call_{uuid4().hex[:16]}"
        own = replace(request, tools=(), conversation=self._call.conversation, effort="none")
        started = False
        async with aclosing(cast("Any", MarkupRead(self._model, {}).stream(own))) as deltas:
            async for delta in deltas:
                match delta:
                    case TextDelta(text=text) if started or text.strip():
                        if not started:
                            started = True
                            yield CallStarted(call_id, self._call.tool)
                            yield CallDelta(call_id, f'{{"path": {json.dumps(self._call.path)}, "reply": "')
                        yield CallDelta(call_id, json.dumps(text)[1:-1])
                    case TextDelta() | CallStarted() | CallDelta():
                        pass
                    case ReplyCompleted():
                        yield self._completed(delta, call_id)
                    case _:
                        yield delta

    def _completed(self, reply: ReplyCompleted, call_id: str) -> ReplyCompleted:
        text = reply.message.text
        if not text.strip():
            return replace(reply, message=without_calls(reply.message))
        self._call.conversation.append(without_calls(reply.message))
        call = Call(call_id=call_id, tool=self._call.tool, arguments={"path": self._call.path, "reply": text})
        stop = reply.stop if reply.stop == "refused" else "calls"  # of one that is too long the tool says so
        return replace(reply, message=Assistant(parts=(call,)), stop=stop)

    async def close(self) -> None:
        await self._model.close()


def without_calls(message: Assistant) -> Assistant:
    """Without calls, which a model may write though it has no tools."""
    if not message.calls:
        return message
    parts = tuple(part for part in message.parts if not isinstance(part, Call))
    return Assistant(parts=parts, cut=message.cut)


def as_calls(candidate: Candidate, call: ReplyCall) -> Candidate:
    return Candidate(ReplyAsCall(candidate.model, call), candidate.info)


def fall_back_as_calls(fallbacks: Fallbacks, call: ReplyCall) -> None:
    """The same for the models that may replace it; none is chosen by the prompt's difficulty."""
    fallbacks.candidates = [as_calls(candidate, call) for candidate in fallbacks.candidates]
    fallbacks.judge = None
