"""A tool of an MCP server, known only at run time.

Nothing a server says of its tools widens what they may do: that a tool only reads is a claim, shown to the user and
used by policy where it is stricter without it (`core/tool.py: Subject.read_only`).
"""

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from pydantic import JsonValue

from amanu.core.argument_shapes import as_meant
from amanu.core.model import ToolSpec
from amanu.core.questions import Asking
from amanu.core.tool import CallContext, Outcome, Params, ParsedCall, Preview, Subject, Tool, ToolError
from amanu.mcp.model import CallClient, McpServer, ServerTool
from amanu.text.display import one_line, visible
from amanu.tools.environment import ToolEnvironment
from amanu.tools.mcp.argument_names import ArgumentNames
from amanu.tools.mcp.arguments import check, require_short
from amanu.tools.mcp.input_schema import model_schema
from amanu.tools.mcp.results import outcome_of
from amanu_protocol.items import Question, QuestionField

MAX_DESCRIPTION = 2_000
"""Characters of a tool's description that models get."""
_NO_DRAFTS = "The server is shared by all sessions: it sees the workspace as it is on disk, never a draft."
_CONFIRM = "confirm"


class McpArguments(Params):
    """The arguments as the server gets them."""

    values: Mapping[str, JsonValue]


class McpTool(Tool[McpArguments]):
    """`tool` of `server` under the name that models call it by."""

    effect = "run"  # whatever the server says of it
    params = McpArguments

    def __init__(self, name: str, server: McpServer, tool: ServerTool, environment: ToolEnvironment) -> None:
        self.name = name
        self.server = server
        self.tool = tool
        self.server_name = server.name
        text = visible(tool.description).strip() or one_line(tool.title or tool.name)  # Gemini refuses none
        self.description = text if len(text) <= MAX_DESCRIPTION else f"{text[: MAX_DESCRIPTION - 1]}…"
        self._environment = environment

    def spec(self) -> ToolSpec:
        return self._spec

    @cached_property
    def _spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, model_schema(self.tool.input_schema, self._names))

    @cached_property
    def _names(self) -> ArgumentNames:
        return ArgumentNames(self.tool.input_schema)

    def parse(self, arguments: Mapping[str, JsonValue]) -> ParsedCall[McpArguments]:
        """Takes the names for models, and the server's own: those are in rules, hooks and what the user sees."""
        schema = self._spec.parameters
        require_short(self.name, arguments)
        try:
            meant = cast("dict[str, JsonValue]", as_meant(self._names.for_model(arguments), schema))
        except ValueError as error:
            raise ToolError(f"Wrong arguments for {self.name}: {error}. Correct them and call again.") from error
        meant = self._names.for_model(meant)  # what was text has names, too
        check(self.name, schema, meant)
        values = self._names.for_server(meant)
        return ParsedCall(McpArguments(values=values), values)

    def title_of(self, arguments: Mapping[str, Any]) -> str:
        return f"{self.server_name}: {self.tool.name}"

    async def preview(self, params: McpArguments, call: CallContext) -> Preview:
        view = self.server.view
        tool = next((tool for tool in view.tools if tool.name == self.tool.name), None)
        if tool is None or tool != self.tool or view.state in ("unapproved", "off"):
            raise ToolError(
                f"{self.tool.name} of the MCP server {self.server_name} is no longer available, or has changed "
                "since this turn began.",
                "Go on without it.",
            )
        lines = [
            json.dumps(params.values, indent=2, ensure_ascii=False, default=str),
            "",
            *_claims(tool),
            *([view.access] if view.access else []),
            _NO_DRAFTS,
        ]
        return Preview(
            title=self.title_of({}),
            subject=Subject(
                self.name, self.effect, self.tool.name, server=self.server_name, read_only=self.tool.read_only
            ),
            detail="\n".join(lines),
            digest=_digest(view.digest, tool),
        )

    async def preview_again(self, params: McpArguments, call: CallContext) -> Preview | None:
        return await self.preview(params, call)

    async def run(self, params: McpArguments, call: CallContext) -> Outcome:
        client = CallClient(lambda text: call.output(f"{one_line(text)}\n"), self._questions_of(call))
        sandbox = self._environment.sandbox
        async with contextlib.nullcontext() if sandbox is None else sandbox.changes():
            answer = await self.server.call_tool(self.tool.name, params.values, client)
        name = self.title_of({})
        outcome = await outcome_of(answer, name, self._environment)
        only_reads = self.tool.read_only or self.server.view.contained
        return outcome if only_reads else replace(outcome, not_undone=[f"what `{name}` changed"])

    def _questions_of(self, call: CallContext) -> "_Questions":
        return _Questions(self._environment, call)


class _Questions:
    """Asks the user what a server wants to know during a call (elicitation)."""

    def __init__(self, environment: ToolEnvironment, call: CallContext) -> None:
        self._questions = None if environment.headless else environment.questions
        self._call = call

    async def __call__(self, server: str, message: str, fields: Sequence[QuestionField]) -> Question | None:
        if self._questions is None:
            return None
        message = visible(message).strip()
        asked = [*fields] or [QuestionField(field_id=_CONFIRM, kind="confirm", text="")]
        asked[0] = asked[0].model_copy(update={"text": f"{message}\n{asked[0].text}".strip() or f"{server} asks"})
        question = await self._questions.ask(
            asked, Asking(self._call.turn_id, self._call.call_id, server, self._call.agent)
        )
        if not fields and question.answers.get(_CONFIRM) is False:
            return question.model_copy(update={"state": "declined"})
        return question


def _claims(tool: ServerTool) -> list[str]:
    """What the server says of the tool, for the user."""
    if tool.read_only:
        return ["The server says that this only reads."]
    claims = [
        *(["destroy or overwrite things"] if tool.destructive else []),
        *(["reach beyond this computer"] if tool.open_world else []),
    ]
    return [f"According to the server, this may {' and '.join(claims)}."] if claims else []


def _digest(server_digest: str, tool: ServerTool) -> str:
    """Of all that the approval of a call is about, besides its arguments."""
    parts = [
        server_digest,
        tool.name,
        tool.description,
        json.dumps(tool.input_schema, sort_keys=True, default=str),
        tool.read_only,
        tool.destructive,
        tool.idempotent,
        tool.open_world,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
