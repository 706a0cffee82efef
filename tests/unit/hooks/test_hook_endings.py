"""A turn that a hook ended has an ending of its own, with the hook's reason; one that was over anyway is completed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Answer, Notice
from support.agent_session import agent, ask_agent, complete, results, session_with_agents
from support.hook_files import answer, configure_user, handler, notices, tool_calls
from support.scripted_session import call, scripted_session, step

READS = step("", call("read_file", path="notes.txt"))
RUNS = step("", call("run_shell_command", command="touch made; rm -rf notes.txt"))
DONE = step("Done.")
HALT = answer(**{"continue": False, "stopReason": "HALT"})
NO = answer(decision="deny", reason="HALT")
INTERRUPTS = answer({"decision": {"behavior": "deny", "message": "HALT", "interrupt": True}})


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


@pytest.mark.parametrize(
    ("event", "says", "steps", "answered"),
    [
        ("BeforeModel", NO, [DONE], ""),
        ("BeforeModel", HALT, [DONE], ""),
        ("BeforeToolSelection", HALT, [DONE], ""),
        ("AfterModel", NO, [DONE, DONE], "A hook withheld this reply: HALT"),
        ("AfterModel", NO, [READS, DONE], "A hook withheld this reply: HALT"),
        ("AfterModel", HALT, [READS, DONE], ""),
        ("PreToolUse", HALT, [READS, DONE], ""),
        ("PostToolUse", HALT, [READS, DONE], ""),
        ("PermissionRequest", INTERRUPTS, [RUNS, DONE], ""),
    ],
)
async def test_what_a_hook_ended_is_no_completed_turn(
    tmp_path: Path, event: str, says: str, steps: Sequence[dict[str, Any]], answered: str
) -> None:
    async with scripted_session(tmp_path, *steps) as d:
        configure_user(**{event: [handler(says)]})
        await d.prompt("go")
        state = await d.ended("hook")
        assert state.last_turn is not None
        assert "HALT" in state.last_turn.message and state.last_turn.can_continue
        assert [item.text for item in state.items if isinstance(item, Answer)] == [answered] * bool(answered)
        told = [item for item in state.items if isinstance(item, Notice) and "HALT" in item.text]
        assert [item.level for item in told] == ["warning"]
        assert d.file.exists()


async def test_a_stop_hook_that_lets_the_agent_stop_cuts_nothing_short(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        configure_user(Stop=[handler(HALT), handler(answer(decision="block", reason="run the tests"))])
        await d.prompt("go")
        await d.ended("completed")
        assert "HALT" in notices(d) and "run the tests" not in d.told()


async def test_what_is_queued_waits_behind_a_turn_that_a_hook_ended(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, RUNS, DONE, DONE) as d:
        configure_user(PostToolUse=[handler(HALT)], PostToolUseFailure=[handler(HALT)])
        await d.prompt("one")
        await d.until(lambda state: state.approvals)
        await d.prompt("two", "p2")
        await d.answer("allow")
        state = await d.over("p1", "hook")
        assert [prompt.prompt_id for prompt in state.queue] == ["p2"]


REFUSED = "A hook refused this prompt, so it was not sent: not today."
"""The hook's own words have no full stop."""


@pytest.mark.parametrize(
    ("sent", "given_back"),
    [
        (("p3", "three"), ["two"]),
        (("p2", "two"), []),  # the one that waits, once more
    ],
)
async def test_a_refused_prompt_is_an_error_also_behind_a_queue(
    tmp_path: Path, sent: tuple[str, str], given_back: list[str]
) -> None:
    """And not one that has started; those that waited are given back in a notice. It may be sent again."""
    prompt_id, text = sent
    async with scripted_session(tmp_path, RUNS, DONE) as d:
        turn_id = await d.prompt("one")
        await d.until(lambda state: state.approvals)
        await d.prompt("two", "p2")
        await d.session.prompts.cancel(turn_id or "")
        await d.over("p1", "cancelled")
        configure_user(UserPromptSubmit=[handler("echo not today >&2; exit 2")])
        with pytest.raises(AmanuError, match=REFUSED):
            await d.prompt(text, prompt_id)
        state = d.session.state
        assert not state.queue and state.turn is None
        returned = f"{REFUSED} This prompt was removed from the queue without being sent:\n\n"
        found = [item.text for item in state.items if isinstance(item, Notice) and item.text.startswith(REFUSED)]
        assert found == [returned + each for each in given_back]
        configure_user()
        assert await d.prompt(text, prompt_id) == f"turn-{prompt_id}"
        await d.over(prompt_id)


async def test_what_follows_by_itself_is_not_said_to_wait(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, RUNS, DONE, DONE, DONE) as d:
        turn_id = await d.prompt("one")
        await d.until(lambda state: state.approvals)
        await d.prompt("two", "p2")
        await d.session.prompts.cancel(turn_id or "")
        await d.over("p1", "cancelled")
        await d.prompt("three", "p3")
        await d.over("p3")
        told = [item.text for item in d.session.state.items if isinstance(item, Notice) and "in the queue" in item.text]
        assert told == [
            "1 prompt waits in the queue: “two”. When you send your next prompt, this one runs first.",
        ]


async def test_the_turn_after_one_that_a_hook_ended_is_like_any_other(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, READS, DONE) as d:
        configure_user(PostToolUse=[handler(HALT)])
        await d.prompt("one")
        await d.over("p1", "hook")
        await d.reopen()
        assert d.session.state.last_turn is not None and d.session.state.last_turn.reason == "hook"
        await d.prompt("two", "p2")
        await d.over("p2")
        assert "Done." in d.told()


@pytest.mark.parametrize(
    ("event", "says", "looks"),
    [
        ("PreToolUse", HALT, [READS, step("", complete())]),
        ("PostToolUse", HALT, [READS, step("", complete())]),
        ("AfterModel", NO, [step("Talk."), step("", complete())]),
    ],
)
@pytest.mark.parametrize("background", [False, True])
async def test_the_parent_of_an_agent_that_a_hook_ended_is_told_the_reason_and_goes_on(
    tmp_path: Path, event: str, says: str, looks: Sequence[dict[str, Any]], background: bool
) -> None:
    only_agents = f"grep agent_id > /dev/null || exit 0; {says}"
    starts = step("", ask_agent("looker", background=background))
    async with session_with_agents(tmp_path, {"looker": looks}, starts, DONE, DONE) as d:
        configure_user(**{event: [handler(only_agents)]})
        await d.prompt("look")
        await d.over("p1")
        state = await d.until(lambda state: not state.agents[0].works)
        assert agent(d).state == "failed"
        told = [item for item in state.items if isinstance(item, Notice) and item.agent_id == "agent-1"]
        assert ["HALT" in item.text for item in told] == [True]
        child = await d.sessions.get(agent(d).session_id)
        assert child.state.last_turn is not None and child.state.last_turn.reason == "hook"
        if background:
            await d.prompt("and?", "p2")
            await d.over("p2")
            assert "HALT" in d.told()
        else:
            assert "failed, and its task is not completed" in results(d)[0] and "HALT" in results(d)[0]


async def test_a_hook_that_lets_an_agent_stop_lets_its_result_through(tmp_path: Path) -> None:
    looks = [step("", complete("Line 2."))]
    async with session_with_agents(tmp_path, {"looker": looks}, step("", ask_agent("looker")), DONE) as d:
        configure_user(SubagentStop=[handler(HALT)])
        await d.prompt("look")
        await d.ended()
        assert "completed its task" in results(d)[0] and "Line 2." in results(d)[0]


async def test_parallel_calls_of_a_reply_that_a_hook_ends_have_one_result_each(tmp_path: Path) -> None:
    many = step("", *[call("read_file", path="notes.txt") for _ in range(4)])
    async with scripted_session(tmp_path, many, DONE) as d:
        configure_user(PreToolUse=[handler(HALT)])
        await d.prompt("go")
        await d.ended("hook")
        assert {item.state for item in tool_calls(d)} == {"rejected"}
        assert d.told().count('"kind":"result"') == 4
