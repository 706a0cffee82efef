"""The protocol as LuaLS annotations, with the names of methods and kinds as constants.

JSON's null becomes nil in Neovim (`luanil`), so what may be null is an optional field.
"""

from typing import Any, cast

from generators.schema import NOTE, Schema


def text(protocol: Schema) -> str:
    """The whole file; as a module it returns the constants."""
    definitions: dict[str, Schema] = protocol["$defs"]
    parts = [
        f"-- {NOTE}",
        *(_definition(name, schema) for name, schema in definitions.items()),
        "local M = {}",
        f"M.VERSION = {protocol['version']}\n"
        f"M.REQUEST_FAILED = {protocol['errorCodes']['requestFailed']}\n"
        f"M.INVALID_PARAMS = {protocol['errorCodes']['invalidParams']}",
        _constants("methods", "by noun and verb", {_name(name): name for name in protocol["methods"]}),
        _constants("events", "kinds of events", _kinds(definitions, "Event")),
        _constants("items", "kinds of items", _kinds(definitions, "Item")),
        "return M",
    ]
    return "\n\n".join(parts) + "\n"


def _definition(name: str, schema: Schema) -> str:
    lines = [f"---{line}".rstrip() for line in schema.get("description", "").splitlines()]
    if schema.get("type") != "object":
        return "\n".join([*lines, f"---@alias amanu.{name} {_type(schema)}"])
    lines.append(f"---@class amanu.{name}")
    for key, field in schema["properties"].items():
        optional = "" if key in schema["required"] and not _nullable(field) else "?"
        doc = " ".join(field.get("description", "").split())
        lines.append(f"---@field {key}{optional} {_type(field)} {doc}".rstrip())
    return "\n".join(lines)


def _type(schema: Schema) -> str:
    match schema:
        case {"$ref": reference}:
            return f"amanu.{reference.rsplit('/', 1)[-1]}"
        case {"const": value}:
            return f'"{value}"'
        case {"enum": values}:
            return "|".join(f'"{value}"' for value in values)
        case {"anyOf": options} | {"oneOf": options}:
            return "|".join(_type(option) for option in options if option != {"type": "null"})
        case {"type": "array", "items": items}:
            item = _type(items)
            return f"({item})[]" if "|" in item else f"{item}[]"
        case {"type": "object", "additionalProperties": values} if isinstance(values, dict):
            return f"table<string, {_type(cast(Schema, values))}>"
        case {"type": "object"}:
            return "table"
        case {"type": str(name)}:
            return name
        case _:
            return "any"


def _nullable(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", [])


def _name(method: str) -> str:
    """`amanu/session/setMode` → `session_set_mode`."""
    plain = method.removeprefix("amanu/").replace("/", "_")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in plain)


def _kinds(definitions: dict[str, Schema], union: str) -> dict[str, str]:
    names = [option["$ref"].rsplit("/", 1)[-1] for option in definitions[union]["oneOf"]]
    kinds: list[Any] = [definitions[name]["properties"]["kind"]["const"] for name in names]
    return {_name(kind): kind for kind in kinds}


def _constants(table: str, doc: str, values: dict[str, str]) -> str:
    lines = "".join(f'  {name} = "{value}",\n' for name, value in values.items())
    return f"---{doc[0].upper()}{doc[1:]}.\nM.{table} = {{\n{lines}}}"
