"""Many sessions: two that wait are answered, one of last week is found."""

import asyncio
import os

from bench.tasks.hand import PALETTE, Hand
from bench.tasks.stage import LAST_WEEK
from bench.tasks.task import Stage, Task
from support.strict_services.http import Say, ToolUse
from support.vscode import SECONDS, answered, send, until


def run(line: str) -> ToolUse:
    return ToolUse("run_shell_command", {"command": line})


def job(number: str) -> list[Say]:
    return [
        Say(text=f"Working on the {number}.", calls=[run(f"cat {number}-gate")]),
        Say(text="Now this.", calls=[run(f"touch {number}-made")]),
        Say(text=f"The {number} is done."),
    ]


class TwoWait(Task):
    name = "3-two-wait"
    title = "Two sessions wait for approval: answer both"
    begins = "A third, new session is on the screen; two others have just begun to wait, each for a command."
    script = {f"The {number} job": job(number) for number in ("first", "second")}

    async def prepare(self, stage: Stage) -> None:
        for number in ("first", "second"):
            os.mkfifo(stage.folder / f"{number}-gate")
            await send(stage.chat, f"The {number} job")
            await answered(stage.chat, f"Working on the {number}")
            await send(stage.chat, "/new")
            await stage.chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
        for number in ("first", "second"):
            await asyncio.to_thread((stage.folder / f"{number}-gate").write_text, "go\n")
            await self._toast(stage, number).hover(timeout=SECONDS)  # it stays while the pointer rests on it
        await asyncio.sleep(0.6)  # an answer before that is not taken

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        await hand.decisive(stage.page.locator(".notifications-toasts"))
        for number in ("first", "second"):
            await hand.click(self._toast(stage, number).locator(".monaco-button", has_text="Allow"))

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        for number in ("first", "second"):
            await hand.press("Control+Alt+Enter")
            title = stage.page.locator(".quick-input-title", has_text=f"touch {number}-made")
            await title.wait_for(timeout=SECONDS)
            words = (f"Run touch {number}-made", "Allow once", "Reject")
            await hand.decisive(stage.page.locator(PALETTE), *words, moment=number)
            await hand.press("Enter")
            await title.wait_for(state="hidden", timeout=SECONDS)

    async def result(self, stage: Stage) -> None:
        for number in ("first", "second"):
            made = stage.folder / f"{number}-made"
            await until(lambda made=made: asyncio.to_thread(made.exists), True)
        await until(stage.page.locator('.statusbar-item [aria-label*="job” waits"]').count, 0)

    def _toast(self, stage: Stage, number: str):
        return stage.page.locator(".notification-toast", has_text=f"“The {number} job” is waiting for you: Run touch")


class FindLastWeeks(Task):
    name = "10-last-week"
    title = "Find last week's session"
    begins = "A new session; more than 24 older ones, one a day; the focus is in the prompt box."

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        await hand.click(stage.page.locator('.part.auxiliarybar .action-label[aria-label^="Sessions"]').first)
        row = stage.chat.locator(".sessions li", has_text=LAST_WEEK)
        await row.wait_for(timeout=SECONDS)
        while not await row.evaluate(VISIBLE):
            await hand.scroll(stage.chat.locator(".sessions .groups"), 300)
            await asyncio.sleep(0.1)
        await hand.decisive(row)
        await hand.click(row.locator(".open"))

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        await hand.type("/sessions")
        await hand.press("Enter")
        await stage.chat.locator(".sessions input:focus").wait_for(timeout=SECONDS)
        await hand.type("totals")
        await until(stage.chat.locator(".sessions li").count, 1)
        await hand.decisive(stage.chat.locator(".sessions"), 'searchbox "Search sessions"', LAST_WEEK, "7 d")
        await hand.press("Enter")

    async def result(self, stage: Stage) -> None:
        await stage.result(stage.chat.locator("h2.title", has_text=LAST_WEEK))
        await stage.result(stage.chat.locator(".card.user"))


VISIBLE = """each => {
    const own = each.getBoundingClientRect(), list = each.closest('.groups').getBoundingClientRect();
    return own.top >= list.top && own.bottom <= list.bottom;
}"""
