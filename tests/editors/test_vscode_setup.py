"""Somebody has just installed the .vsix and has no `amanu`: install, doctor, walkthrough, tour, key, first answer.

Run by `make test-vscode`. What pip installs comes from a folder that the Makefile filled; screenshots of each stage are
left in `AMANU_SCREENSHOTS`, if that is set.
"""

import asyncio
import json
import os
from pathlib import Path

import pytest

from support.fresh_machine import bare
from support.strict_services.anthropic import Anthropic
from support.strict_services.http import Say
from support.vscode import IN_VSCODE, SECONDS, command, open_view, ready, shoot, workbench

WHEELHOUSE = os.environ.get("AMANU_WHEELHOUSE", "")
pytestmark = [pytest.mark.skipif(not WHEELHOUSE, reason="run by make test-vscode"), *IN_VSCODE]
MINUTES = 2 * 60_000
KEY = "sk-ant-typed-by-the-user"
QUICK = {"PIP_NO_COMPILE": "1"}
"""To compile all that is installed is half of what an installation costs; Python compiles what it imports."""


async def test_from_nothing_to_the_first_answer(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    trap(workspace)
    model = Anthropic([Say(text="Here I **am**.")])
    url = await model.start()
    environment = {"ANTHROPIC_BASE_URL": url}
    index = tmp_path / "index"
    index.symlink_to(WHEELHOUSE)
    variables = {**bare(workspace, str(index)), **QUICK}
    try:
        async with workbench(tmp_path, environment, amanu="", variables=variables) as page:
            chat = await open_view(page)
            await chat.locator(".hindrance", has_text="not installed yet").wait_for(timeout=SECONDS)
            await shoot(page, "setup-1-missing")
            await chat.locator(".hindrance button", has_text="Install Amanu's daemon").click()
            await chat.locator(".hindrance", has_text="Installing Amanu's daemon").wait_for(timeout=SECONDS)
            await page.locator(".notification-toast", has_text="packages").first.wait_for(timeout=SECONDS)
            await shoot(page, "setup-2-installing")
            await ready(page, MINUTES)
            assert not (workspace / "trapped").exists(), "a Python of the workspace was started"

            # no key yet: the chat says so, and the tour needs none
            await chat.locator(".hindrance", has_text="needs a model").wait_for(timeout=SECONDS)
            await shoot(page, "setup-3-no-key")
            await chat.locator(".hindrance button", has_text="Try it without a key").click()
            await chat.locator(".answer", has_text="a script that plays").wait_for(timeout=SECONDS)
            for _ in range(2):
                await chat.locator(".approval:visible .allow").wait_for(timeout=SECONDS)
                await asyncio.sleep(0.7)  # an answer within half a second is not taken
                await shoot(page, "setup-4-tour")
                await chat.locator(".approval:visible .allow").click()
                await chat.locator(".approval:visible .allow").wait_for(state="hidden", timeout=SECONDS)
            await chat.locator(".answer", has_text="That is how it goes").wait_for(timeout=SECONDS)
            await shoot(page, "setup-5-toured")
            assert "never forced" in (workspace / "amanu-tour.md").read_text()

            await command(page, "Amanu: Doctor")
            await page.locator(".view-line", has_text="installed").first.wait_for(timeout=SECONDS)
            await shoot(page, "setup-6-doctor")
            assert "doctor" in (await page.locator(".tab.active").inner_text()).lower()
            await command(page, "Amanu: Report a Problem")
            await page.locator(".view-line", has_text="problem report").first.wait_for(timeout=SECONDS)
            await shoot(page, "setup-6-report")
            await page.set_viewport_size({"width": 1700, "height": 850})
            await command(page, "Amanu: Getting Started")
            step = page.locator(".getting-started-step")
            await step.filter(has_text="Install the daemon").locator(".codicon.complete").wait_for(timeout=SECONDS)
            await step.filter(has_text="Choose a model").click()
            await (
                page.frame_locator('iframe.webview:not([src*="webviewView"])')
                .frame_locator("#active-frame")
                .locator("h3", has_text="Where keys are")
                .wait_for(timeout=SECONDS)
            )
            await shoot(page, "setup-7-walkthrough")
            await step.locator(".monaco-button", has_text="Set API Key").click()
            row = page.locator(".quick-input-list .monaco-list-row", has_text="Claude models")
            await row.wait_for(timeout=SECONDS)
            await shoot(page, "setup-8-providers")
            await row.click()
            secret = page.locator('.quick-input-widget input[type="password"]')
            box = page.locator(".quick-input-widget .quick-input-message")
            await secret.fill("export KEY=sk", timeout=SECONDS)
            await box.filter(has_text="A key contains no spaces").wait_for(timeout=SECONDS)
            await secret.fill("sk-ant-wrong")
            await secret.press("Enter")
            await box.filter(has_text="Anthropic does not accept this key").wait_for(timeout=SECONDS)
            await shoot(page, "setup-8-refused")
            await secret.fill(KEY)
            await secret.press("Enter")
            await chat.locator(".told", has_text="Anthropic accepts the key. Claude Sonnet").wait_for(timeout=SECONDS)
            await chat.locator(".hindrance").wait_for(state="hidden", timeout=SECONDS)
            await chat.locator("textarea").fill("Are you there?")
            await chat.locator("textarea").press("Enter")
            await chat.locator(".answer strong", has_text="am").wait_for(timeout=SECONDS)
            await shoot(page, "setup-9-answer")
            prompt = next(each for each in model.requests if each.method == "POST")
            assert KEY in "".join(prompt.headers.values()), "the key that was typed is the one that is used"
            assert not model.refused and not model.lint

            # the extension was updated meanwhile, to one that brings all packages: it brings its daemon up to date
            index.unlink()
            bring_packages(tmp_path)
            (pointer,) = (tmp_path / "user").glob("**/daemon/current.json")
            first = json.loads(pointer.read_text())
            pointer.write_text(json.dumps({**first, "id": "0.0.9-before", "version": "0.0.9"}))
            await page.reload()
            await page.locator(".notification-toast", has_text="Updating Amanu's daemon").wait_for(timeout=SECONDS)
            await ready(page, MINUTES)
            second = json.loads(pointer.read_text())
            assert second["id"] == first["id"] and second["folder"] != first["folder"]
            await chat.locator(".answer strong", has_text="am").wait_for(timeout=SECONDS)
    finally:
        await model.stop()


async def test_what_stands_in_the_way_is_said(tmp_path: Path) -> None:
    """No package can be had: a sentence, no stack trace; then the user cancels a second attempt."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    empty = tmp_path / "empty"
    empty.mkdir()
    variables = {**bare(workspace, WHEELHOUSE), "PIP_FIND_LINKS": str(empty)}
    async with workbench(tmp_path, {}, amanu="", variables=variables) as page:
        chat = await open_view(page)
        await chat.locator(".hindrance button", has_text="Install Amanu's daemon").click(timeout=SECONDS)
        await page.locator(".notification-toast", has_text="could not be installed").wait_for(timeout=MINUTES)
        await chat.locator(".hindrance", has_text="no ready-made package").wait_for(timeout=SECONDS)
        await shoot(page, "setup-a-failed")
        await page.locator(".notification-toast .monaco-button", has_text="Try Again").click()
        await page.locator(".notification-toast .monaco-button", has_text="Cancel").click(timeout=SECONDS)
        await chat.locator(".hindrance", has_text="not installed yet").wait_for(timeout=SECONDS)
        await command(page, "Amanu: Doctor")
        await page.locator(".view-line", has_text="There is no daemon to ask").wait_for(timeout=SECONDS)
        await page.locator(".notification-toast .monaco-button", has_text="Install the Daemon").wait_for(
            timeout=SECONDS
        )
        await shoot(page, "setup-b-doctor")


def bring_packages(folder: Path) -> None:
    """Make the extension that is installed there one for this platform alone (wheels.py)."""
    (file,) = (folder / "ext").glob("*/dist/daemon/bundle.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "pythons": ["3.11"]}))
    (file.parent / "wheels").symlink_to(WHEELHOUSE)


def trap(workspace: Path) -> None:
    """A Python and an amanu in the workspace that tell when they are started."""
    folder = workspace / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python3.11", "python3", "python", "amanu"):
        program = folder / name
        program.write_text(f"#!/bin/sh\ntouch {workspace / 'trapped'}\n")
        program.chmod(0o755)
