"""`amanu acp` through the real process and the real daemon, every message checked against the official schema."""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from e2e.test_prompt_to_edit import TWELVE, TWO_HUNKS, editor, service, stop_daemon
from support.acp_client import EVERYTHING, AcpClient, AcpError, acp_client, new_session, text_prompt
from support.required_programs import needs_mcp_server
from support.running_daemon import signal_daemon
from support.strict_services.http import Fault, Say, Script, Service, ToolUse

READ = Say(thought="**Looking** around", text="I read it.", calls=[ToolUse("read_file", {"path": "notes.txt"})])
EDIT = Say(text="Two changes.", calls=[ToolUse("write_file", {"path": "notes.txt", "content": TWO_HUNKS})])
COMMAND = Say(calls=[ToolUse("run_shell_command", {"command": "touch made.txt\necho done"})])
ASK = Say(
    calls=[
        ToolUse(
            "ask_user",
            {
                "questions": [
                    {
                        "header": "Database",
                        "question": "Which database?",
                        "options": [{"label": "SQLite", "description": "One file."}, {"label": "Postgres"}],
                    }
                ]
            },
        )
    ]
)


async def trusting(params: dict[str, Any]) -> Any:
    """Trusts the folder; fails on any other request."""
    option = params["options"][0]["optionId"]
    assert option == "trust", params["toolCall"]["title"]
    return {"outcome": {"outcome": "selected", "optionId": option}}


@asynccontextmanager
async def session(
    script: Script, root: Path, **capabilities: Any
) -> AsyncGenerator[tuple[AcpClient, str, Service, dict[str, str]]]:
    """A client with a session in a trusted folder, which holds notes.txt."""
    (root / "notes.txt").write_text(TWELVE)
    async with service("anthropic", script) as (served, model_id, keys):
        environment = {**keys, "AMANU_MODEL": model_id}
        async with acp_client(environment) as client:
            client.answers["session/request_permission"] = trusting
            await client.initialize(**capabilities)
            session_id = await new_session(client, root)
            client.answers["session/request_permission"] = _first_trust(client)
            yield client, session_id, served, environment
    stop_daemon()


def _first_trust(client: AcpClient) -> Any:
    async def answer(params: dict[str, Any]) -> Any:
        del client.answers["session/request_permission"]
        return await trusting(params)

    return answer


# The main job ----------------------------------------------------------------------------------------


async def test_a_prompt_is_thought_about_read_proposed_approved_and_applied(tmp_path: Path) -> None:
    async with session([READ, EDIT, Say(text="Done.")], tmp_path) as (client, session_id, served, _):
        answer = client.begin("session/prompt", text_prompt(session_id, "change it"))
        asked = await client.permission()
        call = asked["params"]["toolCall"]
        shown = next(each for each in client.of_kind("tool_call") if each["toolCallId"] == call["toolCallId"])
        assert shown["status"] == "pending", "the call comes before the question"
        assert (call["title"], call["kind"], call["status"]) == ("Edit notes.txt", "edit", "pending")
        diff = next(content for content in call["content"] if content["type"] == "diff")
        assert diff == {
            "type": "diff",
            "path": str(tmp_path / "notes.txt"),
            "oldText": TWELVE,
            "newText": TWO_HUNKS,
        }
        assert call["locations"][0] == {"path": str(tmp_path / "notes.txt"), "line": 2}
        options = {option["optionId"]: option for option in asked["params"]["options"]}
        assert [options[key]["kind"] for key in ("allow-0", "session", "reject")] == [
            "allow_once",
            "allow_always",
            "reject_once",
        ]
        assert "@write(notes.txt)" in options["session"]["name"]
        assert (tmp_path / "notes.txt").read_text() == TWELVE
        client.choose(asked, "allow-0")
        assert await answer == {"stopReason": "end_turn"}
        assert (tmp_path / "notes.txt").read_text() == TWO_HUNKS
        assert client.text("agent_thought_chunk") == "**Looking** around"
        assert client.text() == "I read it.Two changes.Done."
        assert client.of_kind("user_message_chunk") == [], "the client shows its own prompt itself"
        ended = [each for each in client.of_kind("tool_call_update") if each["toolCallId"] == call["toolCallId"]]
        assert ended[-1]["status"] == "completed"
        assert client.of_kind("usage_update")[-1]["size"] > 0
        assert "change it" in client.of_kind("session_info_update")[0]["title"]
        assert not served.refused and not served.lint


async def test_a_command_is_shown_whole_with_the_reason_it_is_asked_about(tmp_path: Path) -> None:
    async with session([COMMAND, Say(text="Done.")], tmp_path) as (client, session_id, _, _):
        answer = client.begin("session/prompt", text_prompt(session_id, "make it"))
        asked = await client.permission()
        call = asked["params"]["toolCall"]
        assert call["title"] == "`touch made.txt` (and 1 more line)"
        assert call["kind"] == "execute"
        assert call["rawInput"]["command"] == "touch made.txt\necho done"
        texts = [content["content"]["text"] for content in call["content"]]
        assert texts[0] == "```sh\n$ touch made.txt\necho done\n```"
        assert "Needs approval" in texts[-1]
        client.choose(asked, asked["params"]["options"][0]["optionId"])
        assert (await answer)["stopReason"] == "end_turn"
        last = [each for each in client.of_kind("tool_call_update") if each["toolCallId"] == call["toolCallId"]][-1]
        assert last["status"] == "completed"
        assert "done" in last["rawOutput"]["output"]
        assert (tmp_path / "made.txt").exists()


# Rejections and cancellation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"outcome": {"outcome": "selected", "optionId": "reject"}}},
        {"result": {"outcome": {"outcome": "selected", "optionId": "no such option"}}},
        {"result": {"outcome": {"outcome": "cancelled"}}},
        {"result": {}},
        {"result": "nonsense"},
        {"error": {"code": -32603, "message": "the card could not be drawn"}},
    ],
    ids=json.dumps,
)
async def test_any_response_but_an_approval_is_a_rejection(tmp_path: Path, answer: dict[str, Any]) -> None:
    async with session([COMMAND, Say(text="Pity.")], tmp_path) as (client, session_id, served, _):
        ended = client.begin("session/prompt", text_prompt(session_id, "make it"))
        asked = await client.permission()
        client.send({"id": asked["id"], **answer})
        assert (await ended)["stopReason"] == "end_turn"
        assert not (tmp_path / "made.txt").exists()
        assert client.of_kind("tool_call_update")[-1]["status"] == "failed"
        assert len(served.requests) == 2, "the model hears of it"


async def test_cancelled_while_a_permission_is_open(tmp_path: Path) -> None:
    async with session([COMMAND, Say(text="Hello.")], tmp_path) as (client, session_id, _, _):
        ended = client.begin("session/prompt", text_prompt(session_id, "make it"))
        asked = await client.permission()
        client.notify("session/cancel", {"sessionId": session_id})
        assert await ended == {"stopReason": "cancelled"}
        await client.until(lambda client: asked["id"] in client.withdrawn)
        client.choose(asked, "allow-0")  # too late
        assert (await client.request("session/prompt", text_prompt(session_id, "hello")))["stopReason"] == "end_turn"
        assert not (tmp_path / "made.txt").exists()


@pytest.mark.parametrize("how", ["session/cancel", "$/cancel_request"])
async def test_cancelled_before_the_first_token(tmp_path: Path, how: str) -> None:
    async with session([Say(text="Slow.", wait=30), Say(text="Hello.")], tmp_path) as (client, session_id, served, _):
        asked = asyncio.Event()
        served.on_request = lambda request: asked.set()
        ended = client.begin("session/prompt", text_prompt(session_id, "wait"))
        await asyncio.wait_for(asked.wait(), 15)
        if how == "session/cancel":
            client.notify(how, {"sessionId": session_id})
            assert await ended == {"stopReason": "cancelled"}
        else:
            client.notify(how, {"requestId": client.last_id})
            with pytest.raises(AcpError) as caught:
                await ended
            assert caught.value.code == -32800
        assert (await client.request("session/prompt", text_prompt(session_id, "hello")))["stopReason"] == "end_turn"


async def test_cancelled_at_once(tmp_path: Path) -> None:
    async with session([Say(text="One."), Say(text="Two.")], tmp_path) as (client, session_id, _, _):
        ended = client.begin("session/prompt", text_prompt(session_id, "one"))
        client.notify("session/cancel", {"sessionId": session_id})
        assert (await ended)["stopReason"] == "cancelled"
        assert (await client.request("session/prompt", text_prompt(session_id, "two")))["stopReason"] == "end_turn"


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


# Modes and options -----------------------------------------------------------------------------------


async def test_modes_and_options_change_here_and_elsewhere(tmp_path: Path) -> None:
    async with session([], tmp_path) as (client, session_id, _, environment):
        made = await client.request("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        options = {option["id"]: option for option in made["configOptions"]}
        assert [options[key]["category"] for key in ("mode", "model", "effort")] == ["mode", "model", "thought_level"]
        assert options["model"]["currentValue"] == environment["AMANU_MODEL"]
        answered = await client.request(
            "session/set_config_option", {"sessionId": session_id, "configId": "effort", "value": "high"}
        )
        assert {option["id"]: option["currentValue"] for option in answered["configOptions"]}["effort"] == "high"
        await client.request("session/set_mode", {"sessionId": session_id, "modeId": "plan"})
        assert client.of_kind("current_mode_update")[-1]["currentModeId"] == "plan"
        async with editor(environment) as other:
            await other.attach(session_id)
            await other.ask("session/setMode", sessionId=session_id, mode="acceptEdits")
        await client.until(lambda client: client.of_kind("current_mode_update")[-1]["currentModeId"] == "acceptEdits")
        last = {
            option["id"]: option["currentValue"]
            for option in client.of_kind("config_option_update")[-1]["configOptions"]
        }
        assert last["mode"] == "acceptEdits"


async def test_a_client_without_a_key_is_told_how_to_get_one(tmp_path: Path) -> None:
    async with acp_client() as client:
        answered = await client.initialize(auth={"terminal": True})
        assert [method["id"] for method in answered["authMethods"]] == ["terminal", "stored-key"]
        assert answered["authMethods"][0]["args"] == ["--setup"]
        requests: list[tuple[str, dict[str, Any]]] = [
            ("session/new", {"cwd": str(tmp_path), "mcpServers": []}),
            ("authenticate", {"methodId": "stored-key"}),
        ]
        for method, params in requests:
            with pytest.raises(AcpError) as caught:
                await client.request(method, params)
            assert caught.value.code == -32000
            assert "amanu auth set" in str(caught.value)
        assert await client.leave() == 0
    stop_daemon()


async def test_a_client_whose_model_needs_no_key_is_authenticated(tmp_path: Path) -> None:
    async with acp_client({"AMANU_MODEL": "scripted:demo"}) as client:
        await client.initialize()
        await client.request("authenticate", {"methodId": "stored-key"})
        await new_session(client, tmp_path)
        assert await client.leave() == 0
    stop_daemon()


# Unsaved text ----------------------------------------------------------------------------------------


async def test_unsaved_text_is_read_and_edits_go_through_the_editor(tmp_path: Path) -> None:
    buffers = {str(tmp_path / "notes.txt"): TWELVE.replace("line 6\n", "line six, unsaved\n")}
    wanted = buffers[str(tmp_path / "notes.txt")].replace("line 2\n", "line two\n")
    edit = Say(calls=[ToolUse("edit_file", {"path": "notes.txt", "old_text": "line 2\n", "new_text": "line two\n"})])
    async with session([READ, edit, Say(text="Done.")], tmp_path, **EVERYTHING) as (client, session_id, served, _):

        async def read(params: dict[str, Any]) -> Any:
            if params["path"] not in buffers:
                raise FileNotFoundError(params["path"])
            return {"content": buffers[params["path"]]}

        async def write(params: dict[str, Any]) -> Any:
            buffers[params["path"]] = params["content"]
            await asyncio.to_thread(Path(params["path"]).write_text, params["content"])
            return {}

        client.answers |= {"fs/read_text_file": read, "fs/write_text_file": write}
        ended = client.begin("session/prompt", text_prompt(session_id, "change it"))
        asked = await client.permission()
        assert "line six, unsaved" in served.requests[1].body.decode()
        client.choose(asked, "allow-0")
        assert (await ended)["stopReason"] == "end_turn"
        assert buffers[str(tmp_path / "notes.txt")] == wanted
        assert (tmp_path / "notes.txt").read_text() == wanted
        assert any(each.get("method") == "fs/write_text_file" for each in client.messages)


# Questions -------------------------------------------------------------------------------------------


async def test_a_question_is_a_form_where_forms_are(tmp_path: Path) -> None:
    async with session([ASK, Say(text="Good.")], tmp_path, **EVERYTHING) as (client, session_id, served, _):

        async def fill(params: dict[str, Any]) -> Any:
            fields = params["requestedSchema"]["properties"]
            (name,) = (name for name, field in fields.items() if "oneOf" in field)
            assert [option["const"] for option in fields[name]["oneOf"]] == ["SQLite", "Postgres"]
            return {"action": "accept", "content": {name: "Postgres"}}

        client.answers["elicitation/create"] = fill
        await client.request("session/prompt", text_prompt(session_id, "make a shop"))
        assert "Answer: Postgres" in served.requests[-1].body.decode()


@pytest.mark.parametrize(("option", "heard"), [("answer-0", "Answer: SQLite"), ("decline", "declined")])
async def test_a_question_is_a_choice_where_no_forms_are(tmp_path: Path, option: str, heard: str) -> None:
    async with session([ASK, Say(text="Good.")], tmp_path) as (client, session_id, served, _):
        ended = client.begin("session/prompt", text_prompt(session_id, "make a shop"))
        asked = await client.permission()
        assert [each["name"] for each in asked["params"]["options"]][:2] == ["SQLite", "Postgres"]
        client.choose(asked, option)
        await ended
        assert heard in served.requests[-1].body.decode()


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


# The wire --------------------------------------------------------------------------------------------


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


async def test_cancelled_while_trust_is_asked_about(tmp_path: Path) -> None:
    async with session([Say(text="Hello.")], tmp_path) as (client, session_id, served, _):
        client.answers.clear()
        ended = client.begin("session/prompt", text_prompt(session_id, "hello"))
        asked = await client.permission()
        client.notify("session/cancel", {"sessionId": session_id})
        assert await ended == {"stopReason": "cancelled"}
        await client.until(lambda client: asked["id"] in client.withdrawn)
        assert served.requests == []
        ended = client.begin("session/prompt", text_prompt(session_id, "hello"))
        client.choose(await client.permission(), "trust")
        assert await ended == {"stopReason": "end_turn"}


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


async def test_a_rule_that_cannot_be_saved_is_asked_about_once_more(tmp_path: Path) -> None:
    async with session([COMMAND, Say(text="Done.")], tmp_path) as (client, session_id, _, _):
        ended = client.begin("session/prompt", text_prompt(session_id, "make it"))
        asked = await client.permission()
        (find_home().config / "rules.toml").mkdir()
        client.choose(asked, "workspace")
        asked = await client.permission()
        assert [each["kind"] for each in asked["params"]["options"] if each["kind"] == "allow_always"] == []
        (find_home().config / "rules.toml").rmdir()
        client.choose(asked, "allow-0")
        assert (await ended)["stopReason"] == "end_turn"
        assert (tmp_path / "made.txt").exists()


async def test_a_daemon_that_cannot_be_reached_is_an_error_until_it_can(tmp_path: Path) -> None:
    async with session([Say(text="Hello.")], tmp_path) as (client, session_id, _, _):
        run = find_home().runtime
        signal_daemon(signal.SIGKILL)
        hidden = run.with_name("hidden")
        run.rename(hidden)
        run.write_text("no folder")
        said = ""
        while "amanu doctor" not in said:
            with pytest.raises(AcpError) as caught:
                await client.request("session/prompt", text_prompt(session_id, "hello"), 60)
            said = str(caught.value)
        run.unlink()
        hidden.rename(run)
        answer: Any = None
        while answer is None:
            with contextlib.suppress(AcpError):
                answer = await client.request("session/prompt", text_prompt(session_id, "hello"), 60)
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


@pytest.mark.parametrize(
    "outcome",
    [
        {"outcome": "later", "optionId": "allow-0"},
        {"outcome": "cancelled", "optionId": "allow-0"},
        {"optionId": "allow-0"},
    ],
    ids=json.dumps,
)
async def test_only_a_selected_outcome_approves(tmp_path: Path, outcome: dict[str, Any]) -> None:
    async with session([COMMAND, Say(text="Pity.")], tmp_path) as (client, session_id, _, _):
        ended = client.begin("session/prompt", text_prompt(session_id, "make it"))
        client.answer(await client.permission(), {"outcome": outcome})
        await ended
        assert not (tmp_path / "made.txt").exists()


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
