"""Edits in a real Neovim: review before and after they are applied, undo, comments, checkpoints. See test_neovim.py for
the rest of the plugin."""

import time
from pathlib import Path
from typing import Any

import pytest

from editors.test_neovim import ENDED, STATE, Start, edit, folder, home, start, write
from support.neovim import Neovim
from support.sent_changes import sent_file

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

# How it is drawn, without a daemon --------------------------------------------------------------------------------

SHOW = """
local session = require("amanu.session")
session.state = { sessionId = "s", items = {}, approvals = {}, questions = {}, queue = {}, proposals = { {
  proposalId = "p", turnId = "t", toolCallIds = {}, version = 1, state = "pending", files = { ... },
} } }
require("amanu.review.marks").refresh()
"""
DRAWN = """
local found = {}
local space = vim.api.nvim_get_namespaces()["amanu.hunks"]
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
  local row, more = mark[2] + 1, mark[4]
  if more.line_hl_group then
    table.insert(found, ("%d %s"):format(row, more.line_hl_group))
  end
  for _, chunk in ipairs(more.virt_text or {}) do
    table.insert(found, ("%d > %s"):format(row, chunk[1]))
  end
  for _, line in ipairs(more.virt_lines or {}) do
    table.insert(found, ("%d%s %s"):format(row, more.virt_lines_above and "^" or "v", line[1][1]))
  end
end
return found
"""


def proposed(folder: Path, *hunks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """One file of a proposal."""
    file: dict[str, Any] = {
        "path": str(folder / "notes.txt"),
        "change": "edit",
        "baseText": "one\ntwo\nthree\n",
        "hunks": [{"state": "pending", "editedByUser": False, "reviewed": False, **hunk} for hunk in hunks],
        "added": 1,
        "removed": 1,
        "checks": [],
    }
    return sent_file(**file | changes)


def hunk(line: int, old: str, new: str, hunk_id: str = "h1", **changes: Any) -> dict[str, Any]:
    """A hunk whose first old line is that of the base, from 1; one without old lines comes behind it."""
    start = line - 1 if old else line
    return {
        "hunkId": hunk_id,
        "baseLines": {"start": start, "end": start + old.count("\n")},
        "oldText": old,
        "newText": new,
        **changes,
    }


KEYS = " · <Space>aa accept · <Space>ar reject · <Space>ae edit"


def below(what: str, first: int = 2) -> list[str]:
    """The hint of a file as a whole, with no room behind its first line: so many keys are on the line below."""
    keys = KEYS.split(" · ")[1:]
    return [f"1v {' · '.join([f'amanu 1/1 {what}', *keys[:first]])}", f"1v {' · '.join(keys[first:])}"]


AFTER = " · <Space>aa keep · <Space>ar undo · <Space>ao old text"
FINDING = {"lines": {"start": 1, "end": 2}, "severity": "error", "message": "no"}
CHECK = {
    "checker": "ruff",
    "about": "proposed",
    "state": "done",
    "added": [FINDING],
    "fixed": 2,
    "summary": "adds 1 error, fixes 2",
}
WHOLE = "one\ntwo\nthree\n"
DRAWINGS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], list[str]]] = {
    "an edit": (
        [hunk(2, "two\n", "TWO\n", explanation="Louder.")],
        {"checks": [CHECK]},
        ["2 AmanuRemoved", f"2v amanu 1/1{KEYS}", "2v   ruff adds 1 error, fixes 2", "2v   Louder.", "2v + TWO"],
    ),
    "an insertion": ([hunk(1, "", "more\n")], {}, [f"1v amanu 1/1{KEYS}", "1v + more"]),
    "before the first line": ([hunk(0, "", "more\n")], {}, [f"1^ amanu 1/1{KEYS}", "1^ + more"]),
    "a conflict": (
        [hunk(2, "zwei\n", "TWO\n", state="conflicted", reason="The file changed.")],
        {},
        [
            "2 AmanuRemoved",
            f"2v amanu 1/1{KEYS.replace('accept', 'try again')}",
            "2v <Space>at ask for it again",
            "2v   in conflict: The file changed.",
            "2v + TWO",
        ],
    ),
    "applied by a rule": (
        [hunk(0, "", "one\n", state="applied"), hunk(2, "drei\n", "three\n", "h2", state="applied", reviewed=True)],
        {"baseText": "two\ndrei\n"},
        ["1 AmanuAdded", f"1 > amanu 1/1{AFTER}"],
    ),
    "lines that a rule took out": ([hunk(2, "gone\n", "", state="applied")], {}, [f"2 > amanu 1/1{AFTER}"]),
    "a file that goes": (
        [hunk(1, WHOLE, "")],
        {"change": "delete"},
        [*below("deletes this file"), "1 AmanuRemoved", "2 AmanuRemoved", "3 AmanuRemoved"],
    ),
    "a file that moves": (
        [hunk(1, WHOLE, "one\nTWO\nthree\n")],
        {"change": "rename", "newPath": "/else/where.txt"},
        [*below("renames this file to /else/where.txt", 1), "2 AmanuRemoved", "2v + TWO"],
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_how_hunks_are_drawn(name: str, start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text(WHOLE)
    hunks, changes, expected = DRAWINGS[name]
    vim = start("notes.txt")
    vim.lua(SHOW, proposed(folder, *hunks, **changes))
    assert sorted(vim.lua(DRAWN)) == sorted(expected)
    assert vim.text() + "\n" == WHOLE


def test_the_old_text_on_demand(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text(WHOLE)
    vim = start("notes.txt")
    vim.lua(SHOW, proposed(folder, hunk(2, "zwei\n", "two\n", state="applied"), baseText="one\nzwei\nthree\n"))
    plain = vim.lua(DRAWN)
    vim.keys("2G<Space>ao")
    assert sorted(vim.lua(DRAWN)) == sorted([*plain, "2^ - zwei"])
    vim.keys("<Space>ao")
    assert vim.lua(DRAWN) == plain


def test_the_reason_beside_the_cursor(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text(WHOLE)
    checks = [CHECK]
    vim = start("notes.txt")
    one = hunk(2, "two\n", "T\x1bWO\n", explanation="Louder.\nMuch.", state="conflicted", reason="It moved.")
    vim.lua(SHOW, proposed(folder, one, checks=checks))
    vim.keys("2G<Space>aw")
    float_text = """
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= "" then
        return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, true)
      end
    end
    """
    assert vim.lua(float_text) == [
        "notes.txt · conflicted",
        "",
        "Louder.",
        "Much.",
        "",
        "conflicted: It moved.",
        "",
        "-two",
        "+T<U+001B>WO",
        "",
        "ruff: adds 1 error, fixes 2",
        "> line 2 error: no",
    ]
    assert vim.lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0))") == "notes.txt"  # the focus stayed
    vim.keys("<Space>aw")
    assert vim.lua("return vim.api.nvim_win_get_config(0).relative") == "win"


def test_next_and_previous_go_through_files(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text(WHOLE)
    (folder / "other.txt").write_text(WHOLE)
    vim = start("notes.txt")
    first = proposed(folder, hunk(1, "one\n", "1\n"), hunk(3, "drei\n", "three\n", "h2", state="applied"))
    second = proposed(folder, hunk(2, "two\n", "2\n", "h3"), path=str(folder / "other.txt"))
    vim.lua(SHOW.replace("{ ... }", "..."), [first, second])
    vim.lua("require('amanu.say').brief = function(text) table.insert(Said, text) end")
    where = "return vim.fs.basename(vim.api.nvim_buf_get_name(0)) .. ':' .. vim.api.nvim_win_get_cursor(0)[1]"
    seen: list[str] = []
    vim.keys("2G")
    for keys in ("]a", "]a", "]a", "[a", "[a", "[a", "]A", "]A"):
        vim.keys(keys)
        seen.append(vim.lua(where))
    assert seen == [
        *("notes.txt:3", "other.txt:2", "notes.txt:1"),
        *("other.txt:2", "notes.txt:3", "notes.txt:1"),
        *("other.txt:2", "notes.txt:1"),
    ]
    assert vim.lua("return Said") == [
        *("2/3 notes.txt", "3/3 other.txt", "that was the last · 1/3 notes.txt"),
        *("that was the first · 3/3 other.txt", "2/3 notes.txt", "1/3 notes.txt"),
        *("3/3 other.txt", "that was the last · 1/3 notes.txt"),
    ]


# With the daemon ---------------------------------------------------------------------------------------------------

LINES = [f"line {n}" for n in range(1, 31)]
DONE = f"({ENDED}) == 'completed'"
HUNKS = """
local found = {}
for _, proposal in ipairs(require("amanu.session").state.proposals) do
  for _, file in ipairs(proposal.files) do
    for _, hunk in ipairs(file.hunks) do
      table.insert(found, hunk.state .. (hunk.state == "applied" and hunk.reviewed and "!" or ""))
    end
  end
end
return table.concat(found, " ")
"""
"""States of all hunks in order; `!`: applied, and the user said yes."""


def states(vim: Neovim, expected: str) -> None:
    vim.until(f"(function() {HUNKS} end)() == ...", expected)


def changed(lines: list[str], **by_number: str) -> list[str]:
    """Those lines, with `_7="x"` in the place of line 7."""
    return [by_number.get(f"_{at}", line) for at, line in enumerate(lines, 1)]


def said(vim: Neovim, text: str) -> None:
    vim.until("table.concat(Said, '\\n'):find(..., 1, true)", text)


@pytest.mark.parametrize(("answer", "expected"), [("Accept all", "applied! applied!"), ("Reject", "rejected rejected")])
def test_several_edits_of_one_file_are_one_question(start: Start, folder: Path, answer: str, expected: str) -> None:
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    edits = [edit("notes.txt", f"line {n}\n", f"agent {n}\n") for n in (8, 16)]
    vim = start("notes.txt", steps=[{"calls": edits}, {"text": "Done."}])
    vim.keys(":Amanu go<CR>")
    vim.until("#(require('amanu.session').state or { approvals = {} }).approvals == 2")
    time.sleep(0.6)  # an answer before that is not taken
    vim.answer(answer, "not so")
    vim.keys(":Amanu /approve<CR>")
    vim.until(DONE)
    states(vim, expected)


def test_undo_takes_back_ours_and_only_ours(start: Start, folder: Path) -> None:
    """A dirty buffer, an agent edit elsewhere in it, and the user types on: before, between and after."""
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    edits = [edit("notes.txt", f"line {n}\n", f"agent {n}\n") for n in (8, 16, 24)]
    vim = start("notes.txt", steps=[{"calls": edits}, {"text": "Done."}], mode="acceptEdits")
    vim.keys("2GA, mine<Esc>")
    vim.keys(":Amanu go<CR>")
    vim.until(DONE)
    agents = changed(LINES, _2="line 2, mine", _8="agent 8", _16="agent 16", _24="agent 24")
    vim.until_text("\n".join(agents))
    states(vim, "applied applied applied")
    vim.keys("12GA, meanwhile<Esc>Gotyped after<Esc>")
    vim.keys("16GA?<Esc>")  # in a line of ours
    vim.keys(":Amanu /undo turn<CR>")
    vim.until("vim.api.nvim_win_get_config(0).relative ~= ''")
    shown = vim.text()
    assert shown.startswith("notes.txt: ") and "-agent 8" in shown and "mine" not in shown.split("@@")[0]
    vim.keys("y")
    mine = [*changed(LINES, _2="line 2, mine", _12="line 12, meanwhile"), "typed after"]
    mine[15] = "agent 16?"  # what both changed stays, and is named
    vim.until_text("\n".join(mine))
    said(vim, "undid 2 changes in 1 file; 1 left: ")
    assert vim.lua("return vim.bo.modified") is True
    assert (folder / "notes.txt").read_text() == "\n".join(LINES) + "\n", "not saved before, so not saved now"
    vim.keys("u")  # taking back is one step of Neovim's own undo
    again = changed(mine, _8="agent 8", _24="agent 24")
    assert vim.text().splitlines() == again
    vim.keys("<C-r>")
    assert vim.text().splitlines() == mine
    vim.keys(":Amanu /redo turn<CR>")
    vim.until_text("\n".join(again))
    vim.keys("uu")
    assert vim.text().splitlines() == again
    vim.keys("uuuu")
    assert vim.text().splitlines()[1] == "line 2, mine"


@pytest.mark.parametrize(
    ("undone", "left", "told"),
    [
        (2, "", "undid 2 changes in 1 file; /redo applies them again. Amanu cannot undo these: logo.png."),
        (1, "", "undid 1 change in 1 file; /redo applies it again. Amanu cannot undo these: logo.png."),
        (1, "It moved.", "undid 1 change in 1 file; 1 left: It moved. Amanu cannot undo these: logo.png."),
    ],
)
def test_what_undo_cannot_undo_is_always_told(start: Start, undone: int, left: str, told: str) -> None:
    vim = start()
    skipped = [{"reason": left}] if left else []
    hunks: list[dict[str, Any]] = [{}] * undone
    files = [{"path": "/a", "action": "edit", "diff": "", "undone": hunks, "skipped": skipped}]
    vim.lua("require('amanu.review.decide').say_undone(...)", files, "Amanu cannot undo these: logo.png.")
    assert vim.lua("return Said") == [f"Amanu: {told}"]


def test_review_after(start: Start, folder: Path) -> None:
    """Applied by a rule: one is kept, one taken back by its key, the rest with the file; nothing asks, and nothing is
    forgotten."""
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    new = changed(LINES, _4="agent 4", _12="agent 12", _20="agent 20")
    vim = start(
        "notes.txt",
        steps=[{"calls": [write("notes.txt", "\n".join(new) + "\n")]}, {"text": "Done."}],
        mode="acceptEdits",
    )
    vim.keys(":Amanu go<CR>")
    vim.until(DONE)
    vim.until_text("\n".join(new))
    states(vim, "applied applied applied")
    assert [each for each in vim.lua(DRAWN) if "AmanuAdded" in each] == [
        "4 AmanuAdded",
        "12 AmanuAdded",
        "20 AmanuAdded",
    ]
    vim.keys("gg]a<Space>aa")
    states(vim, "applied! applied applied")
    vim.until("vim.fn.line('.') == 12")
    vim.keys("<Space>ar")
    states(vim, "applied! reverted applied")
    vim.until_text("\n".join(changed(new, _12="line 12")))
    vim.keys("12G<Space>aU")
    states(vim, "applied! applied! applied")  # bringing it again is a yes
    vim.until_text("\n".join(new))
    vim.keys("4G<Space>au")  # also one that was kept, shown first
    vim.until("vim.api.nvim_win_get_config(0).relative ~= ''")
    vim.keys("q")
    assert vim.text().splitlines() == new
    vim.keys("<Space>aR")
    vim.until("vim.api.nvim_win_get_config(0).relative ~= ''")
    vim.keys("y")
    vim.until_text("\n".join(LINES))
    states(vim, "reverted reverted reverted")
    assert (folder / "notes.txt").read_text() == "\n".join(LINES) + "\n"


def test_the_list_of_hunks_keeps_up(start: Start, folder: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("\n".join(LINES) + "\n")
    calls = [
        write("a.txt", "\n".join(changed(LINES, _4="four", _12="twelve")) + "\n"),
        write("b.txt", "\n".join(changed(LINES, _6="six")) + "\n"),
    ]
    vim = start("a.txt", steps=[{"calls": calls}, {"text": "Done."}])
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0")
    vim.wait_for_answers()
    vim.keys(":Amanu /hunks<CR>")
    listed = (
        "vim.iter(vim.fn.getqflist()):map(function(each) return vim.fs.basename(vim.api.nvim_buf_get_name(each.bufnr))"
        " .. ':' .. each.lnum .. ' ' .. each.text end):totable()"
    )
    first = ["a.txt:4 +1 -1 four", "a.txt:12 +1 -1 twelve"]
    assert vim.lua(f"return {listed}")[:2] == first
    vim.keys("2G<CR>")
    assert vim.lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0))") == "a.txt"
    assert vim.lua("return vim.api.nvim_win_get_cursor(0)[1]") == 12
    vim.keys("gg]a<Space>aa")
    vim.until(f"vim.iter({listed}):all(function(each) return each:find('a.txt:4', 1, true) == nil end)")
    assert vim.lua("return vim.bo.buftype") == "", "the list takes no focus"


def test_comments_reach_the_model(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    steps: list[dict[str, Any]] = [
        {"expect": "why not nine?", "text": "Because."},
        {"expect": "and these?", "calls": [edit("notes.txt", "line 20\n", "agent 20\n")]},
        {"expect": "too loud", "text": "Softer."},
    ]
    vim = start("notes.txt", steps=steps)
    vim.keys(":Amanu<CR>")
    vim.until("require('amanu.wire.client').version")
    vim.keys("<Esc><C-w>h")
    vim.answer("why not nine?")
    vim.keys("8G<Space>ac")
    marks = """
    local space, found = vim.api.nvim_get_namespaces()["amanu.comments"], {}
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
      if mark[4].virt_text then
        table.insert(found, (mark[2] + 1) .. mark[4].virt_text[1][1])
      end
    end
    return found
    """
    assert vim.lua(marks) == ["8 » why not nine?"]
    vim.keys("ggOtyped above<Esc>")
    vim.keys("9GSline 8<Esc>")
    vim.keys(":Amanu look<CR>")
    vim.until(DONE)
    assert "┆ with notes.txt:9 “why not nine?”" in vim.chat(), "its lines moved along"
    vim.until(f"#(function() {marks} end)() == 0")

    vim.keys("3GVj:Amanu /comment and these?<CR>")
    vim.lua("vim.cmd.stopinsert()")
    assert vim.lua(marks) == ["3 » and these?"]
    vim.answer("and these?", "Change", "and these? yes")
    vim.keys(":Amanu /comments<CR>")
    assert vim.lua(marks) == ["3 » and these? yes"]
    vim.keys(":Amanu /send-comments<CR>")
    vim.until(f"#{STATE}.approvals > 0")
    assert "┆ with notes.txt:3-4 “and these? yes”" in vim.chat()
    vim.answer("too loud")
    vim.keys(":Amanu /diff<CR>")  # on the proposed side: of a text that is nowhere yet
    vim.until("vim.wo.diff")
    vim.keys("<Space>ac")
    assert vim.lua(marks) == ["21 » too loud"]
    vim.wait_for_answers()
    vim.keys(":Amanu /send-comments<CR>")  # into the turn that waits
    vim.until(f"vim.iter({STATE}.items):any(function(item) return item.kind == 'userMessage' and item.steer end)")
    assert "┆ with notes.txt:21 “too loud”" in vim.chat()


def test_the_diff_of_a_big_file(start: Start, folder: Path) -> None:
    lines = [f"line {n} of a file that is too big to be in an event" for n in range(1, 9001)]
    text = "\n".join(lines) + "\n"
    (folder / "notes.txt").write_text(text)
    changed = text.replace("line 7000 ", "agent 7000 ")
    edited = edit("notes.txt", lines[6999], lines[6999].replace("line", "agent"))
    vim = start("notes.txt", steps=[{"calls": [edited]}, {"text": "Done."}])
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0")
    assert vim.lua(f"return {STATE}.proposals[1].files[1].baseText == nil"), "it is not sent unasked"
    vim.lua("vim.cmd.wincmd('h') vim.cmd.stopinsert()")
    vim.keys(":Amanu /diff<CR>")
    vim.until("#vim.api.nvim_list_tabpages() == 2 and vim.api.nvim_win_get_cursor(0)[1] == 7000")
    assert vim.text() == changed.rstrip("\n")
    vim.keys("<C-w>h")
    assert vim.text() == text.rstrip("\n")


def test_side_by_side_only_what_waits_differs(start: Start, folder: Path) -> None:
    """And the texts are those of now: of lines the user typed, and of each decision."""
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    new = changed(LINES, _4="agent 4\nand more", _12="agent 12\nand more", _20="agent 20")
    vim = start("notes.txt", steps=[{"calls": [write("notes.txt", "\n".join(new) + "\n")]}, {"text": "Done."}])
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0")
    vim.wait_for_answers()
    vim.lua("vim.cmd.wincmd('h') vim.cmd.stopinsert()")
    vim.keys("gg]a<Space>aa")
    states(vim, "applied! pending pending")
    vim.keys("Gotyped<Esc>:Amanu /diff<CR>")
    vim.until("vim.wo.diff")

    def sides() -> list[list[str]]:
        vim.keys("<C-w>h")
        left = vim.text()
        vim.keys("<C-w>l")
        return [side.splitlines() for side in (left, vim.text())]

    kept, agents = {"_4": "agent 4\nand more"}, {"_12": "agent 12\nand more", "_20": "agent 20"}

    def lines(**by_number: str) -> list[str]:
        return "\n".join([*changed(LINES, **by_number), "typed"]).splitlines()

    assert sides() == [lines(**kept), lines(**kept, **agents)]
    assert vim.lua("return vim.fn.line('.')") == 13, "the first that waits"
    vim.answer("")
    vim.keys("<Space>ar")
    states(vim, "applied! rejected pending")
    vim.until("vim.api.nvim_get_current_line() == 'agent 20'")  # a decision leads on to the next
    vim.until("vim.fn.line('.') == 21")
    assert sides() == [lines(**kept), lines(**kept, _20="agent 20")]
    vim.keys("<Space>aa")
    states(vim, "applied! rejected applied!")
    vim.until("vim.wo.winbar:find('0 to review', 1, true)")
    vim.until_text("\n".join(lines(**kept, _20="agent 20")))
    assert sides() == [lines(**kept), lines(**kept, _20="agent 20")], "what became of it"
    vim.keys("q:Amanu /diff<CR>")
    said(vim, "nothing to review in notes.txt; /diff session shows what is applied")


def test_back_to_before_a_turn(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    run: dict[str, Any] = {"tool": "run_shell_command", "arguments": {"command": "echo kept > kept.txt"}}
    steps: list[dict[str, Any]] = [
        {"calls": [edit("notes.txt", "line 4\n", "agent 4\n")]},
        {"text": "One."},
        {"calls": [edit("notes.txt", "line 12\n", "agent 12\n"), write("new.txt", "new\n"), run]},
        {"text": "Two."},
        {"text": "Again."},
    ]
    vim = start("notes.txt", steps=steps, mode="acceptEdits")
    say = "require('amanu').command({ args = ..., range = 0 })"
    vim.lua(say, "first")
    vim.until(DONE)
    vim.lua(say, "second")
    vim.wait_for_answers()
    vim.answer("Allow once")
    vim.keys(":Amanu /approve<CR>")
    vim.until(f"{DONE} and {STATE}.items[#{STATE}.items].text == 'Two.'")
    both = changed(LINES, _4="agent 4", _12="agent 12")
    vim.until_text("\n".join(both))
    assert (folder / "new.txt").read_text() == "new\n"
    turns = """
    local space, found = vim.api.nvim_get_namespaces()["amanu.turns"], {}
    local chat = require("amanu.chat.view").buffer
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(chat, space, 0, -1, { details = true })) do
      for _, line in ipairs(mark[4].virt_lines) do
        if line[1][1] ~= "" then
          table.insert(found, line[1][1])
        end
      end
    end
    return found
    """
    assert " · ".join(line.removeprefix("┆ ") for line in vim.lua(turns)).split(" · 2 files") == [
        "1 file +1 -1 · 1 to review: /hunks · /checkpoints",
        " +2 -1 · 2 to review: /hunks · :Amanu /undo turn",
    ]
    vim.keys("30GA, mine<Esc>")
    vim.answer("first")
    vim.keys(":Amanu /checkpoints<CR>")
    vim.until("vim.api.nvim_win_get_config(0).relative ~= ''")
    assert [label.split(" · ", 1)[1] for label in vim.lua("return Asked[#Asked].labels")] == [
        "second · 2 files +2 -1 · 1 command",
        "first · 1 file +1 -1",
    ]
    shown = vim.text()
    assert "new.txt: will be deleted, since Amanu created it" in shown and "echo kept" in shown
    vim.keys("a")
    left = changed(LINES, _30="line 30, mine")
    vim.until_text("\n".join(left))
    vim.until(f"#{STATE}.items == 0")
    assert not (folder / "new.txt").exists()
    assert (folder / "kept.txt").read_text() == "kept\n", "what a command made is not ours to take"
    vim.until("vim.api.nvim_buf_get_lines(require('amanu.chat.prompt').buffer, 0, -1, true)[1] == 'first'")


def test_one_diff(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    steps: list[dict[str, Any]] = [
        {"calls": [edit("notes.txt", "line 4\n", "agent 4\n")]},
        {"text": "One."},
        {"calls": [edit("notes.txt", "line 12\n", "agent 12\n")]},
        {"text": "Two."},
    ]
    vim = start("notes.txt", steps=steps, mode="acceptEdits")
    say = "require('amanu').command({ args = ..., range = 0 })"
    vim.lua(say, "first")
    vim.until(DONE)
    vim.lua(say, "second")
    vim.until(f"{DONE} and {STATE}.items[#{STATE}.items].text == 'Two.'")
    for word, count in (("turn", 1), ("session", 2)):
        vim.keys(f":Amanu /diff {word}<CR>")
        vim.until("vim.bo.filetype == 'diff'")
        shown = vim.text()
        assert shown.startswith(f"edit notes.txt  +{count} -{count}\n\n--- ")
        assert ("+agent 4" in shown, "+agent 12" in shown) == (word == "session", True)
        vim.keys("q")
        assert vim.lua("return #vim.api.nvim_list_tabpages()") == 1


def test_a_hunk_is_changed_without_being_decided(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    vim = start("notes.txt", steps=[{"calls": [edit("notes.txt", "line 4\n", "agent 4\n")]}, {"text": "Done."}])
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0")
    vim.wait_for_answers()
    vim.lua("vim.cmd.wincmd('h') vim.cmd.stopinsert()")
    vim.keys("4G<Space>ae")
    vim.until("vim.api.nvim_buf_get_name(0):find('amanu://hunk')")
    vim.keys("A, softly<C-s>")
    vim.until("vim.fs.basename(vim.api.nvim_buf_get_name(0)) == 'notes.txt'")
    states(vim, "pending")
    vim.until(f"vim.iter((function() {DRAWN} end)()):any(function(each) return each == '4v + agent 4, softly' end)")
    assert vim.text().splitlines() == LINES
    vim.keys("4G<Space>aa")
    vim.until_text("\n".join(changed(LINES, _4="agent 4, softly")))


def test_what_is_in_conflict_is_asked_for_again(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text("\n".join(LINES) + "\n")
    steps: list[dict[str, Any]] = [
        {"calls": [write("notes.txt", "\n".join(changed(LINES, _4="agent 4", _20="agent 20")) + "\n")]},
        {"expect": "make this change again", "calls": [edit("notes.txt", "mine 4\n", "agent and mine 4\n")]},
        {"text": "Done."},
    ]
    vim = start("notes.txt", steps=steps)
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0")
    vim.wait_for_answers()
    vim.lua("vim.cmd.wincmd('h') vim.cmd.stopinsert()")
    vim.keys("4GSmine 4<Esc>")
    states(vim, "conflicted pending")
    vim.keys("10G<Space>at")
    said(vim, "nothing to retry under the cursor; /retry turn is for all")
    vim.keys("20Gzz<Space>aa")
    states(vim, "conflicted applied!")
    vim.until("vim.fn.line('.') == 4")  # a decision leads on to the next
    vim.keys("<Space>at")
    states(vim, "rejected applied! pending")
    said(vim, "1 change was asked for again, on the text as it is now")
    vim.wait_for_answers()
    vim.keys("4G<Space>aa")
    mine = changed(LINES, _4="agent and mine 4", _20="agent 20")
    vim.until_text("\n".join(mine))
    vim.until(DONE)


def test_a_created_file_that_is_looked_at_first(start: Start, folder: Path) -> None:
    """Its empty buffer is no file yet, so nothing conflicts, and once it is accepted it is there."""
    (folder / "notes.txt").write_text("one\n")
    vim = start("notes.txt", steps=[{"calls": [write("new.txt", "a\nb\n")]}, {"text": "Done."}])
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0")
    vim.lua("vim.cmd.wincmd('h') vim.cmd.stopinsert()")
    vim.keys(":edit new.txt<CR>")
    hint = ["1v amanu 1/1 creates this file", "1v <Space>aa accept · <Space>ar reject", "1v <Space>ae edit"]
    assert vim.lua(DRAWN) == [*hint, "1v + a", "1v + b"], "on as many lines as the window needs"
    vim.wait_for_answers()
    vim.keys("<Space>aa")
    vim.until_text("a\nb")
    assert (folder / "new.txt").read_text() == "a\nb\n"
    assert vim.lua("return vim.bo.modified") is False


def test_windows_follow_files_that_move_and_go(start: Start, folder: Path) -> None:
    """A file is renamed, another deleted, both before the user's eyes; then both are taken back."""
    for name in ("old.txt", "gone.txt"):
        (folder / name).write_text(WHOLE)
    calls: list[dict[str, Any]] = [
        {"tool": "move_file", "arguments": {"path": "old.txt", "new_path": "sub/new.txt"}},
        {"tool": "delete_file", "arguments": {"path": "gone.txt"}},
    ]
    vim = start("old.txt", steps=[{"calls": calls}, {"text": "Done."}])
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 1")
    vim.wait_for_answers()
    assert "┆ rename old.txt → sub/new.txt\n" in vim.chat()
    shown = "vim.fn.bufname() .. ':' .. vim.fn.line('.') .. (vim.fn.filereadable(vim.fn.bufname()) == 1 and '' or '!')"
    vim.lua("vim.cmd.wincmd('h') vim.cmd.stopinsert()")
    vim.keys("2G<Space>aa")
    vim.until(f"{shown} == 'sub/new.txt:2'")
    assert vim.lua("return vim.fn.bufexists('old.txt')") == 0, "`:w` would bring it back"
    vim.keys(":edit gone.txt<CR><Space>aa")
    vim.until(f"{shown} == 'gone.txt:1!'")
    vim.until(DONE)
    assert vim.lua(DRAWN) == ["1 > amanu: this file is deleted · <Space>au brings it back"]
    assert "E211" not in vim.lua("return vim.fn.execute('messages')")
    vim.keys("<Space>au")
    vim.until("vim.api.nvim_win_get_config(0).relative ~= ''")
    vim.keys("y")
    vim.until(f"{shown} == 'gone.txt:1'")
    assert vim.text() + "\n" == WHOLE
    vim.keys(":buffer sub/new.txt<CR>")
    vim.keys(":Amanu /undo turn<CR>")
    vim.until("vim.api.nvim_win_get_config(0).relative ~= ''")
    vim.keys("y")
    vim.until(f"{shown} == 'old.txt:2'")


def test_before_turned_into_after_and_back(start: Start, folder: Path) -> None:
    """Also lines behind the last one: they stay where they are, however often they are drawn."""
    (folder / "notes.txt").write_text(WHOLE)
    new = "one\nTWO\nthree\nfour\n"
    vim = start("notes.txt", steps=[{"calls": [write("notes.txt", new)]}, {"text": "Done."}])
    vim.keys(":Amanu go<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0")
    vim.wait_for_answers()
    vim.lua("vim.cmd.wincmd('h') vim.cmd.stopinsert()")
    drawn = vim.lua(DRAWN)
    assert drawn[-1] == "3v + four"
    vim.lua("require('amanu.review.marks').refresh()")
    assert vim.lua(DRAWN) == drawn
    vim.keys("G:Amanu /accept<CR>")
    states(vim, "pending applied!")
    vim.keys("gg:Amanu /accept<CR>")
    said(vim, "nothing to accept under the cursor; /accept turn is for all")
    vim.keys(":Amanu /review after<CR>")
    vim.until_text(new.strip())
    states(vim, "applied applied!")
    vim.keys(":Amanu /review before<CR>")
    vim.until_text("one\ntwo\nthree\nfour")
    states(vim, "pending applied!")
    vim.keys(":Amanu /review before<CR>")
    said(vim, "nothing applied waits for you")


def test_what_is_wide_is_shown_whole(start: Start, folder: Path) -> None:
    (folder / "notes.txt").write_text(WHOLE)
    vim = start("notes.txt")
    vim.lua("vim.o.columns = 42")
    why = "Because it is so, and for no other reason."
    vim.lua(SHOW, proposed(folder, hunk(2, "two\n", "\tlong " + "宽" * 20 + "\n", explanation=why)))
    assert vim.lua(DRAWN)[1:] == [
        "2v amanu 1/1 · <Space>aa accept",
        "2v <Space>ar reject · <Space>ae edit",
        "2v   Because it is so, and for no other",
        "2v   reason.",
        "2v +         long " + "宽" * 12,
        "2v   " + "宽" * 8,
    ]
    vim.lua("vim.o.columns = 120")
    vim.lua("vim.cmd('vsplit | only')")  # drawn anew where the windows change
    vim.until(f"#(function() {DRAWN} end)() == 4")


def test_lines_are_rewritten_refined_and_accepted(start: Start, folder: Path) -> None:
    def reply(text: str) -> dict[str, Any]:
        return {"text": f"<before>\none\n</before>\n<rewrite>\n{text}\n</rewrite>\n<after>\nthree\n</after>"}

    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    vim = start("notes.txt", steps=[reply("2"), {**reply("zwei"), "expect": "in German"}])
    vim.keys(":2AmanuEdit in digits<CR>")
    vim.until(f"{STATE} and #{STATE}.approvals > 0")
    vim.keys(":Amanu /refine in German<CR>")
    vim.until(f"#{STATE}.proposals == 2 and #{STATE}.approvals > 0")
    assert vim.text() == "one\ntwo\nthree"
    vim.wait_for_answers()
    vim.keys("2G<Space>aa")
    vim.until_text("one\nzwei\nthree")
    vim.until(f"({ENDED}) == 'completed'")
    assert vim.lua(f"return {STATE}.purpose") == "rewrite"
