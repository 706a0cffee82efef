"""Background commands in a real VS Code: counted in the status bar, listed, shown in a terminal tab, stopped, and still
there when the window was loaded again."""

from pathlib import Path

import pytest

from editors.test_vscode_reload import again
from support.strict_services.http import Say, ToolUse
from support.vscode import SECONDS, VSCODE, answered, asked, open_chat, send, service, workbench

pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(180),
]


STAYS = {"AMANU_IDLE_SECONDS": "20"}
"""The daemon outlives the time it takes to load a window again."""
TEXT = {"terminal.integrated.gpuAcceleration": "off"}
"""The terminal's text is in the page, and not only painted."""


async def test_a_server_in_a_terminal_tab(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    command = "echo ready; while [ ! -e go ]; do sleep 0.1; done; echo gone on; sleep 100"
    started = ToolUse("run_shell_command", {"command": command, "background": True, "until": "ready"})
    script = [Say(text="", calls=[started]), Say(text="It runs.")]
    async with (
        service("anthropic", script) as (served, environment),
        workbench(tmp_path, {}, settings={"amanu.server.environment": {**environment, **STAYS}, **TEXT}) as page,
    ):
        chat = await open_chat(page)
        await send(chat, "Start it")
        await (await asked(chat)).click()
        await answered(chat, "It runs.")
        item = page.locator('.statusbar-item[id="amanu.amanu.amanu.jobs"]')
        await item.filter(has_text="1").wait_for(timeout=SECONDS)
        await again(page)
        await item.filter(has_text="1").wait_for(timeout=SECONDS)
        await item.locator("a").click()
        row = page.locator(".quick-input-list .monaco-list-row", has_text="job-1")
        await row.wait_for(timeout=SECONDS)
        await row.click()
        terminal = page.locator(".terminal-wrapper .xterm-rows")
        await page.locator(".xterm").first.wait_for(timeout=SECONDS)
        (tmp_path / "work" / "go").write_text("")
        await terminal.filter(has_text="gone on").first.wait_for(timeout=SECONDS)
        await item.locator("a").click()
        await row.hover()
        await row.locator(".action-label.codicon-debug-stop").click()
        await terminal.filter(has_text="Stopped by the user").first.wait_for(timeout=SECONDS)
        await item.wait_for(state="hidden", timeout=SECONDS)
        assert not served.refused
