"""A sample of the games of `random_edits.py`; `make soak` plays on."""

import tempfile
from pathlib import Path

import pytest

from amanu.proposals import tracking as following
from support.random_edits import Game, stack
from support.sweeps import examples

GAMES = examples(80, 24)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(following, "QUIET", 0.001)


@pytest.mark.parametrize("part", range(4))
async def test_any_sequence_keeps_the_promises(part: int) -> None:
    for seed in range(part * GAMES // 4, (part + 1) * GAMES // 4):
        with tempfile.TemporaryDirectory() as folder:
            game = Game(Path(folder), seed)
            try:
                await game.play()
            except BaseException as error:
                raise AssertionError(f"seed {seed}: {game.log}\n{error}") from error


@pytest.mark.parametrize("part", range(2))
async def test_a_stack_is_unwound_to_the_byte(part: int) -> None:
    for seed in range(part, GAMES // 2, 2):
        with tempfile.TemporaryDirectory() as folder:
            try:
                await stack(Path(folder), seed)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
