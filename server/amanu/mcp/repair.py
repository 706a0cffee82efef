"""Makes what a server answers valid where one bad item would hide all others.

The SDK refuses a whole answer when a part of it does not fit the protocol; real servers send schemas without a type,
annotations that are null, and kinds of content nobody knows. Only what Amanu uses is kept of an item.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ContentBlock,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    ToolAnnotations,
    jsonrpc_message_adapter,
)
from pydantic import TypeAdapter, ValidationError

MAX_TOOL = 64 * 1024
"""Characters of a tool's definition."""
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CONTENT: TypeAdapter[Any] = TypeAdapter(ContentBlock)

Item = dict[str, Any]


class Traffic:
    """The requests of ours that wait for an answer on one connection. `log` takes a line on each part that is left
    out."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._methods: dict[int | str, tuple[str, bool]] = {}

    def outgoing(self, message: JSONRPCMessage) -> None:
        """To be called with each message before it is sent."""
        if isinstance(message, JSONRPCRequest):
            meta: Any = (message.params or {}).get("_meta")
            self._methods[message.id] = message.method, isinstance(meta, dict) and _VERSION_KEY in meta

    def waits_for(self, request_id: object) -> bool:
        """Whether a request with that id is unanswered."""
        return isinstance(request_id, int | str) and request_id in self._methods

    def incoming(self, value: Any) -> JSONRPCMessage | None:
        """The message that a server sent, repaired; where an answer is not valid, an error that says so; None for
        anything else that is not valid."""
        try:
            message = jsonrpc_message_adapter.validate_python(value, by_name=False)
            self.repair(message)
            return message
        except (ValidationError, RecursionError):
            self._log("ignored a message that is not valid JSON-RPC")
        if not isinstance(value, dict) or "method" in value:
            return None
        answer = cast("Item", value)
        return self.refused(answer.get("id"), error_text(answer.get("error")) or "its answer is not valid JSON-RPC")

    def refused(self, request_id: object, reason: str) -> JSONRPCMessage | None:
        """An error in answer to a request of ours that would wait in vain; None if no such request waits."""
        if not isinstance(request_id, int | str) or not self.waits_for(request_id):
            return None
        error = ErrorData(code=INTERNAL_ERROR, message=reason)
        message = JSONRPCError(jsonrpc="2.0", id=request_id, error=error)
        self.repair(message)
        return message

    def repair(self, message: JSONRPCMessage) -> None:
        """To be called with each message that arrives; changes it."""
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return
        method, is_modern = self._methods.pop(message.id, ("", False))
        if isinstance(message, JSONRPCError):
            _repair_error(message)
            return
        result = message.result
        if (listed := _LISTS.get(method)) is not None:
            key, repair = listed
            result[key] = list(self._items(result.get(key), repair, key))
            if not isinstance(result.get("nextCursor"), str):
                result.pop("nextCursor", None)
        elif method == "tools/call" and result.get("resultType", "complete") == "complete":
            _repair_call(result, is_modern=is_modern)

    def _items(self, items: Any, repair: Callable[[Item], Item], key: str) -> list[Item]:
        kept: dict[str, Item] = {}
        for item in cast("list[Any]", items) if isinstance(items, list) else []:
            try:
                repaired = repair(item)
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                self._log(f"left out one of the {key}, which does not follow the protocol: {_short(error)}")
                continue
            kept.setdefault(str(repaired.get("uri", repaired["name"])), repaired)
        return list(kept.values())


def _tool(item: Item) -> Item:
    schema: Any = item.get("inputSchema")
    schema = {"type": "object", **cast("Item", schema)} if isinstance(schema, dict) else {"type": "object"}
    if schema["type"] != "object":
        raise ValueError("its arguments are not an object")
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not all(
        isinstance(value, dict | bool) for value in cast("Item", properties).values()
    ):
        schema.pop("properties", None)
    required = schema.get("required")
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[Any]", required)):
        schema.pop("required", None)
    if not isinstance(schema.get("$schema", ""), str):
        del schema["$schema"]
    # Without the output schema: the SDK would throw away answers that do not match it.
    tool = {**_named(item), "inputSchema": schema}
    annotations: Any = item.get("annotations")
    if isinstance(annotations, dict):
        claims = cast("Mapping[str, Any]", annotations)
        kept = {name: claims[name] for name in _CLAIMS if isinstance(claims.get(name), bool)}
        tool["annotations"] = kept | ({"title": claims["title"]} if isinstance(claims.get("title"), str) else {})
    if len(json.dumps(tool)) > MAX_TOOL:
        raise ValueError(f"it is longer than {MAX_TOOL:,} characters")
    return tool


def _resource(item: Item) -> Item:
    resource = _named({"name": item["uri"], **item})
    uri = item["uri"]
    if not isinstance(uri, str):
        raise TypeError("its uri is not a string")
    return {**resource, "uri": uri, **({"mimeType": item["mimeType"]} if isinstance(item.get("mimeType"), str) else {})}


def _prompt(item: Item) -> Item:
    arguments: Any = item.get("arguments")
    if not isinstance(arguments, list):
        return _named(item)
    kept = [
        {**_named(argument), "required": argument.get("required") is True}
        for argument in cast("list[Item]", arguments)
        if isinstance(argument, dict)  # pyright: ignore[reportUnnecessaryIsInstance]
    ]
    return {**_named(item), "arguments": kept}


def _named(item: Item) -> Item:
    name = item["name"]
    if not isinstance(name, str) or not name:
        raise TypeError("it has no name")
    return {"name": name} | {key: item[key] for key in ("title", "description") if isinstance(item.get(key), str)}


def _repair_error(message: JSONRPCError) -> None:
    """Change the code that servers use for anything, and the SDK for a closed connection, which sends no message."""
    error = message.error
    is_of_sdk = error.message.startswith("SSE stream ")  # the stream of an answer was lost (`streamable_http.py`)
    if error.code == CONNECTION_CLOSED and not is_of_sdk:
        error.code = INTERNAL_ERROR
    error.message = error.message.strip() or "it gives no reason"


def error_text(error: Any) -> str:
    """The message of an error that does not follow JSON-RPC; "" if it has none."""
    message = cast("Item", error).get("message") if isinstance(error, dict) else error
    return message.strip() if isinstance(message, str) else ""


def _repair_call(result: Item, *, is_modern: bool) -> None:
    content = result.get("content")
    blocks: list[Any] = []
    for block in cast("list[Any]", content) if isinstance(content, list) else []:
        try:
            _CONTENT.validate_python(block, by_name=False)
            blocks.append(block)
        except ValidationError:
            kind: Any = cast("Item", block).get("type") if isinstance(block, dict) else None
            blocks.append({"type": "text", "text": f"(A part of the answer of the kind {kind!r} cannot be read.)"})
    result["content"] = blocks
    if "structuredContent" in result and not is_modern and not isinstance(result["structuredContent"], dict):
        structured = result.pop("structuredContent")
        if not blocks and structured is not None:
            blocks.append({"type": "text", "text": json.dumps(structured)})
    if not isinstance(result.get("isError", False), bool):
        result["isError"] = bool(result["isError"])


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


_CLAIMS = tuple(field.alias or name for name, field in ToolAnnotations.model_fields.items() if name.endswith("_hint"))
_LISTS: Mapping[str, tuple[str, Callable[[Item], Item]]] = {
    "tools/list": ("tools", _tool),
    "resources/list": ("resources", _resource),
    "prompts/list": ("prompts", _prompt),
}
