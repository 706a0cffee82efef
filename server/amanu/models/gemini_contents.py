"""A message of the conversation as a Gemini content, serialised: a function of the messages up to it, their
pictures and the model alone, so that what was sent once is sent the same ever after, and costs a join."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

from amanu.conversation import Assistant, Call, Conversation, Results, Text, User
from amanu.models.families import family
from amanu.models.messages import dumps
from amanu.models.pictures import Shown, laid_out
from amanu_protocol.items import ModelInfo

WIRE = "gemini"

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Stands in for the signature of a call that was made elsewhere (ai.google.dev, Thought signatures)."""


_NEXT = {role: b']},{"role":"%b","parts":[' % role.encode() for role in ("user", "model")}
"""Between two messages."""


class Content(NamedTuple):
    role: str
    parts: bytes
    """JSON objects joined by commas."""


def content(conversation: Conversation, at: int, model: ModelInfo) -> Content | None:
    """Message `at` for `model`; None if it has nothing Gemini takes (a reply of thoughts only)."""
    match conversation[at]:
        case User() as said:
            return _content("user", _said(laid_out(said.parts, conversation, model)) or [{"text": said.text or " "}])
        case Assistant() as reply:
            own = _own_parts(reply, model.model_id)
            parts = _neutral_parts(reply) if own is None else own
            if family(model.model_id).signatures_required:
                parts = _signed(parts)
            return _content("model", parts)
        case Results() as answers:
            notes = _said(laid_out(answers.notes, conversation, model))
            return _content("user", [*_responses(answers, conversation[at - 1], model.model_id), *notes])


def pieces(contents: Iterable[Content | None]) -> list[bytes]:
    """The array to send, in pieces to be joined once (pictures have megabytes): messages that have nothing to say left
    out, model turns in a row made one."""
    array: list[bytes] = []
    before = ""
    for each in contents:
        if each is None:
            continue
        role, parts = each
        array.append(b"," if role == before == "model" else _NEXT[role])
        array.append(parts)
        before = role
    if not array:
        return [b"[]"]
    array[0] = b"[" + array[0].removeprefix(b"]},")
    array.append(b"]}]")
    return array


def _said(parts: Sequence[str | Shown]) -> list[dict[str, Any]]:
    """Texts, blank ones left out, and pictures."""
    return [
        {"text": part} if isinstance(part, str) else {"inlineData": {"mimeType": part.media_type, "data": part.data}}
        for part in parts
        if not isinstance(part, str) or part.strip()
    ]


def _content(role: str, parts: list[dict[str, Any]]) -> Content | None:
    return Content(role, b",".join(map(dumps, parts))) if parts else None


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
                parts.append({"text": text})
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
    """As many responses as calls, in their order, under the ids the calls have on the wire."""
    own = _own_parts(asked, model)
    ids: list[str | None] = [result.call_id for result in answers.results]
    if own is not None:
        ids = [part["functionCall"].get("id") for part in own if "functionCall" in part]
    parts: list[dict[str, Any]] = []
    for result, call_id in zip(answers.results, ids, strict=True):
        response = {"name": result.tool, "response": {"error" if result.is_error else "output": result.text}}
        parts.append({"functionResponse": {"id": call_id, **response} if call_id else response})
    return parts
