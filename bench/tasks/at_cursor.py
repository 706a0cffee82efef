"""At the cursor: what an editor's language server finds wrong is fixed."""

import asyncio

from bench.tasks.hand import Hand
from bench.tasks.task import Stage, Task
from support.strict_services.http import Say, ToolUse
from support.vscode import SECONDS, open_file, until

WRONG = '{\n  "one": 1,\n  "two": 2,,\n  "three": 3\n}\n'
RIGHT = WRONG.replace(",,", ",")
EDIT = ToolUse("edit_file", {"path": "prices.json", "old_text": '"two": 2,,\n', "new_text": '"two": 2,\n'})
MENU = ".action-widget .monaco-list-row"


TABS = ".part.editor .tabs-container"


class Fix(Task):
    name = "4-fix"
    title = "Fix a problem at the cursor"
    begins = "A file with a syntax error; the cursor is in the line with the squiggle."
    script = {"Fix these problems": [Say(text="One comma too many.", calls=[EDIT]), Say(text="Mended.")]}

    async def prepare(self, stage: Stage) -> None:
        page = stage.page
        (stage.folder / "prices.json").write_text(WRONG)
        await open_file(page, "prices.json")
        await page.locator(".squiggly-error").first.wait_for(timeout=2 * SECONDS)
        await page.locator(".editor-instance .view-line", has_text="two").click()
        await page.keyboard.press("End")
        await page.keyboard.press("ArrowLeft")
        await page.locator(".statusbar-item", has_text="Ln 3, Col 12").wait_for(timeout=SECONDS)

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        page = stage.page
        await hand.click(page.locator('[class*="codicon-gutter-lightbulb"], .lightBulbWidget').first)
        fix = page.locator(MENU, has_text="Fix with Amanu")
        await hand.decisive(fix, moment="menu")
        await asyncio.sleep(0.5)  # a menu takes no click while it opens
        await hand.click(fix)
        accept = stage.chat.locator(".approval:visible .allow")
        await hand.decisive(accept)
        await hand.click(accept)

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        page = stage.page
        await hand.press("Control+.")
        await page.locator(MENU, has_text="Fix with Amanu").wait_for(timeout=SECONDS)
        for _ in range(8):
            if "Fix with Amanu" in await page.locator(f"{MENU}.focused").first.inner_text():
                break
            await hand.press("ArrowDown")
        await hand.decisive(page.locator(".action-widget").first, "Fix with Amanu", moment="menu")
        await hand.press("Enter")
        await page.locator(".codelens-decoration a", has_text="Amanu proposes").wait_for(timeout=SECONDS)
        await hand.press("Control+Alt+j")
        await page.locator(".tab.active", has_text="(proposed)").wait_for(timeout=SECONDS)
        await page.locator(".codelens-decoration a", has_text="Accept").first.wait_for(timeout=SECONDS)
        await hand.decisive(page.locator(TABS), "prices.json (proposed)", "Change 1 of 1", "Removed: ", "Added: ")
        await hand.press("Control+Alt+y")

    async def result(self, stage: Stage) -> None:
        file = stage.folder / "prices.json"
        await until(lambda: asyncio.to_thread(file.read_text), RIGHT)
        await stage.result(stage.page.locator(".tab.active", has_text="prices.json"))
