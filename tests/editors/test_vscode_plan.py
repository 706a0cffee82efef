"""Plan mode in a real VS Code: proposed by the model, the plan edited and commented on as a document, approved into
`acceptEdits`, its to-dos ticked, with a compaction in the middle."""

import asyncio
from pathlib import Path

from support.planner import Planner
from support.vscode import IN_VSCODE, SECONDS, answered, asked, command, open_chat, send, service, shoot, workbench

pytestmark = IN_VSCODE


async def test_a_plan(lived_in: Path) -> None:
    folder = lived_in / "work"
    (folder / "hello.txt").write_text("hi\n")
    planner = Planner()
    async with service("anthropic", planner.answer) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Greet politely")

        # the model proposes to plan, and the user agrees
        allow = await asked(chat)
        await chat.locator(".approval:visible", has_text="There are several ways to greet.").wait_for(timeout=SECONDS)
        await shoot(page, "plan-1-enter")
        await allow.click()

        # the plan is a document; a comment on a line sends it back
        await page.locator(".tab.active", has_text="plan.md").wait_for(timeout=SECONDS)
        await chat.locator(".approval:visible .open-plan").wait_for(timeout=SECONDS)
        await shoot(page, "plan-2-proposed")
        await page.locator(".editor-instance .view-line", has_text="None").first.click()
        await command(page, "Amanu: Comment on Selection")
        await page.locator(".quick-input-widget", has_text="Comment on line").wait_for(timeout=SECONDS)
        comment = page.locator(".quick-input-widget input[type=text]")
        await comment.fill("What if somebody likes the old one?")
        box = page.locator(".quick-input-widget:visible", has_text="Comment on line")
        while await box.count():  # a busy window may not hear the first Enter; F1 would close the box, and drop it
            await comment.press("Enter")
            await asyncio.sleep(0.5)
        await shoot(page, "plan-3-comment")
        await command(page, "Amanu: Send Comments")

        # revised, in the document that is open; the user adds a step of their own and approves what they see
        await page.locator(".editor-instance .view-line", has_text="like").first.wait_for(timeout=SECONDS)
        assert "What if somebody likes the old one?" in planner.last
        await asked(chat)
        await page.locator(".editor-instance .view-line", has_text="Read").first.click()
        await page.keyboard.press("End")
        await page.keyboard.type("\n3. Tell everybody")
        await shoot(page, "plan-4-edited")
        await (await asked(chat)).first.click()
        await answered(chat, "Half of it is done.")
        assert (folder / "hello.txt").read_text() == "Good morning\n"
        assert "3. Tell everybody" in planner.last
        await chat.locator(".todos", has_text="1 of 2").wait_for(timeout=SECONDS)
        await shoot(page, "plan-5-todos")

        # after a compaction the model has the plan and the list from the daemon
        await send(chat, "/compact")
        await chat.locator(".notice", has_text="Compacted").wait_for(timeout=SECONDS)
        await send(chat, "Go on")
        await answered(chat, "The plan is carried out.")
        assert planner.last.count("3. Tell everybody") == 1
        assert "Mode: acceptEdits" in planner.last
        await shoot(page, "plan-6-done")
        assert not served.refused
        assert not served.lint
