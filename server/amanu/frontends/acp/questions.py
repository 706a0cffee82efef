"""The model's questions: a form where the client shows forms, else a choice as a permission request."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from amanu.client.session_view import SessionView
from amanu.frontends.acp.handshake import mapping
from amanu.frontends.acp.peer import Peer, RpcError
from amanu.frontends.acp.plain_cards import shows_names
from amanu.frontends.acp.schema import ClientFeatures, chosen_option
from amanu.text.sub_agents import asked_by
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Question, QuestionField
from amanu_protocol.labels import BUTTONS

OTHER = "-other"
"""What the id of a field for the user's own words ends with, beside the field with the options."""
NO_FORMS = "This editor cannot show forms. Ask in your answer, then end your turn."


async def ask(question: Question, view: SessionView, peer: Peer, features: ClientFeatures) -> None:
    """Put the question to the user, and send the answer on. Raises `ClientDisconnected`, `AmanuError`."""
    if features.forms:
        answers = await _ask_form(question, view, peer)
        note = ""
    elif len(question.fields) == 1 and question.fields[0].kind in ("choice", "confirm") and shows_names(features):
        answers = await _ask_choice(question, question.fields[0], view, peer)
        note = ""
    else:
        answers, note = None, NO_FORMS
    if answers is not None:
        try:
            await view.answer_question(question.item_id, "answered", answers, "")
            return
        except AmanuError as error:
            if error.kind != "invalidParams":
                raise
            note = f"The answer was invalid: {error}"
    await view.answer_question(question.item_id, "declined", {}, note)


async def _ask_form(question: Question, view: SessionView, peer: Peer) -> dict[str, JsonValue] | None:
    params = {
        "sessionId": view.session_id,
        **({} if question.tool_call_id is None else {"toolCallId": question.tool_call_id}),
        "mode": "form",
        "message": f"{asked_by(question)}{question.title}",
        "requestedSchema": schema_of(question),
    }
    try:
        result = await peer.request("elicitation/create", params)
    except RpcError:
        return None
    if mapping(result).get("action") != "accept":
        return None
    return answers_of(question, mapping(mapping(result).get("content")))


def schema_of(question: Question) -> dict[str, Any]:
    """An `ElicitationSchema`: flat, without nesting."""
    properties: dict[str, Any] = {}
    for field in question.fields:
        properties[field.field_id] = _property(field)
        if field.other and field.kind in ("choice", "choices"):
            title = f"{field.header or field.text}: {BUTTONS['other']}"
            properties[field.field_id + OTHER] = {"type": "string", "title": title}
    required = [field.field_id for field in question.fields if field.required and not field.other]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def answers_of(question: Question, content: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The answers in a form that was filled in; the user's own words go before the option chosen beside them."""
    answers: dict[str, JsonValue] = {}
    for field in question.fields:
        own = content.get(field.field_id + OTHER)
        value = content.get(field.field_id)
        if isinstance(own, str) and own.strip():
            chosen = value if isinstance(value, list) else []
            value = [*chosen, own] if field.kind == "choices" else own
        if value is not None and value != "":
            answers[field.field_id] = value
    return answers


def _property(field: QuestionField) -> dict[str, Any]:
    about: dict[str, Any] = {"title": field.header or field.text}
    if field.header:
        about["description"] = field.text
    if field.default is not None:
        about["default"] = field.default
    options = [
        {
            "const": option.label,
            "title": option.label,
            **({"description": option.description} if option.description else {}),
        }
        for option in field.options
    ]
    match field.kind:
        case "confirm":
            return {"type": "boolean", **about}
        case "choices":
            return {"type": "array", "items": {"anyOf": options}, **about}
        case "choice":
            return {"type": "string", "oneOf": options, **about}
        case "text" | "file":
            return {"type": "string", **about}


async def _ask_choice(
    question: Question, field: QuestionField, view: SessionView, peer: Peer
) -> dict[str, JsonValue] | None:
    answers: list[tuple[str, JsonValue]] = (
        [(BUTTONS["yes"], True), (BUTTONS["no"], False)]
        if field.kind == "confirm"
        else [(option.label, option.label) for option in field.options]
    )
    options = [
        {"optionId": f"answer-{number}", "name": name, "kind": "allow_once"} for number, (name, _) in enumerate(answers)
    ]
    described = "\n".join(f"- {each.label}: {each.description}" for each in field.options if each.description)
    text = f"{field.text}\n\n{described}".strip()
    params = {
        "sessionId": view.session_id,
        "toolCall": {
            "toolCallId": question.tool_call_id or question.item_id,
            "title": f"{asked_by(question)}{question.title}",
            "kind": "think",
            "status": "pending",
            "content": [{"type": "content", "content": {"type": "text", "text": text}}],
        },
        "options": [*options, {"optionId": "decline", "name": BUTTONS["decline"], "kind": "reject_once"}],
    }
    try:
        result = await peer.request("session/request_permission", params)
    except RpcError:
        return None
    chosen = chosen_option(result)
    by_id = {f"answer-{number}": value for number, (_, value) in enumerate(answers)}
    return {field.field_id: by_id[chosen]} if chosen in by_id else None
