"""The depth to which values may be nested, whoever wrote them."""

from typing import Any, cast

MAX_NESTING = 64
"""Levels of one call's arguments. The JSON writers and validators they go through end between 200 and 1,000."""


def too_deep(value: Any) -> bool:
    """Whether a JSON value has more than `MAX_NESTING` levels. Without recursion: it may have very many."""
    level: list[Any] = [value]
    for _ in range(MAX_NESTING + 1):
        level = [inner for node in level for inner in _inside(node)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []
