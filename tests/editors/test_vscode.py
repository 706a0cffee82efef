"""The main job in a real VS Code in Chromium: prompt → thought → card → diff → one hunk accepted, one edited and
accepted, one rejected → the file is right and the model hears of it; then a reload in the middle of a turn.

Run by `make test-vscode`, which installs VS Code and the browser's driver; Chromium must be on the machine.
"""

from pathlib import Path

import pytest

from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, asked, open_chat, send, service, shoot, until, workbench

pytestmark = IN_VSCODE

LINES = [f"line {n}" for n in range(1, 13)]
PROPOSED = [{"line 2": "line two", "line 7": "line seven", "line 11": "line eleven"}.get(each, each) for each in LINES]
EXPECTED = [{"line 2": "line two", "line 7": "line seven (mine)"}.get(each, each) for each in LINES]


@pytest.mark.parametrize(("vendor", "auto_save"), [("anthropic", "off"), ("gemini", "afterDelay")])
async def test_the_main_job(vendor: str, auto_save: str, lived_in: Path) -> None:
    workspace = lived_in / "work"
    file = workspace / "notes.txt"
    file.write_text("\n".join(LINES) + "\n")
    script = [
        Say(
            thought="**Looking around**\n\nI read it first.",
            text=["I read ", "it **first**."],
            calls=[ToolUse("read_file", {"path": "notes.txt"})],
        ),
        Say(
            text="Three changes.",
            calls=[ToolUse("write_file", {"path": "notes.txt", "content": "\n".join(PROPOSED) + "\n"})],
        ),
        Say(text="Two taken, one refused. Anything else?"),
        Say(text=[f"word{n} " for n in range(400)], delay=0.06),
    ]
    async with (
        service(vendor, script) as (served, environment),
        workbench(lived_in, environment, settings={"files.autoSave": auto_save}) as page,
    ):
        chat = await open_chat(page)
        await send(chat, "Change three lines")
        await chat.locator(".thought .subject", has_text="Looking around").wait_for(timeout=SECONDS)
        await chat.locator(".answer strong", has_text="first").wait_for(timeout=SECONDS)
        await asked(chat)
        await shoot(page, f"{vendor}-1-asked")
        assert file.read_text() == "\n".join(LINES) + "\n"  # nothing changes before the user says so
        assert await page.locator(".editor-group-container .tab").count() == 0  # and nothing opens by itself
        await chat.locator(".approval:visible button.review").click()
        accept = page.locator(".codelens-decoration a", has_text="Accept")
        await until(lambda: accept.count(), 4)  # the file's and three hunks'
        await shoot(page, f"{vendor}-2-diff")
        await accept.nth(1).click()
        await until(lambda: accept.count(), 3)
        assert file.read_text().splitlines() == [*LINES[:1], "line two", *LINES[2:]]
        await page.locator(".modified .view-line", has_text="line seven").first.click()
        await page.keyboard.press("End")
        await page.keyboard.type(" (mine)")
        await shoot(page, f"{vendor}-3-edited")
        await page.keyboard.press("Control+Alt+y")
        await until(lambda: accept.count(), 1)
        assert file.read_text().splitlines() == EXPECTED
        await page.keyboard.press("Control+Alt+j")
        await page.keyboard.press("Control+Alt+n")
        await answered(chat, "one refused")
        await shoot(page, f"{vendor}-4-decided")
        assert file.read_text() == "\n".join(EXPECTED) + "\n"
        assert "(mine)" in served.requests[2].body.decode()
        await send(chat, "talk")
        await answered(chat, "word5 ")
        if vendor == "anthropic":  # to load a window is long, and another vendor's model no matter
            await page.reload()
        await answered(chat, "word40 ")
        await shoot(page, f"{vendor}-5-reloaded")
        await chat.locator(".stop").click()
        await chat.locator(".standing", has_text="Stopped").wait_for(timeout=SECONDS)
        assert len(served.requests) == 4
        assert not served.refused and not served.lint
