"""What is done about odd replies, in the loop; from the services' bytes: `wire/test_odd_replies.py`."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from amanu.agent.loop import run_turn
from amanu.agent.recovery import REMEDIES, ReplyBudget, reply_fault
from amanu.core.conversation import Conversation, Results, SystemText, User
from amanu.core.model import Delta, Effort, RateLimited, ReplyCompleted, Request, TextDelta, ThoughtDelta, TokenUsage
from amanu.core.model_families import known
from amanu.models.retry import RetryPolicy
from amanu_protocol.events import ItemsWithdrawn, RetryChanged
from loop_stage import INFO, Stage, call, says


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)
    yield


CALL = call("read", "a")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (says("Hi."), None),
        (says("", CALL), None),
        (says("Hi.", stop="paused"), None),
        (says(stop="paused"), None),
        (says(), "emptyAfterResults"),
        (says(" \n"), "emptyAfterResults"),
        (says("Half", stop="outputLimit"), "cutText"),
        (says("Half", CALL, stop="outputLimit"), "cutCall"),
        (says(thought="Hm.", stop="outputLimit"), "spentThinking"),
        (says(" ", stop="outputLimit"), "spentThinking"),
        (says("No.", CALL, stop="refused"), "refused"),
    ],
)
def test_what_is_odd_about_a_whole_reply(reply: Any, expected: str | None) -> None:
    done = reply[-1]
    assert isinstance(done, ReplyCompleted)
    assert reply_fault(done) == expected


@pytest.mark.parametrize(
    ("model_id", "before", "prompt", "expected"),
    [
        ("anthropic:claude-opus-5-5", ReplyBudget(None, "high"), 1_000, ReplyBudget(128_000, "high")),
        ("anthropic:claude-opus-5-5", ReplyBudget(128_000, "high"), 1_000, ReplyBudget(128_000, "medium")),
        (
            "anthropic:claude-opus-5-5",
            ReplyBudget(None, "high"),
            930_000,
            ReplyBudget(None, "medium"),
        ),  # there is no room
        ("anthropic:claude-opus-5-5", ReplyBudget(128_000, "low"), 1_000, None),  # it knows no less
        ("anthropic:claude-haiku-4-5", ReplyBudget(64_000, "low"), 1_000, ReplyBudget(64_000, "minimal")),
        ("gemini:gemini-3.5-flash", ReplyBudget(None, "medium"), 1_000, ReplyBudget(None, "low")),
        ("gemini:gemini-2.5-pro", ReplyBudget(None, "minimal"), 1_000, None),
        ("openai:gpt-4.1", ReplyBudget(None, "medium"), 1_000, ReplyBudget(32_768, "medium")),
        ("openai:gpt-4.1", ReplyBudget(32_768, "medium"), 1_000, None),
        ("ollama:qwen3", ReplyBudget(None, "medium"), 1_000, None),
    ],
)
def test_more_room_is_different_on_the_wire_or_there_is_none(
    model_id: str, before: ReplyBudget, prompt: int, expected: ReplyBudget | None
) -> None:
    used = TokenUsage(input=prompt - 200, cache_read=100, cache_write=100, output=5, thoughts=1_000)
    assert before.roomier(known(model_id), used) == expected


async def test_more_room_is_said_and_kept_for_the_turn() -> None:
    info = known("anthropic:claude-opus-5-5")
    thought = says(thought="Hm.", stop="outputLimit")
    stage = Stage([says("", CALL), thought, thought, says("", call("read", "b")), says("Done.")], info=info)
    assert (await run_turn(stage.turn)).reason == "completed"
    wanted: list[tuple[int | None, Effort]] = [(None, "medium"), (None, "medium"), (128_000, "medium")]
    assert stage.model.budgets == [*wanted, (128_000, "low"), (128_000, "low")]
    assert stage.shown("notice") == [
        "The model spent its whole reply on thinking; asking again with up to 128,000 tokens, medium thinking effort.",
        "The model spent its whole reply on thinking; asking again with up to 128,000 tokens, low thinking effort.",
    ]
    assert stage.shown("thought") == []
    assert stage.turn.ledger.usage.output_tokens == 25  # it was paid for all the same


async def test_a_nudge_goes_with_the_next_attempt_and_stays_on_record() -> None:
    stage = Stage([says("", CALL), says(thought="Hm."), says(thought="Hm."), says("Done.")])
    assert (await run_turn(stage.turn)).reason == "completed"
    note = SystemText(text=REMEDIES["thinkingOnly"].note)
    assert [getattr(request[-1], "notes", ()) for request in stage.model.requests] == [(), (), (note,), (note,)]
    assert stage.told() == [note.text]
    again = Conversation.load([User(text="do it"), *stage.emitted.entries])
    assert list(again) == list(stage.conversation)
    assert len({item.item_id for item in stage.emitted.state.items}) == len(stage.emitted.state.items)


async def test_calls_between_make_the_count_start_again() -> None:
    cut = says("", call("read", "x"), stop="outputLimit", cut=True)
    whole = [says("", call("read", f"r{n}", path=f"{n}.py")) for n in range(2)]
    stage = Stage([cut, cut, whole[0], cut, cut, whole[1], says("Done.")])
    assert (await run_turn(stage.turn)).reason == "completed"


async def test_a_retry_is_shown_with_what_it_takes_back_and_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 30.0)

    stage = Stage([])

    class Model:
        async def stream(self, request: Request) -> AsyncIterator[Delta]:
            yield ThoughtDelta("**Hm**\n\n")
            yield TextDelta("Half")
            raise RateLimited("Slow down.")

        async def close(self) -> None:
            pass

    stage.turn.candidate = replace(stage.turn.candidate, model=Model())
    task = asyncio.create_task(run_turn(stage.turn))
    while stage.emitted.state.retry is None:
        await asyncio.sleep(0)
    withdrawn, retry = stage.emitted.events[-2:]
    assert isinstance(withdrawn, ItemsWithdrawn) and len(withdrawn.item_ids) == 2
    assert isinstance(retry, RetryChanged) and retry.retry is not None and retry.retry.reason == "Slow down."
    assert stage.emitted.state.items == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(1):
            await task
    assert list(stage.conversation) == [User(text="do it")]
    stage.conversation.check()


async def test_what_came_before_the_last_break_stays() -> None:
    stage = Stage([[TextDelta("I found that")]] * 4)  # each stream ends without its Done
    ending = await run_turn(stage.turn)
    assert (ending.reason, ending.can_continue) == ("failed", True)
    last = stage.conversation.last
    assert last is not None and last.role == "assistant" and last.cut and last.text == "I found that"
    assert stage.shown("answer") == ["I found that"]


async def test_a_refusal_leaves_no_call_open() -> None:
    stage = Stage([says("I begin", CALL, stop="refused")])
    ending = await run_turn(stage.turn)
    assert ending.reason == "refused" and stage.states() == {"a": "cancelled"}
    assert isinstance(stage.conversation.last, Results)
    assert stage.recorder.log == []


async def test_what_the_user_said_meanwhile_is_heard_instead_of_a_reminder() -> None:
    stage = Stage([says("I will now read it."), says("Done.")], notes=[["Use tabs."]])
    assert (await run_turn(stage.turn)).reason == "completed"
    assert (stage.model.requests[1][-1], stage.told()) == (User(text="Use tabs."), [])


async def test_a_run_until_done_ends_with_the_summary() -> None:
    finish = call("finish_task", "f", summary="Both files are done.")
    stage = Stage([says("Well."), says("", CALL, finish)], finishing="finish_task", max_steps=2)
    ending = await run_turn(stage.turn)
    assert (ending.reason, stage.shown("answer")) == ("completed", ["Well.", "Both files are done."])
    assert stage.states() == {"a": "succeeded", "f": "succeeded"}
    assert stage.told() == [REMEDIES["unfinished"].note]


@pytest.mark.parametrize("summary", ["", " \n"])
async def test_a_task_cannot_be_finished_without_a_word(summary: str) -> None:
    finish = call("finish_task", "f", summary=summary)
    stage = Stage([says("", finish)], finishing="finish_task", max_steps=1)
    assert (await run_turn(stage.turn)).reason == "stepLimit"
    assert stage.states() == {"f": "failed"}


async def test_ten_stops_without_progress_end_a_run_until_done_with_a_warning() -> None:
    stage = Stage([says("Well.") for _ in range(11)], finishing="finish_task", info=INFO)
    assert (await run_turn(stage.turn)).reason == "completed"
    last = stage.emitted.state.items[-1]
    assert last.kind == "notice" and (last.level, last.code) == ("warning", "unfinished")
    assert len(stage.told()) == 10
