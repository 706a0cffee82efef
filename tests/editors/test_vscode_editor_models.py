"""Models of another extension in a real VS Code, as GitHub Copilot's are: offered where a key is asked for, then asked
through VS Code, tools and all. No key is set anywhere."""

import os
from pathlib import Path

from amanu.home import find_home
from support.vscode import IN_VSCODE, SECONDS, answered, open_chat, send, shoot, workbench

pytestmark = IN_VSCODE
PROVIDER = Path(__file__).parents[1] / "support" / "model_provider"


async def test_a_model_of_another_extension_answers_without_a_key(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("forty-two")
    async with workbench(tmp_path, {}, extension=PROVIDER) as page:
        chat = await open_chat(page)
        await chat.locator(".hindrance", has_text="Acme's can be used without a key").wait_for(timeout=SECONDS)
        await shoot(page, "editor-models-1-offered")
        await chat.locator(".hindrance button", has_text="Use Acme's models").click()
        rows = page.locator(".quick-input-list .monaco-list-row")
        await rows.filter(has_text="vscode:acme/reader-1").wait_for(timeout=SECONDS)
        await shoot(page, "editor-models-2-list")
        await rows.filter(has_text="vscode:acme/reader-1").click()
        await chat.locator(".told", has_text="New sessions use Reader 1 · Acme").wait_for(timeout=SECONDS)
        await chat.locator(".hindrance").wait_for(state="hidden", timeout=SECONDS)
        assert 'model = "vscode:acme/reader-1"' in (find_home(os.environ).config / "config.toml").read_text()

        await send(chat, "What does the file say?")
        await answered(chat, "It says: forty-two")
        await shoot(page, "editor-models-3-answered")

        await send(chat, "And beyond the quota?")
        await chat.locator(".notice", has_text="You have used your premium requests").wait_for(timeout=SECONDS)
        await shoot(page, "editor-models-4-quota")

        # the window is loaded anew: the same session goes on with the same model
        await page.reload()
        await open_chat(page)
        await answered(chat, "It says: forty-two")
        await send(chat, "Look again.")
        await chat.locator(".answer", has_text="It says: forty-two").nth(1).wait_for(timeout=SECONDS)
