"""The reference for people: methods by noun, events, types and errors."""

from generators.schema import NOTE, Schema
from generators.typescript import type_of

BAR = "\\|"
"""A bar inside a table's cell."""
HEAD = """# Reference of the Amanu protocol, version {version}

[protocol.md](protocol.md) explains how these are used, with examples. The same for machines:
`protocol/schema/protocol.json` (JSON Schema), `vscode-extension/src/protocol.ts`, `neovim/lua/amanu/protocol.lua`."""


def text(protocol: Schema) -> str:
    """The whole page."""
    definitions: dict[str, Schema] = protocol["$defs"]
    events = [option["$ref"].rsplit("/", 1)[-1] for option in definitions["Event"]["oneOf"]]
    elsewhere = {*events, "Event", "EventMessage", "ErrorKind", "ErrorData", "Empty", *_of_one_method(protocol)}
    by_noun: dict[str, list[str]] = {}
    for name in protocol["methods"]:
        by_noun.setdefault(name.split("/")[1], []).append(name)
    parts = [f"<!-- {NOTE} -->", HEAD.format(version=protocol["version"]), "## Methods"]
    for noun, names in by_noun.items():
        parts += [f"### {noun}", *(_method(name, protocol["methods"][name], definitions) for name in names)]
    parts += ["## Events", *_type("EventMessage", definitions["EventMessage"], level=0)]
    for name in events:
        parts += _type(definitions[name]["properties"]["kind"]["const"], definitions[name])
    parts.append("## Types")
    for name, schema in definitions.items():
        if name not in elsewhere:
            parts += _type(name, schema)
    parts += ["## Errors", *_type("ErrorData", definitions["ErrorData"], level=0)]
    parts.append(_paragraph(definitions["ErrorKind"]))
    parts.append("`kind` is one of " + ", ".join(f"`{kind}`" for kind in definitions["ErrorKind"]["enum"]) + ".")
    return "\n\n".join(part for part in parts if part) + "\n"


def _of_one_method(protocol: Schema) -> set[str]:
    """Parameters and results, which are shown under their method."""
    return {
        entry[part]["$ref"].rsplit("/", 1)[-1]
        for entry in protocol["methods"].values()
        for part in ("params", "result")
        if entry[part]
    }


def _method(name: str, entry: Schema, definitions: dict[str, Schema]) -> str:
    way = "client → daemon" if entry["direction"] == "toDaemon" else "daemon → client"
    lines = [f"#### `{name}`", f"{entry['kind'].capitalize()}, {way}. {entry['description']}"]
    for part in ("params", "result"):
        if not entry[part]:
            continue
        type_name = entry[part]["$ref"].rsplit("/", 1)[-1]
        if type_name == "EventMessage":
            lines.append("Parameters: `EventMessage`, see [Events](#events).")
        elif not definitions[type_name]["properties"]:
            lines.append(f"{_TITLES[part]}: `{{}}`.")
        else:
            doc = _paragraph(definitions[type_name])
            lines += [f"{_TITLES[part]}{': ' + doc if doc else ':'}", _fields(definitions[type_name])]
    return "\n\n".join(lines)


_TITLES = {"params": "Parameters", "result": "Result"}


def _type(name: str, schema: Schema, level: int = 3) -> list[str]:
    """A heading (none at level 0), what it is, and its fields or its alternatives."""
    heading = f"{'#' * level} {name}" if level else ""
    if schema.get("type") == "object":
        return [heading, _paragraph(schema), _fields(schema)]
    return [heading, _paragraph(schema), f"`{type_of(schema)}`"]


def _fields(schema: Schema) -> str:
    rows = ["| field | type | |", "|---|---|---|"]
    for name, field in schema["properties"].items():
        optional = "" if name in schema["required"] else "?"
        default = field.get("default")
        note = f"Default `{default}`." if default not in (None, [], False) else ""
        doc = " ".join([*_paragraph(field).split(), note]).strip()
        cells = (f"`{name}{optional}`", f"`{type_of(field)}`", doc)
        rows.append(f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |")
    return "\n".join(rows)


def _paragraph(schema: Schema) -> str:
    return str(schema.get("description", ""))
