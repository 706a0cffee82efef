"""A message of the conversation as a Gemini content, serialised: a function of the messages up to it, their
pictures and the model alone, so that what was sent once costs a join. It is sent the same ever after, but for one
thing: signatures that stand in for missing ones are left out again when the tool loop is over that needs them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from amanu.core.conversation import Assistant, Call, Conversation, Results, Text, User
from amanu.core.model_families import family
from amanu.models.image_layout import WirePicture, laid_out, result_layout
from amanu.models.wire_messages import dumps
from amanu_protocol.items import ModelInfo

WIRE = "gemini"

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Stands in for the signature of a call that was made elsewhere (ai.google.dev, Thought signatures). It makes answers
worse, so it goes only where a request would be refused without: on the first call of each step of the present loop."""


_FIRST = {role: b'{"role":"%b","parts":[' % role.encode() for role in ("user", "model")}
_NEXT = {role: b"]}," + first for role, first in _FIRST.items()}
"""Between two messages."""


class GeminiContent(NamedTuple):
    role: str
    parts: bytes
    """JSON objects joined by commas."""
    in_loop: bytes = b""
    """To be sent instead of `parts` while the tool loop it belongs to goes on, if that makes a difference."""


def content(conversation: Conversation, index: int, model: ModelInfo) -> GeminiContent | None:
    """Message `at` for `model`; None if it has nothing Gemini takes (a reply of thoughts only)."""
    match conversation[index]:
        case User() as said:
            return _content("user", _said(laid_out(said.parts, conversation, model)) or [{"text": said.text or " "}])
        case Assistant() as reply:
            own_parts = _own_parts(reply, model.model_id)
            parts = _neutral_parts(reply) if own_parts is None else own_parts
            translated = _content("model", parts)
            if translated is None or family(model.model_id).must_return != "signature":
                return translated
            return translated._replace(in_loop=b",".join(map(dumps, _signed(parts) or ())))
        case Results() as answers:
            responses, shown = _responses(answers, conversation, index, model)
            notes = _said([*shown, *laid_out(answers.notes, conversation, model)])
            return _content("user", [*responses, *notes])


def place(contents: Sequence[GeminiContent | None], index: int, loop: int) -> tuple[bytes, bytes]:
    """A message in the array to send (`wire_messages.Place`), whose end is left open: nothing of one that has nothing
    to say, model turns in a row as one. `loop`: where the present tool loop begins."""
    here = contents[index]
    if here is None:
        return b"", b""
    before = next((each for at in range(index - 1, -1, -1) if (each := contents[at]) is not None), None)
    separator = _FIRST[here.role] if before is None else _NEXT[here.role]
    if before is not None and here.role == before.role == "model":
        separator = b","
    return separator, (index > loop and here.in_loop) or here.parts


def _said(parts: Sequence[str | WirePicture]) -> list[dict[str, Any]]:
    """Texts, blank ones left out, and pictures."""
    return [
        {"text": part} if isinstance(part, str) else _shown(part)
        for part in parts
        if not isinstance(part, str) or part.strip()
    ]


def _shown(picture: WirePicture) -> dict[str, Any]:
    return {"inlineData": {"mimeType": picture.media_type, "data": picture.data}}


def _content(role: str, parts: list[dict[str, Any]]) -> GeminiContent | None:
    return GeminiContent(role, b",".join(map(dumps, parts))) if parts else None


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


def _signed(parts: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """With a signature on the first call, whose siblings need none; None if it has its own, or there is no call."""
    first_call = next((first_call for first_call, part in enumerate(parts) if "functionCall" in part), None)
    if first_call is None or "thoughtSignature" in parts[first_call]:
        return None
    return [*parts[:first_call], {**parts[first_call], "thoughtSignature": SKIP_SIGNATURE}, *parts[first_call + 1 :]]


def _responses(
    answers: Results, conversation: Conversation, index: int, model: ModelInfo
) -> tuple[list[dict[str, Any]], list[str | WirePicture]]:
    """As many responses as calls, in their order, under the ids the calls have on the wire; and what they show, for a
    model that cannot be shown it in them. A response holds pictures without a word between."""
    own_parts = _own_parts(conversation[index - 1], model.model_id)
    ids: list[str | None] = [result.call_id for result in answers.results]
    if own_parts is not None:
        ids = [part["functionCall"].get("id") for part in own_parts if "functionCall" in part]
    inside = family(model.model_id).pictures_in_results
    parts: list[dict[str, Any]] = []
    after: list[str | WirePicture] = []
    for result, call_id in zip(answers.results, ids, strict=True):
        text, fields, shown = result_layout(result, conversation, model)
        response: dict[str, Any] = {
            "name": result.tool,
            "response": fields or {"error" if result.is_error else "output": text},
        }
        if shown and inside:
            response["parts"] = [_shown(part) for part in shown if isinstance(part, WirePicture)]
        elif shown:
            after += shown
        parts.append({"functionResponse": {"id": call_id, **response} if call_id else response})
    return parts, after
