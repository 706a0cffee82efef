"""The base of everything that travels between daemon and clients."""

from functools import cache
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel


class Wire(BaseModel):
    """A value on the wire: camelCase JSON outside, snake_case Python inside.

    Immutable, so that an event can be shared by the fold, the journal and every client. Unknown fields
    are tolerated (an older receiver must survive a newer sender); missing or ill-typed ones are errors.
    """

    model_config = ConfigDict(
        alias_generator=cache(to_camel),
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="ignore",
        frozen=True,
        json_schema_serialization_defaults_required=True,
    )


class Message(Wire):
    """The params or result of a method. Its schema is built when the first one comes: there are many, and a session
    needs a few."""

    model_config = ConfigDict(defer_build=True)


MOST = 2**31 - 1
"""The greatest number of a line or character, as in LSP."""


class LineRange(Wire):
    """Whole lines of a text, as an LSP range counts them: from 0, `end` exclusive. `start == end`: no lines, a place
    before line `start`."""

    start: int = Field(ge=0, le=MOST)
    end: int = Field(ge=0, le=MOST)

    @classmethod
    def numbered(cls, first: int, last: int) -> Self:
        """The lines from `first` to `last`, as people and models count them: from 1, inclusive. Numbers that can be
        meant for no lines are taken for the nearest that can."""
        first = min(max(first, 1), MOST)
        return cls(start=first - 1, end=min(max(first, last), MOST))

    @property
    def first(self) -> int:
        """The first line, counted from 1: the way people and models count."""
        return self.start + 1

    @property
    def last(self) -> int:
        """The last line, counted from 1, inclusive; the first, if there are no lines."""
        return max(self.end, self.start + 1)

    @property
    def count(self) -> int:
        return self.end - self.start

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        if self.end < self.start:
            raise ValueError("lines end before they begin")
        return self


class AboutLines(Wire):
    """Has `lines`. Journals of protocol 3 and before have `startLine` and `endLine` instead, from 1 and inclusive."""

    @model_validator(mode="before")
    @classmethod
    def _read_old_lines(cls, fields: Any) -> Any:
        if not isinstance(fields, dict) or "lines" in fields:
            return cast("Any", fields)
        old = cast("dict[str, Any]", fields)
        first, last = old.get("startLine"), old.get("endLine")
        if not isinstance(first, int):
            return old
        return {**old, "lines": LineRange.numbered(first, last if isinstance(last, int) else first)}


class Position(Wire):
    """LSP's: `line` from 0, `character` from 0 in units of the position encoding that `initialize` settled."""

    line: int = Field(ge=0, le=MOST)
    character: int = Field(ge=0, le=MOST)


class Range(Wire):
    """LSP's: `end` is exclusive."""

    start: Position
    end: Position

    @model_validator(mode="after")
    def _is_ordered(self) -> Self:
        if (self.end.line, self.end.character) < (self.start.line, self.start.character):
            raise ValueError("a range ends before it begins")
        return self
