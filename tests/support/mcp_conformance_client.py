"""The client that the official conformance suite of MCP drives: `Servers`, with a user who agrees to everything.

python -m support.mcp_conformance_client ADDRESS      (MCP_CONFORMANCE_SCENARIO names what is tried)
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2

from amanu.mcp.model import CallClient, ServerTool
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Question, QuestionField
from support.mcp_harness import Harness, harness


async def accept(server: str, message: str, fields: Sequence[QuestionField]) -> Question:
    """A user who accepts a form as it is proposed."""
    question: dict[str, Any] = {"itemId": "1", "turnId": "1", "asker": server, "title": message, "fields": []}
    answers = {field.field_id: field.default for field in fields if field.default is not None}
    return Question.model_validate({**question, "state": "answered", "answers": answers})


async def visit(page: str) -> None:
    """A user who opens the page, where the authorization server says yes at once."""
    async with httpx2.AsyncClient(follow_redirects=True) as client:
        await client.get(page)


async def sign_in(it: Harness) -> None:
    visits: list[asyncio.Task[None]] = []
    await it.servers.sign_in(it.workspace, "web", lambda page: visits.append(asyncio.create_task(visit(page))))
    await asyncio.gather(*visits)
    await it.until(lambda: it.view("web").state not in ("starting", "configured"))


def arguments(tool: ServerTool) -> dict[str, Any]:
    """Arguments that fit a simple schema."""
    properties: Any = tool.input_schema.get("properties") or {}
    return {name: 2 if schema.get("type") in ("number", "integer") else "x" for name, schema in properties.items()}


async def main(address: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        async with harness(Path(folder)) as it:
            it.configure(web={"url": address})
            await it.approved("web")
            if it.view("web").state == "needsSignIn":
                await sign_in(it)
            for tool in it.view("web").tools:
                answer = await it.call("web", tool.name, CallClient(ask=accept), **arguments(tool))
                print(tool.name, [part.text for part in answer.content])
            view = it.view("web")
            print(view.state, view.reason)
            return 0 if view.state == "ready" else 1


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main(sys.argv[-1])))
    except AmanuError as error:
        sys.exit(f"{os.environ.get('MCP_CONFORMANCE_SCENARIO')}: {error}")
