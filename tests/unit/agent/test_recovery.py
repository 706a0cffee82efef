"""What is done about odd replies, in the loop; from the services' bytes: `wire/test_reply_recovery.py`."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from amanu.agent.loop import run_turn
from amanu.agent.recovery import REMEDIES, ReplyBudget, reply_fault
from amanu.core.conversation import Conversation, Results, SystemText, User
from amanu.core.model import Delta, RateLimited, ReplyCompleted, Request, TextDelta, ThoughtDelta, TokenUsage
from amanu.core.model_families import model_info
from amanu.models.retry import RetryPolicy
from amanu_protocol.events import ItemsWithdrawn, RetryChanged
from amanu_protocol.items import Effort
from support.loop_harness import INFO, LoopHarness, call, says


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
        ),  # the window is full
        ("anthropic:claude-opus-5-5", ReplyBudget(128_000, "low"), 1_000, None),  # it knows no less
        ("anthropic:claude-haiku-4-5", ReplyBudget(64_000, "low"), 1_000, ReplyBudget(64_000, "minimal")),
        ("gemini:gemini-3.5-flash", ReplyBudget(None, "medium"), 1_000, ReplyBudget(None, "low")),
        ("gemini:gemini-2.5-pro", ReplyBudget(None, "minimal"), 1_000, None),
        ("openai:gpt-4.1", ReplyBudget(None, "medium"), 1_000, ReplyBudget(32_768, "medium")),
        ("openai:gpt-4.1", ReplyBudget(32_768, "medium"), 1_000, None),
        ("ollama:qwen3", ReplyBudget(None, "medium"), 1_000, None),
    ],
)
def test_a_wider_budget_is_different_on_the_wire_or_there_is_none(
    model_id: str, before: ReplyBudget, prompt: int, expected: ReplyBudget | None
) -> None:
    used = TokenUsage(input=prompt - 200, cache_read=100, cache_write=100, output=5, thoughts=1_000)
    assert before.wider(model_info(model_id), used) == expected


async def test_a_wider_budget_is_said_and_kept_for_the_turn() -> None:
    info = model_info("anthropic:claude-opus-5-5")
    thought = says(thought="Hm.", stop="outputLimit")
    harness = LoopHarness([says("", CALL), thought, thought, says("", call("read", "b")), says("Done.")], info=info)
    assert (await run_turn(harness.turn)).reason == "completed"
    wanted: list[tuple[int | None, Effort]] = [(None, "medium"), (None, "medium"), (128_000, "medium")]
    assert harness.model.budgets == [*wanted, (128_000, "low"), (128_000, "low")]
    assert harness.shown("notice") == [
        "The model spent its whole reply on thinking. Asking again with up to 128,000 tokens and medium thinking "
        "effort.",
        "The model spent its whole reply on thinking. Asking again with up to 128,000 tokens and low thinking effort.",
    ]
    assert harness.shown("thought") == []
    assert harness.turn.ledger.usage.output_tokens == 25  # it was paid for all the same


async def test_a_nudge_goes_with_the_next_attempt_and_stays_on_record() -> None:
    harness = LoopHarness([says("", CALL), says(thought="Hm."), says(thought="Hm."), says("Done.")])
    assert (await run_turn(harness.turn)).reason == "completed"
    note = SystemText(text=REMEDIES["thinkingOnly"].note)
    assert [getattr(request[-1], "notes", ()) for request in harness.model.requests] == [(), (), (note,), (note,)]
    assert harness.told() == [note.text]
    again = Conversation.load([User(text="do it"), *harness.emitted.entries])
    assert list(again) == list(harness.conversation)
    assert len({item.item_id for item in harness.emitted.state.items}) == len(harness.emitted.state.items)


async def test_calls_between_make_the_count_start_again() -> None:
    cut = says("", call("read", "x"), stop="outputLimit", cut=True)
    whole = [says("", call("read", f"r{n}", path=f"{n}.py")) for n in range(2)]
    harness = LoopHarness([cut, cut, whole[0], cut, cut, whole[1], says("Done.")])
    assert (await run_turn(harness.turn)).reason == "completed"


async def test_a_retry_is_shown_with_what_it_takes_back_and_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 30.0)

    harness = LoopHarness([])

    class Model:
        async def stream(self, request: Request) -> AsyncIterator[Delta]:
            yield ThoughtDelta("**Hm**\n\n")
            yield TextDelta("Half")
            raise RateLimited("Slow down.")

        async def close(self) -> None:
            pass

    harness.turn.candidate = replace(harness.turn.candidate, model=Model())
    task = asyncio.create_task(run_turn(harness.turn))
    while harness.emitted.state.retry is None:
        await asyncio.sleep(0)
    withdrawn, retry = harness.emitted.events[-2:]
    assert isinstance(withdrawn, ItemsWithdrawn) and len(withdrawn.item_ids) == 2
    assert isinstance(retry, RetryChanged) and retry.retry is not None and retry.retry.reason == "Slow down."
    assert harness.emitted.state.items == []
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(50):
            await task
    assert list(harness.conversation) == [User(text="do it")]
    harness.conversation.check()


async def test_what_came_before_the_last_break_stays() -> None:
    harness = LoopHarness([[TextDelta("I found that")]] * 4)  # each stream ends without its Done
    ending = await run_turn(harness.turn)
    assert (ending.reason, ending.can_continue) == ("failed", True)
    last = harness.conversation.last
    assert last is not None and last.role == "assistant" and last.cut and last.text == "I found that"
    assert harness.shown("answer") == ["I found that"]


async def test_a_refusal_leaves_no_call_open() -> None:
    harness = LoopHarness([says("I begin", CALL, stop="refused")])
    ending = await run_turn(harness.turn)
    assert ending.reason == "refused" and harness.states() == {"a": "cancelled"}
    assert isinstance(harness.conversation.last, Results)
    assert harness.recorder.log == []


async def test_what_the_user_said_meanwhile_is_heard_instead_of_a_reminder() -> None:
    harness = LoopHarness([says("I will now read it."), says("Done.")], notes=[["Use tabs."]])
    assert (await run_turn(harness.turn)).reason == "completed"
    assert (harness.model.requests[1][-1], harness.told()) == (User(text="Use tabs."), [])


async def test_a_run_until_done_ends_with_the_summary() -> None:
    finish = call("finish_task", "f", summary="Both files are done.")
    harness = LoopHarness([says("Well."), says("", CALL, finish)], finishing="finish_task", max_steps=2)
    ending = await run_turn(harness.turn)
    assert (ending.reason, harness.shown("answer")) == ("completed", ["Well.", "Both files are done."])
    assert harness.states() == {"a": "succeeded", "f": "succeeded"}
    assert harness.told() == [REMEDIES["unfinished"].note]


@pytest.mark.parametrize("summary", ["", " \n"])
async def test_a_task_cannot_be_finished_without_a_word(summary: str) -> None:
    finish = call("finish_task", "f", summary=summary)
    harness = LoopHarness([says("", finish)], finishing="finish_task", max_steps=1)
    assert (await run_turn(harness.turn)).reason == "stepLimit"
    assert harness.states() == {"f": "failed"}


async def test_ten_stops_without_progress_end_a_run_until_done_with_a_warning() -> None:
    harness = LoopHarness([says("Well.") for _ in range(11)], finishing="finish_task", info=INFO)
    assert (await run_turn(harness.turn)).reason == "completed"
    last = harness.emitted.state.items[-1]
    assert last.kind == "notice" and (last.level, last.code) == ("warning", "unfinished")
    assert len(harness.told()) == 10
