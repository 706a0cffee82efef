"""OpenAI's Responses API, used statelessly: the service stores nothing, the whole conversation is sent each time, and
encrypted reasoning is sent back as it came. Since GPT-5.4, only this API accepts tools together with reasoning.

`responses_items.py` writes messages in the wire format; `responses_reply.py` assembles replies.
"""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

from amanu.core.conversation import Conversation
from amanu.core.model import Delta, Request, RequestRefused, ToolSpec
from amanu.core.model_families import EFFORTS, ModelFamily, family
from amanu.models.chatgpt_refusals import REFUSED_FIELDS
from amanu.models.openai_endpoint import OpenAIEndpoint, TokenSource
from amanu.models.request_fields import extended
from amanu.models.responses_items import WireItems, items_of
from amanu.models.responses_reply import ResponsesReply
from amanu.models.wire_messages import WireMessages, dumps, listed

_SMALLEST_OUTPUT = 16
"""Tokens; the service refuses a lower limit."""


class ResponsesModel:
    """A `Model` for one endpoint. Takes the arguments of `OpenAIEndpoint`; `on_plan`: requests count towards a ChatGPT
    plan, which refuses some fields and every request that is not streamed; `searches`: the service can search the web,
    which services that copy the API may not."""

    def __init__(
        self,
        vendor: str,
        base_url: str,
        key: str | TokenSource | None = None,
        *,
        on_plan: bool = False,
        searches: bool = False,
    ) -> None:
        self._endpoint = OpenAIEndpoint(vendor, base_url, key)
        self._items = WireMessages(items_of)
        self._concessions = _Concessions(REFUSED_FIELDS if on_plan else ())
        self._must_stream = on_plan
        self.searches = searches

    def __repr__(self) -> str:
        return f"ResponsesModel({self._endpoint.vendor!r}, {self._endpoint.base_url!r})"

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """See `Model.stream`. If the service refuses something the request can do without, the request is sent again
        without it, and so are later ones."""
        if self._must_stream:
            request = replace(request, whole=False)
        while True:
            reply = ResponsesReply(request, self._endpoint.vendor)
            known = self._concessions.count
            try:
                async with aclosing(
                    self._endpoint.post("/responses", self._body(request), reply, streaming=not request.whole)
                ) as events:
                    async for event in events:
                        try:
                            deltas = list(reply.add(event))
                        except (AttributeError, TypeError, LookupError) as error:
                            raise self._endpoint.unreadable(repr(error)) from None
                        for delta in deltas:
                            yield delta
                        self._check(event)
                break
            except RequestRefused as refusal:
                if reply.started or not (self._concessions.learn(refusal, request) or self._concessions.count > known):
                    raise
        yield reply.done()

    async def connect(self) -> None:
        await self._endpoint.connect()

    async def close(self) -> None:
        await self._endpoint.close()

    def _check(self, event: dict[str, Any]) -> None:
        """Raise the error that an event reports, if it reports one."""
        if event.get("type") == "error":
            raise self._endpoint.error(None, event)
        if event.get("type") == "response.failed":
            response = event.get("response")
            raise self._endpoint.error(None, response if isinstance(response, dict) else event)

    def _body(self, request: Request) -> bytes:
        """The request body. The items are joined from stored bytes; only the rest is serialised anew."""
        unreadable = self._concessions.unreadable(request.conversation)
        items = self._items.pieces(request.conversation, request.model, _place, unreadable)
        facts = family(request.model.model_id)
        most = min(request.model.max_output, request.max_output or facts.max_output)
        head: dict[str, Any] = {
            "model": request.model.model_id.partition(":")[2],
            "stream": not request.whole,
            **({} if request.whole else {"stream_options": {"include_obfuscation": False}}),
            "store": False,
            "max_output_tokens": max(most, _SMALLEST_OUTPUT),
        }
        if request.system:
            head["instructions"] = request.system
        if request.web_search:
            head["tools"] = [{"type": "web_search"}]
        elif request.tools:
            head["tools"] = [_tool(tool, facts) for tool in request.tools]
            if request.callable is not None:
                head["tool_choice"] = _tool_choice(request, facts)
        if facts.caching == "key":
            head["prompt_cache_key"] = request.session_id[-64:]
        if facts.thinking == "effort":
            model, effort = request.model.model_id, str(facts.effort_value(request.effort))
            effort = self._concessions.effort(model, effort)
            head["reasoning"] = {"effort": effort, **({} if effort == "none" else {"summary": "auto"})}
            head["include"] = ["reasoning.encrypted_content"]
        head = extended(head, request)
        self._concessions.leave_out(head)
        return b"".join((b'{"input":[', *items, b"],", dumps(head)[1:]))


def _place(items: Sequence[WireItems], index: int, unreadable: int) -> tuple[bytes, bytes]:
    """The items of a message in the input (`wire_messages.Place`): the first `unreadable` go without reasoning."""
    return listed(items, index, attrgetter("without_reasoning" if index < unreadable else "data"))


def _tool_choice(request: Request, facts: ModelFamily) -> str | dict[str, Any]:
    """The value that says which of the declared tools may be called. All stay declared, so that caches hold."""
    allowed = [{"type": _tool(tool, facts)["type"], "name": tool.name} for tool in request.callable_tools]
    return {"type": "allowed_tools", "mode": "auto", "tools": allowed} if allowed else "none"


def _tool(tool: ToolSpec, facts: ModelFamily) -> dict[str, Any]:
    """`strict` is set explicitly: its default is true, and a schema with optional properties would be refused."""
    if tool.freeform is not None and facts.freeform:
        text = tool.parameters["properties"][tool.freeform.argument]["description"]
        form = {"type": "grammar", "syntax": "lark", "definition": tool.freeform.grammar}
        return {"type": "custom", "name": tool.name, "description": f"{tool.description}\n{text}", "format": form}
    described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", **described, "strict": False}


class _Concessions:
    """What an endpoint has refused, and later requests therefore leave out."""

    def __init__(self, fields: Iterable[str]) -> None:
        """`fields`: those known from the start to be refused."""
        self.count = 0
        """The number of concessions. If a concurrent request adds one, a retry is worthwhile too."""
        self._unreadable: WeakKeyDictionary[Conversation, tuple[int, int]] = WeakKeyDictionary()
        """Generation of a conversation, and how many of its messages go without their encrypted reasoning."""
        self._fields = set(fields)
        """Names of the fields left out; `object.field` for a field inside an object."""
        self._efforts: dict[str, dict[str, str]] = {}
        """Model → effort → the nearest effort the model accepts."""

    def effort(self, model: str, effort: str) -> str:
        return self._efforts.get(model, {}).get(effort, effort)

    def unreadable(self, conversation: Conversation) -> int:
        """How many messages, from the start, go without their encrypted reasoning, which the service could not read: it
        may belong to another organisation."""
        generation, length = self._unreadable.get(conversation, (0, 0))
        return length if generation == conversation.generation else 0

    def leave_out(self, head: dict[str, Any]) -> None:
        for name in self._fields:
            outer, _, inner = name.partition(".")
            if inner:
                head.get(outer, {}).pop(inner, None)
            else:
                head.pop(outer, None)

    def learn(self, refusal: RequestRefused, request: Request) -> bool:
        """Take note of what was refused. True if the next request will leave it out; False if it was known already,
        or the request cannot do without it."""
        is_new = self._learn(f"{refusal.message} {refusal.details}", request)
        self.count += is_new
        return is_new

    def _learn(self, text: str, request: Request) -> bool:
        if _ABOUT_REASONING.search(text):
            conversation = request.conversation
            if self.unreadable(conversation) == len(conversation):  # none was sent: it is about what we ask for
                return self._do_without("include")
            self._unreadable[conversation] = (conversation.generation, len(conversation))
            return True
        if "reasoning" in text and "summar" in text:  # available only to verified organisations
            return self._do_without("reasoning.summary")
        if (offered := _EFFORTS_OFFERED.search(text)) is not None:
            return self._learn_effort(request, re.findall(r"'(\w+)'", offered[1]))
        field = _FIELD.search(text)
        return field is not None and field[1] in _DISPENSABLE and self._do_without(field[1])

    def _do_without(self, field: str) -> bool:
        is_new = field not in self._fields
        self._fields.add(field)
        return is_new

    def _learn_effort(self, request: Request, offered: list[str]) -> bool:
        model = request.model.model_id
        wanted = str(family(model).effort_value(request.effort))
        taken = [effort for effort in offered if effort in EFFORTS]
        if not taken or wanted not in EFFORTS or wanted in self._efforts.get(model, {}):
            return False
        rank = EFFORTS.index(wanted)
        self._efforts.setdefault(model, {})[wanted] = min(taken, key=lambda each: abs(EFFORTS.index(each) - rank))
        return True


_ABOUT_REASONING = re.compile(
    r"invalid_encrypted_content|encrypted content|encrypted_content"
    r"|item '?\"?rs_|of type 'reasoning'|'rs_[^']*'",
    re.I,
)
"""How the service says that it does not accept the reasoning sent back to it."""

_EFFORTS_OFFERED = re.compile(r"Unsupported value: '\w+' is not supported with .*?Supported values are: ([^.]*)", re.S)

_FIELD = re.compile(r"(?:Unsupported|Unknown|Unrecognized)[\w ]*(?:parameter|argument)[\w ]*:? ?'?([\w.]+)'?", re.I)

_DISPENSABLE = {
    "prompt_cache_key",
    "stream_options",
    "include",
    "max_output_tokens",
    "reasoning.summary",
    "tool_choice",
}
"""Fields a request can do without. Gateways and plans support fewer fields than the service itself."""
