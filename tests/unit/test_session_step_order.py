"""An edit, a call that looks at files or changes them, and another edit of the same lines, in one reply."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.mcp.model import CallAnswer, CallClient
from amanu.permissions import approvals as approval
from amanu.permissions.offers import rules_of
from amanu_protocol.items import Mode, ToolCall
from amanu_protocol.requests import ApprovalResolveParams
from support.agent_session import ask_agent, complete, user_agent
from support.draft_session import edit, results
from support.hook_files import configure_user, handler
from support.mcp_in_memory import Server, ServersInMemory, text_answer
from support.required_programs import needs
from support.scripted_session import ScriptedSession, call, scripted_session, step
from support.sweeps import sample_pairs

pytestmark = pytest.mark.layers

MODES: list[Mode] = ["ask", "acceptEdits", "auto", "draft"]
SHOW = "head -n 2 notes.txt | tail -n 1"
MIDDLES: dict[str, dict[str, Any]] = {
    "command": call("run_shell_command", command=SHOW),
    "script": call("run_shell_command", command=f"bash -c '{SHOW}'"),
    "allowed server": call("mcp__demo__echo", text="x"),
    "asked server": call("mcp__demo__echo", text="x"),
    "background": call("run_shell_command", command=f"{SHOW}; sleep 300", background=True, until="line"),
    "agent": ask_agent("looker"),
}
FIRST, SECOND = edit("line 2\n", "line two\n"), edit("line two\n", "line 2nd\n")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def servers(folder: Path, writes: str = "") -> ServersInMemory:
    """One server, whose tool tells the second line, and then replaces it."""

    async def answer(arguments: Mapping[str, Any], client: CallClient) -> CallAnswer:
        file = folder / "work/notes.txt"
        found = file.read_text()
        if writes:
            file.write_text(found.replace(found.splitlines()[1], writes))
        return text_answer(found.splitlines()[1])

    return ServersInMemory(Server("demo", answer=answer))


async def answered(d: ScriptedSession, *, last_first: bool = False) -> list[str]:
    """Say yes to every question until the turn ends. Returns the details of the questions."""
    seen: list[str] = []
    while True:
        state = await d.until(lambda state: state.approvals or state.last_turn)
        if not state.approvals:
            await d.ended()
            return seen
        asked = state.approvals[-1 if last_first else 0]
        seen.append(asked.detail)
        params = ApprovalResolveParams(
            session_id="s", tool_call_id=asked.tool_call_id, decision="allow", digest=asked.digest
        )
        await d.session.resolve_approval(params, d.client)
        await d.until(lambda state, digest=asked.digest: all(each.digest != digest for each in state.approvals))


def middle_output(d: ScriptedSession) -> str:
    """All that the calls between the edits, or an agent's calls, showed."""
    calls = [item for item in d.session.state.items if isinstance(item, ToolCall)]
    return "\n".join(item.output for item in calls if item.effect != "write")


@pytest.mark.parametrize("hooks", [False, True])
@pytest.mark.parametrize(("middle", "mode"), sample_pairs([*MIDDLES], MODES, 2))
async def test_the_middle_sees_exactly_the_edits_before_it(
    tmp_path: Path, middle: str, mode: Mode, *, hooks: bool
) -> None:
    user_agent(tmp_path, "looker", [step("", MIDDLES["command"]), step("", complete("seen"))])
    if hooks:
        configure_user(PreToolUse=[handler("cat > /dev/null")], PostToolUse=[handler("cat > /dev/null")])
    steps = step("", FIRST, MIDDLES[middle], SECOND), step("Done.")
    async with scripted_session(tmp_path, *steps, mode=mode, mcp=servers(tmp_path)) as d:
        if middle == "allowed server":
            for rule in rules_of("mcp__demo__*", "session"):
                d.session.core.approvals.allow_in_session(rule)
        await d.prompt("go")
        questions = await answered(d)
        first, _, second = results(d)
        seen = middle_output(d)
        # A server is shared by all sessions, and sees the workspace as it is on disk.
        assert ("line 2" if mode == "draft" and "server" in middle else "line two") in seen
        assert "line 2nd" not in seen
        assert d.file.read_text().splitlines()[1] == "line 2nd"
        assert ("Drafted: notes.txt" if mode == "draft" else "Applied to notes.txt: line 2.") in first
        assert ("Drafted: notes.txt" if mode == "draft" else "Applied to notes.txt: line 2.") in second
        if mode == "ask":
            changes = [question for question in questions if "notes.txt" in question]
            assert "-line 2\n+line two\n" in changes[0]
            assert "-line two\n+line 2nd\n" in changes[-1]


async def test_answers_in_another_order_change_nothing(tmp_path: Path) -> None:
    steps = step("", FIRST, MIDDLES["asked server"], SECOND), step("Done.")
    async with scripted_session(tmp_path, *steps, mcp=servers(tmp_path)) as d:
        await d.prompt("go")
        await d.until(lambda state: len(state.approvals) == 2)  # the later edit is not asked about yet
        await answered(d, last_first=True)
        assert middle_output(d) == "line two"
        assert d.file.read_text().splitlines()[1] == "line 2nd"


@pytest.mark.parametrize("mode", MODES[:3])
@pytest.mark.parametrize("writes", ["line by server", "line two"])
async def test_no_edit_is_lost_to_a_server_that_writes_the_file(tmp_path: Path, mode: Mode, writes: str) -> None:
    steps = step("", FIRST, MIDDLES["asked server"], SECOND), step("Done.")
    async with scripted_session(tmp_path, *steps, mode=mode, mcp=servers(tmp_path, writes)) as d:
        await d.prompt("go")
        await answered(d)
        first, _, second = results(d)
        assert "Applied to notes.txt: line 2." in first
        if writes == "line two":
            assert "Applied to notes.txt: line 2." in second
            assert d.file.read_text().splitlines()[1] == "line 2nd"
        else:
            assert "Nothing was changed" in second
            assert d.file.read_text().splitlines()[1] == writes


@pytest.mark.parametrize("mode", MODES)
async def test_a_command_that_changes_the_same_lines_is_in_order_too(tmp_path: Path, mode: Mode) -> None:
    middle = call("run_shell_command", command="sed -i 's/line two/line by sed/' notes.txt")
    steps = step("", FIRST, middle, edit("line by sed\n", "line 2nd\n")), step("Done.")
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        await d.prompt("go")
        if mode == "ask":  # a yes in the instant in which the command starts may end in "run the command again"
            await d.until(lambda state: any(item.kind == "toolCall" and item.output for item in state.items))
        await answered(d)
        assert d.file.read_text().splitlines()[1] == "line 2nd", results(d)
        assert "waits" not in d.told()


@pytest.mark.parametrize("middle", ["command", "asked server", "agent"])
async def test_an_edit_left_open_holds_back_nothing_of_the_next(tmp_path: Path, middle: str) -> None:
    user_agent(tmp_path, "looker", [step("", complete("seen"))])
    steps = step("", FIRST, MIDDLES[middle], SECOND), step("Done.")
    async with scripted_session(tmp_path, *steps, mcp=servers(tmp_path)) as d:
        await d.prompt("go")
        await d.answer("finish")
        await answered(d)
        first, _, second = results(d)
        assert "open, not applied" in first
        assert "waits" not in d.told()
        assert "Applied to notes.txt: line 2." in second  # the question about it showed both
        assert d.file.read_text().splitlines()[1] == "line 2nd"


@pytest.mark.parametrize("said", ["allow", "reject", "finish"])
async def test_what_a_command_changed_is_asked_about_after_the_edits_before_it(tmp_path: Path, said: str) -> None:
    middle = call("run_shell_command", command="sed -i 's/line two/line by sed/; s/line 9/line nine/' notes.txt")
    async with scripted_session(tmp_path, step("", FIRST, middle), step("Done.")) as d:
        await d.prompt("go")
        await d.until(lambda state: any(item.kind == "toolCall" and item.output for item in state.items))  # it has run
        assert len(d.session.state.approvals) == 1
        await d.answer(said)
        questions = await answered(d)
        assert len(questions) == 1
        assert "waits" not in d.told()
        second, ninth = d.file.read_text().splitlines()[1:9:7]
        assert ninth == "line nine"
        assert second == ("line 2" if said == "reject" else "line by sed")  # of an open edit the question shows both
