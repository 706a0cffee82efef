"""What the plugin draws, looked at on a screen: buffers may hold what a person never sees."""

from pathlib import Path
from typing import Any

import pytest

from editors.test_neovim import ENDED, SHOP, STATE, Start, edit, folder, home, start

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

SIZES = [(90, 26), (160, 45)]
CHAT = "require('amanu.view').buffer"
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


ASIDE = "┆ Its changes are shown with the last edit of this step."


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
