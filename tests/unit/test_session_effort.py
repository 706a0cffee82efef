"""How much a model is let think: by the session, else by the configuration, else as its vendor advises."""

import os
from pathlib import Path
from typing import Any

import pytest

from amanu.core.model import Request
from amanu.core.model_families import family, model_info
from amanu.home import find_home
from amanu.models.scripted import ScriptedModel
from amanu_protocol.items import Effort
from support.scripted_session import scripted_session, step


@pytest.fixture
def efforts(monkeypatch: pytest.MonkeyPatch) -> list[Effort]:
    """Of the requests a scripted model got."""
    seen: list[Effort] = []
    stream = ScriptedModel.stream

    def watched(model: ScriptedModel, request: Request) -> Any:
        seen.append(request.effort)
        return stream(model, request)

    monkeypatch.setattr(ScriptedModel, "stream", watched)
    return seen


@pytest.mark.parametrize(
    ("configured", "chosen", "effort"),
    [(None, None, "medium"), ("low", None, "low"), ("low", "max", "max"), (None, "none", "none")],
)
async def test_who_decides(
    configured: Effort | None, chosen: Effort | None, effort: Effort, tmp_path: Path, efforts: list[Effort]
) -> None:
    if configured is not None:
        (find_home(os.environ).make().config / "config.toml").write_text(f'effort = "{configured}"\n')
    async with scripted_session(tmp_path, step("Done.")) as d:
        if chosen is not None:
            await d.session.set_effort(chosen)
        await d.prompt("go", "p1")
        await d.over("p1")
        assert d.session.state.effort == chosen
    assert efforts == [effort]


async def test_it_holds_after_a_restart(tmp_path: Path, efforts: list[Effort]) -> None:
    async with scripted_session(tmp_path, step("Done."), step("Done.")) as d:
        await d.session.set_effort("high")
        await d.reopen()
        assert d.session.state.effort == "high"
        await d.prompt("go", "p1")
        await d.over("p1")
    assert efforts == ["high"]


@pytest.mark.parametrize(
    ("model_id", "offered", "default"),
    [
        ("anthropic:claude-opus-5-5", ["low", "medium", "high", "xhigh", "max"], "medium"),
        ("anthropic:claude-sonnet-5-5", ["low", "medium", "high", "xhigh", "max"], "high"),
        ("gemini:gemini-3.1-pro-preview", ["low", "medium", "high"], "high"),
        ("gemini:gemini-3.8-flash", ["low", "medium", "high"], "medium"),
        ("openai:gpt-6.2-sol", ["low", "medium", "high", "xhigh", "max"], "medium"),
        ("openai:gpt-6-luna", ["none", "low", "medium", "high", "xhigh", "max"], "medium"),
        ("openai:gpt-4.1", [], None),
        ("ollama:qwen3", [], None),
    ],
)
def test_a_model_says_what_it_takes(model_id: str, offered: list[Effort], default: Effort | None) -> None:
    info = model_info(model_id)
    assert (info.efforts, info.default_effort) == (offered, default)


@pytest.mark.parametrize(
    ("model_id", "effort", "value"),
    [
        ("anthropic:claude-opus-5-5", "none", "low"),
        ("anthropic:claude-sonnet-4-6", "xhigh", "max"),
        ("gemini:gemini-3.8-flash", "minimal", "LOW"),
        ("gemini:gemini-4-argon", "max", "HIGH"),
        ("openai:gpt-5.5", "max", "xhigh"),
        ("openai:gpt-4.1", "high", None),
    ],
)
def test_what_a_model_does_not_take_becomes_the_next_above(model_id: str, effort: Effort, value: str | None) -> None:
    assert family(model_id).effort_value(effort) == value
