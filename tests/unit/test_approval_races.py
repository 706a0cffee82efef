"""A sample of `tests/support/approval_races.py`; all of it is in `make soak`."""

from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from support import approval_races
from support.sweeps import sample_pairs


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def test_what_became_something_else_is_asked_about_again(tmp_path: Path) -> None:
    scripts = [f"{way}: {change}" for way, change in sample_pairs(approval_races.WAYS, list(approval_races.CHANGES))]
    names = [*scripts, *approval_races.OTHER_MUTATORS]
    assert await approval_races.mutate(tmp_path, names, rounds=1) == {"asked again, no": len(names)}


async def test_what_changes_while_the_walls_are_built_is_not_run(tmp_path: Path) -> None:
    names = ["./x.sh: replaced by rename", "where a link leads", "a program earlier in PATH", "the working folder"]
    ends = await approval_races.mutate(tmp_path, names, rounds=3)
    assert ends.total() == 12
    assert ends["not run"] >= 4


@pytest.mark.parametrize("name", approval_races.EDITS)
async def test_an_edit_of_what_became_something_else_is_asked_about_again(tmp_path: Path, name: str) -> None:
    assert (await approval_races.edit(tmp_path, name, rounds=2)).total() == 2


async def test_only_a_yes_to_this_very_question_counts(tmp_path: Path) -> None:
    await approval_races.answer(tmp_path, list(approval_races.ANSWERS), rounds=1)


async def test_a_yes_counts_once_and_not_after_a_cancel(tmp_path: Path) -> None:
    assert await approval_races.repeat(tmp_path, 2) == {
        "five times yes: ran once": 1,
        "after a cancel: alreadyResolved": 1,
    }


async def test_of_a_script_that_is_written_again_and_again_what_was_approved_runs(tmp_path: Path) -> None:
    ends = await approval_races.race(tmp_path, "written", "bubblewrap", 4)
    assert ends.total() == 4
    assert not any("stale" in each for each in ends)
