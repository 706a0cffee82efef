"""A real VS Code in Chromium with the packaged extension, and what several tests do in it."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Script, Service
from support.vscode_server import VSCODE, serving
from support.vscode_stage import SECONDS, Stage, browsing, chat_of, opened, signal_daemon_of

__all__ = ["SECONDS", "VSCODE"]
LIMIT = 270
"""Seconds of a test at most."""
IN_VSCODE = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("stage"),
    pytest.mark.timeout(LIMIT + 30),
]
"""The marks of a test in a real VS Code."""
AMANU = str(Path(sys.executable).parent / "amanu")
PLACED = ("HOME", "AMANU_HOME", "AMANU_SANDBOX_LAYERS", "AMANU_CATALOGUE_REFRESH")
"""Variables of a test that its daemon must have: the VS Code server has those of the test that started it."""
SHARED: list[Stage] = []
"""The stage of this process, in tests."""
_ports: dict[str, int] = {}


@asynccontextmanager
async def workbench(
    folder: Path,
    environment: Mapping[str, str],
    *,
    settings: Mapping[str, Any] | None = None,
    variables: Mapping[str, str] | None = None,
    amanu: str = AMANU,
    extension: Path | None = None,
    stock: bool = False,
) -> AsyncGenerator[Any]:
    """A page on VS Code, opened on `folder/work`. The daemon has `environment`, VS Code itself `variables` in addition
    to ours; `amanu`: the setting `amanu.server.path`. `extension`: the folder of one that is installed beside ours.
    `stock`: the window is as VS Code is delivered. A screenshot is left on failure. In the folder of the window that
    tests share it is that window, emptied afterwards; else there is a server for this one alone."""
    given: dict[str, Any] = {
        "amanu.server.path": amanu,
        "amanu.server.environment": dict(environment),
        **(settings or {}),
    }
    stage = next(iter(SHARED), None)
    if stage is not None and folder == stage.place:
        async with shared(stage, given) as page:
            yield page
        return
    given["amanu.server.environment"] = {"AMANU_IDLE_SECONDS": "2", **given["amanu.server.environment"]}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(folder, variables=variables, extension=extension, stock=stock))
        stack.callback(signal_daemon_of, {**os.environ})  # it stays for a question that nobody answered
        server.configure(given)
        context = await stage.browser() if stage else await stack.enter_async_context(browsing(folder / "browser"))
        others = [*context.pages]
        page = await opened(context, server, folder)
        try:
            async with failing(page, folder):
                yield page
        finally:
            for each in context.pages:
                if each not in others:
                    await each.close()


@asynccontextmanager
async def shared(stage: Stage, given: dict[str, Any]) -> AsyncGenerator[Any]:
    """The window that tests share, with these settings."""
    assert stage.place is not None
    place = {name: os.environ[name] for name in PLACED if name in os.environ}
    given["amanu.server.environment"] = {**place, "AMANU_IDLE_SECONDS": "60", **given["amanu.server.environment"]}
    try:
        page = await stage.show(given)
        async with failing(page, stage.place):
            yield page
    except BaseException:
        await stage.leave()
        raise
    try:
        await stage.clear()
    except Exception:  # the test is over and well; the next one gets a new window
        await stage.leave()


@asynccontextmanager
async def failing(page: Any, folder: Path) -> AsyncGenerator[None]:
    """A test on that page; when it fails, the folder gets a screenshot. It does not run into pytest's own limit, after
    which what it left would go on in the loop that tests share."""
    try:
        async with asyncio.timeout(LIMIT):
            yield
    except BaseException:
        with contextlib.suppress(Exception):
            await page.screenshot(path=str(folder / "failed.png"))
        await tell(page)
        raise


async def tell(page: Any) -> None:
    """Print what stands on the screen and what the daemon logged: of a failure elsewhere that is all there is."""
    for frame in page.frames:
        with contextlib.suppress(Exception):  # it may be gone by now
            text = await frame.evaluate("document.body?.innerText ?? ''")
            print(f"--- {frame.url[:80]}\n{text[-3000:]}")
    log = find_home(os.environ).logs / "daemon.log"
    print(f"--- {log.name}\n{log.read_text()[-3000:] if log.exists() else 'none'}")


async def open_view(page: Any) -> Any:
    """The chat of the side bar, whether or not there is a daemon. Editors have the room of the other side bar."""
    view = page.locator('iframe.webview[src*="webviewView"]:visible')
    if not await view.count():  # a click on its icon would close it
        await page.locator('.part.auxiliarybar [aria-label="Amanu"]').first.click(timeout=SECONDS)
    chat = chat_of(page)
    await chat.locator("textarea").wait_for(timeout=SECONDS)
    if await page.locator(".part.sidebar:visible").count():
        await page.keyboard.press("Control+b")
        await page.locator(".part.sidebar").wait_for(state="hidden", timeout=SECONDS)
    return chat


async def open_chat(page: Any) -> Any:
    """The chat, connected."""
    chat = await open_view(page)
    await ready(page)
    return chat


async def ready(page: Any, within: float = SECONDS) -> None:
    await page.locator('.statusbar-item [aria-label*="Amanu is ready"]').wait_for(timeout=within)


async def trusted(page: Any) -> Any:
    """The chat in a window as delivered, whose folder is trusted now; VS Code's own page of that is closed."""
    restricted = page.locator(".statusbar-item", has_text="Restricted Mode")
    await restricted.click(timeout=SECONDS)
    await page.locator(".workspace-trust-editor .monaco-button", has_text="Trust").first.click(timeout=SECONDS)
    await restricted.wait_for(state="detached", timeout=SECONDS)
    await page.locator(".modal-editor-part .codicon-close").last.click(timeout=SECONDS)
    await page.locator(".modal-editor-part").wait_for(state="detached", timeout=SECONDS)
    await command(page, "Amanu: Open Chat")
    chat = chat_of(page)
    await chat.locator("textarea").first.wait_for(timeout=SECONDS)
    await ready(page)
    await offered_keys(page, "Not Now")
    return chat


async def offered_keys(page: Any, answer: str) -> None:
    """Answer the question whether the keys of VS Code's own chat are to be Amanu's. It is asked once a profile."""
    button = page.locator(".notification-toast .monaco-button", has_text=answer)
    await button.click(timeout=SECONDS)
    await button.wait_for(state="detached", timeout=SECONDS)


async def command(page: Any, title: str) -> None:
    """Run a command by its title in the Command Palette, with the keyboard."""
    playwright: Any = pytest.importorskip("playwright.async_api")
    row = page.locator(f'.quick-input-list .monaco-list-row[aria-label^="{title}"]').first
    for _ in range(SECONDS // 3000):
        await page.keyboard.press("F1")
        try:
            await page.locator(".quick-input-widget input.input").fill(f">{title}", timeout=3000)
            await row.wait_for(timeout=3000)
            break
        except playwright.TimeoutError:  # something else took the focus, or it was opened before that was offered
            if await page.locator(".quick-input-widget:visible").count():
                await page.keyboard.press("Escape")
    await row.wait_for(timeout=3000)
    while await page.locator(f'.monaco-list-row.focused[aria-label^="{title}"]').count() == 0:
        await page.keyboard.press("ArrowDown")  # a longer title may stand before it
    await page.keyboard.press("Enter")


async def pick_model(page: Any, chat: Any, words: str) -> None:
    """Choose the session's model from VS Code's list, by what one types to find it."""
    await chat.locator("button.model").click()
    await page.locator(".quick-input-widget input.input").fill(words, timeout=SECONDS)
    await page.locator(".quick-input-list .monaco-list-row", has_text=words).first.click(timeout=SECONDS)
    await page.locator(".quick-input-widget").wait_for(state="hidden", timeout=SECONDS)


async def open_file(page: Any, name: str) -> None:
    """Show a file of the workspace in the editor."""
    playwright: Any = pytest.importorskip("playwright.async_api")
    row = page.locator(".quick-input-list .monaco-list-row", has_text=name).first
    for _ in range(SECONDS // 5000):
        await page.keyboard.press("Control+p")
        try:
            await page.locator(".quick-input-widget input").fill(name, timeout=5000)
            await row.wait_for(timeout=5000)
            break
        except playwright.TimeoutError:
            await page.keyboard.press("Escape")  # what it found of a file that had just come is not looked for again
    await page.keyboard.press("Enter")
    await page.locator(".tab.active", has_text=name).wait_for(timeout=SECONDS)
    await page.locator(".editor-instance .view-line").first.wait_for(timeout=SECONDS)


async def shows(page: Any, text: str) -> None:
    """The editor in front shows that text. Monaco draws blanks as no-break spaces."""
    pattern = text.replace(" ", "\xa0")
    await page.locator(".editor-instance .view-line", has_text=pattern).first.wait_for(timeout=SECONDS)


async def asked(chat: Any) -> Any:
    """The button that allows what is asked about, once an answer is taken: not within half a second."""
    allow = chat.locator(".approval:visible .allow")
    await allow.wait_for(timeout=SECONDS)
    await asyncio.sleep(0.6)
    return allow


async def send(chat: Any, text: str) -> None:
    """Say something in the chat."""
    await chat.locator("textarea").fill(text)
    await chat.locator("textarea").press("Enter")


async def answered(chat: Any, text: str) -> None:
    """An answer with that text is there."""
    await chat.locator(".answer", has_text=text).last.wait_for(timeout=SECONDS)


async def shoot(page: Any, name: str) -> None:
    """Leave a picture of the stage for whoever wants to look at it."""
    folder = os.environ.get("AMANU_SCREENSHOTS")
    if folder:
        await asyncio.sleep(0.5)
        await page.screenshot(path=str(Path(folder) / f"{name}.png"))


@asynccontextmanager
async def service(vendor: str, script: Script) -> AsyncGenerator[tuple[Service, dict[str, str]]]:
    """A strict service with that script, and the environment that leads to it."""
    running: Service = Anthropic(script) if vendor == "anthropic" else Gemini(script)
    try:
        url = await running.start(_ports.get(vendor, 0))  # always the same: a window goes on with its environment
    except OSError:
        url = await running.start()
    _ports[vendor] = running.port
    keys = {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": url}
    try:
        yield running, keys if vendor == "anthropic" else {"GEMINI_API_KEY": "AIza-t", "GOOGLE_GEMINI_BASE_URL": url}
    finally:
        await running.stop()


async def until(count: Any, wanted: Any) -> None:
    """Until asking `count` gives what is wanted."""
    async with asyncio.timeout(SECONDS / 1000):
        while await count() != wanted:
            await asyncio.sleep(0.05)
