"""What a server asks the user (elicitation), as fields of a question, and the answers as the server wants them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

import mcp_types as types
from pydantic import JsonValue

from amanu.mcp.model import CallClient
from amanu_protocol.items import QuestionField, QuestionOption

OPENED = "opened"
"""The field of a question about an address."""
_MAX_FIELDS = 20

Answers = dict[str, str | int | float | bool | list[str] | None]


async def elicit(server: str, params: types.ElicitRequestParams, client: CallClient) -> types.ElicitResult:
    """Ask the user through the call that is under way. A question that nobody can answer is cancelled, not declined."""
    if isinstance(params, types.ElicitRequestURLParams):
        fields = [_address_field(params.url)]
    else:
        fields = form_fields(params.requested_schema)
    question = await client.ask(server, params.message, fields)
    if question is None or question.state in ("cancelled", "open"):
        return types.ElicitResult(action="cancel")
    if question.state == "declined":
        return types.ElicitResult(action="decline")
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept" if question.answers.get(OPENED) is True else "decline")
    return types.ElicitResult(action="accept", content=form_content(params.requested_schema, question.answers))


def form_fields(schema: Mapping[str, Any]) -> list[QuestionField]:
    """A flat JSON schema as fields, required ones first as the schema has them."""
    required = _strings(schema.get("required"))
    return [
        _field(name, spec, is_required=name in required)
        for name, spec in list(_properties(schema).items())[:_MAX_FIELDS]
    ]


def form_content(schema: Mapping[str, Any], answers: Mapping[str, JsonValue]) -> Answers:
    """The answers by property, with defaults where the user gave none."""
    content: Answers = {}
    for name, spec in _properties(schema).items():
        answer = answers.get(name)
        if answer is None or answer == "":
            answer = spec.get("default")
        if (value := _value(spec, answer)) is not None:
            content[name] = value
    return content


def _address_field(url: str) -> QuestionField:
    host = urlsplit(url).hostname or url
    text = (
        f"It wants you to open a page of {host}:\n{url}\n"
        "Amanu does not open it. Open it yourself if you trust that address, and then answer yes."
    )
    return QuestionField(field_id=OPENED, kind="confirm", header=host[:30], text=text)


def _field(name: str, spec: Mapping[str, Any], *, is_required: bool) -> QuestionField:
    text = "\n".join(filter(None, (_text(spec.get("title")) or name, _text(spec.get("description")))))
    options = _options(spec)
    kind = spec.get("type")
    default: Any = spec.get("default")
    common: dict[str, Any] = {"field_id": name, "header": name[:30], "text": text, "required": is_required}
    if options:
        labels = [_label(*option) for option in options]
        by_value = dict(zip((value for value, _ in options), labels, strict=True))
        chosen = [by_value[value] for value in _strings(default) if value in by_value]
        one = by_value.get(default) if isinstance(default, str) else None
        common["options"] = [QuestionOption(label=label) for label in labels]
        if kind == "array":
            return QuestionField(**common, kind="choices", default=cast("JsonValue", chosen or None))
        return QuestionField(**common, kind="choice", default=one)
    if kind == "boolean":
        return QuestionField(**common, kind="confirm", default=default if isinstance(default, bool) else None)
    placeholder = {"integer": "a whole number", "number": "a number"}.get(_text(kind), _text(spec.get("format")))
    return QuestionField(
        **common, kind="text", placeholder=placeholder, default=None if default is None else str(default)
    )


def _options(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(value, title) of an enumeration in any of the forms that revisions have given it."""
    if spec.get("type") == "array":
        items: Any = spec.get("items")
        return _options(cast("Mapping[str, Any]", items)) if isinstance(items, dict) else []
    for key in ("oneOf", "anyOf"):
        titled: Any = spec.get(key)
        if isinstance(titled, list):
            entries = [
                cast("Mapping[str, Any]", entry) for entry in cast("list[Any]", titled) if isinstance(entry, dict)
            ]
            return [
                (entry["const"], _text(entry.get("title")) or entry["const"])
                for entry in entries
                if isinstance(entry.get("const"), str)
            ]
    values = _strings(spec.get("enum"))
    titles = _strings(spec.get("enumNames"))
    return list(zip(values, titles if len(titles) == len(values) else values, strict=True))


def _value(spec: Mapping[str, Any], answer: Any) -> str | int | float | bool | list[str] | None:
    """An answer as the property's type wants it; a text that is no number stays a text, and the server says so."""
    values = {_label(value, title): value for value, title in _options(spec)}
    match spec.get("type"):
        case "array":
            return [values.get(each, each) for each in _strings(answer)] or None
        case "boolean":
            return answer if isinstance(answer, bool) else None
        case "integer" | "number" as kind if isinstance(answer, str):
            try:
                return int(answer) if kind == "integer" else float(answer)
            except ValueError:
                return answer
        case _:
            return values.get(answer, answer) if isinstance(answer, str) else answer


def _label(value: str, title: str) -> str:
    return value if title == value else f"{title} ({value})"


def _properties(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    properties: Any = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        str(name): cast("Mapping[str, Any]", spec)
        for name, spec in cast("dict[Any, Any]", properties).items()
        if isinstance(spec, dict)
    }


def _strings(value: object) -> Sequence[str]:
    return [each for each in cast("list[Any]", value) if isinstance(each, str)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
