"""The answers of Gemini CLI's hooks beside decisions: the tools of a request, its messages, the call that follows
another, and what the hooks behind it are told."""

import json
from pathlib import Path
from typing import Any

import pytest

from amanu.core.model import Request
from amanu.models.scripted import ScriptedModel
from amanu.permissions import approvals as approval
from amanu_protocol.items import Mode
from support.agent_session import agent, ask_agent, complete, session_with_agents
from support.hook_files import (
    GEMINI,
    TELLS,
    answer,
    configure,
    configure_user,
    handler,
    hook_entries,
    notices,
    tool_calls,
    trust_hooks,
)
from support.scripted_session import TWELVE, ScriptedSession, call, conversation, journalled, scripted_session, step

READS = step("", call("read_file", path="notes.txt"))
DONE = step("Done.")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests that models get, as they get them."""
    seen: list[Request] = []
    stream = ScriptedModel.stream

    def noted(self: ScriptedModel, request: Request) -> Any:
        if not request.side_query:
            seen.append(request)
        return stream(self, request)

    monkeypatch.setattr(ScriptedModel, "stream", noted)
    return seen


def sent(request: Request) -> str:
    """All that the request tells the model, as text."""
    return "\n".join(message.model_dump_json() for message in request.conversation)


def says(**specific: Any) -> str:
    return answer(specific)


async def hooked(d: ScriptedSession, **events: Any) -> None:
    configure(d.root, GEMINI, **events)
    await trust_hooks(d)


# toolConfig: the tools of a request -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configs", "left"),
    [
        ([{"mode": "NONE"}], set()),
        ([{"mode": "none", "allowedFunctionNames": ["read_file"]}], set()),
        ([{"allowedFunctionNames": ["read_file", "search_file_content"]}], {"read_file", "grep"}),
        ([{"mode": "ANY", "allowedFunctionNames": ["Glob", "grep"]}], {"glob", "grep"}),
        ([{"allowedFunctionNames": ["write_file", "replace"]}], {"write_file", "edit_file"}),  # no apply_patch …
        ([{"allowedFunctionNames": ["no_such_tool"]}], set()),
        ([{"mode": "AUTO"}], None),
        ([{"mode": "AUTO", "allowedFunctionNames": []}], None),
        ([{"mode": "WHAT", "allowedFunctionNames": "read_file"}], None),
        ([{"allowedFunctionNames": ["read_file"]}, {"allowedFunctionNames": ["glob"]}], {"read_file", "glob"}),
        ([{"allowedFunctionNames": ["read_file"]}, {"mode": "NONE"}], set()),
    ],
)
async def test_only_the_selected_tools_are_in_the_request(
    tmp_path: Path, requests: list[Request], configs: list[dict[str, Any]], left: set[str] | None
) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        await hooked(d, BeforeToolSelection=[handler(says(toolConfig=config)) for config in configs])
        await d.prompt("go")
        await d.ended()
        [request] = requests
        assert request.callable == left
        assert {tool.name for tool in request.tools} > {"read_file", "grep", "glob"}  # what caches hold stays
        assert ("ANY" in notices(d)) == any(config.get("mode") == "ANY" for config in configs)


ONLY_READS = handler(says(toolConfig={"allowedFunctionNames": ["Read"]}))


async def test_a_workspace_adds_nothing_to_what_the_users_hooks_leave(tmp_path: Path, requests: list[Request]) -> None:
    more = says(toolConfig={"allowedFunctionNames": ["run_shell_command", "read_file"]})
    async with scripted_session(tmp_path, step("", call("run_shell_command", command="ls")), DONE) as d:
        configure_user(BeforeToolSelection=[ONLY_READS])
        await hooked(d, BeforeToolSelection=[handler(more)])
        await d.prompt("go")
        await d.ended()
        assert [request.callable for request in requests] == [{"read_file"}] * 2
        [result] = conversation(d.session).results()
        assert result.text == "Not run: one of the user's hooks limits this reply to: read_file."


@pytest.mark.parametrize("owner", ["user", "workspace"])
async def test_only_the_users_hooks_make_calls_beside_what_theirs_leave(tmp_path: Path, owner: str) -> None:
    async with scripted_session(tmp_path, READS, DONE, mode="acceptEdits") as d:
        tail = {"AfterTool" if owner == "workspace" else "PostToolUse": [handler(WRITES_TAIL, matcher="read_file")]}
        configure_user(BeforeToolSelection=[ONLY_READS], **(tail if owner == "user" else {}))
        await hooked(d, **(tail if owner == "workspace" else {}))
        await d.prompt("go")
        await d.ended()
        assert (d.root / "tail.txt").exists() == (owner == "user")


async def test_a_selection_is_for_one_request(tmp_path: Path, requests: list[Request]) -> None:
    once = f"grep -q 'line 12' && exit 0; {says(toolConfig={'allowedFunctionNames': ['read_file']})}"
    async with scripted_session(tmp_path, READS, DONE) as d:
        await hooked(d, BeforeToolSelection=[handler(once)])
        await d.prompt("go")
        await d.ended()
        assert [request.callable for request in requests] == [{"read_file"}, None]


async def test_a_selection_adds_nothing_to_plan_mode(tmp_path: Path, requests: list[Request]) -> None:
    writes = step("", call("write_file", path="new.txt", content="x"))
    async with scripted_session(tmp_path, writes, DONE, mode="plan") as d:
        await hooked(d, BeforeToolSelection=[handler(says(toolConfig={"allowedFunctionNames": ["write_file"]}))])
        await d.prompt("go")
        await d.ended()
        assert requests[0].callable == {"write_file"} & {tool.name for tool in requests[0].tools}
        assert not (d.root / "new.txt").exists()


async def test_a_sub_agent_without_tools_can_still_end_its_work(tmp_path: Path, requests: list[Request]) -> None:
    child = [step("", call("read_file", path="notes.txt")), step("", complete("All of it."))]
    async with session_with_agents(tmp_path, {"scout": child}, step("", ask_agent("scout")), DONE) as d:
        only = answer({"hookEventName": "BeforeToolSelection", "toolConfig": {"mode": "NONE"}})
        configure_user(BeforeToolSelection=[handler(f"grep -q 'You are the parent' && exit 0; {only}")])
        await d.prompt("You are the parent")
        await d.ended()
        asked = [request for request in requests if request.session_id != "s"]
        assert [request.callable for request in asked] == [{"complete_task"}] * 2
        assert agent(d).state == "completed"
        assert "limits this reply to: no tools" in sent(asked[-1])


# llm_request: the messages of a request ---------------------------------------------------------------

EDITS_REQUEST = r"""sed -E 's/^.*"llm_request": (.*)\}$/{"hookSpecificOutput": {"llm_request": \1}}/; %s'"""
"""A hook that answers with the request it was told of, edited by a sed command."""


@pytest.mark.parametrize(
    ("edit", "gone", "there"),
    [
        ("s/line 7/REDACTED/g", "line 7", "REDACTED"),  # in the result
        ("s/my prompt/OTHER WORDS/", "my prompt", "OTHER WORDS"),
        ("s/I look at it/NOTHING/", "I look at it", "NOTHING"),  # in a reply
        ('s/"my prompt[^"]*"/""/', "my prompt", "a hook removed this text"),
        (
            's/("messages": \\[)(.*)\\], "config"/\\1\\2, {"role": "user", "content": "AT THE END"}], "config"/',
            "",
            "AT THE END",
        ),
    ],
)
async def test_other_messages_are_sent_and_the_conversation_stays(
    tmp_path: Path, requests: list[Request], edit: str, gone: str, there: str
) -> None:
    reads = step("I look at it.", call("read_file", path="notes.txt"))
    async with scripted_session(tmp_path, reads, DONE) as d:
        await hooked(d, BeforeModel=[handler(EDITS_REQUEST % edit)])
        await d.prompt("my prompt")
        await d.ended()
        request = requests[-1]
        request.conversation.check()
        assert there in sent(request) and (not gone or gone not in sent(request))
        assert there not in d.told() and gone in d.told()
        assert len(request.conversation) == len(conversation(d.session)) - 1  # its reply
        assert notices(d).count("A hook changed what the model is sent in this turn.") == 1
        assert "wants more" not in notices(d)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"model": "gemini-2.5-pro"}, "llm_request.model is not supported"),
        ({"config": {"temperature": 0}}, "llm_request.config is not supported"),
        ({"toolConfig": {"mode": "ANY"}}, "llm_request.toolConfig is not supported"),
        ({"messages": []}, "fewer messages"),
        ({"messages": "what"}, ""),
        ({}, ""),
    ],
)
async def test_of_a_request_only_messages_can_be_changed(
    tmp_path: Path, requests: list[Request], request_: dict[str, Any], said: str
) -> None:
    async with scripted_session(tmp_path, READS, DONE) as d:
        await hooked(d, BeforeModel=[handler(says(llm_request=request_))])
        await d.prompt("go")
        await d.ended()
        assert [request.conversation is conversation(d.session) for request in requests] == [True, True]
        assert {request.model.model_id for request in requests} == {d.session.state.model_id}
        assert notices(d).count("Amanu ignored a part of what the hook") == bool(said)  # once, though it was run twice
        assert said in notices(d)


async def test_no_secret_gets_into_a_request(
    tmp_path: Path, requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-0123456789abcdef0123456789abcdef")
    async with scripted_session(tmp_path, DONE) as d:
        await hooked(d, BeforeModel=[handler(EDITS_REQUEST % "s/my prompt/sk-proj-0123456789abcdef0123456789abcdef/")])
        await d.prompt("my prompt")
        await d.ended()
        assert "sk-proj-0123456789abcdef" not in sent(requests[0]) and "my prompt" not in sent(requests[0])


# sequential: what the hooks behind it are told --------------------------------------------------------


@pytest.mark.parametrize("sequential", [True, False])
async def test_a_context_is_in_the_prompt_of_the_next_hook(tmp_path: Path, sequential: bool) -> None:
    adds = says(additionalContext="it is Thursday")
    async with scripted_session(tmp_path, DONE) as d:
        await hooked(d, BeforeAgent=[handler(adds, sequential=sequential), handler(TELLS)])
        await d.prompt("go")
        await d.ended()
        told = next(json.loads(line) for line in notices(d).splitlines() if line.startswith("{"))
        assert told["prompt"] == ("go\n\nit is Thursday" if sequential else "go")
        assert d.told().count("it is Thursday") == 1


async def test_each_changes_the_request_that_those_before_it_left(tmp_path: Path, requests: list[Request]) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        edits = ("s/my prompt/one/", "s/one/one two/", "s/one two/three/")
        await hooked(d, BeforeModel=[handler(EDITS_REQUEST % edit) for edit in edits])
        await d.prompt("my prompt")
        await d.ended()
        assert "three" in sent(requests[0]) and "my prompt" not in sent(requests[0])


# tailToolCallRequest: the call that takes the place of another ------------------------------------------


def follows(name: str, **args: Any) -> str:
    return says(tailToolCallRequest={"name": name, "args": args})


WRITES_TAIL = follows("write_file", file_path="tail.txt", content="of the hook\n")


@pytest.mark.parametrize(
    ("mode", "decision", "state"),
    [
        ("acceptEdits", "", "succeeded"),
        ("ask", "allow", "succeeded"),
        ("ask", "reject", "rejected"),
        ("plan", "", "rejected"),
    ],
)
async def test_a_call_that_follows_is_decided_on_like_any(
    tmp_path: Path, mode: Mode, decision: str, state: str
) -> None:
    async with scripted_session(tmp_path, READS, DONE, mode=mode) as d:
        await hooked(d, AfterTool=[handler(WRITES_TAIL, matcher="read_file")])
        await d.prompt("go")
        if decision:
            await d.answer(decision)
        await d.ended()
        assert [(item.tool, item.state) for item in tool_calls(d)] == [
            ("read_file", "succeeded"),
            ("write_file", state),
        ]
        assert (d.root / "tail.txt").exists() == (state == "succeeded")
        [result] = conversation(d.session).results()
        assert (result.tool, result.call_id) == ("read_file", tool_calls(d)[0].item_id)
        assert "line 12" not in result.text, "its own result is replaced"
        assert result.is_error == (state != "succeeded")
        assert "replaces this result with that of a call of write_file" in notices(d)
        entries = [(entry["event"], entry["call"]) for entry in await hook_entries(d)]
        assert entries == [("PostToolUse", tool_calls(d)[0].item_id)]
        await d.reopen()
        assert list(conversation(d.session).results()) == [result]


@pytest.mark.parametrize(
    ("name", "args", "tool", "told"),
    [
        ("read_file", {"file_path": "other.txt"}, "read_file", "xyzzy"),
        ("Read", {"file_path": "other.txt"}, "read_file", "xyzzy"),
        ("run_shell_command", {"command": "echo plugh"}, "run_shell_command", "plugh"),
        ("no_such_tool", {}, "no_such_tool", "Unknown tool"),
        ("read_file", {"file_path": 5}, "read_file", "path"),
        ("read_file", {"file_path": "/etc/shadow"}, "read_file", "outside"),
        ("complete_task", {"result": "x"}, "complete_task", "Unknown tool"),
    ],
)
async def test_it_goes_by_its_names_elsewhere(
    tmp_path: Path, name: str, args: dict[str, Any], tool: str, told: str
) -> None:
    listed = step("", call("list_directory", path="."))
    async with scripted_session(tmp_path, listed, DONE, headless=True, mode="auto") as d:
        (d.root / "other.txt").write_text("xyzzy\n")
        await hooked(d, AfterTool=[handler(follows(name, **args), matcher="list_directory")])
        await d.prompt("go")
        await d.ended()
        assert [item.tool for item in tool_calls(d)] == ["list_directory", tool]
        [result] = conversation(d.session).results()
        assert told in result.text


async def test_hooks_hear_of_it_and_may_refuse_it(tmp_path: Path) -> None:
    denies = "grep -q 'original_request_name\": \"read_file' && { echo 'no tails' >&2; exit 2; }; exit 0"
    async with scripted_session(tmp_path, READS, DONE, mode="acceptEdits") as d:
        await hooked(d, AfterTool=[handler(WRITES_TAIL, matcher="read_file")], BeforeTool=[handler(denies)])
        await d.prompt("go")
        await d.ended()
        assert not (d.root / "tail.txt").exists()
        [result] = conversation(d.session).results()
        assert "no tails" in result.text and "line 12" not in result.text


async def test_calls_do_not_follow_one_another_for_ever(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, READS, DONE) as d:
        await hooked(d, AfterTool=[handler(follows("read_file", file_path="notes.txt"))])
        await d.prompt("go")
        await d.ended()
        assert [item.tool for item in tool_calls(d)] == ["read_file"] * 4
        [result] = conversation(d.session).results()
        assert "read_file was not run: 3 calls have followed one another here." in result.text


async def test_it_waits_for_the_calls_beside_it(tmp_path: Path) -> None:
    """Two that are followed do not wait for each other, and an edit that is asked about comes first."""
    edit = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
    reads = [call("read_file", path="notes.txt", start_line=line) for line in (3, 5)]
    async with scripted_session(tmp_path, step("", reads[0], edit, reads[1]), DONE) as d:
        await hooked(d, AfterTool=[handler(follows("list_directory", dir_path="."), matcher="read_file")])
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        assert [item.tool for item in tool_calls(d)].count("list_directory") == 0
        await d.answer("allow")
        await d.ended()
        assert [item.state for item in tool_calls(d)] == ["succeeded"] * 5
        texts = [result.text for result in conversation(d.session).results()]
        assert ["notes.txt" in text and "line 12" not in text for text in (texts[0], texts[2])] == [True, True]
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")


async def test_a_refused_result_is_hidden_and_nothing_follows(tmp_path: Path) -> None:
    refuses = handler("echo 'private' >&2; exit 2", matcher="read_file")
    async with scripted_session(tmp_path, READS, DONE, mode="acceptEdits") as d:
        await hooked(d, AfterTool=[handler(WRITES_TAIL, matcher="read_file"), refuses])
        await d.prompt("go")
        await d.ended()
        assert [item.tool for item in tool_calls(d)] == ["read_file"]
        assert "line 12" not in d.told() and "private" in d.told()


async def test_a_turn_that_is_cancelled_meanwhile_tells_how_it_ended(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, READS, DONE, mode="auto") as d:
        sleeps = follows("run_shell_command", command="touch began; sleep 60")
        await hooked(d, AfterTool=[handler(sleeps, matcher="read_file")])
        await d.prompt("go")
        await d.until(lambda state: [item.state for item in tool_calls(d)][1:] == ["executing"])
        [left] = (await journalled(d.session)).results()  # had the daemon been killed here
        assert (left.tool, left.text.split(":")[0]) == ("read_file", "Interrupted")
        await d.session.prompts.cancel("turn-p1")
        await d.ended("cancelled")
        [result] = conversation(d.session).results()
        assert "Cancelled by the user while it ran" in result.text and result.tool == "read_file"


async def test_a_sub_agent_gets_only_its_own_tools(tmp_path: Path) -> None:
    child = [step("", call("read_file", path="notes.txt")), step("", complete())]
    async with session_with_agents(tmp_path, {"scout": child}, step("", ask_agent("scout")), DONE) as d:
        wants = {
            "hookEventName": "PostToolUse",
            "tailToolCallRequest": {"name": "enter_plan_mode", "args": {"reason": "x"}},
        }
        configure_user(PostToolUse=[handler(answer(wants), matcher="Read")])
        await d.prompt("go")
        await d.ended()
        assert agent(d).state == "completed"
        assert d.session.state.mode == "ask"


async def test_none_of_it_happens_in_an_untrusted_folder(tmp_path: Path, requests: list[Request]) -> None:
    async with scripted_session(tmp_path, READS, DONE, mode="acceptEdits") as d:
        configure(
            d.root,
            GEMINI,
            AfterTool=[handler(WRITES_TAIL)],
            BeforeModel=[handler(EDITS_REQUEST % "s/go/stop/")],
            BeforeToolSelection=[handler(says(toolConfig={"mode": "NONE"}))],
        )
        await d.prompt("go")
        await d.ended()
        assert [request.callable for request in requests] == [None, None]
        assert [item.tool for item in tool_calls(d)] == ["read_file"]
        assert await hook_entries(d) == [] and "stop" not in sent(requests[-1])


# clearContext -------------------------------------------------------------------------------------------


async def test_a_hook_clears_no_conversation_and_the_user_is_told_once(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        await hooked(d, AfterAgent=[handler(says(clearContext=True))])
        for number, prompt_id in enumerate(("p1", "p2"), 1):
            await d.prompt(f"prompt {number}", prompt_id)
            await d.over(prompt_id)
        assert "prompt 1" in d.told()
        assert notices(d).count("clearContext is not supported") == 1


async def test_what_is_not_done_is_in_the_list(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        events = ("AfterAgent", "BeforeModel", "BeforeToolSelection", "AfterTool")
        await hooked(d, **{event: [handler("true")] for event in events})
        await d.prompt("/hooks")
        lines = [line.strip() for line in notices(d, "hooks").splitlines()]
        said = [line.split()[2].strip(",") for line in lines if line.startswith("not supported:")]
        assert said == ["clearContext", "in", "the"]


# Public reports ---------------------------------------------------------------------------------------


async def test_an_answer_without_calls_ends_and_what_makes_it_go_on_is_no_prompt(tmp_path: Path) -> None:
    """gemini-cli 15712, 27712, 18514."""
    asks = f"grep -q 'stop_hook_active\": true' && exit 0; {answer(decision='deny', reason='say more')}"
    async with scripted_session(tmp_path, step("No."), step("No, and here is why.")) as d:
        await hooked(d, BeforeAgent=[handler("cat > /dev/null")], AfterAgent=[handler(asks, matcher="*")])
        await d.prompt("Are there 13 continents?")
        await d.ended()
        events = [entry["event"] for entry in await hook_entries(d)]
        assert events == ["UserPromptSubmit", "Stop", "Stop"]


@pytest.mark.parametrize(
    ("changed", "state", "told"),
    [
        ({"file_path": "notes.txt"}, "succeeded", "line 12"),  # the same, as icm 237 answers: nothing is changed
        ({"encoding": "utf-8"}, "failed", "path"),  # claude-code 30770: it is the whole input
    ],
)
async def test_an_input_that_only_repeats_or_lacks_what_there_was(
    tmp_path: Path, changed: dict[str, Any], state: str, told: str
) -> None:
    async with scripted_session(tmp_path, READS, DONE) as d:
        if "file_path" in changed:
            changed = {"file_path": str(d.file)}
        wants = {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": changed}
        configure_user(PreToolUse=[handler(f"{answer(wants)} #", matcher="Read")])
        await trust_hooks(d)
        await d.prompt("go")
        await d.ended()
        assert [item.state for item in tool_calls(d)] == [state]
        [result] = conversation(d.session).results()
        assert told in result.text
