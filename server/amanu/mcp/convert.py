"""From the SDK's types to those of `model.py`."""

import base64
import binascii
import json
from collections.abc import Sequence

import mcp_types as types

from amanu.mcp.model import CallAnswer, Content, PromptArgument, ServerPrompt, ServerResource, ServerTool

MAX_INSTRUCTIONS = 2048
"""Characters of what a server tells models about itself."""
MAX_ERROR_DATA = 2000
"""Characters of what a server says with the message of an error."""


def server_tool(tool: types.Tool) -> ServerTool:
    claims = tool.annotations or types.ToolAnnotations()
    return ServerTool(
        name=tool.name,
        title=tool.title or claims.title or "",
        description=tool.description or "",
        input_schema=tool.input_schema,
        read_only=claims.read_only_hint or False,
        destructive=claims.destructive_hint is not False,
        idempotent=claims.idempotent_hint or False,
        open_world=claims.open_world_hint is not False,
    )


def call_answer(result: types.CallToolResult) -> CallAnswer:
    return CallAnswer([content(block) for block in result.content], result.structured_content, bool(result.is_error))


def content(block: types.ContentBlock) -> Content:
    match block:
        case types.TextContent():
            return Content("text", block.text)
        case types.ImageContent() | types.AudioContent():
            return Content(block.type, data=_decoded(block.data), media_type=block.mime_type)
        case types.ResourceLink():
            title = block.title or block.name
            text = f"{title}: {block.description}" if block.description else title
            return Content("link", text, media_type=block.mime_type or "", uri=str(block.uri))
        case types.EmbeddedResource():
            return resource_content(block.resource)


def resource_content(resource: types.TextResourceContents | types.BlobResourceContents) -> Content:
    media_type, uri = resource.mime_type or "", str(resource.uri)
    if isinstance(resource, types.TextResourceContents):
        return Content("resource", resource.text, media_type=media_type, uri=uri)
    return Content("resource", data=_decoded(resource.blob), media_type=media_type, uri=uri)


def server_resource(resource: types.Resource) -> ServerResource:
    name = resource.title or resource.name
    return ServerResource(str(resource.uri), name, resource.description or "", resource.mime_type or "")


def server_prompt(prompt: types.Prompt) -> ServerPrompt:
    arguments = [
        PromptArgument(argument.name, argument.description or "", bool(argument.required))
        for argument in prompt.arguments or ()
    ]
    return ServerPrompt(prompt.name, prompt.description or prompt.title or "", arguments)


def prompt_text(messages: Sequence[types.PromptMessage]) -> str:
    """The messages as one text. Whose a message is, is said only where there are those of a model, too."""
    both = len({message.role for message in messages}) > 1
    texts: list[str] = []
    for message in messages:
        piece = content(message.content)
        text = piece.text or f"({piece.kind} {piece.media_type})".replace(" )", ")")
        if piece.kind in ("resource", "link"):
            text = f"{piece.uri}\n{text}"
        texts.append(f"{message.role}: {text}" if both else text)
    return "\n\n".join(texts)


def progress_text(progress: float, total: float | None, message: str | None) -> str:
    """How far a call is, on one line."""
    amount = f"{progress:g} of {total:g}" if total else f"{progress:g}"
    return f"{message} ({amount})" if message else amount


def error_text(error: types.ErrorData) -> str:
    """The message, and what the server says besides: the message may be no more than "Internal error"."""
    data = "" if error.data in (None, "", error.message, {}, []) else as_text(error.data)
    return f"{error.message} ({data[:MAX_ERROR_DATA]})" if data else error.message


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError):
        return b""
