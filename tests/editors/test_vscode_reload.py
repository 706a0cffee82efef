"""A window of a real VS Code that is loaded again comes back to its own conversation, however soon that happens and
whatever other windows of the folder show."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.strict_services.http import Say
from support.vscode import SECONDS, VSCODE, answered, open_chat, ready, send, service, until, workbench

pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(180),
]


async def again(page: Any) -> None:
    """Load the window again; the view is open already, a click on its icon would close it."""
    await page.reload()
    await page.locator(".statusbar-item").first.wait_for(timeout=SECONDS)
    await ready(page)


async def windows(folder: Path) -> int:
    """How many windows are served: each by its own process, after which its file is named."""
    shown = (folder / "user" / "User" / "globalStorage" / "amanu.amanu" / "shown").glob("*/*")
    return sum(_is_served_by(file.name) for file in shown)


def _is_served_by(pid: str) -> bool:
    """Whether that process serves a window; by now the number may be another process's, or a thread's."""
    try:
        return b"extensionHost" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def test_reloaded(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    script = [Say(text="The first answer.", wait=1), Say(text="Another answer."), Say(text="One more answer.")]
    async with service("anthropic", script) as (served, environment), workbench(tmp_path, environment) as page:
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
        await other.close()
        await until(partial(windows, tmp_path), 1)
        await again(page)
        await answered(chat, "Another answer")
        assert len(served.requests) == 3
        assert not served.refused
