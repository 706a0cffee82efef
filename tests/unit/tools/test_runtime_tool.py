"""A tool that is known only at run time: the loop asks the instance, never the class."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ConfigDict, JsonValue

from amanu.agent.loop import run_turn
from amanu.core.model import ToolSpec
from amanu.core.tool import CallContext, Outcome, Params, ParsedCall, Preview, Subject, Tool, ToolError
from support.loop_harness import LoopHarness, call, says

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class AnyArguments(Params):
    model_config = ConfigDict(extra="allow")


class ServerTool(Tool[AnyArguments]):
    """As a server's: its name and schema come as data."""

    params = AnyArguments

    def __init__(self, name: str, description: str, schema: dict[str, Any]) -> None:
        self.name = name
        self.effect = "read"
        self.description = description
        self._schema = schema

    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self._schema)

    def parse(self, arguments: Mapping[str, JsonValue]) -> ParsedCall[AnyArguments]:
        if "city" not in arguments:
            raise ToolError("city is required")
        return ParsedCall(AnyArguments.model_validate(arguments), dict(arguments))

    async def preview(self, params: AnyArguments, call: CallContext) -> Preview:
        return Preview(title=self.name, subject=Subject(self.name, self.effect, ""), detail="")

    async def run(self, params: AnyArguments, call: CallContext) -> Outcome:
        return Outcome(f"{self.name}: {params.model_dump()}", "")


@pytest.mark.parametrize(
    ("arguments", "answer"), [({"city": "Rome"}, "weather: {'city': 'Rome'}"), ({}, "city is required")]
)
async def test_two_tools_of_one_class(arguments: dict[str, str], answer: str) -> None:
    harness = LoopHarness([says("", call("weather", "1", **arguments)), says("Done.")])
    tools = [ServerTool("weather", "Says the weather.", SCHEMA), ServerTool("tides", "Says the tides.", SCHEMA)]
    harness.turn.tools = {tool.name: tool for tool in tools}
    harness.turn.specs = [tool.spec() for tool in tools]
    assert [spec.name for spec in harness.turn.specs] == ["weather", "tides"]
    assert (await run_turn(harness.turn)).reason == "completed"
    assert harness.results() == [("1", answer)]
