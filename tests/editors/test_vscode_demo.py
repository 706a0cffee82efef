"""`make demo-vscode`: a stranger presses Enter, reviews, accepts and sees the tests pass; then nothing is left."""

import asyncio
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from amanu.cli.demo import PROMPT
from support.running_daemon import daemon_pid
from support.vscode import IN_VSCODE, SECONDS, answered, asked, failing, shoot, until
from support.vscode_server import REPOSITORY
from support.vscode_stage import Stage, chat_of

pytestmark = IN_VSCODE


@asynccontextmanager
async def demo(temporary: Path, home: Path) -> AsyncGenerator[tuple[asyncio.subprocess.Process, str]]:
    """The demo of a user with a key, who has these two folders, both empty; and its address."""
    own = {"HOME": str(home), "TMPDIR": str(temporary), "ANTHROPIC_API_KEY": "sk-ant-mine"}
    kept = {name: os.environ[name] for name in ("PATH", "AMANU_VSCODE")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.browser_demo"),
        env={**kept, **own, "PYTHONPATH": str(REPOSITORY / "tests")},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        said = (await process.stdout.readline()).decode()
        address = re.search(r"http://127\.0\.0\.1:\d+/\S+", said)
        assert address, said
        yield process, address.group()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await process.wait()


async def test_from_enter_to_green_tests_and_nothing_left(stage: Stage, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short:  # unix sockets must fit in 108 bytes
        place = Path(short)
        async with demo(place, tmp_path) as (process, address):
            with pytest.raises(OSError, match="403"):  # who does not know the token is not let in
                await asyncio.to_thread(urlopen, address.replace("tkn=", "tkn=not"))
            [folder] = place.iterdir()
            page = await (await stage.browser()).new_page()
            await page.set_viewport_size({"width": 1160, "height": 820})  # README shows what it looks like
            await page.emulate_media(color_scheme="dark")
            await page.goto(address)
            async with failing(page, stage.folder):
                chat = chat_of(page)
                await until(chat.locator("textarea").first.input_value, PROMPT)
                await page.keyboard.press("Enter")
                await asked(chat)
                await chat.locator(".approval:visible button.review").click()
                accept = page.locator(".codelens-decoration a", has_text="Accept")
                await until(accept.count, 3)  # the file's and two hunks'
                await page.keyboard.press("Control+b")
                await shoot(page, "demo-dark")
                await page.emulate_media(color_scheme="light")
                await page.locator(".monaco-workbench.vs").wait_for(timeout=SECONDS)
                await shoot(page, "demo-light")
                await accept.nth(1).click()
                await until(accept.count, 2)
                assert "item.price * item.quantity" in (folder / "shop" / "cart.py").read_text()
                await accept.last.click()
                await answered(chat, "All three tests pass")  # the script says so once it has heard the tests' OK
                pid = daemon_pid({"AMANU_HOME": str(folder / "amanu")})
                assert pid is not None
                assert b"ANTHROPIC_API_KEY" not in Path(f"/proc/{pid}/environ").read_bytes()
            await page.close()
            process.send_signal(signal.SIGINT)
            async with asyncio.timeout(SECONDS / 1000):
                assert await process.wait() == 0
        assert [*place.iterdir()] == [*tmp_path.iterdir()] == []
        assert not Path(f"/proc/{pid}/exe").exists()  # if nobody waits for it, its entry stays
        with pytest.raises(OSError):
            await asyncio.to_thread(urlopen, address)
