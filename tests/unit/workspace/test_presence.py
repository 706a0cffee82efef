"""Hunks follow their file as a whole."""

import itertools
from pathlib import Path

import pytest

from amanu.proposals.model import LiveFile
from amanu.proposals.presence import Presence, follow_presence
from amanu.workspace.text_file import FileText, sha256

TEXT = "".join(f"line {n}\n" for n in range(1, 13))
PROPOSED = TEXT.replace("line 2\n", "two\n").replace("line 9\n", "nine\n")
FILE = FileText(Path("/w/f.txt"), TEXT, sha256(TEXT.encode()))


@pytest.mark.parametrize(
    ("is_there", "asked", "decided", "states", "looks"),
    [
        (True, False, False, "pending", 0),
        (True, True, False, "pending", 0),
        (False, False, False, "rejected", 1),
        (False, True, False, "pending", 1),
        (False, False, True, "pending", 0),
    ],
)
def test_only_of_a_deleted_file_it_is_looked_whether_its_changes_are_asked_about(
    is_there: bool, asked: bool, decided: bool, states: str, looks: int
) -> None:
    """A proposal may have hundreds of files and calls: each look costs what its calls are."""
    file, looked = LiveFile(FILE, TEXT), list[bool]()
    file.propose(PROPOSED, "c1", itertools.count(1), "p")

    def look() -> bool:
        looked.append(asked)
        return asked

    changed = follow_presence(file, Presence(FILE if is_there else None), asked=look, decided=decided)
    assert [hunk.state for hunk in file.hunks] == [states] * 2 and changed == (states == "rejected")
    assert len(looked) == looks
