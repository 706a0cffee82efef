"""Everything that speaks chat completions: OpenRouter, Google's compatible endpoint, Ollama, llama.cpp, vLLM, and what
the user sets under `[endpoints]`.

What a message looks like on the wire is in `openai_messages.py`, what a reply is made of in `openai_reply.py`.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from amanu.core.model import Delta, Request, StreamBroken
from amanu.core.model_families import family
from amanu.models.openai_endpoint import OpenAIEndpoint
from amanu.models.openai_messages import WireObjects, message
from amanu.models.openai_reply import OpenAIReply
from amanu.models.request_fields import extended
from amanu.models.wire_messages import WireMessages, dumps, listed, loop_start


@dataclass(frozen=True)
class EndpointQuirks:
    """Facts of an endpoint (those of its models are in `core/model_families.py`)."""

    streaming: Literal["always", "untilBroken", "never"] = "untilBroken"
    """`untilBroken`: after a streamed call came malformed, the next few replies of that model are asked for whole."""
    searches: bool = False
    """The service can search the web itself, as OpenRouter does."""


_WHOLE_REPLIES = 5
"""Replies of a model that are asked for whole after a streamed call came malformed. Then it is streamed again: the
fault may have been the model's, not the stream's."""


class OpenAICompatibleModel:
    """`Model` for one endpoint. Arguments as `OpenAIEndpoint`'s."""

    def __init__(
        self, vendor: str, base_url: str, key: str | None = None, quirks: EndpointQuirks | None = None
    ) -> None:
        self._endpoint = OpenAIEndpoint(vendor, base_url, key)
        self._quirks = quirks or EndpointQuirks()
        self._whole_left: Counter[str] = Counter()
        """Model → how many of its next replies are asked for whole."""
        self._messages = WireMessages(message)
        self.searches = self._quirks.searches

    def __repr__(self) -> str:
        return f"OpenAICompatibleModel({self._endpoint.vendor!r}, {self._endpoint.base_url!r})"

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        vendor = self._endpoint.vendor
        reply = OpenAIReply(request, vendor)
        model = request.model.model_id
        streaming = self._quirks.streaming != "never" and not self._whole_left[model] and not request.whole
        body = self._body(request, streaming)
        async with aclosing(self._endpoint.post("/chat/completions", body, reply, streaming=streaming)) as chunks:
            async for chunk in chunks:
                try:
                    deltas = list(reply.add(chunk))
                except (AttributeError, TypeError) as error:
                    raise self._endpoint.unreadable(repr(error)) from None
                for delta in deltas:
                    yield delta
        if streaming and reply.malformed and self._quirks.streaming == "untilBroken":
            self._whole_left[model] = _WHOLE_REPLIES
            words = (
                f"{vendor} streamed a broken tool call; Amanu asks for the next few replies of this model in one piece."
            )
            raise StreamBroken(words, vendor)
        end = reply.done()
        if not streaming and self._whole_left[model]:
            self._whole_left[model] -= 1
        yield end

    async def connect(self) -> None:
        await self._endpoint.connect()

    async def close(self) -> None:
        await self._endpoint.close()

    def _body(self, request: Request, streaming: bool) -> bytes:
        """The request. The messages are joined as they are kept; only the rest is made anew."""
        facts = family(request.model.model_id)
        loop = self._loop_start(request) if facts.must_return == "signature" else 0
        messages = self._messages.pieces(request.conversation, request.model, _place, loop)
        system = dumps({"role": "system", "content": request.system}) if request.system else b""
        comma = b"," if system and any(messages) else b""
        others: dict[str, Any] = {
            "model": request.model.model_id.partition(":")[2],
            "stream": streaming,
            facts.max_tokens_field: min(request.model.max_output, request.max_output or facts.max_output),
        }
        if streaming:
            others["stream_options"] = {"include_usage": True}
        if request.web_search:
            others["plugins"] = [{"id": "web"}]
        elif request.tools:
            if not request.callable_tools:
                others["tool_choice"] = "none"
            others["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.declared_tools
            ]
        if request.model.thinking and facts.thinking == "effort":
            others["reasoning_effort"] = facts.effort_value(request.effort)
        if request.model.thinking and facts.thinking == "reasoning":
            others["reasoning"] = {"effort": facts.effort_value(request.effort)}
        if facts.caching == "key":
            others["prompt_cache_key"] = request.session_id
        if facts.caching == "one mark":
            others["cache_control"] = {"type": "ephemeral"}
        return b"".join((b'{"messages":[', system, comma, *messages, b"],", dumps(extended(others, request))[1:]))

    def _loop_start(self, request: Request) -> int:
        """Index of the message at which the present tool loop begins, of those that are sent."""
        made = self._messages.of(request.conversation, request.model)
        sent = [index for index, objects in enumerate(made) if objects.data]
        start = loop_start([request.conversation[index] for index in sent])
        return sent[start] if sent else 0


def _place(messages: Sequence[WireObjects], index: int, loop: int) -> tuple[bytes, bytes]:
    """A message in the list (`wire_messages.Place`). `loop`: where the present tool loop begins."""
    separator, data = listed(messages, index, attrgetter("data"))
    return separator, (data and index > loop and messages[index].in_loop) or data
