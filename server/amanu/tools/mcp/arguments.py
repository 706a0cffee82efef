"""Whether arguments fit the schema of an MCP tool, before the user is asked about them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from pydantic import JsonValue

from amanu.core.nesting import MAX_NESTING, too_deep
from amanu.core.tool import ToolError
from amanu.text.display import one_line

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_ARGUMENTS = 1_000_000
"""Characters of the arguments of one call, as JSON."""
MAX_CHECKED = 2_000
"""Values in the arguments of one call that are checked here; the server checks all."""
_MAX_FAULTS = 5


def require_short(name: str, arguments: Mapping[str, JsonValue]) -> None:
    """Raises `ToolError` for arguments of that tool that are longer or nested deeper than any server needs."""
    if too_deep(arguments):
        raise ToolError(f"The arguments of {name} are nested more than {MAX_NESTING} deep.")
    if len(json.dumps(arguments)) > MAX_ARGUMENTS:
        raise ToolError(f"The arguments of {name} are too long: at most {MAX_ARGUMENTS:,} characters.")


def check(name: str, schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> None:
    """Hold the arguments of that tool against its schema, which `input_schema.py` made. Raises `ToolError`."""
    if sum(1 for _, _ in zip(_values(arguments), range(MAX_CHECKED + 1), strict=False)) > MAX_CHECKED:
        return
    # null: the schema for models has no word for it, so whether it fits only the server knows. Other arguments: many
    # servers forbid them in their schema and ignore them all the same.
    found = _faults(schema, arguments)
    wrong = (fault for fault in found if fault.instance is not None and fault.validator != "additionalProperties")
    faults = [_describe(fault) for fault, _ in zip(wrong, range(_MAX_FAULTS), strict=False)]
    if faults:
        raise ToolError(f"Wrong arguments for {name}: {'; '.join(faults)}. Correct them and call again.")


class _Validator(Protocol):
    def iter_errors(self, instance: Any) -> "Iterator[ValidationError]": ...


def _faults(schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> "Iterator[ValidationError]":
    from jsonschema.validators import Draft202012Validator  # 30 ms: only who calls such a tool pays for it

    validator = cast("_Validator", Draft202012Validator(dict(schema)))
    yield from validator.iter_errors(dict(arguments))


def _describe(fault: "ValidationError") -> str:
    path = ".".join(str(part) for part in cast("Sequence[Any]", fault.absolute_path)) or "arguments"
    return f"{one_line(path)}: {one_line(fault.message)}"


def _values(value: JsonValue | Mapping[str, JsonValue]) -> Iterator[None]:
    yield None
    match value:
        case Mapping():
            for member in cast("Mapping[str, JsonValue]", value).values():
                yield from _values(member)
        case list():
            for item in value:
                yield from _values(item)
        case _:
            pass
