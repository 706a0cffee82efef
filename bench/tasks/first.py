"""From nothing to the first answer."""

from bench.tasks.hand import PALETTE, Hand
from bench.tasks.task import Stage, Task
from support.strict_services.http import Say
from support.vscode import ready

KEY = "sk-ant-copied-from-the-console"
MINUTES = 3 * 60_000


class FirstAnswer(Task):
    name = "1-first-answer"
    title = "First answer from nothing"
    begins = "The extension was just installed; no daemon, no key; the key is on the clipboard."
    script = {"Are you there": [Say(text="Here I am, ready to work.")]}

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        chat, page = stage.chat, stage.page
        await hand.click(page.locator('.part.auxiliarybar [aria-label="Amanu"]').first)
        await hand.click(chat.locator(".hindrance button", has_text="Install Amanu's daemon"))
        await ready(page, MINUTES)
        await hand.decisive(chat.locator(".hindrance"))
        await hand.click(chat.locator(".hindrance button", has_text="Set API key"))
        await hand.click(page.locator(".quick-input-list .monaco-list-row", has_text="Claude models"))
        await self._give_key(stage, hand)
        await hand.decisive(chat.locator(".told", has_text="Anthropic accepts the key"), moment="key")
        await hand.type("Are you there?")
        await hand.press("Enter")

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        chat, page = stage.chat, stage.page
        await hand.command("install the daemon", "Amanu: Install the Daemon")
        await ready(page, MINUTES)
        await hand.command("set api key", "Amanu: Set API Key")
        await page.locator(".quick-input-title", has_text="API Keys").wait_for(timeout=MINUTES)
        await hand.type("anth")
        await hand.decisive(page.locator(PALETTE), "API Keys", "Anthropic", "Claude models")
        await hand.choose("Anthropic")
        await self._give_key(stage, hand)
        await hand.type("Are you there?")
        await hand.press("Enter")
        await self.result(stage)
        await hand.decisive(chat.locator(".list"), "Here I am", "Amanu has finished", moment="answer")

    async def result(self, stage: Stage) -> None:
        await stage.result(stage.chat.locator(".answer", has_text="Here I am"))

    async def _give_key(self, stage: Stage, hand: Hand) -> None:
        await stage.page.locator('.quick-input-widget input[type="password"]:focus').wait_for(timeout=MINUTES)
        await hand.paste(KEY)
        await hand.press("Enter")
        await stage.chat.locator("textarea:focus").wait_for(timeout=MINUTES)
