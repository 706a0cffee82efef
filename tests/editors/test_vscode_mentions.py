"""What goes along with a prompt by an `@` or a `#`, in a real VS Code: files used lately first, symbols and problems of
the editor, uncommitted changes, what a terminal shows; and that it shows nothing is said. And that a terminal's output
is fixed."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

from support.strict_services.http import Say
from support.vscode import IN_VSCODE, SECONDS, answered, command, open_chat, open_file, service, shoot, workbench

pytestmark = IN_VSCODE


async def test_what_goes_along(lived_in: Path) -> None:
    workspace = lived_in / "work"
    (workspace / "src").mkdir(parents=True)
    for name in ("a.py", "src/cart.py", "src/shop.json", "ignored.log"):
        (workspace / name).write_text("total = 1\n")
    (workspace / ".gitignore").write_text("*.log\n")
    git(workspace, "init", "-q")
    git(workspace, "add", ".")
    git(workspace, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    (workspace / "src" / "cart.py").write_text("total = 2\n")
    script = [Say(text=text) for text in ("I see it.", "None there.", "No such file.", "It is not there.", "Made it.")]
    settings = {"terminal.integrated.gpuAcceleration": "off"}  # its text is in the page then
    async with (
        service("anthropic", script) as (served, environment),
        workbench(lived_in, environment, settings=settings) as page,
    ):
        chat = await open_chat(page)
        await open_file(page, "cart.py")
        await open_file(page, "shop.json")
        box = chat.locator("textarea")
        assert (await offered(chat, box, "#"))[:2] == ["@src/shop.json", "@src/cart.py"]
        await shoot(page, "mentions-1-recent")
        everything = await offered(chat, box, "@")
        assert {"@problems", "@diff", "@terminal", "@symbol:", "@src/", "@a.py"} <= {*everything}
        assert "@ignored.log" not in everything
        await box.fill("")
        await box.press_sequentially("What of @terminal")
        await chat.locator(".completion li", has_text="@terminal").wait_for(timeout=SECONDS)
        await box.press("Tab")
        await box.press("Enter")
        await chat.locator(".told", has_text="There is no terminal output to send").wait_for(timeout=SECONDS)
        await answered(chat, "I see it.")

        await box.fill("And with @diff and @problems and @src/ now?")
        await box.press("Escape")
        await box.press("Enter")
        await answered(chat, "None there.")
        sent = served.requests[-1].body.decode()
        assert "+total = 2" in sent and "shop.json" in sent
        await shoot(page, "mentions-2-sent")

        # a terminal whose shell tells where commands end
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await command(page, "Terminal: Create New Terminal")
        await page.locator(".xterm-rows > div", has_text="work").first.wait_for(timeout=SECONDS)
        await page.evaluate("navigator.clipboard.writeText('mine')")
        await page.keyboard.type("ls /none; echo al$(echo pha)\n")
        await page.locator(".terminal-command-decoration.success").wait_for(timeout=SECONDS)
        await box.fill("And @terminal ?")
        await box.press("Escape")
        await box.press("Enter")
        await answered(chat, "No such file.")
        sent = served.requests[-1].body.decode()
        assert "alpha" in sent and "No such file or directory" in sent
        await fix(page, "Fix with Amanu")
        await answered(chat, "It is not there.")
        sent = served.requests[-1].body.decode().rpartition("Fix what went wrong")[2]
        assert "alpha" in sent and "No such file or directory" in sent

        # what is selected there
        await page.locator(".xterm-rows > div", has_text="alpha").dblclick(position={"x": 10, "y": 5}, force=True)
        await fix(page, "Add to Amanu Chat")
        await chat.locator(".chips .chip", has_text="Terminal").wait_for(timeout=SECONDS)
        await fix(page, "Fix with Amanu")
        await answered(chat, "Made it.")
        sent = served.requests[-1].body.decode().rpartition("Fix what went wrong")[2]
        assert "alpha" in sent and "No such file or directory" not in sent
        assert await page.locator(".notification-toast").count() == 0
        assert await page.evaluate("navigator.clipboard.readText()") == "mine"
        assert not served.refused and not served.lint


async def fix(page: Any, title: str) -> None:
    """Choose that in the menu of the terminal."""
    await page.locator(".xterm-screen").first.click(button="right", position={"x": 10, "y": 5})
    row = page.locator(".context-view .action-label", has_text=title)
    await row.wait_for(timeout=SECONDS)
    await asyncio.sleep(0.5)  # VS Code takes no click in a menu that opens
    await row.click()


async def offered(chat: Any, box: Any, text: str) -> list[str]:
    """What is offered once that is typed."""
    await box.fill("")
    await box.press_sequentially(text)
    rows = chat.locator(".completion li")
    await rows.first.wait_for(timeout=SECONDS)
    return [(await row.locator("span:not(.codicon):not(.aside)").first.inner_text()) for row in await rows.all()]


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)
