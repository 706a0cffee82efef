"""A real Neovim with no plugin: its own LSP client and a few lines of configuration, as docs/editors/any.md says."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amanu.frontends.lsp.plain.transcript import YOUR_TURN
from amanu.home import find_home
from editors.test_neovim import FIXED, SHOP, edit
from support.neovim import WAIT, Neovim
from support.required_programs import needs
from support.running_daemon import signal_daemon

BARE = r"""
local setup = vim.json.decode(%(setup)s)
local config = {
  name = "amanu",
  cmd = setup.cmd,
  init_options = { amanu = { model = setup.model } },
  root_dir = function(buffer, on_dir)
    on_dir(vim.fs.root(buffer, ".git") or vim.fn.getcwd())
  end,
  reuse_client = function(client)
    return client.name == "amanu"
  end,
}
if vim.lsp.config then
  vim.lsp.config("amanu", config)
  vim.lsp.enable("amanu")
else -- before 0.11
  config.root_dir = vim.fn.getcwd()
  vim.api.nvim_create_autocmd("FileType", {
    callback = function(event)
      vim.lsp.start(config, { bufnr = event.buf, reuse_client = config.reuse_client })
    end,
  })
end
Progress = {}
vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    table.insert(Progress, (event.data.params or event.data.result).value)
  end,
})
function Order(command, ...)
  vim.lsp.buf_request(0, "workspace/executeCommand", { command = command, arguments = { ... } })
end
"""
FIRST, SECOND = 4, 12


class BareNeovim(Neovim):
    CONFIGURED = BARE

    def chat(self) -> str:
        return self.text()

    def act(self, title: str) -> None:
        """The code action whose title holds it, by vim.lsp.buf.code_action; asked for until it is offered."""
        end = time.monotonic() + WAIT
        while True:
            seen = self.lua("return #Asked")
            self.answer(title)
            self.lua("vim.lsp.buf.code_action()")
            self.until("#Asked > ...", seen)
            labels = self.lua("return Asked[#Asked].labels")
            if any(title in label for label in labels):
                return
            assert time.monotonic() < end, labels

    def until_lines(self, *lines: int) -> None:
        """Wait until our diagnostics are there, 0-based."""
        self.until(
            "vim.deep_equal(vim.tbl_map(function(d) return d.lnum end, vim.diagnostic.get(0)), ...)", list(lines)
        )

    def go(self, line: int) -> None:
        self.lua("vim.api.nvim_win_set_cursor(0, {..., 4})", line + 1)


Start = Callable[..., BareNeovim]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP)
    return folder


@pytest.fixture
def start(tmp_path: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    nvim = os.environ.get("AMANU_NVIM") or needs("nvim")
    started: list[BareNeovim] = []

    def begin(*steps: dict[str, Any]) -> BareNeovim:
        script = tmp_path / "script.json"
        script.write_text(json.dumps(steps))
        command = [sys.executable, "-P", "-m", "amanu", "serve"]
        editor = BareNeovim(
            nvim, tmp_path_factory.mktemp("v"), folder, ["shop.py"], cmd=command, model=f"scripted:{script}"
        )
        started.append(editor)
        editor.until("#vim.lsp.get_clients({bufnr = 0}) == 1 and vim.lsp.get_clients()[1].initialized")
        return editor

    yield begin
    for editor in started:
        editor.close()
    signal_daemon()


BOTH = {
    "calls": [
        edit("shop.py", "item.price for", "item.price * item.quantity for"),
        edit("shop.py", "amount > LIMIT", "amount >= LIMIT"),
    ]
}
RUN = {"calls": [{"tool": "run_shell_command", "arguments": {"command": "touch made"}}]}


def proposed(editor: BareNeovim) -> None:
    editor.lua("Order('amanu.prompt', 'mend it')")
    editor.until_lines(FIRST, SECOND)
    time.sleep(1)  # on a busy machine the question appears a moment after the lines


def test_prompt_progress_question_review_undo(start: Start, folder: Path) -> None:
    editor = start(RUN, BOTH, {"text": "Done."})
    editor.answer("Allow once")
    editor.lua("Order('amanu.prompt', 'mend it')")
    editor.until("#Asked > 0 and Asked[1].prompt:find('touch made', 1, true)")
    # The answer came at once, which does not count; the next one does, when the question has been there a while.
    editor.until("#Asked > 1")
    time.sleep(0.55)
    assert not (folder / "made").exists()
    editor.act("Amanu: allow once: Run touch made")
    editor.until_lines(FIRST, SECOND)
    assert (folder / "made").exists()
    editor.until("vim.tbl_contains(vim.tbl_map(function(v) return v.kind end, Progress), 'begin')")
    editor.go(0)
    editor.keys("]d")
    assert editor.lua("return vim.api.nvim_win_get_cursor(0)[1]") == FIRST + 1
    editor.lua("vim.lsp.buf.hover()")
    floating = (
        "vim.tbl_filter(function(w) return vim.api.nvim_win_get_config(w).relative ~= '' end, vim.api.nvim_list_wins())"
    )
    editor.until(f"#{floating} > 0")
    told = editor.lua(
        f"return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf({floating}[1]), 0, -1, true), '\\n')"
    )
    assert "+    return sum(item.price * item.quantity for item in items)" in told
    time.sleep(0.55)
    editor.act("Amanu: accept this change")
    half = SHOP.replace("item.price for", "item.price * item.quantity for").rstrip("\n")
    editor.until_text(half)
    editor.go(SECOND)
    editor.act("Amanu: reject this change")
    editor.until_lines()
    assert editor.text() == half
    editor.keys("Go# mine<Esc>")
    editor.go(FIRST)
    editor.act("Amanu: undo this change")
    editor.until_text(SHOP + "# mine")
    assert (folder / "shop.py").read_text() == SHOP


def test_a_patch_is_edited_and_applied(start: Start, folder: Path) -> None:
    editor = start(BOTH, {"text": "Done."})
    proposed(editor)
    editor.act("Amanu: review as an editable patch")
    editor.until("vim.api.nvim_buf_get_name(0):find('%.patch$')")
    assert Path(editor.lua("return vim.api.nvim_buf_get_name(0)")).is_relative_to(find_home().state)
    editor.until("#vim.lsp.get_clients({bufnr = 0}) == 1")
    editor.keys("gg/^+.*quantity<CR>:s/quantity/count/<CR>")
    editor.keys("G?^@@<CR>dG")
    editor.act("Amanu: apply the reviewed patch")
    editor.until("vim.api.nvim_buf_get_lines(0, 0, 1, true)[1]:find('1 accepted, 1 rejected')")
    editor.lua("vim.cmd('buffer! shop.py')")
    editor.until_text(SHOP.replace("item.price for", "item.price * item.count for").rstrip("\n"))


def test_the_chat_is_written_in_and_sent(start: Start, folder: Path) -> None:
    editor = start({"text": "I am here.\n\nHow so?"}, {"expect": "second", "text": "Again."})
    editor.act("Amanu: open chat")
    editor.until("vim.api.nvim_buf_get_name(0):find('chat.md$') and #vim.lsp.get_clients({bufnr = 0}) == 1")
    editor.keys("Gohello there<Esc>")
    editor.act("Amanu: send")
    editor.until("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), ' '):find('How so%?')")
    assert f"hello there\n\n## Amanu\n\nI am here.\n\nHow so?\n\n{YOUR_TURN}" in editor.text()
    editor.keys("Gothe second<Esc>")
    editor.act("Amanu: send")
    editor.until("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), ' '):find('Again')")


def test_a_dirty_buffer_typed_in_while_the_agent_edits(start: Start, folder: Path) -> None:
    editor = start(BOTH, {"text": "Done."})
    editor.keys("ggO# ü𝒳 not saved<Esc>")
    editor.lua("Order('amanu.prompt', 'mend it')")
    editor.until_lines(FIRST + 1, SECOND + 1)
    time.sleep(0.55)
    editor.keys("ggO# typed meanwhile<Esc>")
    editor.until_lines(FIRST + 2, SECOND + 2)
    editor.go(FIRST + 2)
    editor.act("Amanu: accept all 2 changes in this file")
    mine = "# typed meanwhile\n# ü𝒳 not saved\n"
    editor.until_text(mine + FIXED.rstrip("\n"))
    editor.until_lines()
    editor.act("Amanu: undo the last turn's changes")
    editor.until_text(mine + SHOP.rstrip("\n"))
    assert (folder / "shop.py").read_text() == SHOP
