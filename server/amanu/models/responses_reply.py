"""Assembles a reply of OpenAI's Responses API: events in, deltas out, and the whole message at the end.

Events: platform.openai.com/docs/api-reference/responses-streaming. Gateways send fewer of them, so whatever earlier
events lack is taken from `response.output_item.done`, and whatever that lacks from the final response.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import uuid4

from pydantic import JsonValue

from amanu.core.conversation import Assistant, Call, Native, Text, Thinking
from amanu.core.model import (
    CallDelta,
    CallStarted,
    Delta,
    ReplyCompleted,
    Request,
    StopReason,
    StreamBroken,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    UsageCounted,
)
from amanu.core.service_tiers import served_tier
from amanu.models.limits import check_arguments, check_calls, tokens
from amanu.models.reply_values import as_json, parse_arguments, require_string, vendor_word
from amanu.models.responses_items import CALLS, WIRE, call_item
from amanu_protocol.items import ServiceTier, Source

_GAP = "\n\n"
"""Put between two messages, or two summaries, of one reply."""


@dataclass
class _Item:
    """An output item still being received."""

    index: int
    kind: str
    pieces: list[str] = field(default_factory=list[str])
    """Pieces of its text, summary, arguments or input."""
    size: int = 0
    refusal: list[str] = field(default_factory=list[str])
    call_id: str = ""
    """Our own id, not the service's."""
    tool: str = ""
    final: dict[str, Any] | None = None
    """As it came in `output_item.done`."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class ResponsesReply:
    def __init__(self, request: Request, vendor: str) -> None:
        self._model = request.model.model_id
        self._tier: ServiceTier = request.service_tier
        self._conversation = request.conversation
        self._freeform = {tool.name: tool.freeform.argument for tool in request.tools if tool.freeform is not None}
        self._vendor = vendor
        self._items: dict[int, _Item] = {}
        self._status = ""
        self._reason = ""
        self.request_id = ""
        """The answer's header has it (set by the reader); without it, the response's id."""
        self._usage = TokenUsage()
        self._sources: list[Source] = []
        self._text_index: int | None = None
        """Of the message that has text last."""
        self.complete = False
        """The finish marker was seen, or the connection closed cleanly (set by the reader)."""

    @property
    def started(self) -> bool:
        """Whether any of it has arrived."""
        return bool(self._items or self._status)

    def add(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Take in an event, or a whole response. Raises `TypeError`, `AttributeError` or `LookupError` if it is
        malformed. Unknown events are ignored; `error` and `response.failed` are left to the caller, but for the tokens
        that a reply took before it failed."""
        match event.get("type") or event.get("object"):
            case "response.output_item.added":
                yield from self._open(event["output_index"], event["item"])
            case "response.output_text.delta":
                yield from self._add_text(self._item(event, "message"), require_string(event["delta"]))
            case "response.refusal.delta":
                self._item(event, "message").refusal.append(require_string(event["delta"]))
            case "response.reasoning_summary_part.added" if self._item(event, "reasoning").pieces:
                yield from self._add_thought(self._item(event, "reasoning"), _GAP)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield from self._add_thought(self._item(event, "reasoning"), require_string(event["delta"]))
            case "response.function_call_arguments.delta":
                yield from self._add_arguments(self._item(event, "function_call"), require_string(event["delta"]))
            case "response.custom_tool_call_input.delta":
                yield from self._add_arguments(self._item(event, "custom_tool_call"), require_string(event["delta"]))
            case "response.output_item.done":
                yield from self._close(event["output_index"], event["item"])
            case "response.completed" | "response.incomplete" | "response.done":
                yield from self._end(event["response"])
            case "response":
                yield from self._end(event)
            case "response.failed" if isinstance(event.get("response"), dict):
                yield from self._count(event["response"])
            case _:
                pass

    def _item(self, event: dict[str, Any], kind: str) -> _Item:
        item = self._items.get(event["output_index"])
        if item is None or item.kind != kind:
            raise LookupError(f"a piece of a {kind} that was not begun")
        return item

    def _open(self, index: int, start: dict[str, Any]) -> Iterator[Delta]:
        if index in self._items:
            raise LookupError(f"item {index} began twice")
        item = self._items[index] = _Item(index, require_string(start["type"]))
        if item.kind in CALLS:
            item.call_id, item.tool = f"call_{uuid4().hex[:16]}", require_string(start["name"])
            if not item.tool:
                raise LookupError("a call without a name")
            check_calls(len(self._items), self._vendor)
            yield CallStarted(item.call_id, item.tool)
            if item.kind == "custom_tool_call":
                yield CallDelta(item.call_id, json.dumps({self._argument(item.tool): ""})[:-2])

    def _argument(self, tool: str) -> str:
        """The name of the argument that holds the free-form input of `tool`."""
        return self._freeform.get(tool, "input")

    def _add_text(self, item: _Item, text: str) -> Iterator[Delta]:
        if not text:
            return
        if self._text_index is not None and item.index < self._text_index:
            raise LookupError("a piece of a message after the next one had begun")
        gap = _GAP if self._text_index is not None and not item.pieces else ""
        self._text_index = item.index
        item.pieces.append(text)
        yield TextDelta(gap + text)

    def _add_thought(self, item: _Item, text: str) -> Iterator[Delta]:
        if text:
            item.pieces.append(text)
            yield ThoughtDelta(text)

    def _add_arguments(self, item: _Item, text: str) -> Iterator[Delta]:
        if not text:
            return
        item.pieces.append(text)
        item.size += len(text)
        check_arguments(item.size, self._vendor)
        yield CallDelta(item.call_id, json.dumps(text)[1:-1] if item.kind == "custom_tool_call" else text)

    def _close(self, index: int, final: dict[str, Any]) -> Iterator[Delta]:
        if index not in self._items:
            yield from self._open(index, final)
        item = self._items[index]
        if item.final is not None or item.kind != final["type"]:
            raise LookupError(f"item {index} ended as another")
        item.final = final
        match item.kind:
            case "message":
                if not item.pieces:
                    yield from self._add_text(item, "".join(_parts(final, "output_text", "text")))
                item.refusal = item.refusal or _parts(final, "refusal", "refusal")
                self._sources += _cited(final)
            case "reasoning":
                if not item.pieces:
                    yield from self._add_thought(item, _GAP.join(_parts(final, "summary_text", "text", "summary")))
            case "function_call":
                if not item.pieces:
                    yield from self._add_arguments(item, require_string(final["arguments"]))
            case "custom_tool_call":
                if not item.pieces:
                    yield from self._add_arguments(item, require_string(final["input"]))
                yield CallDelta(item.call_id, '"}')
            case _:
                pass

    def _end(self, response: dict[str, Any]) -> Iterator[Delta]:
        for index, final in enumerate(cast(list[dict[str, Any]], response.get("output") or ())):
            item = self._items.get(index)
            if item is None or item.final is None:
                yield from self._close(index, final)
        self._status = str(response.get("status") or "completed")
        details: dict[str, Any] = response.get("incomplete_details") or {}
        self._reason = str(details.get("reason") or "")
        self.request_id = self.request_id or vendor_word(response.get("id"))
        yield from self._count(response)
        self.complete = True

    def _count(self, response: dict[str, Any]) -> Iterator[UsageCounted]:
        if isinstance(usage := response.get("usage"), dict):
            searches = sum(_searched(item) for item in self._items.values())
            tier = served_tier(response.get("service_tier"), self._tier)
            self._usage = replace(_usage(cast(dict[str, Any], usage)), searches=searches, service_tier=tier)
            yield UsageCounted(self._usage)

    def done(self) -> ReplyCompleted:
        """The whole reply. Raises `StreamBroken` if it never finished."""
        if self._status not in ("completed", "incomplete"):
            message = f"The reply from {self._vendor} ended before it was complete."
            raise StreamBroken(message, self._vendor, breakage="noFinish")
        items = [item for _, item in sorted(self._items.items())]
        refusal = "".join(piece for item in items for piece in item.refusal)
        if refusal or self._reason == "content_filter":
            return self._completed(items, "refused", refusal or self._reason)
        if self._status == "incomplete" and self._reason == "max_output_tokens":
            return self._completed(items, "outputLimit")
        if any(item.kind in CALLS for item in items):
            return self._completed(items, "calls")
        return self._completed(items, "end", self._reason)

    def _completed(self, items: list[_Item], stop: StopReason, detail: str = "") -> ReplyCompleted:
        parts: list[Text | Thinking | Call] = []
        wire: list[dict[str, Any]] = []
        ids: dict[str, str] = {}
        for item in items:
            final = item.final or {}
            match item.kind:
                case "message":
                    if item.text.strip():
                        gap = _GAP if any(isinstance(part, Text) for part in parts) else ""
                        parts.append(Text(text=gap + item.text))
                        wire.append(_message(item, final))
                case "reasoning":
                    if item.text:
                        parts.append(Thinking(text=item.text))
                    if final.get("encrypted_content"):
                        wire.append(_kept(final, "summary", "encrypted_content"))
                case "function_call" | "custom_tool_call":
                    arguments = self._arguments(item, cut=stop == "outputLimit")
                    call = Call(call_id=item.call_id, tool=item.tool, arguments=arguments)
                    theirs = str(final.get("call_id") or "")[-64:]
                    # Our own id stands in for one that is missing or was used by an earlier call.
                    if not theirs or theirs in ids or self._conversation.has_wire_id(theirs):
                        theirs = call.call_id
                    ids[theirs] = call.call_id
                    parts.append(call)
                    wire.append(_call(item, theirs, call))
                case "web_search_call" if str(final.get("id")).startswith("ws_"):  # made and answered by the service
                    wire.append(_kept(final, "id", "status", "action"))
                case _:
                    pass
        while wire and wire[-1]["type"] == "reasoning":  # refused without the item that follows it
            wire.pop()
        native = Native(wire=WIRE, model=self._model, blocks=cast(JsonValue, wire), call_ids=ids) if wire else None
        message = Assistant(parts=tuple(parts), native=native, cut=stop == "outputLimit")
        return ReplyCompleted(
            message,
            self._usage,
            stop,
            detail,
            self._sources,
            finish_reason=vendor_word(self._reason or self._status),
            request_id=self.request_id,
        )

    def _arguments(self, item: _Item, *, cut: bool) -> dict[str, JsonValue] | str:
        if item.kind == "custom_tool_call":
            return {self._argument(item.tool): item.text}
        return parse_arguments(item.text, cut=cut)


def _kept(final: dict[str, Any], *names: str) -> dict[str, Any]:
    """The fields of an item that are sent back."""
    return {"type": final["type"], **{name: final[name] for name in names if final.get(name) is not None}}


def _message(item: _Item, final: dict[str, Any]) -> dict[str, Any]:
    """What the model said, with its phase: models do worse if it comes back without one."""
    content: list[dict[str, Any]] = [{"type": "output_text", "text": item.text, "annotations": []}]
    phase = {"phase": final["phase"]} if final.get("phase") else {}
    return {"type": "message", "role": "assistant", "content": content, **phase}


def _call(item: _Item, wire_id: str, call: Call) -> dict[str, Any]:
    if item.kind == "custom_tool_call":
        return {"type": item.kind, "call_id": wire_id, "name": item.tool, "input": item.text}
    return call_item(wire_id, call, as_json(item.text) if isinstance(call.arguments, dict) else None)


def _parts(final: dict[str, Any], kind: str, name: str, field_name: str = "content") -> list[str]:
    """The texts of those parts of an item that are of one kind."""
    parts = cast(list[dict[str, Any]], final.get(field_name) or ())
    return [require_string(part[name]) for part in parts if part.get("type") == kind]


def _cited(final: dict[str, Any]) -> Iterator[Source]:
    """The web pages and files that a message cites."""
    for part in cast(list[dict[str, Any]], final.get("content") or ()):
        for annotation in cast(list[dict[str, Any]], part.get("annotations") or ()):
            match annotation:
                case {"type": "url_citation", "url": str(url), **more}:
                    yield Source(title=str(more.get("title") or url), url=url)
                case {"type": "file_citation", "filename": str(name)}:
                    yield Source(title=name)
                case _:
                    pass


def _searched(item: _Item) -> bool:
    """Whether the service asked a search engine: to open a page that it found costs nothing."""
    action: dict[str, Any] = (item.final or {}).get("action") or {}
    return item.kind == "web_search_call" and action.get("type", "search") == "search"


def _usage(counted: dict[str, Any]) -> TokenUsage:
    """The service counts cache reads and writes as input tokens, and reasoning as output; here each is separate."""
    given: dict[str, Any] = counted.get("input_tokens_details") or {}
    produced: dict[str, Any] = counted.get("output_tokens_details") or {}
    cached, written = tokens(given.get("cached_tokens")), tokens(given.get("cache_write_tokens"))
    thoughts = tokens(produced.get("reasoning_tokens"))
    return TokenUsage(
        input=max(0, tokens(counted.get("input_tokens")) - cached - written),
        cache_read=cached,
        cache_write=written,
        output=max(0, tokens(counted.get("output_tokens")) - thoughts),
        thoughts=thoughts,
    )
