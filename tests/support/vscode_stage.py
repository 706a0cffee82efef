"""The stage that the tests of one process share: a VS Code server, a browser, and one window that most of them use.

To open a window costs ten seconds of the processor; to empty one, a fifth of a second."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from support.raw_client import RawClient
from support.required_programs import needs
from support.running_daemon import daemon_pid
from support.vscode_server import CLEAR, TOUR, Server, serving

SECONDS = 60_000
"""For playwright's waits: a minute, because two browsers and their servers share the cores."""
HELPER = Path(__file__).with_name("vscode_helper")
"""An extension for the tests themselves."""
THEME = "Default Dark Modern"
"""The theme of the shared window. Tests of colours name it, too, and need not wait until all is drawn anew."""
SIZE = {"width": 1300, "height": 850}


@asynccontextmanager
async def browsing(folder: Path) -> AsyncGenerator[Any]:
    """A browser's context. It keeps what it compiled of VS Code in that folder: the third window is a third cheaper."""
    playwright: Any = pytest.importorskip("playwright.async_api")
    async with playwright.async_playwright() as driver:
        context = await driver.chromium.launch_persistent_context(
            str(folder),
            executable_path=needs("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--disable-software-rasterizer"],
            viewport=SIZE,
            reduced_motion="reduce",
        )
        context.set_default_timeout(SECONDS)
        try:
            yield context
        finally:
            await context.close()


async def opened(context: Any, server: Server, folder: Path) -> Any:
    """A new window on `folder/work`."""
    page = await context.new_page()
    await page.goto(f"{server.url}/?folder={folder / 'work'}")
    return page


@dataclass
class Window:
    """The one that stays open from test to test."""

    page: Any
    settings: Mapping[str, Any]

    @property
    def environment(self) -> Mapping[str, str]:
        """The daemon's."""
        return self.settings["amanu.server.environment"]


@dataclass
class Stage:
    """Each part of it is started when a test first needs it."""

    folder: Path
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    context: Any = None
    server: Server | None = None
    place: Path | None = None
    window: Window | None = None
    title: str = "stage"
    """The title of the window: it changes when settings hold."""
    count: int = 0

    async def browser(self) -> Any:
        if self.context is None:
            self.context = await self.stack.enter_async_context(browsing(self.folder / "browser"))
        return self.context

    def settle(self) -> Path:
        """The folder of the window that tests share, with an empty workspace: a new one after a test failed in it."""
        if self.place is None:
            self.count += 1
            self.place = self.folder / f"w{self.count}"
            (self.place / "work").mkdir(parents=True)
        empty(self.place / "work")
        return self.place

    async def show(self, settings: Mapping[str, Any]) -> Any:
        """The shared window, once these settings hold in it."""
        assert self.place is not None
        settings = {"workbench.colorTheme": THEME, **settings}
        context = await self.browser()
        if self.server is None:
            self.server = await self.stack.enter_async_context(serving(self.folder, extension=HELPER))
        window, self.window = self.window, None
        if window is not None and window.settings["workbench.colorTheme"] != settings["workbench.colorTheme"]:
            await window.page.close()  # in that one, code would be drawn in two themes
            window = None
        if window is not None and not await self.changed(window, settings):
            await window.page.close()
            window = None
        if window is None:
            self.server.configure({**settings, "window.title": self.title})
            self.window = Window(await opened(context, self.server, self.place), settings)
            return self.window.page
        await self.seen()
        return window.page

    async def changed(self, window: Window, settings: Mapping[str, Any]) -> bool:
        """Have the settings hold in that window. False where it does not come to that: then a new one has them."""
        self.window = Window(window.page, settings)
        try:
            if window.settings != settings:
                await self.change(window.settings)
        except Exception:  # of the browser's driver, or a wait that ended
            signal_daemon_of(window.environment)
            return False
        return True

    async def change(self, before: Mapping[str, Any]) -> None:
        """Wait until the new settings hold in the window."""
        assert self.window is not None and self.server is not None
        settings, old, new = self.window.settings, before["amanu.server.environment"], self.window.environment
        self.count += 1
        self.title = f"stage {self.count}"
        self.server.configure({**settings, "window.title": self.title})
        await self.window.page.wait_for_function("title => document.title.includes(title)", arg=self.title)
        if old != new:
            await led_to(new, not_to=old)
            await self.forget()
            if old["AMANU_HOME"] != new["AMANU_HOME"]:
                signal_daemon_of(old)  # nobody needs it any more

    async def seen(self) -> None:
        """Wait until VS Code has seen the files that the test laid into the workspace."""
        assert self.place is not None
        sign = self.place / "work" / ".seen"
        sign.touch()
        async with asyncio.timeout(SECONDS / 1000):
            while sign.exists():
                await asyncio.sleep(0.02)

    async def forget(self) -> None:
        """Let new sessions forget the model of the sessions before: another environment has other models."""
        assert self.window is not None
        await self.window.page.keyboard.press(TOUR)
        await chat_of(self.window.page).locator(".user", has_text="Show me how you work").wait_for()
        await self.clear()

    async def clear(self) -> None:
        """Leave nothing of a test to the next one, but for its files."""
        assert self.window is not None and self.server is not None
        page = self.window.page
        self.server.configure({**self.window.settings, "window.title": self.title})  # commands change it, too
        for each in page.context.pages[1:]:  # the first is the browser's own; without any the browser would end
            if each is not page:
                await each.close()
        await page.context.unroute_all()
        await page.context.clear_permissions()
        await page.set_viewport_size(SIZE)
        await delete_sessions(self.window.environment)
        await page.keyboard.press("Escape")
        await page.keyboard.press(CLEAR)
        unsaved = page.locator(".monaco-dialog-box .monaco-button", has_text="Don't Save")
        await page.locator(".editor-group-container.empty").or_(unsaved).first.wait_for()
        if await unsaved.count():
            await unsaved.click()
            await page.locator(".editor-group-container.empty").wait_for()
        chat = chat_of(page)
        await chat.locator("h2.title", has_text="New session").wait_for()
        await chat.locator("select.mode").select_option("ask")
        await page.locator(".notification-toast").first.wait_for(state="detached")

    async def leave(self) -> None:
        """Close that window and leave its folder as it is: the next one is another."""
        window, self.window, self.place = self.window, None, None
        if window is not None:
            await window.page.close()
            signal_daemon_of(window.environment)

    async def close(self) -> None:
        await self.leave()
        await self.stack.aclose()


def chat_of(page: Any) -> Any:
    """The chat of the side bar."""
    return page.frame_locator('iframe.webview[src*="webviewView"]').frame_locator("#active-frame")


def empty(folder: Path) -> None:
    for each in folder.iterdir() if folder.exists() else ():
        shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()


async def led_to(environment: Mapping[str, str], not_to: Mapping[str, str]) -> None:
    """Wait until a window's line to its daemon has the one environment, and nothing that the other adds."""
    wanted, unwanted = ({f"{name}={value}".encode() for name, value in each.items()} for each in (environment, not_to))
    async with asyncio.timeout(SECONDS / 1000):
        while not any(wanted <= has and not (unwanted - wanted) & has for has in lines()):
            await asyncio.sleep(0.05)


def lines() -> Iterator[set[bytes]]:
    """The environments of all lines from windows to daemons."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if b"serve" in (process / "cmdline").read_bytes().split(b"\0"):
                yield {*(process / "environ").read_bytes().split(b"\0")}


async def delete_sessions(environment: Mapping[str, str]) -> None:
    """Delete them with all that runs or waits in them."""
    if daemon_pid(environment) is None:
        return
    client = await RawClient.greet(find_home(environment))
    try:
        await client.initialize()
        listed = await client.request("amanu/session/list", {"limit": 500, "agents": True})
        for each in listed["result"]["sessions"]:
            await client.request("amanu/session/delete", {"sessionId": each["sessionId"]})
    finally:
        await client.stop()


def signal_daemon_of(environment: Mapping[str, str]) -> None:
    if (pid := daemon_pid(environment)) is not None:
        with contextlib.suppress(OSError):
            os.kill(pid, 15)
