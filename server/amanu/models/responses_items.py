"""A message of the conversation as items of OpenAI's Responses API, serialised: a function of the messages up to it,
their pictures and the model alone, so that what was sent once costs a join.

Items go back as they came, without their ids: nothing is stored at the service (`store: false`), and a reasoning item
that has an id is refused without the item that followed it (github.com/openai/codex leaves ids out too).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from amanu.core.conversation import Assistant, Conversation, Results, User
from amanu.models.image_layout import WirePicture, laid_out
from amanu.models.openai_messages import call_of
from amanu.models.wire_messages import dumps
from amanu_protocol.items import ModelInfo

WIRE = "openai-responses"
"""Marks what this translator wrote (`Native.wire`)."""

_REASONING = ("reasoning", "compaction")
"""Items that only the model that wrote them can read, if the service still knows their key."""


class WireItems(NamedTuple):
    """JSON objects joined by commas, as many as a message takes; empty if it has nothing to say."""

    data: bytes
    without_reasoning: bytes
    """To be sent instead of `data` where the service does not take its encrypted reasoning any more."""


def items_of(conversation: Conversation, index: int, model: ModelInfo) -> WireItems:
    """The items of message `index` for `model`."""
    match conversation[index]:
        case User() as message:
            return _same(_said(laid_out(message.parts, conversation, model)))
        case Assistant() as reply:
            return _reply(reply, model.model_id)
        case Results() as answers:
            items = _answers(answers, conversation[index - 1])
            return _same([*items, *_said(laid_out(answers.notes, conversation, model))])


def native_items(reply: object) -> list[dict[str, Any]] | None:
    """The items of the reply as this wire wrote them; None if it did not, or when its calls were changed since."""
    native = reply.native if isinstance(reply, Assistant) else None
    if native is None or native.wire != WIRE:
        return None
    assert isinstance(reply, Assistant)
    same = list(native.call_ids.values()) == [call.call_id for call in reply.calls]
    return cast(list[dict[str, Any]], native.blocks) if same else None


def call_item(wire_id: str, call: Any, written: str | None = None) -> dict[str, Any]:
    """A function call. `written`: its arguments as the model wrote them, if that was a JSON object."""
    return {"type": "function_call", "call_id": wire_id, **call_of(wire_id, call, written)["function"]}


def _same(items: Sequence[dict[str, Any]]) -> WireItems:
    data = b",".join(map(dumps, items))
    return WireItems(data, data)


def _said(parts: Sequence[str | WirePicture]) -> list[dict[str, Any]]:
    """What the user says, as one message; nothing if it is blank."""
    content = [
        {"type": "input_text", "text": part}
        if isinstance(part, str)
        else {"type": "input_image", "image_url": f"data:{part.media_type};base64,{part.data}", "detail": "auto"}
        for part in parts
        if not isinstance(part, str) or part.strip()
    ]
    return [{"type": "message", "role": "user", "content": content}] if content else []


def _reply(reply: Assistant, model_id: str) -> WireItems:
    items = native_items(reply)
    if items is None:
        return _same(_neutral(reply))
    open_items = [item for item in items if item["type"] not in _REASONING]
    plain = b",".join(map(dumps, open_items))
    # Another model's reasoning the service would drop; what was said and called means the same to both.
    own = reply.native is not None and reply.native.model == model_id and len(open_items) < len(items)
    return WireItems(b",".join(map(dumps, items)) if own else plain, plain)


def _neutral(reply: Assistant) -> list[dict[str, Any]]:
    """Text and calls; what another vendor's model thought means nothing here."""
    items: list[dict[str, Any]] = []
    if reply.text.strip():
        content: list[dict[str, Any]] = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "content": content})
    return [*items, *(call_item(_wire_id(call.call_id), call) for call in reply.calls)]


def _answers(answers: Results, reply: object) -> list[dict[str, Any]]:
    """The output of each call, under the id and of the kind that the call has on the wire."""
    own = native_items(reply)
    if own is None:
        calls = [("function_call", _wire_id(result.call_id)) for result in answers.results]
    else:
        calls = [(item["type"], item["call_id"]) for item in own if item["type"] in CALLS]
    return [
        {
            "type": f"{kind}_output",
            "call_id": wire_id,
            "output": f"Error: {result.text}" if result.is_error else result.text,
        }
        for result, (kind, wire_id) in zip(answers.results, calls, strict=True)
    ]


CALLS = ("function_call", "custom_tool_call")
"""Items that wait for an output of ours."""


def _wire_id(call_id: str) -> str:
    """`call_id` as the service takes it: it has no rule but a length."""
    return call_id if len(call_id) <= _LONGEST_ID else call_id[-_LONGEST_ID:]


_LONGEST_ID = 64
"""Characters (refusal "Invalid 'input[3].call_id': string too long")."""
