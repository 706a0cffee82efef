"""A model that plans: it proposes to, writes the plan, revises it when it is sent back, and carries it out once it is
approved. A compaction may come between the two turns."""

import json
import re

from support.strict_services.http import Received, Say, ToolUse

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
