"""Which calls a hunk belongs to: those that wrote lines of it or next to it, whatever later calls changed."""

import itertools
import random
from pathlib import Path

import pytest

from amanu.proposals.model import LiveFile, TouchedLines, carry_over
from amanu.workspace.diff import LineChange
from amanu.workspace.text_file import FileText, split_lines


@pytest.mark.parametrize(
    ("touch", "step", "expected"),
    [
        ((2, 3), [], (2, 3)),
        ((2, 3), [(5, 6, 5, 9)], (2, 3)),
        ((5, 6), [(2, 3, 2, 5)], (7, 8)),
        ((5, 6), [(0, 1, 0, 0), (2, 2, 1, 4)], (7, 8)),
        ((2, 6), [(3, 4, 3, 8)], (2, 10)),  # widened by what was changed in it
        ((2, 6), [(1, 3, 1, 2)], (1, 5)),
        ((2, 6), [(5, 9, 5, 5)], (2, 5)),
        ((2, 4), [(4, 4, 4, 6)], (2, 6)),  # put in right behind it
        ((2, 4), [(2, 2, 2, 3)], (2, 5)),
        ((3, 3), [(3, 3, 3, 5)], (3, 5)),
    ],
)
def test_lines_are_carried_over_a_later_change(
    touch: tuple[int, int], step: list[tuple[int, int, int, int]], expected: tuple[int, int]
) -> None:
    carried = carry_over([TouchedLines("call", *touch)], [LineChange(*change) for change in step])
    assert carried == [TouchedLines("call", *expected)]


@pytest.mark.parametrize("seed", range(40))
def test_a_hunk_belongs_to_the_calls_next_to_it(seed: int) -> None:
    chance = random.Random(seed)
    base = "".join(f"line {n}\n" for n in range(60))
    file = LiveFile(FileText(Path("/w/f.txt"), base, ""), base)
    numbers = itertools.count(1)
    for call in range(4):
        lines = list(split_lines(file.text))
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(lines))
            lines[at : at + chance.randint(0, 2)] = [f"{call} {chance.random()}\n" for _ in range(chance.randint(0, 2))]
        file.propose("".join(lines), f"call-{call}", numbers, "p")
    for hunk in file.placed_hunks:
        start, end = hunk.proposed_lines.start, hunk.proposed_lines.end
        near = {touch.call_id for touch in file.touches if touch.start <= end and start <= touch.end}
        assert file.owners[hunk.hunk_id] == near
