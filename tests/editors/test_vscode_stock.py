"""VS Code as it is delivered: with its own AI features, and with its question whether a folder is trusted."""

import asyncio
from pathlib import Path

from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, ready, send, service, shoot, until, workbench
from support.vscode_stage import chat_of

pytestmark = IN_VSCODE
BEFORE = "".join(f"line {n}\n" for n in range(1, 31))


def write(name: str, *lines: int) -> ToolUse:
    content = "".join(f"line {n}{'!' if n in lines else ''}\n" for n in range(1, 31))
    return ToolUse("write_file", {"path": name, "content": content})


async def test_from_the_question_of_trust_to_an_accepted_review(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(BEFORE)
    says = [Say(text="Two files.", calls=[write("a.txt", 3, 20), write("b.txt", 7)]), Say(text="Both are decided.")]
    async with (
        service("anthropic", says) as (served, environment),
        workbench(tmp_path, environment, stock=True) as page,
    ):
        restricted = page.locator(".statusbar-item", has_text="Restricted Mode")
        await restricted.click(timeout=SECONDS)
        await page.locator(".workspace-trust-editor .monaco-button", has_text="Trust").first.click(timeout=SECONDS)
        await restricted.wait_for(state="detached", timeout=SECONDS)
        await shoot(page, "stock-1-trusted")
        await page.locator(".modal-editor-part .codicon-close").last.click(timeout=SECONDS)
        await page.locator(".modal-editor-part").wait_for(state="detached", timeout=SECONDS)
        await page.keyboard.press("Control+Alt+i")
        chat = chat_of(page)
        await chat.locator("textarea").first.wait_for(timeout=SECONDS)
        await ready(page)
        await shoot(page, "stock-2-ready")
        await send(chat, "Change two files")
        await until(chat.locator(".approval:visible").count, 2)
        await asyncio.sleep(0.6)  # an answer before that is not taken
        await shoot(page, "stock-3-asked")

        await chat.locator(".changes button", has_text="Review").click()
        tab = page.locator(".tab.active", has_text="Changes to review (2 files)")
        await tab.wait_for(timeout=SECONDS)
        for line in (3, 20, 7):
            await page.locator(f'.statusbar-item [aria-label^="Ln {line}, "]').wait_for(timeout=SECONDS)
            await shoot(page, f"stock-4-line-{line}")
            await page.keyboard.press("Control+Alt+y")
        await answered(chat, "Both are decided")
        await tab.wait_for(state="detached", timeout=SECONDS)
        await shoot(page, "stock-5-decided")
        assert "line 3!" in (folder / "a.txt").read_text() and "line 20!" in (folder / "a.txt").read_text()
        assert "line 7!" in (folder / "b.txt").read_text()
        assert not served.refused
