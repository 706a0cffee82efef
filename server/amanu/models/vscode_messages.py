"""A message of the conversation as VS Code's API for models has it (`vscode.lm`): two roles; text, images, calls and
results. There is no system message: its guide sends instructions as the user's first message."""

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from amanu.core.conversation import Assistant, Call, Conversation, Results, Text, User
from amanu.core.model import ToolSpec
from amanu.core.token_estimate import estimate
from amanu.models.image_layout import WirePicture, laid_out, result_layout
from amanu.models.openai_messages import wire_name
from amanu.models.wire_messages import dumps
from amanu_protocol.items import ModelInfo
from amanu_protocol.requests import RunCallPart, RunImagePart, RunMessage, RunResultPart, RunTextPart, RunTool

WIRE = "vscode"
_IMAGE = 1_600
"""Tokens of an image, as `agent/window/token_gauge.py` counts them."""


class ConvertedMessage(NamedTuple):
    """`message`: None if it has nothing to say."""

    message: RunMessage | None
    tokens: float
    """Estimated."""


def message(conversation: Conversation, index: int, model: ModelInfo) -> ConvertedMessage:
    match conversation[index]:
        case User() as user:
            return _converted("user", _said(laid_out(user.parts, conversation, model)))
        case Assistant() as reply:
            return _converted("assistant", _replied(reply, _wire_ids(reply, index, model.model_id)))
        case Results() as results:
            return _converted("user", _results(results, conversation, index, model))


def _converted(
    role: str, parts: Sequence[RunTextPart | RunImagePart | RunCallPart | RunResultPart]
) -> ConvertedMessage:
    if not parts:
        return ConvertedMessage(None, 0)
    message = RunMessage.model_validate({"role": role, "parts": parts})
    return ConvertedMessage(message, sum(map(_tokens, parts)))


def _said(parts: Sequence[str | WirePicture]) -> list[RunTextPart | RunImagePart]:
    """Text and images; some models refuse blank text."""
    return [
        RunTextPart(text=clean(part))
        if isinstance(part, str)
        else RunImagePart(media_type=part.media_type, data=part.data)
        for part in parts
        if not isinstance(part, str) or part.strip()
    ]


def _replied(reply: Assistant, ids: dict[str, str]) -> list[RunTextPart | RunCallPart]:
    parts: list[RunTextPart | RunCallPart] = []
    for part in reply.parts:
        match part:
            case Text() if part.text.strip():
                parts.append(RunTextPart(text=clean(part.text)))
            case Call():
                arguments = part.arguments if isinstance(part.arguments, dict) else {"malformed": part.arguments}
                sound = orjson.loads(dumps(arguments))
                parts.append(RunCallPart(call_id=ids[part.call_id], tool=wire_name(part.tool), arguments=sound))
            case _:
                pass  # what another model thought means nothing here
    return parts


def _results(
    results: Results, conversation: Conversation, index: int, model: ModelInfo
) -> list[RunTextPart | RunImagePart | RunResultPart]:
    """The results before all else, what they show after them: a result takes text only in every provider."""
    before = conversation[index - 1] if index else None
    ids = _wire_ids(before, index - 1, model.model_id) if isinstance(before, Assistant) else {}
    answers: list[RunResultPart] = []
    shown: list[str | WirePicture] = []
    for result in results.results:
        text, fields, pictures = result_layout(result, conversation, model)
        content = f"Error: {text}" if result.is_error and not fields else text
        answers.append(RunResultPart(call_id=ids[result.call_id], text=clean(content)))
        shown += pictures
    return [*answers, *_said([*shown, *laid_out(results.notes, conversation, model)])]


def _wire_ids(reply: Assistant, index: int, model_id: str) -> dict[str, str]:
    """Our id of each call → the one the provider gave it; of another model's calls one that every provider takes."""
    native = reply.native
    if native is not None and native.wire == WIRE and native.model == model_id:
        ids = {ours: theirs for theirs, ours in native.call_ids.items()}
        if list(ids) == [call.call_id for call in reply.calls]:
            return ids
    return {call.call_id: f"amanu_{index}_{number}" for number, call in enumerate(reply.calls)}


def clean(text: str) -> str:
    """Half a surrogate pair (from undecodable tool output) becomes "?"."""
    return text.encode("utf-8", "replace").decode()


def system_message(text: str) -> ConvertedMessage:
    """The system prompt."""
    return _converted("user", _said([text]))


def run_tool(tool: ToolSpec) -> RunTool:
    """A tool that may be called."""
    return RunTool(name=tool.name, description=tool.description, parameters=tool.parameters)


def _tokens(part: RunTextPart | RunImagePart | RunCallPart | RunResultPart) -> float:
    match part:
        case RunImagePart():
            return _IMAGE
        case RunCallPart():
            return estimate(part.tool) + estimate(dumps(part.arguments).decode())
        case _:
            return estimate(part.text)
