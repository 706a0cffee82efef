"""A review as one does it all day, in a real VS Code: twelve changes in four files with the keyboard alone; changes a
rule applied, kept and undone beside what the person typed; and the way back from the chat."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from editors.workbench import (
    SECONDS,
    VSCODE,
    answered,
    command,
    open_chat,
    send,
    service,
    shoot,
    until,
    workbench,
)
from strict.http import Say, ToolUse

pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(180),
]

NAMES = ["a.txt", "b.txt", "c.txt", "d.txt"]
LINES = [f"line {n}" for n in range(1, 21)]
CHANGED = (2, 9, 16)
"""The lines each file's three changes are about."""


def text(*changed: int, mark: str = "!") -> str:
    return "".join(f"{line}{mark if n in changed else ''}\n" for n, line in enumerate(LINES, 1))


async def test_twelve_changes_by_keyboard(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in NAMES:
        (folder / name).write_text(text())
    calls = [ToolUse("write_file", {"path": name, "content": text(*CHANGED)}) for name in NAMES]
    script = [Say(text="Twelve changes.", calls=calls), Say(text="All decided.")]
    async with service("anthropic", script) as (served, environment), workbench(tmp_path, environment) as page:
        chat = await open_chat(page)
        key = page.keyboard
        await command(page, "Amanu: Open Chat")
        await chat.locator("textarea:focus").wait_for(timeout=SECONDS)
        await key.type("Change three lines of each")
        await key.press("Enter")
        await until(chat.locator(".approval:visible").count, 4)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await page.locator('.activitybar [aria-label*="Source Control"] .badge-content', has_text="4").wait_for(
            timeout=SECONDS
        )
        await shoot(page, "review-1-asked")

        # in each file: yes, no, yes. The last decision of a file closes its diff, next opens the one after it
        accept = page.locator(".codelens-decoration a", has_text="Accept")
        for name in NAMES:
            await key.press("Control+Alt+j")
            await page.locator(".tab.active", has_text=name).wait_for(timeout=SECONDS)
            await until(accept.count, 4)  # the file's and its three changes'
            await page.locator('.statusbar-item [aria-label="Ln 2, Col 1"]').wait_for(timeout=SECONDS)
            if name == "a.txt":
                await shoot(page, "review-2-diff")
            for line, answer, left in ((2, "y", 3), (9, "n", 1), (16, "y", 0)):
                if line > CHANGED[0]:
                    await key.press("Control+Alt+j")
                await page.locator(f'.statusbar-item [aria-label="Ln {line}, Col 1"]').wait_for(timeout=SECONDS)
                await key.press(f"Control+Alt+{answer}")
                if left:
                    await until(accept.count, left)
            await page.locator(".tab", has_text=name).wait_for(state="detached", timeout=SECONDS)
        await answered(chat, "All decided")
        assert {(folder / name).read_text() for name in NAMES} == {text(2, 16)}
        await chat.locator(".turn", has_text="4 files").wait_for(timeout=SECONDS)
        await shoot(page, "review-3-decided")
        await page.locator('.activitybar [aria-label*="Source Control"] .badge-content:visible').wait_for(
            state="detached", timeout=SECONDS
        )
        assert not served.refused
