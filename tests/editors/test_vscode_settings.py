"""The page of settings in a real VS Code: what the user changes stands in their file, whose comments stay; a refusal
stands beside its setting; rules are previewed, added and removed."""

import os
from pathlib import Path

import pytest

from amanu.home import find_home
from support.vscode import IN_VSCODE, SECONDS, command, open_chat, service, shoot, shows, workbench

pytestmark = IN_VSCODE
THEMES = ["Default Dark Modern", "Default Light Modern", "Default High Contrast"]
FILE = """# mine
mode = "plan"  # look first

[limits]
cost_usd = 2.0
"""


@pytest.mark.parametrize("theme", THEMES if os.environ.get("AMANU_SCREENSHOTS") else THEMES[:1])
async def test_the_page_of_settings(theme: str, window: Path) -> None:
    shot = f"settings-{theme.split()[1].lower()}"
    path = find_home(os.environ).settings
    path.parent.mkdir(parents=True)
    path.write_text(FILE)
    async with (
        service("anthropic", []) as (_, environment),
        workbench(window, environment, settings={"workbench.colorTheme": theme}) as page,
    ):
        chat = await open_chat(page)
        await command(page, "Amanu: Settings")
        view = page.frame_locator('iframe.webview:not([src*="webviewView"])').frame_locator("#active-frame")
        setting = view.locator(".setting")
        mode = setting.and_(view.locator('[data-key="mode"]'))
        await mode.wait_for(timeout=SECONDS)
        assert await mode.locator("select").input_value() == "plan"
        await shoot(page, f"{shot}-1")

        await mode.locator("select").select_option("acceptEdits")
        await mode.locator(".note.info", has_text="It takes effect in new sessions").wait_for(timeout=SECONDS)
        steps = view.locator('[data-key="limits.steps"]')
        await steps.locator("input").fill("0")
        await steps.locator("input").press("Enter")
        await steps.locator(".note.error", has_text="greater than or equal to 1").wait_for(timeout=SECONDS)
        await steps.scroll_into_view_if_needed()
        await shoot(page, f"{shot}-2-refused")
        await steps.locator("input").fill("40")
        await steps.locator("input").press("Enter")
        await steps.locator(".note.info").wait_for(timeout=SECONDS)
        subagent = view.locator('[data-key="routing.subagent"]')
        await subagent.locator("button", has_text="Choose").click()
        await page.locator(".quick-input-widget input.input").fill("haiku", timeout=SECONDS)
        await page.locator(".quick-input-list .monaco-list-row", has_text="haiku").first.click(timeout=SECONDS)
        await subagent.locator(".note.info").wait_for(timeout=SECONDS)

        rules = view.locator(".rules")
        await rules.locator("select").select_option("deny")
        await rules.locator("input").fill("run_shell_command(git push *)")
        await rules.locator(".note.info", has_text="Never allows git push with any arguments").wait_for(timeout=SECONDS)
        await rules.locator("input").press("Enter")
        await rules.locator("tr", has_text="git push").wait_for(timeout=SECONDS)
        await rules.scroll_into_view_if_needed()
        await shoot(page, f"{shot}-3-rules")
        text = path.read_text()
        assert text.startswith('# mine\nmode = "acceptEdits"  # look first\n')
        assert "steps = 40" in text and 'deny = ["run_shell_command(git push *)"]' in text
        assert 'subagent = "anthropic:claude-haiku' in text
        await rules.locator("tr", has_text="git push").locator("button").click()
        await rules.locator("tr", has_text="git push").wait_for(state="hidden", timeout=SECONDS)
        assert "git push" not in path.read_text()

        await view.locator("[type=search]").fill("cost")
        await view.locator('[data-key="limits.steps"]').wait_for(state="hidden", timeout=SECONDS)
        await shoot(page, f"{shot}-4-search")
        await view.locator("button", has_text="Open config.toml").click()
        await shows(page, "look first")
        await chat.locator("button.new, .composer").first.wait_for(timeout=SECONDS)
