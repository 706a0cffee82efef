"""The stages of the plays: a machine on which the extension was just installed, and one in daily use."""

import os
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from amanu.home import Home, find_home
from amanu.storage.session_index import SessionIndex
from amanu_protocol.requests import SessionSummary
from bench import past
from bench.subjects.environment import environment
from bench.tasks.model import answering
from bench.tasks.task import Stage
from support.fresh_machine import bare
from support.strict_services.http import Step
from support.vscode import SECONDS, command, open_chat, service, workbench

MODEL = "anthropic:claude-sonnet-5-5"
KEPT = ("AMANU_VSCODE", "AMANU_WHEELHOUSE", "AMANU_SCREENSHOTS", "PYTHONPATH", "PLAYWRIGHT_NODEJS_PATH")
RULES = '[user]\nallow = ["run_shell_command(cat first-gate)", "run_shell_command(cat second-gate)"]\n'
DAY = 24 * 3600 * 1000
LAST_WEEK = "Round the totals of the till"
OLD = [LAST_WEEK if days == 7 else f"Work on part {days}" for days in range(1, 25)]
"""Titles of the sessions there were, one a day."""

READER = {"editor.accessibilitySupport": "on"}
"""What VS Code sets when a screen reader runs."""

Scripts = Sequence[Mapping[str, Sequence[Step]]]


@asynccontextmanager
async def fresh(folder: Path, scripts: Scripts, settings: Mapping[str, Any]) -> AsyncGenerator[Stage]:
    """VS Code as it opens after the extension was installed: no daemon, no key."""
    own_home(folder)
    workspace = _workspace(folder)
    wheelhouse = os.environ.get("AMANU_WHEELHOUSE", "")
    async with service("anthropic", answering(scripts)) as (_, keys):
        address = {"ANTHROPIC_BASE_URL": keys["ANTHROPIC_BASE_URL"]}
        variables = bare(workspace, wheelhouse)
        async with workbench(folder, address, settings=settings, amanu="", variables=variables) as page:
            await page.locator('.part.auxiliarybar [aria-label="Amanu"]').first.wait_for(timeout=SECONDS)
            chat = page.frame_locator('iframe.webview[src*="webviewView"]').frame_locator("#active-frame")
            yield Stage(page, workspace, chat)


@asynccontextmanager
async def daily(folder: Path, scripts: Scripts, settings: Mapping[str, Any]) -> AsyncGenerator[Stage]:
    """A connected chat, a model, and the sessions of some weeks."""
    home = own_home(folder)
    workspace = _workspace(folder)
    home.config.mkdir(parents=True)
    (home.config / "rules.toml").write_text(RULES)
    await _remember(home, workspace)
    async with (
        service("anthropic", answering(scripts)) as (_, keys),
        workbench(folder, keys, settings=settings) as page,
    ):
        yield Stage(page, workspace, await open_chat(page))


async def begin_anew(stage: Stage) -> None:
    """Whatever the play before left: no editor, no notification, a new session, the focus in the prompt box."""
    page = stage.page
    for _ in range(3):
        await page.keyboard.press("Escape")
    for title in ("View: Close All Editors", "Notifications: Clear All Notifications", "Amanu: New Session"):
        await command(page, title)
    await stage.chat.locator("h2.title", has_text="New session").wait_for(timeout=SECONDS)
    await stage.chat.locator("textarea").focus()


def own_home(folder: Path) -> Home:
    """No key, address or setting of whoever runs this."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    home = folder / "h"
    own = environment(home, AMANU_HOME=str(home / "a"), AMANU_CATALOGUE_REFRESH="false", **kept)
    os.environ.clear()
    os.environ.update(own)
    return find_home(os.environ)


def _workspace(folder: Path) -> Path:
    workspace = folder / "work"
    workspace.mkdir(parents=True)
    return workspace


async def _remember(home: Home, workspace: Path) -> None:
    home.make()
    index = await SessionIndex.open(home.sessions)
    for days, title in enumerate(OLD, 1):
        session_id = f"session-{days}"
        root = home.root
        assert root is not None
        await past.write(root, session_id, workspace, MODEL, past.SHORT, title)
        at = int(time.time() * 1000) - days * DAY
        summary = SessionSummary(
            session_id=session_id,
            title=title,
            roots=[str(workspace)],
            model_id=MODEL,
            created_at=at,
            updated_at=at,
            status="closed",
        )
        await index.put(summary)
    await index.close()
