"""What fills the model's window, and a summary in the place of what is old, as Neovim shows them. See test_neovim.py
for the rest of the plugin."""

from pathlib import Path
from typing import Any

import pytest

from editors.test_neovim import CLOSED, ENDED, STATE, Start, folder, home, start

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

CONTEXT: dict[str, Any] = {
    "system": 900,
    "tools": 2_100,
    "memory": 0,
    "conversation": 1_200,
    "toolOutput": 4_800,
    "reserved": 4_000,
    "free": 3_000,
    "tier": "mask",
    "servers": [{"name": "git", "tokens": 1_200}],
}
SPENT: dict[str, Any] = {
    "inputTokens": 1_000,
    "cacheReadTokens": 3_000,
    "cacheWriteTokens": 0,
    "outputTokens": 400,
    "thoughtTokens": 100,
    "costUsd": 1.5,
    "summary": "4k in · 500 out · $1.50",
}
USAGE: dict[str, Any] = {
    **SPENT,
    "contextTokens": 8_000,
    "contextWindow": 16_000,
    "cost": "$1.50",
    "percent": 50,
    "fullness": "context 50%",
}
FULL = {**USAGE, "context": CONTEXT, "percent": 75, "fullness": "context 75%, nearly full"}
LINES = """
local lines = require("amanu.chat.usage").lines(...)
return vim.tbl_map(function(line)
  return table.concat(vim.tbl_map(function(chunk) return chunk[1] end, line))
end, lines)
"""
STATUS = """
local session = require("amanu.session")
session.state = ...
session.state.approvals, session.state.questions, session.state.queue = {}, {}, {}
session.state.items = session.state.items or {}
local line = require("amanu.chat.status").line()
session.state = nil
return line
"""


def test_the_numbers(start: Start) -> None:
    vim = start()
    assert vim.lua(LINES, {}) == ["Nothing has been sent to a model yet."]
    assert vim.lua(LINES, {"usage": USAGE}) == [
        "Context 50% full",
        "Session    4k in · 500 out · $1.50",
    ]
    head, bar, *rows = vim.lua(LINES, {"usage": FULL, "lastTurn": {"usage": SPENT}})
    assert head == "Context 75% full, nearly full"
    assert bar == "██▓▓▓▓▓███▓▓▓▓▓▓▓▓▓▓▓▓········░░░░░░░░░░"
    assert rows == [
        "█ System prompt               900",
        "▓ Tools                     2,100",
        "    git                     1,200",
        "█ Conversation              1,200",
        "▓ Tool output               4,800",
        "· Free                      3,000",
        "░ Reserved for reply        4,000",
        "  Window                   16,000",
        "Old tool output is dropped to make room; the model can read it again.",
        "Session    4k in · 500 out · $1.50",
        "Last turn  4k in · 500 out · $1.50",
        "/compact [what must not be lost] makes room",
    ]


TURN = {"turnId": "t", "modelId": "anthropic:small", "steps": 2}
MAKING = {"kind": "notice", "code": "compacting", "itemId": "n", "text": "Making room."}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"usage": USAGE}, "ask · anthropic:big · context 50% · $1.50"),
        ({"usage": FULL}, "ask · anthropic:big · context 75%, nearly full · $1.50"),
        ({"turn": TURN}, "working, step 3 · ask · anthropic:small"),
        ({"turn": TURN, "items": [MAKING]}, "making room · ask · anthropic:small"),
    ],
)
def test_the_status_line(start: Start, given: dict[str, Any], expected: str) -> None:
    assert start().lua(STATUS, {"mode": "ask", "modelId": "anthropic:big", **given}) == expected


def test_room_by_hand(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text("".join(f"line {at} of the notes\n" for at in range(400)))
    reads: list[dict[str, Any]] = [
        {"text": f"Read {at}.", "calls": [{"tool": "read_file", "arguments": {"path": "notes.txt", "start_line": at}}]}
        for at in range(1, 9)
    ]
    vim = start(steps=[*reads, {"text": "Read."}])
    vim.keys(":Amanu read the notes<CR>")
    vim.until(f"{ENDED} == 'completed'")
    first = vim.lua(f"return {STATE}.lastTurn.turnId")
    vim.keys(":Amanu /compact the colour is blue<CR>")
    vim.until(f"{STATE}.lastTurn and {STATE}.lastTurn.turnId ~= ...", first)
    chat = vim.chat()
    assert "## You\n/compact the colour is blue\n" in chat
    assert "┆ info: Compacted: " in chat
    assert "\n│ 1. read the notes\n" in chat and "conversation_summary" not in chat
    assert any(each.startswith("┆ info: Compacted: ") for each in vim.lua(CLOSED))  # the summary is folded away
    vim.lua(
        "vim.api.nvim_echo = function(parts) "
        "Echoed = table.concat(vim.tbl_map(function(each) return each[1] end, parts)) end"
    )
    vim.keys(":Amanu /context<CR>")
    assert "Conversation" in vim.until("Echoed")


def test_a_turn_that_goes_to_another_model(start: Start) -> None:
    vim = start(steps=[{"text": "Hello."}])
    vim.keys(":Amanu hello<CR>")
    vim.until(f"{ENDED} == 'completed'")
    vim.lua("require('amanu.session').changed({ kind = 'turnRouted', turnId = 't', modelId = 'm', reason = 'Busy.' })")
    assert vim.lua("return Said[#Said]") == "Amanu: Busy."
