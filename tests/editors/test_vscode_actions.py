"""Amanu's code actions in a real VS Code: *Fix* at a problem and on a selection, *Explain*, *Write Tests* and *Ask*
anywhere; and *Fix* on a failing test."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from support.strict_services.http import Received, Say
from support.vscode import IN_VSCODE, SECONDS, answered, command, open_chat, open_file, service, shoot, workbench

pytestmark = IN_VSCODE

SETTINGS = '{\n  "one": 1,\n  "two": 2,,\n  "three": 3\n}\n'

CODE = "export function add(a: number, b: number) {\n  const sum = a + b;\n  return sum;\n}\n"


async def offered(page: Any, title: str, *keys: str) -> Any:
    """That row of the menu of code actions, asked for after these keys. On a busy machine the editor offers it only
    once it knows what is found there: the menu is asked for again. Escape ends the menu, or the selection where none
    came."""
    playwright: Any = pytest.importorskip("playwright.async_api")
    row = page.locator(".action-widget .monaco-list-row", has_text=title)
    for _ in range(6):
        for key in (*keys, "Control+."):
            await page.keyboard.press(key)
        with contextlib.suppress(playwright.TimeoutError):
            await row.wait_for(timeout=SECONDS / 6)
            return row
        await page.keyboard.press("Escape")
    raise AssertionError(f"{title} was never offered")


async def act(page: Any, title: str, *keys: str) -> None:
    await (await offered(page, title, *keys)).click()


async def at(page: Any, place: str) -> None:
    """The editor says that this is where the cursor is, and what is selected."""
    await page.locator(r"#status\.editor\.selection", has_text=place).wait_for(timeout=SECONDS)


def said(request: Received) -> str:
    messages = json.loads(request.body)["messages"]
    return json.dumps([each for each in messages if each["role"] == "user"][-1], ensure_ascii=False)


async def test_code_actions(lived_in: Path) -> None:
    folder = lived_in / "work"
    (folder / "settings.json").write_text(SETTINGS)
    (folder / "add.ts").write_text(CODE)
    texts = ("Mended.", "Better now.", "Explained.", "It adds.", "Tested.", "Passes.", "Passes now.")
    says = [Say(text=text) for text in texts]
    async with (
        service("anthropic", says) as (served, environment),
        workbench(lived_in, environment) as page,
    ):
        chat = await open_chat(page)
        await open_file(page, "settings.json")
        await page.locator(".squiggly-error").first.wait_for(timeout=2 * SECONDS)

        # at a problem: the lines and what is found there
        await page.keyboard.press("F8")
        problem = page.locator(".marker-widget")
        await problem.wait_for(timeout=SECONDS)
        await page.keyboard.press("Escape")
        await problem.wait_for(state="detached", timeout=SECONDS)
        fix = await offered(page, "Fix with Amanu")
        await shoot(page, "actions-1-menu")
        await fix.click()
        await answered(chat, "Mended.")
        heard = said(served.requests[0])
        assert "Fix these problems" in heard and "3: error: " in heard and '\\"two\\": 2,,' in heard

        # on a selection without any
        await page.locator(".editor-instance .view-line", has_text="one").click()
        await at(page, "Ln 2,")
        # not to the next line's beginning: VS Code would offer what is wrong in that line
        await act(page, "Fix with Amanu", "End", "Shift+Home")
        await answered(chat, "Better now.")
        heard = said(served.requests[1])
        assert "Find what is wrong with these lines" in heard and '\\"one\\": 1' in heard and '\\"two\\"' not in heard

        # a question of the user's about it
        await page.locator(".editor-instance .view-line", has_text="three").click()
        await at(page, "Ln 4,")
        await act(page, "Ask Amanu About This…")
        await chat.locator(".chip", has_text="settings.json:4").wait_for(timeout=SECONDS)
        await chat.locator("textarea:focus").wait_for(timeout=SECONDS)
        await page.keyboard.type("What is this for?")
        await shoot(page, "actions-2-ask")
        await page.keyboard.press("Enter")
        await answered(chat, "Explained.")
        heard = said(served.requests[2])
        assert "What is this for?" in heard and '\\"three\\": 3' in heard

        # with nothing selected: the line is explained, the function it is in is tested
        await open_file(page, "add.ts")
        await page.locator(".editor-instance .view-line", has_text="sum;").click()
        await at(page, "Ln 3,")
        await act(page, "Explain with Amanu")
        await answered(chat, "It adds.")
        heard = said(served.requests[3])
        assert "Explain these lines" in heard and "return sum" in heard and "export function" not in heard
        await page.locator(".editor-instance .view-line", has_text="sum;").click()
        await act(page, "Write Tests with Amanu")
        await answered(chat, "Tested.")
        heard = said(served.requests[4])
        assert "Write tests for these lines" in heard and "export function" in heard and "return sum" in heard

        # a test that fails, in the Test Results: in their list, and over what it says
        await command(page, "Add the Failing Test")
        failed = page.locator(".test-output-peek-tree .monaco-list-row", has_text="adds up")
        await results(page)
        await failed.hover(timeout=SECONDS)
        await failed.locator('[aria-label="Fix with Amanu"]').click(timeout=SECONDS)
        await answered(chat, "Passes.")
        assert "Fix this failing test: adds up." in said(served.requests[5])
        await failed.click()
        await page.locator(".floating-click-widget", has_text="Fix with Amanu").click(timeout=SECONDS)
        await answered(chat, "Passes now.")
        heard = said(served.requests[6])
        assert "the sum is wrong" in heard and "Expected: 3" in heard and "const sum" in heard
        await command(page, "Remove the Failing Test")
        assert not served.refused


async def results(page: Any) -> None:
    """Run all tests until the list of results is shown: VS Code runs none before it has found the new one."""
    playwright: Any = pytest.importorskip("playwright.async_api")
    for _ in range(5):
        await command(page, "Test: Run All Tests")
        with contextlib.suppress(playwright.TimeoutError):
            await page.locator(".test-output-peek-tree:visible").first.wait_for(timeout=8000)
            return
    await command(page, "Test Results: Focus on Test Results View")
