"""Background commands as Neovim shows them. See test_neovim.py for the rest of the plugin."""

from pathlib import Path
from typing import Any

from editors.test_neovim import ENDED, STATE, Start, folder, home, start

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

OUTPUT = "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), '\\n')"


def test_what_runs_is_listed_read_and_stopped(start: Start, folder: Path) -> None:
    command = "echo ready; while [ ! -e go ]; do sleep 0.05; done; echo gone on; sleep 60"
    started: dict[str, Any] = {"command": command, "background": True, "until": "ready"}
    vim = start(
        steps=[{"text": "", "calls": [{"tool": "run_shell_command", "arguments": started}]}, {"text": "Started."}],
        mode="auto",
    )
    vim.keys(":Amanu go<CR>")
    vim.until(f"({ENDED}) == 'completed'")
    assert "1 in the background" in vim.lua("return require('amanu.chat.status').line()")
    vim.lua("Answers = { 'Output of job-1' }")
    vim.keys(":Amanu /jobs<CR>")
    vim.until(f"{OUTPUT} == 'ready\\n'")
    asked = vim.lua("return Asked[#Asked]")
    assert [label.split(" · ")[0] for label in asked["labels"]] == ["Output of job-1", "Stop job-1"]
    (folder / "go").write_text("")
    vim.until(f"{OUTPUT} == 'ready\\ngone on\\n'")
    vim.keys(":Amanu /jobs stop 1<CR>")
    vim.until(f"{STATE}.jobs[1].state == 'stopped'")
    assert vim.lua("return require('amanu.sessions.jobs').running(require('amanu.session').state)") is None
