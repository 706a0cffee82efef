"""An agent at work: its calls of `run_shell_command` go through a session, whose user allows each of them once."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from amanu.config import load_settings
from amanu.context.editor import EditorContext
from amanu.home import Home
from amanu.permissions import approvals
from amanu.sandbox.sandbox import Sandbox
from amanu.session.services import make_services
from amanu.session.session import Session
from amanu.session.sessions import Sessions
from amanu_protocol.events import (
    ApprovalRequested,
    EventMessage,
    ItemChanged,
    ItemCompleted,
    ItemStarted,
    TurnEnded,
)
from amanu_protocol.items import Approval, Grant, Mode, ToolCall
from amanu_protocol.requests import (
    ApprovalResolveParams,
    AuditQueryParams,
    PromptSendParams,
    SessionCreateParams,
)

Tier = Literal["layer", "bubblewrap", "landlock"]
TIERS: tuple[Tier, ...] = ("layer", "bubblewrap", "landlock")
SECONDS = 60.0
"""For one call, with its questions."""


class TierUnavailable(Exception):
    """That tier does not work on this machine. `str()` says why."""


@dataclass(frozen=True)
class Question:
    when: Literal["before", "after", "decide"]
    """It ran, or after a try of it; `decide`: about what it changed, which is reviewed like any edit."""
    reason: str
    grants: tuple[Grant, ...]
    """What it probably needs, which was granted."""


@dataclass
class Call:
    """What became of one call."""

    questions: list[Question] = field(default_factory=list[Question])
    exit: str = ""
    """Its exit code as the audit log has it; "" when it did not run."""
    ran: str = ""
    """The command line."""
    output: str = ""
    """What the user sees of it."""
    problem: str = ""
    """Why it did not come to its end; "" when it did."""


@asynccontextmanager
async def sessions_in(tier: Tier, home: Home, environment: Mapping[str, str]) -> AsyncGenerator[Sessions]:
    """Sessions whose commands run in that tier. Raises `TierUnavailable`."""
    settings = load_settings(home, environment)
    best = "bubblewrap" if tier == "layer" else tier
    layers = settings.sandbox.model_copy(update={"layers": tier == "layer"})
    sandbox = Sandbox(layers, home, best=best)
    proof = await sandbox.proved()
    if proof.tier != best:
        raise TierUnavailable(proof.summary)
    # An answer within half a second of its question does not count; whoever answers here has read nothing.
    approvals.GUARD_SECONDS = 0.0
    sessions = Sessions(replace(make_services(home, settings), sandbox=sandbox), environment)
    try:
        yield sessions
    finally:
        await sessions.shutdown()


async def call(sessions: Sessions, mode: Mode, root: Path, environment: Mapping[str, str], **arguments: Any) -> Call:
    """One call in one turn of a new session in that folder, which its user trusts."""
    session_id = uuid.uuid4().hex
    steps = [{"calls": [{"tool": "run_shell_command", "arguments": arguments}]}, {"text": "Done."}]
    script = root.parent / f"{session_id}.json"  # a script is read once in a process
    script.write_text(json.dumps(steps))
    user = _User(root, environment)
    sessions.connect(user)
    params = SessionCreateParams(
        session_id=session_id, roots=[str(root)], mode=mode, model_id=f"scripted:{script}", title="Bench"
    )
    await sessions.create(params, user)
    session = user.session = await sessions.get(session_id)
    try:
        await session.prompts.send(PromptSendParams(session_id=session_id, prompt_id="p", text="Go on."), user)
        try:
            await asyncio.wait_for(user.ended.wait(), SECONDS)
        except TimeoutError:
            user.call.problem = f"no end after {SECONDS:g} s"
        found = await sessions.audit_query(AuditQueryParams(session_id=session_id, limit=1000))
        exits = [str(entry.data["exit"]) for entry in found.entries if entry.kind == "ended" and "exit" in entry.data]
        user.call.exit = exits[-1] if exits else ""
    finally:
        sessions.disconnect(user)
        await sessions.close(session_id)
        script.unlink()
    assert user.call.ran == arguments["command"] or user.call.problem, user.call
    return user.call


class _User:
    """Implements `amanu.session.events.Client`: answers what is asked, and remembers it."""

    name = "Bench"
    ripgrep: str | None = None
    context: EditorContext | None = None

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.trusted_roots = (str(root),)
        self.session: Session | None = None
        self.call = Call()
        self.ended = asyncio.Event()
        self._ran = False
        self._open: set[str] = set()
        """Digests of the questions that are being answered."""
        self._answering: set[asyncio.Task[None]] = set()

    def send(self, message: EventMessage) -> None:
        match message.event:
            case ApprovalRequested(approval=approval):
                self._take(approval)
            case ItemStarted(item=ToolCall() as item) | ItemChanged(item=ToolCall() as item):
                self._ran |= item.state == "executing"
            case ItemCompleted(item=ToolCall(tool="run_shell_command") as item):
                self.call.ran, self.call.output = str(item.arguments.get("command", "")), item.output
            case TurnEnded() as end:
                if end.reason != "completed":
                    self.call.problem = f"{end.reason} {end.message}".strip()
                self.ended.set()
            case _:
                pass

    def list_changed(self, session_id: str) -> None:
        pass

    def mcp_changed(self) -> None:
        pass

    def _take(self, approval: Approval) -> None:
        """A question that is shown anew while it is being answered is the same question."""
        if not self._open:
            asks = bool(approval.blocked) or approval.sandbox is not None
            when = "before" if not self._ran else "after" if asks else "decide"
            self.call.questions.append(Question(when, _reason(approval), tuple(approval.likely_grants)))
        self._open.add(approval.digest)
        task = asyncio.create_task(self._allow(approval))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _allow(self, approval: Approval) -> None:
        assert self.session is not None
        params = ApprovalResolveParams(
            session_id=self.session.state.session_id,
            tool_call_id=approval.tool_call_id,
            decision="allow",
            digest=approval.digest,
            grants=approval.likely_grants,
        )
        while (await self.session.resolve_approval(params, self)).status == "tooSoon":
            await asyncio.sleep(0.05)
        self._open.discard(approval.digest)


def _reason(approval: Approval) -> str:
    """What blocked a first try; else of each part that is asked about, why, or the rule where no part says it."""
    if approval.blocked:
        return f"It {approval.blocked}."
    reasons = [part.reason or part.rule for part in approval.parts if part.decision == "ask"]
    return " ".join(dict.fromkeys(reasons)) or approval.rule
