"""Models and keys in a real VS Code: a server on this machine is allowed from the palette, and what is wrong with a key
names the commands VS Code has."""

import os
from pathlib import Path

import pytest

from amanu.home import find_home
from support.strict_services.anthropic import Anthropic
from support.strict_services.http import Fault, Say
from support.strict_services.openai import OpenAI
from support.vscode import SECONDS, VSCODE, answered, command, open_chat, send, shoot, workbench

pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(180),
]


async def test_a_server_of_this_machine_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    local, far = OpenAI([Say(text="I am on this machine.")], keyless=True), Anthropic([Fault("status", status=401)])
    address = await local.start()
    config = find_home(os.environ).config
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'[base_urls]\nollama = "{address}/v1"\n')
    keys = {"ANTHROPIC_API_KEY": "sk-ant-wrong", "ANTHROPIC_BASE_URL": await far.start()}
    try:
        async with workbench(tmp_path, keys) as page:
            chat = await open_chat(page)
            await send(chat, "Are you there?")
            await chat.locator(".notice", has_text="Amanu: Set API Key… says which it is").wait_for(timeout=SECONDS)
            await shoot(page, "models-1-key")

            await chat.locator("select.model option", has_text="not allowed yet").wait_for(
                state="attached", timeout=SECONDS
            )
            await command(page, "Amanu: Allow a Model Server of This Machine")
            dialog = page.locator(".monaco-dialog-box", has_text="Let ollama on this machine have your code")
            await dialog.wait_for(timeout=SECONDS)
            await shoot(page, "models-2-asked")
            await dialog.locator(".monaco-button", has_text="Allow").click()
            await chat.locator(".told", has_text=f"the server at {address}/v1 may be used").wait_for(timeout=SECONDS)
            option = chat.locator('select.model option[value^="ollama:"]:not([disabled])').first
            await option.wait_for(state="attached", timeout=SECONDS)
            await chat.locator("select.model").select_option(await option.get_attribute("value"))
            await send(chat, "And now?")
            await answered(chat, "I am on this machine.")
    finally:
        await local.stop()
        await far.stop()
