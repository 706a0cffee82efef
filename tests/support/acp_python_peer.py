"""A client of ACP agents, made of the Python SDK, which reads every message with its own models. It starts the agent,
approves the first option of whatever it is asked, and prints one line of JSON about it all.

    python -P acp_python_peer.py FOLDER-OF-THE-SDK ROOT COMMAND…

The folder goes before everything else that is installed, in this process and not in the agent's.
"""

import asyncio
import collections
import importlib
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, sys.argv[1])
acp: Any = importlib.import_module("acp")
schema: Any = importlib.import_module("acp.schema")


class Problems(logging.Handler):
    """What the SDK logs: messages it cannot read."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


class Peer:
    """The side of the client."""

    def __init__(self) -> None:
        self.permissions: list[str] = []
        self.forms: list[str] = []
        self.updates: collections.Counter[str] = collections.Counter()
        self.texts: list[str] = []
        self.read: list[str] = []
        self.written: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates[update.session_update] += 1
        if update.session_update == "agent_message_chunk":
            self.texts.append(update.content.text)

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        self.permissions.append(tool_call.title)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> Any:
        self.read.append(path)
        return schema.ReadTextFileResponse(content=await asyncio.to_thread(Path(path).read_text))

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> None:
        self.written.append(path)
        await asyncio.to_thread(Path(path).write_text, content)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.forms.append(message)
        properties = {name: field.model_dump() for name, field in mode.requested_schema.properties.items()}
        content = {name: field["one_of"][0]["const"] for name, field in properties.items() if field.get("one_of")}
        return schema.AcceptElicitationResponse(action="accept", content=content)


async def work(root: str, command: list[str]) -> dict[str, Any]:
    peer = Peer()
    capabilities = schema.ClientCapabilities(
        fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
        elicitation=schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()),
    )
    info = schema.Implementation(name="python-peer", version="1")
    options: dict[str, Any] = {"env": dict(os.environ), "cwd": root}
    options["use_unstable_protocol"] = True  # this SDK counts forms as such
    async with acp.spawn_agent_process(peer, *command, **options) as (agent, process):
        initialized = await agent.initialize(1, client_capabilities=capabilities, client_info=info)
        made = await agent.new_session(cwd=root, mcp_servers=[])
        prompted = await agent.prompt(session_id=made.session_id, prompt=[acp.text_block("do it all")])
        updates, text = dict(peer.updates), "".join(peer.texts)
        peer.updates.clear()
        await agent.load_session(cwd=root, session_id=made.session_id, mcp_servers=[])
        replayed = dict(peer.updates)
        await agent.set_session_mode(session_id=made.session_id, mode_id="plan")
        changed = await agent.set_config_option(config_id="effort", session_id=made.session_id, value="high")
        listed = await agent.list_sessions(cwd=root)
        await agent.close_session(session_id=made.session_id)
    return {
        "agent": initialized.agent_info.name,
        "stopReason": prompted.stop_reason,
        "updates": updates,
        "text": text,
        "replayed": replayed,
        "values": {option.id: option.current_value for option in changed.config_options},
        "listed": [each.session_id == made.session_id for each in listed.sessions],
        "permissions": peer.permissions,
        "forms": peer.forms,
        "read": peer.read,
        "written": peer.written,
        "code": process.returncode,
    }


if __name__ == "__main__":
    problems = Problems()
    logging.basicConfig(handlers=[problems])
    report = asyncio.run(work(sys.argv[2], sys.argv[3:]))
    print(json.dumps({**report, "problems": problems.texts}))
