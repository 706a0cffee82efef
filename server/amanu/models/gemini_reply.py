"""A reply of Gemini in the making: chunks in, deltas out, and the whole message at the end."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

from pydantic import JsonValue

from amanu.core.conversation import Assistant, Call, Native, Text, Thinking
from amanu.core.model import (
    Breakage,
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
from amanu.core.nesting import too_deep
from amanu.core.service_tiers import served_tier
from amanu.models.gemini_contents import WIRE
from amanu.models.limits import check_arguments, check_calls, tokens
from amanu.models.reply_values import require_string, vendor_word
from amanu.models.wire_messages import dumps
from amanu_protocol.items import ServiceTier, Source

_BROKEN: dict[str, Breakage] = {
    "FINISH_REASON_UNSPECIFIED": "broken",
    "MALFORMED_FUNCTION_CALL": "malformedCall",
    "MALFORMED_RESPONSE": "broken",
    "MISSING_THOUGHT_SIGNATURE": "broken",
    "OTHER": "broken",
    "TOO_MANY_TOOL_CALLS": "broken",
    "UNEXPECTED_TOOL_CALL": "unexpectedCall",
}
"""Finish reasons a second attempt can mend."""

_STOPS: dict[str, StopReason] = {"STOP": "end", "MAX_TOKENS": "outputLimit", "CONTINUATION": "paused"}
_REFUSED = {
    "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "ESCALATION",
}  # fmt: skip
"""Whatever is invented next ends an answer like STOP, if there is one."""

_OTHERS = (
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "mediaResolution",
    "videoMetadata",
    "partMetadata",
)
"""What a part may hold beside text and a call, by the installed SDK's `Part`; sent back as it came."""


_MOST_REQUESTS = 16
"""For one reply: as many as fill the window."""


class GeminiReply:
    """Takes the chunks of one reply in order. A long one comes over several requests (Gemini 4): after each, `resume`
    says how to ask for the rest."""

    def __init__(self, request: Request) -> None:
        self._model = request.model.model_id
        self._tier: ServiceTier = request.service_tier
        self._parts: list[Text | Thinking | Call] = []
        self._blocks: list[dict[str, Any]] = []
        """Wire parts. Signatures stay on the very part they came on, be its text empty."""
        self._call_ids: dict[str, str] = {}
        self._run: tuple[type[Text] | type[Thinking], list[str]] | None = None
        """Text or thoughts that go on, in pieces: joined once."""
        self._unsigned: list[str] = []
        """Text since the last part of another kind, for `_blocks`."""
        self._finish: str | None = None
        self._word = ""
        """The service's own word for the end, as it came."""
        self._request_id = ""
        self._said = ""
        self._blocked: str | None = None
        self._counted: dict[str, Any] = {}
        """The last count of the current request: each chunk has one, of all so far."""
        self._used: list[TokenUsage] = []
        """Usage of the earlier requests for this reply."""
        self._token: str | None = None
        """The last one that came, to go on from."""
        self._is_exact = False
        """Nothing was shown since."""
        self._resumed: list[str] = []
        """The tokens that were sent."""
        self._sources: list[Source] = []
        self._queries: set[str] = set()
        """The texts that were searched for on the web."""
        self._calls = 0

    @property
    def _whole_usage(self) -> TokenUsage:
        """The usage of all requests for the reply so far."""
        return replace(_sum([*self._used, _usage(self._counted, self._tier)]), searches=len(self._queries))

    def add(self, chunk: dict[str, Any]) -> Iterator[Delta]:
        """Take in a chunk. It may lack candidates, content, parts or a role, and several may say STOP. One of the wrong
        form raises `LookupError`, `TypeError` or `AttributeError`."""
        if (counted := chunk.get("usageMetadata")) is not None:
            self._counted = _require_object(counted)
            yield UsageCounted(self._whole_usage)
        self._request_id = vendor_word(chunk.get("responseId")) or self._request_id
        if blocked := _object(chunk.get("promptFeedback")).get("blockReason"):
            self._blocked = require_string(blocked).upper()
            self._word = vendor_word(blocked)
        for candidate in _objects(chunk.get("candidates"))[:1]:
            parts = _objects(_object(candidate.get("content")).get("parts"))
            self._is_exact &= not parts
            for part in parts:
                yield from self._add_part(part)
            if token := candidate.get("continuationToken"):
                self._token, self._is_exact = _standard(token), True
            if "groundingMetadata" in candidate or "citationMetadata" in candidate:
                self._sources += _cited(candidate)
                self._queries.update(_queries(candidate))
            if (finish := candidate.get("finishReason")) is not None and self._finish in (None, "STOP"):
                self._finish = require_string(finish).upper()
                self._word = vendor_word(finish)
                self._said = candidate.get("finishMessage") or ""

    def _add_part(self, part: dict[str, Any]) -> Iterator[Delta]:
        if part.get("functionCall") is not None:
            yield from self._add_call(part, part["functionCall"])
        elif (text := part.get("text")) is not None:
            thought = bool(part.get("thought"))
            self._add_text(Thinking if thought else Text, require_string(text), part)
            if text:
                yield ThoughtDelta(text) if thought else TextDelta(text)
        elif other := {name: part[name] for name in _OTHERS if part.get(name) is not None}:
            self._end_text()
            self._blocks.append(_with_signature(other, part))

    def _add_text(self, kind: type[Text] | type[Thinking], text: str, part: dict[str, Any]) -> None:
        if text:
            if self._run is None or self._run[0] is not kind:
                self._end_run()
                self._run = (kind, [])
            self._run[1].append(text)
        if part.get("thoughtSignature") is not None:
            self._end_text()
            thought = {"thought": True} if part.get("thought") else {}
            self._blocks.append(_with_signature({"text": text, **thought}, part))
        elif kind is Text and text:
            self._unsigned.append(text)
        # A thought without a signature is a summary for people; Gemini does not want it back.

    def _add_call(self, part: dict[str, Any], called: dict[str, Any]) -> Iterator[Delta]:
        self._end_run()
        self._end_text()
        theirs, tool = require_string(called.get("id") or ""), require_string(called.get("name") or "unnamed")
        self._calls += 1
        check_calls(self._calls, "Gemini")
        arguments: dict[str, Any] = _object(called.get("args"))
        if not isinstance(arguments, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{arguments!r} are no arguments")
        if too_deep(arguments):
            raise StreamBroken(f"Gemini called {tool} with arguments that are nested too deeply.", "Gemini")
        written = dumps(arguments)
        check_arguments(len(written), "Gemini")
        call_id = f"call_{uuid4().hex[:16]}"
        if theirs in self._call_ids:
            theirs = call_id  # two calls under one id could not be told apart
        identity = {"id": theirs} if theirs else {}
        if theirs:
            self._call_ids[theirs] = call_id
        call = {"functionCall": {**identity, "name": tool, "args": arguments}}
        self._blocks.append(_with_signature(call, part))
        self._parts.append(Call(call_id=call_id, tool=tool, arguments=arguments))
        yield CallStarted(call_id, tool)
        yield CallDelta(call_id, written.decode())

    def resume(self) -> str | None:
        """The token for a request that goes on where this one ended; None when the reply is over, or cannot be gone on
        with. One that broke off goes on if nothing would be said twice or left out, and once from the same place."""
        token = self._token
        if token is None or self._blocked is not None or len(self._resumed) >= _MOST_REQUESTS:
            return None
        if self._finish == "CONTINUATION":
            can_resume = (
                self._is_exact and token not in self._resumed
            )  # the same token again would repeat the same text
        else:
            can_resume = self._finish is None and self._is_exact and self._resumed.count(token) < 2
        if not can_resume:
            return None
        self._resumed.append(token)
        self._used.append(_usage(self._counted, self._tier))
        self._counted = {}
        self._finish, self._word, self._said, self._is_exact = None, "", "", True
        return token

    def pause(self) -> bool:
        """The request for the rest failed: what there is becomes a reply that can be gone on from. False if there is
        none, or something was shown that the next token would not follow."""
        if not self._resumed or self._finish is not None or not self._is_exact:
            return False
        self._finish = "CONTINUATION"
        return True

    def done(self) -> ReplyCompleted:
        """The whole reply. Raises `StreamBroken` when it is none."""
        self._end_run()
        self._end_text()
        if self._finish is None and self._blocked is not None:
            return self._finished("refused", f"{self._blocked} The prompt was rejected.")
        if self._finish is None:
            raise StreamBroken("Gemini's reply ended before it was complete.", "Gemini", breakage="noFinish")
        if self._finish in _BROKEN:
            message = f"Gemini gave up on its reply: {self._finish} {self._said}".strip() + "."
            raise StreamBroken(message, "Gemini", breakage=_BROKEN[self._finish])
        stop = _STOPS.get(self._finish, "end")
        answers = self._finish in _STOPS or any(isinstance(part, Text | Call) for part in self._parts)
        if self._finish in _REFUSED or not answers:
            return self._finished("refused", f"{self._finish} {self._said}".strip())
        if stop != "end":
            return self._finished(stop, self._said)
        if any(isinstance(part, Call) for part in self._parts):
            return self._finished("calls")
        return self._finished("end")

    def _finished(self, stop: StopReason, detail: str = "") -> ReplyCompleted:
        native = Native(wire=WIRE, model=self._model, blocks=cast(JsonValue, self._blocks), call_ids=self._call_ids)
        message = Assistant(
            parts=tuple(self._parts),
            native=native if self._blocks else None,
            cut=stop == "outputLimit",
        )
        return ReplyCompleted(
            message,
            self._whole_usage,
            stop,
            detail,
            self._sources,
            finish_reason=self._word,
            request_id=self._request_id,
        )

    def _end_run(self) -> None:
        if self._run is not None:
            kind, pieces = self._run
            self._parts.append(kind(text="".join(pieces)))
            self._run = None

    def _end_text(self) -> None:
        if self._unsigned:
            self._blocks.append({"text": "".join(self._unsigned)})
            self._unsigned = []


def _sum(usages: Sequence[TokenUsage]) -> TokenUsage:
    """Of the requests for one reply. Each holds the prompt again."""
    prompts = [prompt for usage in usages if (prompt := usage.input + usage.cache_read)]
    return TokenUsage(
        input=sum(usage.input for usage in usages),
        cache_read=sum(usage.cache_read for usage in usages),
        output=sum(usage.output for usage in usages),
        thoughts=sum(usage.thoughts for usage in usages),
        tools=sum(usage.tools for usage in usages),
        repeated=sum(prompts[1:]),
        service_tier=usages[-1].service_tier,
    )


def _cited(candidate: dict[str, Any]) -> Iterator[Source]:
    """What the answer is grounded on (pages, places, documents of a store), and what it recites: `citationSources` to
    the Gemini API, `citations` to Vertex AI."""
    for chunk in _objects(_object(candidate.get("groundingMetadata")).get("groundingChunks")):
        for kind in ("retrievedContext", "web", "maps"):
            if (found := chunk.get(kind)) is not None:
                yield _source(found)
                break
    recited = _object(candidate.get("citationMetadata"))
    for citation in _objects(recited.get("citationSources") or recited.get("citations")):
        yield _source(citation)


def _queries(candidate: dict[str, Any]) -> list[str]:
    """Each is charged for (ai.google.dev/gemini-api/docs/google-search); a later chunk may repeat them."""
    queries: list[Any] = _object(candidate.get("groundingMetadata")).get("webSearchQueries") or []
    return [query for query in queries if isinstance(query, str) and query]


def _source(found: dict[str, Any]) -> Source:
    title, url, quote = (require_string(found.get(name) or "") for name in ("title", "uri", "text"))
    return Source(title=title or url or "A source without a name", url=url, quote=quote)


def _with_signature(wire: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    if (signature := part.get("thoughtSignature")) is not None:
        wire["thoughtSignature"] = _standard(signature)
    return wire


def _standard(base64: Any) -> str:
    """Bytes in the alphabet that all services read; some write the URL-safe one, or leave the padding off."""
    text = require_string(base64).replace("-", "+").replace("_", "/").rstrip("=")
    return text + "=" * (-len(text) % 4)


def _object(value: Any) -> dict[str, Any]:
    """The value; {} where there is none."""
    return value or {}


def _objects(value: Any) -> Sequence[dict[str, Any]]:
    return value or ()


def _require_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} instead of an object")
    return cast("dict[str, Any]", value)


def _usage(counted: dict[str, Any], asked: ServiceTier) -> TokenUsage:
    """The prompt's tokens include what came from the cache; the candidates' exclude thoughts."""
    cached = tokens(counted.get("cachedContentTokenCount"))
    prompt = tokens(counted.get("promptTokenCount")) + tokens(counted.get("toolUsePromptTokenCount"))
    return TokenUsage(
        input=max(0, prompt - cached),
        cache_read=cached,
        output=tokens(counted.get("candidatesTokenCount")),
        thoughts=tokens(counted.get("thoughtsTokenCount")),
        tools=tokens(counted.get("toolUsePromptTokenCount")),
        service_tier=served_tier(counted.get("serviceTier"), asked),
    )
