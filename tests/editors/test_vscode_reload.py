"""A window of a real VS Code that is loaded again comes back to its own conversation, however soon that happens and
whatever other windows of the folder show, and to what was being reviewed."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from support.strict_services.http import Say, ToolUse
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    command,
    open_chat,
    ready,
    send,
    service,
    shoot,
    until,
    workbench,
)

pytestmark = IN_VSCODE


async def again(page: Any) -> None:
    """Load the window again; the view is open already, a click on its icon would close it."""
    await page.reload()
    await page.locator(".statusbar-item").first.wait_for(timeout=SECONDS)
    await ready(page)


def windows(user: Path) -> set[tuple[str, str]]:
    """The processes that serve windows, after which their files are named; and when each began, for its number may be
    another's soon."""
    found: set[tuple[str, str]] = set()
    for file in (user / "User" / "globalStorage" / "amanu.amanu" / "shown").glob("*/*"):
        process = Path("/proc", file.name)
        with contextlib.suppress(OSError):
            if b"extensionHost" in (process / "cmdline").read_bytes():
                found.add((file.name, (process / "stat").read_text().rpartition(")")[2].split()[19]))
    return found


async def test_reloaded(new_window: Path) -> None:
    files = [new_window / "work" / name for name in ("a.txt", "b.txt")]
    for file in files:
        file.write_text("one\ntwo\n")
    changes = [
        ToolUse("edit_file", {"path": file.name, "old_text": "one\n", "new_text": f"{file.stem}!\n"}) for file in files
    ]
    script = [
        Say(text="The first answer.", wait=1),
        Say(text="Another answer."),
        Say(text="One more answer."),
        Say(text="Both.", calls=changes),
        Say(text="Reviewed."),
    ]
    async with service("anthropic", script) as (served, environment), workbench(new_window, environment) as page:
        # as soon as the very first prompt is with the daemon, while its turn runs
        chat = await open_chat(page)
        async with page.expect_event("framenavigated") as _:
            await send(chat, "A first question")
            await chat.locator(".user", has_text="A first question").wait_for(timeout=SECONDS)
            await page.evaluate("location.reload()")
        await ready(page)
        await answered(chat, "The first answer")

        # a clean sheet is one afterwards, too; then there is a second conversation
        await chat.locator("h2.title", has_text="A first question").wait_for(timeout=SECONDS)
        await send(chat, "/new")
        await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        await again(page)
        await chat.locator("textarea").wait_for(timeout=SECONDS)
        assert await chat.locator(".user").count() == 0
        await send(chat, "A second question")
        await answered(chat, "Another answer")

        # another window of the folder: it begins with the same, then has its own, and each comes back to its own
        other = await page.context.new_page()
        await other.goto(page.url)
        beside = await open_chat(other)
        await answered(beside, "Another answer")
        await send(beside, "/new")
        await beside.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        await send(beside, "A third question")
        await answered(beside, "One more answer")
        await again(page)
        await answered(chat, "Another answer")
        await again(other)
        await answered(beside, "One more answer")
        user = new_window.parent / "user"
        both = windows(user)
        await other.close()
        async with asyncio.timeout(SECONDS / 1000):
            while both <= windows(user):
                await asyncio.sleep(0.05)
        assert len(served.requests) == 3

        # the one that stays comes back to its own, too, with a review of several files, and the diff of one
        await send(chat, "Change both")
        await until(chat.locator(".approval:visible").count, 2)
        await command(page, "Amanu: Show Proposed Changes")
        await page.locator(".tab.active", has_text="a.txt (proposed)").wait_for(timeout=SECONDS)
        await command(page, "View: Keep Editor")
        await command(page, "Amanu: Review All Changes")
        await page.locator(".tab.active", has_text="Changes to review (2 files)").wait_for(timeout=SECONDS)
        await command(page, "Developer: Reload Window")
        await page.locator(".tab.active", has_text="Changes to review (2 files)").wait_for(timeout=SECONDS)
        await until(page.locator(".codelens-decoration a", has_text="Accept").count, 2)
        for name in ("a!", "b!"):
            await page.locator(".multiDiffEntry .view-line", has_text=name).first.wait_for(timeout=SECONDS)
        await answered(chat, "Another answer")
        await shoot(page, "reload-1-review")
        await page.locator(".tab", has_text="a.txt (proposed)").click()
        await page.locator(".modified-in-monaco-diff-editor .view-line", has_text="a!").last.click(timeout=SECONDS)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await page.keyboard.press("Control+Alt+y")
        await until(lambda: asyncio.to_thread(files[0].read_text), "a!\ntwo\n")
        assert not served.refused
