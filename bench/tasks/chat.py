"""In the conversation: another model, an old prompt edited, a link followed, a turn stopped."""

from bench.tasks.hand import PALETTE, Hand
from bench.tasks.task import Stage, Task
from support.strict_services.http import Say
from support.vscode import SECONDS, answered, send, until


class ChangeModel(Task):
    name = "5-change-model"
    title = "Change the model"
    begins = "A new session; the focus is in the prompt box."

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        await hand.click(stage.chat.locator("button.model"))
        row = stage.page.locator(".quick-input-list .monaco-list-row", has_text="Claude Opus 5.5").first
        await hand.decisive(row)
        await hand.click(row)

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        await hand.press("Control+Alt+.")
        await stage.page.locator(f"{PALETTE} input.input:focus").wait_for(timeout=SECONDS)
        await hand.type("opus 5.5")
        await until(stage.page.locator(f"{PALETTE} .monaco-list-row").count, 1)
        await hand.decisive(stage.page.locator(PALETTE), "Claude Opus 5.5")
        await hand.choose("Claude Opus 5.5")

    async def result(self, stage: Stage) -> None:
        await stage.result(stage.chat.locator("button.model", has_text="Claude Opus 5.5"))


class ResendEdited(Task):
    name = "6-resend-edited"
    title = "Resend an old prompt, edited"
    begins = "A session of three turns, of which the second's prompt is to be edited; the focus is in the prompt box."
    script = {
        "Which rivers": [Say(text="Elbe, Rhine and Danube.")],
        "In which countries, in order": [Say(text="In the order of their length.")],
        "In which countries": [Say(text="In ten of them.")],
        "Which is longest": [Say(text="The Danube.")],
    }

    async def prepare(self, stage: Stage) -> None:
        for prompt, answer in (
            ("Which rivers", "Elbe"),
            ("In which countries", "ten"),
            ("Which is longest", "The Dan"),
        ):
            await send(stage.chat, prompt)
            await answered(stage.chat, answer)

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        prompt = stage.chat.locator(".card.user", has_text="In which countries")
        await prompt.hover()
        await hand.decisive(prompt)
        await hand.click(prompt.locator(".edit"))
        await self._edit(stage, hand)
        send = stage.page.locator(".quick-input-list .monaco-list-row", has_text="Send")
        await hand.click(send.first)

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        await hand.command("edit and resend", "Amanu: Edit and Resend")
        await stage.page.locator(".quick-input-title", has_text="Edit and Resend").wait_for(timeout=SECONDS)
        await hand.decisive(stage.page.locator(PALETTE), "Which is longest", "In which countries")
        await hand.choose("In which countries")
        await self._edit(stage, hand)
        await hand.decisive(stage.page.locator(PALETTE), "Send again from here", "2 turns leave", moment="sure")
        await hand.press("Enter")

    async def result(self, stage: Stage) -> None:
        await stage.result(stage.chat.locator(".answer", has_text="order of their length"))

    async def _edit(self, stage: Stage, hand: Hand) -> None:
        await stage.chat.locator("textarea:focus").wait_for(timeout=SECONDS)
        await hand.type(", in order")
        await hand.press("Enter")
        await stage.page.locator(".quick-input-title", has_text="Send again").wait_for(timeout=SECONDS)


class FollowLink(Task):
    name = "7-follow-link"
    title = "Follow a file link in an answer"
    begins = "The answer has just come; the focus is in the prompt box."
    script = {"Where is the sum": [Say(text="It is made in [src/till.py](src/till.py:40), once a purchase.")]}

    async def prepare(self, stage: Stage) -> None:
        file = stage.folder / "src" / "till.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"line_{n} = {n}\n" for n in range(1, 101)))
        await send(stage.chat, "Where is the sum?")
        await answered(stage.chat, "once a purchase")

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        link = stage.chat.locator(".answer a")
        await hand.decisive(link)
        await hand.click(link)

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        await hand.tab_to(stage.chat, ".answer a")
        await hand.decisive(stage.chat.locator(".answer"), 'focus: link "src/till.py', "once a purchase")
        await hand.press("Enter")

    async def result(self, stage: Stage) -> None:
        await stage.result(stage.page.locator(".statusbar-item", has_text="Ln 40, Col 1"))


class Stop(Task):
    name = "8-stop"
    title = "Stop a running turn"
    begins = "The answer streams; the focus is in the prompt box, where the prompt was sent."
    script = {"Count for me": [Say(text=["One ", "two "], delay=0.3, repeat=400)]}

    async def prepare(self, stage: Stage) -> None:
        await send(stage.chat, "Count for me")
        await answered(stage.chat, "One two")

    async def pointer(self, stage: Stage, hand: Hand) -> None:
        await hand.decisive(stage.chat.locator(".composer"))
        await hand.click(stage.chat.locator(".stop"))

    async def keyboard(self, stage: Stage, hand: Hand) -> None:
        await hand.decisive(stage.chat.locator(".composer"), 'focus: textbox "Prompt for Amanu"', 'button "Stop"')
        await hand.press("Escape")
        await self.result(stage)
        await hand.decisive(stage.chat.locator(".standing"), "said: ", "Stopped.", moment="stopped")

    async def result(self, stage: Stage) -> None:
        await stage.result(stage.chat.locator(".standing", has_text="Stopped"))
