"""The keyboard is enough: from prompt to review to a command's approval without a mouse, in a real VS Code."""

import asyncio
from pathlib import Path

from editors.test_vscode import EXPECTED, LINES, PROPOSED
from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, asked, command, open_chat, service, until, workbench

pytestmark = IN_VSCODE


async def test_the_keyboard_is_enough(lived_in: Path) -> None:
    folder = lived_in / "work"
    file = folder / "notes.txt"
    file.write_text("\n".join(LINES) + "\n")
    script = [
        Say(
            text="Three changes.",
            calls=[ToolUse("write_file", {"path": "notes.txt", "content": "\n".join(PROPOSED) + "\n"})],
        ),
        Say(text="And a look.", calls=[ToolUse("run_shell_command", {"command": "touch made && echo by-key"})]),
        Say(text="That was all."),
    ]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        key = page.keyboard

        async def focused() -> str:
            return (
                await chat.locator(":focus").evaluate("each => each.className || each.tagName")
                if await chat.locator(":focus").count()
                else ""
            )

        await command(page, "Amanu: Open Chat")
        await chat.locator("textarea:focus").wait_for(timeout=SECONDS)
        await key.type("Change three lines")
        await key.press("Enter")
        await asked(chat)
        assert await focused() == "TEXTAREA"  # the question took no focus

        await key.press("Control+Alt+Enter")  # answer what waits: the first choice is to look at it
        await page.locator('.monaco-list-row.focused[aria-label*="Review hunk by hunk"]').wait_for(timeout=SECONDS)
        await key.press("Enter")
        accept = page.locator(".codelens-decoration a", has_text="Accept")
        await until(lambda: accept.count(), 4)  # the file's and three hunks'
        await key.press("Control+Home")
        await key.press("Control+Alt+j")
        await key.press("Control+Alt+y")
        await until(lambda: accept.count(), 3)
        await key.press("Control+Alt+j")
        await page.locator('.statusbar-item [aria-label="Ln 7, Col 1"]').wait_for(timeout=SECONDS)
        await key.press("End")
        await key.type(" (mine)")
        await key.press("Control+Alt+y")
        await until(lambda: accept.count(), 1)
        await key.press("Control+Alt+j")
        await key.press("Control+Alt+n")

        # in the chat: Tab leads to the question, its buttons are buttons
        await asked(chat)
        assert file.read_text() == "\n".join(EXPECTED) + "\n"
        await command(page, "Amanu: Open Chat")
        await chat.locator("textarea:focus").wait_for(timeout=SECONDS)
        async with asyncio.timeout(SECONDS / 1000):
            while "allow" not in await focused():
                await key.press("Shift+Tab")
        await key.press("Space")
        await answered(chat, "That was all")
        assert "by-key" in served.requests[2].body.decode()
        assert not served.refused
