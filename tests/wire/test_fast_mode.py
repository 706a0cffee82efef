"""`/fast` in a whole session: real SDKs, strict services, its price and its end."""

import io
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from amanu.cli.run import RunOptions, run
from amanu.config import load_settings, workspace_rules
from amanu.home import find_home
from amanu.models.retry import RetryPolicy
from amanu.models.routing import AUTO
from amanu.session.sessions import Sessions, open_sessions
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Notice, ServiceTier
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from support.session_client import Client, until
from support.strict_services.http import Fault, Say, Service, ToolUse
from support.three_vendors import three_vendors

OPUS, HAIKU, GPT, PLAIN_GPT = (
    "anthropic:claude-opus-5-5",
    "anthropic:claude-haiku-5-5",
    "openai:gpt-6.1-sol",
    "openai:gpt-6.2-sol",
)
FINE = Say(text="Fine.", usage={"input": 1_000, "output": 500})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(RetryPolicy, "delay", lambda self, retry: 0.0)
    yield


@dataclass
class Stage:
    sessions: Sessions
    client: Client
    services: dict[str, Service]
    root: Path
    prompts: int = 0

    async def create(self, model: str, tier: ServiceTier | None = None) -> None:
        params = SessionCreateParams(session_id="s", roots=[str(self.root)], model_id=model, service_tier=tier)
        self.client.state = (await self.sessions.create(params, self.client)).state

    async def say(self, text: str) -> None:
        self.prompts += 1
        prompt = PromptSendParams(session_id="s", prompt_id=f"p{self.prompts}", text=text)
        session = await self.sessions.get("s")
        if (await session.prompts.send(prompt, self.client)).status == "answered":
            return
        ended = prompt.prompt_id
        state = await until(session, lambda state: state.last_turn and state.last_turn.turn_id.endswith(ended))
        assert state.last_turn is not None and state.last_turn.reason == "completed", state.last_turn

    async def told(self) -> list[str]:
        items = (await self.sessions.get("s")).state.items
        return [item.text for item in items if isinstance(item, Notice) and item.code == "serviceTier"]

    def asked(self, vendor: str) -> list[str | None]:
        bodies = [received.json for received in self.services[vendor].requests]
        return [body.get("speed") or body.get("service_tier") for body in bodies]


@asynccontextmanager
async def on_stage(tmp_path: Path, settings: str = "") -> AsyncGenerator[Stage]:
    (find_home().make().config / "config.toml").write_text(settings)
    (tmp_path / "work").mkdir()
    async with three_vendors() as (services, environment):
        stage = Stage(open_sessions(), Client(environment), dict(services), tmp_path / "work")
        try:
            yield stage
        finally:
            await stage.sessions.shutdown()


async def test_the_price_is_told_before_it_is_on_and_counted_after(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        stage.services["anthropic"].script([FINE] * 3)
        await stage.create(OPUS)
        session = await stage.sessions.get("s")
        await stage.say("/fast")
        assert session.state.service_tier is None
        offer = (await stage.told())[-1]
        assert "$8 in / $40 out per million tokens instead of $4 in / $20 out" in offer and "/fast on" in offer
        costs: list[float] = []
        for command in ("", "/fast on", "/fast off"):
            if command:
                await stage.say(command)
            await stage.say("Go.")
            assert session.state.usage is not None and session.state.usage.cost_usd is not None
            costs.append(session.state.usage.cost_usd)
        assert stage.asked("anthropic") == [None, "fast", None]
        usual = 1_000 * 4e-6 + 500 * 20e-6
        assert costs == pytest.approx([usual, 3 * usual, 4 * usual])
        assert len(await stage.told()) == 3


async def test_it_is_still_on_when_the_session_is_opened_again(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        stage.services["openai"].script([FINE] * 2)
        await stage.create(GPT)
        await stage.say("/fast on")
        await stage.say("Go.")
        await stage.sessions.shutdown()
        stage.sessions = open_sessions()
        assert (await stage.sessions.get("s")).state.service_tier == "fast"
        await stage.say("Go.")
        assert stage.asked("openai") == ["priority"] * 2


CHANGES = {
    "to one without": (OPUS, HAIKU, "standard", 1),
    "to one without, elsewhere": (GPT, PLAIN_GPT, "standard", 1),
    "to one that has it": (OPUS, GPT, "fast", 0),
}


@pytest.mark.parametrize(("one", "other", "tier", "notices"), CHANGES.values(), ids=CHANGES)
async def test_a_change_of_the_model_ends_it_where_there_is_none(
    one: str, other: str, tier: ServiceTier, notices: int, tmp_path: Path
) -> None:
    async with on_stage(tmp_path) as stage:
        await stage.create(one)
        await stage.say("/fast on")
        session = await stage.sessions.get("s")
        told = len(await stage.told())
        await session.set_model(other, stage.client)
        assert session.state.service_tier == tier
        assert len(await stage.told()) == told + notices


REFUSED = {
    "no fast mode": (HAIKU, "/fast", "No fast mode is known for Claude Haiku 5.5"),
    "no fast mode to turn on": (PLAIN_GPT, "/fast on", "No fast mode is known for GPT-6.2 Sol"),
    "chosen for each turn": (AUTO, "/fast on", "Choose a model first"),
    "another word": (OPUS, "/fast please", "Usage: /fast"),
}


@pytest.mark.parametrize(("model", "command", "why"), REFUSED.values(), ids=REFUSED)
async def test_where_there_is_none_it_says_so(model: str, command: str, why: str, tmp_path: Path) -> None:
    async with on_stage(tmp_path, f'[routing]\nplan = "{OPUS}"\n') as stage:
        await stage.create(model)
        with pytest.raises(AmanuError, match=why):
            await stage.say(command)
        assert (await stage.sessions.get("s")).state.service_tier is None


async def test_a_service_that_refuses_it_turns_it_off(tmp_path: Path) -> None:
    async with on_stage(tmp_path) as stage:
        refusal = Fault("status", status=400, message="'claude-opus-5-5' does not support the `speed` parameter.")
        stage.services["anthropic"].script([refusal, FINE, FINE])
        await stage.create(OPUS)
        await stage.say("/fast on")
        await stage.say("Go.")
        await stage.say("Go.")
        assert stage.asked("anthropic") == ["fast", None, None]
        assert (await stage.sessions.get("s")).state.service_tier == "standard"
        notices = [item for item in (await stage.sessions.get("s")).state.items if isinstance(item, Notice)]
        assert sum("does not support the `speed` parameter" in notice.text for notice in notices) == 1


SUB_AGENT = ToolUse("run_agent", {"agent": "investigator", "prompt": "Look.", "description": "Look around"})
DONE = ToolUse("complete_task", {"report": "Nothing."})


@pytest.mark.parametrize(("tier", "word", "of_agent"), [("fast", "priority", None), ("flex", "flex", "flex")])
async def test_a_sub_agent_goes_at_the_usual_speed_or_the_lower_price(
    tier: ServiceTier, word: str, of_agent: str | None, tmp_path: Path
) -> None:
    def play(received: Any) -> Say:
        tools = [tool.get("name") for tool in received.json.get("tools") or ()]
        results = [item for item in received.json["input"] if item.get("type") == "function_call_output"]
        if "run_agent" in tools:
            return Say(text="Done.") if results else Say(calls=[SUB_AGENT])
        return Say(text="Nothing there.")

    async with on_stage(tmp_path) as stage:
        stage.services["openai"].script(play)
        await stage.create(GPT, tier)
        await stage.say("Go.")
        by_agent = {True: set[str | None](), False: set[str | None]()}
        for received, asked in zip(stage.services["openai"].requests, stage.asked("openai"), strict=True):
            tools = [tool.get("name") for tool in received.json.get("tools") or ()]
            by_agent["run_agent" not in tools].add(asked)
        assert by_agent == {False: {word}, True: {of_agent}}


@pytest.mark.parametrize(("model", "words", "warned"), [(GPT, ["flex"], False), (PLAIN_GPT, [None], True)])
async def test_a_run_at_the_lower_price(
    model: str, words: list[str | None], warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with three_vendors() as (services, environment):
        services["openai"].script([FINE])
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        out, err = io.StringIO(), io.StringIO()
        options = RunOptions(prompt="Go.", roots=[str(tmp_path)], model_id=model, service_tier="flex")
        assert await run(options, "json", out, err) == 0
        assert [received.json.get("service_tier") for received in services["openai"].requests] == words
    usual = 1_000 * 2e-6 + 500 * 10e-6
    assert json.loads(out.getvalue())["usage"]["costUsd"] == pytest.approx(usual if warned else usual / 2)
    assert ("No flex tier is known" in err.getvalue() + out.getvalue()) == warned


# Settings ---------------------------------------------------------------------------------------------------


async def test_the_setting_holds_in_new_sessions_whose_model_has_it(tmp_path: Path) -> None:
    async with on_stage(tmp_path, 'service_tier = "flex"\n') as stage:
        stage.services["openai"].script([FINE])
        await stage.create(GPT)
        assert (await stage.sessions.get("s")).state.service_tier == "flex"
        await stage.say("Go.")
        assert stage.asked("openai") == ["flex"]


async def test_own_fields_are_in_every_request_to_the_models_they_are_for(tmp_path: Path) -> None:
    settings = '[request_fields."openai:*"]\nmetadata = { team = "a" }\n'
    async with on_stage(tmp_path, settings) as stage:
        stage.services["openai"].script([FINE])
        stage.services["anthropic"].script([FINE])
        await stage.create(GPT)
        await stage.say("Go.")
        await (await stage.sessions.get("s")).set_model(OPUS, stage.client)
        await stage.say("Go.")
        assert stage.services["openai"].requests[0].json["metadata"] == {"team": "a"}
        assert "metadata" not in stage.services["anthropic"].requests[0].json


CONFIGURED: Sequence[tuple[str, str | None]] = (
    ('[request_fields."openrouter:*"]\nprovider = { order = ["azure"] }\ntop_k = 4\n', None),
    ('[request_fields."gemini:*".generationConfig]\ntopK = 4\n', None),
    ('[request_fields."openrouter:*"]\nmodel = "x"\n', "model cannot be set here: Amanu sends it itself"),
    ('[request_fields."*"]\ntools = []\n', "tools cannot be set here"),
    ('[request_fields."openai:*"]\nservice_tier = "flex"\n', "use the setting service_tier"),
    ('[request_fields."*"]\nsince = 2026-11-30\n', "request_fields"),
    ('service_tier = "ultrafast"\n', "service_tier"),
)


@pytest.mark.parametrize(("text", "refused"), CONFIGURED)
def test_settings_that_would_replace_what_amanu_sends_are_refused(text: str, refused: str | None) -> None:
    home = find_home().make()
    home.settings.write_text(text)
    if refused is None:
        json.dumps(load_settings(home, {}).request_fields)
        return
    with pytest.raises(AmanuError, match=refused):
        load_settings(home, {})


@pytest.mark.parametrize("text", ['service_tier = "flex"\n', '[request_fields."*"]\nmetadata = { a = "b" }\n'])
def test_a_workspace_sets_none_of_it(text: str, tmp_path: Path) -> None:
    (tmp_path / ".amanu").mkdir()
    (tmp_path / ".amanu" / "config.toml").write_text(text)
    with pytest.raises(AmanuError, match="may only set deny and must_ask"):
        workspace_rules(tmp_path)
