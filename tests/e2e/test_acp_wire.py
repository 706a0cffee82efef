"""The lines of `amanu acp`: broken ones, long ones, many, and a client that does not read them."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from e2e.test_acp import session
from support.acp_client import AcpError, acp_client, text_prompt
from support.strict_services.http import Fault, Say


async def test_lines_that_are_no_messages(tmp_path: Path) -> None:
    async with session([Say(text="Schön.")], tmp_path) as (client, session_id, served, _):
        client.send_bytes(b"no json\n[]\n\n\r\n3\n")
        codes = await client.until(
            lambda client: (
                (errors := [each["error"]["code"] for each in client.messages if each.get("id", 0) is None])
                and len(errors) == 3
                and errors
            )
        )
        assert codes == [-32700, -32600, -32600]
        prompt = {
            "jsonrpc": "2.0",
            "id": "p",
            "method": "session/prompt",
            "params": text_prompt(session_id, "größer 😀"),
        }
        line = json.dumps(prompt, ensure_ascii=False).encode() + b"\n"
        for position in range(0, len(line), 7):
            client.send_bytes(line[position : position + 7])
            await asyncio.sleep(0)
        await client.until(lambda client: client.text() == "Schön.")
        assert "größer 😀" in json.loads(served.requests[0].body)["messages"][0]["content"][-1]["text"]


async def test_a_line_of_ten_megabytes(tmp_path: Path) -> None:
    async with session([Say(text="Long.")], tmp_path) as (client, session_id, _, _):
        prompt = text_prompt(session_id, "x")
        prompt["_meta"] = {"padding": "p" * 10_000_000}
        assert (await client.request("session/prompt", prompt))["stopReason"] == "end_turn"


async def test_a_flood_is_at_most_sixty_updates_a_second(tmp_path: Path) -> None:
    words = [f"{number} " for number in range(20_000)]
    flood = Say(text=words)
    async with session([flood], tmp_path) as (client, session_id, _, _):
        started = time.monotonic()
        await client.request("session/prompt", text_prompt(session_id, "talk"))
        seconds = time.monotonic() - started
        assert client.text() == "".join(words)
        assert len(client.of_kind("agent_message_chunk")) <= 20 + 60 * seconds


async def test_a_client_that_does_not_read_gets_everything_later(tmp_path: Path) -> None:
    words = [f"{number:>99} " for number in range(40_000)]
    async with session([Say(text=words)], tmp_path) as (client, session_id, _, _):
        assert client.process.stdout is not None
        client.pause()
        ended = client.begin("session/prompt", text_prompt(session_id, "talk"))
        await asyncio.sleep(2)
        client.resume()
        assert (await ended)["stopReason"] == "end_turn"
        assert client.text() == "".join(words)


async def test_before_initialize_nothing_is_answered_but_errors(tmp_path: Path) -> None:
    async with acp_client() as client:
        with pytest.raises(AcpError) as caught:
            await client.request("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert caught.value.code == -32600
        with pytest.raises(AcpError):
            await client.request("initialize", {"protocolVersion": "one"})
        assert (await client.request("initialize", {"protocolVersion": 7}))["protocolVersion"] == 1
        assert await client.leave() == 0


async def test_a_failure_of_the_service_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    fault = Fault("status", status=400, message="The request is odd.")
    async with session([fault, Say(text="Hello.")], tmp_path) as (client, session_id, _, _):
        with pytest.raises(AcpError) as caught:
            await client.request("session/prompt", text_prompt(session_id, "hello"))
        assert "The request is odd." in str(caught.value)
        assert (await client.request("session/prompt", text_prompt(session_id, "hello")))["stopReason"] == "end_turn"
