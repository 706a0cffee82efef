"""Random walks over two sessions with sub-agents, some seeds of them (tests/support/random_walk.py)."""

from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from support.random_walk import walk
from support.required_programs import needs
from support.sweeps import sample


@pytest.mark.layers
@pytest.mark.parametrize("seed", sample(range(200), 5))
async def test_whatever_is_done_each_session_keeps_what_is_its_own(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    await walk(tmp_path, seed)
