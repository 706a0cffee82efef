"""A scripted session in draft mode: what its model calls, and what the user does with the draft."""

from dataclasses import replace
from typing import Any, Literal

from amanu.permissions.offers import rules_of
from amanu_protocol.items import Proposal
from amanu_protocol.requests import (
    EditScope,
    ProposalDecideParams,
    SeenProposal,
)
from amanu_protocol.state import SessionState
from support.scripted_session import ScriptedSession, call, conversation, step

DONE = step("Done.")


def edit(old: str, new: str, path: str = "notes.txt") -> dict[str, Any]:
    return call("edit_file", path=path, edits=[{"old_string": old, "new_string": new}])


def write(path: str, content: str) -> dict[str, Any]:
    return call("write_file", path=path, content=content)


def results(d: ScriptedSession) -> list[str]:
    """What the model was told of each call."""
    return ["\n".join([result.text, *map(str, result.fields.values())]) for result in conversation(d.session).results()]


def open_drafts(d: ScriptedSession) -> list[Proposal]:
    return [proposal for proposal in d.session.state.proposals if proposal.draft and proposal.state == "pending"]


async def turn(d: ScriptedSession, prompt_id: str = "p1") -> None:
    """A whole turn; what it drafted is reviewed later."""
    await d.prompt("go", prompt_id)
    await finish(d, prompt_id)


async def finish(d: ScriptedSession, prompt_id: str = "p1") -> None:
    """Leave what the turn drafted for later."""
    while (state := await d.until(lambda state: state.approvals or is_over(state, prompt_id))).approvals:
        assert state.approvals[0].title.startswith("Apply the draft")
        await d.answer("finish")
    await d.over(prompt_id)


def is_over(state: SessionState, prompt_id: str) -> bool:
    return state.last_turn is not None and state.last_turn.turn_id == f"turn-{prompt_id}"


async def decide_all(d: ScriptedSession, decision: Literal["accept", "reject"]) -> None:
    seen = [
        SeenProposal(proposal_id=proposal.proposal_id, version=proposal.version)
        for proposal in d.session.state.proposals
    ]
    params = ProposalDecideParams(session_id="s", scope=EditScope(), decision=decision, seen=seen)
    assert (await d.session.edits.decide(params)).status == "resolved"


def deny(d: ScriptedSession, rule: str) -> None:
    for each in rules_of(rule, "session"):
        d.session.core.approvals.allow_in_session(replace(each, kind="deny"))


async def settled(d: ScriptedSession) -> None:
    await d.session._built_files.close()  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]


async def end_daemon(d: ScriptedSession) -> None:
    """The session is opened again by the next daemon."""
    await d.sessions.close("s")
    await d.reopen()
