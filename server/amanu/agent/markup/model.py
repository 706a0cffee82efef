"""A model whose server leaves markup in the text, seen by the loop as one whose server reads it."""

import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import uuid4

from amanu.agent.markup.quotes import Quotes
from amanu.agent.markup.reading import read_calls
from amanu.agent.markup.shapes import NotACall, Unreadable, WrittenCall
from amanu.agent.markup.shown_call import shown_call
from amanu.agent.markup.text_stream import TextStream
from amanu.core.conversation import Assistant, Call, Text, Thinking
from amanu.core.foreign_calls import as_ours
from amanu.core.model import (
    CallDelta,
    CallStarted,
    Delta,
    HeldBack,
    Model,
    ModelError,
    ReplyCompleted,
    Request,
    TextDelta,
    ThoughtDelta,
    UsageCounted,
)
from amanu.core.nesting import MAX_NESTING, too_deep
from amanu.core.tool import AnyTool, ToolError

EXAMPLE = re.compile(
    r"\b(?:example|e\.g\.|instance|looks? like|would (?:be|write|look)|illustrat\w+|Beispiel|exemple|ejemplo|esempio"
    r"|exemplo|пример\w*)|例如|例えば|示例|예를|예시"
    r"|\bmodels?\s+(?:then\s+)?(?:writes?|emits?|outputs?|produces?|generates?)\b|\bschreib(?:t|en)\b.*\bso\b"
    r"|\bsieht\b.*\baus\b|\bressemble(?:nt)?\b|\bs['’]écri(?:t|vent)\b|\bse escriben?\b|\bsi scriv(?:e|ono)\b"
    r"|\bé escrit[ao]\b|\bвыгляд[иея]т\b|\bziet\b.*\buit\b|\bwygląda\w*|\bgörünür\b|这样(?:写|调用)|次のように(?:書|呼)"
    r"|이렇게 (?:호출|작성)합니다|يبدو"
    r"|(?:\b(?:the|its?|their|a)|['’]s)\s+(?:\w+\s+)?(?:format|syntax|template)\b[^.!?]*(?::|\b(?:is|be))\s*\Z",
    re.IGNORECASE,
)
"""Words on the line before a call that say it is only shown."""
SHOWN = "It stands where an example or a quotation would stand."
PICTURES = "A picture or document is in the conversation, which may show it."


@dataclass(frozen=True)
class _Unmade:
    """Calls that are written, but not made. `why`: the reason for the model; "" if it need not hear one. `quoted`: they
    may be what the model has read."""

    why: str
    quoted: bool = False


_NONE = _Unmade("")


class MarkupRead:
    """`Model` that reads the thoughts and calls that `model` writes as text. `tools`: those that may be called so; with
    none of them only thoughts are read. Calls are made where the reply ends with them, they are valid, and the model
    has not read them anywhere (`quotes.py`); any others stay text."""

    def __init__(self, model: Model, tools: Mapping[str, AnyTool], quotes: Quotes | None = None) -> None:
        self._model = model
        self._tools = tools
        self._quotes = quotes or Quotes(tools)

    async def stream(self, request: Request) -> AsyncGenerator[Delta]:
        text = TextStream(self._tools)
        async with aclosing(cast("Any", self._model.stream(request))) as deltas:
            try:
                async for delta in deltas:
                    if isinstance(delta, ReplyCompleted):
                        async for each in self._completed(text, delta, request):
                            yield each
                        continue
                    for each in _told_apart(text, delta):
                        yield each
            except ModelError:
                for each in text.finish():  # what there is of the reply may be kept
                    yield each
                raise

    async def close(self) -> None:
        await self._model.close()

    async def _completed(self, text: TextStream, end: ReplyCompleted, request: Request) -> AsyncGenerator[Delta]:
        for shown in text.finish():
            yield shown
        calls: Sequence[Call] = ()
        unmade = _NONE
        if text.held and not end.message.calls and end.stop in ("end", "calls", "outputLimit"):
            judged = await self._judge(text, request, cut=end.stop == "outputLimit")
            if isinstance(judged, _Unmade):
                unmade = judged
            else:
                calls = judged
        if calls:
            text.drop_held()
            for call in calls:
                yield CallStarted(call.call_id, call.tool)
                yield CallDelta(call.call_id, json.dumps(call.arguments))
        for shown in text.release():
            yield shown
        if unmade == _NONE and not calls and not end.message.calls and end.stop == "end":
            unmade = await self._judge_shown(text, end.message.text, request)
        if text.was_read:
            end = _rebuilt(end, text, calls)
        if unmade != _NONE:
            stop = "end" if end.stop == "calls" else end.stop  # an announced call is not lost: it is here, as text
            end = replace(end, unmade_call=unmade.why, quoted_call=unmade.quoted, stop=stop)
        yield end

    async def _judge(self, text: TextStream, request: Request, *, cut: bool) -> Sequence[Call] | _Unmade:
        try:
            written: Sequence[WrittenCall] = [*map(_kept, read_calls(text.held, self._tools))]
            why = self._invalid(written)
        except NotACall:
            return _NONE
        except Unreadable as fault:
            written = [WrittenCall(fault.tool, {"": text.held})]
            why = f"It could not be read at {fault}." if not cut else ""
        if await self._quotes.hold(written, request):
            return _Unmade("", quoted=True)
        if cut:  # none of a cut reply's calls is run; the model is told so
            return [_call(each.tool, text.held) for each in written]
        if why:
            return _Unmade(why)
        if any(request.conversation.iter_pictures()):
            return _Unmade(PICTURES)
        if EXAMPLE.search(text.before.rstrip().rpartition("\n")[2]):
            return _Unmade(SHOWN)
        return [_call(each.tool, dict(each.arguments)) for each in written]

    async def _judge_shown(self, text: TextStream, answer: str, request: Request) -> _Unmade:
        """A call that ends a reply in a place where none is made; `_NONE` if there is none."""
        if not self._tools:
            return _NONE
        call = shown_call(answer, self._tools)
        if call is None and text.passed:
            with suppress(NotACall, Unreadable):
                call = read_calls(text.passed, self._tools)[0]
        if call is None or await self._quotes.hold([call], request):
            return _NONE
        return _Unmade(f"It was of {call.tool}. {SHOWN}")

    def _invalid(self, written: Sequence[WrittenCall]) -> str:
        """The reason that one of the calls is not valid; "" if all are."""
        for call in written:
            try:
                ours = as_ours(call.tool, call.arguments, self._tools)
                tool, arguments = self._tools[ours.tool].target(ours.arguments)
                tool.parse(arguments)
            except (ToolError, ValueError) as error:
                return str(error)
        return ""


def _told_apart(text: TextStream, delta: Delta) -> Iterator[Delta]:
    match delta:
        case TextDelta(text=piece):
            shown = [*text.feed(piece)]
            yield from shown or [HeldBack()]
        case UsageCounted():
            yield delta
        case _:
            yield from text.release()
            if isinstance(delta, ThoughtDelta):
                text.thoughts_came()
            yield delta


def _kept(call: WrittenCall) -> WrittenCall:
    """The call with arguments that can be kept and sent, as those of native calls are. Raises `Unreadable`."""
    if too_deep(call.arguments):
        raise Unreadable(call.tool, f"the arguments: expected no more than {MAX_NESTING} levels")
    text = json.dumps(call.arguments, ensure_ascii=False).encode("utf-8", "replace")  # half a surrogate pair is "?"
    return WrittenCall(call.tool, json.loads(text))


def _call(tool: str, arguments: Any) -> Call:
    return Call(call_id=f"call_{uuid4().hex[:16]}", tool=tool, arguments=arguments)


def _rebuilt(end: ReplyCompleted, text: TextStream, calls: Sequence[Call]) -> ReplyCompleted:
    """The reply with its text told apart. The vendor gets it back as it was, unless there are calls in it now."""
    own: list[Text | Thinking] = [
        Thinking(text=joined) if kind == "thought" else Text(text=joined)
        for kind, pieces in text.segments
        if (joined := "".join(pieces)).strip()
    ]
    parts: list[Text | Thinking | Call] = []
    for part in end.message.parts:
        if isinstance(part, Text):
            parts += own
            own = []
        else:
            parts.append(part)
    message = end.message
    native = None if calls else message.native
    made = Assistant(parts=(*parts, *own, *calls), native=native, cut=message.cut)
    return replace(end, message=made, stop="calls" if calls and end.stop == "end" else end.stop)
