"""Anthropic stream events → deltas, and the whole reply at the end."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from amanu.core.conversation import Assistant, Call, Native, Text, Thinking
from amanu.core.model import (
    CallDelta,
    CallStarted,
    Delta,
    ReplyCompleted,
    StopReason,
    StreamBroken,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    UsageCounted,
)
from amanu.core.service_tiers import served_tier
from amanu.models.anthropic_request import THINKING, WIRE, as_object
from amanu.models.limits import check_arguments, check_calls, tokens
from amanu.models.reply_values import parse_arguments, require_string, vendor_word
from amanu_protocol.items import ServiceTier, Source

_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "outputLimit",
    "model_context_window_exceeded": "outputLimit",
    "refusal": "refused",
    "pause_turn": "paused",
}


@dataclass(slots=True)
class _Block:
    """One content block under construction: as it started, and the pieces that came since."""

    start: dict[str, Any]
    pieces: list[str] = field(default_factory=list[str])
    signature: str = ""
    citations: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    call_id: str = ""
    """Ours."""
    size: int = 0
    """Characters of its arguments so far."""
    complete: bool = False

    @property
    def kind(self) -> str:
        return self.start["type"]

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class AnthropicReply:
    """Takes the events of one stream in order. `prefix` is the digest of what the model had seen; `taken` says of a
    call's id that the conversation has it already; with `progress`, what comes as thinking is said to the user; `tier`
    is the one that was asked for."""

    def __init__(
        self,
        model: str,
        prefix: str,
        taken: Callable[[str], bool] = lambda call_id: False,
        progress: bool = False,
        tier: ServiceTier = "standard",
    ) -> None:
        self._model = model
        self._prefix = prefix
        self._taken = taken
        self._progress = progress
        self._tier: ServiceTier = tier
        self._blocks: dict[int, _Block] = {}
        self._last: _Block | None = None
        """Blocks come one after the other."""
        self._usage: dict[str, Any] = {}
        self.request_id = ""
        """The answer's header has it (set by the reader); without it, the message's id."""
        self._stop: str | None = None
        self._detail = ""
        self._recommended = ""
        self._finished = False
        self._calls = 0

    @property
    def finished(self) -> bool:
        """The service said that the message is complete."""
        return self._finished

    def add(self, event: dict[str, Any]) -> Delta | None:
        """Take one event. Unknown ones are passed over; a known one of the wrong form raises `LookupError`,
        `TypeError` or `AttributeError`."""
        match event["type"]:
            case "content_block_delta":
                block = self._blocks[event["index"]]
                if block is not self._last:
                    raise LookupError("a piece of another block than the last")
                return self._piece(block, event["delta"])
            case "content_block_start":
                return self._open(event["index"], event["content_block"])
            case "content_block_stop":
                self._blocks[event["index"]].complete = True
            case "message_start":
                self.request_id = self.request_id or vendor_word(event["message"].get("id"))
                return self._count(event["message"].get("usage"))
            case "message_delta":
                self._end(event["delta"])
                return self._count(event.get("usage"))
            case "message_stop":
                self._finished = True
            case _:
                pass
        return None

    def _open(self, index: int, start: dict[str, Any]) -> Delta | None:
        if index in self._blocks:
            raise LookupError(f"block {index} started twice")
        require_string(start["type"])
        block = self._last = self._blocks[index] = _Block(start)
        match block.kind:
            case "text":
                block.pieces.append(start.get("text") or "")
                block.citations += start.get("citations") or ()
                return TextDelta(block.text) if block.text else None
            case "thinking":
                block.pieces.append(start.get("thinking") or "")
                block.signature = start.get("signature") or ""
                return self._thought(block.text) if block.text else None
            case "tool_use":
                if not (start["id"] and start["name"]):
                    raise LookupError("a call without id or name")
                block.call_id = f"call_{uuid.uuid4().hex[:16]}"
                self._calls += 1
                check_calls(self._calls, "Anthropic")
                return CallStarted(block.call_id, require_string(start["name"]))
            case _:
                return None

    def _piece(self, block: _Block, delta: dict[str, Any]) -> Delta | None:
        match delta["type"]:
            case "text_delta" if block.kind == "text":
                text = require_string(delta["text"])
                block.pieces.append(text)
                return TextDelta(text)
            case "thinking_delta" if block.kind == "thinking":
                text = require_string(delta["thinking"])
                block.pieces.append(text)
                return self._thought(text)
            case "input_json_delta" if block.call_id:
                text = require_string(delta["partial_json"])
                block.pieces.append(text)
                block.size += len(text)
                check_arguments(block.size, "Anthropic")
                return CallDelta(block.call_id, text) if text else None
            case "input_json_delta" if block.kind == "server_tool_use":  # the service answers it itself
                block.pieces.append(require_string(delta["partial_json"]))
            case "signature_delta":
                block.signature += require_string(delta["signature"])
            case "citations_delta":
                block.citations.append(delta["citation"])
            case _:
                pass
        return None

    def _thought(self, text: str) -> Delta:
        return TextDelta(text) if self._progress else ThoughtDelta(text)

    def _count(self, usage: dict[str, Any] | None) -> UsageCounted | None:
        """Counts are cumulative; what an event leaves out stays."""
        if not usage:
            return None
        self._usage.update({name: count for name, count in usage.items() if count is not None})
        return UsageCounted(_tokens(self._usage, self._tier))

    def _end(self, delta: dict[str, Any]) -> None:
        self._stop = delta.get("stop_reason") or self._stop
        details: dict[str, Any] = delta.get("stop_details") or {}
        self._recommended = str(details.get("recommended_model") or "")
        self._detail = details.get("explanation") or details.get("category") or self._detail

    def done(self) -> ReplyCompleted:
        """The whole reply. Raises `StreamBroken` for a stream that ended without its finish marker."""
        if not self._finished or self._stop is None:
            raise StreamBroken("The reply ended before it was complete.", "Anthropic", breakage="noFinish")
        parts: list[Text | Thinking | Call] = []
        content: list[dict[str, Any]] = []
        sources: list[Source] = []
        ids: dict[str, str] = {}
        cut = _STOPS.get(self._stop) == "outputLimit"
        for block in self._blocks.values():  # in the order they were shown
            text = block.text
            match block.kind:
                case "text":
                    if text.strip():
                        parts.append(Text(text=text))
                        cited = {"citations": block.citations} if block.citations else {}
                        content.append({**_present(block.start), "text": text, **cited})
                        sources += map(_source, block.citations)
                case "thinking":
                    if text:
                        parts.append(Text(text=text) if self._progress and self._calls else Thinking(text=text))
                    if block.signature:  # without one it was cut, and would be refused
                        content.append({**_present(block.start), "thinking": text, "signature": block.signature})
                case "tool_use":
                    arguments = _arguments(block, cut=cut)
                    theirs: str = block.start["id"]
                    if theirs in ids or self._taken(theirs):
                        theirs = block.call_id  # the service refuses an id it has seen
                    ids[theirs] = block.call_id
                    parts.append(Call(call_id=block.call_id, tool=block.start["name"], arguments=arguments))
                    content.append({**_present(block.start), "id": theirs, "input": as_object(arguments)})
                case "server_tool_use" if text:
                    content.append({**_present(block.start), "input": as_object(parse_arguments(text, cut=cut))})
                case _:
                    content.append(_present(block.start))
        stop = _STOPS.get(self._stop) or ("calls" if ids else "end")
        if stop == "end" and ids:
            stop = "calls"
        while stop == "outputLimit" and content and content[-1]["type"] in THINKING:
            content.pop()  # cut while it thought again: a message must not end with that
        message = Assistant(
            parts=tuple(parts),
            native=Native(
                wire=WIRE,
                model=self._model,
                blocks={"content": content, "prefix": self._prefix},  # pyright: ignore[reportArgumentType]
                call_ids=ids,
            ),
            cut=stop == "outputLimit",
        )
        full = self._stop == "model_context_window_exceeded"
        detail = self._detail or ("" if self._stop in _STOPS and not full else self._stop)
        return ReplyCompleted(
            message,
            _tokens(self._usage, self._tier),
            stop,
            detail,
            sources,
            full,
            self._recommended,
            finish_reason=vendor_word(self._stop),
            request_id=self.request_id,
        )


def _present(start: dict[str, Any]) -> dict[str, Any]:
    """The block without the fields that are null in a reply and unknown in a request."""
    return {name: value for name, value in start.items() if value is not None}


def _source(citation: dict[str, Any]) -> Source:
    """A page of the web, a search result of ours, or a passage of a document."""
    url = citation.get("url") or ""
    named = citation.get("title") or citation.get("document_title") or citation.get("source") or url
    number = citation.get("document_index", 0) + 1
    return Source(title=named or f"Document {number}", url=url, quote=citation.get("cited_text") or "")


def _arguments(block: _Block, *, cut: bool) -> dict[str, Any] | str:
    """What the model wrote; where it wrote nothing, the input the block started with."""
    if not block.text.strip() and block.complete:
        arguments: Any = block.start.get("input")
        return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    return parse_arguments(block.text, cut=cut) if block.text.strip() else block.text


def _tokens(usage: dict[str, Any], asked: ServiceTier) -> TokenUsage:
    details: dict[str, Any] = usage.get("output_tokens_details") or {}
    thoughts = tokens(details.get("thinking_tokens"))
    written = tokens(usage.get("cache_creation_input_tokens"))
    lasting: dict[str, Any] = usage.get("cache_creation") or {}
    served: dict[str, Any] = usage.get("server_tool_use") or {}
    return TokenUsage(
        input=tokens(usage.get("input_tokens")),
        cache_read=tokens(usage.get("cache_read_input_tokens")),
        cache_write=written,
        cache_write_hour=min(written, tokens(lasting.get("ephemeral_1h_input_tokens"))),
        output=max(0, tokens(usage.get("output_tokens")) - thoughts),
        thoughts=thoughts,
        searches=tokens(served.get("web_search_requests")),
        service_tier=served_tier(usage.get("speed"), asked),
    )
