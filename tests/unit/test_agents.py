"""Sub-agents: sessions of their own that work with their parent's proposals, approvals, questions, rules and money."""

import asyncio
from pathlib import Path

from amanu_protocol.items import Answer
from amanu_protocol.requests import AgentParams, SessionListParams
from support.agent_session import agent, ask_agent, complete, nested, results, session_with_agents
from support.scripted_session import TWELVE, call, conversation, step

READS = step("I look.", call("read_file", path="notes.txt"))


async def test_an_agent_works_in_a_session_of_its_own_and_its_result_is_the_result_of_the_call(tmp_path: Path) -> None:
    looker = [READS, step("", complete("Line 2 says so."))]
    async with session_with_agents(tmp_path, {"looker": looker}, step("", ask_agent("looker")), step("Thanks.")) as d:
        await d.prompt("look it up")
        state = await d.ended()
        assert results(d) == ["looker (agent-1) completed its task (2 steps).\n\nLine 2 says so."]
        shown = agent(d)
        assert (shown.state, shown.steps, shown.name, shown.description) == (
            "completed",
            2,
            "looker",
            "the task of looker",
        )
        assert shown.tool_call_id in [item.item_id for item in state.items]
        assert [item.title for item in nested(d)] == ["Read notes.txt"]
        assert {item.turn_id for item in nested(d)} == {"turn-p1"}
        assert "I look." in [item.text for item in state.items if isinstance(item, Answer) and item.agent_id]
        assert "Line 2 says so." not in conversation(d.session)[0].model_dump_json()
        listed = {summary.session_id: summary for summary in (await d.sessions.list(SessionListParams())).sessions}
        child = listed[shown.session_id]
        assert (child.parent_session_id, child.agent, child.title) == ("s", "looker", "looker: the task of looker")
        assert listed["s"].parent_session_id is None
        opened = await d.sessions.get(shown.session_id)
        assert opened.state.parent_session_id == "s" and opened.state.last_turn is not None
        told = conversation(opened)[0].model_dump_json()
        assert "Do it." in told and "look it up" not in told


async def test_what_an_agent_asks_is_asked_in_its_parent_with_its_name_and_decided_there(tmp_path: Path) -> None:
    writer = [step("", call("write_file", path="new.txt", content="a\n")), step("", complete())]
    async with session_with_agents(tmp_path, {"writer": writer}, step("", ask_agent("writer")), step("Good.")) as d:
        await d.prompt("write it")
        state = await d.until(lambda state: state.approvals)
        asked = state.approvals[0]
        assert (asked.agent_id, asked.agent) == ("agent-1", "writer")
        assert any("sub-agent writer" in line.text for line in asked.lines)
        await d.until(lambda state: state.agents[0].state == "waiting")
        assert state.proposals[0].turn_id == "turn-p1" and state.proposals[0].agent_id == "agent-1"
        child = d.sessions.opened(agent(d).session_id)
        assert child is not None and not child.state.approvals
        await asyncio.sleep(0.5)  # answers that come sooner were meant for something else
        assert await d.answer("allow") == "resolved"
        await d.ended()
        assert (d.root / "new.txt").read_text() == "a\n"
        assert agent(d).state == "completed"


async def test_agents_work_in_parallel_and_each_question_is_answered_in_the_order_it_came(tmp_path: Path) -> None:
    agents = {
        name: [step("", call("write_file", path=f"{name}.txt", content=f"{name}\n")), step("", complete(f"{name} did"))]
        for name in ("one", "two")
    }
    both = step("", ask_agent("one"), ask_agent("two"))
    async with session_with_agents(tmp_path, agents, both, step("Both.")) as d:
        await d.prompt("write both")
        state = await d.until(lambda state: len(state.approvals) == 2)
        first, second = state.approvals
        assert {first.agent, second.agent} == {"one", "two"}
        await asyncio.sleep(0.5)
        await d.answer("allow")
        await d.until(lambda state: [asked.tool_call_id for asked in state.approvals] == [second.tool_call_id])
        await d.answer("reject", reason="not that one")
        await d.ended()
        written, refused = (d.root / f"{name}.txt" for name in (first.agent, second.agent))
        assert written.exists() and not refused.exists()
        assert all("completed its task" in text for text in results(d))


async def test_the_second_edit_of_a_file_moves_along_or_conflicts_and_never_overwrites(tmp_path: Path) -> None:
    def editor(old: str, new: str) -> list[dict[str, object]]:
        edit = call("edit_file", path="notes.txt", edits=[{"old_text": old, "new_text": new}])
        return [READS, step("", edit), step("", complete())]

    agents = {"top": editor("line 2\n", "line 2\nmore\nand more\n"), "end": editor("line 11\n", "line eleven\n")}
    both = step("", ask_agent("top"), ask_agent("end"))
    async with session_with_agents(tmp_path, agents, both, step("Both.")) as d:
        await d.prompt("edit both")
        state = await d.until(lambda state: len(state.approvals) == 2)
        assert len(state.proposals) == 2
        await asyncio.sleep(0.5)
        await d.answer("allow")
        await d.until(lambda state: len(state.approvals) == 1)
        await d.answer("allow")
        await d.ended()
        changed = TWELVE.replace("line 2\n", "line 2\nmore\nand more\n").replace("line 11\n", "line eleven\n")
        assert d.file.read_text() == changed


async def test_an_agent_that_stops_without_a_result_has_failed_after_one_reminder(tmp_path: Path) -> None:
    talker = [step("I think that"), step("Well, it is 42.")]
    async with session_with_agents(tmp_path, {"talker": talker}, step("", ask_agent("talker")), step("Oh.")) as d:
        await d.prompt("go")
        await d.ended()
        assert "failed: it stopped without calling complete_task" in results(d)[0]
        assert results(d)[0].endswith("It said last:\n\nWell, it is 42.")
        assert agent(d).state == "failed" and agent(d).steps == 2


async def test_the_user_stops_an_agent_and_the_turn_goes_on(tmp_path: Path) -> None:
    slow = [step("x", delay_ms=60_000)]
    async with session_with_agents(tmp_path, {"slow": slow}, step("", ask_agent("slow")), step("Without it.")) as d:
        await d.prompt("go")
        await d.until(lambda state: state.agents and state.agents[0].state == "running")
        shown = (await d.session.agents.stop(AgentParams(session_id="s", agent_id="agent-1"))).agent
        assert shown.state == "cancelled"
        await d.ended()
        assert "was stopped by the user" in results(d)[0]
        assert d.sessions.opened(shown.session_id) is None


async def test_cancelling_the_turn_stops_its_agents_and_withdraws_what_they_asked(tmp_path: Path) -> None:
    agents = {
        "slow": [step("x", delay_ms=60_000)],
        "asks": [step("", call("write_file", path="new.txt", content="a\n"))],
    }
    async with session_with_agents(tmp_path, agents, step("", ask_agent("slow"), ask_agent("asks"))) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals and state.agents[0].state == "running")
        await d.session.prompts.cancel("turn-p1")
        state = await d.ended("cancelled")
        assert not state.approvals and not d.session.agents.running
        assert {shown.state for shown in state.agents} == {"cancelled"}
        assert all(d.sessions.opened(shown.session_id) is None for shown in state.agents)
        assert not (d.root / "new.txt").exists()
