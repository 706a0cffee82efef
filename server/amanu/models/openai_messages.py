"""A message of the conversation in the chat-completions form, serialised: a function of the messages up to it,
their pictures and the model alone, so that what was sent once costs a join. It is sent the same ever after, but for
the signatures that stand in for missing ones (see `gemini_contents.py`)."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from amanu.core.conversation import Assistant, Call, Conversation, Results, User
from amanu.core.model_families import MustReturn, family
from amanu.models.image_layout import WirePicture, laid_out, result_layout, texts
from amanu.models.wire_messages import dumps
from amanu_protocol.items import ModelInfo

WIRE = "openai-compatible"

SKIP_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""For a call made elsewhere, where Gemini 3 is reached through Google's compatible endpoint."""


class WireObjects(NamedTuple):
    """JSON objects joined by commas, as many as a message takes; empty if it has nothing to say."""

    data: bytes
    in_loop: bytes = b""
    """To be sent instead of `data` while the tool loop it belongs to goes on, if that makes a difference."""


def message(conversation: Conversation, index: int, model: ModelInfo) -> WireObjects:
    """Message `at` for `model`."""
    match conversation[index]:
        case User() as said:
            return WireObjects(dumps(_said(laid_out(said.parts, conversation, model))))
        case Assistant() as reply:
            return _reply(_own(reply, model.model_id) or _neutral(reply), family(model.model_id).must_return)
        case Results() as answers:
            objects, shown = _answers(answers, conversation, index, model)
            if answers.notes or shown:
                objects.append(_said([*shown, *laid_out(answers.notes, conversation, model)]))
            return WireObjects(b",".join(map(dumps, objects)))


def _said(parts: Sequence[str | WirePicture]) -> dict[str, Any]:
    """What the user says. A list of parts only where there is a picture: not every server takes one."""
    if not any(isinstance(part, WirePicture) for part in parts):
        return {"role": "user", "content": texts(parts)}
    content: list[dict[str, Any]] = [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}
        for part in parts
        if not isinstance(part, str) or part.strip()
    ]
    return {"role": "user", "content": content}


def wire_name(tool: str) -> str:
    """A tool's name as the services take it, also when the model made it up."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", tool)[:64] or "unnamed"


def _own(reply: object, model: str) -> dict[str, Any] | None:
    """The reply as this very model gave it; None if it did not, or when its calls were changed since."""
    native = reply.native if isinstance(reply, Assistant) else None
    if native is None or native.wire != WIRE or native.model != model:
        return None
    assert isinstance(reply, Assistant)
    same = list(native.call_ids.values()) == [call.call_id for call in reply.calls]
    return cast(dict[str, Any], native.blocks) if same else None


def _neutral(reply: Assistant) -> dict[str, Any] | None:
    """Text and calls; what another model thought means nothing here."""
    if not reply.text and not reply.calls:
        return None
    wire: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        wire["tool_calls"] = [call_of(call.call_id, call) for call in reply.calls]
    return wire


def _reply(wire: dict[str, Any] | None, must_return: MustReturn) -> WireObjects:
    """A reply, with what the service would miss."""
    if wire is None:
        return WireObjects(b"")
    if must_return == "reasoning" and "reasoning_content" not in wire:
        wire = {**wire, "reasoning_content": ""}  # empty will do (earendil-works/pi#3636)
    data = dumps(wire)
    calls: list[dict[str, Any]] = wire.get("tool_calls") or []
    if must_return != "signature" or not calls or "extra_content" in calls[0]:
        return WireObjects(data)
    signed = [{**calls[0], "extra_content": SKIP_SIGNATURE}, *calls[1:]]
    return WireObjects(data, dumps({**wire, "tool_calls": signed}))


def call_of(wire_id: str, call: Call, written: str | None = None) -> dict[str, Any]:
    """A call on the wire. `written`: its arguments as the model wrote them, if that was a JSON object."""
    if written is None:
        arguments = call.arguments if isinstance(call.arguments, dict) else {"malformed": call.arguments}
        written = dumps(arguments).decode()
    return {"id": wire_id, "type": "function", "function": {"name": wire_name(call.tool), "arguments": written}}


def _answers(
    answers: Results, conversation: Conversation, index: int, model: ModelInfo
) -> tuple[list[dict[str, Any]], list[str | WirePicture]]:
    """One tool message per result, under the id the call has on the wire; and what the results show, for the user's
    message after them: a tool message takes text only."""
    ids = [result.call_id for result in answers.results]
    own_parts = _own(conversation[index - 1], model.model_id)
    if own_parts is not None:
        ids = [call["id"] for call in own_parts.get("tool_calls", ())]
    objects: list[dict[str, Any]] = []
    after: list[str | WirePicture] = []
    for result, wire_id in zip(answers.results, ids, strict=True):
        text, fields, shown = result_layout(result, conversation, model)
        content = f"Error: {text}" if result.is_error and not fields else text
        objects.append({"role": "tool", "tool_call_id": wire_id, "content": content})
        after += shown
    return objects, after
