"""How a strict service says no, and what several of them check alike."""

from collections.abc import Mapping
from typing import Any, cast

from support.strict_services.http import Refusal


class Refused(Exception):
    """The service would answer with an error status."""

    def __init__(self, message: str, status: int = 400, code: str = "") -> None:
        super().__init__(message)
        self.refusal = Refusal(status, message, code)


def need(holds: object, otherwise: str) -> None:
    if not holds:
        raise Refused(otherwise)


def known(value: Any, fields: set[str], where: str) -> dict[str, Any]:
    """`value` as an object of no other fields than these; snake_case counts as camelCase."""
    need(isinstance(value, dict), f"Invalid value at '{where}': an object is expected")
    taken = {camel(name): each for name, each in cast(dict[str, Any], value).items()}
    extra = sorted(taken.keys() - fields)
    need(not extra, f"Invalid JSON payload received. Unknown name \"{extra[0] if extra else ''}\" at '{where}'")
    return taken


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def texts(value: Mapping[str, Any], name: str, where: str) -> str:
    """The field as text; refused when it is something else, or not there."""
    text = value.get(name)
    need(isinstance(text, str), f"Invalid value at '{where}.{name}' (TYPE_STRING)")
    return cast(str, text)
