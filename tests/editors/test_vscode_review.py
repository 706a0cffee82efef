"""A review as one does it all day, in a real VS Code: twenty-five changes in four files with the keyboard alone;
changes a rule applied, green, kept and undone beside what the user typed; and the way back from the chat."""

import asyncio
from pathlib import Path
from typing import Any

from support.strict_services.http import Say, ToolUse
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    command,
    open_chat,
    open_file,
    send,
    service,
    shoot,
    shows,
    until,
    workbench,
)

pytestmark = IN_VSCODE

NAMES = ["a.txt", "b.txt", "c.txt", "d.txt"]
LINES = {n: f"line {n}" for n in range(1, 21)}
CHANGED = (2, 9, 16)
"""The lines each file's three changes are about."""


GREEN = """overlays => [...overlays.querySelectorAll('[class*="ced-"]')].filter(each => {
    const [red, green, blue] = getComputedStyle(each).backgroundColor.match(/[\\d.]+/g).map(Number);
    return green > red && green > blue;
}).length"""
"""How many lines are drawn on green."""


def text(*changed: int, lines: dict[int, str] = LINES) -> str:
    return "".join(f"{line}{'!' if n in changed else ''}\n" for n, line in lines.items())


async def test_twenty_five_changes_by_keyboard(lived_in: Path) -> None:
    """Four files, one of them open and longer than the screen: what is proposed is in no buffer, and nothing is
    accepted before it was on screen."""
    folder = lived_in / "work"
    long = {n: f"line {n}" for n in range(1, 201)}
    many = tuple(range(2, 200, 20))
    before = {name: text() for name in NAMES[:3]} | {"d.txt": text(lines=long)}
    after = {name: text(*CHANGED) for name in NAMES[:2]}
    after |= {"c.txt": text(*range(1, 18, 2)), "d.txt": text(*many, lines=long)}
    for name, content in before.items():
        (folder / name).write_text(content)
    calls = [ToolUse("write_file", {"path": name, "content": content}) for name, content in after.items()]
    script = [Say(text="Twenty-five changes.", calls=calls), Say(text="All decided.")]
    settings = {"files.autoSave": "afterDelay", "files.autoSaveDelay": 50}
    async with (
        service("anthropic", script) as (served, environment),
        workbench(lived_in, environment, settings=settings) as page,
    ):
        chat = await open_chat(page)
        key = page.keyboard
        await open_file(page, "d.txt")
        await command(page, "Amanu: Open Chat")
        await chat.locator("textarea:focus").wait_for(timeout=SECONDS)
        await key.type("Change three lines of each")
        await key.press("Enter")
        await until(chat.locator(".approval:visible").count, 4)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await page.locator('.activitybar [aria-label*="Source Control"] .badge-content', has_text="4").wait_for(
            timeout=SECONDS
        )
        await chat.locator(".changes", has_text="4 files").wait_for(timeout=SECONDS)
        await chat.locator(".fold button", has_text="Show all 10 changes").wait_for(timeout=SECONDS)
        await shoot(page, "review-1-asked")

        # in the file itself a mark and the way to the diff, never the text: what is saved is what was typed
        await page.locator(".codelens-decoration a", has_text="Amanu proposes 10 changes").wait_for(timeout=SECONDS)
        await write(page, 5, " typed")
        await becomes(folder / "d.txt", before["d.txt"].replace("line 5\n", "line 5 typed\n"))
        assert await page.locator(".editor-instance .view-line", has_text="!").count() == 0
        for _ in range(3):
            await key.press("ArrowUp")
        await key.press("Control+Alt+y")
        await page.locator(".tab.active", has_text="d.txt (proposed)").wait_for(timeout=SECONDS)
        # its language, which is ours, is none that VS Code offers for files
        await command(page, "Change Language Mode")
        await page.locator(".quick-input-widget input.input").fill("plain")
        languages = page.locator(".quick-input-list .monaco-list-row", has_text="lain")
        await languages.filter(has_text="plaintext").wait_for(timeout=SECONDS)
        assert await languages.filter(has_text="amanu").count() == 0
        await shoot(page, "review-languages")
        await page.keyboard.press("Escape")
        await page.locator('.statusbar-item [aria-label="Ln 2, Col 1"]').wait_for(timeout=SECONDS)
        await page.locator(".monaco-diff-editor:not(.side-by-side)").wait_for(timeout=SECONDS)
        await shoot(page, "review-2-long")
        presses = 0
        while await page.locator(".tab", has_text="(proposed)").count() > 0:
            assert (folder / "d.txt").read_text() == before["d.txt"].replace("line 5\n", "line 5 typed\n")
            await key.press("Control+Alt+Shift+y")  # goes to what was not on screen, and accepts when all was
            presses += 1
            await asyncio.sleep(0.3)
        assert presses > 3
        await becomes(folder / "d.txt", after["d.txt"].replace("line 5\n", "line 5 typed\n"))

        # in each file: yes, no, yes. The last decision of a file closes its diff, next opens the one after it
        accept = page.locator(".codelens-decoration a", has_text="Accept")
        for name in NAMES[:2]:
            await key.press("Control+Alt+j")
            await page.locator(".tab.active", has_text=name).wait_for(timeout=SECONDS)
            await until(accept.count, 4)  # the file's and its three changes'
            await page.locator('.statusbar-item [aria-label="Ln 2, Col 1"]').wait_for(timeout=SECONDS)
            if name == "a.txt":
                await page.locator(".codelens-decoration a", has_text="1 of 15").wait_for(timeout=SECONDS)
                await shoot(page, "review-3-diff")
                await key.press("End")
                await key.type(" (mine)")
                await key.press("Control+s")  # kept by the daemon, and not decided: the card shows it
                await chat.locator(".hunk.pending .added", has_text="line 2! (mine)").wait_for(timeout=SECONDS)
                await key.press("Home")
            for line, answer, left in ((2, "y", 3), (9, "n", 1), (16, "y", 0)):
                if line > CHANGED[0]:
                    await key.press("Control+Alt+j")
                await page.locator(f'.statusbar-item [aria-label="Ln {line}, Col 1"]').wait_for(timeout=SECONDS)
                await key.press(f"Control+Alt+{answer}")
                if left:
                    await until(accept.count, left)
            await page.locator(".tab", has_text=name).wait_for(state="detached", timeout=SECONDS)
        await key.press("Control+Alt+j")
        await until(accept.count, 10)  # all of them are on screen
        await key.press("Control+Alt+Shift+y")
        await answered(chat, "All decided")
        assert (folder / "a.txt").read_text() == text(2, 16).replace("line 2!", "line 2! (mine)")
        assert (folder / "b.txt").read_text() == text(2, 16)
        assert (folder / "c.txt").read_text() == after["c.txt"]
        await chat.locator(".turn", has_text="4 files").wait_for(timeout=SECONDS)
        await until(chat.locator(".changes:visible").count, 0)
        await shoot(page, "review-4-decided")
        await page.locator('.activitybar [aria-label*="Source Control"] .badge-content:visible').wait_for(
            state="detached", timeout=SECONDS
        )
        assert not served.refused


async def test_a_big_file_is_compared_with_its_text(lived_in: Path) -> None:
    """That text is fetched when the diff opens: the proposal does not have it."""
    folder = lived_in / "work"
    lines = [f"line {n} of a file that is longer than what a proposal carries\n" for n in range(1, 3001)]
    (folder / "big.txt").write_text("".join(lines))
    change = {"path": "big.txt", "old_text": "line 1500 of", "new_text": "line one thousand five hundred of"}
    script = [Say(text="One change.", calls=[ToolUse("edit_file", change)]), Say(text="Decided.")]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Change a line")
        await until(chat.locator(".approval:visible").count, 1)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await page.keyboard.press("Control+Alt+j")
        await page.locator(".tab.active", has_text="big.txt (proposed)").wait_for(timeout=SECONDS)
        await page.locator('.statusbar-item [aria-label="Ln 1500, Col 1"]').wait_for(timeout=SECONDS)
        diff = page.locator(".monaco-diff-editor:visible")
        await diff.locator(".view-line", has_text="line one thousand five hundred of").first.wait_for(timeout=SECONDS)
        await diff.locator(".view-line", has_text="line 1500 of").first.wait_for(timeout=SECONDS)
        await shoot(page, "review-big-file")
        assert await diff.locator(".view-overlays .line-insert").count() == 1
        await page.keyboard.press("Control+Alt+y")
        await answered(chat, "Decided")
        after = "".join(lines).replace("line 1500 of", "line one thousand five hundred of")
        await becomes(folder / "big.txt", after)
        assert not served.refused


async def test_undo_takes_back_ours_alone(lived_in: Path) -> None:
    """An unsaved text, edits of the model a rule allows, typing in between: each stays who it belongs to."""
    folder = lived_in / "work"
    file = folder / "notes.txt"
    file.write_text(text())
    edits = [edit("notes.txt", 9), edit("notes.txt", 16)]
    script = [Say(text="Two changes.", calls=edits), Say(text="Both done.")]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        key = page.keyboard
        chat = await open_chat(page)
        await chat.locator("select.mode").select_option("acceptEdits")
        await open_file(page, "notes.txt")
        await write(page, 1, " typed before")
        await send(chat, "Change two lines")
        await answered(chat, "Both done")
        await shows(page, "line 16!")
        await shows(page, "line 1 typed before")
        assert file.read_text() == text()  # what was unsaved stays so

        # applied by a rule: marked in the gutter, to be kept or undone where it stands
        keep = page.locator(".codelens-decoration a", has_text="Keep")
        await until(keep.count, 3)  # both, and one by one
        marks = page.locator('.cldr[class*="dirty-diff"]')
        await until(marks.count, 2)
        assert await page.locator(".view-overlays").evaluate(GREEN) == 2
        await shoot(page, "undo-1-applied")
        await marks.first.click(position={"x": 1, "y": 8})  # what was there is one click away
        removed = page.locator(".peekview-widget .view-lines", has_text="line\xa09").first
        await removed.wait_for(timeout=SECONDS)
        await shoot(page, "undo-1-removed")
        await key.press("Escape")
        await until(page.locator(".peekview-widget").count, 0)
        await write(page, 12, " typed after")
        await key.press("Control+Alt+j")
        await page.locator('.statusbar-item [aria-label="Ln 16, Col 1"]').wait_for(timeout=SECONDS)
        await key.press("Control+Alt+y")
        await until(keep.count, 1)
        await key.press("Control+Alt+k")
        await page.locator('.statusbar-item [aria-label="Ln 9, Col 1"]').wait_for(timeout=SECONDS)
        await key.press("Control+Alt+n")
        await until(keep.count, 0)
        await key.press("Control+s")
        mine = text().replace("line 1\n", "line 1 typed before\n").replace("line 12\n", "line 12 typed after\n")
        await becomes(file, mine.replace("line 16\n", "line 16!\n"))
        await shoot(page, "undo-2-decided")

        # undo is itself undone, and a turn is undone after a look at what that means
        await command(page, "Amanu: Redo Undone Changes")
        await becomes(file, mine.replace("line 16\n", "line 16!\n").replace("line 9\n", "line 9!\n"))
        await command(page, "Amanu: Undo the Last Turn")
        await page.locator('.monaco-list-row.focused[aria-label*="2 changes in 1 file"]').wait_for(timeout=SECONDS)
        await shoot(page, "undo-3-asked")
        await key.press("Enter")
        await becomes(file, mine)
        await shoot(page, "undo-4-undone")
        assert not served.refused


async def test_the_way_back_from_the_chat(lived_in: Path) -> None:
    folder = lived_in / "work"
    for name in NAMES[:2]:
        (folder / name).write_text(text())
    script = [
        *(
            Say(text=f"I change {name}.", calls=[edit(name, 9)]) if n == 0 else Say(text=f"Done with {name}.")
            for name in NAMES[:2]
            for n in range(2)
        ),
        Say(text="As you wish."),
        Say(text="Noted."),
    ]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await chat.locator("select.mode").select_option("acceptEdits")
        for name in NAMES[:2]:
            await send(chat, f"change {name}")
            await answered(chat, f"Done with {name}")
        assert {(folder / name).read_text() for name in NAMES[:2]} == {text(9)}
        said = chat.locator(".card.user")
        await said.nth(1).hover()
        await shoot(page, "back-1-offered")
        await said.nth(1).locator(".restore").click()
        both = page.locator('.quick-input-list .monaco-list-row[aria-label*="files and conversation"]')
        await both.wait_for(timeout=SECONDS)
        await shoot(page, "back-2-asked")
        await both.click()
        await until(said.count, 1)
        await becomes(folder / "b.txt", text())
        assert (folder / "a.txt").read_text() == text(9)
        async with asyncio.timeout(SECONDS / 1000):
            while await chat.locator("textarea").input_value() != "change b.txt":
                await asyncio.sleep(0.05)
        await shoot(page, "back-3-gone")
        await chat.locator("textarea").press("Enter")
        await answered(chat, "As you wish")
        assert "Done with b.txt" not in served.requests[-1].body.decode()

        # what is said about lines waits beside them, until all of it is sent
        await open_file(page, "a.txt")
        await command(page, "Amanu: Comment on Selection")
        await page.locator(".quick-input-title", has_text="Comment on line 1").wait_for(timeout=SECONDS)
        await page.keyboard.type("Why not here?")
        await page.keyboard.press("Enter")
        await page.locator(".comment-range-glyph.comment-thread").wait_for(timeout=SECONDS)
        assert await page.locator(".part.panel:visible").count() == 0  # nothing pops up
        await command(page, "Amanu: Send Comments")
        await answered(chat, "Noted")
        assert "Why not here?" in served.requests[-1].body.decode()
        await until(page.locator(".comment-range-glyph.comment-thread").count, 0)
        assert not served.refused


def edit(name: str, line: int) -> ToolUse:
    return ToolUse("edit_file", {"path": name, "old_text": f"line {line}\n", "new_text": f"line {line}!\n"})


async def write(page: Any, line: int, words: str) -> None:
    """Type at the end of a line of the file in front."""
    await page.locator(".editor-instance .view-line").first.click()
    await page.keyboard.press("Control+Home")
    for _ in range(line - 1):
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("End")
    await page.keyboard.type(words)


async def becomes(file: Path, expected: str) -> None:
    async with asyncio.timeout(SECONDS / 1000):
        while file.read_text() != expected:
            await asyncio.sleep(0.05)
