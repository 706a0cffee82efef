"""From change to change with the keys in a real VS Code, forwards and back, over several files: in one editor of them
all, and in an editor for each."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, command, open_chat, send, service, shoot, until, workbench

pytestmark = IN_VSCODE
NEXT, PREVIOUS = "Control+Alt+j", "Control+Alt+k"
LINES = [f"line {n}\n" for n in range(1, 61)]


def changed(*lines: int) -> str:
    return "".join(f"{line.strip()}!\n" if n in lines else line for n, line in enumerate(LINES, 1))


WHOLE = "".join(LINES)
MIDDLE = {
    "a.txt": (WHOLE, changed(3, 50), (3, 50)),
    "b.txt": (WHOLE, changed(5, 52), (5, 52)),
    "c.txt": (WHOLE, changed(7, 54), (7, 54)),
}
"""By file its text, the proposed one, and the lines the keys lead to."""
EDGES = {
    "a.txt": (WHOLE, "".join(LINES[2:]), (1,)),
    "b.txt": (None, "new\n" * 8, (1,)),
    "c.txt": (WHOLE, "".join(LINES[:58]), (59,)),
    "d.txt": (WHOLE, changed(1, 60), (1, 60)),
}
"""The same for changes that are first and last in their files."""


@pytest.mark.parametrize("together", [True, False], ids=["in one editor", "in an editor each"])
@pytest.mark.parametrize("files", [MIDDLE, EDGES], ids=["in the middle", "at the edges"])
async def test_forwards_and_back(window: Path, files: dict[str, Any], together: bool) -> None:
    for name, (before, _, _) in files.items():
        if before is not None:
            (window / "work" / name).write_text(before)
    calls = [ToolUse("write_file", {"path": name, "content": after}) for name, (_, after, _) in files.items()]
    async with (
        service("anthropic", [Say(text="All.", calls=calls)]) as (served, environment),
        workbench(window, environment) as page,
    ):
        chat = await open_chat(page)
        await send(chat, "Change some files")
        await until(chat.locator(".approval:visible").count, len(files))
        await asyncio.sleep(0.6)  # an answer before that is not taken
        if together:
            await chat.locator(".changes button", has_text="Review").click()
        else:
            await command(page, "Amanu: Show Proposed Changes")
        stops = [(name, line) for name, (_, _, lines) in files.items() for line in lines]
        title = f"Changes to review ({len(files)} files)"

        async def arrived(name: str, line: int) -> None:
            await page.locator(".tab.active", has_text=title if together else name).wait_for(timeout=SECONDS)
            await page.locator(f'.statusbar-item [aria-label^="Ln {line}, "]').wait_for(timeout=SECONDS)
            if together:
                entry = page.locator(".multiDiffEntry:has(.monaco-editor.focused)", has_text=name)
                await entry.wait_for(timeout=SECONDS)

        await arrived(*stops[0])
        for key, way in ((NEXT, [*stops[1:], *stops]), (PREVIOUS, [*stops[::-1], stops[-1]][1:])):
            for name, line in way:
                await page.keyboard.press(key)
                await arrived(name, line)
            await shoot(page, f"steps-{together}-{len(files)}-{key[-1]}")
        assert not served.refused


async def test_a_decided_file_gives_way_to_the_next(window: Path) -> None:
    """Behind its diff there is no other editor."""
    names = ("a.txt", "b.txt")
    for name in names:
        (window / "work" / name).write_text(WHOLE)
    calls = [ToolUse("write_file", {"path": name, "content": changed(3)}) for name in names]
    async with (
        service("anthropic", [Say(text="Two.", calls=calls), Say(text="Both decided.")]) as (served, environment),
        workbench(window, environment) as page,
    ):
        chat = await open_chat(page)
        await send(chat, "Change two files")
        await until(chat.locator(".approval:visible").count, 2)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await command(page, "Amanu: Show Proposed Changes")
        for name in names:
            await page.locator(".tab.active", has_text=f"{name} (proposed)").wait_for(timeout=SECONDS)
            await page.locator('.statusbar-item [aria-label^="Ln 3, "]').wait_for(timeout=SECONDS)
            await page.keyboard.press("Control+Alt+y")
        await answered(chat, "Both decided.")
        await until(page.locator(".tab").count, 0)
        assert {(window / "work" / name).read_text() for name in names} == {changed(3)}
        assert not served.refused
