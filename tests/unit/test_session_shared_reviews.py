"""Calls of one step that edit the same file are one proposal, and one answer is about all that its question shows."""

from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals
from amanu_protocol.items import ToolCall
from amanu_protocol.requests import HunkDecision, ProposalResolveParams
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", 0.0)


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return call("edit_file", path=path, old_text=f"{old}\n", new_text=f"{new}\n")


TWO_OF_ONE = [edit("notes.txt", "line 2", "LINE 2"), edit("notes.txt", "line 11", "LINE 11")]
TWO_FILES = [edit("notes.txt", "line 2", "LINE 2"), edit("other.txt", "line 11", "LINE 11")]
ONE_WAITS = [*TWO_OF_ONE, edit("notes.txt", "LINE 2", "LINE TWO")]
STEPS = {"two of one file": TWO_OF_ONE, "two files": TWO_FILES, "one waits on another": ONE_WAITS}
BOTH = TWELVE.replace("line 2\n", "LINE 2\n").replace("line 11", "LINE 11")
WHOLE = {"two of one file": BOTH, "two files": BOTH.replace("LINE 11", "line 11")}
WHOLE["one waits on another"] = BOTH.replace("LINE 2\n", "LINE TWO\n")


def calls(d: ScriptedSession) -> list[ToolCall]:
    return [item for item in d.session.state.items if isinstance(item, ToolCall)]


async def decide_hunks(d: ScriptedSession, proposal_id: str | None) -> None:
    """Yes to the first hunk, no to the others."""
    proposal = next(each for each in d.session.state.proposals if each.proposal_id == proposal_id)
    hunks = [hunk for file in proposal.files for hunk in file.hunks]
    decisions = [HunkDecision(hunk_id=hunk.hunk_id, decision="reject", reason="no") for hunk in hunks]
    decisions[0] = HunkDecision(hunk_id=hunks[0].hunk_id, decision="accept")
    params = ProposalResolveParams(
        session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, hunks=decisions
    )
    assert (await d.session.edits.resolve(params)).status == "resolved"


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        ("allow", "allowed", None),
        ("reject", "rejected", None),
        ("reject", "rejected", "use tabs"),
        ("finish", "reviewed", None),
        ("hunk by hunk", "reviewed", None),
    ],
)
@pytest.mark.parametrize("of", STEPS)
async def test_one_answer_is_about_all_that_is_shown(
    tmp_path: Path, of: str, answer: str, outcome: str, reason: str | None
) -> None:
    """It is asked as often as there are proposals."""
    edits = STEPS[of]
    async with scripted_session(tmp_path, step("", *edits), step("Done.")) as d:
        (d.root / "other.txt").write_text(TWELVE)
        await d.prompt("go")
        open_now, answers = len(edits), 0
        while open_now:
            state = await d.until(lambda state, open_now=open_now: len(state.approvals) == open_now)
            if answer == "hunk by hunk":
                await decide_hunks(d, state.approvals[0].proposal_id)
            else:
                assert await d.answer(answer, reason=reason) == "resolved"
            answers += 1
            open_now = 1 if of == "two files" and answers == 1 else 0
        await d.ended()
        assert answers == (2 if of == "two files" else 1)
        assert [(each.decision and each.decision.outcome) for each in calls(d)] == [outcome] * len(edits)
        assert [(each.decision and each.decision.reason) for each in calls(d)] == [reason] * len(edits)
        if answer == "allow":
            assert d.file.read_text() == WHOLE[of]
        elif answer == "hunk by hunk":
            assert d.file.read_text() == WHOLE[of].replace("LINE 11", "line 11")
        else:
            assert d.file.read_text() == TWELVE
        if reason is not None:
            assert d.told().count(reason) == len(edits)


async def test_a_yes_is_for_no_call_that_needs_approval_for_more(tmp_path: Path) -> None:
    """Its question says what for: it is asked with that."""
    patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-line 11\n+LINE 11\n line 12\n"
    patch += "*** Add File: .vscode/settings.json\n+{}\n*** End Patch\n"
    edits = [edit("notes.txt", "line 2", "LINE 2"), call("apply_patch", patch=patch)]
    async with scripted_session(tmp_path, step("", *edits), step("Done.")) as d:
        await d.prompt("go")
        state = await d.until(lambda state: len(state.approvals) == 2)
        assert len({each.proposal_id for each in state.approvals}) == 1
        assert await d.answer("allow") == "resolved"
        await d.until(lambda state: calls(d)[0].state == "succeeded")
        assert not (d.root / ".vscode").exists()
        assert [each.tool_call_id for each in d.session.state.approvals] == [calls(d)[1].item_id]
        assert await d.answer("reject") == "resolved"
        await d.ended()
        assert not (d.root / ".vscode").exists()
