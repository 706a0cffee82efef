"""The user changes a command before it runs: what runs is what they wrote, and nothing that nobody saw."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Approval, ToolCall
from amanu_protocol.requests import ApprovalResolveParams, AuditQueryParams
from support.hook_files import answer, configure_user, handler
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.session_client import Client

DONE = step("Done.")
DENY = '[[rule]]\ndecision = "deny"\ntool = "@run"\ncommand = "touch forbidden *"\n'


def runs(command: str, **arguments: Any) -> dict[str, Any]:
    return step("", call("run_shell_command", command=command, **arguments))


def only_call(d: ScriptedSession) -> ToolCall:
    (item,) = [item for item in d.session.state.items if isinstance(item, ToolCall)]
    return item


def results(d: ScriptedSession) -> str:
    return d.told().partition('"results"')[2]


async def edited(d: ScriptedSession, command: str, **answer: Any) -> Approval:
    """Answer the question with that line. Returns the question."""
    (asked,) = (await d.until(lambda state: state.approvals)).approvals
    await asyncio.sleep(0)
    assert await d.answer("allow", command=command, **answer) == "resolved"
    return asked


@pytest.fixture(autouse=True)
def _no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.permissions.approvals.GUARD_SECONDS", 0)


@pytest.mark.parametrize(
    ("model", "user"),
    [
        ("touch one && touch two", "touch one"),
        ("touch one", "touch one  three"),
        ("touch one", "touch one\ntouch three"),
        ("touch one", "cat notes.txt"),
        ("touch one", "bash -c 'touch three'"),
        ("rm -rf two && touch one", "rm -rf two"),
        ("npm view x", "npm ci"),
        ("touch one", "touch .git/hooks/pre-commit"),
    ],
    ids=[
        *("narrower", "another", "two lines", "one that is allowed", "a script", "part that must be asked", "network"),
        "what the sandbox holds",
    ],
)
async def test_a_line_that_needs_no_more_than_was_asked_for_runs_at_once(tmp_path: Path, model: str, user: str) -> None:
    async with scripted_session(tmp_path, runs(model, description="What the model meant"), DONE) as d:
        (d.root / ".git" / "hooks").mkdir(parents=True)
        await d.prompt("go")
        asked = await edited(d, user)
        assert asked.command == model and asked.original_command is None
        await d.ended()
        item = only_call(d)
        assert item.arguments == {"command": user}
        assert item.decision is not None and item.decision.outcome == "allowed" and item.decision.by == "user"
        assert item.decision.command == user
        assert "as you changed it" in item.decision.summary
        assert not (d.root / ".git" / "hooks" / "pre-commit").exists()
        assert f"The user changed the command before it ran, to: {user}".replace("\n", "\\n") in results(d)


@pytest.mark.parametrize(
    ("model", "user", "why"),
    [
        ("touch one", "curl localhost:1", "network"),
        ("touch one", "rm -rf notes.txt", "destroys work"),
        ("touch one", "touch $(", "cannot fully analyze"),
        ("touch one && rm -rf two", "rm -rf notes.txt", "destroys work"),
        ("touch one", "cat .env", ".env"),
    ],
    ids=["network", "destroys", "not understood", "another that must be asked", "secrets"],
)
async def test_a_line_that_needs_more_is_asked_about_anew(tmp_path: Path, model: str, user: str, why: str) -> None:
    async with scripted_session(tmp_path, runs(model), DONE) as d:
        (d.root / ".git" / "hooks").mkdir(parents=True)
        (d.root / ".env").write_text("KEY=1\n")
        await d.prompt("go")
        first = await edited(d, user)
        (again,) = (await d.until(lambda state: state.approvals)).approvals
        assert (again.command, again.original_command) == (user, model)
        assert again.digest != first.digest
        assert user in again.detail and user in again.title
        assert any(model in line.text for line in again.lines)
        assert why in " ".join(line.text for line in again.lines)
        assert await d.answer("allow", digest=first.digest) == "stale"
        assert await d.answer("allow") == "resolved"
        await d.ended()
        item = only_call(d)
        assert item.arguments["command"] == user
        assert item.decision is not None and item.decision.command == user


async def test_a_line_that_a_rule_denies_does_not_run(tmp_path: Path) -> None:
    (find_home().make().config / "config.toml").write_text(DENY)
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        await d.prompt("go")
        await edited(d, "touch forbidden one")
        await d.ended()
        item = only_call(d)
        assert (item.state, item.arguments["command"]) == ("rejected", "touch forbidden one")
        assert "Denied by a rule" in (item.error or "")
        assert "Denied by a rule" in results(d) and "The user changed the command" in results(d)
        assert not (d.root / "forbidden").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [("", "empty"), (" \n\t", "empty"), ("touch a\u200bb", "hidden characters"), ("touch \0", "hidden characters")],
)
async def test_a_line_that_no_user_means_leaves_the_question(tmp_path: Path, command: str, message: str) -> None:
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        await d.prompt("go")
        with pytest.raises(AmanuError, match=message):
            await d.answer("allow", command=command)
        (asked,) = d.session.state.approvals
        assert asked.command == "touch one"
        await d.answer("reject")
        await d.ended()


async def test_the_same_line_is_a_plain_yes(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        await d.prompt("go")
        await edited(d, "touch one")
        await d.ended()
        assert "The user changed" not in d.told()
        assert (d.root / "one").exists()


async def test_a_line_for_an_approval_of_the_past_is_stale(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        await d.prompt("go")
        assert await d.answer("allow", command="touch two", digest="of another") == "stale"
        assert await d.answer("allow", command="touch two", digest=None) == "stale"
        await d.answer("reject")
        await d.ended()
        assert not (d.root / "two").exists()


async def test_who_answers_after_the_edit_is_told_so(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        await d.prompt("go")
        asked = await edited(d, "touch two")
        params = ApprovalResolveParams(
            session_id="s", tool_call_id=asked.tool_call_id, decision="allow", digest=asked.digest
        )
        late = await d.session.resolve_approval(params, Client({}))
        assert late.status == "alreadyResolved" and "Your answer came too late" in late.summary
        await d.ended()
        assert (d.root / "two").exists() and not (d.root / "one").exists()


async def test_to_keep_a_rule_the_line_is_asked_about_with_its_own_rules(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        await d.prompt("go")
        first = await edited(d, "mkdir two", scope="session")
        (again,) = (await d.until(lambda state: state.approvals)).approvals
        assert [offer.rule for offer in first.scopes][1:2] != [offer.rule for offer in again.scopes][1:2]
        assert "mkdir" in again.scopes[1].rule
        await d.answer("allow", scope="session")
        await d.ended()
        decision = only_call(d).decision
        assert decision is not None and "mkdir" in (decision.rule or "") and decision.command == "mkdir two"


async def test_a_command_in_the_background_stays_there(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, runs("sleep 100", background=True, wait_s=0.1), DONE) as d:
        await d.prompt("go")
        await edited(d, "sleep 50")
        await d.ended()
        assert [job.title for job in d.session.state.jobs] == ["sleep 50"]


async def test_the_line_can_be_changed_again(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        await d.prompt("go")
        await edited(d, "rm -rf one")
        again = await edited(d, "touch two")
        assert again.original_command == "touch one"
        await d.ended()
        assert only_call(d).arguments["command"] == "touch two" and (d.root / "two").exists()


@pytest.mark.parametrize("command", ["touch a\u202eb", "touch a\rb"])
async def test_what_an_editor_would_not_show_is_not_edited(tmp_path: Path, command: str) -> None:
    async with scripted_session(tmp_path, runs(command), DONE) as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.command is None
        with pytest.raises(AmanuError, match="cannot be edited"):
            await d.answer("allow", command="touch two")
        await d.answer("reject")
        await d.ended()


async def test_an_edit_of_files_has_no_command(tmp_path: Path) -> None:
    writes = step("", call("write_file", path="new.txt", content="x"))
    async with scripted_session(tmp_path, writes, DONE) as d:
        await d.prompt("go")
        with pytest.raises(AmanuError, match="cannot be edited"):
            await d.answer("allow", command="touch two")
        await d.answer("reject")
        await d.ended()


async def test_the_audit_log_has_both_lines(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        await d.prompt("go")
        await edited(d, "touch two")
        await d.ended()
        entries = (await d.sessions.audit_query(AuditQueryParams(session_id="s", limit=1000))).entries
        told = [(entry.kind, entry.data) for entry in entries if entry.tool_call_id]
        first = ["decided", "started"] if shutil.which("bwrap") else []
        assert [kind for kind, _ in told] == [*first, "asked", "decided", "decided", "started", "ended"]
        asked, *decided = (data for _, data in told[len(first) : -2])
        assert asked["command"] == "touch one"
        assert [data["outcome"] for data in decided] == ["edited", "allowed"]
        assert decided[0]["command"] == decided[1]["command"] == "touch two"


async def test_hooks_are_asked_about_the_line_of_the_user(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        refuses = '! grep -q "touch two" || { echo "not two" >&2; exit 2; }'
        configure_user(PreToolUse=[handler(refuses)])
        await d.prompt("go")
        await edited(d, "touch two")
        await d.ended()
        assert only_call(d).state == "rejected" and "not two" in results(d)
        assert not (d.root / "two").exists()


async def test_a_line_that_a_hook_changes_once_more_is_asked_about(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, runs("touch one"), DONE) as d:
        says = {"hookEventName": "PreToolUse", "updatedInput": {"command": "touch three"}}
        changes = f"if grep -q 'touch two'; then {answer(says)}; fi"
        configure_user(PreToolUse=[handler(changes)])
        await d.prompt("go")
        await edited(d, "touch two")
        (again,) = (await d.until(lambda state: state.approvals)).approvals
        assert again.command == "touch three"
        await d.answer("allow")
        await d.ended()
        assert [path.name for path in d.root.iterdir() if path.name in ("one", "two", "three")] == ["three"]
