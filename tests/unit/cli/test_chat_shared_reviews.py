"""In the terminal one review is one question: its answer is about every change that stands above it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals
from unit.cli.test_chat import ENTER, GUARD, Desk, desk, started

__all__ = ["desk"]
LINES = "".join(f"line {n}\n" for n in range(1, 13))
QUESTION = "\n? Edit "


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", GUARD)


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"tool": "edit_file", "arguments": {"path": path, "old_text": f"{old}\n", "new_text": f"{new}\n"}}


TWO_OF_ONE = [edit("a.txt", "line 2", "LINE 2"), edit("a.txt", "line 11", "LINE 11")]
TWO_FILES = [edit("a.txt", "line 2", "LINE 2"), edit("b.txt", "line 11", "LINE 11")]
ONE_WAITS = [*TWO_OF_ONE, edit("a.txt", "LINE 2", "LINE TWO")]


async def asked(desk: Desk, count: int) -> None:
    """So many calls are asked about."""
    async with asyncio.timeout(50):
        while len(desk.chat._view.state.approvals) < count:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("typed", "accepted"),
    [
        (["a"], {0, 1}),
        (["r"], set()),
        (["n no tabs please"], set()),
        (["use floats please"], set()),
        (["h", "y", "n not this"], {0}),
    ],
    ids=["all", "none", "none, with a reason", "none, in words", "hunk by hunk"],
)
@pytest.mark.parametrize(
    ("edits", "first", "second"),
    [
        (TWO_OF_ONE, "LINE 2", "LINE 11"),
        (TWO_FILES, "LINE 2", "LINE 11"),
        (ONE_WAITS, "LINE TWO", "LINE 11"),
    ],
    ids=["two of one file", "two files", "one waits on another"],
)
async def test_one_answer_is_about_all_that_is_shown(
    desk: Desk,
    tmp_path: Path,
    edits: list[dict[str, Any]],
    first: str,
    second: str,
    typed: list[str],
    accepted: set[int],
) -> None:
    for name in ("a.txt", "b.txt"):
        (desk.root / name).write_text(LINES)
    await started(desk, tmp_path, {"text": "So.", "calls": edits}, {"text": "All decided."})
    desk.types("go" + ENTER)
    of_one_hunk = [each for each in typed if each != "n not this"]
    reviews = [of_one_hunk, of_one_hunk] if edits is TWO_FILES else [typed]
    for number, answers in enumerate(reviews):
        await desk.sees(f"+{second if number else first}\n")
        await asked(desk, len(edits) - number)  # the last call of the step is asked about a little later
        for answer in answers:
            await desk.answers(answer)
    await desk.sees("All decided.")
    expected = LINES
    for number, (old, new) in enumerate((("line 2\n", f"{first}\n"), ("line 11\n", f"{second}\n"))):
        if number in accepted and (edits is not TWO_FILES or number == 0):
            expected = expected.replace(old, new)
    assert (desk.root / "a.txt").read_text() == expected
    shown = desk.out.getvalue()
    if edits is TWO_FILES:
        assert shown.count(QUESTION) == len(reviews)
    else:  # it may be drawn anew while calls join it, and is not asked again after its answer
        shown = shown[shown.index(" hunks: ") :]
        assert QUESTION not in shown
    assert "The question has changed" not in shown
