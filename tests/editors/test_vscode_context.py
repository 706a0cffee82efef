"""A long conversation in a small window, in a real VS Code: the bar fills, old output makes room, a summary takes the
place of what is old, and the work goes on by itself; then it is asked for by hand."""

import json
import os
from pathlib import Path

import pytest

from support.long_session import tokens
from support.strict_services.http import Received, Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, command, open_chat, pick_model, send, service, shoot, workbench

pytestmark = IN_VSCODE

MODEL = "gemini:gemini-3.5-flash"
WINDOW = 30_000
PARTS = 6
FULL = int(WINDOW * 0.58)
"""Tokens of a request at which the gauge says that the window fills up, and the model asks the user."""
SUMMARY = """## Goal
Find which part of the ledger does not add up.

## Constraints
Nothing is changed; the user wants a list first.

## Decisions
Parts are read in order, a hundred lines at a time.

## Files
`part0.txt` to `part3.txt` were read and add up.

## Open work
The parts after those.

## Next step
Read on.
"""


class Ledger:
    """The model's side: it reads part after part, asks the user when it is told that it gets full, and comes to an
    end two steps after a summary."""

    def __init__(self) -> None:
        self.steps = 0
        self.since = 0
        """Steps since the summary."""
        self.asked = False

    def answer(self, received: Received) -> Say:
        body = received.json
        text = json.dumps(body)
        usage = {"input": tokens(text), "output": 60}
        if not body.get("tools"):
            if "# The record" not in text:  # who speaks next
                return Say(text=json.dumps({"next_speaker": "user"}), usage=usage)
            return Say(text=SUMMARY, usage=usage, wait=4)  # long enough to be seen
        if "By hand:" in text:
            return Say(text="As you say.", usage=usage)
        if tokens(text) >= FULL and not self.asked:
            self.asked = True
            return Say(text="It gets full. Shall I go on?", usage=usage)
        self.since += "<conversation_summary>" in text
        if self.since > 2:
            return Say(text="I have gone on: the last part does not add up.", usage=usage)
        at, self.steps = self.steps, self.steps + 1
        start = 1 + 100 * (at // PARTS)
        arguments = {"path": f"part{at % PARTS}.txt", "start_line": start, "end_line": start + 70}
        say = f"Part {at % PARTS} from line {start}."
        return Say(text=say, calls=[ToolUse("read_file", arguments)], usage=usage)


THEMES = (
    ["Default Dark Modern", "Default Light Modern"] if os.environ.get("AMANU_SCREENSHOTS") else ["Default Dark Modern"]
)
"""The second one is for the pictures alone."""


@pytest.mark.parametrize("theme", THEMES)
async def test_a_small_window(theme: str, window: Path) -> None:
    shot = f"context-{theme.split()[1].lower()}"
    workspace = window / "work"
    for part in range(PARTS):
        lines = (f"{day:04d} part {part} paid {day * 37 % 1000} of {day * 91 % 4000}" for day in range(1, 600))
        (workspace / f"part{part}.txt").write_text("\n".join(lines) + "\n")
    config = Path(os.environ["AMANU_HOME"]) / "config"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'[context.windows]\n"{MODEL}" = {WINDOW}\n')
    async with (
        service("gemini", Ledger().answer) as (served, environment),
        workbench(window, environment, settings={"workbench.colorTheme": theme}) as page,
    ):
        chat = await open_chat(page)
        await pick_model(page, chat, MODEL)
        await send(chat, "Which part of the ledger does not add up?")
        await answered(chat, "Shall I go on?")
        await chat.locator(".gauge[data-tier=warn]").wait_for(timeout=SECONDS)
        await shoot(page, f"{shot}-1-filling")
        await send(chat, "Go on.")
        making = chat.locator(".notice[data-code=compacting] .spinner")
        await making.wait_for(timeout=SECONDS)
        assert "Compacting the conversation" in await chat.locator(".standing").inner_text()
        await shoot(page, f"{shot}-2-compacting")
        await answered(chat, "I have gone on")
        made = chat.locator(".notice[data-code=compacted]")
        assert await made.count() == 1
        assert await chat.locator(".gauge[data-tier=roomy]").count() == 1
        assert await chat.locator(".notice[data-code=masked]").count() >= 1
        await shoot(page, f"{shot}-3-gone-on")

        # what stands behind the notice and behind the bar; both by keyboard
        await made.locator("summary").focus()
        await page.keyboard.press("Enter")
        await made.locator("h2", has_text="Next step").wait_for(timeout=SECONDS)
        assert "Which part of the ledger" in await made.inner_text()  # the user's own words are kept
        await made.scroll_into_view_if_needed()
        await shoot(page, f"{shot}-4-summary")
        await chat.locator(".gauge").focus()
        await page.keyboard.press("Enter")
        card = chat.locator(".context")
        await card.wait_for(timeout=SECONDS)
        counts = [int((await each.inner_text()).replace(",", "")) for each in await card.locator("td:visible").all()]
        assert sum(counts) == WINDOW
        await shoot(page, f"{shot}-5-parts")
        await page.keyboard.press("Escape")
        assert not await card.is_visible()

        # by hand: typed, then with the button, which has nothing new to do
        asked = len(served.requests)
        await send(chat, "/compact the last part")
        await making.wait_for(timeout=SECONDS)
        await made.nth(1).wait_for(timeout=SECONDS)
        assert len(served.requests) == asked + 1
        assert "the last part" in served.requests[-1].body.decode()
        await command(page, "Amanu: Show Context Usage")
        button = card.locator("button", has_text="Compact")
        await button.wait_for(timeout=SECONDS)
        assert await button.is_disabled()
        await shoot(page, f"{shot}-6-by-hand")
        await send(chat, "By hand: go on")
        await answered(chat, "As you say")
        assert not served.refused and not served.lint
