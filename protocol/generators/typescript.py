"""The protocol as TypeScript: interfaces, discriminated unions, and a typed table of methods."""

import json
from typing import Any, cast

from generators.schema import NOTE, Schema


def text(protocol: Schema) -> str:
    """The whole file."""
    parts = [
        f"// {NOTE}",
        f"export const PROTOCOL_VERSION = {protocol['version']};",
        f"export const REQUEST_FAILED = {protocol['errorCodes']['requestFailed']};",
        f"export const INVALID_PARAMS = {protocol['errorCodes']['invalidParams']};",
        *(_definition(name, schema) for name, schema in protocol["$defs"].items()),
        *(_table(protocol, *table) for table in _TABLES),
    ]
    return "\n\n".join(parts) + "\n"


_TABLES = (
    ("RequestsToDaemon", "toDaemon", "request", "What a client asks the daemon: `sendRequest(method, params)`."),
    ("NotificationsToDaemon", "toDaemon", "notification", "What a client tells the daemon."),
    ("RequestsToClient", "toClient", "request", "What the daemon asks a client that offers it."),
    ("NotificationsToClient", "toClient", "notification", "What the daemon tells a client."),
)


def type_of(schema: Schema) -> str:
    """The TypeScript type of a schema node."""
    match schema:
        case {"$ref": reference}:
            return reference.rsplit("/", 1)[-1]
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": options} | {"oneOf": options}:
            return " | ".join(type_of(option) for option in options)
        case {"type": "array", "items": items}:
            item = type_of(items)
            return f"({item})[]" if " " in item else f"{item}[]"
        case {"type": "object", "additionalProperties": values} if isinstance(values, dict):
            return f"{{ [key: string]: {type_of(cast(Schema, values))} }}"
        case {"type": str(name)}:
            return {"integer": "number", "null": "null", "object": "Record<string, never>"}.get(name, name)
        case _:
            return "unknown"


def _definition(name: str, schema: Schema) -> str:
    comment = _comment(schema.get("description"), "")
    if schema.get("type") != "object":
        options = type_of(schema).split(" | ")
        lines = "".join(f"\n  | {option}" for option in options) if len(options) > 4 else " " + " | ".join(options)
        return f"{comment}export type {name} ={lines};"
    fields = ""
    for key, field in schema["properties"].items():
        optional = "" if key in schema["required"] else "?"
        fields += f"{_comment(field.get('description'), '  ')}  {key}{optional}: {type_of(field)};\n"
    return f"{comment}export interface {name} {{\n{fields}}}"


def _table(protocol: Schema, name: str, direction: str, kind: str, doc: str) -> str:
    lines: list[str] = []
    for method, entry in protocol["methods"].items():
        if (entry["direction"], entry["kind"]) == (direction, kind):
            params = type_of(entry["params"])
            types = f"{{ params: {params}; result: {type_of(entry['result'])} }}" if entry["result"] else params
            lines.append(f"{_comment(entry['description'], '  ')}  {json.dumps(method)}: {types};\n")
    return f"{_comment(doc, '')}export interface {name} {{\n{''.join(lines)}}}"


def _comment(doc: Any, indent: str) -> str:
    if not doc:
        return ""
    lines = [line.rstrip().replace("*/", "*\\/") for line in doc.splitlines()]
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"
