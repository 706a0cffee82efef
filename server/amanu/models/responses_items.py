"""A message of the conversation as serialised items of OpenAI's Responses API. The result depends only on the messages
up to it, their pictures and the model, so sending it again costs no more than a join.

Items go back as they came, but without their ids: the service stores nothing (`store: false`), and it refuses a
reasoning item with an id unless the item that followed it is there too (github.com/openai/codex omits ids as well).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from amanu.core.conversation import Assistant, Conversation, Result, Results, User
from amanu.models.image_layout import WirePicture, laid_out, result_layout
from amanu.models.openai_messages import call_of
from amanu.models.wire_messages import dumps, split_status
from amanu.system.file_kind import PDF
from amanu_protocol.items import ModelInfo

WIRE = "openai-responses"
"""The value of `Native.wire` that marks items written here."""

_REASONING = ("reasoning", "compaction")
"""Items that only the model that wrote them can read, and only while the service still has their key."""


class WireItems(NamedTuple):
    """The items of one message: JSON objects joined by commas; empty if the message has no content."""

    data: bytes
    without_reasoning: bytes
    """Sent instead of `data` when the service no longer accepts the encrypted reasoning in it."""


def items_of(conversation: Conversation, index: int, model: ModelInfo) -> WireItems:
    """The items of message `index` for `model`."""
    match conversation[index]:
        case User() as message:
            return _same(_heard(message, conversation, model))
        case Assistant() as reply:
            return _reply(reply, model.model_id)
        case Results() as answers:
            items = _answers(answers, conversation, index, model)
            return _same([*items, *_heard(answers, conversation, model)])


def native_items(reply: object) -> list[dict[str, Any]] | None:
    """The reply's items as this API sent them; None if another API did, or if the calls have changed since."""
    native = reply.native if isinstance(reply, Assistant) else None
    if native is None or native.wire != WIRE:
        return None
    assert isinstance(reply, Assistant)
    same = list(native.call_ids.values()) == [call.call_id for call in reply.calls]
    return cast(list[dict[str, Any]], native.blocks) if same else None


def call_item(wire_id: str, call: Any, written: str | None = None) -> dict[str, Any]:
    """A function call. `written`: the arguments as the model wrote them, if they were a JSON object."""
    return {"type": "function_call", "call_id": wire_id, **call_of(wire_id, call, written)["function"]}


def _same(items: Sequence[dict[str, Any]]) -> WireItems:
    data = b",".join(map(dumps, items))
    return WireItems(data, data)


def _heard(message: User | Results, conversation: Conversation, model: ModelInfo) -> list[dict[str, Any]]:
    """What the user says as one message, and what the daemon says of the session as another."""
    notes, status = split_status(message, model)
    return [*_said(laid_out(notes, conversation, model)), *_said([status], "developer")]


def _said(parts: Sequence[str | WirePicture], role: str = "user") -> list[dict[str, Any]]:
    """The parts as one message; an empty list if they are blank."""
    content = _content(parts)
    return [{"type": "message", "role": role, "content": content}] if content else []


def _content(parts: Sequence[str | WirePicture]) -> list[dict[str, Any]]:
    return [
        {"type": "input_text", "text": part} if isinstance(part, str) else _shown(part)
        for part in parts
        if not isinstance(part, str) or part.strip()
    ]


def _shown(picture: WirePicture) -> dict[str, Any]:
    url = f"data:{picture.media_type};base64,{picture.data}"
    if picture.media_type == PDF:
        return {"type": "input_file", "filename": picture.file_name, "file_data": url}
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _reply(reply: Assistant, model_id: str) -> WireItems:
    items = native_items(reply)
    if items is None:
        return _same(_neutral(reply))
    open_items = [item for item in items if item["type"] not in _REASONING]
    plain = b",".join(map(dumps, open_items))
    # The service would drop another model's reasoning; text and calls mean the same to both models.
    own = reply.native is not None and reply.native.model == model_id and len(open_items) < len(items)
    return WireItems(b",".join(map(dumps, items)) if own else plain, plain)


def _neutral(reply: Assistant) -> list[dict[str, Any]]:
    """Text and calls only: the thinking of another vendor's model is of no use here."""
    items: list[dict[str, Any]] = []
    if reply.text.strip():
        content: list[dict[str, Any]] = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "content": content})
    return [*items, *(call_item(_wire_id(call.call_id), call) for call in reply.calls)]


def _answers(answers: Results, conversation: Conversation, index: int, model: ModelInfo) -> list[dict[str, Any]]:
    """The output of each call, with the id and kind the call has on the wire."""
    own = native_items(conversation[index - 1])
    if own is None:
        calls = [("function_call", _wire_id(result.call_id)) for result in answers.results]
    else:
        calls = [(item["type"], item["call_id"]) for item in own if item["type"] in CALLS]
    return [
        {"type": f"{kind}_output", "call_id": wire_id, "output": _output(result, conversation, model)}
        for result, (kind, wire_id) in zip(answers.results, calls, strict=True)
    ]


def _output(result: Result, conversation: Conversation, model: ModelInfo) -> str | list[dict[str, Any]]:
    text, fields, shown = result_layout(result, conversation, model)
    text = f"Error: {text}" if result.is_error and not fields else text
    return _content([text, *shown]) if shown else text


CALLS = ("function_call", "custom_tool_call")
"""Kinds of items that need an output from us."""


def _wire_id(call_id: str) -> str:
    """`call_id` as the service accepts it; its only rule is a maximum length."""
    return call_id if len(call_id) <= _LONGEST_ID else call_id[-_LONGEST_ID:]


_LONGEST_ID = 64
"""Characters; the service refuses more ("Invalid 'input[3].call_id': string too long")."""
