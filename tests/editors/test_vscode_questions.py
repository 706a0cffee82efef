"""A question of the model in a real VS Code: the card is filled in and sent, by mouse and by keyboard; a quick pick
declines."""

import os
from pathlib import Path
from typing import Any

import pytest

from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, open_chat, send, service, shoot, workbench

pytestmark = IN_VSCODE
THEMES = ["Default Dark Modern", "Default Light Modern"] if os.environ.get("AMANU_SCREENSHOTS") else [""]

DATABASE = {
    "header": "Database",
    "question": "Where should orders be stored? The shop has one server, and about a hundred orders a day.",
    "options": [
        {
            "label": "SQLite (recommended)",
            "description": "One file beside the program; nothing to run or back up apart.",
        },
        {"label": "Postgres", "description": "A server of its own; several programs can write at once."},
    ],
}
CHECKS = {
    "header": "Checks",
    "question": "Which checks should run on every commit?",
    "options": [{"label": "Types"}, {"label": "Lints"}, {"label": "Tests", "description": "Two minutes more."}],
    "multi_select": True,
}
NAME = {"header": "Name", "question": "What is the package called?"}


def ask(*questions: Any) -> ToolUse:
    return ToolUse("ask_user", {"questions": list(questions)})


@pytest.mark.parametrize("theme", THEMES)
async def test_a_question_is_answered(theme: str, lived_in: Path) -> None:
    says = [
        Say(text="Three things first.", calls=[ask(DATABASE, CHECKS, NAME)]),
        Say(text="One more.", calls=[ask(DATABASE)]),
        Say(text="That was all."),
    ]
    shot = f"question-{theme.split()[1].lower()}" if theme else "question"
    settings = {"workbench.colorTheme": theme} if theme else {}
    async with (
        service("anthropic", says) as (served, environment),
        workbench(lived_in, environment, settings=settings) as page,
    ):
        chat = await open_chat(page)
        await send(chat, "Make me a shop")
        card = chat.locator(".question:visible")
        await card.locator(".why", has_text="Amanu asks").wait_for(timeout=SECONDS)
        send_answers = card.locator("button.send")
        assert await send_answers.is_disabled()
        await shoot(page, f"{shot}-1-asked")
        wide = "all => all.every((each) => each.scrollWidth <= each.clientWidth)"
        assert await card.evaluate_all(wide), "nothing is cut at the side"
        await card.locator(".option", has_text="SQLite").click()
        boxes = card.locator("fieldset").nth(1).locator("input")
        await boxes.first.focus()  # by key: tick, go on, tick
        await page.keyboard.press("Space")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Space")
        await card.locator("fieldset").nth(2).locator("input.own").fill("corner-shop")
        await shoot(page, f"{shot}-2-filled")
        await page.keyboard.press("Enter")
        over = chat.locator(".card .went", has_text="Checks: Types; Tests; Name: corner-shop")
        await over.first.wait_for(timeout=SECONDS)

        # the second one from the keyboard alone, and declined
        await card.locator("button.send").wait_for(timeout=SECONDS)
        await page.keyboard.press("Control+Alt+Enter")
        pick = page.locator(".quick-input-widget:visible")
        await pick.locator(".monaco-list-row", has_text="Postgres").first.wait_for(timeout=SECONDS)
        await shoot(page, f"{shot}-3-quick-pick")
        await pick.locator(".monaco-list-row", has_text="Decline to answer").click()
        await page.locator(".quick-input-title", has_text="Decline to answer").wait_for(timeout=SECONDS)
        await page.keyboard.type("You decide.")
        await page.keyboard.press("Enter")
        await answered(chat, "That was all.")
        await shoot(page, f"{shot}-4-over")
    told = served.requests[-1].body.decode()
    assert "Answer: SQLite (recommended)" in told and "Answer: Types; Tests" in told and "Answer: corner-shop" in told
    assert "The user declined to answer. They said: You decide." in told
