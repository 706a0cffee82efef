"""An edit in a real VS Code while the model still writes it: seen, followed, nothing to decide; then the question."""

from pathlib import Path

from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, asked, open_chat, send, service, shoot, workbench

pytestmark = IN_VSCODE

OLD = "".join(f"def old_{n}():\n    return {n}\n\n\n" for n in range(12))
NEW = OLD.replace("old_", "new_")


async def test_an_edit_is_seen_while_it_is_written(lived_in: Path) -> None:
    workspace = lived_in / "work"
    file = workspace / "code.py"
    file.write_text(OLD)
    edit = ToolUse("edit_file", {"path": "code.py", "old_text": OLD, "new_text": NEW})
    async with (
        service("anthropic", [Say(text="I rename them.", calls=[edit], delay=0.3)]) as (_, environment),
        workbench(lived_in, environment) as page,
    ):
        chat = await open_chat(page)
        await send(chat, "Rename them")
        live = chat.locator(".tool .live-edit:visible")
        await live.locator(".removed", has_text="return 10").wait_for(timeout=SECONDS)
        assert await chat.locator(".tool .title").text_content() == "Edit code.py"
        assert await live.evaluate(
            "box => box.scrollTop > 0 && box.scrollHeight - box.scrollTop - box.clientHeight < 9"
        )
        assert await chat.locator(".approval:visible, .hunk:visible").count() == 0
        await shoot(page, "live-edit-1-written")
        await asked(chat)
        assert await chat.locator(".live-edit:visible").count() == 0
        await shoot(page, "live-edit-2-asked")
    assert file.read_text() == OLD
