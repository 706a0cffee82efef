"""The web in a session: consent by host in every mode, a refusal that names the rule, sources for the user."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from amanu.agent.fallback import Candidate
from amanu.agent.loop import run_turn
from amanu.core.conversation import Assistant, Text
from amanu.core.model import ReplyCompleted, Request, TokenUsage
from amanu.home import find_home
from amanu.permissions import approvals
from amanu.tools.registry import make_tools
from amanu.tools.web.web_search import WebSearch
from amanu_protocol.items import Citations, Mode, Source, ToolCall
from support.hostile_site import HostileSite, send
from support.loop_harness import INFO, LoopHarness, PlayedModel, call, says
from support.scripted_session import call as calls
from support.scripted_session import scripted_session, step
from support.tool_harness import ToolHarness


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", 0.0)


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    site = HostileSite({"/": send("<p>my page")}, {})
    await site.start()
    yield site
    await site.stop()


def fetched(items: Any) -> list[ToolCall]:
    return [item for item in items if isinstance(item, ToolCall) and item.tool == "web_fetch"]


@pytest.mark.parametrize("mode", ["plan", "ask", "acceptEdits", "auto"])
async def test_a_server_of_the_users_own_is_asked_about_once(tmp_path: Path, site: HostileSite, mode: Mode) -> None:
    fetch = calls("web_fetch", url=f"http://localhost:{site.port}/")
    async with scripted_session(tmp_path, step("", fetch), step("", fetch), step("Done."), mode=mode) as session:
        await session.prompt("Look at my page.")
        state = await session.until(lambda state: state.approvals)
        (asked,) = state.approvals
        assert "on your own computer" in asked.detail
        assert [offer.rule for offer in asked.scopes][1:] == [f"web_fetch(localhost:{site.port})"] * 4
        assert site.requests == []
        assert await session.answer("allow", scope="session") == "resolved"
        state = await session.ended()
    assert [item.state for item in fetched(state.items)] == ["succeeded", "succeeded"]
    assert "my page" in session.told()
    assert len(site.requests) == 2


async def test_where_nobody_is_there_the_rule_is_named(tmp_path: Path, site: HostileSite) -> None:
    fetch = calls("web_fetch", url="https://docs.python.org/3/")
    async with scripted_session(tmp_path, step("", fetch), step("Done."), mode="auto", headless=True) as session:
        await session.prompt("Look it up.")
        state = await session.ended()
    (item,) = fetched(state.items)
    assert item.state == "rejected"
    assert item.decision is not None and item.decision.permitted_by == "web_fetch(docs.python.org)"
    assert "--allow 'web_fetch(docs.python.org)'" in (item.error or "")


async def test_a_denied_address_is_never_asked_about(tmp_path: Path) -> None:
    fetch = calls("web_fetch", url="http://169.254.169.254/latest/meta-data/")
    async with scripted_session(tmp_path, step("", fetch), step("Done.")) as session:
        await session.prompt("Look it up.")
        state = await session.ended()
    (item,) = fetched(state.items)
    assert item.state == "failed" and "not on the public internet" in (item.error or "")


class SearchingModel(PlayedModel):
    searches = True

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        if not request.web_search:
            async for delta in super().stream(request):
                yield delta
            return
        sources = [Source(title="One", url="https://one.example/"), Source(title="One", url="https://one.example/")]
        reply = Assistant(parts=(Text(text="It digs."),))
        yield ReplyCompleted(reply, TokenUsage(input=1_000, output=100), "end", sources=sources)


async def test_what_a_search_found_is_shown_and_counted(tmp_path: Path) -> None:
    harness = LoopHarness([])
    model = SearchingModel([says("", call("web_search", "c1", query="what digs")), says("Aardvarks.")])
    harness.turn.candidate = Candidate(model, INFO)
    tool = WebSearch(ToolHarness(tmp_path).environment)
    harness.turn.tools = {tool.name: tool}
    assert (await run_turn(harness.turn)).reason == "completed"
    (citations,) = [item for item in harness.emitted.state.items if isinstance(item, Citations)]
    assert citations.sources == [Source(title="One", url="https://one.example/")]
    assert "It digs." in harness.results()[0][1]
    assert harness.turn.spent.input_tokens == 1_020


@pytest.mark.parametrize(
    ("model_id", "settings", "declared"),
    [
        ("openai:gpt-6.2-sol", "", True),
        ("vllm:qwen3", "", False),
        ("vllm:qwen3", '[routing]\nutility = "gemini:gemini-3.5-flash"', True),
        ("amanu:auto", '[routing]\neasy = "vllm:qwen3"\nhard = "openai:gpt-6.2-sol"', True),
        ("amanu:auto", '[routing]\neasy = "vllm:qwen3"\nhard = "ollama:qwen3"', False),
        ("vllm:qwen3", '[web]\nsearch = "searxng"\nsearch_url = "http://localhost:8888"', True),
    ],
)
async def test_a_session_declares_a_search_where_it_has_one(
    tmp_path: Path, model_id: str, settings: str, declared: bool
) -> None:
    home = find_home().make()
    (home.config / "config.toml").write_text(settings)
    async with scripted_session(tmp_path, step("Done.")) as session:
        core = session.session.core
        scripted, core.state.model_id = core.state.model_id, model_id
        assert ("web_search" in make_tools(core.tool_environment())) == declared
        core.state.model_id = scripted
