"""A tool's schema in the form every vendor accepts."""

from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from amanu.core.tool import Params, tool_schema


class Colour(StrEnum):
    RED = "red"


class Inner(BaseModel):
    title: str = Field(description="A field that is named title.")


class Everything(Params):
    path: str = Field(description="Where.")
    count: int | None = Field(default=None, description="How many.", ge=1)
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    inner: Inner | None = None
    many: list[Inner] = []


EXPECTED: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["path"],
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "count": {"type": "integer", "minimum": 1, "description": "How many."},
        "colour": {"type": "string", "enum": ["red"], "default": "red"},
        "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "inner": {
            "type": "object",
            "required": ["title"],
            "properties": {"title": {"type": "string", "description": "A field that is named title."}},
        },
        "many": {
            "type": "array",
            "default": [],
            "items": {
                "type": "object",
                "required": ["title"],
                "properties": {"title": {"type": "string", "description": "A field that is named title."}},
            },
        },
    },
}


@pytest.mark.parametrize(
    ("params", "expected"),
    [(Everything, EXPECTED), (Params, {"type": "object", "additionalProperties": False, "properties": {}})],
)
def test_schema(params: type[BaseModel], expected: dict[str, Any]) -> None:
    assert tool_schema(params) == expected
