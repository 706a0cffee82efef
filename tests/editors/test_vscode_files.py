"""Files of every kind in a real VS Code: what the user typed and what was not approved stays, to the byte."""

import asyncio
from pathlib import Path
from typing import Any

from support.strict_services.http import Say, ToolUse
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    asked,
    command,
    open_chat,
    open_file,
    send,
    service,
    shows,
    workbench,
)

pytestmark = IN_VSCODE

MIXED = b"one\r\ntwo\nthree\r\nfour\n\tfive\r\nno end"
LATIN_1 = "caf\xe9\nma\xf1ana\nthird\n".encode("latin-1")
PLAIN = b"alpha\nbeta\ngamma\ndelta\n"


def edits(*each: tuple[str, str, str]) -> list[Say]:
    """For each prompt an edit of one file, and an answer that ends the turn."""
    return [
        step
        for path, old, new in each
        for step in (
            Say(
                text=f"I change {path}.", calls=[ToolUse("edit_file", {"path": path, "old_text": old, "new_text": new})]
            ),
            Say(text=f"Done with {path}."),
        )
    ]


async def test_nothing_is_lost_or_rewritten(lived_in: Path) -> None:
    folder = lived_in / "work"
    files = {"mixed.txt": MIXED, "latin.txt": LATIN_1, "dirty.txt": PLAIN, "dirty-latin.txt": LATIN_1}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    script = edits(
        ("mixed.txt", "three", "THREE"),
        ("latin.txt", "third", "THIRD"),
        ("dirty.txt", "gamma", "GAMMA"),
        ("dirty-latin.txt", "third", "THIRD"),
    )
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)

        # an untitled document: nobody's business but the user's
        await command(page, "File: New Untitled Text File")
        await page.keyboard.type("kept nowhere but here")

        # mixed line ends and Latin-1, open and without unsaved changes: their own bytes, but for the hunk
        for name, expected in (
            ("mixed.txt", MIXED.replace(b"three", b"THREE")),
            ("latin.txt", LATIN_1.replace(b"third", b"THIRD")),
        ):
            await open_file(page, name)
            await change(chat, name)
            await settled(folder / name, expected)
            await shows(page, "TH")

        # unsaved text: the hunk lands beside it, the file stays unsaved, and one undo takes the hunk back and no more
        await open_file(page, "dirty.txt")
        await page.locator(".view-line", has_text="alpha").click()
        await page.keyboard.press("End")
        await page.keyboard.type(" typed")
        await change(chat, "dirty.txt")
        await shows(page, "GAMMA")
        await shows(page, "alpha typed")
        assert (folder / "dirty.txt").read_bytes() == PLAIN
        await page.locator(".view-line", has_text="delta").click()
        await page.keyboard.press("Control+z")
        await shows(page, "gamma")
        await page.keyboard.press("Control+s")
        await settled(folder / "dirty.txt", PLAIN.replace(b"alpha", b"alpha typed"))

        # unsaved text in a file that VS Code cannot give back as it was: refused, and nothing lost
        await open_file(page, "dirty-latin.txt")
        await page.locator(".view-line", has_text="third").click()
        await page.keyboard.press("End")
        await page.keyboard.type(" typed")
        await send(chat, "change dirty-latin.txt")
        await chat.locator(".tool .error", has_text="save it first").wait_for(timeout=SECONDS)
        await answered(chat, "Done with dirty-latin.txt")
        await shows(page, "third typed")
        assert (folder / "dirty-latin.txt").read_bytes() == LATIN_1

        await page.locator('.tab[data-resource-name="Untitled-1"]').click()
        await shows(page, "kept nowhere but here")
        assert not served.refused


async def change(chat: Any, name: str) -> None:
    """Ask for the change, accept it, and wait for the end of the turn."""
    await send(chat, f"change {name}")
    await (await asked(chat)).click()
    await answered(chat, f"Done with {name}")


async def settled(path: Path, expected: bytes) -> None:
    async with asyncio.timeout(SECONDS / 1000):
        while path.read_bytes() != expected:
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)  # and stays so
    assert path.read_bytes() == expected
