"""The plugin in a real Neovim, against a real daemon: with a scripted model, and the main job with both vendors' SDKs.

`AMANU_NVIM=/path/to/nvim` tests that Neovim; `make test-neovim-versions` goes through the versions that are supported.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amanu.frontends.lsp.document_text import DocumentText
from amanu.frontends.lsp.edit_request import wire_edits
from amanu.text.code_units import Encoding
from amanu.text.display import visible
from amanu.text.span_edits import SpanEdit, edited
from support.neovim import Neovim
from support.range_edits import text_edit
from support.required_programs import needs
from support.running_daemon import daemon_pid, signal_daemon
from support.service_thread import serving
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Say, Script, Service, ToolUse

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
FIXTURES = sorted((Path(__file__).parents[2] / "protocol" / "fixtures").glob("*.json"))
SHOP = """\
LIMIT = 5000


def subtotal(items):
    return sum(item.price for item in items)


def unrelated():
    return None


def shipping(amount):
    return 0 if amount > LIMIT else 490
"""
FIXED = SHOP.replace("item.price for", "item.price * item.quantity for").replace("amount > LIMIT", "amount >= LIMIT")
MINE = FIXED.replace("else 490", "else 500")

Start = Callable[..., Neovim]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One daemon for these tests, which is what people have; afterwards it is gone."""
    home = tmp_path_factory.mktemp("h")
    (home / "config").mkdir(mode=0o700)
    (home / "config" / "config.toml").write_text(
        '[sandbox]\nwithout = "accept"\n'
    )  # rules count, with a sandbox here or not
    yield home
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMANU_HOME", str(home))
        signal_daemon()


@pytest.fixture
def start(
    home: Path,
    tmp_path: Path,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Start]:
    """Starts Neovim in `folder` with a script for its model; afterwards it is gone."""
    monkeypatch.setenv("AMANU_HOME", str(home))
    nvim = os.environ.get("AMANU_NVIM") or needs("nvim")
    started: list[Neovim] = []

    def begin(*files: str, steps: list[dict[str, Any]] | None = None, **setup: Any) -> Neovim:
        script = tmp_path / "script.json"
        script.write_text(json.dumps(steps or []))
        serve = tmp_path / "amanu"
        serve.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m amanu "$@"\n')
        serve.chmod(0o755)
        settings: dict[str, Any] = {"cmd": [str(serve), "serve"], "model": f"scripted:{script}", **setup}
        settings = {name: value for name, value in settings.items() if value is not None}
        place = tmp_path_factory.mktemp("v")  # a socket's path is short
        editor = Neovim(nvim, place, folder, files, **settings)
        started.append(editor)
        return editor

    yield begin
    for editor in started:
        editor.close()


def write(name: str, content: str) -> dict[str, Any]:
    return {"tool": "write_file", "arguments": {"path": name, "content": content}}


def edit(name: str, old: str, new: str) -> dict[str, Any]:
    return {"tool": "edit_file", "arguments": {"path": name, "old_text": old, "new_text": new}}


STATE = "require('amanu.session').state"
ENDED = f"{STATE} and {STATE}.lastTurn and {STATE}.lastTurn.reason"
WAITS = "#vim.api.nvim_get_autocmds({ event = 'CmdwinLeave' }) > 0"
OPEN = "#require('amanu.review.hunks').all()"
CLOSED = """
return vim.api.nvim_win_call(require("amanu.chat.view").windows()[1], function()
  local found = {}
  for line = 1, vim.fn.line("$") do
    if vim.fn.foldclosed(line) == line then
      table.insert(found, vim.fn.getline(line))
    end
  end
  return found
end)
"""
"""The first lines of the chat's closed folds."""
TAIL = """
local space, found = vim.api.nvim_get_namespaces()["amanu.tail"], vim.empty_dict()
local buffer = require("amanu.chat.view").buffer
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true })) do
  found = vim.tbl_map(function(line) return line[1][1] end, mark[4].virt_lines)
end
return next(found) and found or vim.json.decode("[]")
"""
"""What is shown below the chat's text."""


# The main job ----------------------------------------------------------------------------------------------------


LINES = [f"line {n}" for n in range(1, 13)]
PROPOSED = [{"line 2": "line two", "line 7": "line seven", "line 11": "line eleven"}.get(each, each) for each in LINES]


@pytest.mark.parametrize("vendor", [Anthropic, Gemini])
def test_the_main_job_with_a_vendor(
    vendor: type[Service], start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three hunks: one accepted, one edited and accepted, one refused, while the user writes in the same file."""
    file = folder / "notes.txt"
    file.write_text("\n".join(LINES) + "\n")
    script: Script = [
        Say(
            thought="**Looking around**\n\nI read it first.",
            text=["I read ", "it **first**."],
            calls=[ToolUse("read_file", {"path": "notes.txt"})],
            delay=0.02,
        ),
        Say(
            text="Three changes.",
            calls=[ToolUse("write_file", {"path": "notes.txt", "content": "\n".join(["of my own", *PROPOSED]) + "\n"})],
        ),
        Say(text="Two taken, one refused."),
    ]
    service = vendor(script)
    with serving(service) as url:
        if vendor is Anthropic:
            monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        else:
            monkeypatch.setenv("GEMINI_API_KEY", "AIza-t")
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", url)
        vim = start("notes.txt", model=None)
        vim.keys("ggOof my own<Esc>")  # unsaved before, and after
        mine = ["of my own", *LINES]
        vim.keys(":Amanu<CR>")
        vim.keys("Change three lines<C-s>")
        vim.until(f"{STATE} and #{STATE}.approvals > 0")
        assert "▸ Thought: Looking around\n" in vim.chat()
        assert "I read it **first**.\n" in vim.chat()
        vim.keys("<Esc><C-w>hgg]a")
        assert vim.lua("return vim.api.nvim_win_get_cursor(0)[1]") == 3
        assert vim.text().splitlines() == mine
        vim.wait_for_answers()
        vim.keys("<Space>aai")  # the user writes on at once: what was accepted waits
        vim.until(WAITS)
        assert vim.text().splitlines() == mine
        vim.keys("<Esc>")
        vim.until(f"{OPEN} == 2")
        accepted = ["line two" if each == "line 2" else each for each in mine]
        vim.until_text("\n".join(accepted))
        vim.keys("gg]a<Space>ae")
        vim.until("vim.api.nvim_buf_get_name(0):find('amanu://hunk')")
        vim.keys("A (mine)<Esc>:w<CR>")
        vim.until(f"{OPEN} == 1")
        vim.until("not vim.api.nvim_buf_get_name(0):find('amanu://')")
        vim.answer("eleven is enough")
        vim.keys("gg]a<Space>ar")
        vim.until(f"({ENDED}) == 'completed'")
        expected = ["line seven (mine)" if each == "line 7" else each for each in accepted]
        assert vim.text().splitlines() == expected
        assert file.read_text() == "\n".join(LINES) + "\n"  # not saved before, so not saved now
        vim.keys("Gonoted<Esc>")
        for left in ([*expected, "noted"], expected, accepted, mine, LINES):
            assert vim.text().splitlines() == left
            vim.keys("u")
        vim.keys("9<C-r>:w<CR>")
        assert file.read_text() == "\n".join([*expected, "noted"]) + "\n"
    asked = [each for each in service.requests if b'"tools"' in each.body]  # without questions aside
    assert len(asked) == 3
    told = asked[2].body.decode()
    assert "(mine)" in told and "eleven is enough" in told
    assert "Two taken, one refused." in vim.chat()
    assert not service.refused and not service.lint


def test_a_connection_is_opened_while_the_first_prompt_is_typed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Anthropic([])
    with serving(service) as url:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        vim = start(model=None)
        vim.keys(":Amanu<CR>")
        vim.until("require('amanu.wire.client').version")
        ends = time.monotonic() + 30
        while service.connections == 0 and time.monotonic() < ends:
            vim.keys("x")  # the first ones may come before the daemon is there
    assert (service.connections, service.requests) == (1, [])


def test_prompt_stream_approval_hunks_and_undo(start: Start, folder: Path) -> None:
    file = folder / "shop.py"
    file.write_text(SHOP)
    run: dict[str, Any] = {"tool": "run_shell_command", "arguments": {"command": "touch checked"}}
    again: dict[str, Any] = {"tool": "run_shell_command", "arguments": {"command": "touch no"}}
    steps: list[dict[str, Any]] = [
        {"thought": "**Two mistakes**\n\nboth small", "text": "This fixes both:", "chunk": 4, "delay_ms": 5},
    ]
    steps[0]["calls"] = [write("shop.py", FIXED)]
    steps += [
        {"expect": "the user changed your text", "text": "Checking.", "calls": [run]},
        {"expect": '"exit_code":0', "calls": [again]},
        {"expect": "not today", "text": "● not a card\u202e, and `touch no` was not run."},
    ]
    vim = start("shop.py", steps=steps)
    vim.keys(":Amanu<CR>")
    vim.keys("Fix @shop.py<C-s>")
    vim.until("#vim.api.nvim_buf_get_lines(require('amanu.chat.view').buffer, 0, -1, true) > 4")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0")
    chat = vim.chat()
    assert "## You\nFix @shop.py\n" in chat
    assert "▸ Thought: Two mistakes\n│ **Two mistakes**\n│ \n│ both small\n" in chat
    assert "This fixes both:\n" in chat
    assert "● ? Edit shop.py · waits for your answer" in chat
    assert "┆ answer: :Amanu /approve or <Space>ap" in chat
    assert "┆ -    return sum(item.price for item in items)" in chat
    assert vim.lua("return { vim.api.nvim_get_mode().mode:sub(1, 1), vim.bo.filetype }") == ["i", "amanu-prompt"]
    assert file.read_text() == SHOP

    vim.keys("<Esc><C-w>h]a")
    assert vim.lua("return vim.api.nvim_win_get_cursor(0)[1]") == 5
    assert vim.text() + "\n" == SHOP  # proposals are virtual
    if vim.lua(f"return (vim.uv.clock_gettime('realtime').sec * 1000) - {STATE}.approvals[1].askedAt < 300"):
        vim.keys("<Space>aa")  # a key meant for something else
        vim.until("vim.iter(Said):any(function(each) return each:find('within 0.5 s') ~= nil end)")
        assert vim.lua(f"return {OPEN}") == 2
    vim.wait_for_answers()
    vim.keys("<Space>aa")
    vim.until(f"{OPEN} == 1")
    vim.keys("]a")
    assert vim.lua("return vim.api.nvim_win_get_cursor(0)[1]") == 13
    vim.keys("<Space>ae")
    vim.until("vim.api.nvim_buf_get_name(0):find('amanu://hunk')")
    vim.keys(":s/490/500/<CR>:w<CR>")
    vim.until(f"{STATE}.proposals[1].state == 'settled'")
    vim.until("not vim.api.nvim_buf_get_name(0):find('amanu://')")
    assert vim.text() + "\n" == MINE
    assert file.read_text() == MINE
    assert vim.lua("return vim.bo.modified") is False

    vim.wait_for_answers()  # the command: allowed for the session, the rule shown and agreed to
    vim.answer("Allow for this session")
    vim.keys("<C-w>l:Amanu /approve<CR>")
    assert vim.text() == "run_shell_command(touch *)"
    assert "needs approval: no rule allows it" in vim.lua("return Asked[1].prompt")
    vim.keys("ccrun_shell_command(touch checked)<Esc>:w<CR>")
    vim.until(f"({STATE}.approvals[1] or {{}}).title == 'Run touch no'")
    vim.until("not vim.api.nvim_buf_get_name(0):find('amanu://rule')")
    vim.wait_for_answers()
    vim.answer("Reject with a reason", "not today")
    vim.keys(":Amanu /approve<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert "rejected by you: “not today”" in vim.chat()
    assert vim.chat().rstrip().endswith("\n ● not a card<U+202E>, and `touch no` was not run.")
    *closed, ran, refused = vim.lua(CLOSED)
    assert closed == ["▸ Thought: Two mistakes", "● ✓ Edit shop.py (reviewed by you)"]
    assert refused.startswith("● ✗ Run touch no · rejected (rejected by you: “not today”")
    by = "allowed for this session by you: run_shell_command(touch checked)"
    assert ran.startswith(f"● ✓ Run touch checked ({by}"), "and then what held it, which is the machine's"

    vim.keys("gg/touch checked<CR>:Amanu /output<CR>")
    vim.until("vim.api.nvim_buf_get_lines(0, 0, 1, true)[1]:find('Exit code')")
    vim.keys(":close<CR><C-w>h")
    vim.until("vim.fs.basename(vim.api.nvim_buf_get_name(0)) == 'shop.py'")
    vim.keys("u")  # each decision is one undo step of its own
    assert vim.text() + "\n" == SHOP.replace("item.price for", "item.price * item.quantity for")
    vim.keys("u")
    assert vim.text() + "\n" == SHOP


def test_stop_steer_queue_and_what_sessions_can(start: Start, folder: Path) -> None:
    slow = {"text": "word " * 60, "chunk": 5, "delay_ms": 20}
    steps: list[dict[str, Any]] = [slow, {"expect": "be brief", "text": "Brief."}, slow, {"text": "Second."}]
    vim = start(steps=steps)
    vim.keys(":Amanu talk<CR>")
    vim.until(f"{STATE} and {STATE}.turn and {STATE}.items[2]")
    vim.keys(":Amanu be brief<CR>")  # into the running turn
    vim.keys(":Amanu /queue and then?<CR>")
    vim.until(f"#{STATE}.queue == 1")
    assert vim.lua(TAIL) == ["┆ queued: and then?", "┆ /unqueue takes one back"]
    vim.until(f"vim.iter({STATE}.items):any(function(item) return item.text == 'Brief.' end)")
    vim.until(f"#{STATE}.queue == 0 and {STATE}.turn")  # the queued one runs
    assert "## You, into the running turn\nbe brief" in vim.chat()
    assert vim.lua(TAIL) == []
    vim.keys(":Amanu /stop<CR>")
    vim.until(f"({ENDED}) == 'cancelled'")
    vim.keys(":Amanu /mode plan<CR>")
    vim.until(f"{STATE}.mode == 'plan'")
    vim.keys(":Amanu /rename A talk<CR>")
    vim.until(f"{STATE}.title == 'A talk'")
    first = vim.lua(f"return {STATE}.sessionId")
    vim.keys(":Amanu /new<CR>")
    vim.until(f"{STATE}.sessionId ~= ...", first)
    vim.answer("A talk", "Resume")
    vim.keys(":Amanu /sessions<CR>")
    vim.until(f"{STATE}.sessionId == ...", first)
    vim.until("require('amanu.chat.view').status():find('plan')")
    vim.answer("A talk", "Delete", "Yes, delete it")
    vim.keys(":Amanu /sessions<CR>")
    vim.until(f"{STATE} == nil")


def test_a_question_is_answered_for_longer(start: Start, folder: Path) -> None:
    """For a scope, by a rule the user sees and changes; a rule that does not cover the call is not saved."""
    calls = [
        {"tool": "run_shell_command", "arguments": {"command": f"touch {word}", "background": True}}
        for word in ("one", "two", "three")
    ]
    # The last rule outlives this test in the home its neighbours share: no other test runs these commands.
    vim = start(steps=[{"calls": [*calls, *calls]}, {"text": "Ran."}])
    vim.keys(":Amanu go<CR>")
    scopes = ["Allow for this turn", "Allow always in this workspace", "Allow always in every workspace"]
    for left, scope in zip((6, 4, 2), scopes, strict=True):  # each rule settles two of them
        vim.until(f"{STATE} and #{STATE}.approvals == ...", left)
        vim.wait_for_answers()
        command = vim.lua(f"return {STATE}.approvals[1].title").removeprefix("Run in the background: ")
        vim.answer(scope)
        vim.keys(":Amanu /approve<CR>")
        assert vim.text() == "run_shell_command(touch *)"
        if left == 4:
            vim.keys("ccrun_shell_command(touch other)<Esc>:w<CR>")
            vim.until("#Said == 1")
            assert vim.lua("return Said[1]").endswith("so it cannot be saved.")
            assert vim.lua(f"return #{STATE}.approvals") == left
        vim.keys(f"ccrun_shell_command({command})<Esc>:w<CR>")
        vim.until("not vim.api.nvim_buf_get_name(0):find('amanu://rule')")
    vim.until(f"({ENDED}) == 'completed'")
    for scope, count in [("for this turn", 1), ("always in this workspace", 1), ("always in every workspace", 1)]:
        assert vim.chat().count(f"(allowed {scope} by you") == count


def test_decided_elsewhere(start: Start, folder: Path) -> None:
    steps = [{"calls": [{"tool": "run_shell_command", "arguments": {"command": "touch elsewhere"}}]}, {"text": "Well."}]
    vim = start(steps=steps)
    vim.keys(":Amanu go<CR>")
    vim.until(f"{STATE} and #{STATE}.approvals == 1")
    other = start(steps=steps)
    other.keys(":Amanu<CR>")
    other.until(STATE)
    other.wait_for_answers()
    vim.lua("vim.ui.select = function(items, _, chosen) Later = function() chosen(items[1], 1) end end")
    vim.keys(":Amanu /approve<CR>")  # the question stands open here
    other.answer("Reject with a reason", "not that")
    other.keys("<Esc>:Amanu /approve<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert "rejected by you: “not that”" in vim.chat()
    vim.lua("Later()")
    assert vim.lua("return Said") == ["Amanu: This question is already settled."]


def test_a_reply_that_broke_off_leaves_nothing(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    read: dict[str, Any] = {"tool": "read_file", "arguments": {"path": "shop.py"}}
    steps: list[dict[str, Any]] = [
        {"thought": "First I read.", "calls": [read, read]},
        {"error": "overloaded", "thought": "Now I think.", "text": "Said twice", "delay_ms": 50},
    ]
    vim = start("shop.py", steps=steps)
    vim.keys(":Amanu look<CR>")
    vim.until(f"{STATE} and {STATE}.retry")
    assert "Said twice" not in vim.chat()
    vim.until("require('amanu.chat.view').status():find('attempt 2 in %d s: ')")
    closed = ["▸ Thought", "● ✓ Read shop.py", "● ✓ Read shop.py"]
    assert vim.lua(CLOSED) == closed
    vim.keys("<C-w>lgg/Read<CR><C-w>h")  # the search opens a fold, and it stays open
    vim.until(f"({ENDED}) == 'completed'")
    assert vim.chat().count("Said twice") == 1
    assert vim.lua(CLOSED) == [closed[0], closed[2], closed[0]]
    assert vim.chat().startswith("## You\nlook\n\n▸ Thought\n│ First I read.\n")
    assert vim.chat().rstrip().endswith("\nSaid twice")
    vim.lua("require('amanu.session').changed()")  # drawn anew: as if it had just been opened
    assert vim.lua(CLOSED) == [*closed, closed[0]]


def test_an_edit_is_seen_while_it_is_written(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    edit: dict[str, Any] = {"tool": "write_file", "arguments": {"path": "shop.py", "content": FIXED}}
    vim = start("shop.py", steps=[{"calls": [edit], "chunk": 8, "delay_ms": 40}, {"text": "Done."}])
    vim.keys(":Amanu mend it<CR>")
    chat = "table.concat(vim.api.nvim_buf_get_lines(require('amanu.chat.view').buffer, 0, -1, true), '\\n')"
    vim.until(f"{STATE} and ({chat}):find((...), 1, true)", "● … Write shop.py · being written\n┆ +LIMIT = 5000\n┆ +\n")
    assert not vim.lua(f"return {STATE}.approvals[1] or {STATE}.proposals[1]")
    vim.until(f"#{STATE}.approvals > 0")
    drawn = vim.chat()
    assert "draft" not in drawn
    assert "● ? Edit shop.py" in drawn
    assert drawn.count("+    return sum(") == 1
    assert vim.lua("return vim.fn.win_getid() == vim.fn.win_getid(1)")  # the focus is where it was
    vim.keys(":Amanu /stop<CR>")
    vim.until(f"({ENDED}) == 'cancelled'")


def test_a_selection_goes_along_and_files_complete(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    (folder / "with blank.txt").write_text("x")
    vim = start("shop.py", steps=[{"expect": "unsaved words", "text": "Seen."}])
    vim.keys("4Gounsaved words<Esc>:4,5Amanu What is this?<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert "┆ with selection shop.py:4-5" in vim.chat()
    assert vim.chat().rstrip().endswith("Seen.")
    assert vim.lua("return require('amanu.chat.complete').command_line('@sho', 'Amanu @sho')") == ["@shop.py"]
    assert vim.lua("return require('amanu.chat.complete').command_line('@wit', '')") == ['@"with blank.txt"']
    vim.keys(":Amanu<CR>")
    vim.lua("vim.api.nvim_input('see @shp')")
    vim.until("vim.fn.pumvisible() == 1 and vim.api.nvim_get_current_line() == 'see @shp'")
    vim.lua("vim.api.nvim_input('<C-n>')")
    vim.until("vim.api.nvim_get_current_line() == 'see @shop.py'")


def test_commands_of_ones_own(start: Start, folder: Path) -> None:
    commands = folder / ".amanu" / "commands"
    commands.mkdir(parents=True)
    (commands / "tidy.md").write_text("---\ndescription: Sweep it\nargument-hint: FILE\n---\nSweep $ARGUMENTS clean.")
    steps: list[dict[str, Any]] = [
        {"expect": "Sweep shop.py clean.", "text": "Swept."},
        {"expect": "/etc/hosts", "text": "A path."},
    ]
    vim = start(steps=steps, trusted_roots=[str(folder)])
    vim.keys(":Amanu /tidy shop.py<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert "## You\n/tidy shop.py\n" in vim.chat()
    assert vim.chat().rstrip().endswith("Swept.")
    vim.keys(":Amanu /etc/hosts is what?<CR>")
    vim.until(f"{STATE}.items[#{STATE}.items].text == 'A path.'")
    vim.keys(":Amanu /memory<CR>")
    vim.until(f"{STATE}.items[#{STATE}.items].code == 'memory'")
    assert "┆ info: Memory files in use: " in vim.chat(), "what the daemon answers is shown"
    vim.keys(":Amanu /nothing<CR>")
    vim.until("vim.iter(Said):any(function(each) return each:find('/nothing is not a command') ~= nil end)")
    assert vim.lua("return require('amanu.chat.complete').command_line('/ti', 'Amanu /ti')") == ["/tidy"]
    vim.lua("vim.api.nvim_echo = function(parts) table.insert(Said, parts[1][1]) end")
    vim.keys(":Amanu /help<CR>")
    vim.until("Said[2]")
    assert "/tidy          FILE: Sweep it (of this workspace)\n" in vim.lua("return Said[2]")
    vim.keys(":Amanu<CR>")
    vim.lua("vim.api.nvim_input('/ti')")
    vim.until("vim.fn.pumvisible() == 1 and vim.fn.complete_info().items[1].menu:find('Sweep')")
    vim.keys("dying /of<Esc>")  # no list in the middle of a sentence
    assert vim.lua("return vim.api.nvim_get_current_line()") == "/tidying /of"


def test_an_unnamed_buffer(start: Start, folder: Path) -> None:
    """Its lines can be shown; it is no file, and nobody writes to it."""
    steps: list[dict[str, Any]] = [
        {"expect": "a note", "text": "Seen.", "calls": [write("new.txt", "new\n")]},
        {"text": "Done."},
    ]
    vim = start(steps=steps, mode="acceptEdits")
    vim.keys("ia note<Esc>:%Amanu look<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert "Seen." in vim.chat()
    assert vim.text() == "a note"
    assert vim.lua("return vim.bo.modified") is True
    assert (folder / "new.txt").read_text() == "new\n"


def test_chat_and_prompt_come_back(start: Start) -> None:
    vim = start(steps=[{"text": "Here."}])
    vim.keys(":Amanu hello<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    for away in ("bdelete", "bwipeout", "close"):
        for name in ("view", "prompt"):
            vim.lua("vim.cmd.sbuffer(require('amanu.chat.' .. ...).buffer)", name)
            vim.lua("vim.cmd[...]({ bang = true })", away)
        vim.keys(":Amanu<CR>")
        vim.until("vim.bo.filetype == 'amanu-prompt'")
        vim.keys("<Esc>")
        assert vim.chat().rstrip().endswith("Here."), away
        assert vim.lua("return require('amanu.chat.view').visible()"), away


# Files ------------------------------------------------------------------------------------------------------------


def test_a_user_types_meanwhile(start: Start, folder: Path) -> None:
    file = folder / "notes.txt"
    file.write_text("one\ntwo\nthree\n")
    steps: list[dict[str, Any]] = [
        {"calls": [edit("notes.txt", "two", "TWO")]},
        {"text": "one done"},
        {"calls": [edit("notes.txt", "three", "THREE")]},
        {"text": "two done"},
    ]
    vim = start("notes.txt", steps=steps, mode="acceptEdits")
    vim.lua("require('amanu').command({ args = '', range = 0 }) vim.cmd.stopinsert() vim.cmd.wincmd('h')")
    vim.until("require('amanu.wire.client').version")
    say = "require('amanu.session').prompt(..., {})"
    vim.keys("<Esc>gg0i")  # in insert mode, nothing typed yet: the edit waits
    vim.lua(say, "first")
    vim.until(WAITS)
    assert vim.text() == "one\ntwo\nthree"
    vim.keys("<Esc>")
    vim.until(f"({ENDED}) == 'completed'")
    assert vim.text() == "one\nTWO\nthree"
    assert file.read_text() == "one\nTWO\nthree\n"

    vim.keys("gg0i")  # and when something was typed, what was typed counts
    vim.lua(say, "second")
    vim.until(WAITS)
    vim.keys("my ")
    vim.keys("<Esc>")
    vim.until(f"({ENDED}) == 'completed' and {STATE}.items[#{STATE}.items].text == 'two done'")
    assert vim.text() == "my one\nTWO\nthree"
    assert vim.lua("return vim.bo.modified") is True
    assert file.read_text() == "one\nTWO\nthree\n"
    # far enough away: it still fits
    vim.until("#require('amanu.review.hunks').all(nil, require('amanu.review.hunks').open) == 1")
    vim.keys("gg]a]a<Space>aa")
    vim.until_text("my one\nTWO\nTHREE")


MARKS = """
local space, found = vim.api.nvim_get_namespaces()["amanu.hunks"], {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
  for _, line in ipairs(mark[4].virt_lines or {}) do
    table.insert(found, { mark[2] + 1, line[1][1] })
  end
end
return found
"""
"""Line and text of what is drawn below the lines of this buffer."""


def test_hunks_move_along_with_what_a_user_types(start: Start, folder: Path) -> None:
    file = folder / "notes.txt"
    file.write_text("\n".join(LINES) + "\n")
    steps = [{"calls": [write("notes.txt", "\n".join(PROPOSED) + "\n")]}, {"text": "done"}]
    vim = start("notes.txt", steps=steps)
    vim.keys(":Amanu change it<CR>")
    vim.until(f"#({STATE} or {{ approvals = {{}} }}).approvals > 0")
    vim.wait_for_answers()
    vim.lua("vim.cmd.wincmd('h') vim.cmd.stopinsert()")
    assert vim.text().splitlines() == LINES
    vim.keys("5Goabove<CR>and more<Esc>")  # while the question waits
    typed = [*LINES[:5], "above", "and more", *LINES[5:]]
    vim.until(f"{STATE}.proposals[1].files[1].hunks[2].lines.start == 8")
    drawn = vim.lua(MARKS)
    assert [(line, text) for line, text in drawn if text.startswith("+ ")] == [
        (2, "+ line two"),
        (9, "+ line seven"),
        (13, "+ line eleven"),
    ]
    assert not any("in conflict" in text for _, text in drawn)
    vim.keys("gg]a]a<Space>aa")
    accepted = ["line seven" if line == "line 7" else line for line in typed]
    vim.until_text("\n".join(accepted))
    vim.keys("u")
    assert vim.text().splitlines() == typed, "one undo takes back the hunk, and nothing that was typed"
    vim.until(f"{STATE}.proposals[1].files[1].hunks[2].state == 'reverted'")
    vim.keys("<C-r>")
    assert vim.text().splitlines() == accepted
    vim.until(f"{STATE}.proposals[1].files[1].hunks[2].state == 'applied'")

    vim.keys("2GA, mine<Esc>")  # in the lines of a hunk
    vim.until(f"{STATE}.proposals[1].files[1].hunks[1].state == 'conflicted'")
    assert any("in conflict: The file changed" in text for _, text in vim.lua(MARKS))
    vim.keys("gg]a<Space>aa")
    vim.until("vim.iter(Said):any(function(each) return each:find('not applied to') ~= nil end)")
    assert vim.text().splitlines()[1] == "line 2, mine"
    vim.keys("u")
    vim.until(f"{STATE}.proposals[1].files[1].hunks[1].state == 'pending'")
    vim.keys("gg<Space>aA")
    both = [{"line 2": "line two", "line 11": "line eleven"}.get(line, line) for line in accepted]
    vim.until_text("\n".join(both))
    vim.until(f"({ENDED}) == 'completed'")


def test_files_that_are_not_plain(start: Start, folder: Path) -> None:
    files: dict[str, tuple[bytes, bytes]] = {
        "mixed.txt": (b"one\r\ntwo\nthree", b"one\r\nTWO\nthree"),
        "latin.txt": (b"gr\xfc\xdfe\ntwo\n", b"gr\xfc\xdfe\nTWO\n"),
        "dos.txt": ("ü\r\ntwo\r\n".encode(), "ü\r\nTWO\r\n".encode()),
        "bom.txt": ("\ufeffü\ntwo\n".encode(), "\ufeffü\nTWO\n".encode()),
        "noeol.txt": (b"one\ntwo", b"one\nTWO"),
        "dirty.txt": (b"one\ntwo\n", b"one\ntwo\n"),
    }
    for name, (before, _) in files.items():
        (folder / name).write_bytes(before)
    calls = [edit(name, "two", "TWO") for name in files]
    vim = start(*files, steps=[{"calls": calls}, {"text": "Done."}], mode="acceptEdits")
    vim.lua("for _, name in ipairs({...}) do vim.cmd.edit(name) end", *files)
    vim.keys("gg0iunsaved <Esc>:Amanu go<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert vim.text() == "unsaved one\nTWO"
    for name, (_, after) in files.items():
        assert (folder / name).read_bytes() == after, name
    vim.until("vim.fn.getbufline('latin.txt', 2)[1] == 'TWO'")  # written by the daemon, and read again
    modified = (
        "return vim.iter(vim.api.nvim_list_bufs()):filter(function(b) return vim.bo[b].modified end):map("
        "function(b) return vim.fs.basename(vim.api.nvim_buf_get_name(b)) end):totable()"
    )
    assert vim.lua(modified) == ["dirty.txt"]


def test_apply_gives_exactly_the_text(start: Start, folder: Path) -> None:
    """Random edits, all line ends; what Python makes of them is what the buffer holds, in one undo step."""
    chance = random.Random(7)
    pieces = ["", "a", "ü", "𝒳", "bc", " "]
    cases: list[dict[str, Any]] = []
    for _ in range(300):
        end = chance.choice(["\n", "\r\n"])
        alphabet = [*pieces, end, end]
        text = "".join(chance.choices(alphabet, k=chance.randint(1, 12))) + chance.choice(["", end])
        text = text if end in text and text != end else f"x{end}{text}y{end}"
        breaks = [at for at in range(len(text) + 1) if text[at - 1 : at + 1] != "\r\n"]
        places = sorted(chance.choices(breaks, k=chance.choice([2, 2, 4])))
        edits = [
            SpanEdit(first, last, "".join(chance.choices(alphabet, k=chance.randint(0, 4))))
            for first, last in zip(places[::2], places[1::2], strict=True)
        ]
        encoding: Encoding = chance.choice(ENCODINGS)
        told = [each.model_dump() for each in wire_edits(DocumentText(text, encoding), edits)]
        cases.append({"text": text, "edits": told, "new": edited(text, edits), "encoding": encoding})
        (folder / f"{len(cases)}.txt").write_bytes(text.encode())
    vim = start()
    failed = vim.lua(
        """
        local apply, failed = require("amanu.wire.apply"), {}
        for at, case in ipairs(...) do
          require("amanu.wire.positions").encoding = function()
            return case.encoding
          end
          vim.cmd.edit(at .. ".txt")
          local path, sha = vim.api.nvim_buf_get_name(0), vim.fn.sha256
          local params = { path = path, expectedSha256 = sha(case.text), edits = case.edits, save = true }
          local result = apply.handle(params, function() end)
          local text = io.open(path, "rb"):read("*a")
          local right = result.status == "success" and result.sha256 == sha(case.new) and text == case.new
          local again = apply.handle(params, function() end)
          if case.text ~= case.new then
            right = right and again.status == "conflict"
            vim.cmd("silent undo")
            right = right and table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\\n")
              == (case.text:gsub("\\r\\n", "\\n"):gsub("\\n$", ""))
          end
          if not right then
            table.insert(failed, { case, result, text })
          end
          vim.cmd("bwipeout!")
        end
        return failed
        """,
        cases,
    )
    assert not failed


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("place", [(0, 9), (3, 0), (2, 1)])
def test_an_edit_outside_of_the_text_is_refused(
    start: Start, folder: Path, encoding: str, place: tuple[int, int]
) -> None:
    (folder / "a.txt").write_text("𝒳ü\none\n")
    vim = start("a.txt")
    edits = [text_edit((1, 0), (1, 3), "two"), text_edit(place, place, "x")]
    result = vim.lua(
        """
        local edits, encoding = ...
        require("amanu.wire.positions").encoding = function()
          return encoding
        end
        local text = require("amanu.wire.apply").text(0)
        local params = { path = vim.api.nvim_buf_get_name(0), expectedSha256 = vim.fn.sha256(text), edits = edits }
        return require("amanu.wire.apply").handle(params, function() end)
        """,
        [each.model_dump() for each in edits],
        encoding,
    )
    assert result == {"status": "error", "message": "An edit lies outside the text of a.txt."}
    assert vim.text() == "𝒳ü\none"


# The daemon -------------------------------------------------------------------------------------------------------


def test_the_daemon_dies_and_the_view_comes_back(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    vim = start("shop.py", steps=[{"text": "Both:", "calls": [write("shop.py", FIXED)]}, {"text": "Done."}])
    vim.keys(":Amanu fix<CR>")
    vim.until(f"{STATE} and #{STATE}.approvals > 0")
    pid = daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    vim.until(f"({ENDED}) == 'interrupted'")
    assert "This" not in vim.lua("return require('amanu.chat.view').status()")
    vim.until(f"{OPEN} == 2")  # still to be decided
    vim.keys("<Space>aA")
    vim.until(f"{STATE}.proposals[1].state == 'settled'")
    assert vim.text() + "\n" == FIXED
    assert (folder / "shop.py").read_text() == FIXED
    vim.keys(":Amanu and now?<CR>")
    vim.until(f"({ENDED}) == 'completed'")


def test_another_neovim_finds_what_waits(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    vim = start("shop.py", steps=[{"text": "Both:", "calls": [write("shop.py", FIXED)]}, {"text": "Done."}])
    vim.keys(":Amanu fix<CR>")
    vim.until(f"{STATE} and #{STATE}.approvals > 0")
    vim.close()
    again = start("shop.py")
    again.keys(":Amanu<CR>")
    again.until(f"{OPEN} == 2")
    assert "## You\nfix\n" in again.chat()
    again.wait_for_answers()
    again.answer("Accept all")
    again.keys("<Esc>:Amanu /approve<CR>")
    again.until(f"({ENDED}) == 'completed'")
    assert (folder / "shop.py").read_text() == FIXED


def test_all_edits_of_a_step_are_accepted_at_once_and_no_command(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    run: dict[str, Any] = {"tool": "run_shell_command", "arguments": {"command": "touch no", "background": True}}
    calls = [write("shop.py", FIXED), write("new.py", "x\n"), run]
    vim = start("shop.py", steps=[{"text": "Both:", "calls": calls}, {"text": "Done."}])
    vim.keys(":Amanu fix<CR>")
    vim.until(f"{STATE} and #{STATE}.approvals == 3")
    vim.wait_for_answers()
    vim.answer("Accept all of this step (2 files)")
    vim.keys("<Esc>:Amanu /approve<CR>")
    vim.until(f"#{STATE}.approvals == 1")
    assert vim.lua(f"return {STATE}.approvals[1].title") == "Run in the background: touch no"
    vim.until("vim.uv.fs_stat('new.py')")
    vim.answer("Reject with a reason", "")
    vim.keys("<Esc>:Amanu /approve<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert ((folder / "shop.py").read_text(), (folder / "new.py").read_text()) == (FIXED, "x\n")
    assert vim.lua("return Asked[2].labels")[0] == "Allow once"


def test_health(start: Start) -> None:
    vim = start()
    vim.keys(":Amanu<CR>")
    vim.until("require('amanu.wire.client').version")
    vim.lua("vim.cmd.stopinsert() vim.cmd('checkhealth amanu')")
    report = vim.text()
    assert "connected to the daemon" in report
    assert "no key for any vendor" in report
    assert "amanu doctor --report" in report
    assert "ERROR" not in report


OTHER_PROTOCOL = """
import sys
from amanu.frontends.lsp import handshake
handshake.PROTOCOL_VERSIONS = (2,)
from amanu.daemon.relay import main
sys.exit(main([]))
"""


def test_a_daemon_of_another_version_is_named_whenever_it_is_asked(start: Start) -> None:
    vim = start(cmd=[sys.executable, "-P", "-c", OTHER_PROTOCOL])
    named = "function(said) return said:find('speak different versions of the protocol; update both', 1, true) end"
    for times in (1, 2):
        vim.keys("<Esc>:Amanu<CR>")
        vim.until(f"#vim.tbl_filter({named}, Said) == {times}")
        vim.until("require('amanu.wire.client').id == nil")


def test_keys_and_signing_in_run_the_daemons_program(start: Start, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "amanu"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$PWD: $*"\n')
    program.chmod(0o755)
    vim = start()
    vim.keys(":Amanu<CR>")
    vim.until("require('amanu.wire.client').version")
    vim.lua("require('amanu').setup({ cmd = { ..., 'serve' } })", str(program))
    runs = {"/login": "login openai", "/logout": "logout openai", "/key anthropic": "set anthropic"}
    for command, arguments in runs.items():
        vim.keys(f"<Esc>:Amanu {command}<CR>")
        said = "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), ' ')"
        vim.until(f"vim.bo.buftype == 'terminal' and {said}:find('/: auth {arguments}', 1, true)")


# What needs no daemon ---------------------------------------------------------------------------------------------


def test_the_fold_passes_the_fixtures(start: Start) -> None:
    fold = """
    local found = {}
    for _, path in ipairs(...) do
      local text = table.concat(vim.fn.readfile(path), "\\n")
      local fixture = vim.json.decode(text, { luanil = { object = true } })
      for _, event in ipairs(fixture.events) do
        require("amanu.wire.fold").fold(fixture.start, event)
      end
      for at, item in ipairs(fixture.start.items) do
        assert(require("amanu.wire.fold").item(fixture.start, item.itemId) == item)
      end
      table.insert(found, fixture.start)
    end
    return found
    """
    found = start().lua(fold, [str(path) for path in FIXTURES])
    assert len(found) == len(FIXTURES) > 30
    for path, state in zip(FIXTURES, found, strict=True):
        expected = json.loads(path.read_text("utf-8"))["expected"]
        kept = path.stem == "unknown-fields"  # what it does not know, it does not look at
        assert lean(state, expected if kept else None) == lean(expected), path.stem


def lean(value: Any, like: Any = None) -> Any:
    """Without nulls, which Lua has not, and empty tables alike. With `like`: only what that has."""
    if isinstance(value, dict):
        keys: Any = value if like is None else [key for key in value if key in like]  # pyright: ignore
        pairs = {key: lean(value[key], None if like is None else like[key]) for key in keys if value[key] is not None}  # pyright: ignore
        return pairs or []
    if isinstance(value, list):
        return [lean(each, None if like is None else like[at]) for at, each in enumerate(value)]  # pyright: ignore
    return value


ITEMS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {
            "kind": "todoList",
            "todos": [
                {"text": "read", "status": "done"},
                {"text": "write", "status": "inProgress"},
                {"text": "run", "status": "pending"},
                {"text": "sing", "status": "cancelled"},
            ],
            "summary": "1 of 3 done · write",
        },
        ["● To-dos · 1 of 3 done · write", "│ [x] read", "│ [>] write", "│ [ ] run", "│ [-] sing", ""],
    ),
    ({"kind": "notice", "level": "warning", "text": "Slow.\nVery."}, ["┆ warning: Slow.", "┆ warning: Very.", ""]),
    (
        {"kind": "notice", "level": "info", "text": "Compacted.", "detail": "## Goal\n\n▸ Go\x1b on.\n"},
        ["┆ info: Compacted.", "│ ## Goal", "│ ", "│ ▸ Go<U+001B> on.", ""],
    ),
    (
        {
            "kind": "citations",
            "sources": [
                {"title": "A\npage", "url": "https://example.org/a", "quote": "It says\nso."},
                {"title": "A letter", "url": "", "quote": ""},
            ],
        },
        ["● Sources", "┆ [1] A page https://example.org/a", "┆ [2] A letter", "│ [1] It says", "│ [1] so.", ""],
    ),
    ({"kind": "answer", "text": "▸ mine\n\n┆ too"}, [" ▸ mine", "", " ┆ too", ""]),
    (
        {
            "kind": "toolCall",
            "itemId": "c",
            "title": "Run ls",
            "state": "rejected",
            "output": "",
            "error": "not run",
            "decision": {"outcome": "rejected", "client": "Visual Studio Code", "summary": "rejected by you"},
        },
        ["● ✗ Run ls · rejected (rejected by you (Visual Studio Code))", "┆ not run", ""],
    ),
    (
        {
            "kind": "toolCall",
            "itemId": "c",
            "title": "Edit a",
            "state": "validating",
            "output": "-a\n" * 9 + "+b\n+c\n",
        },
        ["● … Edit a · being written", *["┆ -a"] * 8, "┆ +b", "┆ +c", ""],
    ),
    (
        {"kind": "toolCall", "itemId": "c", "title": "edit_file", "state": "validating", "output": ""},
        ["● … edit_file", ""],
    ),
]


def test_how_items_are_drawn(start: Start) -> None:
    draw = "return vim.tbl_map(function(i) return require('amanu.chat.blocks').lines(i, { proposals = {} }) end, ...)"
    drawn = start().lua(draw, [item for item, _ in ITEMS])
    assert drawn == [lines for _, lines in ITEMS]


def test_nothing_is_hidden(start: Start) -> None:
    codes = [
        code for code in (*range(1, 0x3200), *range(0xD7F0, 0xD800), *range(0xE000, 0x10100), *range(0xDFFF0, 0xE1010))
    ]
    texts = ["a\r\nb\rc\x1b[31m", *(f"{chr(code)}x" for code in codes)]
    shown = start().lua("return vim.tbl_map(require('amanu.visible').text, ...)", texts)
    for text, each in zip(texts, shown, strict=True):
        assert each == visible(text), ascii(text)
