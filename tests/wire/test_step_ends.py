"""The end of a step says how the service worded it, for whoever asks its support."""

from pathlib import Path

import pytest

from amanu_protocol.events import StepEnded
from support.strict_services.http import Say, ToolUse
from support.vendor_session import vendor_session

WORDS = {"anthropic": ["tool_use", "end_turn"], "gemini": ["STOP", "STOP"], "openai": ["completed", "completed"]}


@pytest.mark.parametrize("vendor", WORDS)
async def test_the_end_of_a_step_has_the_services_word_and_id(tmp_path: Path, vendor: str) -> None:
    async with vendor_session(tmp_path, vendor) as d:
        d.services[vendor].script([Say(calls=[ToolUse("read_file", {"path": "a.txt"})]), Say(text="Done.")])
        await d.turn("p1")
        ended = [each.event for each in d.client.messages if isinstance(each.event, StepEnded)]
        assert [each.finish_reason for each in ended] == WORDS[vendor]
        assert len({each.request_id for each in ended} - {""}) == 2
