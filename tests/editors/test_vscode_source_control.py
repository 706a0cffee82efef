"""Changes to review beside git, in VS Code as it is delivered: the branch and the graph stay git's."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

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
BEFORE = "".join(f"line {n}\n" for n in range(1, 31))
BRANCH = '.statusbar-item:visible a[aria-label*="trunk"]'
GRAPH = ".scm-history-view .monaco-list-row"
LIST = '.part.sidebar .pane:has(> .pane-header:has-text("Amanu"))'


def repository(folder: Path, *names: str) -> None:
    """A repository with these files, and one commit."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(BEFORE)
    for line in ("init -q -b trunk", "add -A", "-c user.name=n -c user.email=e@x commit -q -m first"):
        subprocess.run(["git", "-C", str(folder), *line.split()], check=True)


def write(name: str, *lines: int) -> ToolUse:
    content = "".join(f"line {n}{'!' if n in lines else ''}\n" for n in range(1, 31))
    return ToolUse("write_file", {"path": name, "content": content})


async def test_the_branch_and_the_graph_stay_gits(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    repository(folder, "a.txt", "b.txt", "c.txt")
    says = [
        Say(text="One is applied.", calls=[write("c.txt", 7)]),
        Say(text="Applied."),
        Say(text="Two files.", calls=[write("a.txt", 3, 20), write("b.txt", 7)]),
        Say(text="Decided."),
    ]
    async with (
        service("anthropic", says) as (served, environment),
        workbench(tmp_path, environment, stock=True) as page,
    ):
        chat = await trusted(page)
        await page.locator(BRANCH).wait_for(timeout=SECONDS)
        await chat.locator("select.mode").select_option("acceptEdits")
        await send(chat, "Change one")
        await answered(chat, "Applied.")
        await chat.locator("select.mode").select_option("ask")
        await send(chat, "Change two files")
        await until(chat.locator(".approval:visible").count, 2)
        await page.locator('.activitybar [aria-label*="Source Control"] .badge-content', has_text="4").wait_for(
            timeout=SECONDS  # git's one, and three of ours
        )
        await page.locator('.activitybar [aria-label*="Source Control"]').first.click()
        await page.locator(f"{LIST} .pane-header", has_text="3 files to review").click()
        await until(page.locator(f"{LIST} .monaco-list-row").count, 4)
        await shoot(page, "scm-1-list")

        # an entry is chosen, a file with marks, one of no repository, and one after the window was loaded anew
        await page.locator(f'{LIST} .monaco-list-row[aria-label^="a.txt, "]').click()
        await page.locator(".tab.active", has_text="a.txt").wait_for(timeout=SECONDS)
        await unmoved(page)
        await shoot(page, "scm-2-diff")
        await open_file(page, "c.txt")
        await page.locator(".dirty-diff-glyph, .dirty-diff-modified").first.wait_for(timeout=SECONDS)
        await unmoved(page)
        await shoot(page, "scm-3-applied")
        await page.reload()
        await until(page.locator(f"{LIST} .monaco-list-row").count, 4)
        await unmoved(page)
        await open_file(page, "c.txt")
        await page.locator(".dirty-diff-glyph, .dirty-diff-modified").first.wait_for(timeout=SECONDS)
        await command(page, "File: New Untitled Text File")
        await page.locator(".tab.active", has_text="Untitled").wait_for(timeout=SECONDS)
        await unmoved(page)
        await shoot(page, "scm-4-loaded-anew")

        # decided in the list
        row = page.locator(f'{LIST} .monaco-list-row[aria-label^="b.txt, "]')
        await press(row, "Accept All Changes in File")
        await until(page.locator(f"{LIST} .monaco-list-row").count, 3)
        await row.wait_for(state="detached")
        await written(folder / "b.txt", "line 7!")
        row = page.locator(f'{LIST} .monaco-list-row[aria-label^="c.txt, "]')
        await press(row, "Keep All Changes in File")
        await until(page.locator(f"{LIST} .monaco-list-row").count, 2)
        row = page.locator(f"{LIST} .monaco-list-row").first
        await press(row, "Accept and Keep All")
        await page.locator(LIST).wait_for(state="detached", timeout=SECONDS)
        await written(folder / "a.txt", "line 20!")
        assert not served.refused


async def press(row: Any, label: str) -> None:
    """The very button: rows are drawn anew after a decision, and a click at a place could hit what is there now."""
    await row.hover()
    await row.locator(f'[aria-label^="{label}"]').dispatch_event("click")


async def written(path: Path, text: str) -> None:
    """A row leaves the list when it is accepted, which is before its file is written."""
    await until(lambda: asyncio.to_thread(lambda: text in path.read_text()), True)


async def unmoved(page: Any) -> None:
    """The branch is in the status bar, the commit is in the graph, and nothing else is offered beside them."""
    await asyncio.sleep(0.5)  # what would come, comes by now
    await page.locator(BRANCH).first.wait_for(timeout=SECONDS)
    await page.locator(GRAPH, has_text="first").first.wait_for(timeout=SECONDS)
    items = await page.locator(".statusbar-item:visible a").evaluate_all("all => all.map(each => each.ariaLabel)")
    assert not [each for each in items if each == "Amanu"], items
