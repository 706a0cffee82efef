"""A chat-completions reply in the making: chunks in, deltas out, and the whole message at the end.

Written for what servers send, not for what the specification says (tests/recordings/shapes.py has examples).
"""

import json
import math
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
from amanu.models.openai_messages import WIRE, call_of
from amanu.models.reply_values import as_json, parse_arguments, require_string, vendor_word
from amanu_protocol.items import ServiceTier, Source

_CUT = {"length", "max_tokens", "model_length", "model_context_window_exceeded"}
_FULL = {"model_context_window_exceeded"}
"""Z.ai (can1357/oh-my-pi#683), as Anthropic says it."""
_ARGUMENTS = ("arguments", "args", "input", "parameters")
"""OpenAI's name for them, Gemini's, Anthropic's and Llama's."""
_CALLS = {"tool_calls", "function_call"}
_REFUSED = {"content_filter", "safety", "sensitive"}


@dataclass
class CallInProgress:
    """A call the model is writing."""

    call_id: str
    index: int | None
    theirs: str
    tool: str = ""
    arguments: list[str] = field(default_factory=list[str])
    size: int = 0
    """Characters of them so far."""
    extra: Any = None
    """`extra_content`: a Gemini signature, to be given back."""


class OpenAIReply:
    def __init__(self, request: Request, vendor: str) -> None:
        self._model = request.model.model_id
        self._tier: ServiceTier = request.service_tier
        self._conversation = request.conversation
        self._vendor = vendor
        self._parts: list[tuple[type[Text] | type[Thinking], list[str]]] = []
        """Runs of text and thought, in pieces: joined once."""
        self._calls: list[CallInProgress] = []
        self._named: list[CallInProgress] = []
        """Those whose names have come, in that order: the one in which they were shown."""
        self._reasoning: list[dict[str, Any]] = []
        """OpenRouter's `reasoning_details`, to be given back unchanged."""
        self._thought: dict[str, list[str]] = {}
        """Thoughts in pieces, by the name of the field they came in: a service takes back what it sends."""
        self._sources: list[Source] = []
        self._refusal: list[str] = []
        self._finish: str | None = None
        self._word = ""
        """The same, as it came."""
        self.request_id = ""
        """The answer's header has it (set by the reader); without it, the completion's id."""
        self._usage = TokenUsage()
        self.complete = False
        """The finish marker was seen: a `finish_reason`, or `[DONE]` (set by the reader)."""

    def add(self, chunk: dict[str, Any]) -> Iterator[Delta]:
        """Take in a chunk, or a whole completion. `choices` may be null, or empty beside the usage. Raises
        `TypeError` or `AttributeError` when it is ill-typed."""
        self._tier = served_tier(chunk.get("service_tier"), self._tier)
        self.request_id = self.request_id or vendor_word(chunk.get("id"))
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = replace(_usage(cast(dict[str, Any], usage)), service_tier=self._tier)
            yield UsageCounted(self._usage)
        for choice in cast(list[dict[str, Any]], chunk.get("choices") or ()):
            if choice.get("index"):
                continue  # only one was asked for
            delta: dict[str, Any] = choice.get("delta") or choice.get("message") or {}
            yield from self._add_delta(delta)
            if finish := choice.get("finish_reason"):
                self._finish = str(finish).lower()
                self._word = vendor_word(str(finish))
                self.complete = True

    def _add_delta(self, delta: dict[str, Any]) -> Iterator[Delta]:
        details: list[dict[str, Any]] = delta.get("reasoning_details") or []
        named = next((name for name in ("reasoning_content", "reasoning") if delta.get(name)), "")
        thought = delta.get(named)
        if isinstance(thought, str):
            self._thought.setdefault(named, []).append(thought)
        else:
            thought = "".join(str(detail.get("text") or detail.get("summary") or "") for detail in details)
        for annotation in details:
            self._add_reasoning(annotation)
        if thought:
            self._add_text(Thinking, thought)
            yield ThoughtDelta(thought)
        content, parts = delta.get("content"), cast(list[dict[str, Any]], delta.get("parts") or [])
        if isinstance(content, dict):  # Gemini's, as it came
            content = cast(dict[str, Any], content).get("parts", cast(Any, content))
        if isinstance(content, list):  # Mistral: a list of typed parts
            content, parts = None, cast(list[dict[str, Any]], content)
        if parts:
            content = (content or "") + "".join(str(part.get("text") or "") for part in parts)
        if content:
            content = require_string(content)
            self._add_text(Text, content)
            yield TextDelta(content)
        if refusal := delta.get("refusal"):
            self._refusal.append(require_string(refusal))
        for annotation in cast(list[dict[str, Any]], delta.get("annotations") or ()):
            self._sources += _cited(annotation)
        for call in cast(list[dict[str, Any]], delta.get("tool_calls") or ()):
            yield from self._add_call(call)
        if legacy := delta.get("function_call"):
            yield from self._add_call({"index": 0, "function": legacy})
        for part in (delta, *parts):
            if part.get("functionCall") or part.get("type") == "tool_use":
                yield from self._add_call(part)

    def _add_text(self, kind: type[Text] | type[Thinking], text: str) -> None:
        if not self._parts or self._parts[-1][0] is not kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(text)

    def _add_reasoning(self, detail: dict[str, Any]) -> None:
        """Pieces of one detail carry the same index and type; their texts are joined, the rest is kept."""
        last = self._reasoning[-1] if self._reasoning else None
        if last is None or any(last.get(key) != detail.get(key) for key in ("index", "type")):
            self._reasoning.append(dict(detail))
            return
        for key, value in detail.items():
            if key in ("text", "summary", "data") and isinstance(last.get(key), str):
                last[key] += value or ""
            elif value is not None:
                last[key] = value

    def _add_call(self, piece: dict[str, Any]) -> Iterator[Delta]:
        function = _function(piece)
        arguments = next((candidate for candidate in (_given(function), _given(piece)) if candidate is not None), None)
        whole = arguments is not None and not isinstance(arguments, str)
        writing = self._writing(piece, function.get("name") or "", whole)
        match piece.get("extra_content"):
            case {"google": {"thought_signature": str()}} as extra:
                writing.extra = extra
            case _:
                pass
        if not writing.tool and function.get("name"):
            writing.tool = require_string(function["name"])
            self._named.append(writing)
            yield CallStarted(writing.call_id, writing.tool)
        if whole:
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments:
            writing.arguments.append(arguments)
            writing.size += len(arguments)
            check_arguments(writing.size, self._vendor)
            yield CallDelta(writing.call_id, arguments)

    def _writing(self, piece: dict[str, Any], tool: str, whole: bool) -> CallInProgress:
        """The call a piece belongs to: by index, else by id, else the last one. A new id or name beside an
        index or id that is taken is another call (servers that number every call 0), and so is a `whole` one, whose
        arguments come as an object."""
        index, theirs = piece.get("index"), str(piece.get("id") or "")
        writing: CallInProgress | None = None
        if index is not None:
            writing = next((call for call in reversed(self._calls) if call.index == index), None)
        elif theirs:
            writing = next((call for call in self._calls if call.theirs == theirs), None)
        elif not tool and self._calls:
            writing = self._calls[-1]
        taken = writing is not None and (
            (theirs and tool and writing.theirs and theirs != writing.theirs) or (whole and tool and writing.arguments)
        )
        if writing is not None and not taken:
            writing.theirs = writing.theirs or theirs
            return writing
        self._calls.append(CallInProgress(f"call_{uuid4().hex[:16]}", index, theirs))
        check_calls(len(self._calls), self._vendor)
        return self._calls[-1]

    @property
    def malformed(self) -> bool:
        """Some call's arguments are no JSON object, and the reply was not cut."""
        return self._finish not in _CUT and any(
            isinstance(parse_arguments("".join(writing.arguments), cut=False), str) for writing in self._calls
        )

    def done(self) -> ReplyCompleted:
        """The whole reply. Raises `StreamBroken` when it is none."""
        if not self.complete:
            message = f"The reply from {self._vendor} ended before it was complete."
            raise StreamBroken(message, self._vendor, breakage="noFinish")
        if self._finish == "error":
            raise StreamBroken(f"{self._vendor} gave up on its reply.", self._vendor)
        if self._refusal or self._finish in _REFUSED:
            return self._finished("refused", "".join(self._refusal) or str(self._finish))
        if self._finish in _CUT:
            return self._finished("outputLimit")
        if len(self._named) < len(self._calls):
            raise StreamBroken(f"{self._vendor} made a tool call without a name.", self._vendor)
        if self._calls or self._finish in _CALLS:  # some servers say "stop" all the same
            return self._finished("calls")
        return self._finished("end")

    def _finished(self, stop: StopReason, detail: str = "") -> ReplyCompleted:
        parts = [kind(text="".join(pieces)) for kind, pieces in self._parts]
        calls = [
            Call(
                call_id=writing.call_id,
                tool=writing.tool,
                arguments=parse_arguments("".join(writing.arguments), cut=stop == "outputLimit"),
            )
            for writing in self._named
        ]
        message = Assistant(parts=(*parts, *calls), native=self._native(parts, calls), cut=stop == "outputLimit")
        return ReplyCompleted(
            message,
            self._usage,
            stop,
            detail,
            self._sources,
            self._finish in _FULL,
            finish_reason=self._word,
            request_id=self.request_id,
        )

    def _native(self, parts: list[Text | Thinking], calls: list[Call]) -> Native | None:
        text = "".join(part.text for part in parts if isinstance(part, Text))
        if not text and not calls:
            return None
        wire: dict[str, Any] = {"role": "assistant", "content": text or None}
        if self._reasoning:
            wire["reasoning_details"] = self._reasoning
        else:
            wire |= {name: "".join(pieces) for name, pieces in self._thought.items()}
        ids: dict[str, str] = {}
        for writing, call in zip(self._named, calls, strict=True):
            # An id that is missing, or was used for an earlier call, is replaced by ours.
            theirs = writing.theirs
            if not theirs or theirs in ids or self._conversation.has_wire_id(theirs):
                theirs = call.call_id
            ids[theirs] = call.call_id
            well_formed = isinstance(call.arguments, dict)
            wire_call = call_of(theirs, call, as_json("".join(writing.arguments)) if well_formed else None)
            if writing.extra is not None:
                wire_call["extra_content"] = writing.extra
            wire.setdefault("tool_calls", []).append(wire_call)
        return Native(wire=WIRE, model=self._model, blocks=cast(JsonValue, wire), call_ids=ids)


def _function(piece: dict[str, Any]) -> dict[str, Any]:
    """The name and the arguments of a piece of a call: under `function`, or where gateways that translate from
    Gemini or Anthropic leave them."""
    for name in ("function", "functionCall", "function_call"):
        if isinstance(function := piece.get(name), dict):
            return cast(dict[str, Any], function)
    return piece


def _given(function: dict[str, Any]) -> Any:
    """The arguments; None where there are none, or not yet."""
    values = [function[name] for name in _ARGUMENTS if function.get(name) is not None]
    return next((value for value in values if value != ""), None)


def _cited(annotation: dict[str, Any]) -> Iterator[Source]:
    """What an annotation refers to: a page (OpenAI's and OpenRouter's search), or a file."""
    match annotation:
        case {"type": "url_citation", "url_citation": {"url": str(url), **more}}:
            yield Source(title=str(more.get("title") or url), url=url, quote=str(more.get("content") or ""))
        case {"type": "file_citation", "file_citation": {"filename": str(name)}}:
            yield Source(title=name)
        case _:
            pass


def _usage(counted: dict[str, Any]) -> TokenUsage:
    """The prompt's tokens include those from and to a cache, the completion's those of reasoning."""
    prompt: dict[str, Any] = counted.get("prompt_tokens_details") or {}
    completion: dict[str, Any] = counted.get("completion_tokens_details") or {}
    cached = tokens(prompt.get("cached_tokens") or counted.get("prompt_cache_hit_tokens"))
    written = tokens(prompt.get("cache_write_tokens"))
    thoughts = tokens(completion.get("reasoning_tokens"))
    searched: dict[str, Any] = counted.get("server_tool_use") or {}
    return TokenUsage(
        input=max(0, tokens(counted.get("prompt_tokens")) - cached - written),
        cache_read=cached,
        cache_write=written,
        output=max(0, tokens(counted.get("completion_tokens")) - thoughts),
        thoughts=thoughts,
        searches=tokens(searched.get("web_search_requests")),
        told_usd=_charged(counted),
    )


def _charged(counted: dict[str, Any]) -> float:
    """OpenRouter's `cost` (openrouter.ai/docs, "Usage Accounting"). With a key of the user's own at the provider it is
    OpenRouter's fee alone, and what the provider charges stands beside it."""
    details: dict[str, Any] = counted.get("cost_details") or {}
    fee: Any = counted.get("cost")
    upstream: Any = details.get("upstream_inference_cost") if counted.get("is_byok") is True else None
    return sum(float(cost) for cost in (fee, upstream) if isinstance(cost, float | int) and 0 < cost < math.inf)
