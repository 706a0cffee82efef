"""A review of 400 changes in 40 files in a real VS Code: until it is open, and from a change to the next. Part of
`bench.faces`."""

import asyncio
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench.reviews import FILES, HUNKS, Figure, edits, fill
from bench.tasks.stage import own_home
from support.strict_services.http import Say, ToolUse
from support.vscode import SECONDS, open_chat, send, service, workbench

NEXTS = 30
OPEN_GOAL, NEXT_GOAL = 300.0, 50.0
LINE = '.statusbar-item [aria-label^="Ln "]'
SHOWN = """async ([selector, text]) => {
  const shown = () => [...document.querySelectorAll(selector)].some(each => each.textContent.includes(text));
  while (!shown()) await new Promise(requestAnimationFrame);
  return Date.now();
}"""
"""The time at which something with that text is drawn."""
MOVED = """async selector => {
  const line = () => document.querySelector(selector)?.getAttribute('aria-label');
  const before = line();
  const pressed = new Promise(done => window.addEventListener('keydown', event => {
    if (event.key.toLowerCase() === 'j') done(performance.now());
  }, {capture: true}));
  const began = await pressed;
  while (line() === before) await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""
"""Milliseconds from the key until the cursor is on another line."""


def vscode() -> list[Figure]:
    return asyncio.run(_vscode())


async def _vscode() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="amanu-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        own_home(folder)
        (folder / "work").mkdir(parents=True)
        fill(folder / "work")
        calls = [ToolUse("write_file", {"path": path, "content": new}) for path, new in edits()]
        script = [Say(text="I change it.", calls=calls), Say(text="Done.")]
        async with service("anthropic", script) as (_, keys), workbench(folder, keys) as page:
            chat = await open_chat(page)
            await send(chat, "Change it")
            await chat.locator(".changes", has_text=f"{FILES} files").wait_for(timeout=SECONDS)
            await asyncio.sleep(3)
            opened = await _opened(page, chat)
            await asyncio.sleep(3)
            moved = [await _moved(page) for _ in range(NEXTS)]
    return [
        Figure("VS Code: the review opens, ms", opened, OPEN_GOAL),
        Figure("VS Code: the next change, ms", statistics.median(moved), NEXT_GOAL),
    ]


async def _opened(page: Any, chat: Any) -> float:
    """Milliseconds from the click until the first change is drawn, with its number."""
    drawn = asyncio.ensure_future(page.evaluate(SHOWN, [".codelens-decoration", f"1 of {FILES * HUNKS}"]))
    clicked = await chat.locator(".changes .review").evaluate("button => { button.click(); return Date.now(); }")
    return await drawn - clicked


async def _moved(page: Any) -> float:
    moved = asyncio.ensure_future(page.evaluate(MOVED, LINE))
    await asyncio.sleep(0.3)
    await page.keyboard.press("Control+Alt+j")
    return await moved
