"""ACP sessions: listed, loaded, shared with other clients, and what outlives whom."""

import asyncio
import contextlib
import json
import os
import platform
import signal
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from e2e.test_acp import COMMAND, EDIT, READ, session, trusting
from e2e.test_prompt_to_edit import TWELVE, editor, service
from support.acp_client import AcpError, acp_client, new_session, text_prompt
from support.required_programs import needs_mcp_server
from support.running_daemon import daemon_pid, signal_daemon
from support.strict_services.http import Say

# Sessions --------------------------------------------------------------------------------------------


async def test_load_replays_before_it_answers_and_resume_does_not(tmp_path: Path) -> None:
    script = [READ, Say(text="Twelve lines."), Say(text="Again.")]
    async with session(script, tmp_path) as (client, session_id, _, environment):
        await client.request("session/prompt", text_prompt(session_id, "read it"))
        where: dict[str, Any] = {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []}
        async with acp_client(environment) as other:
            await other.initialize()
            listed = (await other.request("session/list", {"cwd": str(tmp_path)}))["sessions"]
            assert [(each["sessionId"], each["cwd"]) for each in listed] == [(session_id, str(tmp_path))]
            loaded = await other.request("session/load", where)
            assert loaded["modes"]["currentModeId"] == "ask"
            position = next(index for index, each in enumerate(other.messages) if each.get("result") == loaded)
            replayed = [each["params"]["update"] for each in other.messages[:position] if "params" in each]
            assert [each["content"]["text"] for each in replayed if each["sessionUpdate"] == "user_message_chunk"] == [
                "read it"
            ]
            assert other.text() == "I read it.Twelve lines."
            assert all("messageId" in each for each in replayed if each["sessionUpdate"].endswith("_chunk"))
            calls = [each for each in replayed if each["sessionUpdate"] == "tool_call"]
            assert [(each["title"], each["status"]) for each in calls] == [("Read notes.txt", "completed")]
            # What happens in one client is seen in the other.
            await client.request("session/prompt", text_prompt(session_id, "once more"))
            await other.until(lambda other: other.text().endswith("Again."))
            assert other.text("user_message_chunk") == "read itonce more"
        async with acp_client(environment) as other:
            await other.initialize()
            await other.request("session/resume", where)
            await other.until(lambda other: other.of_kind("available_commands_update"))
            assert other.text("user_message_chunk") + other.text() == ""
        await client.request("session/close", {"sessionId": session_id})
        with pytest.raises(AcpError) as caught:
            await client.request("session/prompt", text_prompt(session_id, "hello?"))
        assert caught.value.code == -32002
        await client.request("session/delete", {"sessionId": session_id})
        assert (await client.request("session/list", {}))["sessions"] == []


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/load", {"sessionId": "unknown", "cwd": "{root}", "mcpServers": []}, -32002),
        ("session/resume", {"sessionId": "{session}", "cwd": "/", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "relative", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "{root}/no-such-folder", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "/C:/shop", "mcpServers": []}, -32602),
        ("session/new", {"mcpServers": []}, -32602),
        ("session/prompt", {"sessionId": "{session}", "prompt": []}, -32602),
        ("session/prompt", {"sessionId": "{session}", "prompt": [{"type": "audio"}]}, -32602),
        ("session/prompt", {"sessionId": "unknown", "prompt": [{"type": "text", "text": "x"}]}, -32002),
        ("session/set_mode", {"sessionId": "{session}", "modeId": "yolo"}, -32602),
        ("session/set_config_option", {"sessionId": "{session}", "configId": "colour", "value": "red"}, -32602),
        ("session/set_config_option", {"sessionId": "{session}", "configId": "model", "value": "no:model"}, -32602),
        ("authenticate", {"methodId": "magic"}, -32602),
        ("session/fork", {"sessionId": "{session}"}, -32601),
        ("_vendor/extension", {}, -32601),
    ],
)  # fmt: skip
async def test_bad_requests_get_errors(tmp_path: Path, method: str, params: dict[str, Any], code: int) -> None:
    async with session([], tmp_path) as (client, session_id, _, _):
        text = json.dumps(params).replace("{root}", str(tmp_path)).replace("{session}", session_id)
        with pytest.raises(AcpError) as caught:
            await client.request(method, json.loads(text))
        assert caught.value.code == code
        assert len(str(caught.value)) > 10
        if "C:" in text:
            assert str(caught.value).startswith(
                f"cwd: /C:/shop is not a folder on {platform.node()}, where Amanu runs: "
            )


async def test_a_second_prompt_is_refused_while_one_runs(tmp_path: Path) -> None:
    async with session([COMMAND, Say(text="Done.")], tmp_path) as (client, session_id, _, _):
        ended = client.begin("session/prompt", text_prompt(session_id, "make it"))
        await client.permission()
        with pytest.raises(AcpError) as caught:
            await client.request("session/prompt", text_prompt(session_id, "and this"))
        assert caught.value.code == -32600
        client.notify("session/cancel", {"sessionId": session_id})
        assert (await ended)["stopReason"] == "cancelled"


async def test_absent_lists_are_empty_and_unknown_fields_are_ignored(tmp_path: Path) -> None:
    async with session([Say(text="Hello.")], tmp_path) as (client, _, _, _):
        made = await client.request("session/new", {"cwd": str(tmp_path), "_meta": {"x": 1}, "mcpServers": None})
        prompt = {**text_prompt(made["sessionId"], "hi"), "_meta": {"traceparent": "00-1"}, "future": [1]}
        client.notify("_vendor/whatever", {"x": 1})
        assert (await client.request("session/prompt", prompt))["stopReason"] == "end_turn"


# Many clients, deaths --------------------------------------------------------------------------------


async def test_a_session_begun_here_is_decided_in_another_editor(tmp_path: Path) -> None:
    async with session([EDIT, Say(text="Done.")], tmp_path) as (client, session_id, _, environment):
        ended = client.begin("session/prompt", text_prompt(session_id, "change it"))
        asked = await client.permission()
        async with editor(environment) as other:
            await other.attach(session_id)
            state = await other.until(lambda state: state.approvals)
            proposal = state.proposals[0]
            first, second = proposal.files[0].hunks
            await asyncio.sleep(0.6)
            await other.ask(
                "proposal/resolve",
                sessionId=session_id,
                proposalId=proposal.proposal_id,
                version=proposal.version,
                hunks=[
                    {"hunkId": first.hunk_id, "decision": "accept"},
                    {"hunkId": second.hunk_id, "decision": "reject"},
                ],
            )
            assert (await ended)["stopReason"] == "end_turn"
        assert client.withdrawn == [asked["id"]], "and not asked again while the file is written"
        assert (tmp_path / "notes.txt").read_text() == TWELVE.replace("line 2\n", "line two\n")
        diffs = [
            content
            for each in client.of_kind("tool_call_update")
            for content in each.get("content") or ()
            if content["type"] == "diff"
        ]
        assert diffs[-1]["newText"] == TWELVE.replace("line 2\n", "line two\n"), "what was rejected is not shown"


@pytest.mark.parametrize("how", ["leaves", "is killed"])
async def test_a_client_that_goes_in_a_turn_decides_nothing(tmp_path: Path, how: str) -> None:
    async with session([COMMAND, Say(text="Done.")], tmp_path) as (client, session_id, _, environment):
        ended = client.begin("session/prompt", text_prompt(session_id, "make it"))
        ended.add_done_callback(lambda done: done.cancelled() or done.exception())
        await client.permission()
        await (client.leave() if how == "leaves" else client.kill())
        async with acp_client(environment) as other:
            await other.initialize()
            await other.request("session/load", {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []})
            asked = await other.permission()
            other.choose(asked, "allow-0")
            await other.until(lambda other: other.text().endswith("Done."))
        assert (tmp_path / "made.txt").exists()


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_a_session_that_is_closed_in_a_turn_answers_its_prompt(tmp_path: Path, method: str) -> None:
    async with session([COMMAND], tmp_path) as (client, session_id, _, _):
        ended = client.begin("session/prompt", text_prompt(session_id, "make it"))
        await client.permission()
        await client.request(method, {"sessionId": session_id})
        assert await ended == {"stopReason": "cancelled"}
        listed = (await client.request("session/list", {}))["sessions"]
        assert [each["sessionId"] for each in listed] == ([session_id] if method == "session/close" else [])
        assert not (tmp_path / "made.txt").exists()


async def test_a_session_in_which_nothing_was_said_is_not_kept(tmp_path: Path) -> None:
    async with session([], tmp_path) as (client, session_id, _, environment):
        await client.request("session/close", {"sessionId": session_id})
        other = await new_session(client, tmp_path)
        assert await client.leave() == 0
        async with acp_client(environment) as later:
            await later.initialize()
            assert (await later.request("session/list", {}))["sessions"] == [], other


async def test_without_the_daemon_all_sessions_are_of_one_core(tmp_path: Path) -> None:
    script = [Say(text="One."), Say(text="Two.")]
    async with (
        service("anthropic", script) as (_, model_id, keys),
        acp_client({**keys, "AMANU_MODEL": model_id}, "--alone") as client,
    ):
        client.answers["session/request_permission"] = trusting
        await client.initialize()
        sessions = [await new_session(client, tmp_path) for _ in range(2)]
        for session_id in sessions:
            answer = await client.request("session/prompt", text_prompt(session_id, "hello"))
            assert answer["stopReason"] == "end_turn"
        listed = (await client.request("session/list", {"cwd": str(tmp_path)}))["sessions"]
        assert {each["sessionId"] for each in listed} == set(sessions)
        await client.request("session/delete", {"sessionId": sessions[0]})
        assert len((await client.request("session/list", {}))["sessions"]) == 1
        assert await client.leave() == 0


async def test_a_daemon_that_dies_is_an_error_and_the_next_prompt_goes_to_another(tmp_path: Path) -> None:
    async with session([Say(text="Slow.", wait=30), Say(text="Hello.")], tmp_path) as (client, session_id, served, _):
        asked = asyncio.Event()
        served.on_request = lambda request: asked.set()
        ended = client.begin("session/prompt", text_prompt(session_id, "wait"))
        await asyncio.wait_for(asked.wait(), 15)
        signal_daemon(signal.SIGKILL)
        with pytest.raises(AcpError) as caught:
            await ended
        assert "daemon" in str(caught.value)
        assert (await client.request("session/prompt", text_prompt(session_id, "hello")))["stopReason"] == "end_turn"
        assert client.text().endswith("Hello.")


async def test_a_session_is_loaded_while_it_talks(tmp_path: Path) -> None:
    words = [f"{number} " for number in range(3_000)]
    script = [Say(text="First."), Say(text=words, delay=0.0005)]
    async with session(script, tmp_path) as (client, session_id, _, environment):
        await client.request("session/prompt", text_prompt(session_id, "one"))
        ended = client.begin("session/prompt", text_prompt(session_id, "two"))
        await client.until(lambda client: "1 2 3 " in client.text())
        async with acp_client(environment) as other:
            await other.initialize()
            await other.request("session/load", {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []})
            await ended
            await other.until(lambda other: other.text().endswith("2999 "))
            assert other.text() == "First." + "".join(words)
            assert other.text("user_message_chunk") == "onetwo"


async def test_a_daemon_that_cannot_be_reached_is_an_error_until_it_can(tmp_path: Path) -> None:
    async with session([Say(text="Hello.")], tmp_path) as (client, session_id, _, _):
        run, pid = find_home().runtime, daemon_pid()
        assert pid is not None
        hidden = run.with_name("hidden")
        run.rename(hidden)
        run.write_text("no folder")
        os.kill(pid, signal.SIGKILL)  # last, or a new one makes the folder first
        said = ""
        while "amanu doctor" not in said:
            with pytest.raises(AcpError) as caught:
                await client.request("session/prompt", text_prompt(session_id, "hello"), 60)
            said = str(caught.value)
            await asyncio.sleep(0.05)
        run.unlink()
        hidden.rename(run)
        answer: Any = None
        while answer is None:
            with contextlib.suppress(AcpError):
                answer = await client.request("session/prompt", text_prompt(session_id, "hello"), 60)
            await asyncio.sleep(0.05)
        assert answer["stopReason"] == "end_turn"


async def test_a_prompt_behind_a_turn_that_is_cancelled_is_given_back(tmp_path: Path) -> None:
    async with session([Say(text="Slow.", wait=30), Say(text="Hello.")], tmp_path) as (
        client,
        session_id,
        served,
        keys,
    ):
        started = asyncio.Event()
        served.on_request = lambda request: started.set()
        async with editor(keys) as other:
            await other.attach(session_id)
            sent = await other.ask("prompt/send", sessionId=session_id, promptId="p1", text="slow")
            await asyncio.wait_for(started.wait(), 15)
            ended = client.begin("session/prompt", text_prompt(session_id, "hello"))
            client.answers.clear()
            client.choose(await client.permission(), "trust")
            await other.until(lambda state: state.queue)
            await other.ask("turn/cancel", sessionId=session_id, turnId=sent["turnId"])
            with pytest.raises(AcpError) as caught:
                await ended
            assert "Send the prompt again" in str(caught.value)
            await other.until(lambda state: not state.queue)
        assert (await client.request("session/prompt", text_prompt(session_id, "hello")))["stopReason"] == "end_turn"


@pytest.mark.place
async def test_servers_that_are_handed_over_come_after_the_answer_and_before_the_first_turn(tmp_path: Path) -> None:
    async with session([Say(text="Hello.")], tmp_path) as (client, _, served, _):
        command, program = needs_mcp_server("server-everything")
        servers: list[dict[str, Any]] = [
            {"name": "every thing", "command": command, "args": [program], "env": []},
            {"name": "too long", "command": command, "args": [], "env": [{"name": "KEY", "value": "secret" * 10_000}]},
        ]
        made = await client.request("session/new", {"cwd": str(tmp_path), "mcpServers": servers})
        position = next(index for index, each in enumerate(client.messages) if each.get("result") == made)
        before = [
            each for each in client.messages[:position] if each.get("params", {}).get("sessionId") == made["sessionId"]
        ]
        assert before == []
        await client.request("session/prompt", text_prompt(made["sessionId"], "hello"))
        assert "mcp__every_thing__echo" in served.requests[0].body.decode()
        assert "too long" in client.text() and "secretsecret" not in json.dumps(client.messages)
