"""Commands that run, in a real VS Code: shown in a terminal tab, and the end of the turn told to who looks elsewhere.
Those in the background: counted in the status bar, listed, stopped, still there when the window was loaded again."""

from pathlib import Path

from editors.test_vscode_reload import again
from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, asked, open_chat, send, service, shoot, workbench

pytestmark = IN_VSCODE


TEXT = {"terminal.integrated.gpuAcceleration": "off"}
"""The terminal's text is in the page, and not only painted."""


async def test_commands_in_terminal_tabs(lived_in: Path) -> None:
    builds = ToolUse("run_shell_command", {"command": "echo begun; while [ ! -e on ]; do sleep 0.1; done; echo built"})
    serves = "echo ready; while [ ! -e go ]; do sleep 0.1; done; echo gone on; sleep 100"
    started = ToolUse("run_shell_command", {"command": serves, "background": True, "until": "ready"})
    script = [
        Say(text="", calls=[builds]),
        Say(text="It is built."),
        Say(text="", calls=[started]),
        Say(text="It runs."),
    ]
    told = {"amanu.notifyAfter": 1, **TEXT}
    async with (
        service("anthropic", script) as (served, environment),
        workbench(lived_in, environment, settings=told) as page,
    ):
        chat = await open_chat(page)
        terminal = page.locator(".terminal-wrapper .xterm-rows")
        await send(chat, "Build it")
        await chat.locator(".tool button.terminal").click()  # it changes nothing, so it runs unasked
        await terminal.filter(has_text="begun").first.wait_for(timeout=SECONDS)
        await shoot(page, "jobs-1-terminal")
        await send(chat, "/new")
        await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        (lived_in / "work" / "on").write_text("")
        await terminal.filter(has_text="[succeeded]").first.wait_for(timeout=SECONDS)
        toast = page.locator(".notifications-toasts .notification-list-item", has_text="“Build it” has finished.")
        await toast.wait_for(timeout=SECONDS)
        await shoot(page, "jobs-2-notified")
        await toast.locator(".monaco-button", has_text="Show").click()
        await answered(chat, "It is built.")

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
        await terminal.filter(has_text="ready").first.wait_for(timeout=SECONDS)
        (lived_in / "work" / "go").write_text("")
        await terminal.filter(has_text="gone on").first.wait_for(timeout=SECONDS)
        await item.locator("a").click()
        await row.hover()
        await row.locator(".action-label.codicon-debug-stop").click()
        await terminal.filter(has_text="Stopped by the user").first.wait_for(timeout=SECONDS)
        await item.wait_for(state="hidden", timeout=SECONDS)
        assert not served.refused
