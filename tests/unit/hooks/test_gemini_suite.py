"""What Gemini CLI's own tests of its hooks assert, in our words: hooks as its users have them, from
`.gemini/settings.json`, with our scripted model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol.items import Answer
from support.hook_files import (
    GEMINI,
    TELLS,
    answer,
    configure,
    handler,
    hook_entries,
    notices,
    tool_calls,
    trust_hooks,
)
from support.scripted_session import ScriptedSession, call, scripted_session, step

WRITES = step("", call("write_file", path="new.txt", content="from the model\n"))
READS = step("", call("read_file", path="notes.txt"))
DONE = step("Done.")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def play(
    d: ScriptedSession, *, more: Mapping[str, Any] | None = None, end: str = "completed", **events: Any
) -> None:
    """Configure these hooks, agree to them, and send a prompt."""
    configure(d.root, GEMINI, _config=more or {}, **events)
    await trust_hooks(d)
    await d.prompt("go")
    await d.ended(end)


def says(**specific: Any) -> str:
    return answer(specific)


def answers(d: ScriptedSession) -> list[str]:
    return [item.text for item in d.session.state.items if isinstance(item, Answer)]


@pytest.mark.parametrize(
    ("command", "written", "told"),
    [
        (answer(decision="block", reason="not here"), False, "not here"),  # 1
        ("echo 'not here' >&2; exit 2", False, "not here"),  # 2
        (answer(decision="allow", reason="fine"), True, ""),  # 3
        ("echo 'words first'; echo '{\"decision\": \"deny\"}'", True, ""),  # 15: text and JSON is text
        ("echo careful; exit 1", None, ""),  # 17: a warning
    ],
)
async def test_1_2_3_15_17_before_a_tool(tmp_path: Path, command: str, written: bool | None, told: str) -> None:
    fields = {"onFailure": "continue"} if written is None else {}
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        await play(d, BeforeTool=[handler(command, matcher="write_file", **fields)])
        assert (d.root / "new.txt").exists() == (written is not False)
        assert told in d.told()
        [entry] = await hook_entries(d)
        assert entry["event"] == "PreToolUse"


async def test_4_18_context_after_a_tool_and_what_is_on_record(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, READS, DONE) as d:
        await play(d, AfterTool=[handler(says(additionalContext="security scan: clean"), matcher="read_file")])
        assert "security scan: clean" in d.told()
        [entry] = await hook_entries(d)
        assert (entry["event"], entry["exit"], entry["answer"]) == ("PostToolUse", 0, "none")
        assert entry["stdout"]["bytes"] > 0
        assert entry["stderr"]["bytes"] == 0
        assert entry["command"].startswith("cat")
        assert entry["call"] == tool_calls(d)[0].item_id


@pytest.mark.parametrize("decision", ["deny", "block", None])
async def test_6_7_8_before_the_model(tmp_path: Path, decision: str | None) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        if decision is None:
            reply = {"candidates": [{"content": {"role": "model", "parts": ["said by the hook"]}}]}
            await play(d, BeforeModel=[handler(says(llm_response=reply))])
            assert answers(d) == ["said by the hook"]
            assert '"said by the hook"' in d.told()
        else:
            await play(d, end="hook", BeforeModel=[handler(answer(decision=decision, reason="not today"))])
            assert answers(d) == []
            assert "not today" in notices(d)
        assert "Done." not in d.told()
        assert d.session.state.usage is None or d.session.state.usage.context_tokens == 0


async def test_9_after_the_model(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        await play(d, AfterModel=[handler(says(llm_response={"text": "[FILTERED]"}))])
        assert answers(d) == ["[FILTERED]"]
        assert "Done." not in d.told()
        [entry] = await hook_entries(d)  # once a reply
        assert entry["event"] == "AfterModel"


@pytest.mark.parametrize(
    ("config", "runs"),
    [
        ({"mode": "ANY", "allowedFunctionNames": ["read_file", "run_shell_command"]}, True),
        ({"mode": "ANY", "allowedFunctionNames": ["glob"]}, False),
        ({"mode": "NONE"}, False),
        ({"mode": "AUTO"}, True),
    ],
)
async def test_10_a_limit_to_some_tools(tmp_path: Path, config: dict[str, Any], runs: bool) -> None:
    reads = step("", call("read_file", path="notes.txt"))
    async with scripted_session(tmp_path, reads, DONE) as d:
        await play(d, BeforeToolSelection=[handler(says(toolConfig=config))])
        [item] = tool_calls(d)
        assert item.state == ("succeeded" if runs else "rejected")
        assert ("limits this reply to" in d.told()) is not runs
        assert {entry["event"] for entry in await hook_entries(d)} == {"BeforeToolSelection"}


async def test_21_a_message_at_the_start_is_shown(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        await play(d, SessionStart=[handler(answer(systemMessage="Welcome back"))])
        assert "Welcome back" in notices(d)


async def test_11_context_of_a_prompt(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        await play(d, BeforeAgent=[handler(says(additionalContext="the day is Thursday"))])
        assert "the day is Thursday" in d.told()


async def test_12_notification_of_a_question(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", call("run_shell_command", command="touch x")), DONE) as d:
        configure(d.root, GEMINI, Notification=[handler(TELLS)])
        await trust_hooks(d)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await d.until(lambda state: any("ToolPermission" in getattr(item, "text", "") for item in state.items))
        told = json.loads(notices(d).strip())
        assert told["notification_type"] == "ToolPermission"
        assert told["details"]["type"] == "exec"
        assert "touch x" in told["details"]["command"]
        assert told["details"]["title"]
        assert told["message"]
        await d.answer("reject")
        await d.ended()


async def test_13_one_after_the_other(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        first, second = says(additionalContext="step one"), says(additionalContext="step two")
        await play(d, BeforeAgent=[handler(f"sleep 0.2; {first}", sequential=True), handler(second)])
        entries = await hook_entries(d)
        assert ["step one" in entry["command"] for entry in entries] == [True, False]
        assert d.told().index("step one") < d.told().index("step two")


async def test_13_each_sees_what_those_before_it_changed(tmp_path: Path) -> None:
    content = """sed -E 's/.*"content": "([^"]*)".*/\\1/'"""
    appends = (
        f"""printf '{{"hookSpecificOutput": {{"tool_input": {{"content": "%sand more\\\\n"}}}}}}' "$({content})\""""
    )
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        await play(d, BeforeTool=[handler(appends, sequential=True), handler(f"{appends} #")])
        assert (d.root / "new.txt").read_text() == "from the model\nand more\nand more\n"


async def test_14_what_a_hook_is_told(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        await play(d, BeforeTool=[handler(TELLS)])
        told = json.loads(notices(d).strip().splitlines()[0])
        assert told["session_id"] == "s"
        assert told["cwd"] == str(d.root)
        assert told["hook_event_name"] == "BeforeTool"
        assert told["timestamp"].startswith("20")
        assert told["tool_name"] == "write_file"
        assert told["tool_input"] == {"file_path": str(d.root / "new.txt"), "content": "from the model\n"}


async def test_16_several_events_in_one_turn(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        await play(
            d,
            BeforeAgent=[handler(answer(systemMessage="agent begins"))],
            BeforeTool=[handler(answer(systemMessage="tool begins"))],
            AfterTool=[handler(answer(systemMessage="tool ended"))],
            AfterAgent=[handler(answer(systemMessage="agent ended"))],
        )
        texts = notices(d)
        order = [texts.index(text) for text in ("agent begins", "tool begins", "tool ended", "agent ended")]
        assert order == sorted(order)


async def test_19_20_the_start_of_a_session(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        await play(d, SessionStart=[handler(TELLS), handler(says(additionalContext="welcome"), matcher="startup")])
        assert '"source": "startup"' in notices(d)
        assert "welcome" in d.told()


async def test_23_before_a_compaction(tmp_path: Path) -> None:
    reads = [step(f"Reading {at}.", call("read_file", path="notes.txt", start_line=1 + at % 10)) for at in range(8)]
    async with scripted_session(tmp_path, *reads, DONE) as d:
        await play(d, PreCompress=[handler(TELLS)])
        await d.prompt("/compact the colour is blue", "p2")
        await d.over("p2")
        told = json.loads(notices(d).strip())
        assert (told["hook_event_name"], told["trigger"]) == ("PreCompress", "manual")
        assert told["custom_instructions"] == "the colour is blue"
        assert notices(d, "compacted")


async def test_a_compaction_can_be_refused(tmp_path: Path) -> None:
    reads = [step(f"Reading {at}.", call("read_file", path="notes.txt", start_line=1 + at % 10)) for at in range(8)]
    async with scripted_session(tmp_path, *reads, DONE) as d:
        await play(d, PreCompress=[handler(answer(decision="block", reason="keep it all"))])
        await d.prompt("/compact", "p2")
        await d.over("p2")
        assert "keep it all" in notices(d, "compactionFailed")
        assert not notices(d, "compacted")


async def test_24_the_end_of_a_session(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, headless=True) as d:
        await play(d, SessionEnd=[handler(TELLS, matcher="exit")])
        await d.reopen()
        assert '"reason": "exit"' in notices(d)
        assert [entry["event"] for entry in await hook_entries(d)] == ["SessionEnd"]


async def test_25_26_what_is_disabled_never_runs(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        off, on = handler(answer(systemMessage="I ran"), name="off"), handler(answer(systemMessage="so did I"))
        await play(d, more={"hooksConfig": {"disabled": ["off"]}}, BeforeAgent=[off, on])
        await d.prompt("again", "p2")
        await d.over("p2")
        assert "I ran" not in notices(d)
        assert notices(d).count("so did I") == 2


async def test_27_other_arguments(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        await play(d, BeforeTool=[handler(says(tool_input={"file_path": "modified.txt", "content": "changed\n"}))])
        assert (d.root / "modified.txt").read_text() == "changed\n"
        assert not (d.root / "new.txt").exists()
        assert tool_calls(d)[0].arguments == {"path": "modified.txt", "content": "changed\n"}


async def test_28_no_more(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        stops = answer(**{"continue": False, "stopReason": "Emergency stop"})
        await play(d, end="hook", BeforeTool=[handler(stops)])
        assert not (d.root / "new.txt").exists()
        assert "Emergency stop" in notices(d)
        assert answers(d) == []


@pytest.mark.parametrize(("yes", "written"), [(True, True), (False, False)])
async def test_29_30_asked_even_where_everything_is_allowed(tmp_path: Path, yes: bool, written: bool) -> None:
    async with scripted_session(tmp_path, READS, DONE, mode="auto") as d:
        configure(d.root, GEMINI, BeforeTool=[handler(answer(decision="ask", reason="are you sure?"))])
        await trust_hooks(d)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals)
        assert "are you sure?" in state.approvals[0].rule
        await d.answer("allow" if yes else "reject")
        await d.ended()
        assert tool_calls(d)[0].state == ("succeeded" if written else "rejected")
        assert ("line 7" in d.told()) == written
