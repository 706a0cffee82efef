"""The user's own hand beside open changes, in VS Code as it is delivered: a formatter when a file is saved, saving by
itself, one file in two editors, and git's commands in a terminal."""

import asyncio
import subprocess
from pathlib import Path

import pytest

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
UGLY = '{\n"first":1,\n' + "".join(f'  "n{n}": {n},\n' for n in range(20)) + '  "last": 2\n}\n'
"""A text whose first member VS Code's formatter changes."""
PRETTY = '  "first": 1,\n'
LENS = ".codelens-decoration"


def changed(name: str, old: str, new: str) -> ToolUse:
    return ToolUse("edit_file", {"path": name, "old_text": old, "new_text": new})


async def becomes(file: Path, *parts: str) -> None:
    async with asyncio.timeout(SECONDS / 1000):
        while not all(part in file.read_text() for part in parts):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("saving", ["off", "afterDelay"])
async def test_a_formatter_when_saving_leaves_the_review_as_it_is(tmp_path: Path, saving: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    file = folder / "data.json"
    file.write_text(UGLY)
    says = [
        Say(text="Proposed.", calls=[changed("data.json", '"n15": 15', '"n15": 150')]),
        Say(text="Accepted."),
        Say(text="Applied now.", calls=[changed("data.json", '"n9": 9', '"n9": 10')]),
        Say(text="Both done."),
    ]
    settings = {"editor.formatOnSave": True, "files.autoSave": saving, "files.autoSaveDelay": 100}
    async with (
        service("anthropic", says) as (served, environment),
        workbench(tmp_path, environment, stock=True, settings=settings) as page,
    ):
        chat = await trusted(page)
        key = page.keyboard
        await open_file(page, "data.json")
        await send(chat, "Change the fifteenth")
        await until(chat.locator(".approval:visible").count, 1)
        await page.locator(f"{LENS} a", has_text="Amanu proposes").wait_for(timeout=SECONDS)

        # saved with what is proposed: the formatter changes other lines, and what waits still fits
        await page.locator(".editor-instance .view-line").first.click()
        await key.press("Control+Home")
        async with asyncio.timeout(SECONDS / 1000):
            while PRETTY not in file.read_text():  # what was saved by itself just before is not formatted at a key
                await key.press("End")
                await key.type(" ")
                await key.press("Control+s")
                await asyncio.sleep(0.5)
        assert '"n15": 15,' in file.read_text()
        await page.locator(f"{LENS} a", has_text="Amanu proposes").wait_for(timeout=SECONDS)
        await shoot(page, f"hand-1-{saving}")
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await chat.locator(".approval:visible .allow, .approval:visible button", has_text="Accept").first.click()
        await answered(chat, "Accepted.")
        await becomes(file, PRETTY, '"n15": 150')
        assert await chat.locator(".hunk.conflicted").count() == 0

        # saved with what is applied and not looked at: it can be kept, and undone
        await chat.locator("select.mode").select_option("acceptEdits")
        await send(chat, "Change the ninth")
        await answered(chat, "Both done.")
        undo = page.locator(f"{LENS} a", has_text="Undo")
        await undo.wait_for(timeout=SECONDS)
        await page.locator(".editor-instance .view-line").first.click()
        await key.press("Control+Home")
        await key.press("End")
        await key.press("Enter")
        await key.press("Control+s")
        await becomes(file, '"n9": 10')
        await asyncio.sleep(0.5)
        await shoot(page, f"hand-2-{saving}")
        await undo.click()
        await becomes(file, '"n9": 9', '"n15": 150')
        await until(page.locator(".tab.dirty").count, 0)
        assert not served.refused


async def test_a_file_in_two_editors(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    lines = "".join(f"line {n}\n" for n in range(1, 21))
    (folder / "a.txt").write_text(lines)
    after = lines.replace("line 3\n", "line 3!\n").replace("line 15\n", "line 15!\n")
    says = [
        Say(text="Proposed.", calls=[ToolUse("write_file", {"path": "a.txt", "content": after})]),
        Say(text="Decided."),
    ]
    async with (
        service("anthropic", says) as (served, environment),
        workbench(tmp_path, environment, stock=True) as page,
    ):
        chat = await trusted(page)
        await send(chat, "Change two lines")
        await until(chat.locator(".approval:visible").count, 1)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await command(page, "Amanu: Show Proposed Changes")
        await page.locator(".tab.active", has_text="a.txt (proposed)").wait_for(timeout=SECONDS)
        await command(page, "View: Split Editor Right")
        await until(page.locator(".tab", has_text="a.txt (proposed)").count, 2)
        await page.locator(f"{LENS} a", has_text="Accept").nth(2).wait_for(timeout=SECONDS)
        await shoot(page, "hand-3-split")
        await page.keyboard.press("Control+Alt+y")
        await until(page.locator(LENS, has_text="applied").count, 2)  # in each
        await shoot(page, "hand-4-split-one")
        await page.keyboard.press("Control+Alt+j")
        await page.locator('.statusbar-item [aria-label^="Ln 15, "]').wait_for(timeout=SECONDS)
        await page.keyboard.press("Control+Alt+n")
        await page.locator(".tab", has_text="a.txt (proposed)").first.wait_for(state="detached", timeout=SECONDS)
        await answered(chat, "Decided.")
        await becomes(folder / "a.txt", "line 3!\n", "line 15\n")
        assert not served.refused


async def test_what_git_does_to_files_with_open_changes(tmp_path: Path) -> None:
    """A file that is staged is kept, one that is discarded has nothing to review any more."""
    folder = tmp_path / "work"
    folder.mkdir()
    lines = "".join(f"line {n}\n" for n in range(1, 21))
    names = ("a.txt", "b.txt", "c.txt")
    for name in names:
        (folder / name).write_text(lines)

    def git(line: str) -> None:
        subprocess.run(["git", "-C", str(folder), *line.split()], check=True, capture_output=True)

    git("init -q -b trunk")
    git("add -A")
    git("-c user.name=n -c user.email=e@x commit -q -m first")
    calls = [changed(name, "line 7\n", "line 7!\n") for name in names]
    calls.append(ToolUse("write_file", {"path": "new.txt", "content": "new\n"}))
    says = [Say(text="Changed.", calls=calls), Say(text="Four are applied.")]
    async with (
        service("anthropic", says) as (served, environment),
        workbench(tmp_path, environment, stock=True) as page,
    ):
        chat = await trusted(page)
        await chat.locator("select.mode").select_option("acceptEdits")
        await send(chat, "Change three, add one")
        await answered(chat, "Four are applied.")
        bar = chat.locator(".changes:visible")
        await bar.get_by_text("4 files").wait_for(timeout=SECONDS)
        await open_file(page, "a.txt")
        await page.locator(f"{LENS} a", has_text="Keep").wait_for(timeout=SECONDS)
        git("add a.txt")
        await bar.get_by_text("3 files").wait_for(timeout=SECONDS)
        await until(page.locator(f"{LENS} a", has_text="Keep").count, 0)
        git("checkout b.txt")
        await bar.get_by_text("2 files").wait_for(timeout=SECONDS)
        (folder / "new.txt").unlink()
        await bar.get_by_text("1 file").wait_for(timeout=SECONDS)
        await shoot(page, "hand-5-git")
        assert "line 7!" in (folder / "a.txt").read_text() and (folder / "b.txt").read_text() == lines
        assert not served.refused
