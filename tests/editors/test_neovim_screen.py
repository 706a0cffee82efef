"""What the plugin draws, looked at on a screen: buffers may hold what a user never sees."""

from pathlib import Path
from typing import Any

import pytest

from editors.test_neovim import ENDED, OPEN, SHOP, STATE, Start, edit, folder, home, start, write
from support.neovim import Neovim

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

SIZES = [(90, 26), (160, 45)]
CHAT = "require('amanu.chat.view').buffer"
LONG = {(90, 26): 640, (160, 45): 2400}
"""Characters of a paragraph that is taller than the chat of that screen."""


def paragraph(characters: int) -> str:
    words = " ".join(f"word{n}" for n in range(characters))
    return words[:characters] + " and that is all."


# The chat ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_end_of_a_paragraph_taller_than_the_chat_is_shown(size: tuple[int, int], start: Start) -> None:
    steps: list[dict[str, Any]] = [{"text": paragraph(LONG[size]), "chunk": 40, "delay_ms": 2}]
    vim = start(size=size, steps=steps)
    vim.keys(":Amanu talk<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    shown = vim.window(CHAT)
    assert " ".join(shown.split()).endswith("and that is all.")
    assert shown.count("\n") > size[1] // 3, "it fills the window"
    session = vim.lua(f"return {STATE}.sessionId")
    vim.keys(":Amanu /new<CR>")
    vim.until(f"{STATE}.sessionId ~= ...", session)
    vim.lua("require('amanu.session').attach(...)", session)
    vim.until(f"{STATE}.sessionId == ... and #{STATE}.items > 1", session)
    assert " ".join(vim.window(CHAT).split()).endswith("and that is all.")


ASIDE = "┆ Its changes are shown further down."


def test_hunks_of_two_edits_of_a_file_are_shown_once(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    calls = [
        edit("shop.py", "sum(item.price for item in items)", "sum(item.price * item.quantity for item in items)"),
        edit("shop.py", "amount > LIMIT", "amount >= LIMIT"),
    ]
    vim = start("shop.py", size=(160, 45), steps=[{"calls": calls}, {"text": "Done."}])
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals == 2")
    hunks = ("@@ line 5 @@ ", "@@ line 13 @@ ", "-    return sum(", "+    return 0 if amount >= LIMIT")
    waiting = vim.window(CHAT)
    first, last = waiting.split("● ")[1:]
    assert first.rstrip().endswith(ASIDE)
    assert [last.count(each) for each in hunks] == [1, 1, 1, 1]
    assert not any(each in first for each in hunks)
    vim.wait_for_answers()
    vim.keys("<Space>aA")
    vim.until(f"({ENDED}) == 'completed'")
    assert [vim.chat().count(each) for each in hunks] == [1, 1, 1, 1], "and no more often once they are decided"
    assert ASIDE in vim.chat()


# Hunks in the file -------------------------------------------------------------------------------------------------

FILE = "vim.fn.bufnr('notes.txt')"
LINES = [f"line {n}" for n in range(1, 201)]
TALL = 60
"""Lines of a hunk that no window here can hold."""


def becomes(number: int, count: int) -> list[str]:
    """What is proposed for that line."""
    return [f"new {number}.{n}" for n in range(1, count + 1)]


def proposing(folder: Path, counts: dict[int, int]) -> list[dict[str, Any]]:
    """A model's steps: in a file of 200 lines, with `{7: 3}` line 7 becomes 3 lines."""
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    new = [line for n in range(1, 201) for line in (becomes(n, counts[n]) if n in counts else [f"line {n}"])]
    return [{"calls": [write("notes.txt", "\n".join(new) + "\n")]}, {"text": "Done."}]


def begin(vim: Neovim, hunks: int) -> None:
    """Until as many wait, and answers are taken."""
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0 and {OPEN} == ...", hunks)
    vim.wait_for_answers()


def on_screen(vim: Neovim, number: int, count: int) -> bool:
    """The whole hunk: what goes, the keys, and what comes."""
    rows = [" ".join(row.split()) for row in vim.window(FILE).splitlines()]
    expected = [f"+ {line}" for line in becomes(number, count)]
    at = rows.index(expected[0]) if expected[0] in rows else 0
    before = "\n".join(rows[:at]).partition(f"- line {number}\n")[2]
    return before.startswith("amanu ") and rows[at : at + count] == expected


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_after_a_jump_the_whole_hunk_is_on_the_screen(size: tuple[int, int], start: Start, folder: Path) -> None:
    counts = {1: 3, 24: 8, 43: 8, 58: 12, 200: 9}
    vim = start("notes.txt", size=size, steps=proposing(folder, counts))
    begin(vim, len(counts))
    vim.keys(":50,70fold<CR>gg")
    out_of_sight: list[tuple[str, int]] = []
    for key, numbers in {"]a": (24, 43, 58, 200, 1), "[a": (200, 58, 43, 24, 1)}.items():
        for number in numbers:
            vim.keys(key)
            assert vim.lua("return vim.api.nvim_win_get_cursor(0)[1]") == number
            if not on_screen(vim, number, counts[number]):
                out_of_sight.append((key, number))
    assert out_of_sight == []
    vim.keys("]a<Space>aa")
    vim.until(f"{OPEN} == ...", len(counts) - 1)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_key_accepts_no_hunk_that_is_out_of_sight(size: tuple[int, int], start: Start, folder: Path) -> None:
    vim = start("notes.txt", size=size, steps=proposing(folder, {58: 5}))
    begin(vim, 1)
    vim.keys("gg58G")
    vim.lua("vim.fn.winrestview({ topline = 59 - vim.api.nvim_win_get_height(0) })")  # it is the last line
    assert not on_screen(vim, 58, 5)
    vim.keys("<Space>aa")
    vim.until("vim.iter(Said):any(function(text) return text:find('press again') ~= nil end)")
    assert vim.lua(f"return {OPEN}") == 1
    assert on_screen(vim, 58, 5)
    vim.keys("<Space>aa")
    vim.until(f"{OPEN} == 0")


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_hunk_taller_than_the_window_is_asked_about(size: tuple[int, int], start: Start, folder: Path) -> None:
    vim = start("notes.txt", size=size, steps=proposing(folder, {58: TALL}))
    begin(vim, 1)
    vim.keys("gg]a")
    vim.answer("Show it side by side")
    vim.keys("<Space>aa")
    assert vim.lua("return Asked[1]") == {
        "prompt": f"Not all of this hunk fits on the screen (+{TALL} -1).",
        "labels": ["Show it side by side", "Accept it all the same"],
    }
    vim.until("vim.wo.diff")
    shown = vim.window("vim.api.nvim_get_current_buf()")
    assert "new 58.1\n" in shown and "new 58.9\n" in shown, "it begins on the screen"
    vim.keys("<Space>aa")  # closed without an answer
    assert vim.lua("return Asked[2].labels") == ["Accept it all the same"]
    assert vim.lua(f"return {OPEN}") == 1
    vim.answer("Accept it all the same")
    vim.keys("q<Space>aa")
    vim.until(f"{OPEN} == 0")
