"""Sessions beside the one that is shown, in a real VS Code: one that waits is announced, and one click leads to it; one
whose turn died with the daemon does not seem to run."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from amanu.home import find_home
from support.running_daemon import signal_daemon
from support.strict_services.http import Say, ToolUse
from support.vscode import SECONDS, VSCODE, answered, asked, command, open_chat, send, service, shoot, workbench

pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(180),
]


def run(line: str) -> ToolUse:
    return ToolUse("run_shell_command", {"command": line})


async def test_a_session_that_waits_is_announced(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    gate = tmp_path / "work" / "gate"
    os.mkfifo(gate)
    config = find_home(os.environ).config
    config.mkdir(parents=True)
    (config / "rules.toml").write_text('[user]\nallow = ["run_shell_command(cat gate)"]\n')
    says = [
        Say(text="Working.", calls=[run("cat gate")]),
        Say(text="Answer beside it."),
        Say(text="Now this.", calls=[run("touch made.txt")]),
        Say(text="All done."),
    ]
    async with service("anthropic", says) as (served, environment), workbench(tmp_path, environment) as page:
        chat = await open_chat(page)
        await send(chat, "The first job")
        await answered(chat, "Working.")
        await send(chat, "/new")
        await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        await page.locator('.statusbar-item [aria-label*="A turn runs in “The first job”"]').wait_for(timeout=SECONDS)
        await send(chat, "Another question")
        await answered(chat, "Answer beside it.")

        # it begins to wait while another is on the screen
        await asyncio.to_thread(gate.write_text, "go\n")
        toast = page.locator(".notification-toast", has_text="“The first job” waits for you: Run touch made.txt")
        await toast.wait_for(timeout=SECONDS)
        status = page.locator('.statusbar-item [aria-label*="“The first job” waits for 1 decision of yours"]')
        await status.wait_for(timeout=SECONDS)
        await page.locator(".activitybar .badge-content", has_text="1").wait_for(timeout=SECONDS)
        await shoot(page, "sessions-1-announced")
        await toast.locator(".monaco-button", has_text="Show").click()
        await chat.locator("h2.title", has_text="The first job").wait_for(timeout=SECONDS)
        await (await asked(chat)).click()
        await answered(chat, "All done.")
        assert (tmp_path / "work" / "made.txt").exists()
        await page.locator(".activitybar .badge-content", has_text="1").wait_for(state="hidden", timeout=SECONDS)
        assert await page.locator(".notification-toast").count() == 0  # once, and not when it is shown
        assert not served.refused


async def test_a_turn_that_died_does_not_seem_to_run(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    says = [Say(text=["One ", "two "], delay=0.5, repeat=1000)]
    async with service("anthropic", says) as (_, environment), workbench(tmp_path, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Count")
        await answered(chat, "One two")
        row = chat.locator(".sessions li", has_text="Count")
        await command(page, "Amanu: Sessions")
        await row.locator(".aside", has_text="running").wait_for(timeout=SECONDS)
        signal_daemon(signal.SIGKILL)
        await row.locator(".aside", has_text="interrupted").wait_for(timeout=SECONDS)
        await shoot(page, "sessions-2-interrupted")
        await page.keyboard.press("Escape")
        await chat.locator(".standing", has_text="The daemon stopped in the middle of this turn").wait_for(
            timeout=SECONDS
        )
