"""Which model a session's turns go to, as its clients see it: fallback and the way back, `amanu:auto`, ceilings on
costs. The models are scripts; everything else is real."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.agent import difficulty
from amanu.core.model import Delta, Request
from amanu.home import find_home
from amanu.models import availability
from amanu.models.retry import RetryPolicy
from amanu.models.routing import AUTO
from amanu.models.scripted import ScriptedModel
from amanu.session.sessions import open_sessions
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import TurnRouted, TurnStarted
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from amanu_protocol.state import SessionState
from support.scripted_session import ScriptedSession, call, step
from support.session_client import Client

QUOTA: dict[str, Any] = {"error": "quotaExhausted", "failures": 99}
BUSY: dict[str, Any] = {"error": "overloaded", "failures": 99}
LIST = call("list_directory", path=".")
Steps = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(difficulty, "SECONDS", 60.0)


def scripted(tmp_path: Path, name: str) -> str:
    return f"scripted:{tmp_path / name}.json"


def write(
    tmp_path: Path,
    scripts: dict[str, Steps],
    default: str,
    routing: dict[str, Any],
    limits: dict[str, Any],
    *,
    titles: bool = True,
) -> None:
    """The scripts, and settings that name them."""
    for name, steps in scripts.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(steps))

    def named(value: str | list[str]) -> str | list[str]:
        return scripted(tmp_path, value) if isinstance(value, str) else [scripted(tmp_path, each) for each in value]

    lines = [f"model = {json.dumps(named(default))}"] if default else []
    lines += [] if titles else ["titles = false"]
    lines += ["[routing]", *(f"{key} = {json.dumps(named(value))}" for key, value in routing.items())]
    lines += ["[limits]", *(f"{key} = {value}" for key, value in limits.items())]
    (find_home().make().config / "config.toml").write_text("\n".join(lines))


@asynccontextmanager
async def opened(
    tmp_path: Path,
    scripts: dict[str, Steps],
    *,
    model: str = "mine",
    default: str = "",
    limits: dict[str, Any] | None = None,
    titles: bool = True,
    **routing: Any,
) -> AsyncGenerator[ScriptedSession]:
    """A session whose model is the script of that name, or `AUTO`."""
    write(tmp_path, scripts, default, routing, limits or {}, titles=titles)
    root = tmp_path / "work"
    root.mkdir()
    sessions = open_sessions()
    client = Client(os.environ)
    model_id = model if model == AUTO else scripted(tmp_path, model)
    made = await sessions.create(SessionCreateParams(session_id="s", roots=[str(root)], model_id=model_id), client)
    client.state = made.state
    try:
        yield (d := ScriptedSession(sessions, client, await sessions.get("s"), root))
        assert client.state.model_dump() == d.session.view().model_dump()
    finally:
        await sessions.shutdown()


def routed_by_judge(tmp_path: Path, scripts: dict[str, Steps]) -> AbstractAsyncContextManager[ScriptedSession]:
    return opened(
        tmp_path, scripts, model=AUTO, default="default", titles=False, easy="easy", hard="hard", utility="judge"
    )


def began(d: ScriptedSession) -> list[str]:
    """The scripts the turns began with."""
    return [Path(m.event.model_id).stem for m in d.client.messages if isinstance(m.event, TurnStarted)]


def routed(d: ScriptedSession) -> list[str]:
    """Where turns were sent, in short."""
    return [Path(m.event.model_id).stem for m in d.client.messages if isinstance(m.event, TurnRouted)]


def notices(state: SessionState) -> list[str]:
    return [item.code for item in state.items if item.kind == "notice"]


def answers(state: SessionState) -> list[str]:
    return [item.text for item in state.items if item.kind == "answer"]


async def test_a_busy_model_is_stood_in_for_and_the_next_turns_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = {
        "mine": [step("Look.", LIST), step("", **BUSY), step(""), step("Mine again.")],
        "other": [step(""), step("Other."), step("Other once more.")],
    }
    async with opened(tmp_path, scripts, fallback=["nowhere", "other"]) as d:
        await d.prompt("one")
        state = await d.ended()
        assert (began(d), routed(d), notices(state)) == (["mine"], ["other"], ["fallback"])
        assert answers(state) == ["Look.", "Other."]
        await d.prompt("two", "p2")
        state = await d.over("p2")
        assert (began(d), routed(d)) == (["mine", "other"], ["other", "other"])
        assert notices(state) == ["fallback"]  # they know
        monkeypatch.setattr(availability.Availability, "why_not", lambda *_: None)  # its time is over
        await d.prompt("three", "p3")
        state = await d.over("p3")
        assert (began(d), routed(d)) == (["mine", "other", "mine"], ["other", "other"])
        assert notices(state) == ["fallback", "routed"]
        assert "Back to" in [item.text for item in state.items if item.kind == "notice"][-1]
        assert answers(state)[-1] == "Mine again."


async def test_other_sessions_of_the_daemon_need_not_find_out_themselves(tmp_path: Path) -> None:
    scripts = {"mine": [step("", **QUOTA)], "other": [step("Other.")]}
    async with opened(tmp_path, scripts, fallback=["other"]) as d:
        await d.prompt("one")
        await d.ended()
        params = SessionCreateParams(session_id="s2", roots=[str(d.root)], model_id=scripted(tmp_path, "mine"))
        second = Client(os.environ)
        second.state = (await d.sessions.create(params, second)).state
        there = ScriptedSession(d.sessions, second, await d.sessions.get("s2"), d.root)
        await there.session.prompts.send(PromptSendParams(session_id="s2", prompt_id="p1", text="hi"), second)
        state = await there.ended()
        assert (began(there), routed(there), notices(state)) == (["other"], ["other"], ["fallback"])


async def test_without_a_fallback_it_fails_and_says_what_to_do(tmp_path: Path) -> None:
    async with opened(tmp_path, {"mine": [step("", **QUOTA)]}) as d:
        await d.prompt("one")
        state = await d.ended("failed")
        assert notices(state) == ["providerError"]
        await d.prompt("two", "p2")
        await d.over("p2", "failed")  # it is tried again: there is no other
        assert began(d) == ["mine", "mine"]


async def test_plan_mode_has_its_model_and_one_chosen_by_name_stays(tmp_path: Path) -> None:
    scripts = {name: [step(f"{name}."), step(f"{name}."), step(f"{name}.")] for name in ("mine", "planner", "default")}
    async with opened(tmp_path, scripts, model=AUTO, default="default", plan="planner") as d:
        await d.prompt("one")
        await d.ended()
        await d.session.set_mode("plan")
        await d.prompt("two", "p2")
        state = await d.over("p2")
        assert (began(d), routed(d), notices(state)) == (["default", "planner"], ["planner"], [])
        await d.session.set_model(scripted(tmp_path, "mine"), d.client)
        await d.prompt("three", "p3")
        await d.over("p3")
        assert began(d)[-1] == "mine" and routed(d) == ["planner"]


async def test_easy_and_hard_prompts_go_to_their_models(tmp_path: Path) -> None:
    judged = [step('{"difficulty": 90}', aside=True, usage={"input": 100})]
    scripts = {
        "easy": [step("Easy.") for _ in range(4)],
        "hard": [step("Hard.") for _ in range(4)],
        "judge": judged,
    }
    async with opened(tmp_path, scripts, model=AUTO, easy="easy", hard="hard", utility="judge") as d:
        await d.prompt("Rewrite the scheduler.")
        state = await d.ended()
        assert (answers(state), routed(d)) == (["Hard."], ["hard"])
        assert state.last_turn is not None and state.last_turn.usage is not None
        assert state.last_turn.usage.input_tokens == 100  # the judgement counts into the turn
        (tmp_path / "judge.json").write_text(json.dumps([step("difficulty: 7", aside=True)]))
        d.sessions.services.registry._clients.clear()  # pyright: ignore[reportPrivateUsage]  (scripts are read once)
        await d.prompt("go on", "p2")  # says nothing new: not judged, and stays there
        state = await d.over("p2")
        assert (answers(state)[-1], began(d)[-1], routed(d)[-1]) == ("Hard.", "hard", "hard")
        await d.prompt("Now rename x to y.", "p3")
        state = await d.over("p3")
        assert (answers(state)[-1], routed(d)[-1]) == ("Easy.", "easy")
        assert notices(state) == []


def streams(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The scripts that are asked from now on, in order."""
    asked: list[str] = []
    stream = ScriptedModel.stream

    def noted(self: ScriptedModel, request: Request) -> AsyncIterator[Delta]:
        asked.append(Path(request.model.model_id).stem)
        return stream(self, request)

    monkeypatch.setattr(ScriptedModel, "stream", noted)
    return asked


NOT_JUDGED = [
    step("", aside=True, **QUOTA),
    step("", aside=True, **BUSY),
    step("", aside=True),
    step("I would rather not say.", aside=True),
]


@pytest.mark.parametrize("judge", NOT_JUDGED)
async def test_without_a_judgement_it_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: dict[str, Any]
) -> None:
    scripts = {
        "easy": [step("", **QUOTA)],
        "hard": [step("Hard.", **QUOTA)],
        "judge": [judge],
        "default": [step("I.")] * 3,
    }
    asked = streams(monkeypatch)
    async with routed_by_judge(tmp_path, scripts) as d:
        await d.prompt("Rewrite the scheduler.")
        state = await d.ended()
        assert (answers(state), began(d), routed(d), notices(state)) == (["I."], ["default"], ["default"], [])
        assert asked == ["judge", "default"]  # no retry, and no other model is asked to judge


async def test_a_judgement_that_comes_late_only_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = {
        "easy": [step("Easy.")],
        "hard": [step("Hard.")],
        "judge": [step('{"difficulty": 90}', aside=True, usage={"input": 100})],
        "default": [step("I."), step("I.")],
    }
    monkeypatch.setattr(difficulty, "SECONDS", 0)
    begun, judged = asyncio.Event(), asyncio.Event()
    stream = ScriptedModel.stream

    async def delayed(self: ScriptedModel, request: Request) -> AsyncIterator[Delta]:
        """The classifier answers when the default model has begun, which waits for that."""
        begun.set() if not request.side_query else await begun.wait()
        try:
            await judged.wait() if not request.side_query else None
            async for delta in stream(self, request):
                yield delta
        finally:
            judged.set()

    monkeypatch.setattr(ScriptedModel, "stream", delayed)
    async with routed_by_judge(tmp_path, scripts) as d:
        await d.prompt("Rewrite the scheduler.")
        state = await d.ended()
        assert (answers(state), routed(d), notices(state)) == (["I."], ["default"], [])
        assert state.last_turn is not None and state.last_turn.usage is not None
        assert state.last_turn.usage.input_tokens == 100
        await d.prompt("go on", "p2")  # the late judgement has left nothing to continue with
        state = await d.over("p2")
        assert (began(d)[-1], answers(state)[-1]) == ("default", "I.")


async def test_auto_needs_settings(tmp_path: Path) -> None:
    async with opened(tmp_path, {"mine": [step("x")]}) as d:
        with pytest.raises(AmanuError, match="No models are configured"):
            await d.session.set_model(AUTO, d.client)


# Costs -------------------------------------------------------------------------------------------------

DEAR: dict[str, Any] = {"usage": {"input": 1_000_000}}
"""A dollar, at the price below."""


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    from amanu.models.scripted import ScriptedModel

    made = ScriptedModel.__init__

    def init(self: ScriptedModel, *given: Any, **named: Any) -> None:
        made(self, *given, **named)
        unknown = "unpriced" in self.info.model_id
        price = None if unknown else 1.0
        self.info = self.info.model_copy(update={"input_price": price, "output_price": price})

    monkeypatch.setattr(ScriptedModel, "__init__", init)


@pytest.mark.usefixtures("priced")
async def test_the_sessions_limit_asks_once_per_amount_and_a_prompt_is_the_yes(tmp_path: Path) -> None:
    steps = [step("", LIST, **DEAR) for _ in range(3)] + [step("Done.")]
    async with opened(tmp_path, {"mine": steps}, limits={"session_cost_usd": 1.5}) as d:
        await d.prompt("go")
        state = await d.ended("costLimit")
        assert state.last_turn is not None and state.last_turn.usage is not None
        assert state.last_turn.can_continue and "$2.00; its limit is $1.50" in state.last_turn.message
        assert state.last_turn.usage.cost_usd == pytest.approx(2.0)
        await d.reopen()  # what was asked is not forgotten
        await d.prompt("Go on", "p2")
        state = await d.over("p2", "costLimit")
        assert state.usage is not None and state.usage.cost_usd == pytest.approx(3.0)
        assert state.last_turn is not None and state.last_turn.usage is not None
        assert state.last_turn.usage.cost_usd == pytest.approx(1.0)
        await d.prompt("Go on", "p3")
        state = await d.over("p3")
        assert answers(state) == ["Done."]


@pytest.mark.usefixtures("priced")
async def test_an_unknown_price_is_said_once_where_a_limit_depends_on_it(tmp_path: Path) -> None:
    steps = [step("", LIST, **DEAR), step("One."), step("Two.")]
    async with opened(tmp_path, {"unpriced": steps}, model="unpriced", limits={"cost_usd": 0.5}) as d:
        await d.prompt("go")
        state = await d.ended()
        assert notices(state).count("costUnknown") == 1
        assert state.last_turn is not None and state.last_turn.usage is not None
        assert state.last_turn.usage.cost_usd is None
        await d.prompt("more", "p2")
        assert notices(await d.over("p2")).count("costUnknown") == 1
