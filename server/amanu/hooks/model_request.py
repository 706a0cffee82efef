"""The request to the model in Gemini CLI's form, for hooks to read and change: the texts of the conversation, as
`{model, messages: [{role, content}], config}` (its hooks reference, "Stable Model API")."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from amanu.core.conversation import Assistant, Conversation, Message, Note, Picture, Results, SystemText, Text, User
from amanu.core.listeners import TurnView
from amanu.text.fences import block

FEWER = "llm_request.messages has fewer messages than the hook was told, so none was changed."

REMOVED = "(a hook removed this text)"


@dataclass(frozen=True)
class RequestChange:
    """The effect of a hook's `llm_request`."""

    conversation: Conversation | None
    """The messages to send; None: as they are."""
    ignored: Sequence[str]
    """The parts of it that Amanu does not support, a sentence each."""


def llm_request(turn: TurnView) -> dict[str, JsonValue]:
    """The next request of that turn. Messages without text are left out, as in Gemini CLI."""
    messages: list[JsonValue] = [
        {"role": "model" if isinstance(message, Assistant) else "user", "content": text}
        for message in turn.conversation
        for text in _texts(message)
        if text
    ]
    return {"model": turn.info.model_id, "messages": messages, "config": {}}


def request_change(turn: TurnView, wanted: dict[str, Any], clean: Callable[[str], str]) -> RequestChange:
    """The change that `wanted` makes in that turn's next request: other texts in the same messages, and further
    messages behind them, each through `clean`. Model and settings are the user's."""
    ignored: list[str] = []
    if wanted.get("model", turn.info.model_id) != turn.info.model_id:
        ignored.append("llm_request.model is not supported: you choose the model (/model).")
    ignored += [f"llm_request.{name} is not supported." for name in ("config", "toolConfig") if wanted.get(name)]
    given = wanted.get("messages")
    told = [text for message in turn.conversation for text in _texts(message) if text]
    texts = [_content(message) for message in cast("list[Any]", given)] if isinstance(given, list) else told
    if len(texts) < len(told):
        return RequestChange(None, [*ignored, FEWER])
    if texts == told:
        return RequestChange(None, ignored)
    left = (text if text == was else clean(text) or REMOVED for text, was in zip(texts, told, strict=False))
    changed = Conversation(_changed(message, left) for message in turn.conversation)
    changed.compacted, changed.memory = turn.conversation.compacted, turn.conversation.memory
    changed.pictures = turn.conversation.pictures
    added = [SystemText(text=block("hook_context", clean(text))) for text in texts[len(told) :] if text]
    if added:
        changed.add_notes(*added)
    return RequestChange(changed, ignored)


def _texts(message: Message) -> list[str]:
    """The texts of a message, each of which is a message of its own for a hook."""
    if isinstance(message, Results):
        notes = [str(note) for note in message.notes if not isinstance(note, Picture)]
        return [*(result.sent_text for result in message.results), *notes]
    return [message.text]


def _changed(message: Message, left: Iterator[str]) -> Message:
    """The message with the next of the texts that are `left` in place of its own."""
    texts = [next(left) if text else text for text in _texts(message)]
    if texts == _texts(message):
        return message
    match message:
        case User():
            return message.model_copy(update={"text": texts[0]})
        case Assistant():
            others = [part for part in message.parts if not isinstance(part, Text)]
            at = next(index for index, part in enumerate(message.parts) if isinstance(part, Text))
            parts = (*others[:at], Text(text=texts[0]), *others[at:])
            return message.model_copy(update={"parts": parts, "native": None})  # it is no longer the vendor's own
        case Results():
            results = tuple(
                result if text == result.sent_text else result.model_copy(update={"text": text, "fields": {}})
                for result, text in zip(message.results, texts, strict=False)
            )
            notes = _notes(message.notes, texts[len(results) :])
            return message.model_copy(update={"results": results, "notes": tuple(notes)})


def _notes(notes: Sequence[Note], texts: Sequence[str]) -> Iterator[Note]:
    left = iter(texts)
    for note in notes:
        match note:
            case Picture():
                yield note
            case SystemText():
                yield note.model_copy(update={"text": next(left)})
            case str():
                yield next(left)


def _content(message: Any) -> str:
    """The text of a message that a hook gave."""
    content = cast("dict[str, Any]", message).get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""
