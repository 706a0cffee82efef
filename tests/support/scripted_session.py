"""A session under test: one daemon's sessions, one client that folds, a folder, a scripted model."""

import json
import os
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from amanu.core.conversation import Conversation
from amanu.mcp.model import McpServers
from amanu.session import restore
from amanu.session.session import Session
from amanu.session.sessions import Sessions, open_sessions
from amanu_protocol.items import Mode
from amanu_protocol.requests import (
    ApprovalResolveParams,
    HunkDecision,
    PromptSendParams,
    ProposalResolveParams,
    RowDecision,
    SessionCreateParams,
    TrustSetParams,
)
from amanu_protocol.state import SessionState
from support.session_client import Client, until

TWELVE = "".join(f"line {n}\n" for n in range(1, 13))
TWO_HUNKS = TWELVE.replace("line 2\n", "line two\n").replace("line 11\n", "line eleven\n")


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def step(text: str = "", *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"text": text, "calls": list(calls), **more}


class ScriptedSession:
    """One daemon's sessions, one client, one session over a folder with notes.txt in it."""

    def __init__(self, sessions: Sessions, client: Client, session: Session, root: Path) -> None:
        self.sessions = sessions
        self.client = client
        self.session = session
        self.root = root
        self.file = root / "notes.txt"

    async def prompt(self, text: str, prompt_id: str = "p1") -> str | None:
        params = PromptSendParams(session_id="s", prompt_id=prompt_id, text=text)
        return (await self.session.prompts.send(params, self.client)).turn_id

    async def until(self, reached: Callable[[SessionState], object]) -> SessionState:
        return await until(self.session, reached)

    async def ended(self, reason: str = "completed") -> SessionState:
        state = await self.until(lambda state: state.last_turn)
        assert state.last_turn is not None
        assert state.last_turn.reason == reason
        return state

    async def answer(self, decision: str, client: Client | None = None, **more: Any) -> str:
        state = await self.until(lambda state: state.approvals)
        asked = state.approvals[0]
        seen: dict[str, Any] = {"digest": asked.digest, **more}
        params = ApprovalResolveParams(session_id="s", tool_call_id=asked.tool_call_id, decision=decision, **seen)
        return (await self.session.resolve_approval(params, client or self.client)).status

    async def decide(self, *decisions: str) -> str:
        """Decide the hunks of the last proposal: "accept", "reject why" or "accept=own text"."""
        proposal = self.session.state.proposals[-1]
        hunks: list[HunkDecision] = []
        for hunk, text in zip(proposal.files[0].hunks, decisions, strict=False):
            word, _, rest = text.partition("=" if "=" in text else " ")
            more: dict[str, Any] = {"new_text": rest} if "=" in text else {"reason": rest or None}
            if text:
                hunks.append(HunkDecision(hunk_id=hunk.hunk_id, decision=word, **more))
        params = ProposalResolveParams(
            session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, hunks=hunks
        )
        return (await self.session.edits.resolve(params)).status

    async def decide_rows(self, *decisions: str) -> str:
        """Decide the rows of the last proposal: "accept", "reject why"."""
        proposal = self.session.state.proposals[-1]
        rows = [
            RowDecision(row_id=row.row_id, decision=text.split(" ")[0], reason=text.partition(" ")[2] or None)
            for row, text in zip(proposal.rows, decisions, strict=False)
            if text
        ]
        params = ProposalResolveParams(
            session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, rows=rows
        )
        return (await self.session.edits.resolve(params)).status

    async def over(self, prompt_id: str, reason: str = "completed") -> SessionState:
        """Wait for the end of that prompt's turn."""
        state = await self.until(lambda state: state.last_turn and state.last_turn.turn_id == f"turn-{prompt_id}")
        assert state.last_turn is not None
        assert state.last_turn.reason == reason
        return state

    async def trust(self, trusted: bool = True) -> None:
        """The user decides about the folder, as it is now."""
        await self.sessions.trust.set(TrustSetParams(root=str(self.root), trusted=trusted))

    async def reopen(self) -> None:
        """The session is put away and opened again, as by the next daemon."""
        await self.sessions.close("s")
        self.session = await self.sessions.get("s")
        self.client.state = self.session.attach(self.client, None, None).state

    def told(self) -> str:
        """All that the model has been told, as text."""
        return "\n".join(message.model_dump_json() for message in conversation(self.session))


def conversation(session: Session) -> Conversation:
    return session.core.conversation


def without_status(text: str) -> str:
    """What was said with a prompt, but for how the session is run, and where."""
    return re.sub(r"(\n\n)?<(session_status|environment)>\n.*?\n</\2>", "", text, flags=re.DOTALL)


async def journalled(session: Session) -> Conversation:
    records = await session.core.journal.records()
    return restore.conversation(records, restore.rewound(each for each in records if restore.REWINDS in each.event))


@asynccontextmanager
async def scripted_session(
    tmp_path: Path,
    *steps: dict[str, Any],
    mode: Mode = "ask",
    headless: bool = False,
    more_roots: Sequence[str] = (),
    mcp: McpServers | None = None,
) -> AsyncGenerator[ScriptedSession]:
    """`more_roots`: names of folders that are open besides. At the end the journal tells the same conversation as the
    one the model was given, and a client that folded the events has the session's state."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(list(steps)))
    root = tmp_path / "work"
    roots = [root, *(tmp_path / name for name in more_roots)]
    for folder in roots:
        folder.mkdir(exist_ok=True)
    (root / "notes.txt").write_text(TWELVE)
    sessions = open_sessions(headless=headless, mcp=mcp)
    client = Client(os.environ)
    sessions.connect(client)
    made = await sessions.create(
        SessionCreateParams(session_id="s", roots=[*map(str, roots)], mode=mode, model_id=f"scripted:{script}"), client
    )
    client.state = made.state
    d = ScriptedSession(sessions, client, await sessions.get("s"), root)
    try:
        yield d
        if not d.session.running:
            assert list(await journalled(d.session)) == list(conversation(d.session))
            assert client.state.model_dump() == d.session.view().model_dump()
    finally:
        await sessions.shutdown()
