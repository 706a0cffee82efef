"""What the list of sessions tells of one that nobody looks at: whether it waits, for what, what is to be reviewed."""

from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import (
    EditScope,
    ProposalDecideParams,
    ProposalUndoParams,
    SeenProposal,
    SessionAttachParams,
    SessionListParams,
    SessionSummary,
)
from support.scripted_session import TWO_HUNKS, ScriptedSession, call, scripted_session, step


@pytest.fixture(autouse=True)
def quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def listed(d: ScriptedSession) -> SessionSummary:
    (summary,) = (await d.sessions.summaries.list(SessionListParams())).sessions
    return summary


async def test_it_names_the_questions_that_wait(tmp_path: Path) -> None:
    commands = [call("run_shell_command", command=f"touch {name}", network=True) for name in ("a", "b")]
    async with scripted_session(tmp_path, step("", *commands), step("Done.")) as d:
        await d.prompt("go")
        state = await d.until(lambda state: len(state.approvals) == 2)
        summary = await listed(d)
        assert summary.status == "waiting"
        assert [each.tool_call_id for each in summary.questions] == [each.tool_call_id for each in state.approvals]
        assert [each.title for each in summary.questions] == [each.title for each in state.approvals]
        d.client.changed.clear()
        await d.answer("reject")
        assert d.client.changed == ["s"]
        assert len((await listed(d)).questions) == 1
        await d.answer("reject")
        await d.ended()
        summary = await listed(d)
        assert (summary.status, summary.questions) == ("idle", [])


async def test_it_counts_the_changes_to_review(tmp_path: Path) -> None:
    edit = call("write_file", path="notes.txt", content=TWO_HUNKS)
    async with scripted_session(tmp_path, step("", edit), step("Done."), mode="acceptEdits") as d:
        await d.prompt("go")
        await d.ended()
        assert (await listed(d)).changes == 2
        d.client.changed.clear()
        (proposal,) = d.session.state.proposals
        seen = [SeenProposal(proposal_id=proposal.proposal_id, version=proposal.version)]
        keep = ProposalDecideParams(session_id="s", scope=EditScope(), decision="keep", seen=seen)
        await d.session.edits.decide(keep)
        assert d.client.changed == ["s"]
        assert (await listed(d)).changes == 0


async def test_it_tells_what_came_of_a_session(tmp_path: Path) -> None:
    edits = [
        call("write_file", path="notes.txt", content=TWO_HUNKS),
        call("write_file", path="new.txt", content="1\n2\n"),
    ]
    async with scripted_session(tmp_path, step("", *edits), step("Done."), mode="acceptEdits") as d:
        await d.prompt("go")
        await d.ended()
        summary = await listed(d)
        assert (summary.files, summary.added, summary.removed) == (2, 4, 2)
        assert d.session.state.usage is not None
        assert summary.cost == d.session.state.usage.cost
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope()))
        summary = await listed(d)
        assert (summary.files, summary.added, summary.removed) == (0, 0, 0)


async def test_an_archived_one_is_left_out_until_it_is_opened_again(tmp_path: Path) -> None:
    async def ids(*, archived: bool) -> list[str]:
        listed = await d.sessions.summaries.list(SessionListParams(archived=archived))
        return [each.session_id for each in listed.sessions]

    async with scripted_session(tmp_path, step("Done.")) as d:
        await d.prompt("go")
        await d.ended()
        for session_id, kind in (("s", "turnInProgress"), ("none", "sessionNotFound")):
            with pytest.raises(AmanuError) as caught:
                await d.sessions.archive(session_id, True)
            assert caught.value.kind == kind
        d.session.detach(d.client)
        at = (await listed(d)).updated_at
        for archived, left in ((True, []), (False, ["s"]), (True, [])):
            await d.sessions.archive("s", archived)
            assert (await ids(archived=False), await ids(archived=True)) == (left, ["s"])
        (summary,) = (await d.sessions.summaries.list(SessionListParams(archived=True))).sessions
        assert (summary.archived, summary.status) == (True, "idle") and summary.updated_at >= at
        await d.sessions.attach(SessionAttachParams(session_id="s"), d.client)
        await d.sessions.close("s")
        assert await ids(archived=False) == ["s"]
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state
