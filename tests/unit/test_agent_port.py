"""The port of `core/agent.py`: an agent runs on a conversation of its own, and the session's stays as it is."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from amanu.core.agent import AgentLimits, AgentRun, SystemPrompt
from amanu.core.conversation import Conversation, User
from amanu.core.ending import Ending
from support.loop_harness import Emitted
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step


def an_errand(d: ScriptedSession, tools: Sequence[str], steps: int = 5) -> AgentRun:
    return AgentRun(
        "errand",
        "Look it up.",
        Conversation([User(text="Look it up.")]),
        lambda model: SystemPrompt("You look things up."),
        {name: d.session.composer.turn_factory.tools[name] for name in tools},
        AgentLimits(steps, 60),
        Emitted(),
    )


async def run(d: ScriptedSession, errand: AgentRun) -> Ending:
    turns = d.session.composer.turn_factory
    choice = await turns.model_chooser.choose(errand.task, {})
    async with asyncio.timeout(50):
        return await turns.agent(choice).run(errand)


READS = step("", call("read_file", path="notes.txt"))


async def test_an_agent_works_on_a_second_conversation_and_the_first_stays_untouched(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, READS, step("Line 2 says so.", usage={"output": 5}), step("Go on.")) as d:
        await d.prompt("hi")
        await d.ended()
        messages, state = list(conversation(d.session)), d.session.view().model_dump()
        errand = an_errand(d, ["read_file"])
        assert await run(d, errand) == Ending("completed")
        assert [message.role for message in errand.conversation] == ["user", "assistant", "results", "assistant"]
        assert "line 2" in errand.conversation[2].model_dump_json()
        assert "Line 2 says so." in errand.conversation[3].model_dump_json()
        assert errand.spent.output_tokens == 5
        assert (list(conversation(d.session)), d.session.view().model_dump()) == (messages, state)
        await d.prompt("and now?", "p2")
        await d.over("p2")
        assert list(conversation(d.session))[: len(messages)] == messages


async def test_it_has_the_tools_and_limits_of_its_run(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", call("write_file", path="a.txt", content="a")), READS, READS) as d:
        errand = an_errand(d, ["read_file"], steps=2)
        ending = await run(d, errand)
        assert (ending.reason, ending.can_continue) == ("stepLimit", True)
        assert "write_file" in errand.conversation[2].model_dump_json()
        assert not (d.root / "a.txt").exists() and not d.session.state.proposals
