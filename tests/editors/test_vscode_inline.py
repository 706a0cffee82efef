"""Ctrl+I in a real VS Code: asked at the lines, drawn there as it is written, accepted by key, refined, stopped,
rejected, continued in the chat; and the commit message."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

from support.strict_services.http import Received, Say
from support.vscode import IN_VSCODE, SECONDS, answered, command, open_chat, open_file, service, shoot, shows, workbench

pytestmark = IN_VSCODE

TEXT = "def f(a):\n    x = a\n    return x\n\n\ndef g():\n    pass\n"


def reply(*lines: str) -> str:
    body = "\n".join(lines)
    return f"<before>\ndef f(a):\n</before>\n<rewrite>\n{body}\n</rewrite>\n<after>\n\n</after>"


def said(request: Received) -> str:
    return json.dumps(json.loads(request.body)["messages"][-1], ensure_ascii=False)


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


async def ask(page: Any, title: str, text: str) -> None:
    """Type into the box with that title, which Ctrl+I opens."""
    await page.locator(".quick-input-widget .quick-input-title", has_text=title).wait_for(timeout=SECONDS)
    await page.keyboard.type(text)
    await page.keyboard.press("Enter")


async def proposed(page: Any, text: str) -> None:
    """The diff in front proposes that line. An answer within half a second of it would not count."""
    line = page.locator(".modified-in-monaco-diff-editor .view-line", has_text=text.replace(" ", "\xa0"))
    await line.first.wait_for(timeout=SECONDS)
    await asyncio.sleep(0.6)
    await line.first.click()


async def test_lines_are_rewritten_at_the_cursor(lived_in: Path) -> None:
    folder = lived_in / "work"
    (folder / "a.py").write_text(TEXT)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "feat: begin")
    first = reply("    return a", *(f"    # {number}" for number in range(12)))
    says = [
        Say(text=[first[at : at + 12] for at in range(0, len(first), 12)], delay=0.15),
        Say(text=reply("    return a or 0")),
        Say(text="feat: let f take nothing"),
        Say(text=[first[at : at + 12] for at in range(0, len(first), 12)], delay=2),
        Say(text=reply("    return 7")),
        Say(text=reply("    return 8")),
        Say(text="Because it is eight."),
    ]
    async with service("anthropic", says) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await open_file(page, "a.py")
        await page.keyboard.press("Control+Home")
        await page.keyboard.press("ArrowDown")
        for _ in range(2):
            await page.keyboard.press("Shift+ArrowDown")
        await page.keyboard.press("Control+i")
        await ask(page, "Edit lines 2–3 of a.py", "without x")

        # drawn where it will stand, while it is written
        live = page.locator(".review-widget", has_text="without x")
        await live.locator("text=return a").first.wait_for(timeout=SECONDS)
        await shoot(page, "inline-1-written")
        await proposed(page, "    return a")
        assert await live.count() == 0 and (folder / "a.py").read_text() == TEXT
        await shoot(page, "inline-2-diff")
        heard = said(served.requests[0])
        assert "without x" in heard and "x = a" in heard and "def g()" in heard
        assert "tools" not in json.loads(served.requests[0].body)

        # refined from the diff, with the same key
        await page.keyboard.press("Control+i")
        await ask(page, "Refine the edit", "never None")
        await proposed(page, "    return a or 0")
        await shoot(page, "inline-3-refined")
        await page.keyboard.press("Control+Alt+y")
        changed = TEXT.replace("    x = a\n    return x\n", "    return a or 0\n")
        await page.locator(".editor-instance .view-line", has_text="return\xa0a\xa0or\xa00").first.wait_for(
            timeout=SECONDS
        )
        assert "never None" in said(served.requests[1])

        # a message for what was changed
        await page.locator(".tab.active", has_text="a.py", has_not_text="proposed").wait_for(timeout=SECONDS)
        for _ in range(100):
            if (folder / "a.py").read_text() == changed:
                break
            await page.keyboard.press("Control+s")
            await asyncio.sleep(0.2)
        assert (folder / "a.py").read_text() == changed
        await page.keyboard.press("Control+Shift+g")
        await page.locator('[aria-label*="Generate Commit Message with Amanu"]').first.click(timeout=SECONDS)
        await page.locator(".scm-editor .view-line", has_text="let\xa0f\xa0take\xa0nothing").wait_for(timeout=SECONDS)
        await shoot(page, "inline-4-commit")
        heard = said(served.requests[2])
        assert "feat: begin" in heard and "+    return a or 0" in heard
        log = subprocess.run(["git", "log", "--oneline"], cwd=folder, capture_output=True, text=True, check=True)
        assert len(log.stdout.splitlines()) == 1

        # Escape while it is written, and in its diff: the file is as it was, and goes on being typed in
        proposed_tab = page.locator(".tab", has_text="a.py (proposed)")
        await open_file(page, "a.py")
        await page.locator(".editor-instance .view-line", has_text="return").click()
        await page.keyboard.press("Control+i")
        await ask(page, "Edit line 2 of a.py", "slowly")
        await live_edit_of(page, "slowly").locator("text=return a").first.wait_for(timeout=SECONDS)
        await page.locator(".editor-instance .view-line", has_text="def\xa0f").click()
        await page.keyboard.press("Escape")
        await live_edit_of(page, "slowly").wait_for(state="detached", timeout=SECONDS)
        await rewrite(page, "seven", "    return 7")
        await page.keyboard.press("Escape")
        await proposed_tab.wait_for(state="detached", timeout=SECONDS)
        await page.locator(".tab.active", has_text="a.py").wait_for(timeout=SECONDS)
        await page.keyboard.type("# typed")
        await shows(page, "# typed")
        await page.keyboard.press("Control+z")
        assert (folder / "a.py").read_text() == changed and await page.locator("text=return 7").count() == 0

        # continued in the chat: what is said there while it waits is answered, and it waits on
        await rewrite(page, "eight", "    return 8")
        await page.locator('[aria-label="Continue Edit in Chat"]').first.click(timeout=SECONDS)
        await chat.locator(".user", has_text="eight").wait_for(timeout=SECONDS)
        await chat.get_by_label("Prompt for Amanu").fill("Why eight?")
        await chat.get_by_label("Prompt for Amanu").press("Enter")
        await answered(chat, "Because it is eight.")
        assert await proposed_tab.count() == 1 and (folder / "a.py").read_text() == changed
        assert "tools" in json.loads(served.requests[-1].body)

        # where there is nothing to edit, that is said
        await command(page, "File: New Untitled Text File")
        await page.locator(".tab.active", has_text="Untitled").wait_for(timeout=SECONDS)
        await page.keyboard.press("Control+i")
        await page.locator(".notification-toast", has_text="Save the file first").wait_for(timeout=SECONDS)
        assert not served.refused


def live_edit_of(page: Any, instruction: str) -> Any:
    return page.locator(".review-widget", has_text=instruction)


async def rewrite(page: Any, instruction: str, line: str) -> None:
    """Have the line with `return` rewritten."""
    await page.locator(".editor-instance .view-line", has_text="return").click()
    await page.keyboard.press("Control+i")
    await ask(page, "Edit line 2 of a.py", instruction)
    await proposed(page, line)
