"""The choices that ACP clients are offered."""

from typing import get_args

import pytest

from amanu.core.model_families import model_info
from amanu.frontends.acp.config_options import config_options, modes
from amanu_protocol.items import Mode, ServiceTier
from amanu_protocol.requests import ModelListResult
from amanu_protocol.state import SessionState


@pytest.mark.parametrize(("at_work", "offered"), [(False, [*get_args(Mode)]), (True, ["plan"])])
def test_a_sub_agent_at_work_has_the_mode_of_its_parent(at_work: bool, offered: list[str]) -> None:
    state = SessionState(
        session_id="s", title="", roots=[], mode="plan", model_id="m", trusted=True, read_only=False, at_work=at_work
    )
    options = config_options(state, ModelListResult(models=[], default_model_id=None))
    assert sorted(each["id"] for each in modes(state)["availableModes"]) == sorted(offered)
    assert sorted(each["value"] for each in options[0]["options"]) == sorted(offered)
    assert options[0]["currentValue"] == modes(state)["currentModeId"] == "plan"


@pytest.mark.parametrize(
    ("model_id", "tier", "offered"),
    [
        ("anthropic:claude-opus-5-5", None, {"standard": "$4 in / $20 out", "fast": "$8 in / $40 out"}),
        (
            "openai:gpt-6-sol",
            "flex",
            {"standard": "$2 in / $10 out", "fast": "$4 in / $20 out", "flex": "$1 in / $5 out"},
        ),
        ("anthropic:claude-haiku-5-5", "standard", None),
    ],
)
def test_a_speed_is_offered_with_its_price(
    model_id: str, tier: ServiceTier | None, offered: dict[str, str] | None
) -> None:
    state = SessionState(
        session_id="s",
        title="",
        roots=[],
        mode="ask",
        model_id=model_id,
        trusted=True,
        read_only=False,
        service_tier=tier,
    )
    models = [model_info(model_id).model_copy(update={"available": True})]
    options = config_options(state, ModelListResult(models=models, default_model_id=None))
    speed = next((option for option in options if option["id"] == "service_tier"), None)
    if offered is None:
        assert speed is None
        return
    assert speed is not None and speed["currentValue"] == (tier or "standard")
    told = {each["value"]: each["description"] for each in speed["options"]}
    assert told == {value: f"{price} per million tokens" for value, price in offered.items()}
