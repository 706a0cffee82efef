"""The model's judgement: when it is asked for, what it sees, what counts."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.agent.loop_guard import judge
from amanu.agent.loop_guard.judge import FIRST_AFTER, LATEST, MAX_STEPS, SOONEST, LoopJudge, LoopVerdict, parse_verdict
from amanu.core.conversation import Assistant, Call, Result, Text
from amanu.core.model import ModelError, StreamBroken


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"reason": "r", "stuck": 0.9}', LoopVerdict("r", 0.9)),
        ('```json\n{"stuck": "0.5", "reason": "r"}\n```', LoopVerdict("r", 0.5)),
        ('I think {so}: {"reason": "a {b} c", "stuck": 1}. Yes.', LoopVerdict("a {b} c", 1)),
        ('{"reason": "draft", "stuck": 0.1} … {"reason": "final", "stuck": 0.95}', LoopVerdict("final", 0.95)),
        ('{"stuck": true}', LoopVerdict("", 1)),
        ('{"reason": "r", "stuck": 7}', None),
        ('{"reason": "r", "stuck": "very"}', None),
        ('{"reason": "r", "stuck": NaN}', None),
        ('{"reason": "r", "stuck": 0.9', None),
        ('[{"stuck": null}]', None),
        ("{" * 5000, None),
        ("", None),
    ],
)
def test_answers(answer: str, expected: LoopVerdict | None) -> None:
    assert parse_verdict(answer) == expected


@given(st.text(alphabet='{}[]":,.0159stuck \n', max_size=200))
def test_no_answer_is_too_odd(answer: str) -> None:
    found = parse_verdict(answer)
    assert found is None or 0 <= found.stuck <= 1


class Asked:
    """Answers in turn, keeping what was asked: (to the own model, question)."""

    def __init__(self, *answers: str | ModelError) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[bool, str]] = []

    async def __call__(self, system: str, question: str, *, max_output: int, own_model: bool = False) -> str:
        self.asked.append((own_model, question))
        answer = self.answers.pop(0)
        if isinstance(answer, ModelError):
            raise answer
        return answer


def stuck(share: float) -> str:
    return f'{{"reason": "the same file again", "stuck": {share}}}'


def take(watch: LoopJudge, steps: int, text: str = "x", size: int = 1) -> None:
    for at in range(steps):
        call = Call(call_id="c", tool="read_file", arguments={"path": f"{at}.py", "note": text * size})
        parts = (Text(text=f"Step {at}. {text * size}"), call)
        watch.add_step(Assistant(parts=parts), [Result(call_id="c", tool="read_file", text=text * size)])


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([stuck(0.95), stuck(0.9)], "the same file again"),
        ([stuck(0.95), stuck(0.89)], None),
        ([stuck(0.95), "no idea"], None),
        ([stuck(0.95), StreamBroken("cut")], None),
        ([stuck(0.8)], None),
        (["no idea"], None),
        ([StreamBroken("cut")], None),
    ],
)
async def test_only_two_who_agree_count(answers: list[str | ModelError], reason: str | None) -> None:
    aside, watch = Asked(*answers), LoopJudge("Mend it.")
    take(watch, FIRST_AFTER)
    assert await watch.ask(aside) == reason
    assert aside.answers == []
    assert [own for own, _ in aside.asked] == [False, True][: len(answers)]


@pytest.mark.parametrize(
    ("answer", "wait"), [(stuck(0), LATEST), (stuck(0.5), 10), (stuck(0.89), SOONEST + 1), ("nonsense", LATEST)]
)
async def test_the_surer_the_sooner_again(answer: str, wait: int) -> None:
    aside, watch = Asked(answer, answer), LoopJudge("Mend it.")
    take(watch, FIRST_AFTER - 1)
    assert not watch.due
    take(watch, 1)
    assert watch.due
    await watch.ask(aside)
    take(watch, wait - 1)
    assert not watch.due
    take(watch, 1)
    assert watch.due


async def test_it_sees_the_request_and_the_last_steps_and_never_much() -> None:
    aside, watch = Asked(stuck(0)), LoopJudge("Mend the cart. " * 1000)
    take(watch, FIRST_AFTER, "wide ", 100_000)
    await watch.ask(aside)
    ((_, question),) = aside.asked
    assert "Mend the cart." in question
    assert len(question) < 16_000  # a few thousand tokens
    assert "Step 29" in question and f"Step {29 - MAX_STEPS}." not in question


async def test_it_is_no_longer_waited_for_than_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(system: str, question: str, *, max_output: int, own_model: bool = False) -> str:
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(judge, "SECONDS", 0.01)
    watch = LoopJudge("Mend it.")
    take(watch, FIRST_AFTER)
    assert await watch.ask(never) is None


async def test_a_cancelled_turn_is_not_held_up() -> None:
    async def never(system: str, question: str, *, max_output: int, own_model: bool = False) -> str:
        await asyncio.Event().wait()
        return ""

    watch = LoopJudge("Mend it.")
    take(watch, FIRST_AFTER)
    task = asyncio.create_task(watch.ask(never))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
