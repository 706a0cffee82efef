"""Calls in a form that answers have too: JSON in a fence, or behind a few words.

No model is trained to write them so, but small ones do. They are never made: the model is asked to make the call.
"""

import json
import re
from collections.abc import Collection
from typing import Any, cast

from amanu.agent.markup.shapes import NotACall, Unreadable, WrittenCall, has_arguments, in_json

PROSE = 300
"""Characters allowed before the JSON: enough for an announcement, not for an explanation."""
LONGEST = 100_000
"""Characters at a reply's end that are examined; a call that writes a file may be long."""


def shown_call(text: str, tools: Collection[str]) -> WrittenCall | None:
    """The first call of one of the tools that ends a reply and is almost the whole of it; None if there is none. Linear
    in the text."""
    text = text.rstrip()[-LONGEST:]
    before, language, code = _fenced(text) or _bare(text)
    if len(before.strip()) > PROSE or language not in ("", "json"):
        return None
    try:
        value: Any = json.loads(code)
        calls, _ = in_json(code, 0)
    except (ValueError, RecursionError, NotACall, Unreadable):
        return None
    if not all(map(has_arguments, cast("list[Any]", value) if isinstance(value, list) else [value])):
        return None
    return next((call for call in calls if call.tool in tools), None)


def _fenced(text: str) -> tuple[str, str, str] | None:
    """(text before, language, code) of the fenced block that ends the text; None if there is none."""
    opened: tuple[int, str, int] | None = None
    closed: tuple[int, str, int, int] | None = None
    offset = 0
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if opened is not None:
            if stripped == "```":
                opened, closed = None, (*opened, offset)
        elif stripped:
            opened = (offset, stripped[3:].strip(), offset + len(line)) if stripped.startswith("```") else None
            closed = None
        offset += len(line)
    if closed is None:
        return None
    start, language, begin, end = closed
    return text[:start], language, text[begin:end]


def _bare(text: str) -> tuple[str, str, str]:
    """The same for JSON without a fence that begins a line and ends the text."""
    start = re.search(r"^[ \t]*[\[{]", text, re.MULTILINE)
    return (text, "", "") if start is None else (text[: start.start()], "", text[start.start() :])
