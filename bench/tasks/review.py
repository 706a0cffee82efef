"""What was changed: reviewed, undone."""

import asyncio

from bench.tasks.at_cursor import TABS
from bench.tasks.hand import PALETTE, Hand
from bench.tasks.task import Stage, Task
from support.strict_services.http import Say, ToolUse
from support.vscode import SECONDS, answered, send, until

FILES = {
    "a.txt": (20, (2, 9, 16)),
    "b.txt": (20, (2, 9, 16)),
    "c.txt": (20, range(1, 18, 2)),
    "d.txt": (200, range(2, 200, 20)),
}
"""Lines of each, and those that change: 3, 3, 9 and 10."""
REFUSED = ("a.txt", 9)


def text(name: str, *, changed: bool, refused: int = 0) -> str:
    lines, marked = FILES[name]
    return "".join(f"line {n}{'!' if changed and n in marked and n != refused else ''}\n" for n in range(1, lines + 1))


class Review(Task):
    name = "2-review"
    title = "Review of 4 files and 25 changes: see each, refuse one, accept the others"
    begins = "The changes are proposed; one file is longer than the screen; the focus is in the prompt box."
    script = {
        "Mark the lines": [
            Say(
                text="Twenty-five changes.",
                calls=[ToolUse("write_file", {"path": name, "content": text(name, changed=True)}) for name in FILES],
            ),
            Say(text="All decided."),
        ]
    }

    async def prepare(self, stage: Stage) -> None:
        for name in FILES:
            (stage.folder / name).write_text(text(name, changed=False))
        await send(stage.chat, "Mark the lines")
        await until(stage.chat.locator(".approval:visible").count, len(FILES))
        await stage.chat.locator(".changes", has_text="4 files").wait_for(timeout=SECONDS)
        await asyncio.sleep(0.6)  # an answer before that is not taken

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        page, bar = stage.page, stage.chat.locator(".changes")
        await hand.click(bar.locator(".review"))
        reject = page.locator(".codelens-decoration a", has_text="Reject")
        await reject.nth(2).wait_for(timeout=SECONDS)
        await hand.decisive(bar)
        await hand.click(reject.nth(2))  # after the file's own, that of the second change
        await stage.chat.locator(".hunk.rejected").first.wait_for(timeout=SECONDS)
        for _ in range(8):
            await hand.scroll(page.locator(".part.editor"), 600)
        await hand.click(bar.get_by_role("button", name="Accept all", exact=True))

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        page = stage.page
        for name, (_, changed) in FILES.items():
            await hand.press("Control+Alt+j")
            await page.locator(".tab.active", has_text=f"{name} (proposed)").wait_for(timeout=SECONDS)
            await self._at(stage, min(changed))
            if name == REFUSED[0]:
                await hand.press("Control+Alt+j")
                await self._at(stage, REFUSED[1])
                said = "Change 2 of 25. a.txt, line 9. Removed: line 9. Added: line 9!."
                await hand.decisive(page.locator(TABS), "a.txt (proposed)", said)
                await hand.press("Control+Alt+n")
                await until(page.locator(".codelens-decoration a", has_text="Accept").count, 3)
            tab = page.locator(".tab", has_text=f"{name} (proposed)")
            while await tab.count():  # goes to what was not on screen, and accepts when all was
                await hand.press("Control+Alt+Shift+y")
                await asyncio.sleep(0.3)

    async def _at(self, stage: Stage, line: int) -> None:
        await stage.page.locator(f'.statusbar-item [aria-label="Ln {line}, Col 1"]').wait_for(timeout=SECONDS)

    async def result(self, stage: Stage) -> None:
        for name in FILES:
            refused = REFUSED[1] if name == REFUSED[0] else 0
            file = stage.folder / name
            await until(lambda file=file: asyncio.to_thread(file.read_text), text(name, changed=True, refused=refused))
        await answered(stage.chat, "All decided")


class UndoTurn(Task):
    name = "9-undo-turn"
    title = "Undo a turn"
    begins = "The last turn edited two files, and a rule let it; the focus is in the prompt box."
    script = {
        "Change both files": [
            Say(
                text="Both at once.",
                calls=[
                    ToolUse("edit_file", {"path": name, "old_text": "line 9\n", "new_text": "line nine\n"})
                    for name in ("e.txt", "f.txt")
                ],
            ),
            Say(text="Both are done."),
        ]
    }

    async def prepare(self, stage: Stage) -> None:
        for name in ("e.txt", "f.txt"):
            (stage.folder / name).write_text(text("a.txt", changed=False))
        await stage.chat.locator("select.mode").select_option("acceptEdits")
        await send(stage.chat, "Change both files")
        await answered(stage.chat, "Both are done")
        await stage.chat.locator("textarea").focus()

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        await hand.click(stage.chat.locator(".turn").get_by_role("button", name="Undo", exact=True))
        row = stage.page.locator('.quick-input-list .monaco-list-row[aria-label*="2 changes in 2 files"]')
        await hand.decisive(row)
        await hand.click(row)

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        await hand.command("undo last turn", "Amanu: Undo the Last Turn")
        await stage.page.locator('.monaco-list-row.focused[aria-label*="2 changes in 2 files"]').wait_for(
            timeout=SECONDS
        )
        await hand.decisive(stage.page.locator(PALETTE), "Changes to undo", "2 changes in 2 files", "e.txt", "f.txt")
        await hand.press("Enter")

    async def result(self, stage: Stage) -> None:
        for name in ("e.txt", "f.txt"):
            file = stage.folder / name
            await until(lambda file=file: asyncio.to_thread(file.read_text), text("a.txt", changed=False))
        await stage.result(stage.chat.locator(".turn", has_text="2 undone"))
