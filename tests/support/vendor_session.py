"""A whole session whose models are three vendors' strict services, through their real SDKs."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from amanu.session.session import Session
from amanu.session.sessions import open_sessions
from amanu_protocol.requests import AuditQueryParams, PromptSendParams, SessionCreateParams
from support.session_client import Client, until
from support.strict_services.http import Service
from support.three_vendors import MODELS, three_vendors


@dataclass
class VendorSession:
    """A session in a folder with a.txt, whose models are behind those services."""

    session: Session
    client: Client
    services: Mapping[str, Service]
    root: Path

    async def turn(self, prompt_id: str, text: str = "Go.") -> None:
        await self.session.prompts.send(PromptSendParams(session_id="s", prompt_id=prompt_id, text=text), self.client)
        state = await until(self.session, lambda state: state.last_turn and state.last_turn.turn_id.endswith(prompt_id))
        assert state.last_turn is not None and state.last_turn.reason == "completed", state.last_turn

    async def events(self) -> list[str]:
        """The events that hooks were run for."""
        log = await self.session.core.services.audit.query(AuditQueryParams(session_id="s", limit=1000))
        return [str(entry.data["event"]) for entry in log.entries if entry.kind == "hook"]


@asynccontextmanager
async def vendor_session(tmp_path: Path, first: str) -> AsyncGenerator[VendorSession]:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    async with three_vendors() as (services, environment):
        client = Client(environment)
        sessions = open_sessions()
        try:
            params = SessionCreateParams(session_id="s", roots=[str(root)], model_id=MODELS[first], mode="acceptEdits")
            client.state = (await sessions.create(params, client)).state
            yield VendorSession(await sessions.get("s"), client, services, root)
        finally:
            await sessions.shutdown()
