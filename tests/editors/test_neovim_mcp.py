"""MCP servers in Neovim: listed, agreed to, used, turned off. See test_neovim.py for the rest of the plugin."""

import json
import sys
from pathlib import Path

from editors.test_neovim import ENDED, STATE, Start, folder, home, start
from support.cli_process import call

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
READY = """
local function look()
  require("amanu.session").ask("amanu/mcp/list", {}, function(result)
    Ready = result.servers[1].state == "ready"
    if not Ready then
      vim.defer_fn(look, 50)
    end
  end)
end
look()
"""
"""Sets `Ready` when its tools are there."""
PAGE = "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), '\\n')"


def configure(home: Path) -> None:
    """A server of the user's that nobody has agreed to yet."""
    argv = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}]\n"
    (home / "config" / "mcp.toml").write_text(f"[servers.sample]\n{argv}")
    read = json.dumps([str(SERVER.parents[2]), sys.prefix, sys.base_prefix])  # wherever this Python is
    (home / "config" / "config.toml").write_text(f'[sandbox]\nwithout = "accept"\nread = {read}\n')


def test_a_server_is_agreed_to_used_and_turned_off(start: Start, home: Path, folder: Path) -> None:
    configure(home)
    calls = [call("mcp__sample__echo", text="heard you"), call("mcp__sample__grow")]
    vim = start(steps=[{"text": "", "calls": calls}, {"expect": "heard you", "text": "It echoes."}], size=(120, 40))
    vim.keys(":Amanu /mcp<CR>")  # nothing is chosen
    vim.until("#Asked == 1")
    (listed,) = vim.lua("return Asked")[0]["labels"]
    assert listed == "sample: needs your approval · your mcp.toml"
    vim.answer("sample: needs", "Approve and start")
    vim.keys(":Amanu /mcp<CR>")
    vim.until("#Asked == 3")
    assert vim.lua("return Asked[3]") == {"prompt": "MCP server sample", "labels": ["Approve and start"]}
    vim.until("vim.iter(Said):any(function(each) return each:find('You approved the MCP server sample') ~= nil end)")
    vim.lua(READY)
    vim.until("Ready")
    vim.keys(":Amanu go<CR>")
    for left in (1, 0):
        vim.until(f"#{STATE}.approvals == ...", left + 1)
        vim.wait_for_answers()
        vim.lua("Answers = { 'Allow once' }")
        vim.keys("<Esc>:Amanu /approve<CR>")
        vim.until(f"#{STATE}.approvals == ...", left)
    vim.until(f"({ENDED}) == 'completed'")
    assert vim.chat().rstrip().endswith("It echoes.")
    vim.until(f"{STATE}.items[#{STATE}.items].kind == 'notice'")  # the tool it just used has changed two
    vim.lua("Answers = { '2 new or changed' }")
    vim.keys(":Amanu /mcp<CR>")
    vim.until(f"{PAGE}:find('Send it to evil.example', 1, true)")
    assert vim.lua("return Asked[#Asked].labels") == ["Approve the tools as they are now", "Restart", "Turn off"]
    vim.lua("Answers = { '2 new or changed', 'Approve the tools' }")
    vim.keys("q:Amanu /mcp<CR>")
    vim.until("vim.iter(Said):any(function(each) return each:find('You approved the tools') ~= nil end)")
    vim.lua("Answers = { 'sample: ready' }")
    vim.keys(":Amanu /running<CR>")
    vim.until(f"{PAGE}:find('sample: ready · ', 1, true)")
    page = vim.text()
    assert "newcomer" in page and "new or changed" not in page
    assert f"  {sys.executable} {SERVER}\n" in page and "  echo — Repeat a text." in page
    assert vim.lua("return Asked[#Asked].labels") == ["Restart", "Turn off"]
    vim.answer("sample: ready", "Turn off")
    vim.keys("q:Amanu /mcp<CR>")
    vim.until("vim.iter(Said):any(function(each) return each:find('The MCP server sample is off') ~= nil end)")
    vim.keys(":Amanu /mcp sample<CR>")  # words go to the daemon, whose notice answers
    vim.until("require('amanu.session').state.items[#require('amanu.session').state.items].kind == 'notice'")
    vim.until(f"{STATE}.items[#{STATE}.items].text:find('sample: off', 1, true)")
