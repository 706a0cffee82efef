"""The conversation's rows in a real VS Code: reads and searches on one line, a prompt sent again and edited, and what
an empty chat offers."""

import asyncio
from pathlib import Path

from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, open_chat, send, service, shoot, until, workbench

pytestmark = IN_VSCODE

OLD = "".join(f"line {n}\n" for n in range(1, 10))
NEW = OLD.replace("line 3\n", "line three\n")
LOOKS = [
    ToolUse("read_file", {"path": "src/a.txt", "start_line": 2, "end_line": 5}),
    ToolUse("read_file", {"path": "src/b.txt"}),
    ToolUse("grep", {"pattern": "line 3"}),
]
EDIT = ToolUse("edit_file", {"path": "src/a.txt", "old_text": "line 3\n", "new_text": "line three\n"})


async def test_rows(lived_in: Path) -> None:
    folder = lived_in / "work" / "src"
    folder.mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(OLD)
    script = [
        Say(text="", calls=LOOKS),
        Say(text="A first answer."),
        Say(text="A second answer."),
        Say(text="A third answer."),
        Say(text="", calls=[EDIT]),
        Say(text="It is changed."),
        Say(text="It is not."),
    ]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await chat.locator(".starters button", has_text="Explain this project").wait_for(timeout=SECONDS)
        await shoot(page, "rows-1-empty")
        await send(chat, "Look around")
        await answered(chat, "A first answer")
        assert not await chat.locator(".welcome").is_visible()

        # one line of one line's height; behind it what was read, and the way there
        line = chat.locator(".looked > details > summary")
        assert await line.inner_text() == "Read 2 files, searched"
        assert await line.evaluate("each => each.getBoundingClientRect().height") <= 26
        await line.click()
        rows = chat.locator(".looked .tool")
        await until(rows.locator(".went").all_inner_texts, ["lines 2–5", "9 lines", "2 matches in 2 files"])
        await shoot(page, "rows-2-unfolded")
        await rows.first.locator("button.file").click()
        await page.locator(".statusbar-item", has_text="Ln 2, Col 1").wait_for(timeout=SECONDS)

        # the prompt once more, in its own place: nothing changed, so nothing is asked
        await chat.locator(".turn .retry").click()
        await answered(chat, "A second answer")
        assert await chat.locator(".user").count() == 1
        assert "A first answer" not in served.requests[-1].body.decode()

        # with other words, by the context menu; Escape would have let it be
        await chat.locator(".user").click(button="right")
        entry = page.locator(".monaco-menu .action-label", has_text="Edit and Resend")
        await entry.wait_for(timeout=SECONDS)
        await asyncio.sleep(0.5)  # a menu takes no click while it opens
        await entry.click()
        await chat.locator(".chip.editing").wait_for(timeout=SECONDS)
        assert await chat.locator("textarea").input_value() == "Look around"
        await shoot(page, "rows-3-editing")
        await send(chat, "Look elsewhere")
        await answered(chat, "A third answer")
        assert await chat.locator(".user .text").all_inner_texts() == ["Look elsewhere"]
        assert "Look around" not in served.requests[-1].body.decode()

        # what a turn did to files is shown before anything goes back, and stays when the user leaves
        await chat.locator("select.mode").select_option("acceptEdits")
        await send(chat, "Change it")
        await answered(chat, "It is changed")
        assert (folder / "a.txt").read_text() == NEW
        again = chat.locator(".turn .retry").last
        restore = page.locator('.quick-input-list .monaco-list-row[aria-label*="Restore 1 file and send"]')
        await again.click()
        await restore.wait_for(timeout=SECONDS)
        await shoot(page, "rows-4-asked")
        await page.keyboard.press("Escape")
        await restore.wait_for(state="hidden", timeout=SECONDS)
        assert (folder / "a.txt").read_text() == NEW
        assert await chat.locator(".user").count() == 2
        await again.click()
        await restore.click(timeout=SECONDS)
        await answered(chat, "It is not")
        assert (folder / "a.txt").read_text() == OLD
        await until(chat.locator(".user").count, 2)
        assert len(served.requests) == len(script)
        assert not served.refused and not served.lint
