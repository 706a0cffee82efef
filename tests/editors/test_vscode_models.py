"""Models and keys in a real VS Code: the list of models, its default and effort; a server on this machine is allowed
from the palette, and what is wrong with a key names the commands VS Code has."""

import os
from pathlib import Path

from amanu.home import find_home
from support.strict_services.anthropic import Anthropic
from support.strict_services.http import Fault, Say
from support.strict_services.openai import OpenAI
from support.vscode import IN_VSCODE, SECONDS, answered, command, open_chat, pick_model, send, shoot, workbench

pytestmark = IN_VSCODE


async def test_a_server_of_this_machine_is_allowed(window: Path) -> None:
    local, far = OpenAI([Say(text="I am on this machine.")], keyless=True), Anthropic([Fault("status", status=401)])
    address = await local.start()
    config = find_home(os.environ).config
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'# mine\n[base_urls]\nollama = "{address}/v1"\n')
    keys = {"ANTHROPIC_API_KEY": "sk-ant-wrong", "ANTHROPIC_BASE_URL": await far.start()}
    try:
        async with workbench(window, keys) as page:
            chat = await open_chat(page)
            await send(chat, "Are you there?")
            await chat.locator(".notice", has_text="Amanu: Set API Key… says which it is").wait_for(timeout=SECONDS)
            await shoot(page, "models-1-key")

            # the list: by vendor, what is in use on top, what cannot be used below with the way to it
            await chat.locator("button.model").click()
            rows = page.locator(".quick-input-list .monaco-list-row")
            await rows.filter(has_text="in use").wait_for(timeout=SECONDS)
            await shoot(page, "models-2-list")
            search = page.locator(".quick-input-widget input.input")
            await search.fill("opus")
            opus = rows.filter(has_text="Claude Opus 5.5").first
            await opus.hover(timeout=SECONDS)
            await opus.locator('[aria-label="Use as Default for New Sessions"]').click(timeout=SECONDS)
            await chat.locator(".told", has_text="New sessions use Claude Opus 5.5").wait_for(timeout=SECONDS)
            assert (config / "config.toml").read_text().startswith("# mine\n")
            assert 'model = "anthropic:claude-opus-5-5"' in (config / "config.toml").read_text()
            await rows.filter(has_text="default").first.wait_for(timeout=SECONDS)
            await opus.hover()
            await opus.locator('[aria-label="Thinking Effort…"]').click(timeout=SECONDS)
            await rows.filter(has_text="for hard tasks").click(timeout=SECONDS)
            await chat.locator("button.model", has_text="Claude Opus 5.5 · high").wait_for(timeout=SECONDS)
            await chat.locator("button.model").click()
            await search.fill("ollama", timeout=SECONDS)
            await rows.filter(has_text="Use Amanu: Allow a Local Model Server").first.wait_for(timeout=SECONDS)
            await shoot(page, "models-3-lacking")
            await page.keyboard.press("Escape")
            await command(page, "Amanu: Allow a Local Model Server")
            dialog = page.locator(".monaco-dialog-box", has_text="Allow ollama on this machine to receive your code")
            await dialog.wait_for(timeout=SECONDS)
            await shoot(page, "models-4-asked")
            await dialog.locator(".monaco-button", has_text="Allow").click()
            await chat.locator(".told", has_text=f"the server at {address}/v1 may be used").wait_for(timeout=SECONDS)
            await pick_model(page, chat, "ollama:")
            await send(chat, "And now?")
            await answered(chat, "I am on this machine.")
    finally:
        await local.stop()
        await far.stop()
