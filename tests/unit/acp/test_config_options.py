"""The choices that ACP clients are offered."""

from typing import get_args

import pytest

from amanu.frontends.acp.config_options import config_options, modes
from amanu_protocol.items import Mode
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
