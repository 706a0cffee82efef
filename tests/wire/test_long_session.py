"""Many steps in a small window, in all three vendors' shapes: compacted as often as needed, never refused, nothing of
what the user said, touched or wants is lost. (`python -m bench.context` plays 400 steps.)"""

from pathlib import Path

import pytest

from support.long_session import SHAPES, Shape, play
from support.sweeps import examples

STEPS = examples(90, 60)


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.name for shape in SHAPES])
async def test_a_long_session_in_a_small_window(shape: Shape, tmp_path: Path) -> None:
    played = await play(shape, tmp_path, steps=STEPS)
    assert played.refused == []
    assert played.overflows == 0
    assert played.lost == []
    assert played.steps == STEPS
    assert played.compactions >= 1
    assert played.summaries >= played.compactions
    assert played.error < 0.1
