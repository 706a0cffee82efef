"""Changes that no hunk shows, in a real Neovim without a daemon: how rows are drawn, listed and counted, and what is
asked of the daemon when they are decided."""

from pathlib import Path
from typing import Any

import pytest

from editors.test_neovim import Start, home, start
from support.neovim import Neovim
from support.sent_changes import sent_file, sent_row

__all__ = ["home", "start"]  # fixtures: pytest finds them by name

TEXT = "one\ntwo\nthree\n"

SHOW = """
local files, rows, more = ...
local session = require("amanu.session")
session.state = vim.tbl_extend("force", {
  sessionId = "s", roots = { vim.fn.getcwd() }, mode = "ask", modelId = "a:model", title = "", approvals = {},
  questions = {}, queue = {}, jobs = {}, todos = {},
  items = { { kind = "toolCall", itemId = "c", turnId = "t", title = "Run make", state = "succeeded", effect = "run",
    output = "", proposalId = "p" } },
  proposals = { vim.tbl_extend("force", {
    proposalId = "p", turnId = "t", toolCallIds = { "c" }, version = 1, state = "pending", draft = true, runs = {},
    files = files, rows = rows,
  }, more or {}) },
}, {})
Sent, Faults = {}, {}
require("amanu.wire.client").request = function(method, params, done)
  local sent = vim.tbl_extend("force", params, { method = method:gsub("amanu/proposal/", "") })
  sent.sessionId, sent.proposalId = nil, nil
  table.insert(Sent, sent)
  if table.remove(Faults, 1) then
    session.state.proposals[1] = vim.tbl_extend("force", session.state.proposals[1], { version = 2 })
    return done("It has changed.", nil, "proposalConflict")
  end
  done(nil, { status = "resolved", proposal = session.state.proposals[1], files = Files or {}, note = "" })
end
require("amanu.review.marks").refresh()
"""
LISTED = "table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('amanu://changes'), 0, -1, true), '\\n')"
WHERE = "vim.fs.basename(vim.api.nvim_buf_get_name(0)) .. ':' .. vim.api.nvim_win_get_cursor(0)[1]"
STOPPED = "Amanu was stopped before this was decided. Run the command again."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("notes.txt", "other.txt"):
        (folder / name).write_text(TEXT)
    return folder


def row(folder: Path, row_id: str = "r1", path: str = "pic.bin", **changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "rowId": row_id,
        "kind": "file",
        "path": str(folder / path),
        "state": "pending",
        "title": "new binary file, 4,096 bytes",
        "digest": f"digest of {row_id}",
    }
    return sent_row(**fields | changes)


def file(folder: Path, path: str = "notes.txt", **changes: Any) -> dict[str, Any]:
    """A file whose second line changes."""
    hunk: dict[str, Any] = {
        "hunkId": f"h-{path}",
        "baseLines": {"start": 1, "end": 2},
        **{"oldText": "two\n", "newText": "TWO\n"},
        **{"state": "pending", "editedByUser": False, "reviewed": False, **changes},
    }
    return sent_file(path=str(folder / path), change="edit", baseText=TEXT, hunks=[hunk], added=1, removed=1)


def show(vim: Neovim, files: list[Any], rows: list[Any], **more: Any) -> None:
    vim.lua(SHOW, files, rows, more)


def said(vim: Neovim) -> str:
    return vim.lua("return table.concat(Said, '\\n')")


# How they are drawn ------------------------------------------------------------------------------------------------

OPEN = "  amanu 1/1 · <Space>aa accept · <Space>ar reject"
DRAWINGS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a binary file": ({}, ["? pic.bin: new binary file, 4,096 bytes", OPEN]),
    "a rename": (
        {"kind": "rename", "newPath": "img/\u202epic.bin", "title": "renamed"},
        ["? pic.bin → img/<U+202E>pic.bin: renamed", OPEN],
    ),
    "more lines": (
        {"lines": [{"tone": "bad", "text": "It leads out of\nthe workspace."}]},
        ["? pic.bin: new binary file, 4,096 bytes", "  It leads out of␊the workspace.", OPEN],
    ),
    "one change that it needs": (
        {"title": "becomes executable", "needs": ["h1"]},
        ["? pic.bin: becomes executable", OPEN.replace("accept ·", "accept with 1 change it needs ·")],
    ),
    "two changes that it needs": (
        {"needs": ["h1", "r2"]},
        ["? pic.bin: new binary file, 4,096 bytes", OPEN.replace("accept ·", "accept with 2 changes it needs ·")],
    ),
    "a conflict": (
        {"state": "conflicted", "reason": "The file has changed."},
        [
            "! pic.bin: new binary file, 4,096 bytes · in conflict",
            "  The file has changed.",
            f"{OPEN.replace('accept', 'try again')} · <Space>at ask for it again",
        ],
    ),
    "applied by a rule": (
        {"state": "applied"},
        [
            "+ pic.bin: new binary file, 4,096 bytes · applied",
            "  amanu 1/1 · <Space>aa keep · <Space>ar undo",
        ],
    ),
    "kept": (
        {"state": "applied", "reviewed": True},
        ["✓ pic.bin: new binary file, 4,096 bytes · applied", "  amanu · <Space>au undo"],
    ),
    "rejected": (
        {"state": "rejected", "reason": "too big"},
        ["✗ pic.bin: new binary file, 4,096 bytes · rejected", "  too big", "  amanu · <Space>aU bring it back"],
    ),
    "taken back": (
        {"state": "reverted"},
        ["✗ pic.bin: new binary file, 4,096 bytes · taken back", "  amanu · <Space>aU bring it back"],
    ),
    "on its way": ({"state": "accepted"}, ["… pic.bin: new binary file, 4,096 bytes · accepted"]),
    "undecidable": ({"undecidable": STOPPED}, ["? pic.bin: new binary file, 4,096 bytes", f"  {STOPPED}"]),
    "a hidden character": (
        {"path": "/else/a\u202eb.bin", "title": "link to ../\x1b[2J"},
        ["? /else/a<U+202E>b.bin: link to ../<U+001B>[2J", OPEN],
    ),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_how_rows_are_drawn(name: str, start: Start, folder: Path) -> None:
    changes, expected = DRAWINGS[name]
    vim = start()
    show(vim, [], [row(folder, **changes)])
    vim.lua("require('amanu.review.row_list').show()")
    assert vim.lua(f"return {LISTED}").splitlines() == expected
    vim.lua("require('amanu.chat.view').show()")
    card = [line[2:].removeprefix(" ") for line in vim.chat().splitlines() if line.startswith("│")]
    assert card == [line.removeprefix(" ") for line in expected if not line.startswith("  amanu")]


def test_the_repository_is_named(start: Start, folder: Path) -> None:
    vim = start()
    show(vim, [], [row(folder, kind="git", path=""), row(folder, "r2", "lib", kind="git", title="1 commit")])
    vim.lua("require('amanu.review.row_list').show()")
    heads = [line for line in vim.lua(f"return {LISTED}").splitlines() if line.startswith("?")]
    assert heads == ["? the git repository: new binary file, 4,096 bytes", "? the git repository in lib: 1 commit"]


@pytest.mark.parametrize("size", [(90, 26), (160, 45)], ids=str)
def test_a_row_is_read_on_the_screen(size: tuple[int, int], start: Start, folder: Path) -> None:
    lines = [{"tone": "plain", "text": f"commit {n}: {'word ' * 20}".strip()} for n in range(30)]
    vim = start("notes.txt", size=size)
    show(vim, [file(folder)], [row(folder, needs=["h-notes.txt"]), row(folder, "r2", "long", lines=lines)])
    vim.lua("require('amanu.chat.view').show()")
    vim.keys("2G]a")
    shown = " ".join(vim.window("vim.fn.bufnr('amanu://changes')").split())
    assert "? pic.bin: new binary file, 4,096 bytes amanu 2/3 · <Space>aa accept with 1 change it needs" in shown
    vim.keys("]a")
    vim.answer("Accept it all the same")
    vim.keys("<Space>aa")
    if size == (90, 26):
        asked = {"prompt": "Not all of this change fits on the screen.", "labels": ["Accept it all the same"]}
        assert vim.lua("return Asked") == [asked]
    assert vim.lua("return Sent[1].rows") == [{"rowId": "r2", "decision": "accept"}]


def test_the_cursor_stays_at_its_row(start: Start, folder: Path) -> None:
    vim = start()
    show(vim, [], [row(folder, f"r{n}", f"{n}.bin") for n in range(1, 4)])
    vim.lua("require('amanu.review.row_list').show('r2')")
    assert vim.lua("return vim.api.nvim_get_current_line()").startswith("? 2.bin")
    rejected = row(folder, "r1", "1.bin", state="rejected", reason="too big")
    show(vim, [], [rejected, row(folder, "r2", "2.bin", **KEPT), row(folder, "r3", "3.bin")])
    assert vim.lua("return vim.api.nvim_get_current_line()") == "✓ 2.bin: new binary file, 4,096 bytes · applied"


# Deciding ----------------------------------------------------------------------------------------------------------


def resolved(decision: str, **more: str) -> dict[str, Any]:
    return {"method": "resolve", "version": 1, "rows": [{"rowId": "r1", "decision": decision, **more}]}


def decided(decision: str, **scope: Any) -> dict[str, Any]:
    seen = [{"proposalId": "p", "version": 1}]
    return {"method": "decide", "decision": decision, "scope": scope, "seen": seen}


ONE: dict[str, Any] = {"proposalId": "p", "rowIds": ["r1"]}
UNDONE = {"method": "undo", "scope": ONE}
PREVIEWED = {**UNDONE, "dryRun": True}
KEPT: dict[str, Any] = {"state": "applied", "reviewed": True}
DECISIONS: dict[str, tuple[dict[str, Any], str, list[dict[str, Any]]]] = {
    "accept": ({}, "<Space>aa", [resolved("accept")]),
    "accept by word": ({}, ":Amanu /accept<CR>", [resolved("accept")]),
    "accept what is in conflict": ({"state": "conflicted"}, "<Space>aa", [resolved("accept")]),
    "reject": ({}, "<Space>ar", [resolved("reject", reason="too big")]),
    "reject by word": ({}, ":Amanu /reject hunk<CR>", [resolved("reject")]),
    "keep": ({"state": "applied"}, "<Space>aa", [decided("keep", **ONE)]),
    "take back what a rule applied": ({"state": "applied"}, "<Space>ar", [UNDONE]),
    "undo": (KEPT, "<Space>auy", [PREVIEWED, UNDONE]),
    "redo what was taken back": ({"state": "reverted"}, "<Space>aU", [resolved("redo")]),
    "redo what was rejected": ({"state": "rejected"}, "<Space>aU", [resolved("redo")]),
    "accept what cannot be decided": ({"undecidable": STOPPED}, "<Space>aa", []),
    "reject what cannot be decided": ({"undecidable": STOPPED}, "<Space>ar", []),
    "accept by word what cannot be decided": ({"undecidable": STOPPED}, ":Amanu /accept<CR>", []),
    "reject by word what cannot be decided": ({"undecidable": STOPPED}, ":Amanu /reject hunk<CR>", []),
    "edit": ({}, "<Space>ae", []),
    "ask for it again": (
        {"state": "conflicted"},
        "<Space>at",
        [{"method": "retry", "version": 1, "hunkIds": [], "rowIds": ["r1"]}],
    ),
    "ask again for what is not in conflict": ({}, "<Space>at", []),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_the_row_under_the_cursor_is_decided(name: str, start: Start, folder: Path) -> None:
    changes, keys, expected = DECISIONS[name]
    vim = start()
    show(vim, [], [row(folder, "r0", "other.bin"), row(folder, **changes)])
    vim.lua("require('amanu.review.row_list').show('r1')")
    vim.answer("too big")
    vim.keys(keys)
    sent = vim.lua("return Sent")
    assert (sent or []) == expected
    if "undecidable" in changes:
        assert said(vim) == f"Amanu: {STOPPED}"


BOTH = (1, 1)
MANY: dict[str, tuple[tuple[int, int], dict[str, Any], str, dict[str, Any]]] = {
    # hunks and rows there are, what those are like, keys, the request
    "accept the file, from its row": (BOTH, {}, "]a]a<Space>aA", {"decision": "accept", "path": True}),
    "accept the file, from its text": (BOTH, {}, "<Space>aA", {"decision": "accept", "path": True}),
    "accept a file with a row only": ((0, 1), {}, ":Amanu /accept file<CR>", {"decision": "accept", "path": True}),
    "reject the file": ((0, 1), {}, ":Amanu /reject file<CR>", {"decision": "reject", "path": True}),
    "keep the file": ((0, 1), {"state": "applied"}, ":Amanu /keep file<CR>", {"decision": "keep", "path": True}),
    "accept the turn": ((0, 1), {}, ":Amanu /accept turn<CR>", {"decision": "accept", "turnId": "t"}),
    "accept the session": (BOTH, {}, ":Amanu /accept session<CR>", {"decision": "accept"}),
    "redo the turn": ((0, 1), {"state": "reverted"}, ":Amanu /redo turn<CR>", {"decision": "redo", "turnId": "t"}),
}


@pytest.mark.parametrize("name", MANY)
def test_all_of_something_includes_rows(name: str, start: Start, folder: Path) -> None:
    (hunks, rows), changes, keys, expected = MANY[name]
    vim = start("notes.txt")
    show(vim, [file(folder)] * hunks, [row(folder, path="notes.txt", kind="mode", **changes)] * rows)
    vim.keys(keys)
    scope = {key: value for key, value in expected.items() if key != "decision"}
    if "path" in scope:
        scope["path"] = str(folder / "notes.txt")
    assert vim.lua("return Sent[#Sent]") == decided(expected["decision"], **scope)
    assert not vim.lua("return #Asked > 0"), "rows are shown, and need no question"


DELETED = "pic.bin: will be deleted, since Amanu created it (new binary file, 4,096 bytes)"
STAYS = "pic.bin: stays as it is (new binary file, 4,096 bytes)\n  ! a change stays: The file has changed."


@pytest.mark.parametrize(
    ("fault", "shown", "expected"),
    [
        ("", DELETED, "undid 1 change in 1 file; /redo applies it again"),
        ("The file has changed.", STAYS, "undid 0 changes in 0 files; 1 left: The file has changed."),
    ],
)
def test_what_was_taken_back(fault: str, shown: str, expected: str, start: Start, folder: Path) -> None:
    one = {"proposalId": "p", "hunkId": "r1"}
    result = {
        "path": str(folder / "pic.bin"),
        "action": "none" if fault else "delete",
        "diff": "new binary file, 4,096 bytes\n",
        "undone": [] if fault else [one],
        "skipped": [{**one, "reason": fault}] if fault else [],
    }
    vim = start()
    show(vim, [], [row(folder, **KEPT)])
    vim.lua("require('amanu.review.row_list').show(); Files = ...", [result])
    vim.keys("<Space>au")
    assert vim.text() == shown
    vim.keys("y")
    assert said(vim) == f"Amanu: {expected}"


@pytest.mark.parametrize(("needs", "version"), [(["h1"], 2), (["h1", "h2"], 1)])
def test_another_version_is_decided_if_the_row_is_the_same(
    needs: list[str], version: int, start: Start, folder: Path
) -> None:
    """It must need no more than the user saw."""
    vim = start()
    show(vim, [], [row(folder, needs=["h1"])])
    vim.lua("require('amanu.review.row_list').show(); Faults = { true }")
    vim.lua(
        """
        local needs = ...
        local request = require("amanu.wire.client").request
        require("amanu.wire.client").request = function(method, params, done)
          request(method, params, function(why, result, kind)
            local state = require("amanu.session").state
            state.proposals[1].rows = { vim.tbl_extend("force", state.proposals[1].rows[1], { needs = needs }) }
            done(why, result, kind)
          end)
        end
        """,
        needs,
    )
    vim.keys("<Space>aa")
    assert vim.lua("return vim.tbl_map(function(each) return each.version end, Sent)") == [1, version]


# Finding them ------------------------------------------------------------------------------------------------------


def test_next_and_previous_go_on_to_the_rows(start: Start, folder: Path) -> None:
    vim = start("notes.txt")
    rows = [row(folder), row(folder, "r2", "kept.bin", **KEPT), row(folder, "r3", "last.bin")]
    show(vim, [file(folder), file(folder, "other.txt")], rows)
    seen: list[str] = []
    for keys in ("]a", "]a", "]a", "]a", "]a", "[a", "[a", "[a", "]A", "]A", "[A"):
        vim.keys(keys)
        seen.append(vim.lua(f"return {WHERE}"))
    assert seen == [
        *("notes.txt:2", "other.txt:2", "changes:1", "changes:5", "notes.txt:2"),
        *("changes:5", "changes:1", "other.txt:2"),
        *("changes:1", "notes.txt:2", "changes:5"),
    ]


def test_rows_are_in_the_quickfix_list(start: Start, folder: Path) -> None:
    vim = start("notes.txt")
    rows = [
        row(folder, state="conflicted"),
        row(folder, "r2", "b.bin", state="applied"),
        row(folder, "r3", "c.bin", **KEPT),
    ]
    show(vim, [file(folder)], rows)
    vim.keys(":Amanu /hunks<CR>")
    listed = "vim.tbl_map(function(each) return each.module .. '|' .. each.text end, vim.fn.getqflist())"
    expected = [
        "|+1 -1 TWO",
        "pic.bin|conflict new binary file, 4,096 bytes",
        "b.bin|applied new binary file, 4,096 bytes",
    ]
    assert vim.lua(f"return {listed}") == expected
    vim.keys("3G<CR>")
    assert vim.lua(f"return {WHERE}") == "changes:3"
    show(vim, [file(folder)], [row(folder, state="rejected"), *rows[1:]])
    assert vim.lua(f"return {listed}") == [expected[0], expected[2]]


DIFFS: dict[str, tuple[int, int, list[str]]] = {
    "a row only": (0, 1, []),
    "several rows": (0, 3, []),
    "a file and a row": (1, 1, ["notes.txt  +1 -1, 1 to review", "1 other change"]),
    "a file and rows": (1, 2, ["notes.txt  +1 -1, 1 to review", "2 other changes"]),
}


@pytest.mark.parametrize("name", DIFFS)
def test_a_review_leads_to_the_rows(name: str, start: Start, folder: Path) -> None:
    files, rows, labels = DIFFS[name]
    vim = start()
    show(vim, [file(folder)] * files, [row(folder, f"r{n}", f"{n}.bin") for n in range(rows)])
    vim.answer("other change")
    vim.lua("require('amanu.review.diff').open('p')")
    assert (vim.lua("return (Asked[1] or {}).labels") or []) == labels
    assert vim.lua(f"return {WHERE}") == "changes:1"


# Counting them -----------------------------------------------------------------------------------------------------

FOOTER = """
local space = vim.api.nvim_get_namespaces()["amanu.turns"]
local buffer = require("amanu.chat.view").buffer
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })) do
  return vim.iter(mark[4].virt_lines):map(function(line) return (line[1][1]:gsub("^┆ ", "")) end):join(" · ")
end
"""
ENDED: dict[str, tuple[list[str], list[str], str]] = {
    # states of hunks, of rows, and the line below the turn; `!`: reviewed
    "rows only": ([], ["applied!", "applied!"], "2 files · :Amanu /undo turn · "),
    "both": (["applied!"], ["applied!"], "2 files +1 -1 · :Amanu /undo turn · "),
    "to review": (["pending"], ["pending", "applied"], "1 file · 3 to review: /hunks · :Amanu /undo turn · "),
    "taken back": ([], ["reverted"], "1 taken back: /redo turn · "),
}


@pytest.mark.parametrize("name", ENDED)
def test_rows_count_below_a_turn(name: str, start: Start, folder: Path) -> None:
    hunks, rows, expected = ENDED[name]

    def at(state: str) -> dict[str, Any]:
        return {"state": state.rstrip("!"), "reviewed": state.endswith("!")}

    vim = start()
    show(
        vim,
        [file(folder, f"{n}.txt", **at(state)) for n, state in enumerate(hunks)],
        [row(folder, f"r{n}", f"{n}.bin", **at(state)) for n, state in enumerate(rows)],
    )
    vim.lua("require('amanu.chat.view').show(); require('amanu.chat.view').update()")
    assert vim.lua(FOOTER) == expected


def test_rows_count_in_what_was_accepted(start: Start, folder: Path) -> None:
    vim = start()
    show(vim, [file(folder, **KEPT)], [row(folder, **KEPT), row(folder, "r2", state="rejected")])
    vim.lua(
        """
        local decision = { outcome = "allowed", by = "user", summary = "accepted" }
        require("amanu.session").state.items[1].decision = decision
        require("amanu.chat.view").show()
        """
    )
    assert "● ✓ Run make (accepted 2 of 3)" in vim.chat()


def test_what_is_applied_is_listed_above_the_diff(start: Start, folder: Path) -> None:
    vim = start()
    show(vim, [], [row(folder, **KEPT), row(folder, "r2", "later.bin")])
    vim.lua(
        """
        require("amanu.wire.client").request = function(_, _, done) done(nil, { files = {}, diff = "" }) end
        require("amanu.review.changes").show("turn")
        """
    )
    assert vim.text() == "pic.bin: new binary file, 4,096 bytes\n"
