"""Several sessions with changes to review in a real VS Code: what is reviewed and decided is the session's in front, or
that of the change before the user; never another one's."""

import asyncio
from pathlib import Path
from typing import Any

from support.strict_services.http import Say, ToolUse
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    command,
    open_chat,
    send,
    service,
    shoot,
    until,
    workbench,
)

pytestmark = IN_VSCODE
BEFORE = "".join(f"line {n}\n" for n in range(1, 31))
LENS = ".codelens-decoration"


def changed(*lines: int) -> str:
    return "".join(f"line {n}{'!' if n in lines else ''}\n" for n in range(1, 31))


def write(name: str, *lines: int, content: str = "") -> ToolUse:
    return ToolUse("write_file", {"path": name, "content": content or changed(*lines)})


async def session(page: Any, chat: Any, prompt: str, files: int) -> None:
    """A new session that proposes changes."""
    await command(page, "Amanu: New Session")
    await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
    await send(chat, prompt)
    await until(chat.locator(".approval:visible").count, files)
    await asyncio.sleep(0.6)  # an answer before that is not taken


async def becomes(file: Path, expected: str) -> None:
    async with asyncio.timeout(SECONDS / 1000):
        while file.read_text() != expected:
            await asyncio.sleep(0.05)


async def test_a_review_is_of_the_session_in_front(window: Path) -> None:
    folder = window / "work"
    for name in ("a.txt", "b.txt", "c.txt", "d.txt", "both.txt"):
        (folder / name).write_text(BEFORE)
    longer = write("c.txt", content=changed(3, 20).replace("line 3!\n", "line 3!\none more\n"))
    says = [
        Say(text="First.", calls=[write("a.txt", 3), write("both.txt", 5)]),
        Say(text="Second.", calls=[write("b.txt", 3)]),
        Say(text="Third.", calls=[longer, write("both.txt", 25), write("d.txt", 7)]),
        Say(text="The third is decided."),
    ]
    async with service("anthropic", says) as (served, environment), workbench(window, environment) as page:
        key = page.keyboard
        chat = await open_chat(page)
        await session(page, chat, "Alpha", 2)
        await session(page, chat, "Beta", 1)
        await session(page, chat, "Gamma", 3)

        # the list keeps them apart
        await command(page, "Amanu: Review All Sessions")
        rows = page.locator(".quick-input-list .monaco-list-row")
        await until(rows.count, 9)
        await shoot(page, "owners-1-all-sessions")
        said = [await rows.nth(n).get_attribute("aria-label") for n in range(9)]
        starts = ("Review 2 files of “Alpha”", "a.txt", "both.txt", "Review 1 file of “Beta”", "b.txt")
        starts += ("Review 3 files of “Gamma”", "c.txt", "both.txt", "d.txt")
        assert all(start in (label or "") for start, label in zip(starts, said, strict=True)), said
        await key.press("Escape")

        # the review of this one shows this one, and the keys stay in it
        await chat.locator(".changes button", has_text="Review").click()
        tab = page.locator(".tab.active", has_text="Changes to review in “Gamma” (3 files)")
        await tab.wait_for(timeout=SECONDS)
        await page.locator(LENS, has_text="1 of 4").first.wait_for(timeout=SECONDS)
        await page.locator(LENS, has_text="“Gamma”").first.wait_for(timeout=SECONDS)
        await shoot(page, "owners-2-review")
        at = '.statusbar-item [aria-label="Ln {}, Col 1"]'
        await page.locator(at.format(3)).wait_for(timeout=SECONDS)
        for line in (21, 25, 7):
            await key.press("Control+Alt+j")
            await page.locator(at.format(line)).wait_for(timeout=SECONDS)
            await tab.wait_for(timeout=SECONDS)
        await shoot(page, "owners-3-last")

        # a decision leads to the next that is open, over the files
        for line, answer, then in ((7, "y", 3), (3, "n", 20), (20, "y", 25)):
            await page.locator(f'.statusbar-item [aria-label^="Ln {line}, "]').wait_for(timeout=SECONDS)
            await key.press(f"Control+Alt+{answer}")
            await page.locator(f'.statusbar-item [aria-label^="Ln {then}, "]').wait_for(timeout=SECONDS)
        await until(page.locator(LENS, has_text="Accept").count, 1)  # nothing is offered where all is decided
        await shoot(page, "owners-4-decided")
        await key.press("Control+Alt+y")
        done = page.locator(".statusbar-item", has_text="All changes of this session are reviewed")
        await done.wait_for(timeout=SECONDS)
        await answered(chat, "The third is decided")
        await tab.wait_for(state="detached", timeout=SECONDS)
        assert (folder / "c.txt").read_text() == changed(20)
        assert (folder / "both.txt").read_text() == changed(25)
        assert (folder / "d.txt").read_text() == changed(7)
        assert (folder / "a.txt").read_text() == (folder / "b.txt").read_text() == BEFORE
        assert not served.refused


async def test_all_is_all_of_one_session(window: Path) -> None:
    """The one whose chat is in front; from a diff, and from a group in Source Control, theirs."""
    folder = window / "work"
    names = ("a.txt", "b.txt", "both.txt", "c.txt", "d.txt")
    for name in names:
        (folder / name).write_text(BEFORE)

    def state() -> list[str]:
        return [name for name in names if (folder / name).read_text() != BEFORE]

    says = [
        Say(text="First.", calls=[write("a.txt", 3), write("both.txt", 5)]),
        Say(text="Second.", calls=[write("b.txt", 3), write("both.txt", 25)]),
        Say(text="Third.", calls=[write("c.txt", 3), write("d.txt", 7)]),
        Say(text="The third is decided."),
        Say(text="The first is decided."),
        Say(text="The second is decided."),
    ]
    async with service("anthropic", says) as (served, environment), workbench(window, environment) as page:
        chat = await open_chat(page)
        await session(page, chat, "Alpha", 2)
        await session(page, chat, "Beta", 2)
        await session(page, chat, "Gamma", 2)

        # another's file is in the editor, and was the last one there; the user is in the chat
        await page.locator('.activitybar [aria-label*="Source Control"]').first.click()
        view = page.locator('.part.sidebar .pane:has(> .pane-header:has-text("Amanu"))')
        await view.locator(".pane-header", has_text="5 files to review").click()
        await page.locator(".part.sidebar .pane-header", has_text="Changes").first.click()  # git's: room for all rows
        groups = view.locator('.monaco-list-row[aria-level="1"]')
        await until(groups.count, 3)
        row = view.locator('.monaco-list-row[aria-label^="a.txt, "]')
        await row.click()
        alpha = page.locator(".tab.active", has_text="a.txt (proposed) · “Alpha”")
        await alpha.wait_for(timeout=SECONDS)
        await shoot(page, "owners-5-source-control")
        await chat.get_by_label("Prompt for Amanu").click()
        await command(page, "Amanu: Accept and Keep All Changes of Session")
        await answered(chat, "The third is decided")
        assert state() == ["c.txt", "d.txt"]
        await command(page, "Amanu: Reject All Proposed Changes of Session")
        await chat.locator(".told", has_text="There is nothing to review in this session").wait_for(timeout=SECONDS)
        await shoot(page, "owners-6-nothing")

        # the user is in another's diff
        await page.locator(".editor.modified .view-line").nth(8).click()
        await page.keyboard.press("Control+Alt+j")
        await page.locator(".tab.active", has_text="both.txt (proposed) · “Alpha”").wait_for(timeout=SECONDS)
        await command(page, "Amanu: Reject All Proposed Changes of Session")
        await until(groups.count, 1)
        assert state() == ["c.txt", "d.txt"]

        # a button of the list of changes, which is only one session's now
        await groups.first.hover()
        await groups.first.get_by_label("Accept and Keep All Changes of Session").click()
        await becomes(folder / "b.txt", changed(3))
        await becomes(folder / "both.txt", changed(25))
        await groups.first.wait_for(state="detached", timeout=SECONDS)
        assert not served.refused
