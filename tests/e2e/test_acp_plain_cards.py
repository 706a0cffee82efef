"""`amanu acp` with a client that shows little of a permission request: CodeCompanion knows options by their kind."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from amanu.frontends.acp.plain_cards import adapted_request
from amanu.frontends.acp.schema import ClientFeatures
from e2e.test_acp import ASK, COMMAND, EDIT
from e2e.test_prompt_to_edit import TWELVE, service, stop_daemon
from support.acp_client import AcpClient, acp_client, new_session, text_prompt
from support.strict_services.http import Say, Script, Service

NAME = "CodeCompanion.nvim"


@asynccontextmanager
async def session(script: Script, root: Path) -> AsyncGenerator[tuple[AcpClient, str, Service]]:
    (root / "notes.txt").write_text(TWELVE)
    async with AsyncExitStack() as stack:
        served, model_id, keys = await stack.enter_async_context(service("anthropic", script))
        client = await stack.enter_async_context(acp_client({**keys, "AMANU_MODEL": model_id}))
        info = {"name": NAME, "version": "1"}
        await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": info})
        yield client, await new_session(client, root), served
    stop_daemon()


async def asked(client: AcpClient) -> tuple[dict[str, Any], dict[str, str]]:
    """The permission request that waits, and what pressing the key of a kind answers: the last of that kind."""
    request = await client.permission()
    kinds = [option["kind"] for option in request["params"]["options"]]
    assert len(set(kinds)) == len(kinds), "two lines that read the same"
    return request, {option["kind"]: option["optionId"] for option in request["params"]["options"]}


async def test_a_key_grants_no_more_than_is_written_beside_it(tmp_path: Path) -> None:
    async with session([COMMAND, EDIT, Say(text="Done.")], tmp_path) as (client, session_id, _):
        ended = client.begin("session/prompt", text_prompt(session_id, "make it"))
        request, options = await asked(client)
        title = request["params"]["toolCall"]["title"]
        assert "This folder is not trusted" in title and "- Always accept: Trust this folder" in title
        client.choose(request, options["allow_always"])

        request, options = await asked(client)
        assert options == {"allow_once": "allow-0", "allow_always": "session", "reject_once": "reject"}
        title = request["params"]["toolCall"]["title"]
        assert "```sh\n$ touch made.txt\necho done\n```" in title, "all of the command"
        assert "Needs approval" in title
        assert "- Accept: Allow once\n- Always accept: Allow for this session: " in title
        await asyncio.sleep(0.6)
        client.choose(request, options["allow_once"])

        request, options = await asked(client)
        assert options == {"allow_once": "allow-0", "allow_always": "session", "reject_once": "reject"}
        call = request["params"]["toolCall"]
        assert (call["title"], call["content"][0]["type"]) == ("Edit notes.txt", "diff")
        await asyncio.sleep(0.6)
        client.choose(request, options["reject_once"])
        assert (await ended)["stopReason"] == "end_turn"
        assert (tmp_path / "made.txt").exists()
        assert (tmp_path / "notes.txt").read_text() == TWELVE


async def test_a_question_whose_answers_would_all_be_called_accept_is_asked_in_the_answer(tmp_path: Path) -> None:
    async with session([ASK, Say(text="SQLite or Postgres?")], tmp_path) as (client, session_id, served):
        ended = client.begin("session/prompt", text_prompt(session_id, "make a shop"))
        request, options = await asked(client)
        client.choose(request, options["reject_once"])  # the folder
        assert (await ended)["stopReason"] == "end_turn"
        assert "Ask in your answer" in served.requests[-1].body.decode()


def test_an_edit_of_two_files_shows_both() -> None:
    files = [
        {"type": "diff", "path": "/shop/a.py", "oldText": "one\n", "newText": "two\n"},
        {"type": "diff", "path": "/shop/b.py", "oldText": None, "newText": "```\n"},
    ]
    params: dict[str, Any] = {"toolCall": {"title": "Rename one", "content": files}, "options": []}
    assert adapted_request(params, ClientFeatures(name="another")) is params
    call = adapted_request(params, ClientFeatures(name=NAME))["toolCall"]
    assert call["content"][0]["type"] == "content", "or the first diff would be all"
    assert call["content"][1:] == files
    for line in ("Rename one", "-one", "+two", "+++ b//shop/b.py", "+```"):
        assert line in call["title"].split("\n"), call["title"]


def test_a_diff_is_not_all_that_is_shown_where_rows_go_with_it() -> None:
    diff: dict[str, Any] = {"type": "diff", "path": "/shop/a.py", "oldText": "one\n", "newText": "two\n"}
    rows = {"type": "content", "content": {"type": "text", "text": "```\nlogo.png: binary file, 4,096 bytes\n```"}}
    params: dict[str, Any] = {"toolCall": {"title": "Draw a logo", "content": [diff, rows]}, "options": []}
    features = ClientFeatures(name=NAME)
    assert adapted_request(params, features)["toolCall"] is params["toolCall"]
    call = adapted_request(params, features, diff_is_all=False)["toolCall"]
    assert call["content"] == [rows, diff]
    for line in ("Draw a logo", "logo.png: binary file, 4,096 bytes", "-one", "+two"):
        assert line in call["title"].split("\n"), call["title"]
