"""One session in two faces at once: an editor that speaks ACP and one that speaks plain LSP, each deciding an edit."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from pytest_lsp import LanguageClient

from e2e.test_plain_editor import FIRST, FIXED, SECOND, SERVE, SHOP, begin, edit
from support.acp_client import acp_client
from support.plain_editor import WarmServer
from support.running_daemon import signal_daemon

HALF = SHOP.replace("item.price for", "item.price * item.quantity for")
STEPS: list[dict[str, Any]] = [
    {"text": "One.", "calls": [edit("item.price for", "item.price * item.quantity for")]},
    {"text": "Two.", "calls": [edit("amount > LIMIT", "amount >= LIMIT")]},
    {"text": "Done."},
]


@pytest_lsp.fixture(config=WarmServer(server_command=SERVE))  # pyright: ignore[reportUntypedFunctionDecorator]
async def plain(lsp_client: LanguageClient) -> AsyncGenerator[None]:
    yield
    with contextlib.suppress(Exception):
        async with asyncio.timeout(50):
            await lsp_client.shutdown_session()
    signal_daemon()


def diffs(shown: list[dict[str, Any]]) -> list[tuple[str, str]]:
    contents = [content for update in shown for content in update.get("content") or () if content["type"] == "diff"]
    return [(content["oldText"], content["newText"]) for content in contents]


@pytest.mark.parametrize("first_by", ["acp", "plain"])
async def test_each_face_sees_what_the_other_decides(plain: LanguageClient, tmp_path: Path, first_by: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    shop = (folder / "shop.py").resolve()
    shop.write_text(SHOP)
    editor = await begin(plain, shop, STEPS)
    await editor.command("amanu.prompt", "mend it")
    await editor.until(lambda: len(editor.messages(shop)) == 1)
    async with acp_client() as acp:
        await acp.initialize()
        (listed,) = (await acp.request("session/list", {"cwd": str(folder)}))["sessions"]
        where: dict[str, Any] = {"sessionId": listed["sessionId"], "cwd": str(folder), "mcpServers": []}
        await acp.request("session/load", where)

        asked = await acp.permission()
        assert diffs([asked["params"]["toolCall"]]) == [(SHOP, HALF)]
        assert [each.range.start.line for each in editor.diagnostics(shop)] == [FIRST]
        await asyncio.sleep(0.55)  # no answer counts before somebody can have read the question
        if first_by == "acp":
            acp.choose(asked, "allow-0")
        else:
            await editor.act("Amanu: accept this change", shop, FIRST)
            await acp.until(lambda acp: asked["id"] in acp.withdrawn)
        await editor.until(lambda: editor.text(shop) == HALF)

        second = await acp.until(lambda acp: next((each for each in acp.asked if each["id"] != asked["id"]), None))
        assert diffs([second["params"]["toolCall"]]) == [(HALF, FIXED)]
        await editor.until(lambda: [each.range.start.line for each in editor.diagnostics(shop)] == [SECOND])
        await asyncio.sleep(0.55)
        if first_by == "acp":
            await editor.act("Amanu: reject this change", shop, SECOND)
            await acp.until(lambda acp: second["id"] in acp.withdrawn)
        else:
            acp.choose(second, "reject")
        await editor.until(lambda: editor.messages(shop) == [])
        await acp.until(lambda acp: acp.text().endswith("Done."))
        assert editor.text(shop) == HALF
        ended = {
            update["toolCallId"]: update["status"] for update in acp.of_kind("tool_call_update") if "status" in update
        }
        assert [*ended.values()] == ["completed", "failed"], json.dumps(acp.updates)[:2000]

        await editor.act("Amanu: undo the last turn's changes", shop)
        await editor.until(lambda: editor.text(shop) == SHOP)
    assert shop.read_text() == SHOP, "this editor cannot be told to save"
