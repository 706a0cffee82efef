"""Sub-agents in a real VS Code: two edit the same file and both proposals are reviewed, one in the chat and one in its
diff; another is stopped; a session of theirs is opened, and left again."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from amanu.home import find_home
from support.agent_session import complete, user_agent
from support.scripted_session import call, step
from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, command, open_chat, send, service, shoot, until, workbench

pytestmark = IN_VSCODE

LINES = "".join(f"line {n}\n" for n in range(1, 13))
CHANGED = LINES.replace("line 2\n", "line 2\nmore\nand more\n").replace("line 11\n", "line eleven\n")


def editor(old: str, new: str) -> list[dict[str, Any]]:
    """The steps of an agent that replaces a text in notes.txt."""
    edit = call("edit_file", path="notes.txt", edits=[{"old_text": old, "new_text": new}])
    return [
        step("I look first.", call("read_file", path="notes.txt")),
        step("", edit),
        step("It is done.", complete("Changed as asked.")),
    ]


def asks(name: str, task: str) -> ToolUse:
    return ToolUse("run_agent", {"agent": name, "prompt": f"{task}.", "description": task})


async def test_two_agents_edit_one_file_and_a_third_is_stopped(lived_in: Path, tmp_path: Path) -> None:
    notes = lived_in / "work" / "notes.txt"
    notes.write_text(LINES)
    user_agent(tmp_path, "top", editor("line 2\n", "line 2\nmore\nand more\n"))
    user_agent(tmp_path, "end", editor("line 11\n", "line eleven\n"))
    user_agent(tmp_path, "slow", [step("x", delay_ms=600_000)])
    calls = [asks("top", "add two lines"), asks("end", "spell a number"), asks("slow", "think about it")]
    script = [Say(text="Three of them.", calls=calls), Say(text="Both are in.")]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Change both places")
        agents = chat.locator(".list > .agent")
        top, end, slow = (agents.filter(has_text=name) for name in ("top: ", "end: ", "slow: "))
        await until(chat.locator(".approval:visible").count, 2)
        assert await chat.locator(".list > .tool").count() == 0, "what agents do stands below their calls"
        await top.locator(".activity", has_text="Waiting for your answer").wait_for(timeout=SECONDS)
        await chat.locator(".standing .waiting", has_text="2 decisions pending").wait_for(timeout=SECONDS)
        item = page.locator('.statusbar-item[id="amanu.amanu.amanu.jobs"]')
        await item.filter(has_text="3").wait_for(timeout=SECONDS)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await shoot(page, "agents-1-asked")

        # folded away it says that it waits, and is found again
        fold = end.locator(".fold")
        await fold.focus()
        await page.keyboard.press("Enter")
        await end.locator(".below").wait_for(state="hidden", timeout=SECONDS)
        await end.locator(".activity", has_text="Waiting for your answer").wait_for(timeout=SECONDS)
        await page.keyboard.press("Enter")
        await end.locator(".approval:visible").wait_for(timeout=SECONDS)

        # the one that only thinks is stopped in the list of what runs
        await item.locator("a").click()
        row = page.locator(".quick-input-list .monaco-list-row", has_text="slow: think about it")
        await row.wait_for(timeout=SECONDS)
        await shoot(page, "agents-2-list")
        await row.hover()
        await row.locator(".action-label.codicon-debug-stop").click()
        await slow.locator(".head .state", has_text="Cancelled").wait_for(timeout=SECONDS)
        await slow.locator(".below").wait_for(state="hidden", timeout=SECONDS)

        # the first proposal in the chat, the second in its diff, moved along
        assert "Apply this change by the agent top?" in await top.locator(".approval:visible .why").inner_text()
        await top.locator(".approval:visible .allow").click()
        await top.locator(".head .state", has_text="Completed").wait_for(timeout=SECONDS)
        await until(chat.locator(".approval:visible").count, 1)
        await command(page, "Amanu: Show Proposed Changes")
        await page.locator(".tab.active", has_text="notes.txt").wait_for(timeout=SECONDS)
        accept = page.locator(".codelens-decoration a", has_text="Accept")
        await accept.last.wait_for(timeout=SECONDS)
        await shoot(page, "agents-3-diff")
        await accept.last.click()
        await answered(chat, "Both are in.")
        assert notes.read_text() == CHANGED

        # what has ended is folded, but not what the user opened
        await top.locator(".below").wait_for(state="hidden", timeout=SECONDS)
        assert await end.locator(".below").is_visible()
        await shoot(page, "agents-4-ended")

        # its session has everything, and the way back leads to the card
        await end.get_by_role("button", name="Open the session of end").click()
        await chat.locator("nav.parent", has_text="end").wait_for(timeout=SECONDS)
        await (
            chat.locator(".list > .tool", has_text="complete_task")
            .or_(chat.locator(".list > .answer", has_text="It is done."))
            .first.wait_for(timeout=SECONDS)
        )
        await shoot(page, "agents-5-opened")
        await page.keyboard.press("Enter")  # the way back has the focus
        await end.wait_for(timeout=SECONDS)
        await chat.locator("nav.parent").wait_for(state="hidden", timeout=SECONDS)
        await end.locator("button.open:focus").wait_for(timeout=SECONDS)
        assert not served.refused


async def test_an_agent_is_stopped_on_its_card_and_the_turn_goes_on(lived_in: Path, tmp_path: Path) -> None:
    (lived_in / "work" / "notes.txt").write_text(LINES)
    reads = step("", call("read_file", path="notes.txt"))
    user_agent(tmp_path, "slow", [reads, step("x", delay_ms=600_000)])
    script = [Say(text="", calls=[asks("slow", "think about it")]), Say(text="Without it, then.")]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Ask it")
        slow = chat.locator(".list > .agent")
        await slow.locator(".items .tool", has_text="Read notes.txt").wait_for(timeout=SECONDS)
        await slow.get_by_role("button", name="Stop slow").click()
        await answered(chat, "Without it, then.")
        await slow.locator(".head .state", has_text="Cancelled").wait_for(timeout=SECONDS)
        assert not served.refused


async def test_its_own_session_is_stopped_and_goes_on_after_it_has_ended(lived_in: Path, tmp_path: Path) -> None:
    (lived_in / "work" / "notes.txt").write_text(LINES)
    reads = step("", call("read_file", path="notes.txt"))
    user_agent(tmp_path, "slow", [reads, step("x", delay_ms=600_000)])
    script = [Say(text="", calls=[asks("slow", "think about it")]), Say(text="Without it, then.")]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Ask it")
        slow = chat.locator(".list > .agent")
        await slow.locator(".items .tool", has_text="Read notes.txt").wait_for(timeout=SECONDS)
        await slow.get_by_role("button", name="Open the session of slow").click()
        back = chat.locator("nav.parent button:focus")
        await back.wait_for(timeout=SECONDS)
        await chat.locator(".list > .looked .tool", has_text="Read notes.txt").wait_for(timeout=SECONDS)
        await chat.get_by_role("button", name="Stop", exact=True).click()
        await chat.locator(".standing", has_text="Stopped.").wait_for(timeout=SECONDS)
        await asyncio.sleep(1)  # its session is closed behind it
        await send(chat, "Go on by yourself")
        await chat.locator(".user", has_text="Go on by yourself").wait_for(timeout=SECONDS)
        await chat.locator(".standing .running").wait_for(timeout=SECONDS)
        await chat.get_by_role("button", name="Stop", exact=True).click()
        await chat.locator(".standing", has_text="Stopped.").wait_for(timeout=SECONDS)
        await chat.locator("nav.parent button").click()
        await answered(chat, "Without it, then.")
        assert not served.refused


async def test_what_a_reviewer_found_stands_beside_its_line(window: Path) -> None:
    (window / "work" / "notes.txt").write_text(LINES)
    finding = {"path": "notes.txt", "line": 3, "severity": "warning", "message": "This line says nothing."}
    steps = window / "reviewer.json"
    steps.write_text(json.dumps([step("", call("complete_task", summary="One thing.", findings=[finding]))]))
    routing = f"[routing]\nsubagent = {json.dumps(f'scripted:{steps}')}\n"
    (find_home(os.environ).make().config / "config.toml").write_text(routing)
    script = [Say(text="", calls=[asks("reviewer", "review the notes")]), Say(text="One finding.")]
    async with service("anthropic", script) as (served, environment), workbench(window, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Review it")
        await answered(chat, "One finding.")
        await chat.locator(".notice a.file", has_text="notes.txt:3").click()
        await page.locator('.statusbar-item [aria-label*="Ln 3"]').wait_for(timeout=SECONDS)
        await page.locator(".comment-range-glyph.comment-thread").click()
        await page.locator(".review-widget", has_text="This line says nothing.").wait_for(timeout=SECONDS)
        await shoot(page, "agents-6-finding")
        await page.locator(".review-widget .action-label[aria-label*='Dismiss Finding']").click()
        await until(page.locator(".comment-range-glyph.comment-thread").count, 0)
        assert not served.refused
