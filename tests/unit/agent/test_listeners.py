"""The contract of `core/listeners.py`: order, failing, cancelling, blocked and changed calls, going on, ending."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from amanu.agent.loop import run_turn
from amanu.core.conversation import Assistant, Call, Conversation, Result, Results, User
from amanu.core.ending import Ending
from amanu.core.listeners import (
    MAX_CHANGES,
    MAX_NEXT,
    Block,
    ChangedArguments,
    ChangedRequest,
    Continue,
    MustAsk,
    Notes,
    Permitted,
    ReplyText,
    StepRecord,
    TurnListener,
    TurnView,
)
from amanu.core.model import ReplyCompleted
from amanu.core.notes import SystemNote
from amanu.core.tool import Preview
from amanu.permissions import approvals as approval
from amanu_protocol.events import ApprovalRequested
from amanu_protocol.items import Answer, ToolCall
from support.loop_harness import LoopHarness, call, says


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


class Witness(TurnListener):
    """Writes down what it is asked."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    async def before_request(self, turn: TurnView, step: int) -> Notes | Ending | None:
        self.log.append(f"{self.name}: request {step}")

    async def before_call(self, call: Call, preview: Preview) -> Block | ChangedArguments | None:
        self.log.append(f"{self.name}: before {call.call_id}")

    async def after_call(self, call: Call, result: Result) -> Result:
        self.log.append(f"{self.name}: after {call.call_id}")
        return result.model_copy(update={"text": f"{result.text} +{self.name}"})

    async def after_step(self, turn: TurnView, step: StepRecord) -> Notes | Ending | None:
        self.log.append(f"{self.name}: step {step.number} {[result.text[-4:] for result in step.results]}")
        return [SystemNote(f"note of {self.name}", "A note.")]

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | Ending | None:
        self.log.append(f"{self.name}: stop")


class Replaces(TurnListener):
    async def after_call(self, call: Call, result: Result) -> Result:
        return result.model_copy(update={"text": "Nothing to see."})


class Raises(TurnListener):
    async def before_request(self, turn: TurnView, step: int) -> Notes | None:
        raise ZeroDivisionError

    async def after_call(self, call: Call, result: Result) -> Result:
        raise ZeroDivisionError

    async def after_step(self, turn: TurnView, step: StepRecord) -> Notes | None:
        raise ZeroDivisionError

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | None:
        raise ZeroDivisionError


class Guards(TurnListener):
    """Answers each question before a call with the next of its answers."""

    def __init__(self, *answers: Block | ChangedArguments | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def before_call(self, call: Call, preview: Preview) -> Block | ChangedArguments | None:
        self.asked.append(call.arguments)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


async def play(listeners: Sequence[TurnListener], *replies: Any, **options: Any) -> tuple[LoopHarness, Ending]:
    harness = LoopHarness(replies, **options)
    harness.turn.listeners = listeners
    async with asyncio.timeout(50):
        ending = await run_turn(harness.turn)
    harness.conversation.check()
    return harness, ending


async def test_listeners_are_asked_in_order_and_each_sees_what_the_one_before_it_returned() -> None:
    log: list[str] = []
    harness, ending = await play([Witness("a", log), Witness("b", log)], says("", call("read", "r")), says("Done."))
    assert ending == Ending("completed")
    assert log == [
        *("a: request 1", "b: request 1", "a: before r", "b: before r", "a: after r", "b: after r"),
        *("a: step 1 ['a +b']", "b: step 1 ['a +b']", "a: request 2", "b: request 2", "a: stop", "b: stop"),
    ]
    assert harness.told() == ["note of a", "note of b"]
    results = harness.conversation[2]
    assert isinstance(results, Results) and [str(note) for note in results.notes] == ["note of a", "note of b"]


async def test_one_that_raises_changes_nothing() -> None:
    log: list[str] = []
    harness, ending = await play([Raises(), Witness("b", log)], says("", call("read", "r")), says("Done."))
    assert (ending, len(log), harness.told()) == (Ending("completed"), 6, ["note of b"])


async def test_a_guard_that_raises_lets_nothing_pass() -> None:
    harness, _ = await play([Guards(ZeroDivisionError())], says("", call("read", "r")), says("Done."))
    assert harness.states() == {"r": "rejected"}
    assert "internal error" in harness.results()[0][1]


async def test_a_blocked_call_is_not_run_nor_asked_about() -> None:
    guard, never = Guards(Block("Not in this plan.")), Guards()
    harness, _ = await play([guard, never], says("", call("write", "w", path="/a")), says("Done."))
    assert (harness.results(), harness.states(), never.asked) == ([("w", "Not in this plan.")], {"w": "rejected"}, [])
    assert not any(isinstance(event, ApprovalRequested) for event in harness.emitted.events)


async def test_changed_arguments_are_previewed_asked_about_and_decided_on_anew() -> None:
    plain, _ = await play([], says("", call("write", "w", path="/a")), says("Done."), answers={"w": "allow"})
    guard = Guards(ChangedArguments({"path": "/b"}, "another file"))
    harness, _ = await play([guard], says("", call("write", "w", path="/a")), says("Done."), answers={"w": "allow"})
    assert guard.asked == [{"path": "/a"}, {"path": "/b"}]
    before, after = (
        next(event.approval for event in each.emitted.events if isinstance(event, ApprovalRequested))
        for each in (plain, harness)
    )
    assert before.digest != after.digest
    assert "/b" in harness.results()[0][1] and "Changed before it ran: another file" in harness.results()[0][1]
    item = next(item for item in harness.emitted.state.items if item.kind == "toolCall")
    assert (item.arguments, item.state) == ({"path": "/b"}, "succeeded")
    assert harness.conversation[1].calls[0].arguments == {"path": "/a"}  # pyright: ignore  # what the model wrote stays


async def test_wrong_changed_arguments_fail_and_endless_changes_are_blocked() -> None:
    harness, _ = await play(
        [Guards(ChangedArguments({"path": 7}, "oops"))], says("", call("read", "r", path="/a")), says("Done.")
    )
    assert harness.states() == {"r": "failed"}
    changes = [ChangedArguments({"path": f"/{n}"}, "again") for n in range(MAX_CHANGES + 1)]
    harness, _ = await play([Guards(*changes)], says("", call("read", "r", path="/a")), says("Done."))
    assert harness.states() == {"r": "rejected"}


class Ends(TurnListener):
    def __init__(self, moment: str) -> None:
        self._moment = moment

    async def before_request(self, turn: TurnView, step: int) -> Ending | None:
        return Ending("loop", "Enough.") if self._moment == "request" else None

    async def after_step(self, turn: TurnView, step: StepRecord) -> Ending | None:
        return Ending("loop", "Enough.") if self._moment == "step" else None

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Ending | None:
        return Ending("loop", "Enough.") if self._moment == "stop" else None


@pytest.mark.parametrize(("moment", "requests"), [("request", 0), ("step", 1), ("stop", 2)])
async def test_an_ending_ends_the_turn_and_nobody_behind_is_asked(moment: str, requests: int) -> None:
    log: list[str] = []
    listeners = [Ends(moment), Witness("b", log)]
    harness, ending = await play(listeners, says("", call("read", "r")), says("Done."))
    assert (ending, len(harness.model.requests)) == (Ending("loop", "Enough."), requests)
    assert not any(moment in line.split(": ")[1].split()[0] for line in log)


class GoesOn(TurnListener):
    def __init__(self) -> None:
        self.times = 2

    async def on_stop(self, turn: TurnView, reply: ReplyCompleted) -> Continue | None:
        self.times -= 1
        return Continue([SystemNote("Check it.", "Asked to check.")]) if self.times >= 0 else None


async def test_the_first_that_continues_settles_it() -> None:
    log: list[str] = []
    harness, ending = await play([GoesOn(), Witness("b", log)], says("One."), says("Two."), says("Three."))
    assert (ending, harness.told()) == (Ending("completed"), ["Check it.", "Check it."])
    assert log.count("b: stop") == 1


class Slow(TurnListener):
    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.beside: asyncio.Task[Any] | None = None

    async def before_request(self, turn: TurnView, step: int) -> None:
        self.beside = self.beside or turn.start_task(asyncio.Event().wait())

    async def before_call(self, call: Call, preview: Preview) -> None:
        self.reached.set()
        await asyncio.Event().wait()


async def test_a_cancel_goes_through_and_no_further_listener_is_asked() -> None:
    log: list[str] = []
    slow = Slow()
    harness = LoopHarness([says("", call("read", "r"))])
    harness.turn.listeners = [slow, Witness("b", log)]
    task = asyncio.create_task(run_turn(harness.turn))
    async with asyncio.timeout(50):
        await slow.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    harness.conversation.check()
    assert (log, harness.states()) == (["b: request 1"], {"r": "cancelled"})
    assert slow.beside is not None and slow.beside.cancelled()


class Dwells(TurnListener):
    """Never returns from `after_call`."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def after_call(self, call: Call, result: Result) -> Result:
        self.reached.set()
        await asyncio.Event().wait()
        return result


@pytest.mark.parametrize(
    ("tool_call", "answer", "state", "text"),
    [
        (call("write", "c"), "reject:Not today.", "rejected", "The user rejected this and said: Not today."),
        (call("reed", "c"), "", "failed", "Unknown tool 'reed'. The nearest of 4 tools: read."),
        (call("read", "c", fails=True), "", "failed", "it did not work; try another way"),
        (call("read", "c"), "", "succeeded", "read a.py for the model"),
    ],
    ids=["rejected", "unknown", "failed", "succeeded"],
)
async def test_a_call_that_ended_stays_as_it_ended_when_its_listeners_are_cancelled(
    tool_call: Call, answer: str, state: str, text: str
) -> None:
    dwells = Dwells()
    harness = LoopHarness([says("", tool_call)], answers={"c": answer} if answer else {})
    harness.turn.listeners = [dwells]
    task = asyncio.create_task(run_turn(harness.turn))
    async with asyncio.timeout(50):
        await dwells.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    harness.conversation.check()
    assert (harness.states(), harness.results()) == ({"c": state}, [("c", text)])


@pytest.mark.parametrize(
    ("listeners", "fields"),
    [
        ([], {"stdout": "secret"}),
        ([Witness("a", []), Witness("b", [])], {"stdout": "secret", "notes": "+a\n\n+b"}),
        ([Replaces()], {}),  # what it put in the text's place stands for the fields too
    ],
    ids=["none", "added to", "replaced"],
)
async def test_what_a_listener_makes_of_a_text_holds_for_the_fields(
    listeners: list[TurnListener], fields: dict[str, str]
) -> None:
    harness = LoopHarness([says("", call("read", "a", path="x")), says("done")])
    harness.recorder.fields = {"stdout": "secret"}
    harness.turn.listeners = listeners
    await run_turn(harness.turn)
    (result,) = harness.conversation.results()
    assert result.fields == fields


class Says(TurnListener):
    """Answers each moment with what it was made with."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def answer(self, moment: str) -> Any:
        self.asked.append(moment)
        answer = self.answers.get(moment)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def before_call(self, call: Call, preview: Preview) -> MustAsk | Permitted | None:
        return self.answer("before_call")

    async def before_question(self, call: Call, preview: Preview) -> Block | Permitted | None:
        return self.answer("before_question")

    async def before_model(self, turn: TurnView, step: int) -> ReplyText | Ending | None:
        return self.answer("before_model")

    async def after_model(self, turn: TurnView, reply: ReplyCompleted) -> ReplyText | None:
        return self.answer("after_model")


@pytest.mark.parametrize(
    ("listeners", "mode", "asked", "state"),
    [
        ([Says()], "ask", True, "succeeded"),
        ([Says()], "acceptEdits", False, "succeeded"),
        ([Says(before_call=MustAsk("why"))], "acceptEdits", True, "succeeded"),
        ([Says(before_call=Permitted("it"))], "ask", False, "succeeded"),
        ([Says(before_call=Permitted("it")), Says(before_call=MustAsk("why"))], "ask", True, "succeeded"),
        ([Says(before_call=MustAsk("why")), Says(before_call=Permitted("it"))], "ask", True, "succeeded"),
        ([Says(before_call=MustAsk("why")), Guards(Block("no"))], "acceptEdits", False, "rejected"),
        ([Says(before_question=Permitted("it"))], "ask", False, "succeeded"),
        ([Says(before_question=Permitted("it")), Says(before_question=Block("no"))], "ask", False, "rejected"),
        ([Says(before_call=MustAsk("why"), before_question=Permitted("it"))], "ask", True, "succeeded"),
        ([Says(before_question=Block("no"))], "acceptEdits", False, "succeeded"),
        ([Says(before_question=ZeroDivisionError())], "ask", False, "rejected"),
    ],
)
async def test_what_listeners_want_of_a_decision(
    listeners: list[TurnListener], mode: Any, asked: bool, state: str
) -> None:
    replies = [says("", call("write", "w", path="/a")), says("Done.")]
    harness, _ = await play(listeners, *replies, answers={"w": "allow"}, mode=mode)
    assert any(isinstance(event, ApprovalRequested) for event in harness.emitted.events) == asked
    assert harness.states() == {"w": state}


@pytest.mark.parametrize(
    ("listener", "requests", "texts"),
    [
        (Says(), 1, ["Hello."]),
        (Says(before_model=ReplyText("Instead.")), 0, ["Instead."]),
        (Says(before_model=Ending("completed")), 0, []),
        (Says(before_model=ZeroDivisionError()), 1, ["Hello."]),
        (Says(after_model=ReplyText("Other.")), 1, ["Other."]),
        (Says(after_model=ZeroDivisionError()), 1, ["Hello."]),
    ],
)
async def test_what_listeners_make_of_a_reply(listener: Says, requests: int, texts: list[str]) -> None:
    harness, ending = await play([listener], says("Hello."))
    assert ending == Ending("completed")
    assert len(harness.model.requests) == requests
    assert [message.text for message in harness.conversation if isinstance(message, Assistant)] == texts
    shown = [item.text for item in harness.emitted.state.items if isinstance(item, Answer)]
    assert shown == texts


async def test_of_a_replaced_reply_nothing_is_left_and_nothing_runs() -> None:
    listener = Says(after_model=ReplyText("Other."))
    harness, ending = await play([listener], says("Let me look.", call("read", "r"), call("read", "r2")), says("Done."))
    assert ending == Ending("completed")
    assert len(harness.model.requests) == 1 and harness.states() == {}
    assert [message.text for message in harness.conversation if isinstance(message, Assistant)] == ["Other."]
    assert [item.text for item in harness.emitted.state.items if isinstance(item, Answer)] == ["Other."]


class Changes(TurnListener):
    """Sends requests in another way."""

    def __init__(self, *left: str, words: str = "") -> None:
        self.change = ChangedRequest(
            frozenset(left) if left else None, Conversation([User(text=words)]) if words else None
        )

    async def before_model(self, turn: TurnView, step: int) -> ChangedRequest:
        return self.change


@pytest.mark.parametrize(
    ("listeners", "left", "words"),
    [
        ([], None, "do it"),
        ([Changes()], None, "do it"),
        ([Changes("read", "write")], {"read", "write"}, "do it"),
        ([Changes("read", "write"), Raises(), Changes("read", "run"), Changes()], {"read"}, "do it"),
        ([Changes("read"), Changes("write")], set[str](), "do it"),
        ([Changes(words="a"), Changes(words="b")], None, "b"),
        ([Changes(words="a"), Changes("read")], {"read"}, "a"),
    ],
)
async def test_listeners_change_one_request_and_can_only_leave_fewer_tools(
    listeners: list[TurnListener], left: set[str] | None, words: str
) -> None:
    harness, _ = await play(listeners, says("Done."))
    assert harness.model.callable == [left]
    [[message]] = harness.model.requests
    assert isinstance(message, User) and message.text == words
    assert [each.text for each in harness.conversation if isinstance(each, User)] == ["do it"]


class Follows(TurnListener):
    """Wants calls after others: id of a call → the one to follow it."""

    def __init__(self, **wanted: Call) -> None:
        self.wanted = wanted

    async def next_call(self, call: Call) -> Call | None:
        return self.wanted.get(call.call_id)


async def test_a_call_that_follows_is_one_like_any_and_its_result_counts() -> None:
    log: list[str] = []
    after = Call(call_id="next", tool="read", arguments={"path": "b.py"})
    harness, _ = await play(
        [Witness("a", log), Follows(r=after)], says("", call("read", "r"), call("read", "s")), says(".")
    )
    assert [line for line in log if "next" in line] == ["a: before next", "a: after next"]
    assert log.index("a: before next") > log.index("a: after s"), "after all calls of the step"
    assert [call_id for call_id, _ in harness.results()] == ["r", "s"]
    assert harness.recorder.log[-2:] == ["start next", "end next"]
    items = [item for item in harness.emitted.state.items if isinstance(item, ToolCall)]
    assert [(item.item_id, item.state) for item in items] == [(name, "succeeded") for name in ("r", "s", "next")]


async def test_a_blocked_call_that_follows_is_the_result() -> None:
    after = Call(call_id="next", tool="write", arguments={})

    class Forbids(Follows):
        async def before_call(self, call: Call, preview: Preview) -> Block | None:
            return Block("No such call.") if call.call_id == "next" else None

    harness, _ = await play([Forbids(r=after)], says("", call("read", "r")), says("."))
    assert [(call_id, "No such call." in text) for call_id, text in harness.results()] == [("r", True)]
    assert harness.recorder.log == ["start r", "end r"]


async def test_no_more_than_a_few_calls_follow() -> None:
    chain = {name: Call(call_id=f"{name}+", tool="read", arguments={}) for name in ("r", "r+", "r++", "r+++", "r++++")}
    harness, _ = await play([Follows(**chain)], says("", call("read", "r")), says("."))
    assert len(harness.recorder.log) == 2 * (1 + MAX_NEXT)
    [(_, text)] = harness.results()
    assert f"{MAX_NEXT} calls have followed one another" in text
