"""The answer to ACP's `initialize`, from the standard library alone, before anything heavy is imported.

https://agentclientprotocol.com/protocol/v1/initialization
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from amanu import __version__

PROTOCOL_VERSION = 1
"""The only one there is; version 2 is a draft."""
TERMINAL_AUTH, STORED_KEY = "terminal", "stored-key"
"""Ids of the ways to authenticate: type a key in a terminal, or go on with the one that is stored."""
SETUP = "--setup"
"""What the client adds to our command line for `TERMINAL_AUTH`."""
MAX_LINE = 64 * 1024 * 1024
"""Bytes of a message; prompts carry pictures."""


class EarlyRead(NamedTuple):
    """What was read before the event loop runs."""

    params: Mapping[str, Any] | None
    """Of the `initialize` that is answered; None: nothing is."""
    received: bytes
    """What is still to be handled."""


def answer_first(read: Callable[[], bytes], write: Callable[[bytes], None]) -> EarlyRead:
    """Read the first line; answer it if it is a good `initialize`. Blocking. Anything else is left to the agent, which
    knows every error. `read` returns some bytes, or none at the end of the stream."""
    received = bytearray()
    while b"\n" not in received and len(received) <= MAX_LINE:
        data = read()
        if not data:
            return EarlyRead(None, bytes(received))
        received += data
    line, _, rest = bytes(received).partition(b"\n")
    try:
        message = json.loads(line)
        request_id, params = message["id"], message["params"]
        if message["method"] != "initialize" or type(request_id) not in (int, str):
            return EarlyRead(None, bytes(received))
        reply = {"jsonrpc": "2.0", "id": request_id, "result": initialize_result(params)}
    except (ValueError, KeyError, TypeError, RecursionError):
        return EarlyRead(None, bytes(received))
    write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
    return EarlyRead(params, rest)


def initialize_result(params: object) -> dict[str, Any]:
    """What we can do. Raises `TypeError` for params without a version."""
    if type(mapping(params).get("protocolVersion")) is not int:
        raise TypeError("initialize: protocolVersion must be a number.")
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": False},
            "sessionCapabilities": {
                "list": {},
                "delete": {},
                "resume": {},
                "close": {},
                "additionalDirectories": {},
            },
        },
        "authMethods": _auth_methods(mapping(params)),
        "agentInfo": {"name": "amanu", "title": "Amanu", "version": __version__},
    }


def _auth_methods(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    stored = {
        "id": STORED_KEY,
        "name": "Use a stored key",
        "description": "Run `amanu auth set` in a terminal first, or set a variable such as ANTHROPIC_API_KEY.",
    }
    if not flag(params, "clientCapabilities", "auth", "terminal"):
        return [stored]
    terminal = {
        "type": "terminal",
        "id": TERMINAL_AUTH,
        "name": "Set up a key in the terminal",
        "description": "Choose a vendor and paste its API key. It is stored in your own configuration folder.",
        "args": [SETUP],
    }
    return [terminal, stored]


def flag(tree: object, *path: str) -> bool:
    """Whether there is something at that path of nested objects: `true`, or the object that stands for it. What is
    malformed counts as absent."""
    for name in path:
        tree = mapping(tree).get(name)
    return tree is True or isinstance(tree, dict)


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
