"""The loop, with a played model and recording tools."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest

from amanu.agent.loop import run_turn
from amanu.agent.loop_guard.call_cycles import ROUNDS
from amanu.agent.recovery import CUT_CALL, REMEDIES
from amanu.core.conversation import NOT_RUN, Results, SystemText, User
from amanu.core.model import AuthFailed, Delta, Request, StreamBroken, TextDelta, ThoughtDelta
from amanu.models.retry import RetryPolicy
from amanu.permissions import approvals as approval
from amanu_protocol.events import ItemsWithdrawn
from amanu_protocol.requests import ApprovalResolveParams
from support.loop_harness import Call, Emitted, LoopHarness, PlayedModel, Reply, Write, call, says

GO_ON = REMEDIES["cutText"].note


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    yield


async def play(*replies: Reply, **options: Any) -> tuple[LoopHarness, str]:
    harness = LoopHarness(replies, **options)
    async with asyncio.timeout(50):
        ending = await run_turn(harness.turn)
    harness.conversation.check()
    return harness, ending.reason


async def test_an_answer_ends_the_turn() -> None:
    harness, reason = await play(says("Hello there", thought="**Greeting** politely"))
    assert reason == "completed"
    kinds = [(item.kind, getattr(item, "text", "")) for item in harness.emitted.state.items]
    assert kinds == [("thought", "**Greeting** politely"), ("answer", "Hello there")]
    assert getattr(harness.emitted.state.items[0], "subject") == "Greeting"  # noqa: B009
    assert harness.turn.ledger.usage.input_tokens == 10
    assert harness.turn.ledger.usage.cost_usd == pytest.approx((10 * 1 + 5 * 10) / 1e6)


async def test_results_go_back_in_call_order_whatever_finishes_first() -> None:
    harness = LoopHarness([says("", call("read", "a"), call("read", "b", path="b.py")), says("done")])
    harness.recorder.gates["a"] = asyncio.Event()
    task = asyncio.create_task(run_turn(harness.turn))
    while "end b" not in harness.recorder.log:
        await asyncio.sleep(0)
    assert harness.recorder.log == ["start a", "start b", "end b"]  # side by side
    harness.recorder.gates["a"].set()
    assert (await task).reason == "completed"
    assert [call_id for call_id, _ in harness.results()] == ["a", "b"]


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (call("raed", "x"), "Unknown tool 'raed'. The nearest of 4 tools: read."),
        (call("zzzz", "x"), "Unknown tool 'zzzz'. Available: crash, read, run, write."),
        (
            call("read", "x", path=7, pth="a"),
            "Wrong arguments for read: path: Input should be a valid string. Correct them and call again. Ignored "
            "unknown arguments: pth. Available: ",
        ),
        (
            call("read", "x", path="a", file_path="b"),
            "Wrong arguments for read: path and file_path are the same argument but have different values; send only",
        ),
        (call("read", "x", path=7), "Wrong arguments for read: path: Input should be a valid string."),
        (Call(call_id="x", tool="read", arguments='{"path": "a'), "The arguments of read are not a JSON object."),
        (call("read", "x", fails=True), "it did not work; try another way"),
        (call("crash", "x"), "crash failed because of an internal error in Amanu."),
    ],
)
async def test_a_call_that_cannot_work_tells_the_model_why(bad: Call, expected: str) -> None:
    harness, reason = await play(says("", bad), says("sorry"))
    assert reason == "completed"
    assert harness.states() == {"x": "failed"}
    (only,) = harness.results()
    assert only[1].startswith(expected)


async def test_what_is_done_already_is_told_the_model_and_is_no_failure_for_the_user() -> None:
    harness, _ = await play(says("", call("read", "x", done_already=True)), says("fine"))
    assert harness.results() == [("x", "it is so already Go on.")]
    [item] = [each for each in harness.emitted.state.items if each.kind == "toolCall"]
    assert (item.state, item.summary, item.error) == ("succeeded", "it is so already", None)


async def order(mode: Any, answers: dict[str, str], *calls: Call) -> list[str]:
    harness, _ = await play(says("", *calls), says("done"), mode=mode, answers=answers)
    return harness.recorder.log


ALLOW_ALL = {"w1": "allow", "w2": "allow", "x": "allow"}


@pytest.mark.parametrize(
    ("calls", "before"),
    [
        # writers of one path in order, a read after the write it depends on
        ([call("write", "w1"), call("write", "w2")], [("end w1", "start w2")]),
        ([call("write", "w1"), call("read", "r")], [("end w1", "start r")]),
        # everything after an approved command; a command after every earlier writer
        ([call("write", "w1"), call("run", "x")], [("end w1", "start x")]),
        ([call("run", "x"), call("write", "w1", path="b.py")], [("end x", "start w1")]),
    ],
)
async def test_order(calls: list[Call], before: list[tuple[str, str]]) -> None:
    log = await order("ask", ALLOW_ALL, *calls)
    for first, second in before:
        assert log.index(first) < log.index(second)


async def test_a_pending_approval_delays_only_the_edits_behind_it() -> None:
    calls = [call("run", "x"), call("read", "r"), call("read", "s", path="c.py"), call("write", "w1", path="b.py")]
    harness = LoopHarness([says("", *calls), says("done")])
    task = asyncio.create_task(run_turn(harness.turn))
    while harness.recorder.log.count("end r") + harness.recorder.log.count("end s") < 2:
        await asyncio.sleep(0)
    for call_id in ("x", "w1"):
        while not harness.emitted.state.approvals:
            await asyncio.sleep(0)
        [asked] = harness.emitted.state.approvals  # the edit depends on what the command does
        assert asked.tool_call_id == call_id
        yes = ApprovalResolveParams(session_id="s", tool_call_id=call_id, decision="allow", digest=asked.digest)
        harness.approvals.resolve(yes, "test")
    await task
    assert harness.recorder.log.index("end x") < harness.recorder.log.index("start w1")


async def test_edits_are_asked_about_before_the_command_behind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long they take to be computed: who answers the oldest question first answers in the order of effect."""
    preview = Write.preview

    async def slow(self: Write, params: Any, call: Any) -> Any:
        await asyncio.sleep(0.01)
        return await preview(self, params, call)

    monkeypatch.setattr(Write, "preview", slow)
    calls = [call("write", "w1"), call("write", "w2", path="b.py"), call("run", "x")]
    harness, _ = await play(says("", *calls), says("done"), answers=ALLOW_ALL)
    asked = [each.approval.tool_call_id for each in harness.emitted.events if each.kind == "approvalRequested"]
    assert asked == ["w1", "w2", "x"]


async def test_a_rejection_goes_to_the_model_with_its_reason() -> None:
    harness, _ = await play(says("", call("write", "w1")), says("ok"), answers={"w1": "reject:use the other file"})
    assert harness.results() == [("w1", "The user rejected this and said: use the other file")]
    assert harness.states() == {"w1": "rejected"}
    assert harness.recorder.log == []


@pytest.mark.parametrize("word", ["", "ALLOW", "yes", "allow ", "ok", "maybe"])
async def test_an_unknown_answer_is_a_refusal(word: str) -> None:
    harness, _ = await play(says("", call("write", "w1")), says("ok"), answers={"w1": word})
    assert harness.states() == {"w1": "rejected"}
    assert harness.recorder.log == []


async def test_headless_denies_and_names_what_would_have_allowed() -> None:
    harness, _ = await play(says("", call("write", "x", path="a.py")), says("ok"), headless=True)
    assert harness.results() == [("x", "Nobody is there to approve it. Permit it with --allow '@write(a.py)'.")]
    assert harness.recorder.log == []


async def test_plan_mode_denies_by_rule() -> None:
    harness, _ = await play(says("", call("write", "w1")), says("ok"), mode="plan")
    assert harness.states() == {"w1": "rejected"}
    assert "in plan mode only the plan can be edited" in harness.results()[0][1]


async def test_an_effect_waits_until_its_decision_is_on_disk() -> None:
    harness, _ = await play(says("", call("write", "w1")), says("ok"), mode="acceptEdits")
    executing = next(
        at
        for at, event in enumerate(harness.emitted.events)
        if event.kind == "itemChanged" and getattr(event.item, "state", "") == "executing"
    )
    assert executing + 1 in harness.emitted.durable_after


async def test_steering_after_results_and_when_the_model_was_done() -> None:
    notes = [["use tabs"], [], ["and one more thing"], []]
    harness, _ = await play(says("", call("read", "r")), says("done"), says("really done"), notes=notes)
    third = list(harness.conversation)[2]
    assert isinstance(third, Results)
    assert third.notes == ("use tabs",)
    harness, _ = await play(says("done"), says("really done"), notes=[["and one more thing"]])
    assert list(harness.conversation)[2] == User(text="and one more thing")


async def test_the_step_limit_ends_with_an_offer_to_go_on() -> None:
    harness = LoopHarness([says("", call("read", f"r{n}")) for n in range(9)], max_steps=3)
    ending = await run_turn(harness.turn)
    assert (ending.reason, ending.can_continue) == ("stepLimit", True)
    assert len(harness.model.requests) == 3
    harness.conversation.check()


async def test_the_cost_limit() -> None:
    harness = LoopHarness([says("", call("read", f"r{n}")) for n in range(9)], max_cost_usd=0.0001)
    ending = await run_turn(harness.turn)
    assert ending.reason == "costLimit"
    assert len(harness.model.requests) == 2


async def test_a_reply_cut_at_the_output_limit_is_continued_and_its_calls_are_not_run() -> None:
    cut = says("half a sen", stop="outputLimit", cut=True)
    harness, reason = await play(cut, says("tence"))
    assert reason == "completed"
    assert harness.model.requests[1][-1] == User(text=GO_ON, from_system=True)
    assert harness.emitted.entries.count(Results(results=(), notes=(SystemText(text=GO_ON),))) == 1
    cut_call = says("", call("write", "w1"), stop="outputLimit", cut=True)
    harness, _ = await play(cut_call, says("ok"), mode="auto")
    assert harness.results() == [("w1", CUT_CALL)]
    assert harness.recorder.log == []


async def test_a_refused_key_ends_the_turn_and_the_conversation_stays_whole() -> None:
    harness = LoopHarness([AuthFailed("The key was refused.")])
    ending = await run_turn(harness.turn)
    assert (ending.reason, ending.message, ending.can_continue) == ("failed", "The key was refused.", True)
    harness.conversation.check()


async def cancelled_after(harness: LoopHarness, event: int) -> None:
    """Run the turn and cancel it when it has emitted that many events."""
    task = asyncio.create_task(run_turn(harness.turn))
    emitted: Emitted = harness.emitted
    answer = emitted.watch

    def watch(latest: Any) -> None:
        answer(latest)
        if len(emitted.events) == event:
            task.cancel()

    emitted.watch = watch
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(50):
            await task


def busy_turn() -> LoopHarness:
    calls = [call("read", "r"), call("write", "w1"), call("run", "x"), call("write", "w2", path="c.py")]
    return LoopHarness(
        [says("Let me look", *calls, thought="**Hm** well"), says("done")],
        mode="ask",
        answers={"w1": "allow", "x": "no"},
    )


@pytest.mark.parametrize("event", range(1, 29))
async def test_cancel_at_every_event_leaves_one_result_per_call_and_nothing_running(event: int) -> None:
    harness = busy_turn()
    await cancelled_after(harness, event)
    harness.conversation.check()
    log = list(harness.recorder.log)
    await asyncio.sleep(0.01)
    assert harness.recorder.log == log  # nothing goes on
    for started in (line.split()[1] for line in log if line.startswith("start")):
        assert any(call_id == started for call_id, _ in harness.results())
    assert not harness.emitted.state.approvals
    assert all(state in ("succeeded", "failed", "cancelled", "rejected") for state in harness.states().values()), (
        harness.states()
    )


async def test_cancelled_before_a_call_ran_says_so() -> None:
    harness = LoopHarness([says("", call("run", "x"))])
    task = asyncio.create_task(run_turn(harness.turn))
    while not harness.emitted.state.approvals:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert harness.results() == [("x", NOT_RUN)]


async def test_each_call_of_a_step_is_cancelled_once() -> None:
    """A second time would cut short what a call still has to put in order, because another was quicker with that."""
    harness = LoopHarness([says("", call("read", "quick"), call("read", "slow"))])
    work = harness.recorder.work
    harness.recorder.gates = {"quick": asyncio.Event(), "slow": asyncio.Event()}

    async def tidied(name: str) -> None:
        try:
            await work(name)
        finally:
            for _ in range(9 if name == "slow" else 0):
                await asyncio.sleep(0)
            harness.recorder.log.append(f"tidied {name}")

    harness.recorder.work = tidied
    task = asyncio.create_task(run_turn(harness.turn))
    while len(harness.recorder.log) < 2:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert harness.recorder.log[2:] == ["tidied quick", "tidied slow"]


async def test_a_withdrawn_attempt_leaves_no_ghost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)

    class Breaking:
        def __init__(self) -> None:
            self.tries = 0

        async def stream(self, request: Request) -> AsyncIterator[Delta]:
            self.tries += 1
            if self.tries == 1:
                yield TextDelta("dead words")
                raise StreamBroken("cut")
            for delta in says("live words"):
                yield delta

        async def close(self) -> None:
            pass

    harness = LoopHarness([])
    harness.turn.candidate = replace(harness.turn.candidate, model=Breaking())
    ending = await run_turn(harness.turn)
    assert ending.reason == "completed"
    assert [getattr(item, "text", "") for item in harness.emitted.state.items] == ["live words"]
    assert any(isinstance(event, ItemsWithdrawn) for event in harness.emitted.events)


SAME = ROUNDS[0]


def told(harness: LoopHarness) -> list[str]:
    """The notices about what the model was told."""
    return [item.text for item in harness.emitted.state.items if item.kind == "notice"]


async def test_the_same_call_with_the_same_result_is_told_and_then_stopped() -> None:
    harness, reason = await play(*(says("", call("read", f"r{n}")) for n in range(2 * SAME)))
    assert reason == "loop"
    assert len(harness.model.requests) == 2 * SAME  # the second alarm takes as much new evidence as the first
    what = f"has made the same call (read) {SAME} times in a row, with the same results"
    assert told(harness) == [f"The model {what}. It was told to try something else."]
    ((note,),) = [message.notes for message in harness.conversation if isinstance(message, Results) and message.notes]
    assert str(note).startswith(f"You {what.replace('has', 'have')}.")


async def test_a_loop_that_is_left_after_being_told_is_no_loop() -> None:
    same = [says("", call("read", f"r{n}")) for n in range(2 * SAME - 1)]
    _, reason = await play(*same, says("I am stuck: the file says no."))
    assert reason == "completed"


async def test_what_the_user_says_meanwhile_begins_the_count_anew() -> None:
    same = [says("", call("read", f"r{n}")) for n in range(2 * SAME - 2)]
    notes: list[list[str]] = [[] for _ in range(SAME - 1)]
    harness, reason = await play(*same, says("It is still the same."), notes=[*notes, ["look again, please"]])
    assert (reason, told(harness)) == ("completed", [])


async def test_a_strike_does_not_outlive_its_turn_and_the_user_may_go_on() -> None:
    harness = LoopHarness([says("", call("read", f"r{n}")) for n in range(2 * SAME)])
    ending = await run_turn(harness.turn)
    assert (ending.reason, ending.can_continue) == ("loop", True)
    again = LoopHarness([*(says("", call("read", f"t{n}")) for n in range(SAME)), says("done")])
    again.turn.conversation = harness.conversation
    harness.conversation.append(User(text="go on"))
    assert (await run_turn(again.turn)).reason == "completed"


async def test_without_the_check_a_turn_ends_at_its_other_limits() -> None:
    _, reason = await play(*(says("", call("read", f"r{n}")) for n in range(30)), loops=False)
    assert reason == "stepLimit"


@pytest.mark.parametrize("kind", [TextDelta, ThoughtDelta])
async def test_one_sentence_over_and_over_is_cut_off_told_and_then_stopped(
    kind: type[TextDelta | ThoughtDelta],
) -> None:
    chant: list[Delta] = [kind("I will look at it again. ") for _ in range(60)]
    harness, reason = await play(chant, says("Sorry. The file is empty."))
    assert reason == "completed"
    heard = harness.model.requests[1][-1]
    assert isinstance(heard, User) and "look at it again" in heard.text
    assert told(harness) == ["The model kept repeating itself. Its reply was stopped, and it was told to move on."]
    shown = "".join(getattr(item, "text", "") for item in harness.emitted.state.items)
    assert shown.count("look at it again") < 25
    _, reason = await play(chant, chant)
    assert reason == "loop"


READS: list[Reply] = [says("", call("read", f"r{n}", path=f"{n}.py")) for n in range(30)]
STUCK = says('{"reason": "It reads files nobody asked for.", "stuck": 0.95}')


class Judge(PlayedModel):
    """Questions aside are answered by this model, all in the same way and when `release` is set."""

    def __init__(self, turn: PlayedModel, answer: Reply) -> None:
        super().__init__([answer] * 9)
        self._turn = turn
        self.release = asyncio.Event()
        self.release.set()

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        if not request.system:
            async for delta in self._turn.stream(request):
                yield delta
            return
        await self.release.wait()
        async for delta in super().stream(request):
            yield delta


def judged(answer: Reply, *more: Reply) -> tuple[LoopHarness, Judge]:
    harness = LoopHarness([*READS, *more], max_steps=99)
    judge = Judge(harness.model, answer)
    harness.turn.candidate = replace(harness.turn.candidate, model=judge)
    return harness, judge


async def test_a_judgement_after_many_steps_is_confirmed_and_told() -> None:
    steps = [says("", call("read", f"x{n}", path=f"x{n}.py")) for n in range(6)]
    harness, judge = judged(STUCK, *steps, says("Right: done."))
    async with asyncio.timeout(50):
        assert (await run_turn(harness.turn)).reason == "completed"
    assert len(judge.requests) == 2
    assert "found no progress on the task: It reads files nobody asked for." in str(harness.model.requests[-1])
    assert (
        harness.turn.ledger.usage.input_tokens == (len(harness.model.requests) + 2) * 10
    )  # the questions are paid for


async def test_a_judgement_never_holds_a_turn_up() -> None:
    harness, judge = judged(STUCK, says("done"))
    judge.release.clear()
    async with asyncio.timeout(50):
        assert (await run_turn(harness.turn)).reason == "completed"
    assert (judge.requests, told(harness)) == ([], [])


@pytest.mark.parametrize("answer", [AuthFailed("no key"), says("Hard to say."), says('{"stuck": 0.2}')])
async def test_without_a_sure_judgement_the_turn_goes_on(answer: Reply) -> None:
    harness, _ = judged(answer, says("", call("read", "x", path="x.py")), says("done"))
    async with asyncio.timeout(50):
        assert (await run_turn(harness.turn)).reason == "completed"
    assert told(harness) == []
