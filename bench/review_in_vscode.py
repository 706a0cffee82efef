"""A review of 400 changes in 40 files in a real VS Code: until it is open, and from a change to the next. Part of
`bench.faces`.

VS Code's own share of the opening is measured beside it, each in a window loaded anew: an extension that does nothing
else (`bench/bare_review/`) has texts of the same size compared, 40 of them, and one alone.
"""

import asyncio
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.reviews import FILES, HUNKS, Figure, edits, fill
from bench.tasks.stage import own_home
from support.strict_services.http import Say, ToolUse
from support.vscode import SECONDS, open_chat, send, service, workbench
from support.vscode_stage import chat_of

NEXTS = 30
REPEATS = 3
NEXT_GOAL = 50.0
OWN_GOAL = 1.25
"""Times VS Code's own share."""
BARE = Path(__file__).with_name("bare_review")
BARE_KEYS = {FILES: "Control+Alt+Shift+F7", 1: "Control+Alt+Shift+F8"}
LINE = '.statusbar-item [aria-label^="Ln "]'
SHOWN = """async ([selector, text]) => {
  const shown = () => [...document.querySelectorAll(selector)].some(each => each.textContent.includes(text));
  while (!shown()) await new Promise(requestAnimationFrame);
  return Date.now();
}"""
"""The time at which something with that text is drawn."""
MOVED = """selector => {
  const line = () => document.querySelector(selector)?.getAttribute('aria-label');
  const before = line();
  const pressed = new Promise(done => window.addEventListener('keydown', event => {
    if (event.key.toLowerCase() === 'j') done(performance.now());
  }, {capture: true}));
  const moved = async () => {
    const began = await pressed;
    while (line() === before) await new Promise(requestAnimationFrame);
    return performance.now() - began;
  };
  window.moved = moved();
}"""
"""Listen for the key: milliseconds from it until the cursor is on another line."""


@dataclass(frozen=True)
class Opening:
    """Milliseconds until the first change is drawn with its lens, and those of the processor in the window's thread."""

    waited: float
    spent: float


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
        async with service("anthropic", script) as (_, keys), workbench(folder, keys, extension=BARE) as page:
            chat = await open_chat(page)
            await send(chat, "Change it")
            await chat.locator(".changes", has_text=f"{FILES} files").wait_for(timeout=SECONDS)
            return await _measured(page)


async def _measured(page: Any) -> list[Figure]:
    bare: dict[int, list[Opening]] = {files: [] for files in BARE_KEYS}
    ours: list[Opening] = []
    for _ in range(REPEATS):  # in turn: the machine may be busier for a while
        for files, key in BARE_KEYS.items():
            await _loaded_anew(page)
            bare[files].append(await _opened(page, "bare", partial(page.keyboard.press, key)))
        review = (await _loaded_anew(page)).locator(".changes .review")
        ours.append(await _opened(page, f"1 of {FILES * HUNKS}", partial(review.evaluate, "it => it.click()")))
    await asyncio.sleep(3)
    moved = [await _moved(page) for _ in range(NEXTS)]
    return [
        *_shares("ms", lambda opening: opening.waited, ours, bare),
        *_shares("ms of processor", lambda opening: opening.spent, ours, bare),
        Figure("VS Code: the next change, ms", statistics.median(moved), NEXT_GOAL),
    ]


def _shares(
    unit: str, of: Callable[[Opening], float], ours: list[Opening], bare: Mapping[int, list[Opening]]
) -> list[Figure]:
    own, one = (statistics.median(map(of, bare[files])) for files in (FILES, 1))
    return [
        Figure(f"VS Code: the review opens, {unit}", statistics.median(map(of, ours)), OWN_GOAL * own),
        Figure(f"VS Code's own share of that, {unit}", own),
        Figure(f"VS Code's own share with one file instead of {FILES}, {unit}", one),
    ]


async def _loaded_anew(page: Any) -> Any:
    """The chat, once all waits in it: to open the editor a second time is far cheaper."""
    await page.reload()
    chat = chat_of(page)
    await chat.locator(".changes", has_text=f"{FILES} files").wait_for(timeout=SECONDS)
    await asyncio.sleep(3)
    return chat


async def _opened(page: Any, lens: str, act: Callable[[], Awaitable[Any]]) -> Opening:
    cdp = await page.context.new_cdp_session(page)
    await cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
    drawn = asyncio.ensure_future(page.evaluate(SHOWN, [".codelens-decoration", lens]))
    await asyncio.sleep(0.3)
    before = await _spent(cdp)
    acted = await page.evaluate("Date.now()")
    await act()
    waited = await drawn - acted
    return Opening(waited, await _spent(cdp) - before)


async def _spent(cdp: Any) -> float:
    found = await cdp.send("Performance.getMetrics")
    return next(1000 * each["value"] for each in found["metrics"] if each["name"] == "TaskDuration")


async def _moved(page: Any) -> float:
    await page.evaluate(MOVED, LINE)
    await asyncio.sleep(0.3)
    await page.keyboard.press("Control+Alt+j")
    return await page.evaluate("() => window.moved")
