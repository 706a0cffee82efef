"""What the user does, counted."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from bench.tasks.reader import hear
from support.vscode import SECONDS, shoot

PALETTE = ".quick-input-widget"


class Hand:
    """Pointer or keyboard of one play. The clock runs from the first action until `finish`, also while the hand waits
    for what it needs to see; it stands while pictures are taken and the tree is read."""

    def __init__(self, page: Any, name: str, *, pointer: bool) -> None:
        self._page = page
        self._name = name
        self._pointer = pointer
        self._began: float | None = None
        self._aside = 0.0
        self.clicks = 0
        self.keys = 0
        """A chord is one."""
        self.characters = 0
        """Of text that was typed."""
        self.scrolls = 0
        self.seconds = 0.0
        self.heard: list[str] = []
        """What a screen reader was told at the decisive moments."""

    async def click(self, target: Any, **options: Any) -> None:
        if not self._pointer:
            raise AssertionError("this play is by keyboard alone")
        await target.wait_for(timeout=SECONDS)
        self._act()
        self.clicks += 1
        await target.click(timeout=SECONDS, **options)

    async def scroll(self, target: Any, pixels: int) -> None:
        """One turn of the wheel over it."""
        await target.hover(timeout=SECONDS)
        self._act()
        self.scrolls += 1
        await self._page.mouse.wheel(0, pixels)

    async def press(self, chord: str, times: int = 1) -> None:
        self._act()
        for _ in range(times):
            self.keys += 1
            await self._page.keyboard.press(chord)

    async def type(self, text: str) -> None:
        self._act()
        self.characters += len(text)
        await self._page.keyboard.type(text)

    async def paste(self, text: str) -> None:
        """What the user has copied elsewhere: one chord."""
        async with self._paused():
            await self._page.context.grant_permissions(["clipboard-read", "clipboard-write"])
            await self._page.evaluate("text => navigator.clipboard.writeText(text)", text)
        await self.press("Control+v")

    async def command(self, words: str, title: str) -> None:
        """A command from the palette, found by these words."""
        await self.press("F1")
        await self._page.locator(f"{PALETTE} input.input:focus").wait_for(timeout=SECONDS)
        await self.type(words)
        await self.choose(title)

    async def choose(self, title: str) -> None:
        """Go down the open list to that row, and take it."""
        rows = self._page.locator(f"{PALETTE} .monaco-list-row")
        await rows.filter(has_text=title).first.wait_for(timeout=SECONDS)
        focused = self._page.locator(f"{PALETTE} .monaco-list-row.focused")
        await focused.first.wait_for(timeout=SECONDS)
        for _ in range(20):
            if title in await focused.first.inner_text():
                return await self.press("Enter")
            await self.press("ArrowDown")
        raise AssertionError(f"the arrows never came to {title}")

    async def tab_to(self, frame: Any, selector: str, chord: str = "Shift+Tab") -> None:
        """Move the focus until it is there."""
        for _ in range(40):
            if await frame.locator(f"{selector}:focus").count():
                return
            await self.press(chord)
        raise AssertionError(f"{chord} never came to {selector}")

    async def decisive(self, region: Any, *words: str, moment: str = "") -> None:
        """The user decides by what is in that region: a picture, and for the keyboard what a screen reader is told,
        which must have these words."""
        await region.wait_for(timeout=SECONDS)
        async with self._paused():
            await shoot(self._page, "-".join(filter(None, (self._name, moment))))
            if self._pointer:
                return
            heard = await hear(self._page, region)
            self.heard.append(heard)
            lacking = [word for word in words if word not in heard]
            if lacking:
                raise AssertionError(f"a screen reader is not told {lacking}, but only:\n{heard}")

    def finish(self) -> None:
        """The result is on the screen."""
        assert self._began is not None, "nothing was done"
        self.seconds = time.monotonic() - self._began - self._aside

    def _act(self) -> None:
        if self._began is None:
            self._began = time.monotonic()

    @asynccontextmanager
    async def _paused(self) -> AsyncGenerator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            if self._began is not None:
                self._aside += time.monotonic() - began
