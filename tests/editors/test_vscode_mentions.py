"""What goes along with a prompt by an `@` or a `#`, in a real VS Code: files used lately first, symbols and problems of
the editor, uncommitted changes; and that there is no terminal's output is said."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.strict_services.http import Say
from support.vscode import SECONDS, VSCODE, answered, open_chat, open_file, service, shoot, workbench

pytestmark = [
    pytest.mark.skipif(not VSCODE, reason="run by make test-vscode"),
    pytest.mark.timeout(180),
]


async def test_what_goes_along(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    (workspace / "src").mkdir(parents=True)
    for name in ("a.py", "src/cart.py", "src/shop.json", "ignored.log"):
        (workspace / name).write_text("total = 1\n")
    (workspace / ".gitignore").write_text("*.log\n")
    git(workspace, "init", "-q")
    git(workspace, "add", ".")
    git(workspace, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    (workspace / "src" / "cart.py").write_text("total = 2\n")
    script = [Say(text="I see it."), Say(text="None there.")]
    async with service("anthropic", script) as (served, environment), workbench(tmp_path, environment) as page:
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
        assert not served.refused and not served.lint


async def offered(chat: Any, box: Any, text: str) -> list[str]:
    """What is offered once that is typed."""
    await box.fill("")
    await box.press_sequentially(text)
    rows = chat.locator(".completion li")
    await rows.first.wait_for(timeout=SECONDS)
    return [(await row.locator("span:not(.codicon):not(.aside)").first.inner_text()) for row in await rows.all()]


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)
