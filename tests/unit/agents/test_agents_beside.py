"""Sub-agents where something else goes on: undo and rewind, a second client, checkers."""

import os
from pathlib import Path
from typing import Any

import pytest

from amanu.checks import proposal_checks as verdicts
from amanu.permissions import approvals as approval
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode
from amanu_protocol.requests import (
    AgentParams,
    CheckpointRestoreParams,
    EditScope,
    ProposalUndoParams,
    QuestionAnswerParams,
)
from support.agent_session import agent, ask_agent, complete, nested, session_with_agents
from support.hook_files import agree, configure, handler
from support.mcp_in_memory import Server, ServersInMemory, server_tool
from support.scripted_session import TWELVE, call, conversation, step
from support.session_agents import agents_of
from support.session_client import Client
from unit.test_proposal_checks import EDIT, TEXT, Linter


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(verdicts, "PAUSE", 0.0)


ASKS = call("ask_user", questions=[{"question": "Which?", "header": "Which"}])
DONE = step("Done.")


def edit(old: str, new: str) -> dict[str, Any]:
    return call("edit_file", path="notes.txt", old_text=f"{old}\n", new_text=f"{new}\n")


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_what_it_changed_is_undone_with_the_turn_and_rewound(
    tmp_path: Path, background: bool, reopened: bool
) -> None:
    editor = [
        step("", edit("line 2", "line two"), call("write_file", path="new.txt", content="x\n")),
        step("", complete()),
    ]
    steps = [step("", ask_agent("editor", background=background)), DONE, step("Once more.")]
    async with session_with_agents(tmp_path, {"editor": editor}, *steps, mode="acceptEdits") as d:
        await d.prompt("go")
        await d.ended()
        await d.until(lambda state: state.agents[0].state == "completed")
        if reopened:
            await d.reopen()
        scope = EditScope(turn_id="turn-p1")
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=scope))
        assert (d.file.read_text(), (d.root / "new.txt").exists()) == (TWELVE, False)
        params = CheckpointRestoreParams(session_id="s", turn_id="turn-p1", conversation=True)
        await d.session.checkpoints.restore(params)
        assert list(conversation(d.session)) == [] and not nested(d)
        assert d.file.read_text() == TWELVE


async def test_no_rewind_while_one_works(tmp_path: Path) -> None:
    asker = [
        step("", edit("line 2", "line two")),
        step("", ASKS),
        step("", edit("line 11", "line eleven")),
        step("", complete()),
    ]
    steps = [step("", ask_agent("asker", background=True)), DONE]
    async with session_with_agents(tmp_path, {"asker": asker}, *steps, mode="acceptEdits") as d:
        await d.prompt("go")
        await d.ended()
        await d.until(lambda state: state.questions)
        params = CheckpointRestoreParams(session_id="s", turn_id="turn-p1", conversation=True)
        with pytest.raises(AmanuError) as refused:
            await d.session.checkpoints.restore(params)
        assert refused.value.data.hint
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        await agents_of(d.session).stop(AgentParams(session_id="s", agent_id="agent-1"))
        await d.session.checkpoints.restore(params)
        assert d.file.read_text() == TWELVE and not d.session.state.questions


async def test_a_second_client_decides_for_it_and_stops_it(tmp_path: Path) -> None:
    """The client that began it has left; both see the same in the end."""
    asker = [step("", ASKS), step("", edit("line 2", "line two")), step("", ASKS)]
    async with session_with_agents(tmp_path, {"asker": asker}, step("", ask_agent("asker")), DONE) as d:
        other = Client(os.environ, "two")
        other.state = d.session.attach(other, None, None).state
        await d.prompt("go")
        (question,) = (await d.until(lambda state: state.questions)).questions
        d.session.detach(d.client)
        answers: Any = {question.fields[0].field_id: "That one."}
        params = QuestionAnswerParams(session_id="s", question_id=question.item_id, outcome="answered", answers=answers)
        await d.session.answer_question(params, other)
        await d.answer("allow", other)
        await d.until(lambda state: state.questions)
        await agents_of(d.session).stop(AgentParams(session_id="s", agent_id="agent-1"))
        await d.ended()
        assert agent(d).state == "cancelled" and d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        decided = nested(d)[1].decision
        assert decided is not None and decided.client == "two"
        d.client.state = d.session.attach(d.client, None, None).state
        assert other.state is not None and other.state.model_dump() == d.session.view().model_dump()


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto"])
async def test_what_checkers_find_in_its_edit_it_hears_itself_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    linter = Linter(tmp_path, monkeypatch)
    linter.open()
    agents = {"editor": [step("", EDIT), step("", complete("Edited."), expect="wrong new")]}
    steps = [step("", ask_agent("editor")), step("", call("read_file", path="notes.txt")), DONE, step("Well.")]
    async with session_with_agents(tmp_path, agents, *steps, mode=mode) as d:
        (d.root / "a.sh").write_text(TEXT)
        await d.trust()
        await d.prompt("go")
        if mode == "ask":
            await d.until(lambda state: state.approvals)
            await d.until(lambda state: "done" in str(state.proposals[0].files[0].checks))
            await d.answer("allow")
        await d.ended()
        await d.prompt("and?", "p2")
        await d.over("p2")
        child = await d.sessions.get(agent(d).session_id)
        heard = "\n".join(message.model_dump_json() for message in conversation(child))
        assert heard.count("this change adds 1 error") == 1
        assert "this change adds" not in d.told()


@pytest.mark.parametrize("mode", ["plan", "ask", "draft", "auto"])
async def test_its_calls_of_servers_are_decided_in_its_parent_s_mode(tmp_path: Path, mode: Mode) -> None:
    calls = [call("mcp__demo__look", text="a"), call("mcp__demo__change", text="b"), call("mcp__demo__other", text="c")]
    agents = {"caller": [step("", *calls), step("", complete())]}
    tools = [server_tool("look", read_only=True), server_tool("change"), server_tool("other")]
    servers = ServersInMemory(Server("demo", tools))
    async with session_with_agents(tmp_path, agents, step("", ask_agent("caller")), DONE, mode=mode, mcp=servers) as d:
        d.session.allow("mcp__demo__look")
        d.session.allow("mcp__demo__change")
        await d.prompt("go")
        if mode != "plan":
            state = await d.until(lambda state: state.approvals)
            assert [asked.title for asked in state.approvals] == ["demo: other"]
            await d.answer("reject")
        await d.ended()
        assert [name for name, _ in servers.all[0].calls] == (["look"] if mode == "plan" else ["look", "change"])


@pytest.mark.parametrize("trusted", [False, True], ids=["taken", "given"])
async def test_trust_that_changes_while_it_works_counts_for_its_next_call(tmp_path: Path, trusted: bool) -> None:
    agents = {"reader": [step("", ASKS), step("", call("read_file", path="notes.txt")), step("", complete())]}
    async with session_with_agents(tmp_path, agents, step("", ask_agent("reader")), DONE) as d:
        configure(d.root, PreToolUse=[handler("echo 'not this' >&2; exit 2", matcher="Read")])
        agree(d.root)
        await d.trust(not trusted)
        await d.prompt("go")
        (question,) = (await d.until(lambda state: state.questions)).questions
        await d.trust(trusted)
        declined = QuestionAnswerParams(session_id="s", question_id=question.item_id, outcome="declined")
        await d.session.answer_question(declined, d.client)
        await d.ended()
        assert [item.state for item in nested(d)][1:] == (["rejected"] if trusted else ["succeeded"])
