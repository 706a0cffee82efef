"""VS Code as it is delivered: with its own AI features, and with its question whether a folder is trusted."""

import asyncio
from pathlib import Path
from typing import Any

from support.strict_services.http import Say, ToolUse
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    command,
    offered_keys,
    ready,
    send,
    service,
    shoot,
    until,
    workbench,
)
from support.vscode_stage import chat_of

pytestmark = IN_VSCODE
BEFORE = "".join(f"line {n}\n" for n in range(1, 31))


def write(name: str, *lines: int) -> ToolUse:
    return ToolUse("write_file", {"path": name, "content": content(*lines)})


def content(*lines: int) -> str:
    return "".join(f"line {n}{'!' if n in lines else ''}\n" for n in range(1, 31))


async def trusted_chat(page: Any) -> Any:
    """The chat of a window whose folder the user trusts at VS Code's own question."""
    restricted = page.locator(".statusbar-item", has_text="Restricted Mode")
    await restricted.click(timeout=SECONDS)
    await page.locator(".workspace-trust-editor .monaco-button", has_text="Trust").first.click(timeout=SECONDS)
    await restricted.wait_for(state="detached", timeout=SECONDS)
    await shoot(page, "stock-1-trusted")
    await page.locator(".modal-editor-part .codicon-close").last.click(timeout=SECONDS)
    await page.locator(".modal-editor-part").wait_for(state="detached", timeout=SECONDS)
    await command(page, "Amanu: Open Chat")
    chat = chat_of(page)
    await chat.locator("textarea").first.wait_for(timeout=SECONDS)
    await ready(page)
    await shoot(page, "stock-2-ready")
    await offered_keys(page, "Use for Amanu")
    return chat


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
        chat = await trusted_chat(page)
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


async def test_three_sessions_with_one_shared_file_stay_apart(tmp_path: Path) -> None:
    """Review, next, accept, reject and accept all in each. What another session proposes does not move."""
    folder = tmp_path / "work"
    folder.mkdir()
    names = ("a.txt", "b.txt", "c.txt", "shared.txt")
    for name in names:
        (folder / name).write_text(BEFORE)
    owners = {"Alpha": ("a.txt", 5), "Beta": ("b.txt", 15), "Gamma": ("c.txt", 25)}
    says = [Say(text=f"{who}.", calls=[write(own, 3, 20), write("shared.txt", n)]) for who, (own, n) in owners.items()]
    says += [Say(text=f"{who} is decided.") for who in reversed(owners)]

    async def open_session(chat: Any, who: str) -> None:
        await send(chat, "/sessions")
        await chat.locator(".sessions li", has_text=who).locator(".open").click()  # closing the review took the focus
        await chat.locator("h2.title", has_text=who).wait_for(timeout=SECONDS)

    async with (
        service("anthropic", says) as (served, environment),
        workbench(tmp_path, environment, stock=True) as page,
    ):
        key = page.keyboard
        chat = await trusted_chat(page)
        for who in owners:
            await command(page, "Amanu: New Session")
            await chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
            await send(chat, who)
            await until(chat.locator(".approval:visible").count, 2)
        expected = dict.fromkeys(names, BEFORE)
        shared: list[int] = []
        for who, (own, line) in reversed(owners.items()):
            if who != "Gamma":
                await open_session(chat, who)
            await asyncio.sleep(0.6)  # an answer before that is not taken
            await chat.locator(".changes button", has_text="Review").click()
            tab = page.locator(".tab.active", has_text="(2 files)")
            await tab.wait_for(timeout=SECONDS)
            at = '.statusbar-item [aria-label^="Ln {}, "]'
            await page.locator(at.format(3)).wait_for(timeout=SECONDS)
            await shoot(page, f"three-1-{who}")
            for there in (20, line, 3):  # round and round
                await key.press("Control+Alt+j")
                await page.locator(at.format(there)).wait_for(timeout=SECONDS)
                await tab.wait_for(timeout=SECONDS)
            await key.press("Control+Alt+y")
            await page.locator(at.format(20)).wait_for(timeout=SECONDS)
            await key.press("Control+Alt+n")
            await page.locator(at.format(line)).wait_for(timeout=SECONDS)
            await shoot(page, f"three-2-{who}")
            await command(page, "Amanu: Accept and Keep All Changes of Session")
            await answered(chat, f"{who} is decided")
            await tab.wait_for(state="detached", timeout=SECONDS)
            shared.append(line)
            expected |= {own: content(3), "shared.txt": content(*shared)}
            assert {name: (folder / name).read_text() for name in names} == expected
            await shoot(page, f"three-3-{who}")
        assert not served.refused
