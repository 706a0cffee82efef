"""One session in three clients: begun over ACP, decided in Neovim hunk by hunk, finished in the terminal."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from amanu_protocol.items import Answer, Thought, ToolCall, UserMessage
from amanu_protocol.state import SessionState
from e2e.test_acp import EDIT, READ, session
from e2e.test_cli_chat import Screen
from e2e.test_prompt_to_edit import SERVE, TWELVE, editor
from editors.test_neovim import OPEN, STATE
from support.acp_client import AcpClient, acp_client, text_prompt
from support.neovim import Neovim
from support.required_programs import needs
from support.strict_services.http import Say

FIRST_HUNK = TWELVE.replace("line 2\n", "line two\n")
TEXTS = ("user_message_chunk", "agent_thought_chunk", "agent_message_chunk")


def decide(vim: Neovim) -> None:
    """The first hunk is accepted, the second rejected, and from now on edits need no approval."""
    vim.keys(":Amanu<CR>")  # it finds the session that waits in this folder
    vim.until(f"{STATE} and #{STATE}.approvals > 0")
    vim.wait_for_answers()
    assert "change it" in vim.chat()
    vim.keys("<Esc><C-w>hgg]a<Space>aa")
    vim.until(f"{OPEN} == 1")
    vim.until_text(FIRST_HUNK.rstrip())
    vim.answer("eleven stays a number")
    vim.keys("gg]a<Space>ar")
    vim.until(f"{STATE}.lastTurn")
    vim.keys(":Amanu /mode acceptEdits<CR>")
    vim.until(f"{STATE}.mode == 'acceptEdits'")


def finish(session_id: str, folder: Path) -> None:
    """One more prompt, typed at a terminal."""
    screen = Screen("--session", session_id, cwd=folder)
    try:
        screen.sees("› change it")
        screen.sees("Understood.")
        screen.takes_prompts()
        screen.types("is that all?\r")
        screen.sees("› is that all?")
        screen.sees("That is all.")
        screen.takes_prompts()  # the prompt is back
        screen.types("\x04")
        assert screen.leaves() == 0
    finally:
        screen.close()


def conversation(client: AcpClient) -> list[dict[str, Any]]:
    """What a user of that client sees: texts put together, and calls as their last update left them."""
    shown: dict[str, dict[str, Any]] = {}
    for update in client.updates:
        kind = update["sessionUpdate"]
        if kind in TEXTS:
            before = shown.get(update["messageId"], {"text": ""})
            shown[update["messageId"]] = {"kind": kind, "text": before["text"] + update["content"]["text"]}
        elif kind in ("tool_call", "tool_call_update"):
            fields = {key: value for key, value in update.items() if key not in ("sessionUpdate", "sessionId")}
            shown[update["toolCallId"]] = {**shown.get(update["toolCallId"], {}), **fields}
    return list(shown.values())


def outline(shown: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Of a text its kind and itself, of a call its title and status."""
    return [(each["kind"], each["text"]) if "text" in each else (each["title"], each["status"]) for each in shown]


def outline_of(state: SessionState) -> list[tuple[str, str]]:
    """The same of the daemon's state."""
    told: list[tuple[str, str]] = []
    for item in state.items:
        match item:
            case UserMessage(text=text):
                told.append(("user_message_chunk", text))
            case Thought(text=text):
                told.append(("agent_thought_chunk", text))
            case Answer(text=text):
                told.append(("agent_message_chunk", text))
            case ToolCall(title=title, state="succeeded"):
                told.append((title, "completed"))
            case _:
                raise AssertionError(item)
    return told


def filled(value: Any) -> Any:
    """Without what is null or empty: Lua tells those apart from nothing in other ways."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: kept for key, each in fields.items() if (kept := filled(each)) not in (None, {}, [])}
    return [filled(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


@pytest.mark.place
async def test_begun_over_acp_decided_in_neovim_finished_in_the_terminal(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvim = needs("nvim")
    script = [READ, EDIT, Say(text="Understood."), Say(text="That is all.")]
    async with session(script, tmp_path) as (client, session_id, served, environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        ended = client.begin("session/prompt", text_prompt(session_id, "change it"))
        asked = await client.permission()
        vim = await asyncio.to_thread(Neovim, nvim, tmp_path_factory.mktemp("v"), tmp_path, ["notes.txt"], cmd=SERVE)
        try:
            await asyncio.to_thread(decide, vim)
            assert await ended == {"stopReason": "end_turn"}
            assert asked["id"] in client.withdrawn
            assert (tmp_path / "notes.txt").read_text() == FIRST_HUNK
            assert "eleven stays a number" in served.requests[2].body.decode()
            call_id = asked["params"]["toolCall"]["toolCallId"]
            call = next(each for each in conversation(client) if each.get("toolCallId") == call_id)
            diffs = [content for content in call["content"] if content["type"] == "diff"]
            assert [(each["oldText"], each["newText"]) for each in diffs] == [(TWELVE, FIRST_HUNK)]

            await asyncio.to_thread(finish, session_id, tmp_path)
            await client.until(lambda client: client.text().endswith("That is all."))
            assert client.text("user_message_chunk") == "is that all?", "its own prompt it shows itself"
            await asyncio.to_thread(
                vim.until, f"not {STATE}.turn and {STATE}.items[#{STATE}.items].text == ...", "That is all."
            )
            in_neovim = await asyncio.to_thread(vim.lua, f"return {STATE}")
        finally:
            await asyncio.to_thread(vim.close)

        async with editor(environment) as other, acp_client(environment) as loading:
            await other.attach(session_id)
            state = other.state
            assert state is not None and state.mode == "acceptEdits"
            assert [hunk.state for hunk in state.proposals[0].files[0].hunks] == ["applied", "rejected"]
            assert filled(in_neovim) == filled(state.model_dump(mode="json", by_alias=True))

            await loading.initialize()
            where: dict[str, Any] = {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []}
            loaded = await loading.request("session/load", where)
            assert loaded["modes"]["currentModeId"] == state.mode
            assert client.of_kind("current_mode_update")[-1]["currentModeId"] == state.mode
            replayed = conversation(loading)
            own = {"kind": "user_message_chunk", "text": "change it"}
            trust, *heard = conversation(client)
            assert trust["title"].startswith("Do you trust")
            assert [own, *heard] == replayed
            assert outline(replayed) == outline_of(state)
        assert not served.refused and not served.lint
