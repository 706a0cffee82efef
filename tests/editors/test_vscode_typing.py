"""The user types while a proposal for the same file waits, in a real VS Code: hunks move along, in the file and in a
diff that is being edited; what is applied is what was approved, and nothing typed is lost."""

import asyncio
from pathlib import Path

from editors.test_vscode import LINES, PROPOSED
from support.strict_services.http import Say, ToolUse
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    asked,
    open_chat,
    open_file,
    send,
    service,
    shows,
    until,
    workbench,
)

pytestmark = IN_VSCODE

TYPED = {"line 2": "line two", "line 7": "line seven (mine)"}
EXPECTED = ["typed above", *(TYPED.get(each, each) for each in LINES)]


async def test_hunks_move_along(lived_in: Path) -> None:
    folder = lived_in / "work"
    file = folder / "notes.txt"
    file.write_text("\n".join(LINES) + "\n")
    content = "\n".join(PROPOSED) + "\n"
    script = [
        Say(text="Three changes.", calls=[ToolUse("write_file", {"path": "notes.txt", "content": content})]),
        Say(text="All decided."),
    ]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await open_file(page, "notes.txt")
        await send(chat, "Change three lines")
        await asked(chat)

        # the diff is edited but not saved while the file below it moves
        await chat.locator(".approval:visible button.review").click()
        accept = page.locator(".codelens-decoration a", has_text="Accept")
        await until(lambda: accept.count(), 4)
        await page.locator(".modified .view-line", has_text="line seven").first.click()
        await page.keyboard.press("End")
        await page.keyboard.type(" (mine)")
        await page.locator('.tab[data-resource-name="notes.txt"]').first.click()
        await page.keyboard.press("Control+Home")
        await page.keyboard.type("typed above\n")
        await shows(page, "typed above")
        await chat.locator(".where", has_text="line 8").wait_for(timeout=SECONDS)  # was line 7

        await chat.locator(".hunk .accept").first.click()
        await chat.locator(".hunk.applied").wait_for(timeout=SECONDS)
        await page.locator(".tab", has_text="(proposed)").click()
        await page.locator(".modified .view-line", has_text="(mine)").first.click()
        await page.keyboard.press("Control+Alt+y")
        await until(lambda: chat.locator(".hunk.applied").count(), 2)
        await chat.locator(".hunk .reject").first.click()
        await answered(chat, "All decided")

        await page.locator('.tab[data-resource-name="notes.txt"]').first.click()
        await shows(page, "line seven (mine)")
        assert file.read_text() == "\n".join(LINES) + "\n"  # it was unsaved, and stays so
        await page.keyboard.press("Control+s")
        async with asyncio.timeout(SECONDS / 1000):
            while file.read_text() != "\n".join(EXPECTED) + "\n":
                await asyncio.sleep(0.05)
        assert "(mine)" in served.requests[1].body.decode()
        assert not served.refused
