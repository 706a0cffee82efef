"""Ends the work of a sub-agent with its result."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue

from amanu.core.model import ToolSpec
from amanu.core.sub_agents import COMPLETE_TASK
from amanu.core.tool import CallContext, Outcome, Params, ParsedCall, Preview, Subject, Tool, ToolError, tool_schema

MAX_FAULTS = 5


class CompleteTaskParams(Params):
    result: str = Field(description="All that was asked for. Nothing else of your work is seen.")


class _Report(Params):
    """The arguments where the agent's definition has a schema; they match it."""

    fields: dict[str, JsonValue]


class CompleteTask(Tool[Any]):
    """`result` is None until the tool has been called."""

    name = COMPLETE_TASK
    effect = "read"
    description = (
        "Ends your task with its result. Call it, alone, when the task is done or you are sure that it cannot be done; "
        "then say why. Without this call your work counts as failed."
    )
    params = CompleteTaskParams

    def __init__(self, schema: Mapping[str, Any] | None = None) -> None:
        """`schema`: JSON Schema of the result, which is an object; None: the result is text."""
        self._schema = schema
        self.result: str | None = None
        """The result as text; JSON if there is a schema."""
        self.fields: Mapping[str, JsonValue] = {}
        """The fields of a result that has a schema."""

    def spec(self) -> ToolSpec:
        schema = tool_schema(CompleteTaskParams) if self._schema is None else dict(self._schema)
        return ToolSpec(self.name, self.description, schema)

    def parse(self, arguments: Mapping[str, JsonValue]) -> ParsedCall[Any]:
        if self._schema is None:
            return super().parse(arguments)
        from jsonschema import Draft202012Validator  # slow to import, and few agents have a schema

        validator: Any = Draft202012Validator(self._schema)
        errors: list[Any] = list(validator.iter_errors(dict(arguments)))
        if errors:
            faults = "; ".join(f"{error.json_path}: {error.message[:200]}" for error in errors[:MAX_FAULTS])
            raise ToolError(f"The result does not match its schema: {faults}. Correct it and call again.")
        return ParsedCall(_Report(fields=dict(arguments)), dict(arguments))

    async def preview(self, params: Params, call: CallContext) -> Preview:
        return Preview(title="Complete the task", subject=Subject(self.name, self.effect, ""), detail=_text(params))

    async def run(self, params: Params, call: CallContext) -> Outcome:
        text = _text(params)
        if not text.strip():
            raise ToolError("The result is empty. Say what you found or did.")
        self.result = text
        self.fields = params.fields if isinstance(params, _Report) else {}
        return Outcome("The task is complete.", text)


def _text(params: Params) -> str:
    match params:
        case CompleteTaskParams(result=result):
            return result
        case _Report(fields=fields):
            return json.dumps(fields, ensure_ascii=False, indent=1)
        case _:
            raise AssertionError(type(params))
