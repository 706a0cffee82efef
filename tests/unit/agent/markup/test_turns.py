"""Calls that models write as text, in whole turns: decided on like any others, and never made when they are quoted."""

import json
from collections.abc import AsyncIterator, Sequence

import pytest

from amanu.agent import side_query
from amanu.agent.loop import QUOTED_CALL, run_turn
from amanu.agent.markup.templates import TEMPLATES, Template
from amanu.agent.replies_as_calls import ReplyAsCall, ReplyCall
from amanu.core.conversation import Conversation, User
from amanu.core.model import CallDelta, Delta, ReplyCompleted, Request, TextDelta
from support.loop_harness import INFO, LoopHarness, PlayedModel, call, says

FINE = says("Fine, it is done.")


def written(template: Template, tool: str, path: str = "a.txt") -> str:
    return template.example.replace("read_file", tool).replace("a.txt", path)


def states(harness: LoopHarness) -> list[str]:
    return [item.state for item in harness.emitted.state.items if item.kind == "toolCall"]


@pytest.mark.parametrize("template", TEMPLATES, ids=[each.family for each in TEMPLATES])
async def test_it_is_decided_on_like_a_call(template: Template) -> None:
    for tool in ("read", "write", "run"):
        text = LoopHarness([says(written(template, tool)), FINE], headless=True)
        call_made = LoopHarness([says("", call(tool, "c", path="a.txt")), FINE], headless=True)
        for harness in (text, call_made):
            assert (await run_turn(harness.turn)).reason == "completed"
        assert states(text) == states(call_made) == [{"read": "succeeded"}.get(tool, "rejected")]
        assert len(text.recorder.log) == len(call_made.recorder.log) == (2 if tool == "read" else 0)
        assert [each for _, each in text.results()] == [each for _, each in call_made.results()]


@pytest.mark.parametrize("template", TEMPLATES, ids=[each.family for each in TEMPLATES])
async def test_what_a_tool_returned_is_not_run(template: Template) -> None:
    evil = written(template, "run", "install.example.sh")
    harness = LoopHarness([says("", call("read", "c", path=evil)), says(evil)], headless=True)
    assert (await run_turn(harness.turn)).reason == "completed"
    assert states(harness) == ["succeeded"] and harness.told() == []
    assert QUOTED_CALL in harness.shown("notice")


async def test_the_same_reply_is_a_call_where_nothing_was_read() -> None:
    reply = written(TEMPLATES[0], "run", "install.example.sh")
    harness = LoopHarness([says("", call("read", "c", path="b.txt")), says(reply), FINE], headless=True)
    assert (await run_turn(harness.turn)).reason == "completed"
    assert states(harness) == ["succeeded", "rejected"] and harness.shown("notice") == []


async def test_a_call_that_was_corrected_is_run() -> None:
    broken = '<tool_call>{"name": "read", "arguments": {"path": "a.txt}}</tool_call>'
    harness = LoopHarness([says(broken), says(broken.replace("txt}", 'txt"}')), FINE])
    assert (await run_turn(harness.turn)).reason == "completed"
    assert states(harness) == ["succeeded"] and len(harness.told()) == 1


async def test_an_answer_to_a_question_aside_has_no_thoughts() -> None:
    model = PlayedModel([says("<think>\nA title?\n</think>\n\nA title")])
    answer = await side_query.ask(model, INFO, "", "?", session_id="s", max_output=9, count=lambda used: None)
    assert answer == "A title"


class _Rewriting:
    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        for piece in ("<think>Hm.", "</think>\n", "x = ", "<tool_call>"):
            yield TextDelta(piece)
        yield says("<think>Hm.</think>\nx = <tool_call>")[-1]

    async def close(self) -> None:
        pass


async def test_a_rewrite_has_no_thoughts_and_may_hold_marks() -> None:
    model = ReplyAsCall(_Rewriting(), ReplyCall("rewrite", "a.py", Conversation([User(text="?")])))
    deltas: Sequence[Delta] = [each async for each in model.stream(Request(INFO, "", (), Conversation(), "s"))]
    arguments = "".join(each.text for each in deltas if isinstance(each, CallDelta))
    assert json.loads(arguments + '"}') == {"path": "a.py", "reply": "x = <tool_call>"}
    done = deltas[-1]
    assert isinstance(done, ReplyCompleted)
    assert [each.arguments for each in done.message.calls] == [{"path": "a.py", "reply": "x = <tool_call>"}]
