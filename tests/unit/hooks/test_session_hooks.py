"""Hooks in a session: what each event's hook is told, and what its answer does."""

import json
from pathlib import Path
from typing import Any

import pytest

from amanu.hooks.part import HooksPart
from amanu.hooks.session_hooks import AgentIdentity
from amanu.permissions import approvals as approval
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import PromptSteerParams
from support.hook_files import (
    TELLS,
    agree,
    answer,
    configure,
    configure_user,
    handler,
    hook_entries,
    notices,
    script,
    tool_calls,
    trust_hooks,
)
from support.required_programs import needs
from support.scripted_session import call, scripted_session, step


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


WRITES = step("", call("write_file", path="new.txt", content="from the model\n"))
RUNS = step("", call("run_shell_command", command="touch made-by-command"))
DONE = step("Done.")


async def test_a_denied_call_does_not_run_and_the_model_hears_why(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode="auto") as d:
        guard = script(d.root, "guard.sh", "cat > /dev/null; echo 'no new files here' >&2; exit 2")
        configure(d.root, PreToolUse=[handler(guard, matcher="Write")])
        await trust_hooks(d)
        await d.prompt("write")
        await d.ended()
        assert not (d.root / "new.txt").exists()
        assert "no new files here" in d.told()
        assert "no new files here" in (tool_calls(d)[0].error or "")
        [entry] = await hook_entries(d)
        assert (entry["event"], entry["answer"], entry["exit"]) == ("PreToolUse", "deny", 2)


async def test_a_hook_nobody_agreed_to_does_not_run(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        guard = script(d.root, "guard.sh", "exit 2")
        configure(d.root, PreToolUse=[handler(guard, matcher="Write")])
        await d.trust()
        await d.prompt("write")
        await d.ended()
        assert (d.root / "new.txt").exists()
        assert "One hook is off" in notices(d, "hooksOff")
        assert await hook_entries(d) == []


async def test_a_swapped_script_is_refused(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE, mode="acceptEdits") as d:
        configure(d.root, UserPromptSubmit=[handler(script(d.root, "x.sh", "echo first"))])
        await trust_hooks(d)
        await d.prompt("one")
        await d.over("p1")
        script(d.root, "x.sh", "echo swapped")
        await d.prompt("two", "p2")
        await d.over("p2")
        assert "first" in d.told()
        assert "swapped" not in d.told()
        assert "hooks/x.sh" in notices(d, "hooksOff")
        assert len(await hook_entries(d)) == 1


async def test_an_untrusted_folder_starts_nothing(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        configure(d.root, UserPromptSubmit=[handler("echo hello")])
        agree(d.root)
        await d.prompt("one")
        await d.ended()
        assert "hello" not in d.told()
        assert await hook_entries(d) == []


async def test_a_refused_prompt_never_reaches_the_model(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE) as d:
        configure_user(UserPromptSubmit=[handler("grep -q mango && { echo 'no fruit' >&2; exit 2; }; exit 0")])
        with pytest.raises(AmanuError, match="no fruit"):
            await d.prompt("the word mango")
        assert "mango" not in d.told()
        assert not d.session.state.items
        await d.prompt("the other word", "p2")
        await d.over("p2")
        assert "mango" not in d.told()


async def test_context_of_session_and_prompt_reaches_the_model(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        configure_user(
            SessionStart=[handler("echo begun", matcher="startup")],
            UserPromptSubmit=[
                handler(answer({"hookEventName": "UserPromptSubmit", "additionalContext": "<b>mind</b> this"}))
            ],
        )
        await d.prompt("one")
        await d.over("p1")
        await d.prompt("two", "p2")
        await d.over("p2")
        assert d.told().count("begun") == 1
        assert d.told().count("<b>mind</b> this") == 2
        assert "begun" in notices(d)


@pytest.mark.parametrize(
    ("owner", "mode", "decision", "asked"),
    [
        ("user", "ask", "allow", False),
        ("workspace", "ask", "allow", True),
        ("user", "acceptEdits", "ask", True),
        ("workspace", "acceptEdits", "ask", True),
        ("workspace", "acceptEdits", "defer", True),
        ("workspace", "acceptEdits", "something new", True),
    ],
)
async def test_who_may_allow_and_who_may_ask(tmp_path: Path, owner: str, mode: Any, decision: str, asked: bool) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode=mode) as d:
        says = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": "see here"}
        events = {"PreToolUse": [handler(answer(says), matcher="Write|Edit")]}
        configure_user(**events) if owner == "user" else configure(d.root, **events)
        await trust_hooks(d)
        await d.prompt("write")
        if asked:
            state = await d.until(lambda state: state.approvals)
            if decision == "ask":
                assert "see here" in state.approvals[0].rule
            await d.decide("accept") if state.approvals[0].proposal_id else await d.answer("allow")
        await d.ended()
        assert (d.root / "new.txt").read_text() == "from the model\n"


async def test_allow_beats_no_deny_and_no_must_ask(tmp_path: Path) -> None:
    danger = step(
        "", call("write_file", path=".git/config", content="x"), call("run_shell_command", command="rm -rf *")
    )
    async with scripted_session(tmp_path, danger, DONE, mode="ask", headless=True) as d:
        says = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        configure_user(PreToolUse=[handler(answer(says))])
        await d.prompt("danger")
        await d.ended()
        assert [item.state for item in tool_calls(d)] == ["rejected", "rejected"]
        assert d.file.exists()


async def test_changed_input_is_shown_and_decided_on_anew(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE) as d:
        change = {"file_path": str(d.root / "modified.txt"), "content": "by the hook\n"}
        configure_user(PreToolUse=[handler(answer({"hookEventName": "PreToolUse", "updatedInput": change}))])
        await d.prompt("write")
        state = await d.until(lambda state: state.approvals)
        assert "modified.txt" in state.approvals[0].title
        await d.decide("accept")
        await d.ended()
        assert (d.root / "modified.txt").read_text() == "by the hook\n"
        assert not (d.root / "new.txt").exists()
        assert tool_calls(d)[0].arguments["content"] == "by the hook\n"
        assert "changed the arguments" in notices(d)
        assert len(await hook_entries(d)) == 1


async def test_stop_hooks_make_the_agent_go_on_three_times_at_most(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *[DONE] * 6) as d:
        count = 'echo "{\\"decision\\": \\"block\\", \\"reason\\": \\"not yet $RANDOM$RANDOM\\"}"'
        configure_user(Stop=[handler(count)])
        await d.prompt("go")
        await d.ended()
        assert d.told().count("the work is not done") == 3
        assert "3 times" in notices(d)


async def test_the_same_reason_twice_ends_the_turn(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *[DONE] * 4) as d:
        configure_user(Stop=[handler(answer(decision="block", reason="run the tests"))])
        await d.prompt("go")
        await d.ended()
        assert d.told().count("the work is not done") == 1


async def test_continue_false_ends_the_turn_before_the_call(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        configure_user(PreToolUse=[handler(answer(**{"continue": False, "stopReason": "out of hours"}))])
        await d.prompt("write")
        await d.ended("hook")
        assert not (d.root / "new.txt").exists()
        assert "out of hours" in notices(d)
        assert "Done." not in d.told()


async def test_what_a_hook_says_after_a_call_reaches_the_model(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, RUNS, WRITES, DONE, mode="acceptEdits") as d:
        configure_user(
            PostToolUse=[
                handler(
                    answer({"hookEventName": "PostToolUse", "additionalContext": "the linter is happy"}),
                    matcher="Write",
                ),
                handler(answer(decision="block", reason="that file is not formatted"), matcher="Bash"),
            ]
        )
        await d.prompt("write")
        await d.answer("allow")
        await d.ended()
        assert "the linter is happy" in d.told()
        assert "that file is not formatted" in d.told()


async def test_every_executed_call_has_one_record_before_and_one_after(tmp_path: Path) -> None:
    many = step(
        "",
        call("read_file", path="notes.txt"),
        call("read_file", path="missing.txt"),
        call("write_file", path="a.txt", content="a"),
        call("write_file", path="b.txt", content="b"),
        call("run_shell_command", command="false"),
        call("run_shell_command", command="true"),
        call("nothing_like_it"),
    )
    async with scripted_session(tmp_path, many, DONE, mode="acceptEdits") as d:
        configure_user(
            PreToolUse=[handler("cat > /dev/null")],
            PostToolUse=[handler("cat > /dev/null")],
            PostToolUseFailure=[handler("cat > /dev/null")],
        )
        await d.prompt("many")
        while d.session.running:
            state = await d.until(lambda state: state.approvals or state.last_turn)
            if state.approvals:
                await d.answer("allow")
        entries = await hook_entries(d)
        for item in tool_calls(d):
            events = [entry["event"] for entry in entries if entry["call"] == item.item_id]
            ran = item.decision is not None
            assert len([event for event in events if event == "PreToolUse"]) == (1 if ran else 0), item.title
            assert len([event for event in events if event.startswith("PostToolUse")]) == (1 if ran else 0), item.title


@pytest.mark.parametrize(
    ("owner", "behavior", "state"),
    [
        ("user", "allow", "succeeded"),
        ("workspace", "allow", "asked"),
        ("user", "deny", "rejected"),
        ("workspace", "deny", "rejected"),
    ],
)
async def test_a_question_can_be_answered_by_a_hook(tmp_path: Path, owner: str, behavior: str, state: str) -> None:
    async with scripted_session(tmp_path, RUNS, DONE) as d:
        says = {"decision": {"behavior": behavior, "message": "see here"}}
        events = {"PermissionRequest": [handler(answer(says), matcher="Bash")]}
        configure_user(**events) if owner == "user" else configure(d.root, **events)
        await trust_hooks(d)
        await d.prompt("run")
        if state == "asked":
            await d.answer("reject")
        await d.ended()
        assert tool_calls(d)[0].state == ("rejected" if state == "asked" else state)
        assert ("see here" in d.told()) == (behavior == "deny")
        decision = tool_calls(d)[0].decision
        assert state != "succeeded" or (decision is not None and "your hook" in (decision.rule or ""))


async def test_a_question_that_a_rule_answers_is_none_for_hooks(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        configure_user(PermissionRequest=[handler("exit 2")])
        await d.prompt("write")
        await d.ended()
        assert (d.root / "new.txt").exists()
        assert await hook_entries(d) == []


async def test_a_hook_that_always_adds_something_does_so_once(tmp_path: Path) -> None:
    prepends = (
        """sed -E 's/.*"command": "([^"]*)".*/{"hookSpecificOutput": {"updatedInput": {"command": "env \\1"}}}/'"""
    )
    async with scripted_session(tmp_path, RUNS, DONE) as d:
        configure_user(PreToolUse=[handler(prepends, matcher="Bash")])
        await d.prompt("run")
        state = await d.until(lambda state: state.approvals)
        assert state.approvals[0].title == "Run env touch made-by-command"
        await d.answer("allow")
        await d.ended()
        assert (d.root / "made-by-command").exists()


async def test_two_hooks_that_disagree_about_the_input_make_the_user_be_asked(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode="acceptEdits") as d:
        changes = [answer({"updatedInput": {"file_path": name, "content": "x"}}) for name in ("one.txt", "two.txt")]
        configure_user(PreToolUse=[handler(change) for change in changes])
        await d.prompt("write")
        state = await d.until(lambda state: state.approvals)
        assert "in different ways" in state.approvals[0].rule
        assert "new.txt" in state.approvals[0].title
        await d.decide("accept")
        await d.ended()
        assert (d.root / "new.txt").exists()


async def test_a_guard_sees_every_file_of_a_patch(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Add File: secret/b.txt\n+b\n*** End Patch"
    async with scripted_session(tmp_path, step("", call("apply_patch", patch=patch)), DONE, mode="acceptEdits") as d:
        guard = """grep -q '"file_path": "[^"]*/secret/' && { echo 'not in there' >&2; exit 2; }; exit 0"""
        configure_user(PreToolUse=[handler(guard, matcher="Edit|Write")])
        await d.prompt("patch")
        await d.ended()
        assert not (d.root / "a.txt").exists()
        assert "not in there" in d.told()
        assert len(await hook_entries(d)) == 2


async def test_a_message_to_the_running_turn_is_a_prompt_too(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, RUNS, DONE) as d:
        guard = "grep -q mango && { echo 'no fruit' >&2; exit 2; }; echo heard by the hook"
        configure_user(UserPromptSubmit=[handler(guard)])
        turn_id = await d.prompt("run") or ""
        await d.until(lambda state: state.approvals)

        async def steer(prompt_id: str, text: str) -> None:
            params = PromptSteerParams(session_id="s", prompt_id=prompt_id, turn_id=turn_id, text=text)
            await d.session.prompts.steer(params, d.client)

        with pytest.raises(AmanuError, match="no fruit"):
            await steer("s1", "a mango, please")
        await steer("s2", "an apple, please")
        await d.answer("reject")
        await d.ended()
        assert "an apple, please" in d.told()
        assert "mango" not in d.told()
        assert d.told().count("heard by the hook") == 2


async def test_a_session_that_works_for_another_has_its_own_events(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        part = d.session.core.parts.find(HooksPart)
        assert part is not None
        part.hooks.agent = AgentIdentity("a1", "investigator")
        configure_user(
            SubagentStart=[handler("echo begun", matcher="investigator")],
            SubagentStop=[handler(answer(decision="block", reason="look again"), matcher="investigator")],
            Stop=[handler("exit 2")],
            SessionStart=[handler("exit 2")],
        )
        await d.prompt("go")
        await d.ended()
        assert "begun" in d.told()
        assert "look again" in d.told()
        entries = await hook_entries(d)
        assert [entry["event"] for entry in entries] == ["SubagentStart", "SubagentStop", "SubagentStop"]


async def test_a_session_that_is_opened_again_starts_as_resumed(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, DONE) as d:
        configure_user(SessionStart=[handler(TELLS)], SessionEnd=[handler(TELLS)])
        await d.prompt("one")
        await d.over("p1")
        await d.reopen()
        await d.prompt("two", "p2")
        await d.over("p2")
        texts = notices(d)
        order = [texts.index(text) for text in ('"source": "startup"', '"reason": "other"', '"source": "resume"')]
        assert order == sorted(order)


@pytest.mark.layers
@pytest.mark.parametrize(
    ("who", "end"), [("the user", "completed"), ("a hook", "completed"), ("a hook that ends the turn", "hook")]
)
async def test_a_no_to_what_a_command_has_changed_is_told_as_such(tmp_path: Path, who: str, end: str) -> None:
    needs("bwrap")
    changes = step("", call("run_shell_command", command="echo printed; touch made"))
    async with scripted_session(tmp_path, changes, DONE) as d:
        decision = {"behavior": "deny", "message": "PERM-NO", "interrupt": end == "hook"}
        events = {name: [handler("cat > /dev/null")] for name in ("PreToolUse", "PostToolUse", "PostToolUseFailure")}
        if who != "the user":
            events["PermissionRequest"] = [handler(answer({"decision": decision}), matcher="Bash")]
        configure_user(**events)
        await d.prompt("run")
        if who == "the user":
            await d.answer("reject", reason="PERM-NO")
        await d.ended(end)
        assert not (d.root / "made").exists()
        [item] = tool_calls(d)
        assert item.state == "rejected" and item.decision is not None
        assert [word for word in ("The command ran, but its changes", "printed", "PERM-NO") if word in d.told()] == [
            "The command ran, but its changes",
            "printed",
            "PERM-NO",
        ]
        assert "Not run" not in d.told()
        heard = [entry["event"] for entry in await hook_entries(d) if entry["event"] != "PermissionRequest"]
        assert heard == ["PreToolUse", "PostToolUseFailure"]


@pytest.mark.parametrize(
    ("mode", "told", "on_disk"),
    [
        ("ask", "default", "from the model\n"),
        ("acceptEdits", "acceptEdits", "from the model\n"),
        ("draft", "draft", "no such file"),
        ("auto", "auto", "from the model\n"),
    ],
)
async def test_a_hook_is_told_the_mode_in_which_a_file_changes(
    tmp_path: Path, mode: Any, told: str, on_disk: str
) -> None:
    async with scripted_session(tmp_path, WRITES, DONE, mode=mode) as d:
        configure_user(PostToolUse=[handler(TELLS, matcher="Write")])
        await d.prompt("write")
        if mode == "ask":
            await d.until(lambda state: state.approvals)
            await d.decide("accept")
        await d.until(lambda state: '"PostToolUse"' in notices(d))
        [heard] = [json.loads(line) for line in notices(d).splitlines() if line.startswith("{")]
        assert heard["permission_mode"] == told
        path = Path(heard["tool_input"]["file_path"])
        assert path == d.root / "new.txt" and heard["tool_input"]["content"] == "from the model\n"
        assert (path.read_text() if path.exists() else "no such file") == on_disk
