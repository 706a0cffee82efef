"""Random interleavings, a few seeds of them (tests/support/random_session.py)."""

from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from support.random_session import play
from support.sweeps import sample


@pytest.mark.parametrize("seed", sample(range(4), 2))
async def test_whatever_comes_when_the_promises_hold(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    await play(tmp_path, seed)
