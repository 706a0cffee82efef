"""Plan mode in a real VS Code: proposed by the model, the plan edited and commented on as a document, approved into
`acceptEdits`, its to-dos ticked, with a compaction in the middle."""

import json
import re
from pathlib import Path

import pytest

from support.strict_services.http import Received, Say, ToolUse
from support.vscode import SECONDS, VSCODE, answered, asked, command, open_chat, send, service, shoot, workbench

pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(240),
]

PLAN = """# Greet politely

## Steps

1. Change the greeting in hello.txt
2. Read it again

## Risks

None that I know of.
"""
SUMMARY = "## Goal\nGreet politely.\n\n## Next step\nGo on with the plan.\n"


class Planner:
    """The model's side: it plans, listens to the comments, and carries the plan out."""

    def __init__(self) -> None:
        self.step = 0
        self.plan = ""
        """The path it was told."""
        self.last = ""
        """All that it was sent with the last request of the conversation."""

    def answer(self, received: Received) -> Say:
        body = received.json
        self_text = json.dumps(body, ensure_ascii=False)
        if not body.get("tools"):
            return Say(text=SUMMARY if "# The record" in self_text else json.dumps({"next_speaker": "user"}))
        self.last = self_text
        if (told := re.search(r"the only file you may write is the plan, (\S+?plan\.md)", self_text)) is not None:
            self.plan = told[1]
        self.step += 1
        done = [{"text": "Change the greeting in hello.txt", "status": "done"}]
        match self.step:
            case 1:
                calls = [ToolUse("enter_plan_mode", {"reason": "There are several ways to greet."})]
            case 2:
                calls = [ToolUse("write_file", {"path": self.plan, "content": PLAN}), ToolUse("exit_plan_mode", {})]
            case 3:
                revised = PLAN.replace("None that I know of.", "Somebody may like the old one.")
                calls = [ToolUse("write_file", {"path": self.plan, "content": revised}), ToolUse("exit_plan_mode", {})]
            case 4:
                edit = {"path": "hello.txt", "old_text": "hi", "new_text": "Good morning"}
                calls = [
                    ToolUse("write_todos", {"todos": [*done, {"text": "Read it again", "status": "in_progress"}]}),
                    ToolUse("edit_file", edit),
                ]
            case 5:
                return Say(text="Half of it is done.")
            case 6:
                todos = [*done, {"text": "Read it again", "status": "done"}]
                calls = [ToolUse("read_file", {"path": "hello.txt"}), ToolUse("write_todos", {"todos": todos})]
            case _:
                return Say(text="The plan is carried out.")
        return Say(text="", calls=calls)


async def test_a_plan(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "hello.txt").write_text("hi\n")
    planner = Planner()
    async with service("anthropic", planner.answer) as (served, environment), workbench(tmp_path, environment) as page:
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
        await page.locator(".quick-input-widget input[type=text]").fill("What if somebody likes the old one?")
        await page.keyboard.press("Enter")
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
