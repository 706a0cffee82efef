"""Three sessions with changes to review in a real Neovim, two of them in one file: what is drawn, gone to and
decided is the attached session's; nothing of another one moves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from editors.test_neovim import STATE, Start, folder, home, start, write
from editors.test_neovim_edits import DONE, DRAWN, HUNKS, LINES, changed, states
from support.neovim import Neovim

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

WHERE = "return vim.fn.bufname() .. ':' .. vim.fn.line('.')"
HINTS = f"""
return vim.tbl_map(function(each)
  return each:match("^(.-amanu %d+/%d+)")
end, vim.tbl_filter(function(each)
  return each:find("amanu ", 1, true) ~= nil
end, (function() {DRAWN} end)()))
"""
"""The line a hunk is drawn at, and its number."""
NEW: dict[str, dict[str, dict[str, str]]] = {
    # lines by file
    "a": {"a.txt": {"_3": "a 3", "_9": "a 9"}, "shared.txt": {"_5": "a 5\nand more"}},
    "b": {"shared.txt": {"_15": "b 15", "_18": "b 18"}, "b.txt": {"_3": "b 3"}},
    "c": {"c.txt": {"_3": "c 3"}, "shared.txt": {"_25": "c 25"}},
}
FILES = ("a.txt", "b.txt", "c.txt", "shared.txt")


def text(*of: str, name: str = "shared.txt") -> str:
    """The file with all that those sessions propose for it."""
    lines: dict[str, str] = {}
    for session in of:
        lines |= NEW[session].get(name, {})
    return "\n".join(changed(LINES, **lines))


@pytest.fixture
def sessions(start: Start, folder: Path, tmp_path: Path) -> tuple[Neovim, Callable[[str], None]]:
    """The three wait for decisions, the last one attached; and how to attach another one."""
    for name in FILES:
        (folder / name).write_text("\n".join(LINES) + "\n")
    vim = start("shared.txt")
    ids: dict[str, str] = {}
    for name, files in NEW.items():
        calls = [write(path, "\n".join(changed(LINES, **lines)) + "\n") for path, lines in files.items()]
        script = tmp_path / f"{name}.json"
        script.write_text(json.dumps([{"calls": calls}, {"text": "Done."}]))
        vim.lua("require('amanu.config').now.model = 'scripted:' .. ...", str(script))
        if ids:
            vim.keys(":Amanu /new<CR>")
            vim.until(f"{STATE}.sessionId ~= ...", list(ids.values())[-1])
        vim.keys(":Amanu go<CR>")
        vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals == ...", len(files))
        vim.wait_for_answers()
        ids[name] = vim.lua(f"return {STATE}.sessionId")
        vim.lua("vim.cmd.stopinsert() vim.cmd.wincmd('h')")

    def attach(name: str) -> None:
        vim.lua("require('amanu.session').attach(...)", ids[name])
        vim.until(f"{STATE}.sessionId == ...", ids[name])
        vim.keys(":buffer shared.txt<CR>gg")

    return vim, attach


def visited(vim: Neovim, key: str, count: int) -> list[str]:
    found: list[str] = []
    for _ in range(count):
        vim.keys(key)
        found.append(vim.lua(WHERE))
    return found


def hinted(vim: Neovim, expected: list[str]) -> None:
    """Soon: a session that was not looked at follows the text a moment later."""
    vim.until(f"vim.deep_equal((function() {HINTS} end)(), ...)", expected)


def test_each_session_is_reviewed_alone(sessions: tuple[Neovim, Callable[[str], None]], folder: Path) -> None:
    vim, attach = sessions
    places = {
        "a": ["shared.txt:5", "a.txt:3", "a.txt:9"],
        "b": ["shared.txt:15", "shared.txt:18", "b.txt:3"],
        "c": ["shared.txt:25", "c.txt:3"],
    }
    hints = {"a": ["5v amanu 3/3"], "b": ["15v amanu 1/3", "18v amanu 2/3"], "c": ["25v amanu 2/2"]}
    for name, expected in places.items():
        attach(name)
        hinted(vim, hints[name])
        assert visited(vim, "]a", len(expected) + 1) == [*expected, expected[0]]

    attach("a")  # accepts one, which moves the lines of the others
    vim.keys("]a<Space>aa")
    vim.until_text(text("a"))
    states(vim, "pending pending applied!")
    for name, states_there in {"b": "pending pending pending", "c": "pending pending"}.items():
        attach(name)
        assert vim.lua(f"{HUNKS}") == states_there
        hinted(vim, {"b": ["16v amanu 1/3", "19v amanu 2/3"], "c": ["26v amanu 2/2"]}[name])

    attach("b")  # rejects one; all the others with the file
    vim.answer("not so")
    vim.keys("]a<Space>ar")
    states(vim, "rejected pending pending")
    vim.keys("<Space>aA")
    states(vim, "rejected applied! pending")
    both = text("a", "b").replace("b 15", "line 15")
    vim.until_text(both)

    attach("c")  # accepts all
    vim.keys(":Amanu /accept session<CR>")
    states(vim, "applied! applied!")
    vim.until_text(both.replace("line 25", "c 25"))
    vim.until(DONE)

    attach("a")
    states(vim, "pending pending applied!")
    hinted(vim, [])
    vim.keys("]a")
    assert vim.lua(WHERE) == "a.txt:3"
    attach("b")
    states(vim, "rejected applied! pending")
    written: dict[str, Any] = {name: (folder / name).read_text().rstrip("\n") for name in FILES}
    assert written == {
        "a.txt": text(name="a.txt"),
        "b.txt": text(name="b.txt"),
        "c.txt": text("c", name="c.txt"),
        "shared.txt": both.replace("line 25", "c 25"),
    }
