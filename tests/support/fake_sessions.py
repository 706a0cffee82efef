"""Sessions as the connections need them, with behaviour on demand: the text of a prompt or blob id says what to do."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from amanu.config import Settings
from amanu.home import find_home
from amanu.models.offered import OfferedModels
from amanu.parts import daemon_parts
from amanu.session.daemon_part import DaemonPart
from amanu.session.events import Client
from amanu.workspace.overlay import Overlay
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    Event,
    EventMessage,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    TurnEnded,
    TurnStarted,
)
from amanu_protocol.items import Answer, Item, ToolCall
from amanu_protocol.state import SessionState, fold


class FakeSession:
    def __init__(self, core: "FakeSessions", session_id: str, roots: list[str]) -> None:
        self.core = core
        self.state = SessionState(
            session_id=session_id,
            title="",
            roots=roots,
            mode="ask",
            model_id="fake:one",
            trusted=False,
            read_only=False,
        )
        self.seq = 0
        self.clients: list[Client] = []
        self.turn: asyncio.Task[None] | None = None

    def emit(self, event: Event) -> None:
        fold(self.state, event)
        self.seq += 1
        message = EventMessage(session_id=self.state.session_id, epoch=1, seq=self.seq, at=0, event=event)
        for client in self.clients:
            client.send(message)

    def attach(self, client: Client) -> r.SessionAttachResult:
        if client not in self.clients:
            self.clients.append(client)
        return r.SessionAttachResult(epoch=1, from_seq=self.seq + 1, state=self.state.model_copy(deep=True))

    def detach(self, client: Client) -> None:
        if client in self.clients:
            self.clients.remove(client)

    async def send_prompt(self, params: r.PromptSendParams, client: Client) -> r.PromptSendResult:
        word, _, rest = params.text.partition(" ")
        if word == "crash":
            raise RuntimeError("secret-of-the-crash")
        if word == "slowly":
            await asyncio.sleep(float(rest))
        turn_id = f"turn-{params.prompt_id}"
        self.turn = asyncio.create_task(self._run(turn_id, params, client, word, rest))
        return r.PromptSendResult(status="started", turn_id=turn_id)

    async def _run(self, turn_id: str, params: r.PromptSendParams, client: Client, word: str, rest: str) -> None:
        self.emit(TurnStarted(turn_id=turn_id, prompt_id=params.prompt_id, model_id="fake:one"))
        item_id = f"{turn_id}.a"
        match word:
            case "env":
                self.emit(ItemCompleted(item=self._answer(item_id, turn_id, client.environment.get(rest, "?"))))
            case "flood":
                count, size = map(int, rest.split())
                self.emit(ItemStarted(item=self._answer(item_id, turn_id, "")))
                for _ in range(count):
                    self.emit(ItemDelta(item_id=item_id, text="x" * size))
                    await asyncio.sleep(0)
                self.emit(ItemCompleted(item=self.item(item_id)))
            case "tool":
                arguments: dict[str, Any] = json.loads(rest)
                self.emit(
                    ItemCompleted(
                        item=ToolCall(
                            item_id=item_id,
                            turn_id=turn_id,
                            tool="t",
                            title="t",
                            effect="read",
                            arguments=arguments,
                            state="succeeded",
                            output="",
                        )
                    )
                )
            case "forever":
                await asyncio.Event().wait()
            case _:
                self.emit(ItemCompleted(item=self._answer(item_id, turn_id, params.text)))
        self.emit(TurnEnded(turn_id=turn_id, reason="completed", message="", can_continue=False))
        self.turn = None

    def item(self, item_id: str) -> Item:
        item = self.state.item(item_id)
        assert item is not None
        return item

    def _answer(self, item_id: str, turn_id: str, text: str) -> Answer:
        return Answer(item_id=item_id, turn_id=turn_id, text=text)

    async def blob(self, params: r.BlobGetParams) -> r.BlobGetResult:
        word, _, rest = params.blob_id.partition(":")
        match word:
            case "slow":
                await asyncio.Event().wait()
            case "buffers":
                return r.BlobGetResult(text=json.dumps({str(b.path): b.text for b in self.core.overlay.buffers()}))
            case "editors":
                return r.BlobGetResult(text=",".join(sorted(str(b.version) for b in self.core.overlay.buffers())))
            case _:
                pass
        return r.BlobGetResult(text=rest)

    @property
    def prompts(self) -> "FakeSession":
        return self

    @property
    def edits(self) -> "FakeSession":
        return self

    @property
    def pages(self) -> "FakeSession":
        return self

    def diff(self, params: r.ProposalDiffParams) -> Any:
        raise AmanuError("proposalNotFound", f"There is no proposal {params.scope.proposal_id}.", hint="Look again.")

    async def rename(self, title: str) -> None:
        self.state.title = title

    async def compact(self, focus: str, client: object) -> r.SessionCompactResult:
        return r.SessionCompactResult(status="started")

    async def record(self, path: str | None) -> None:
        pass


class FakeSessions:
    def __init__(self) -> None:
        self.overlay = Overlay()
        self.offered = OfferedModels()
        self.documents = Path("/nowhere")
        self.warmed: list[str] = []
        self.models = SimpleNamespace(list=self._no_models, warm=self._warm)
        self.summaries = SimpleNamespace(list=self._list)
        self.completion = SimpleNamespace(commands=self._commands, mention=self._mention)
        self.keys = SimpleNamespace(status=self._keys, check=None, set=lambda params: None)
        self.trust = SimpleNamespace(get=self._trust, set=lambda params: None)
        self.rules = SimpleNamespace(add=None, remove=None, preview=self._preview)
        self.sessions: dict[str, FakeSession] = {}
        self.clients: list[Client] = []
        self.down = False
        self.parts: list[DaemonPart] = [part(find_home().make(), Settings(), None) for part in daemon_parts()]

    async def create(self, params: r.SessionCreateParams, client: Client) -> r.SessionResult:
        if params.session_id not in self.sessions:
            self.sessions[params.session_id] = FakeSession(self, params.session_id, params.roots)
            for each in self.clients:
                each.list_changed(params.session_id)
        session = self.sessions[params.session_id]
        attached = session.attach(client)
        assert attached.state is not None
        return r.SessionResult(state=attached.state, epoch=1, from_seq=attached.from_seq)

    async def _warm(self, client: Client) -> None:
        self.warmed.append(client.environment.get("NAME", ""))

    async def get(self, session_id: str) -> FakeSession:
        if session_id not in self.sessions:
            raise AmanuError("sessionNotFound", f"There is no session {session_id}.")
        return self.sessions[session_id]

    def opened(self, session_id: str) -> FakeSession | None:
        return self.sessions.get(session_id)

    async def attach(self, params: r.SessionAttachParams, client: Client) -> r.SessionAttachResult:
        return (await self.get(params.session_id)).attach(client)

    async def _list(self, params: r.SessionListParams) -> r.SessionListResult:
        return r.SessionListResult(
            sessions=[
                r.SessionSummary(
                    session_id=each.state.session_id,
                    title=each.state.title,
                    roots=each.state.roots,
                    model_id=each.state.model_id,
                    created_at=0,
                    updated_at=0,
                    status="running" if each.turn else "idle",
                )
                for each in list(self.sessions.values())[: params.limit]
            ]
        )

    async def close(self, session_id: str) -> None:
        self.sessions.pop(session_id, None)

    async def delete(self, session_id: str) -> None:
        self.sessions.pop(session_id, None)

    def connect(self, client: Client) -> None:
        self.clients.append(client)

    def disconnect(self, client: Client) -> None:
        if client in self.clients:
            self.clients.remove(client)
        for session in self.sessions.values():
            session.detach(client)

    @property
    def busy(self) -> bool:
        return any(session.turn is not None for session in self.sessions.values())

    async def shutdown(self) -> None:
        self.down = True
        for session in self.sessions.values():
            if session.turn is not None:
                session.turn.cancel()
                await asyncio.wait({session.turn})

    async def _mention(self, params: r.MentionCompleteParams, editor: object) -> r.MentionCompleteResult:
        return r.MentionCompleteResult(typed="", items=[])

    async def _commands(self, params: r.CommandListParams) -> r.CommandListResult:
        return r.CommandListResult(commands=[])

    async def _no_models(self, client: Client) -> r.ModelListResult:
        return r.ModelListResult(models=[])

    def _keys(self, client: Client) -> r.AuthStatusResult:
        return r.AuthStatusResult(vendors=[])

    def _trust(self, params: r.TrustGetParams, client: object) -> r.TrustGetResult:
        return r.TrustGetResult(state="untrusted", enables=[], digest="")

    async def audit_query(self, params: r.AuditQueryParams) -> r.AuditQueryResult:
        return r.AuditQueryResult(entries=[], intact=True, message="Nothing happened yet.")

    def _preview(self, params: r.RulePreviewParams) -> r.RulePreviewResult:
        return r.RulePreviewResult(valid=True, explanation=params.rule)
