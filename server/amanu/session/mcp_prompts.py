"""Prompts of MCP servers as slash commands: `/mcp__server__prompt argument …`.

Arguments come in the order in which the server lists them, or as `name=value`; the last one takes all that follows.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amanu.context.attachments import Content
from amanu.core.tool import Preview, Subject, ToolError
from amanu.mcp.model import McpServer, ServerPrompt
from amanu.session.unasked_calls import UnaskedCalls
from amanu.text.display import one_line
from amanu.text.fences import block
from amanu.tools.mcp.names import model_name, prefix
from amanu_protocol.requests import Command

SECONDS = 5.0
"""A server may take to list its prompts."""


@dataclass(frozen=True)
class ServerText:
    """What a server's prompt says."""

    server: str
    name: str
    text: str
    arguments: str
    """As the user typed them."""

    @property
    def for_model(self) -> str:
        return (
            f"I am sending you the prompt {self.name} of the MCP server {self.server}. Do what it says as far as "
            f"that needs nothing I have not approved.\n{block('mcp_prompt', self.text, self.server)}"
        )


async def prompts_of(server: McpServer) -> Sequence[Command]:
    """A server's prompts as commands; none when it does not tell."""
    try:
        async with asyncio.timeout(SECONDS):
            prompts = await server.list_prompts()
    except (ToolError, TimeoutError):
        return []
    name = server.name
    return [
        Command(
            name=model_name(name, prompt.name),
            description=one_line(prompt.description or f"A prompt of the MCP server {name}"),
            argument_hint=one_line(_usage(prompt)),
            source="server",
        )
        for prompt in prompts
    ]


async def expand(prompt: str, servers: Sequence[McpServer], calls: UnaskedCalls) -> ServerText | None:
    """The server's text, if the prompt begins with the name of one of its prompts; hooks hear of that as of a call.
    Raises `ToolError` when it has no such prompt, an argument is missing, or a hook refuses it."""
    typed_name, _, arguments = prompt[1:].partition(" ")
    server = next((server for server in servers if typed_name.startswith(prefix(server.name))), None)
    if server is None:
        return None
    name = server.name
    found = next((each for each in await server.list_prompts() if model_name(name, each.name) == typed_name), None)
    if found is None:
        raise ToolError(f"The MCP server {name} has no prompt /{typed_name}.")
    values = _values(found, typed_name, arguments.strip())

    async def reading() -> Content:
        return Content(await server.get_prompt(found.name, values))

    subject = Subject(typed_name, "read", f"{name}:{found.name}", server=name, read_only=True)
    preview = Preview(one_line(f"Get the prompt {found.name} of {name}"), subject, found.name)
    content = await calls.read(typed_name, dict(values), preview, reading)
    return ServerText(name, found.name, content.text, arguments.strip())


def _values(prompt: ServerPrompt, typed_name: str, arguments: str) -> Mapping[str, str]:
    """The prompt's arguments by name. Raises `ToolError` for one that is missing."""
    values: dict[str, str] = {}
    names = [argument.name for argument in prompt.arguments]
    rest = arguments
    while rest:
        word, _, after = rest.partition(" ")
        named, is_named, value = word.partition("=")
        if is_named and named in names:
            values[named], rest = value, after.strip()
            continue
        open_names = [name for name in names if name not in values]
        if not open_names:
            break
        quoted = re.match(r'"([^"]*)"\s*', rest)
        if len(open_names) == 1:
            values[open_names[0]], rest = quoted[1] if quoted and quoted.end() == len(rest) else rest, ""
        elif quoted:
            values[open_names[0]], rest = quoted[1], rest[quoted.end() :]
        else:
            values[open_names[0]], rest = word, after.strip()
    missing = [argument.name for argument in prompt.arguments if argument.required and not values.get(argument.name)]
    if missing:
        raise ToolError(f"/{typed_name} needs {', '.join(missing)}. Usage: /{typed_name} {_usage(prompt)}")
    return values


def _usage(prompt: ServerPrompt) -> str:
    return " ".join(
        argument.name.upper() if argument.required else f"[{argument.name.upper()}]" for argument in prompt.arguments
    )
