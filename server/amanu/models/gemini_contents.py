"""A message of the conversation as a Gemini content: raw JSON, a function of the message and the model alone,
so that what was sent once is sent the same ever after."""

from typing import Any, cast

from amanu.conversation import Assistant, Call, Conversation, Results, Text, User
from amanu.models.families import family

WIRE = "gemini"

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Stands in for the signature of a call that was made elsewhere (ai.google.dev, Thought signatures)."""


def contents(conversation: Conversation, at: int, model: str) -> dict[str, Any] | None:
    """Message `at` for `model` (`vendor:model`); None if it has nothing Gemini takes (a reply of thoughts only)."""
    match conversation[at]:
        case User(text=text):
            return {"role": "user", "parts": [{"text": plain(text) or " "}]}
        case Assistant() as reply:
            own = _own_parts(reply, model)
            parts = _neutral_parts(reply) if own is None else own
            if family(model).signatures_required:
                parts = _signed(parts)
            return {"role": "model", "parts": parts} if parts else None
        case Results() as answers:
            return {"role": "user", "parts": _responses(answers, conversation[at - 1], model)}


def _own_parts(reply: object, model: str) -> list[dict[str, Any]] | None:
    """The reply as this very model gave it; None if it did not, or when its calls were changed since."""
    native = reply.native if isinstance(reply, Assistant) else None
    if native is None or native.wire != WIRE or native.model != model:
        return None
    parts = cast(list[dict[str, Any]], native.blocks)
    assert isinstance(reply, Assistant)
    return parts if sum("functionCall" in part for part in parts) == len(reply.calls) else None


def _neutral_parts(reply: Assistant) -> list[dict[str, Any]]:
    """Text and calls; thoughts of another model are not ours to send."""
    parts: list[dict[str, Any]] = []
    for part in reply.parts:
        match part:
            case Text(text=text) if text:
                parts.append({"text": plain(text)})
            case Call(call_id=call_id, tool=tool, arguments=arguments):
                args = arguments if isinstance(arguments, dict) else {"malformed": arguments}
                parts.append({"functionCall": {"id": call_id, "name": tool, "args": args}})
            case _:
                pass
    return parts


def _signed(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first call of a step must carry a signature; its siblings need none."""
    for at, part in enumerate(parts):
        if "functionCall" in part:
            if "thoughtSignature" in part:
                return parts
            return [*parts[:at], {**part, "thoughtSignature": SKIP_SIGNATURE}, *parts[at + 1 :]]
    return parts


def _responses(answers: Results, asked: object, model: str) -> list[dict[str, Any]]:
    """As many responses as calls, in their order, under the ids the calls have on the wire; then the notes."""
    own = _own_parts(asked, model)
    ids: list[str | None] = [result.call_id for result in answers.results]
    if own is not None:
        ids = [part["functionCall"].get("id") for part in own if "functionCall" in part]
    parts: list[dict[str, Any]] = []
    for result, call_id in zip(answers.results, ids, strict=True):
        response = {"name": result.tool, "response": {"error" if result.is_error else "output": plain(result.text)}}
        parts.append({"functionResponse": {"id": call_id, **response} if call_id else response})
    return [*parts, *({"text": plain(note)} for note in answers.notes if note.strip())]


def plain(text: str) -> str:
    """Without lone surrogates (from undecodable tool output), which the service refuses: they become "?"."""
    return text.encode("utf-8", "replace").decode()
