"""A decision about all that is asked ends the question: nobody is asked anew in between."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from amanu_protocol.items import Proposal
from amanu_protocol.requests import (
    EditScope,
    HunkDecision,
    ProposalDecideParams,
    ProposalResolveParams,
    SeenProposal,
)
from support.agent_session import ask_agent, complete, session_with_agents
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step

DONE = step("Done.")
TOLD = ("proposalChanged", "approvalRequested", "approvalResolved")


@pytest.fixture(autouse=True)
def _no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.permissions.approvals.GUARD_SECONDS", 0.0)


def edit(old: str, new: str, path: str = "notes.txt") -> dict[str, Any]:
    return call("edit_file", path=path, edits=[{"old_string": f"{old}\n", "new_string": f"{new}\n"}])


LINES = (edit("line 2", "LINE 2"), edit("line 11", "LINE 11"))
BOTH = TWELVE.replace("line 2\n", "LINE 2\n").replace("line 11", "LINE 11")
TWO_HUNKS = call("write_file", path="notes.txt", content=BOTH)
MADE = {"a call": [TWO_HUNKS], "two calls of one file": [*LINES], "a sub-agent": [TWO_HUNKS]}


@asynccontextmanager
async def asked(tmp_path: Path, of: str) -> AsyncGenerator[ScriptedSession]:
    """A session that asks about two hunks of notes.txt."""
    calls = MADE[of]
    if of == "a sub-agent":
        doer = {"doer": [step("", *calls), step("", complete())]}
        opened = session_with_agents(tmp_path, doer, step("", ask_agent("doer")), DONE)
    else:
        opened = scripted_session(tmp_path, step("", *calls), DONE)
    async with opened as d:
        await d.prompt("go")
        await d.until(lambda state: len(state.approvals) == len(calls))
        d.client.messages.clear()
        yield d


def told(d: ScriptedSession) -> list[str]:
    """The events about changes and questions since."""
    return [each.event.kind for each in d.client.messages if each.event.kind in TOLD]


def proposal_of(d: ScriptedSession) -> Proposal:
    return d.session.state.proposals[-1]


async def resolve_hunks(d: ScriptedSession, *decisions: str) -> None:
    proposal = proposal_of(d)
    hunks = [hunk for file in proposal.files for hunk in file.hunks]
    decided = [HunkDecision(hunk_id=hunk.hunk_id, decision=word) for hunk, word in zip(hunks, decisions, strict=False)]
    params = ProposalResolveParams(
        session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, hunks=decided
    )
    assert (await d.session.edits.resolve(params)).status == "resolved"


async def decide(d: ScriptedSession, decision: Any, scope: EditScope | None = None) -> None:
    seen = [SeenProposal(proposal_id=proposal_of(d).proposal_id, version=proposal_of(d).version)]
    params = ProposalDecideParams(session_id="s", scope=scope or EditScope(), decision=decision, seen=seen)
    assert (await d.session.edits.decide(params)).status == "resolved"


async def answer(d: ScriptedSession, decision: str) -> None:
    assert await d.answer(decision) == "resolved"


ALL: dict[str, tuple[Callable[[ScriptedSession], Any], str]] = {
    "resolve accepts": (lambda d: resolve_hunks(d, "accept", "accept"), BOTH),
    "resolve rejects": (lambda d: resolve_hunks(d, "reject", "reject"), TWELVE),
    "resolve does either": (lambda d: resolve_hunks(d, "reject", "accept"), TWELVE.replace("line 11", "LINE 11")),
    "decide accepts": (lambda d: decide(d, "accept"), BOTH),
    "decide rejects": (lambda d: decide(d, "reject"), TWELVE),
    "the answer accepts": (lambda d: answer(d, "allow"), BOTH),
    "the answer rejects": (lambda d: answer(d, "reject"), TWELVE),
}
"""Request → how it is made, and what is in the file after it."""


@pytest.mark.parametrize("how", ALL)
@pytest.mark.parametrize("of", MADE)
async def test_a_decision_about_all_asks_nothing(tmp_path: Path, of: str, how: str) -> None:
    request, expected = ALL[how]
    async with asked(tmp_path, of) as d:
        await request(d)
        await d.ended()
        assert "approvalRequested" not in told(d)
        assert told(d).count("approvalResolved") == len(MADE[of])
        assert d.file.read_text() == expected


IN_PART: dict[str, Callable[[ScriptedSession], Any]] = {
    "resolve": lambda d: resolve_hunks(d, "accept"),
    "decide": lambda d: decide(d, "accept", EditScope(hunk_ids=[proposal_of(d).files[0].hunks[0].hunk_id])),
}


@pytest.mark.parametrize("how", IN_PART)
@pytest.mark.parametrize("of", ["a call", "a sub-agent"])
async def test_a_decision_about_a_part_asks_about_the_rest_once(tmp_path: Path, of: str, how: str) -> None:
    async with asked(tmp_path, of) as d:
        await IN_PART[how](d)
        assert told(d) == ["proposalChanged", "proposalChanged", "approvalRequested"]
        assert await d.answer("allow") == "resolved", "it is asked about as it is"
        await d.ended()
        assert told(d).count("approvalRequested") == 1
        assert d.file.read_text() == BOTH


async def test_a_part_of_what_calls_share_is_asked_about_by_each_once(tmp_path: Path) -> None:
    async with asked(tmp_path, "two calls of one file") as d:
        await resolve_hunks(d, "accept")
        assert told(d)[-2:] == ["approvalRequested", "approvalRequested"]
        assert told(d).count("approvalRequested") == 2
        await answer(d, "reject")
        await d.ended()
        assert d.file.read_text() == TWELVE.replace("line 2\n", "LINE 2\n")


ACCEPTING = ["resolve accepts", "decide accepts"]


@pytest.mark.parametrize("how", ACCEPTING)
@pytest.mark.parametrize("of", ["a call", "a sub-agent"])
async def test_what_is_left_in_conflict_in_one_file_asks_nothing(tmp_path: Path, of: str, how: str) -> None:
    async with asked(tmp_path, of) as d:
        d.file.write_text(TWELVE.replace("line 2\n", "mine\n"))
        await ALL[how][0](d)
        await d.ended()
        assert "approvalRequested" not in told(d)
        assert [hunk.state for hunk in proposal_of(d).files[0].hunks] == ["conflicted", "applied"]


@pytest.mark.parametrize("how", ACCEPTING)
async def test_a_conflict_that_keeps_the_rest_back_is_asked_about_once(tmp_path: Path, how: str) -> None:
    edits = [edit("line 2", "LINE 2"), call("write_file", path="new.txt", content="new\n")]
    async with scripted_session(tmp_path, step("", *edits), DONE, mode="draft") as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        d.client.messages.clear()
        (d.root / "new.txt").write_text("mine\n")
        await ALL[how][0](d)
        assert proposal_of(d).state == "pending"
        assert told(d).count("approvalRequested") == 1 and told(d)[-1] == "approvalRequested"
        (question,) = d.session.state.approvals
        assert any("In conflict" in line.text for line in question.lines)
        await d.answer("reject")
        await d.ended()


@pytest.mark.parametrize("how", ACCEPTING)
async def test_a_file_that_moved_just_before_asks_nothing(tmp_path: Path, how: str) -> None:
    async with asked(tmp_path, "a call") as d:
        d.file.write_text(f"mine\n{TWELVE}")
        await ALL[how][0](d)
        await d.ended()
        assert "approvalRequested" not in told(d)
        assert d.file.read_text() == f"mine\n{BOTH}"
