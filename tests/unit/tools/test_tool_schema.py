"""A tool's schema in the form every vendor accepts."""

from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from amanu.core.tool import Params, tool_schema


class Colour(StrEnum):
    RED = "red"


class Inner(BaseModel):
    title: str = Field(description="A field that is named title.", max_length=9)
    minimum: int | None = Field(default=None, description="One that is named like a limit.")


class Everything(Params):
    path: str = Field(description="Where.")
    count: int | None = Field(default=None, description="How many.", ge=1)
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    inner: Inner | None = None
    many: list[Inner] = Field(default=[], min_length=1, max_length=4)
    all_of_them: bool = False
    share: float = Field(default=0.5, gt=0, lt=1, description="Which part.")
    sizes: dict[str, int] = {}


INNER = {
    "type": "object",
    "required": ["title"],
    "properties": {
        "title": {"type": "string", "description": "A field that is named title."},
        "minimum": {"type": "integer", "description": "One that is named like a limit."},
    },
}
EXPECTED: dict[str, Any] = {
    "type": "object",
    "required": ["path"],
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "count": {"type": "integer", "description": "How many."},
        "colour": {"type": "string", "enum": ["red"], "default": "red"},
        "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "inner": INNER,
        "many": {"type": "array", "items": INNER},
        "all_of_them": {"type": "boolean"},
        "share": {"type": "number", "default": 0.5, "description": "Which part."},
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}


@pytest.mark.parametrize(
    ("params", "expected"),
    [(Everything, EXPECTED), (Params, {"type": "object", "properties": {}})],
)
def test_schema(params: type[BaseModel], expected: dict[str, Any]) -> None:
    assert tool_schema(params) == expected
