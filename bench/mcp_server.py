"""An MCP server over stdio with twenty tools, as long as those of usual servers. It imports nothing that takes time."""

import json
import sys
from typing import Any

TEXT = "Does what its name says with the records of a project, and returns those that changed, newest first. "
TOOLS: list[dict[str, Any]] = [
    {
        "name": f"{verb}_{noun}",
        "description": f"{verb.title()} {noun}. {TEXT * 2}",
        "inputSchema": {
            "type": "object",
            "properties": {
                name: {"type": "string", "description": f"The {name} of the {noun}, as the service shows it."}
                for name in ("project", "name", "filter", "cursor")
            },
            "required": ["project"],
        },
    }
    for verb in ("list", "get", "create", "update", "delete")
    for noun in ("issues", "pages", "users", "builds")
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": params.get("protocolVersion", "2025-11-25"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bench", "version": "1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return {"content": [{"type": "text", "text": "done"}]}
        case "ping":
            return {}
        case _:
            return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message.get("method", ""), message.get("params") or {})
        reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
