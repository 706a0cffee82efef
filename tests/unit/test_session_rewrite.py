"""Lines rewritten at the cursor, in a whole session: proposed on what the user sees, refined, continued in chat."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu.home import find_home
from amanu.permissions import approvals as approval
from amanu.session.session import Session
from amanu.session.sessions import Sessions, open_sessions
from amanu_protocol.base import LineRange
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Answer, Finding, ToolCall
from amanu_protocol.requests import (
    ApprovalResolveParams,
    CommitMessageParams,
    PromptSendParams,
    PromptSteerParams,
    RewriteRefineParams,
    RewriteStartParams,
    SessionListParams,
)
from support.scripted_session import TWELVE, step
from support.session_client import Client, until

LINES = "<before>\nline 2\n</before>\n<rewrite>\n{}\n</rewrite>\n<after>\nline 5\n</after>"
REPLY = LINES.format("line three\nline four")
AGAIN = LINES.format("LINE THREE\nLINE FOUR")
REWRITTEN = TWELVE.replace("line 3\nline 4\n", "line three\nline four\n")


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


class Workspace:
    """A folder with notes.txt, a model that plays `steps`, and a client."""

    def __init__(self, sessions: Sessions, client: Client, root: Path, model_id: str) -> None:
        self.sessions, self.client, self.root, self.model_id = sessions, client, root, model_id
        self.file = root / "notes.txt"

    async def start(self, instruction: str = "In words.", **changed: Any) -> Session:
        params: dict[str, Any] = {
            "session_id": "r",
            "prompt_id": "p1",
            "roots": [str(self.root)],
            "path": str(self.file),
            "lines": {"start": 2, "end": 4},
            "instruction": instruction,
            "model_id": self.model_id,
            **changed,
        }
        made = await self.sessions.start_rewrite(RewriteStartParams(**params), self.client)
        self.client.state = made.state
        return await self.sessions.get("r")

    async def listed(self) -> list[str]:
        return [summary.title for summary in (await self.sessions.summaries.list(SessionListParams())).sessions]


@asynccontextmanager
async def workspace(tmp_path: Path, *steps: dict[str, Any], settings: str = "") -> AsyncGenerator[Workspace]:
    (find_home(os.environ).make().config / "config.toml").write_text(settings)
    (tmp_path / "script.json").write_text(json.dumps(steps))
    root = tmp_path / "work"
    root.mkdir()
    (root / "notes.txt").write_text(TWELVE)
    sessions, client = open_sessions(), Client(os.environ)
    sessions.connect(client)
    try:
        yield Workspace(sessions, client, root, f"scripted:{tmp_path / 'script.json'}")
    finally:
        await sessions.shutdown()


async def answer(session: Session, client: Client, decision: str = "allow") -> None:
    state = await until(session, lambda state: state.approvals)
    asked = state.approvals[0]
    params = ApprovalResolveParams(
        session_id="r", tool_call_id=asked.tool_call_id, decision=decision, digest=asked.digest
    )
    await session.resolve_approval(params, client)


async def ended(session: Session, prompt_id: str = "p1") -> tuple[str, str]:
    state = await until(session, lambda state: state.last_turn and state.last_turn.turn_id == f"turn-{prompt_id}")
    assert state.last_turn is not None
    return state.last_turn.reason, state.last_turn.message


async def test_it_is_proposed_and_applied_when_the_user_says_so(tmp_path: Path) -> None:
    usage = {"input": 1000, "output": 100}
    async with workspace(tmp_path, step(REPLY, chunk=9, delay_ms=12, usage=usage)) as w:
        finding = Finding(lines=LineRange.numbered(3, 3), severity="error", message="not a word", source="spell")
        session = await w.start(findings=[finding])
        drawn = await until(session, lambda state: any(isinstance(i, ToolCall) and i.output for i in state.items))
        live = next(item for item in drawn.items if isinstance(item, ToolCall))
        assert live.title == "Edit notes.txt" and live.output.startswith("+line three\n")
        state = await until(session, lambda state: state.approvals)
        (file,) = state.proposals[0].files
        assert [(hunk.old_text, hunk.new_text) for hunk in file.hunks] == [
            ("line 3\nline 4\n", "line three\nline four\n")
        ]
        assert w.file.read_text() == TWELVE
        assert await w.listed() == ["In words."]
        await answer(session, w.client)
        assert await ended(session) == ("completed", "")
        assert w.file.read_text() == REWRITTEN
        assert session.state.usage is not None and session.state.usage.input_tokens == 1000
        assert (session.state.purpose, session.state.mode) == ("rewrite", "ask")
        await w.sessions.close("r")
        assert await w.listed() == []


async def test_rules_about_edits_hold(tmp_path: Path) -> None:
    async with workspace(tmp_path, step(REPLY), settings='[rules]\ndeny = ["edit_file(notes.txt)"]\n') as w:
        session = await w.start()
        await ended(session)
        assert w.file.read_text() == TWELVE and not session.state.approvals
        assert {hunk.state for hunk in session.state.proposals[0].files[0].hunks} == {"rejected"}


async def test_the_model_hears_the_lines(tmp_path: Path) -> None:
    """The script complains where it does not hear what it expects, and a complaint is no edit."""
    async with workspace(tmp_path, step(REPLY, expect="line 3\nline 4\n</lines_to_rewrite>")) as w:
        session = await w.start()
        await until(session, lambda state: state.approvals)


async def test_a_refined_rewrite_takes_the_place_of_the_first(tmp_path: Path) -> None:
    async with workspace(tmp_path, step(REPLY), step(AGAIN, expect="Louder.")) as w:
        session = await w.start()
        await until(session, lambda state: state.approvals)
        params = RewriteRefineParams(session_id="r", prompt_id="p2", instruction="Louder.")
        await session.refine(params, w.client)
        state = await until(session, lambda state: state.approvals and len(state.proposals) == 2)
        assert [proposal.files[0].hunks[0].state for proposal in state.proposals] == ["rejected", "pending"]
        assert state.proposals[0].files[0].hunks[0].reason == "Louder."
        await answer(session, w.client)
        assert (await ended(session, "p2"))[0] == "completed"
        assert w.file.read_text() == TWELVE.replace("line 3\nline 4\n", "LINE THREE\nLINE FOUR\n")


async def test_what_was_applied_is_refined_as_it_stands(tmp_path: Path) -> None:
    reply = AGAIN.replace("line 2", "line 2").replace("LINE FOUR", "LINE FOUR\nLINE FIVE")
    async with workspace(tmp_path, step(REPLY), step(reply, expect="line three\nline four\n</lines")) as w:
        session = await w.start()
        await answer(session, w.client)
        await ended(session)
        w.file.write_text(f"# new\n{w.file.read_text()}")
        await session.refine(RewriteRefineParams(session_id="r", prompt_id="p2", instruction="Louder."), w.client)
        await answer(session, w.client)
        await ended(session, "p2")
        assert w.file.read_text() == f"# new\n{TWELVE}".replace(
            "line 3\nline 4\n", "LINE THREE\nLINE FOUR\nLINE FIVE\n"
        )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It holds twelve lines.", "The model wrote no edit: It holds twelve lines."),
        (LINES.format(""), "The model's rewrite was empty"),
        (LINES.format("line 3\nline 4"), "The model left the lines as they are."),
        (REPLY.replace("line 2", "line 9"), "The model rewrote other lines than these"),
        ("<rewrite>\nline three", "The model's reply was cut off"),
    ],
)
async def test_without_an_edit_the_turn_says_why(tmp_path: Path, text: str, reason: str) -> None:
    async with workspace(tmp_path, step(text)) as w:
        session = await w.start()
        ending, message = await ended(session)
        assert (ending, message[: len(reason)]) == ("failed", reason)
        assert session.state.proposals == [] and w.file.read_text() == TWELVE


@pytest.mark.parametrize(
    ("typed", "ending"),
    [
        (f"# above\n{TWELVE}", "completed"),
        (TWELVE.replace("line 4", "line 4, typed"), "failed"),
    ],
)
async def test_the_user_types_while_the_model_writes(tmp_path: Path, typed: str, ending: str) -> None:
    async with workspace(tmp_path, step(REPLY, chunk=9, delay_ms=12)) as w:
        session = await w.start()
        await until(session, lambda state: any(isinstance(i, ToolCall) and i.output for i in state.items))
        w.file.write_text(typed)
        if ending == "completed":
            await answer(session, w.client)
        assert (await ended(session))[0] == ending
        assert w.file.read_text() == typed.replace("line 3\nline 4\n", "line three\nline four\n")


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"path": ".env"}, "permissionDenied"),
        ({"path": "/etc/hostname"}, "permissionDenied"),
        ({"path": "none.txt"}, "permissionDenied"),
        ({"version": 3}, "proposalConflict"),
        ({"lines": {"start": 13, "end": 14}}, "invalidParams"),
        ({"model_id": "scripted:none"}, "modelNotFound"),
    ],
)
async def test_what_cannot_be_rewritten_leaves_no_session(tmp_path: Path, changed: dict[str, Any], kind: str) -> None:
    async with workspace(tmp_path, step(REPLY)) as w:
        (w.root / ".env").write_text("KEY=1\nB=2\nC=3\nD=4\n")
        if "path" in changed:
            changed = {"path": str(w.root / changed["path"])}
        with pytest.raises(AmanuError) as error:
            await w.start(**changed)
        assert error.value.kind == kind
        listed = await w.sessions.summaries.list(SessionListParams(agents=True))
        assert listed.sessions == []


async def test_it_continues_as_a_chat(tmp_path: Path) -> None:
    async with workspace(tmp_path, step(REPLY), settings='mode = "acceptEdits"\n') as w:
        session = await w.start()
        await answer(session, w.client)
        await ended(session)
        await session.continue_rewrite(w.client)
        assert (session.state.purpose, session.state.mode) == ("chat", "acceptEdits")
        assert await w.listed() == ["In words."]
        with pytest.raises(AmanuError, match="This rewrite is over"):
            await session.refine(RewriteRefineParams(session_id="r", prompt_id="p2", instruction="x"), w.client)
        await session.send_prompt(PromptSendParams(session_id="r", prompt_id="p3", text="And now?"), w.client)
        assert (await ended(session, "p3"))[0] == "completed"
        told = "\n".join(message.model_dump_json() for message in session.core.conversation)
        assert "line 3" in told and "line three" in told and "rewrite_lines" in told


async def test_a_prompt_makes_it_a_chat(tmp_path: Path) -> None:
    async with workspace(tmp_path, step("No.")) as w:
        session = await w.start("/memory of words")
        await ended(session)
        await session.send_prompt(PromptSendParams(session_id="r", prompt_id="p2", text="Why?"), w.client)
        assert session.state.purpose == "chat"


@pytest.mark.parametrize("continued", [False, True])
async def test_what_is_said_while_the_edit_waits_is_the_next_prompt(tmp_path: Path, continued: bool) -> None:
    """The turn of a rewrite asks the model once, so steering would never be heard."""
    async with workspace(tmp_path, step(REPLY), step("Because.", expect="Why?")) as w:
        session = await w.start()
        await until(session, lambda state: state.approvals)
        if continued:
            await session.continue_rewrite(w.client)
        steering = PromptSteerParams(session_id="r", prompt_id="p2", turn_id="turn-p1", text="Why?")
        with pytest.raises(AmanuError) as error:
            await session.prompts.steer(steering, w.client)
        assert error.value.kind == "staleTurn"
        await session.send_prompt(PromptSendParams(session_id="r", prompt_id="p2", text="Why?"), w.client)
        assert (await ended(session, "p2"))[0] == "completed"
        said = [item.text for item in session.state.items if isinstance(item, Answer)]
        assert said == ["Because."] and w.file.read_text() == TWELVE
        assert session.state.proposals[0].files[0].hunks[0].state == "pending"


async def test_a_cancelled_rewrite_proposes_nothing(tmp_path: Path) -> None:
    async with workspace(tmp_path, step(REPLY, chunk=9, delay_ms=12)) as w:
        session = await w.start()
        await until(session, lambda state: any(isinstance(i, ToolCall) and i.output for i in state.items))
        await session.prompts.cancel("turn-p1")
        assert (await ended(session))[0] == "cancelled"
        assert session.state.proposals == [] and not any(isinstance(i, ToolCall) for i in session.state.items)
        await session.refine(RewriteRefineParams(session_id="r", prompt_id="p2", instruction="Do it."), w.client)
        await answer(session, w.client)
        assert (await ended(session, "p2"))[0] == "completed"
        assert w.file.read_text() == REWRITTEN


async def test_starting_twice_starts_once(tmp_path: Path) -> None:
    async with workspace(tmp_path, step(REPLY)) as w:
        first, second = await asyncio.gather(w.start(), w.start())
        assert first is second
        await answer(first, w.client)
        await ended(first)
        assert len(first.state.proposals) == 1


# Commit messages -----------------------------------------------------------------------------------------

DIFF = """diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1 @@
-a = 1
+a = 2  # sk-ant-REDACTED
"""
SECRET = """diff --git a/.env b/.env
--- a/.env
+++ b/.env
@@ -1 +1 @@
-KEY=1
+KEY=2
"""


async def message(w: Workspace, diff: str, *subjects: str) -> tuple[str, list[str]]:
    params = CommitMessageParams(root=str(w.root), diff=diff, subjects=list(subjects), model_id=w.model_id)
    written = await w.sessions.write_commit_message(params, w.client)
    return written.message, written.left_out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix a\n\nIt was 1.", "Fix a\n\nIt was 1."),
        ("```\nFix a\n```", "Fix a"),
        ('"Fix a"', "Fix a"),
        ("Fix a  \n", "Fix a"),
    ],
)
async def test_a_commit_message(tmp_path: Path, text: str, expected: str) -> None:
    async with workspace(tmp_path, step(text, aside=True, expect="fix: the last one")) as w:
        assert await message(w, DIFF, "fix: the last one") == (expected, [])


async def test_what_a_commit_message_costs_adds_to_the_session_it_is_asked_for_beside(tmp_path: Path) -> None:
    usage = {"input": 100, "output": 20}
    steps = [step(REPLY, usage=usage), step("Fix a", aside=True, usage=usage)]
    async with workspace(tmp_path, *steps) as w:
        session = await w.start()
        await until(session, lambda state: state.approvals)
        params = CommitMessageParams(root=str(w.root), diff=DIFF, model_id=w.model_id, session_id="r")
        written = await w.sessions.write_commit_message(params, w.client)
        assert session.state.usage is not None
        assert (written.spend.input_tokens, session.state.usage.input_tokens) == (100, 200)
        assert written.spend.summary.startswith("100 in · 20 out")


@pytest.mark.parametrize("unseen", ["KEY=2", "sk-ant-api03"])
async def test_secrets_stay_out_of_what_a_commit_message_is_made_from(tmp_path: Path, unseen: str) -> None:
    async with workspace(tmp_path, step("Heard.", aside=True, expect=unseen)) as w:
        written, left_out = await message(w, DIFF + SECRET)
        assert written.startswith("(scripted model: step 1 expected") and left_out == [".env"]


async def test_nothing_but_secrets_makes_no_commit_message(tmp_path: Path) -> None:
    async with workspace(tmp_path, step("Heard.", aside=True)) as w:
        with pytest.raises(AmanuError, match="may hold secrets"):
            await message(w, SECRET)


async def test_of_a_huge_diff_each_file_is_shown(tmp_path: Path) -> None:
    lines = "".join(f"+line {number}\n" for number in range(100_000))
    huge = f"diff --git a/big.py b/big.py\n--- a/big.py\n+++ b/big.py\n@@ -0,0 +1 @@\n{lines}"
    async with workspace(tmp_path, step("Heard.", aside=True, expect=DIFF.splitlines()[-1][:8])) as w:
        assert (await message(w, huge + DIFF)) == ("Heard.", [])
