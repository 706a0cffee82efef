"""What a screen reader would be told: of the focus, of a region of the accessibility tree, by live regions."""

import re
from typing import Any

LIVE = """() => [...document.querySelectorAll('[aria-live]:not([aria-live=off]), [role=alert], [role=status]')]
    .map(each => each.textContent.trim()).filter(text => text !== '' && text.length < 400)"""


COUNTED = re.compile(r"\d+ (Results|Selected)$")
"""What VS Code's own lists say of themselves, and leave standing."""


async def hear(page: Any, region: Any) -> str:
    """Role, name and state of what has the focus, the region's tree, and what live regions say, as lines."""
    parts = [f"focus: {await _focus(page)}"]
    for frame in page.frames:
        parts += [f"said: {_line(text)}" for text in await frame.evaluate(LIVE) if not COUNTED.match(text)]
    return "\n".join([*parts, *(await region.aria_snapshot()).splitlines()])


async def _focus(page: Any) -> str:
    """The element with the focus; of a list or a menu the row that is told as active."""
    frame = page.main_frame
    while True:
        handle = (await frame.evaluate_handle("document.activeElement")).as_element()
        inner = handle and await handle.content_frame()
        if inner is None:
            break
        frame = inner
    active = frame.locator(":focus")
    if await active.count() == 0:
        return "nothing"
    own = _line(await active.first.aria_snapshot())
    row = await active.first.get_attribute("aria-activedescendant")
    if not row:
        return own
    told = await frame.locator(f'[id="{row}"]').aria_snapshot()
    return f"{own} → {_line(told)}"


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text.removeprefix("- "))[:300]
