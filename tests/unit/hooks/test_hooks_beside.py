"""Hooks where something else goes on: a second session or client, background commands, drafts, plan mode."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol.requests import (
    JobParams,
    PromptSendParams,
    SessionCreateParams,
)
from support.draft_session import decide_all, finish, open_drafts
from support.hook_files import TELLS, answer, configure_user, handler, hook_entries, notices, tool_calls, trust_hooks
from support.required_programs import needs
from support.scripted_session import TWELVE, call, conversation, scripted_session, step
from support.session_client import Client, until

pytestmark = pytest.mark.layers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


READS = step("", call("read_file", path="notes.txt"))
EDIT = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
EDITS = step("", EDIT)
DONE = step("Done.")


def events(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["event"] for entry in entries]


async def test_hooks_of_two_sessions_hear_each_of_its_own(tmp_path: Path) -> None:
    """A no in one is none in the other, and neither waits for the other's hook."""
    guard = (
        """grep -q '"session_id": "s"' && { read < "$CLAUDE_PROJECT_DIR"/gate; echo 'not in s' >&2; exit 2; }; exit 0"""
    )
    async with scripted_session(tmp_path, READS, DONE) as d:
        os.mkfifo(d.root / "gate")
        configure_user(PreToolUse=[handler(guard)], PostToolUse=[handler(TELLS)])
        script = tmp_path / "second.json"
        script.write_text(json.dumps([READS, DONE]))
        other = Client(os.environ, "two")
        params = SessionCreateParams(session_id="t", roots=[str(d.root)], model_id=f"scripted:{script}")
        await d.sessions.create(params, other)
        second = await d.sessions.get("t")
        await d.prompt("go")
        await second.prompts.send(PromptSendParams(session_id="t", prompt_id="p", text="go"), other)
        await until(second, lambda state: state.last_turn)
        assert d.session.state.last_turn is None
        (d.root / "gate").write_text("\n")
        await d.ended()
        assert "not in s" in d.told() and "line 12" not in d.told()
        (result,) = conversation(second).results()
        assert "line 12" in result.text
        assert events(await hook_entries(d)) == ["PreToolUse"]
        shown = [item for item in second.state.items if item.kind == "notice" and item.code == "hook"]
        assert ['"session_id": "t"' in f"{item.text}{item.detail}" for item in shown] == [True]


async def test_two_clients_make_no_hook_run_twice(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, EDITS, DONE) as d:
        says = handler("cat > /dev/null")
        names = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop")
        configure_user(**{name: [says] for name in names})
        other = Client(os.environ, "two")
        other.state = d.session.attach(other, None, None).state
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        d.session.detach(d.client)  # who asked has gone, the other decides
        await d.answer("allow", other)
        await d.ended()
        assert sorted(events(await hook_entries(d))) == sorted(names)
        d.client.state = d.session.attach(d.client, None, None).state
        assert other.state is not None and other.state.model_dump() == d.session.view().model_dump()


@pytest.mark.parametrize("denied", [False, True])
async def test_a_background_command_is_one_call_to_hooks(tmp_path: Path, denied: bool) -> None:
    """Before its start they can forbid it; its end and its stop are none of theirs."""
    starts = call("run_shell_command", command="echo up; sleep 60", background=True, until="up")
    guard = """grep -q '"run_in_background": true' && { echo 'nothing stays' >&2; exit 2; }; exit 0"""
    async with scripted_session(tmp_path, step("", starts), DONE, mode="auto") as d:
        configure_user(PreToolUse=[handler(guard if denied else TELLS, matcher="Bash")], PostToolUse=[handler(TELLS)])
        await d.prompt("go")
        await d.ended()
        if denied:
            assert not d.session.state.jobs and "nothing stays" in d.told()
            assert events(await hook_entries(d)) == ["PreToolUse"]
            return
        assert [job.state for job in d.session.state.jobs] == ["running"]
        await d.session.core.jobs.end(JobParams(session_id="s", job_id="job-1"))
        assert events(await hook_entries(d)) == ["PreToolUse", "PostToolUse"]
        assert '"run_in_background": true' in notices(d)


async def test_what_a_hook_makes_of_an_edit_is_drafted_and_reviewed_once(tmp_path: Path) -> None:
    again = answer(decision="block", reason="also the other line")
    more = step("", call("edit_file", path="notes.txt", old_text="line 11\n", new_text="line eleven\n"))
    async with scripted_session(tmp_path, EDITS, step("So."), more, DONE, mode="draft") as d:
        edit = {"file_path": str(d.file), "old_string": "line 2\n", "new_string": "line of the hook\n"}
        change = f"grep -q 'line two' && {answer({'updatedInput': edit}).removeprefix('cat > /dev/null; ')}; exit 0"
        configure_user(PreToolUse=[handler(change, matcher="Edit")], Stop=[handler(again)])
        await trust_hooks(d)  # it names a file of the folder
        await d.prompt("go")
        await finish(d)  # one question, though it has stopped twice
        assert d.told().count("also the other line") == 1
        assert d.file.read_text() == TWELVE and open_drafts(d)
        await decide_all(d, "accept")
        changed = TWELVE.replace("line 2\n", "line of the hook\n").replace("line 11\n", "line eleven\n")
        assert d.file.read_text() == changed


@pytest.mark.parametrize(
    "made", [EDIT, call("mcp__none__x"), call("write_file", path="new.txt", content="x")], ids=lambda each: each["tool"]
)
async def test_no_hook_lets_anything_out_of_plan_mode(tmp_path: Path, made: dict[str, Any]) -> None:
    run = call("run_shell_command", command="echo x > ran.txt")
    async with scripted_session(tmp_path, step("", made, run), DONE, mode="plan") as d:
        says = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        yes = {"decision": {"behavior": "allow"}}
        configure_user(PreToolUse=[handler(answer(says))], PermissionRequest=[handler(answer(yes))])
        await d.prompt("go")
        await d.ended()
        assert [item.state for item in tool_calls(d)][1:] == ["succeeded"], "on a copy that is thrown away"
        assert d.file.read_text() == TWELVE and [each.name for each in d.root.iterdir()] == ["notes.txt"]
