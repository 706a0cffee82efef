"""What a vendor's prompt cache finds again of our requests. (`python -m bench.cache` plays turns of 50 steps.)"""

from pathlib import Path
from typing import Any

import pytest

from support.cached_session import GOAL, WIRES, Wire, count
from support.prefix_cache import BLOCK, Kind, PrefixCache

MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize("wire", WIRES, ids=[wire.shape.name for wire in WIRES])
async def test_nearly_all_the_input_of_a_long_turn_comes_from_the_cache(wire: Wire, tmp_path: Path) -> None:
    counted = await count(wire, tmp_path, turns=1, steps=20, window=200_000)
    assert counted.refused == []
    assert counted.share >= GOAL


def said(*texts: str, system: str = "a " * 2_000, model: str = "m", marked: bool = False) -> dict[str, Any]:
    messages = [{"role": "user", "content": [{"type": "text", "text": text, **MARK}]} for text in texts[-1:]]
    before = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in texts[:-1]]
    body = {"model": model, "system": [{"type": "text", "text": system}], "messages": [*before, *messages]}
    return body | MARK if marked else body


@pytest.mark.parametrize(
    ("kind", "first", "second", "found"),
    [
        ("blocks", said("one"), said("one", "two"), True),
        ("marks", said("one"), said("one", "two"), True),
        ("one mark", said("one", marked=True), said("one", "two", marked=True), True),
        ("blocks", said("one"), said("one", system="b " * 2_000), False),
        ("marks", said("one"), said("one", system="b " * 2_000), False),
        ("marks", said("one"), said("another"), False),  # no mark where they part
        ("marks", said("one"), said("one", *map(str, range(21))), False),  # too far back
        ("blocks", said("one"), said("one", model="another"), False),
        ("blocks", said("one", system="short"), said("one", "two", system="short"), False),
        ("marks", said("one", system="short"), said("one", "two", system="short"), False),
    ],
)
def test_a_cache_finds_what_is_the_same_and_nothing_else(
    kind: Kind, first: dict[str, Any], second: dict[str, Any], found: bool
) -> None:
    cache = PrefixCache(kind)
    size, nothing = cache.read(first)
    assert nothing == 0
    _, cached = cache.read(second)
    assert (size - BLOCK < cached <= size) if found else cached == 0
