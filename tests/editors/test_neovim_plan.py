"""Plan mode in a real Neovim of a small screen: proposed by the model, the plan edited and commented on as a document,
approved into `acceptEdits`, its to-dos ticked, with a compaction in the middle."""

from pathlib import Path

import pytest

from editors.test_neovim import ENDED, STATE, Start, folder, home, start
from support.neovim import Neovim
from support.planner import Planner
from support.service_thread import serving
from support.strict_services.anthropic import Anthropic

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

PLAN = "vim.fn.bufnr('plan.md')"
CHAT = "require('amanu.chat.view').buffer"


def asked(vim: Neovim, title: str) -> None:
    vim.until(f"{STATE} and {STATE}.approvals[1] and {STATE}.approvals[1].title == ...", title)
    vim.wait_for_answers()


def shown(vim: Neovim, buffer: str) -> str:
    """The window's text, each run of spaces and line ends one space."""
    return " ".join(vim.window(buffer).split())


def test_a_plan(start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "hello.txt").write_text("hi\n")
    planner = Planner()
    service = Anthropic(planner.answer)
    with serving(service) as url:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        vim = start("hello.txt", size=(90, 26), model=None)

        # the model proposes to plan, and the user agrees
        vim.keys(":Amanu Greet politely<CR>")
        asked(vim, "Plan before changing anything")
        assert "There are several ways to greet. ┆ answer:" in shown(vim, CHAT), "and no rule is named"
        vim.answer("Allow once")
        vim.keys(":Amanu /approve<CR>")

        # the plan is a document beside the chat; a comment on a line sends it back
        asked(vim, "Carry out this plan")
        assert vim.lua("return Asked[1].prompt") == "Amanu asks: Plan before changing anything"
        vim.until(f"{PLAN} > 0 and #vim.fn.win_findbuf({PLAN}) == 1")
        assert "None that I know of." in shown(vim, PLAN)
        assert "┆ # Greet politely" in shown(vim, CHAT), "which keeps its height"
        assert "Plan: edit it, /comment on it, answer: <Space>ap" in "\n".join(vim.screen())
        vim.lua(f"vim.api.nvim_set_current_win(vim.fn.win_findbuf({PLAN})[1])")
        vim.keys("/None<CR>:Amanu /comment What if somebody likes the old one?<CR>:Amanu /send-comments<CR>")

        # revised, in the document that is open; the user adds a step of their own and approves what they see
        vim.until(f"table.concat(vim.api.nvim_buf_get_lines({PLAN}, 0, -1, true)):find('Somebody may like') ~= nil")
        assert "What if somebody likes the old one?" in planner.last
        asked(vim, "Carry out this plan")
        assert "┆ with the plan:10 “What if somebody likes the old one?”" in vim.chat()
        vim.keys("/Read<CR>o3. Tell everybody<Esc>")
        vim.answer("Approve: accept edits")
        vim.keys("<Space>ap")
        vim.until(f"({ENDED}) == 'completed'")
        assert "3. Tell everybody" in planner.last
        assert (folder / "hello.txt").read_text() == "Good morning\n"
        assert vim.lua("return vim.fn.getbufline('hello.txt', 1, '$')") == ["Good morning"]
        assert vim.lua(f"return vim.fn.win_findbuf({PLAN})") == [], "it is carried out: no window is taken by it"
        assert "3. Tell everybody" in Path(vim.lua(f"return vim.api.nvim_buf_get_name({PLAN})")).read_text()
        assert "┆ to-dos: 1 of 2 done · Read it ┆ again" in shown(vim, CHAT)

        # after a compaction the model has the plan and the list from the daemon
        vim.keys(":Amanu /compact<CR>")
        vim.until(f"vim.iter({STATE}.items):any(function(item) return (item.text or ''):find('^Compacted') ~= nil end)")
        vim.until(f"not {STATE}.turn")
        vim.keys(":Amanu Go on<CR>")
        vim.until(
            f"vim.iter({STATE}.items):any(function(item) return item.text == 'The plan is carried out.' end)",
        )
        vim.until(f"not {STATE}.turn")
        assert planner.last.count("3. Tell everybody") == 1
        assert "Mode: acceptEdits" in planner.last
        assert not service.refused
        assert not service.lint


def test_a_plan_that_is_sent_back_says_what_should_change(
    start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "hello.txt").write_text("hi\n")
    planner = Planner()
    with serving(Anthropic(planner.answer)) as url:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        vim = start(size=(90, 26), model=None)  # no file is open beside the chat
        vim.keys(":Amanu Greet politely<CR>")
        asked(vim, "Plan before changing anything")
        vim.answer("Allow once")
        vim.keys(":Amanu /approve<CR>")
        asked(vim, "Carry out this plan")
        vim.answer("Keep planning", "Think of those who like the old one.")
        vim.keys(":Amanu /approve<CR>")
        vim.until(f"{STATE}.approvals[1] and {STATE}.approvals[1].detail:find('Somebody may like') ~= nil")
        assert "They said: Think of those who like the old one." in planner.last
        assert vim.chat().count("Think of those who like the old one.") == 1
        assert "Somebody may like the old one." in shown(vim, PLAN)
