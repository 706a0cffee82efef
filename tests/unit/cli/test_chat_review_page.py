"""The review page in a chat with a real core: what keys on it do to files."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.cli import review_page
from amanu.cli.ui import terminal, vi
from amanu.client.session_view import SessionView, attach
from amanu.permissions import approvals
from amanu_protocol import requests as r
from unit.cli.test_chat import ENTER, ESC, GUARD, Desk, desk, started, until_open, until_written

__all__ = ["desk"]
LINES = "".join(f"line {n}\n" for n in range(1, 31))


@pytest.fixture(autouse=True)
async def soon(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", GUARD)
    monkeypatch.setattr(review_page, "FRESH_SECONDS", GUARD)
    yield


def edit(path: str, line: int, new: str = "") -> dict[str, Any]:
    new = new or f"LINE {line}"
    return {"tool": "edit_file", "arguments": {"path": path, "old_text": f"line {line}\n", "new_text": f"{new}\n"}}


TWO = [edit("a.txt", 2), edit("a.txt", 20)]
THREE = [*TWO, edit("b.txt", 5)]


def view(desk: Desk) -> SessionView:
    return desk.chat._view  # pyright: ignore[reportPrivateUsage]


async def asked(desk: Desk, tmp_path: Path, edits: Sequence[dict[str, Any]], mode: str = "ask") -> None:
    for name in ("a.txt", "b.txt"):
        (desk.root / name).write_text(LINES)
    await started(desk, tmp_path, {"text": "So.", "calls": [*edits]}, {"text": "All done."})
    desk.terminal.has_pages = True
    if mode != "ask":
        desk.types(f"/mode {mode}{ENTER}")
        await desk.sees(f"mode: {mode}")
    desk.types("go" + ENTER)
    if mode == "ask":
        await until(desk, lambda: len(view(desk).state.approvals) == len(edits))
        await until_open(desk)
    else:
        await desk.sees("All done.")


async def paged(desk: Desk) -> None:
    """The page stands there, long enough for a decision."""
    await until(desk, lambda: desk.terminal.page is not None and desk.terminal.waits)
    await asyncio.sleep(GUARD + 2 * terminal.LOOK_SECONDS)


async def until(desk: Desk, holds: Any) -> None:
    async with asyncio.timeout(50):
        while not holds():
            assert not desk.task.done()
            await asyncio.sleep(0.01)


async def press(desk: Desk, *keys: str) -> None:
    """One after the other, each when the last one was carried out."""
    for before, key in zip(("", *keys), keys, strict=False):
        desk.terminal.app.invalidate()
        # After Esc the next key would be one with Alt.
        await asyncio.sleep(3 * vi.ESC_SECONDS["emacs"] if before == ESC else 2 * terminal.LOOK_SECONDS)
        await until(desk, lambda: (page := desk.terminal.page) is None or (page.is_drawn and desk.terminal.waits))
        desk.keyboard.send_text(key)


@pytest.mark.parametrize(
    ("keys", "lines", "end"),
    [
        (["a", "a"], {2: "LINE 2", 20: "LINE 20"}, "All is decided: 2 applied."),
        (["1", "2"], {2: "LINE 2"}, "All is decided: 1 applied, 1 rejected."),
        (["j", ENTER, "r"], {20: "LINE 20"}, "All is decided: 1 rejected, 1 applied."),
        (["A", ENTER], {2: "LINE 2", 20: "LINE 20"}, "All is decided: 2 applied."),
        (["R", ENTER], {}, "All is decided: 2 rejected."),
        (["A", ESC, "r", "r"], {}, "All is decided: 2 rejected."),
        (["a", "k", "u", "a", "A", ENTER], {2: "LINE 2", 20: "LINE 20"}, "All is decided: 2 applied."),
        (["w", "use floats", ENTER, "a"], {20: "LINE 20"}, "All is decided: 1 rejected, 1 applied."),
        (["w", "no", ESC, "e", "r"], {2: "mine"}, "All is decided: 1 applied, 1 rejected."),
    ],
)
async def test_keys_decide(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: list[str], lines: dict[int, str], end: str
) -> None:
    monkeypatch.setattr(terminal, "edit_text", lambda text, suffix: "mine\n")  # pyright: ignore[reportUnknownLambdaType]
    await asked(desk, tmp_path, TWO)
    await desk.answers("h")
    await paged(desk)
    await press(desk, *keys)
    await desk.sees(end)
    await desk.sees("All done.")
    expected = LINES
    for number, new in lines.items():
        expected = expected.replace(f"line {number}\n", f"{new}\n")
    assert (desk.root / "a.txt").read_text() == expected
    if "use floats" in keys:
        hunks = [hunk for each in view(desk).state.proposals for file in each.files for hunk in file.hunks]
        assert [hunk.reason for hunk in hunks] == ["use floats", None]
    await until(desk, lambda: desk.terminal.typed == ("no" if "no" in keys else ""))


@pytest.mark.parametrize(
    ("mode", "keys", "applied", "end"),
    [
        ("acceptEdits", ["a", "r", "a"], {"a.txt": [2], "b.txt": [5]}, "All is decided: 2 applied, 1 undone."),
        ("acceptEdits", ["n", "r", "q"], {"a.txt": [2, 20], "b.txt": []}, "Left the review: 2 applied, 1 undone."),
        ("acceptEdits", ["R", ENTER, "a"], {"a.txt": [], "b.txt": [5]}, "All is decided: 2 undone, 1 applied."),
        ("draft", ["A", ENTER, "r"], {"a.txt": [2, 20], "b.txt": []}, "All is decided: 2 applied, 1 rejected."),
    ],
)
async def test_review_shows_all_that_waits(
    desk: Desk, tmp_path: Path, mode: str, keys: list[str], applied: dict[str, list[int]], end: str
) -> None:
    await asked(desk, tmp_path, THREE, mode)
    if mode == "draft":  # the question at the end of the turn is left
        await until_open(desk)
        await desk.answers("f")
    desk.types("/review" + ENTER)
    await paged(desk)
    await press(desk, *keys)
    await desk.sees(end)
    for name, numbers in applied.items():
        expected = LINES
        for number in numbers:
            expected = expected.replace(f"line {number}\n", f"LINE {number}\n")
        assert (desk.root / name).read_text() == expected


async def test_nothing_waits_and_no_full_screen(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path)
    desk.types("/review" + ENTER)
    await desk.sees("This terminal has no full screen: /diff shows the changes;")
    desk.terminal.has_pages = True
    desk.types("/review" + ENTER)
    await desk.sees("Nothing waits for a review.")


async def test_another_client_decides_and_the_page_follows(desk: Desk, tmp_path: Path) -> None:
    await asked(desk, tmp_path, TWO)
    await desk.answers("h")
    await paged(desk)
    assert desk.client is not None
    proposal = view(desk).state.proposals[0]
    other = await attach(desk.client, view(desk).session_id)
    desk.client.on_event = lambda message: (other.receive(message), view(desk).receive(message))  # pyright: ignore
    first, second = proposal.files[0].hunks
    await other.resolve_changes(proposal, [r.HunkDecision(hunk_id=first.hunk_id, decision="reject")])
    page = desk.terminal.page
    assert page is not None and page.waiting == 1
    await other.resolve_changes(other.state.proposals[0], [r.HunkDecision(hunk_id=second.hunk_id, decision="reject")])
    await desk.sees("All is decided: 2 rejected.")
    assert (desk.root / "a.txt").read_text() == LINES


async def test_the_page_ends_with_its_daemon_and_gives_the_words_back(desk: Desk, tmp_path: Path) -> None:
    await asked(desk, tmp_path, TWO)
    await desk.answers("h")
    await paged(desk)
    await press(desk, "w", "use floats")
    await until_written(desk, "use floats")
    assert desk.client is not None
    await desk.client.close()
    await desk.sees("Lost the connection to the daemon; reconnecting …")
    assert desk.terminal.page is None and desk.terminal.typed == "use floats"
    await desk.sees("reconnected")
    assert (desk.root / "a.txt").read_text() == LINES


async def test_what_was_edited_is_not_lost_when_it_cannot_be_taken(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asked(desk, tmp_path, TWO)
    loop = asyncio.get_running_loop()

    def edit_text(text: str, suffix: str) -> str:
        proposal = view(desk).state.proposals[0]
        hunk = r.HunkDecision(hunk_id=proposal.files[0].hunks[1].hunk_id, decision="reject")
        asyncio.run_coroutine_threadsafe(view(desk).resolve_changes(proposal, [hunk]), loop).result()
        return "mine\n"

    monkeypatch.setattr(terminal, "edit_text", edit_text)
    await desk.answers("h")
    await paged(desk)
    await press(desk, "e", "q")
    await desk.sees("Left the review: 1 open, 1 rejected.")
    await until(desk, lambda: desk.terminal.typed == "mine\n")
    assert (desk.root / "a.txt").read_text() == LINES
