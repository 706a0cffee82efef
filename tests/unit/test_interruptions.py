"""A small sample of the sweep `python -m bench.soak interruptions`; see `interruptions.py`."""

from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from support.interruptions import SCENES, How, interrupt
from support.required_programs import needs


@pytest.mark.parametrize(
    ("scene", "how", "moments"),
    [
        ("a command", "cancel", (21, 34)),
        ("a command", "leave", (47,)),
        ("a command in a sandbox", "close", (61,)),
        ("a search", "cancel", (11, 18)),
        ("a search", "close", (33,)),
        ("an edit that is checked", "leave", (72,)),
        ("edits that are applied", "cancel", (40, 65)),
        ("openai without an end", "cancel", (5, 25)),
        ("openai without an answer", "leave", (40,)),
    ],
)
async def test_a_turn_that_is_broken_off_ends_and_leaves_nothing(
    tmp_path: Path, scene: str, how: How, moments: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if SCENES[scene].sandbox:
        needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    await interrupt(tmp_path, SCENES[scene], how, moments)
