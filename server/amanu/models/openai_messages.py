"""A message of the conversation in the chat-completions form, serialised: a function of the messages up to it
and the model alone, so that what was sent once is sent the same ever after, and costs a join."""

import re
from typing import Any, cast

from amanu.conversation import Assistant, Call, Conversation, Results, User
from amanu.models.families import family
from amanu.models.messages import dumps

WIRE = "openai-compatible"

SKIP_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""For a call made elsewhere, where Gemini 3 is reached through Google's compatible endpoint."""


def message(conversation: Conversation, at: int, model: str) -> bytes:
    """Message `at` for `model` (`vendor:model`): JSON objects joined by commas, as many as it takes; empty if
    it has nothing to say."""
    match conversation[at]:
        case User(text=text):
            return dumps({"role": "user", "content": text})
        case Assistant() as reply:
            own = _own(reply, model)
            return _neutral(reply, model) if own is None else dumps(own)
        case Results() as answers:
            return _answers(answers, conversation[at - 1], model)


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


def _neutral(reply: Assistant, model: str) -> bytes:
    if not reply.text and not reply.calls:
        return b""
    wire: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        wire["tool_calls"] = [call_of(call.call_id, call) for call in reply.calls]
        if family(model).signatures_required:
            wire["tool_calls"][0]["extra_content"] = SKIP_SIGNATURE
    return dumps(wire)


def call_of(wire_id: str, call: Call, written: str | None = None) -> dict[str, Any]:
    """A call on the wire. `written`: its arguments as the model wrote them, if that was a JSON object."""
    if written is None:
        arguments = call.arguments if isinstance(call.arguments, dict) else {"malformed": call.arguments}
        written = dumps(arguments).decode()
    return {"id": wire_id, "type": "function", "function": {"name": wire_name(call.tool), "arguments": written}}


def _answers(answers: Results, asked: object, model: str) -> bytes:
    """One tool message per result, under the id the call has on the wire; then the notes, as the person's."""
    ids = [result.call_id for result in answers.results]
    own = _own(asked, model)
    if own is not None:
        ids = [call["id"] for call in own.get("tool_calls", ())]
    objects: list[dict[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": wire_id,
            "content": f"Error: {result.text}" if result.is_error else result.text,
        }
        for result, wire_id in zip(answers.results, ids, strict=True)
    ]
    if answers.notes:
        objects.append({"role": "user", "content": "\n\n".join(answers.notes)})
    return b",".join(map(dumps, objects))
