"""A change in conflict in VS Code as it is delivered: the user merges it in VS Code's own merge editor."""

from pathlib import Path

from support.strict_services.http import Say, ToolUse
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    command,
    open_file,
    send,
    service,
    shoot,
    trusted,
    until,
    workbench,
)

pytestmark = IN_VSCODE
BEFORE = "".join(f"line {n}\n" for n in range(1, 21))
LENS = ".codelens-decoration a"


async def test_a_conflict_is_merged_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    file = folder / "a.txt"
    file.write_text(BEFORE)
    change = ToolUse("edit_file", {"path": "a.txt", "old_text": "line 8\n", "new_text": "line eight\n"})
    async with (
        service("anthropic", [Say(text="One line.", calls=[change]), Say(text="Merged.")]) as (served, environment),
        workbench(tmp_path, environment, stock=True, settings={"amanu.diffInPlace": False}) as page,
    ):
        chat = await trusted(page)
        key = page.keyboard
        await open_file(page, "a.txt")
        await send(chat, "Change a line")
        await until(chat.locator(".approval:visible").count, 1)
        await page.locator(LENS, has_text="Amanu proposes").wait_for(timeout=SECONDS)
        await page.locator(".editor-instance .view-line").nth(7).click()
        await key.press("End")
        await key.type(" of mine")
        merge = page.locator(LENS, has_text="Merge…")
        await merge.wait_for(timeout=SECONDS)
        await shoot(page, "merge-1-conflict")

        await merge.click()
        await page.locator(".tab.active", has_text="Merging: a.txt").wait_for(timeout=SECONDS)
        accept = page.locator(".merge-editor a", has_text="Accept Amanu")
        await accept.first.wait_for(timeout=SECONDS)
        await shoot(page, "merge-2-editor")
        await accept.first.click()
        await page.locator(".merge-editor a", has_text="Remove Yours").click()
        await shoot(page, "merge-3-accepted")
        assert await chat.locator(".approval:visible").count() == 1
        await command(page, "Merge Editor: Complete Merge")
        await page.locator(".tab", has_text="Merging").wait_for(state="detached", timeout=SECONDS)
        await answered(chat, "Merged.")
        assert file.read_text() == BEFORE.replace("line 8\n", "line eight\n")
        assert "merged this change into the file by hand" in served.requests[-1].body.decode()
        await shoot(page, "merge-4-done")
        assert not served.refused
