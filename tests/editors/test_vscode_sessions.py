"""Many sessions in a real VS Code: one that waits is announced, and one click leads to it; several run in chats of
their own, in the side bar and in editor tabs, while the changes of another are reviewed; one whose turn died with the
daemon does not seem to run."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from amanu.home import find_home
from support.running_daemon import signal_daemon
from support.strict_services.http import Say, ToolUse
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    asked,
    command,
    open_chat,
    open_file,
    ready,
    send,
    service,
    shoot,
    until,
    workbench,
)

pytestmark = IN_VSCODE


def run(line: str) -> ToolUse:
    return ToolUse("run_shell_command", {"command": line})


async def test_a_session_that_waits_is_announced(window: Path) -> None:
    gate = window / "work" / "gate"
    os.mkfifo(gate)
    config = find_home(os.environ).config
    config.mkdir(parents=True)
    (config / "rules.toml").write_text('[user]\nallow = ["run_shell_command(cat gate)"]\n')
    says = [
        Say(text="Working.", calls=[run("cat gate")]),
        Say(text="Answer beside it."),
        Say(text="Now this.", calls=[run("touch made.txt")]),
        Say(text="All done."),
    ]
    async with service("anthropic", says) as (served, environment), workbench(window, environment) as page:
        chat = await open_chat(page)
        await send(chat, "The first job")
        await answered(chat, "Working.")
        await send(chat, "/new")
        await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        await page.locator('.statusbar-item [aria-label*="Working on “The first job”"]').wait_for(timeout=SECONDS)
        await send(chat, "Another question")
        await answered(chat, "Answer beside it.")

        # it begins to wait while another is on the screen
        await asyncio.to_thread(gate.write_text, "go\n")
        toast = page.locator(".notification-toast", has_text="“The first job” is waiting for you: Run touch made.txt")
        await toast.wait_for(timeout=SECONDS)
        status = page.locator('.statusbar-item [aria-label*="“The first job” is waiting for 1 decision"]')
        await status.wait_for(timeout=SECONDS)
        await page.locator(".part.auxiliarybar .badge-content", has_text="1").wait_for(timeout=SECONDS)
        await shoot(page, "sessions-1-announced")
        await toast.locator(".monaco-button", has_text="Show").click()
        await chat.locator("h2.title", has_text="The first job").wait_for(timeout=SECONDS)
        await (await asked(chat)).click()
        await answered(chat, "All done.")
        assert (window / "work" / "made.txt").exists()
        await page.locator(".part.auxiliarybar .badge-content", has_text="1").wait_for(state="hidden", timeout=SECONDS)
        assert await page.locator(".notification-toast").count() == 0  # once, and not when it is shown
        assert not served.refused


async def delete(page: Any, row: Any) -> None:
    """Delete a session by its row in the list."""
    await row.wait_for(timeout=SECONDS)  # a key is pressed on what is hidden, too
    await row.locator(".open").press("Delete")
    await page.locator(".monaco-dialog-box .monaco-button", has_text="Delete").click(timeout=SECONDS)


async def test_many_at_once(window: Path) -> None:
    folder = window / "work"
    notes = folder / "notes.txt"
    notes.write_text("one\ntwo\nthree\n")
    for gate in ("first", "second"):
        os.mkfifo(folder / gate)
    config = find_home(os.environ).config
    config.mkdir(parents=True)
    (config / "rules.toml").write_text(
        '[user]\nallow = ["run_shell_command(cat first)", "run_shell_command(cat second)"]\n'
    )
    edit = ToolUse("write_file", {"path": "notes.txt", "content": "one\n2\nthree\n"})
    says = [
        Say(text="A change.", calls=[edit]),
        Say(text="Working on the first.", calls=[run("cat first")]),
        Say(text="Working on the second.", calls=[run("cat second")]),
        Say(text="Now this.", calls=[run("touch made.txt")]),
        Say(text="The first is done."),
        Say(text="The change is in."),
        Say(text="The second is done."),
    ]
    async with service("anthropic", says) as (served, environment), workbench(window, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Change the notes")
        await asked(chat)
        to_review = page.locator('.activitybar [aria-label*="Source Control"] .badge-content', has_text="1")
        await to_review.wait_for(timeout=SECONDS)

        # two others at once: one in the side bar, one in an editor tab
        await command(page, "Amanu: New Session")
        await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        await send(chat, "The first job")
        await answered(chat, "Working on the first")
        await command(page, "Amanu: New Chat in Editor Tab")
        tab = page.frame_locator('iframe.webview:not([src*="webviewView"])').frame_locator("#active-frame")
        await tab.locator("textarea:focus").wait_for(timeout=SECONDS)
        await page.keyboard.type("The second job")
        await page.keyboard.press("Enter")
        await answered(tab, "Working on the second")
        await page.locator(".tab.active", has_text="The second job").wait_for(timeout=SECONDS)
        assert await page.locator(".notification-toast").count() == 0  # the question was on the screen

        # the list says how each stands, and the keyboard opens the one that waits
        await command(page, "Amanu: Sessions")
        rows = tab.locator(".sessions li")
        await until(rows.count, 3)
        assert await tab.locator(".sessions h3").all_inner_texts() == ["Waiting for you", "Running"]
        await rows.filter(has_text="Change the notes").locator(".stands", has_text="1 to review").wait_for()
        await shoot(page, "sessions-3-list")
        await page.keyboard.press("Escape")

        # its changes are still in Source Control and in the editor, and a key decides them; no chat shows it
        await to_review.wait_for(timeout=SECONDS)
        await open_file(page, "notes.txt")
        await page.keyboard.press("Control+Alt+j")
        await page.locator('.statusbar-item [aria-label="Ln 2, Col 1"]').wait_for(timeout=SECONDS)
        await shoot(page, "sessions-4-background-change")

        # what begins to wait in the background is told, and allowed at a click where a line says all of it
        await send(chat, "/new")
        await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        await asyncio.to_thread((folder / "first").write_text, "go\n")
        toast = page.locator(".notification-toast", has_text="“The first job” is waiting for you: Run touch made.txt")
        await toast.wait_for(timeout=SECONDS)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await shoot(page, "sessions-5-told")
        await toast.locator(".monaco-button", has_text="Allow").click()
        await until(lambda: asyncio.to_thread((folder / "made.txt").exists), True)

        await page.locator(".tab", has_text="notes.txt").last.click()
        await page.locator(".monaco-editor.focused").wait_for(timeout=SECONDS)  # keys of a hunk are the editor's
        await page.keyboard.press("Control+Alt+y")
        await until(lambda: asyncio.to_thread(notes.read_text), "one\n2\nthree\n")
        await to_review.wait_for(state="hidden", timeout=SECONDS)

        # a window that is loaded anew has its tabs again
        await command(page, "Developer: Reload Window")
        await page.locator(".tab", has_text="The second job").click(timeout=SECONDS)
        await answered(tab, "Working on the second")
        await asyncio.to_thread((folder / "second").write_text, "go\n")
        await answered(tab, "The second is done")
        await ready(page)
        await shoot(page, "sessions-6-loaded-anew")

        # a new session is the side bar's, wherever one asks for it: the tab keeps what it shows
        await send(chat, "/sessions")
        rows = chat.locator(".sessions li")
        await rows.filter(has_text="The first job").wait_for(timeout=SECONDS)
        await rows.filter(has_text="The first job").locator(".open").press("Enter")
        await chat.locator("h2.title", has_text="The first job").wait_for(timeout=SECONDS)
        await tab.locator("textarea").fill("Not sent yet")
        await command(page, "Amanu: New Session")
        await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        await tab.locator("h2.title", has_text="The second job").wait_for(timeout=SECONDS)

        # the tab of a session that is deleted closes, unless something is typed there
        await send(chat, "/sessions")
        await delete(page, rows.filter(has_text="The second job"))
        await tab.locator(".told", has_text="The session was deleted").wait_for(timeout=SECONDS)
        assert await tab.locator("textarea").input_value() == "Not sent yet"
        await shoot(page, "sessions-7-deleted")
        await rows.filter(has_text="The first job").locator(".open").press("Control+Enter")
        first = page.locator(".tab", has_text="The first job")
        await first.wait_for(timeout=SECONDS)
        await send(chat, "/sessions")
        await delete(page, rows.filter(has_text="The first job"))
        await first.wait_for(state="detached", timeout=SECONDS)
        assert not served.refused


async def test_a_turn_that_died_does_not_seem_to_run(window: Path) -> None:
    says = [Say(text=["One ", "two "], delay=0.5, repeat=1000)]
    async with service("anthropic", says) as (_, environment), workbench(window, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Count")
        await answered(chat, "One two")
        row = chat.locator(".sessions li", has_text="Count")
        await command(page, "Amanu: Sessions")
        await row.locator(".stands", has_text="running").wait_for(timeout=SECONDS)
        signal_daemon(signal.SIGKILL)
        await row.locator(".stands", has_text="interrupted").wait_for(timeout=SECONDS)
        await shoot(page, "sessions-2-interrupted")
        await page.keyboard.press("Escape")
        await chat.locator(".standing", has_text="The daemon stopped in the middle of this turn").wait_for(
            timeout=SECONDS
        )
