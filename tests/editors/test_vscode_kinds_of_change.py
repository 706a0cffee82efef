"""VS Code as it is delivered shows changes that are more than lines of a file: a new file, one with a new name, one
that goes, a notebook."""

import asyncio
import json
from pathlib import Path

from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, command, send, service, shoot, trusted, until, workbench

pytestmark = IN_VSCODE
OLD = "def old():\n    return 1\n\n\ndef kept():\n    return 2\n"
NEW = "def fresh():\n    return 3\n"
REMOVED = ".inline-deleted-margin-view-zone:visible"


def notebook(*sources: str) -> str:
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "execution_count": None, "id": f"c{n}", "metadata": {}, "outputs": [], "source": [source]}
        for n, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


async def test_new_moved_and_deleted_files_and_notebooks(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "old.py").write_text(OLD)
    (folder / "src" / "gone.py").write_text(OLD)
    (folder / "note.ipynb").write_text(notebook("print(1)", "x = 1", "print(3)"))
    calls = [
        ToolUse("write_file", {"path": "src/new.py", "content": NEW}),
        ToolUse("move_file", {"path": "src/old.py", "new_path": "src/renamed.py"}),
        ToolUse("delete_file", {"path": "src/gone.py"}),
        ToolUse("write_file", {"path": "note.ipynb", "content": notebook("print(1)", "x = 2", "print(3)")}),
    ]
    says = [Say(text="Four kinds.", calls=calls), Say(text="All decided.")]
    async with (
        service("anthropic", says) as (served, environment),
        workbench(tmp_path, environment, stock=True) as page,
    ):
        chat = await trusted(page)
        key = page.keyboard
        await send(chat, "Change four files")
        await until(chat.locator(".approval:visible").count, 4)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await chat.locator(".changes button", has_text="Review").click()
        await page.locator(".tab.active", has_text="Changes to review (4 files)").wait_for(timeout=SECONDS)
        await page.locator(".multiDiffEntry .view-line", has_text="fresh").wait_for(timeout=SECONDS)
        await shoot(page, "kinds-1-together")
        await page.locator(".multiDiffEntry .status.renamed", has_text="R").wait_for(timeout=SECONDS)
        await page.locator(".multiDiffEntry .status.added", has_text="A").wait_for(timeout=SECONDS)
        for _ in range(3):
            await key.press("Control+Alt+j")
        cells = page.locator(".codelens-decoration a", has_text="Compare cells")  # there it is the text it is made of
        await cells.click(timeout=SECONDS)
        await page.locator(".tab.active", has_text="note.ipynb (proposed)").wait_for(timeout=SECONDS)
        await command(page, "View: Close All Editors")

        cards = chat.locator(".approval:visible")
        for n, tab in enumerate(
            (
                "new.py (new file) (proposed)",
                "old.py → renamed.py (proposed)",
                "gone.py (deleted) (proposed)",
                "note.ipynb (proposed)",
            )
        ):
            await cards.nth(n).get_by_role("button", name="Review").first.click()
            await page.locator(".tab.active", has_text=tab).wait_for(timeout=SECONDS)
            await asyncio.sleep(1)
            await shoot(page, f"kinds-2-{n}")
            if n == 0:
                await page.locator(".view-line", has_text="fresh").wait_for(timeout=SECONDS)
                assert await page.locator(REMOVED).count() == 0
        await page.locator(".view-line", has_text="x = 2".replace(" ", "\xa0")).click()
        await key.press("Control+Alt+y")
        await page.locator(".tab", has_text="note.ipynb (proposed)").wait_for(state="detached", timeout=SECONDS)
        await until(cards.count, 3)
        accepted = notebook("print(1)", "x = 2", "print(3)")  # the tab closes before it is written
        await until(lambda: asyncio.to_thread((folder / "note.ipynb").read_text), accepted)
        await chat.locator(".changes button", has_text="Accept all").click()
        await answered(chat, "All decided.")
        assert (folder / "src" / "renamed.py").read_text() == OLD and not (folder / "src" / "old.py").exists()
        assert (folder / "src" / "new.py").read_text() == NEW and not (folder / "src" / "gone.py").exists()

        await command(page, "View: Close All Editors")
        await key.press("Control+p")
        await page.locator(".quick-input-widget input").fill("note.ipynb")
        await page.locator(".quick-input-list .monaco-list-row", has_text="note.ipynb").first.wait_for(timeout=SECONDS)
        await key.press("Enter")
        await page.locator(".notebook-editor .cell").first.wait_for(timeout=SECONDS)
        await chat.locator(".chip", has_text="note.ipynb").wait_for(timeout=SECONDS)
        await shoot(page, "kinds-3-notebook")
        assert not served.refused
