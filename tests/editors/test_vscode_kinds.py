"""A draft with every kind of change in a real VS Code: each has its row, two are refused, the rest is taken, and one is
undone from a script while the window shows the session; then a commit is asked about."""

import asyncio
import os
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from editors.test_vscode_layer import git, run
from support.cli_process import AMANU
from support.required_programs import needs
from support.row_session import look
from support.strict_services.http import Say
from support.vscode import IN_VSCODE, SECONDS, answered, asked, open_chat, send, service, shoot, until, workbench

pytestmark = [pytest.mark.layers, *IN_VSCODE]


def _png(side: int) -> bytes:
    """A red square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\xff\0\0" * side) * side)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


PNG = _png(48)
LINE = (
    "echo more >> notes.txt; cp icon.png logo.png; ln -s notes.txt link; chmod +x tool.sh; rm old.bin; "
    "mv photo.bin picture.bin; mkdir fresh"
)
BEFORE = {
    "notes.txt": b"one\n",
    "icon.png": PNG,
    "tool.sh": b"#!/bin/sh\n",
    "old.bin": b"old\0",
    "photo.bin": b"photo\0" * 100,
}


async def test_every_kind_of_change(lived_in: Path) -> None:
    needs("bwrap")
    folder = lived_in / "work"
    for name, content in BEFORE.items():
        (folder / name).write_bytes(content)
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
        git(folder, *line.split())
    before = look(folder)
    script = [
        Say(text="I change a lot.", calls=[run(LINE)]),
        Say(text="All of it is drafted."),
        Say(text="I commit it.", calls=[run("git add -A && git commit -qm 'Change a lot'")]),
        Say(text="It is committed."),
    ]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await chat.locator("select.mode").select_option("draft")
        await send(chat, "Change a lot")
        allow = await asked(chat)
        await shoot(page, "kinds-1-review")
        assert look(folder) == before

        def change(name: str) -> str:
            return f'details.file:has(.path:text-is("{name}"))'

        card = chat.locator(".tool:has(.approval:visible)")
        await card.locator("button", has_text="Show all").click()
        await card.locator(f"{change('logo.png')} img").wait_for(timeout=SECONDS)
        await page.set_viewport_size({"width": 1300, "height": 1250})
        await card.scroll_into_view_if_needed()
        await shoot(page, "kinds-2-all")
        for count, name in enumerate(("link", "tool.sh"), 1):  # each decision makes a new version of the proposal
            await card.locator(f"{change(name)} .reject").click()
            await until(card.locator(".hunk.rejected").count, count)
        await shoot(page, "kinds-3-two-refused")
        await allow.click()
        await answered(chat, "All of it is drafted")
        after = {**before, "notes.txt": "one\nmore\n", "logo.png": before["icon.png"], "fresh": "/"}
        after["picture.bin"] = after.pop("photo.bin")
        del after["old.bin"]
        async with asyncio.timeout(SECONDS / 1000):
            while look(folder) != after:
                await asyncio.sleep(0.05)
        await shoot(page, "kinds-4-accepted")

        # a script undoes one of them; the window shows that
        command = [*AMANU, "sessions", "undo", "latest", "logo.png"]
        done = await asyncio.to_thread(
            subprocess.run, command, cwd=folder, env={**os.environ}, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("undone      logo.png (")
        assert not (folder / "logo.png").exists()
        await chat.locator(f"{change('logo.png')} .hunk.reverted").first.wait_for(state="attached", timeout=SECONDS)
        await shoot(page, "kinds-5-undone")

        await chat.locator("select.mode").select_option("ask")
        await send(chat, "Commit")
        allow = await asked(chat)
        await shoot(page, "kinds-6-commit")
        await allow.click()
        await answered(chat, "It is committed")
        assert git(folder, "log", "--format=%s") == "Change a lot\nfirst\n"
        assert git(folder, "status", "--porcelain") == ""
        assert not served.refused
