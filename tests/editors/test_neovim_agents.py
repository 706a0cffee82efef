"""Sub-agents as Neovim shows them: each on the card of its call, what it asks by its name. See test_neovim.py for the
rest of the plugin."""

import re
from pathlib import Path
from typing import Any

from editors.test_neovim import ENDED, STATE, Start, folder, home, start, write
from support.agent_session import ask_agent, complete, user_agent
from support.neovim import Neovim
from support.scripted_session import call, step

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

CHAT = "require('amanu.chat.view').buffer"
PAGE = "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), '\\n')"
FOLDS = """
local lines = {}
vim.api.nvim_win_call(vim.fn.win_findbuf(require('amanu.chat.view').buffer)[1], function()
  for line = 1, vim.fn.line('$') do
    if vim.fn.foldclosed(line) == line then
      table.insert(lines, vim.fn.getline(line))
    end
  end
end)
return lines
"""
READS = step("I look.", call("read_file", path="notes.txt"))


def labels(vim: Neovim) -> dict[str, str]:
    """What each agent is called, by its name: calls that come together begin in any order."""
    agents = vim.lua(f"return {STATE}.agents")
    return {agent["name"]: f"{agent['name']} {agent['agentId'].removeprefix('agent-')}" for agent in agents}


def two(tmp_path: Path, folder: Path) -> list[dict[str, Any]]:
    """The steps of a model that starts two agents, who look at a file and propose another."""
    (folder / "notes.txt").write_text("one\n")
    for name in ("one", "two"):
        edit = write(f"{name}.txt", f"{name}\n")
        user_agent(tmp_path, name, [READS, step("", edit), step("", complete(f"{name} did it."))])
    return [step("", ask_agent("one"), ask_agent("two")), step("Both are done.")]


def test_two_ask_and_each_question_says_whose_it_is(start: Start, tmp_path: Path, folder: Path) -> None:
    vim = start(steps=two(tmp_path, folder), size=(90, 26))
    vim.keys(":Amanu go<CR>")
    vim.until(f"{STATE} and #{STATE}.approvals == 2")
    vim.until(f"vim.iter({STATE}.agents):all(function(each) return each.state == 'waiting' and each.steps == 2 end)")
    chat = vim.chat()
    called = labels(vim)
    for name, label in called.items():
        assert f"● ? {label} · 2 steps: the task of {name}\n┆ I look.\n┆ ✓ Read notes.txt\n" in chat
        assert f"● ? {label}: Create {name}.txt · waits for your answer\n" in chat
    assert chat.count("Read notes.txt") == 2, "on the cards of their agents, and nowhere else"
    line = vim.lua("return require('amanu.chat.status').line()")
    assert re.match(r"\? (one|two) \d: Create \w+\.txt · 2 agents · ", line)
    first = vim.lua(f"return {STATE}.approvals[1].agent")
    vim.wait_for_answers()
    for answer in (["Accept all"], ["Reject with", "not that one"]):
        vim.lua("Answers = {}")
        vim.answer(*answer)
        vim.keys("<Esc>:Amanu /approve<CR>")
        vim.until(f"#{STATE}.approvals == ...", 1 if answer == ["Accept all"] else 0)
    asked = [each["prompt"] for each in vim.lua("return Asked") if "Create" in each["prompt"]]
    assert asked[0].startswith(f"{first} ")
    assert {prompt.split(" asks")[0] for prompt in asked} == {*called.values()}
    vim.until(f"({ENDED}) == 'completed'")
    chat = vim.chat()
    for name, label in called.items():
        mark, state = ("✓", "applied") if name == first else ("✗", "rejected")
        assert f"│ {mark} Create {name}.txt" in chat and f"@@ file @@ {state}" in chat
        assert f"● ✓ {label} · 3 steps: the task of {name}\n│ I look.\n" in chat
        assert f"│ {name} did it.\n" in chat
    assert (folder / f"{first}.txt").exists() and len([*folder.glob("*.txt")]) == 2
    folded = vim.lua(FOLDS)
    assert sum(" · 3 steps: the task of" in each for each in folded) == 2, "what they did is folded away"
    shown = vim.window(CHAT)
    assert "Read notes.txt" not in shown and "Both are done." in shown
    assert vim.lua("return require('amanu.sessions.agents').running(require('amanu.session').state)") is None
    before = vim.chat()
    vim.lua("require('amanu.chat.view').update()")
    assert sorted(vim.chat().split("\n")) == sorted(before.split("\n")), "the same when it is drawn anew"


def test_one_is_stopped_and_the_other_opened(start: Start, tmp_path: Path, folder: Path) -> None:
    (folder / "notes.txt").write_text("one\n")
    user_agent(tmp_path, "slow", [READS, step("x", delay_ms=60_000)])
    user_agent(tmp_path, "quick", [READS, step("", complete("Seen."))])
    vim = start(steps=[step("", ask_agent("slow"), ask_agent("quick")), step("Without it.")])
    vim.keys(":Amanu go<CR>")
    vim.until(f"{STATE} and {STATE}.agents[2]")
    for reached in ("each.name == 'quick' and each.state == 'completed'", "each.name == 'slow' and each.steps == 1"):
        vim.until(f"vim.iter({STATE}.agents):any(function(each) return {reached} end)")
    called = labels(vim)
    slow, quick = called["slow"], called["quick"]
    vim.lua("Answers = { 'Stop slow' }")
    vim.keys("<Esc>:Amanu /agents<CR>")
    offered = {label.split(":")[0] for label in vim.lua("return Asked[#Asked].labels")}
    assert offered == {f"Open {slow}", f"Stop {slow}", f"Open {quick}"}
    vim.until(f"({ENDED}) == 'completed'")
    # It is stopped while the second step begins.
    stopped = [
        f"● ✗ {slow} · {steps}: the task of slow\n│ I look.\n│ ✓ Read notes.txt\n" for steps in ("1 step", "2 steps")
    ]
    assert any(each in vim.chat() for each in stopped)
    assert "Without it." in vim.chat()
    vim.keys(f":Amanu /agents open {quick.split()[1]}<CR>")
    vim.until(f"{PAGE}:find('Seen.', 1, true)")
    page = vim.text()
    assert page.startswith("## You\nTask: the task of quick\n") and "● ✓ Read notes.txt" in page
    assert page.endswith(f"┆ {quick}: the task of quick · Completed: 2 steps")
    session = vim.lua(f"return {STATE}.sessionId")
    vim.keys("q:Amanu /sessions<CR>")
    vim.until("Asked[#Asked].prompt:find('^Sessions of')")
    assert not any("task of" in label for label in vim.lua("return Asked[#Asked].labels"))
    assert vim.lua(f"return {STATE}.sessionId") == session
    vim.keys(":Amanu /agents stop 7<CR>")
    vim.until("vim.iter(Said):any(function(each) return each:find('no agent 7') ~= nil end)")


def test_one_in_the_background_is_counted_and_listed_with_everything_that_runs(
    start: Start, tmp_path: Path, folder: Path
) -> None:
    user_agent(tmp_path, "slow", [step("x", delay_ms=60_000)])
    vim = start(steps=[step("", ask_agent("slow", background=True)), step("It works.")])
    vim.keys(":Amanu go<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    vim.until(f"{STATE}.agents[1].state == 'running'")
    assert ": the task of slow · in the background · " in vim.chat()
    assert " · 1 agent · " in f" · {vim.lua('return require([[amanu.chat.status]]).line()')}"
    vim.lua("Answers = { 'Stop slow 1' }")
    vim.keys("<Esc>:Amanu /running<CR>")
    vim.until(f"{STATE}.agents[1].state == 'cancelled'")
    vim.keys(":Amanu /running<CR>")
    vim.until("vim.iter(Said):any(function(each) return each:find('nothing is running') ~= nil end)")
