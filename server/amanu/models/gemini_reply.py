"""A reply of Gemini in the making: chunks in, deltas out, and the whole message at the end."""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast
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
)
from amanu.models.gemini_contents import WIRE
from amanu.models.limits import check_arguments, check_calls, tokens, too_deep
from amanu.models.wire_messages import dumps
from amanu_protocol.items import Source

if TYPE_CHECKING:
    from google.genai.types import Candidate, GenerateContentResponse, GenerateContentResponseUsageMetadata, Part

_BROKEN: dict[str, Breakage] = {
    "FINISH_REASON_UNSPECIFIED": "broken",
    "MALFORMED_FUNCTION_CALL": "malformedCall",
    "MALFORMED_RESPONSE": "broken",
    "MISSING_THOUGHT_SIGNATURE": "broken",
    "OTHER": "broken",
    "TOO_MANY_TOOL_CALLS": "broken",
    "UNEXPECTED_TOOL_CALL": "unexpectedCall",
}
"""Finish reasons a second attempt can mend. What is neither here nor in `_STOPS` is a refusal (SAFETY,
RECITATION, BLOCKLIST, PROHIBITED_CONTENT, SPII, and whatever is invented next)."""

_STOPS: dict[str, StopReason] = {"STOP": "end", "MAX_TOKENS": "outputLimit", "CONTINUATION": "paused"}

_NO_DATA = {"thought", "thoughtSignature"}
"""A part with nothing else is refused when it comes back."""


_MOST_REQUESTS = 16
"""For one reply: as many as fill the window."""


class GeminiReply:
    """Takes the chunks of one reply in order. A long one comes over several requests (Gemini 4): after each, `resume`
    says how to ask for the rest."""

    def __init__(self, request: Request) -> None:
        self._model = request.model.model_id
        self._parts: list[Text | Thinking | Call] = []
        self._blocks: list[dict[str, Any]] = []
        """Wire parts. Signatures stay on the very part they came on, be its text empty."""
        self._call_ids: dict[str, str] = {}
        self._run: tuple[type[Text] | type[Thinking], list[str]] | None = None
        """Text or thoughts that go on, in pieces: joined once."""
        self._unsigned: list[str] = []
        """Text since the last part of another kind, for `_blocks`."""
        self._finish: str | None = None
        self._said = ""
        self._blocked: str | None = None
        self._usage = TokenUsage()
        """Usage of the current request."""
        self._used: list[TokenUsage] = []
        """Usage of the earlier requests for this reply."""
        self._token: bytes | None = None
        """The last one that came, to go on from."""
        self._is_exact = False
        """Nothing was shown since."""
        self._resumed: list[bytes] = []
        """The tokens that were sent."""
        self._sources: list[Source] = []
        self._calls = 0

    def add(self, chunk: "GenerateContentResponse") -> Iterator[Delta]:
        """Take in a chunk. It may lack candidates, content, parts or a role, and several may say STOP."""
        if chunk.usage_metadata is not None:
            self._usage = _usage(chunk.usage_metadata)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason is not None:
            self._blocked = _word(chunk.prompt_feedback.block_reason)
        for candidate in (chunk.candidates or ())[:1]:
            parts = candidate.content.parts if candidate.content is not None else None
            self._is_exact &= not parts
            for part in parts or ():
                yield from self._add_part(part)
            if candidate.continuation_token:
                self._token, self._is_exact = candidate.continuation_token, True
            self._sources += _cited(candidate)
            if candidate.finish_reason is not None and self._finish in (None, "STOP"):
                self._finish = _word(candidate.finish_reason)
                self._said = candidate.finish_message or ""

    def _add_part(self, part: "Part") -> Iterator[Delta]:
        if part.function_call is not None:
            yield from self._add_call(part)
        elif part.text is not None:
            part.text = _whole(part.text)
            kind = Thinking if part.thought else Text
            self._add_text(kind, part)
            if part.text:
                yield ThoughtDelta(part.text) if part.thought else TextDelta(part.text)
        elif (unknown := part.model_dump(mode="json", by_alias=True, exclude_none=True)).keys() - _NO_DATA:
            self._end_text()
            self._blocks.append(_with_signature(unknown, part))

    def _add_text(self, kind: type[Text] | type[Thinking], part: "Part") -> None:
        text = part.text or ""
        if text:
            if self._run is None or self._run[0] is not kind:
                self._end_run()
                self._run = (kind, [])
            self._run[1].append(text)
        if part.thought_signature is not None:
            self._end_text()
            thought = {"thought": True} if part.thought else {}
            self._blocks.append(_with_signature({"text": text, **thought}, part))
        elif kind is Text and text:
            self._unsigned.append(text)
        # A thought without a signature is a summary for people; Gemini does not want it back.

    def _add_call(self, part: "Part") -> Iterator[Delta]:
        assert part.function_call is not None
        self._end_run()
        self._end_text()
        theirs, tool = part.function_call.id, _whole(part.function_call.name or "unnamed")
        self._calls += 1
        check_calls(self._calls, "Gemini")
        if too_deep(part.function_call.args):
            raise StreamBroken(f"Gemini called {tool} with arguments that are nested too deeply.", "Gemini")
        written = dumps(part.function_call.args or {})
        check_arguments(len(written), "Gemini")
        arguments: dict[str, Any] = json.loads(written)
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

    def resume(self) -> bytes | None:
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
        self._used.append(self._usage)
        self._usage = TokenUsage()
        self._finish, self._said, self._is_exact = None, "", True
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
        stop = _STOPS.get(self._finish, "refused")
        if stop == "refused":
            return self._finished(stop, f"{self._finish} {self._said}".strip())
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
        return ReplyCompleted(message, _sum([*self._used, self._usage]), stop, detail, self._sources)

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
    )


def _cited(candidate: "Candidate") -> Iterator[Source]:
    """What the answer is grounded on (pages, places, documents of a store), and what it recites."""
    grounding = candidate.grounding_metadata
    for chunk in (grounding.grounding_chunks if grounding is not None else None) or ():
        if chunk.retrieved_context is not None:
            passage = chunk.retrieved_context
            yield _source(passage.title, passage.uri, passage.text)
        elif (page := chunk.web or chunk.maps) is not None:
            yield _source(page.title, page.uri)
    recited = candidate.citation_metadata
    for citation in (recited.citations if recited is not None else None) or ():
        yield _source(citation.title, citation.uri)


def _source(title: str | None, url: str | None, quote: str | None = None) -> Source:
    return Source(title=title or url or "A source without a name", url=url or "", quote=quote or "")


def _with_signature(wire: dict[str, Any], part: "Part") -> dict[str, Any]:
    """With the signature in standard base64, as it came (the SDK would send the URL-safe kind)."""
    if part.thought_signature is not None:
        wire["thoughtSignature"] = b64encode(part.thought_signature).decode()
    return wire


def _whole(text: str) -> str:
    """Half a surrogate pair, which is no text to anybody else, becomes "?"."""
    return text.encode("utf-8", "replace").decode()


def _word(value: Any) -> str:
    """The bare word of an enum the SDK knows or made up."""
    return str(getattr(value, "value", value)).upper()


def _usage(counted: "GenerateContentResponseUsageMetadata") -> TokenUsage:
    """Each chunk's figures are the totals so far. The prompt's include what came from the cache; the
    candidates' exclude thoughts."""
    cached = tokens(counted.cached_content_token_count)
    prompt = tokens(counted.prompt_token_count) + tokens(counted.tool_use_prompt_token_count)
    return TokenUsage(
        input=max(0, prompt - cached),
        cache_read=cached,
        output=tokens(counted.candidates_token_count),
        thoughts=tokens(counted.thoughts_token_count),
        tools=tokens(counted.tool_use_prompt_token_count),
    )
