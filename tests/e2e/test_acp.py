"""`amanu acp` through the real process and the real daemon, every message checked against the official schema."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from e2e.test_prompt_to_edit import TWELVE, TWO_HUNKS, editor, service, stop_daemon
from support.acp_client import EVERYTHING, AcpClient, AcpError, acp_client, new_session, text_prompt
from support.hook_files import answer, configure_user, handler
from support.strict_services.http import Say, Script, Service, ToolUse

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


async def test_a_draft_is_put_to_the_user_once_when_the_model_is_done(tmp_path: Path) -> None:
    async with session([READ, EDIT, Say(text="Done.")], tmp_path) as (client, session_id, served, _):
        await client.request("session/set_mode", {"sessionId": session_id, "modeId": "draft"})
        answer = client.begin("session/prompt", text_prompt(session_id, "change it"))
        asked = await client.permission()
        call = asked["params"]["toolCall"]
        assert call["title"] == "Apply the draft: 1 file" and client.text().endswith("Done.")
        diff = next(content for content in call["content"] if content["type"] == "diff")
        assert (diff["oldText"], diff["newText"]) == (TWELVE, TWO_HUNKS)
        assert (tmp_path / "notes.txt").read_text() == TWELVE
        client.choose(asked, "allow-0")
        assert await answer == {"stopReason": "end_turn"}
        assert (tmp_path / "notes.txt").read_text() == TWO_HUNKS
        assert not served.refused and not served.lint


@pytest.mark.parametrize(
    ("option", "expected", "status"), [("allow-0", TWO_HUNKS, "completed"), ("reject", TWELVE, "failed")]
)
async def test_several_edits_of_one_file_are_one_permission(
    tmp_path: Path, option: str, expected: str, status: str
) -> None:
    edits = [
        ToolUse("edit_file", {"path": "notes.txt", "old_text": f"{old}\n", "new_text": f"{new}\n"})
        for old, new in (("line 2", "line two"), ("line 11", "line eleven"))
    ]
    script = [Say(text="Two edits.", calls=edits), Say(text="Done.")]
    async with session(script, tmp_path) as (client, session_id, served, _):
        answer = client.begin("session/prompt", text_prompt(session_id, "change it"))
        asked = await client.permission()
        diff = next(content for content in asked["params"]["toolCall"]["content"] if content["type"] == "diff")
        assert (diff["oldText"], diff["newText"]) == (TWELVE, TWO_HUNKS)
        client.choose(asked, option)
        assert await answer == {"stopReason": "end_turn"}
        assert (tmp_path / "notes.txt").read_text() == expected
        ended = {each["toolCallId"]: each.get("status") for each in client.of_kind("tool_call_update")}
        assert [*ended.values()][-2:] == [status, status]
        assert not served.refused and not served.lint


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


async def test_a_turn_that_a_hook_ended_is_an_error_with_its_reason(tmp_path: Path) -> None:
    async with session([READ, Say(text="Hello.")], tmp_path) as (client, session_id, _, _):
        configure_user(PostToolUse=[handler(answer(**{"continue": False, "stopReason": "out of hours"}))])
        with pytest.raises(AcpError, match="A hook ended the turn: out of hours") as caught:
            await client.request("session/prompt", text_prompt(session_id, "read"))
        assert caught.value.data == {"reason": "hook", "canContinue": True}
        assert (await client.request("session/prompt", text_prompt(session_id, "hello")))["stopReason"] == "end_turn"


async def test_cancelled_at_once(tmp_path: Path) -> None:
    async with session([Say(text="One."), Say(text="Two.")], tmp_path) as (client, session_id, _, _):
        client.answers["session/request_permission"] = trusting  # twice, if the cancellation overtakes the first answer
        ended = client.begin("session/prompt", text_prompt(session_id, "one"))
        client.notify("session/cancel", {"sessionId": session_id})
        assert (await ended)["stopReason"] == "cancelled"
        assert (await client.request("session/prompt", text_prompt(session_id, "two")))["stopReason"] == "end_turn"


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
