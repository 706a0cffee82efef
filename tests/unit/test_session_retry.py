"""`amanu/proposal/retry`: the model makes changes again on the files as they are now, and nothing else is answered."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.proposals.report import RETRY
from amanu.text.redaction import MASK
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import HunkState, UserMessage
from amanu_protocol.requests import ProposalRetryParams, ProposalRetryResult
from support.agent_session import ask_agent, complete, session_with_agents
from support.draft_session import DONE, edit, end_daemon
from support.scripted_session import TWELVE, TWO_HUNKS, ScriptedSession, call, scripted_session, step

MINE = TWELVE.replace("line 2\n", "my line\n")
BOTH = step("", call("write_file", path="notes.txt", content=TWO_HUNKS))
ANEW = step("", edit("my line\n", "my line two\n"))
KEY = "ghp_" + "0123456789abcdefghijABCDEFGHIJ"
SENTENCE = "Redo the change to notes.txt on the present text."


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


def states(d: ScriptedSession, at: int = 0) -> list[HunkState]:
    return [hunk.state for file in d.session.state.proposals[at].files for hunk in file.hunks]


def said(d: ScriptedSession) -> list[str]:
    return [item.text for item in d.session.state.items if isinstance(item, UserMessage)]


async def conflict(d: ScriptedSession) -> None:
    """The user changes a line of the first hunk."""
    d.file.write_text(MINE)
    await d.session.core.proposals.catch_up(d.session.state.proposals[0].proposal_id)
    assert states(d)[0] == "conflicted"


async def retry(d: ScriptedSession, *hunks: int, version: int = 0, **more: Any) -> ProposalRetryResult:
    proposal = d.session.state.proposals[0]
    ids = [hunk.hunk_id for file in proposal.files for hunk in file.hunks]
    params = ProposalRetryParams(
        session_id="s",
        proposal_id=proposal.proposal_id,
        version=version or proposal.version,
        hunk_ids=[ids[at] for at in hunks] if hunks else None,
        **more,
    )
    return await d.session.retry(params, d.client)


async def left_open(d: ScriptedSession) -> None:
    """The turn is over, and its edit still to be decided."""
    await d.prompt("go")
    await d.until(lambda state: state.approvals)
    await d.answer("finish")
    await d.over("p1")


def asks_anew(text: str) -> bool:
    """The model has both sides of the change, as data."""
    blocks = ("<lines_to_replace>\\nline 2\\n</lines_to_replace>", "<new_lines>\\nline two\\n</new_lines>")
    return all(block in text for block in blocks) and "notes.txt: 0 of 2 changes applied." in text


@pytest.mark.parametrize(
    ("named", "left"),
    [((), ["rejected", "pending"]), ((0,), ["rejected", "pending"]), ((0, 1), ["rejected", "rejected"]),
     ((1,), ["conflicted", "rejected"])],
)  # fmt: skip
async def test_after_the_turn_a_prompt_asks_for_it_anew(
    tmp_path: Path, named: tuple[int, ...], left: list[HunkState]
) -> None:
    async with scripted_session(tmp_path, BOTH, DONE, ANEW, DONE) as d:
        await left_open(d)
        await conflict(d)
        result = await retry(d, *named)
        assert (result.status, result.turn_id is None, states(d)) == ("started", False, left)
        assert [hunk.reason for hunk in result.proposal.files[0].hunks if hunk.state == "rejected"] == [RETRY] * (
            left.count("rejected")
        )
        changes = "changes" if len(named) == 2 else "change"
        assert said(d)[-1] == SENTENCE.replace("change", changes)
        await d.until(lambda state: state.approvals)
        assert asks_anew(d.told()) == (named != (1,)) and d.told().count("make this change again") == max(1, len(named))
        await d.answer("allow")
        await d.until(lambda state: state.turn is None)
        assert d.file.read_text() == MINE.replace("my line\n", "my line two\n")


@pytest.mark.parametrize("waits", [False, True])
async def test_a_secret_in_the_lines_is_hidden_from_the_model(tmp_path: Path, waits: bool) -> None:
    """`waits`: a call waits for the change, and its result asks for it anew."""
    async with scripted_session(tmp_path, BOTH, *([] if waits else [DONE]), ANEW, DONE) as d:
        d.file.write_text(TWELVE.replace("line 2\n", f"line 2 {KEY}\n"))
        if waits:
            await d.prompt("go")
            await d.until(lambda state: state.approvals)
        else:
            await left_open(d)
        await conflict(d)
        await retry(d, 0, 1)
        await d.until(lambda state: len(state.proposals) == 2 and state.approvals)
        assert f"<lines_to_replace>\\nline 2 {MASK}\\n" in d.told() and KEY not in d.told()
        await d.answer("allow")
        await d.until(lambda state: state.turn is None)


async def test_a_call_that_waits_for_these_changes_asks_for_them_in_its_result(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, BOTH, ANEW, DONE) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await conflict(d)
        result = await retry(d, 0, 1)
        assert (result.status, result.turn_id, states(d)) == ("told", "turn-p1", ["rejected", "rejected"])
        await d.until(lambda state: len(state.proposals) == 2 and state.approvals)
        assert asks_anew(d.told()) and said(d) == ["go"]
        await d.answer("allow")
        await d.over("p1")
        assert d.file.read_text() == MINE.replace("my line\n", "my line two\n")


async def test_the_rest_of_a_review_goes_on(tmp_path: Path) -> None:
    """A call waits for two hunks: one is to be made again, the other is still asked about."""
    async with scripted_session(tmp_path, BOTH, ANEW, DONE) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await conflict(d)
        assert (await retry(d)).status == "told"
        assert d.session.state.approvals and states(d) == ["rejected", "pending"]
        await d.decide("", "accept")
        await d.until(lambda state: len(state.proposals) == 2 and state.approvals)
        assert "<new_lines>\\nline two\\n</new_lines>" in d.told() and said(d) == ["go"]
        await d.answer("allow")
        await d.over("p1")


async def test_a_running_turn_hears_of_it_and_nothing_else_is_answered(tmp_path: Path) -> None:
    other = step("", call("write_file", path="other.txt", content="x\n"))
    async with scripted_session(tmp_path, BOTH, DONE, other, ANEW, DONE) as d:
        await left_open(d)
        await d.prompt("and another", "p2")
        await d.until(lambda state: state.approvals)
        await conflict(d)
        result = await retry(d)
        assert (result.status, result.turn_id) == ("told", "turn-p2")
        assert [each.title for each in d.session.state.approvals], "the other edit is still asked about"
        await d.answer("allow")
        await d.until(lambda state: len(state.proposals) == 3 and state.approvals)
        assert said(d)[-1] == SENTENCE and asks_anew(d.told())
        await d.answer("allow")
        await d.over("p2")


async def test_a_draft(tmp_path: Path) -> None:
    """The draft's own question does not wait for what is to be made again."""
    async with scripted_session(tmp_path, BOTH, DONE, ANEW, DONE, mode="draft") as d:
        await left_open(d)
        await conflict(d)
        assert (await retry(d)).status == "started"
        await d.until(lambda state: state.approvals)
        assert "<new_lines>\\nline two\\n</new_lines>" in d.told() and said(d)[-1] == SENTENCE
        await d.answer("allow")
        await d.until(lambda state: state.turn is None)
        assert d.file.read_text() == TWO_HUNKS.replace("line two\n", "my line two\n")


async def test_a_sub_agent_s_change(tmp_path: Path) -> None:
    """Its agent is gone: the session's own model makes it again."""
    agents = {"fixer": [BOTH, step("", complete())]}
    async with session_with_agents(tmp_path, agents, step("", ask_agent("fixer")), DONE, ANEW, DONE) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals and state.proposals)
        await d.answer("finish")
        await d.over("p1")
        await conflict(d)
        assert (await retry(d)).status == "started"
        await d.until(lambda state: state.approvals)
        assert asks_anew(d.told()) and said(d)[-1] == SENTENCE
        await d.answer("allow")
        await d.until(lambda state: state.turn is None)


async def test_after_a_restart(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, BOTH, DONE, ANEW, DONE) as d:
        await left_open(d)
        await conflict(d)
        await end_daemon(d)
        assert (await retry(d)).status == "started"
        await d.until(lambda state: state.approvals)
        assert asks_anew(d.told())
        await d.answer("allow")
        await d.until(lambda state: state.turn is None)


async def test_if_no_turn_can_start_the_next_prompt_brings_it_along(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, BOTH, DONE, ANEW, DONE) as d:
        await left_open(d)
        await conflict(d)
        model_id, d.session.state.model_id = d.session.state.model_id, "scripted:/nowhere.json"
        with pytest.raises(AmanuError):
            await retry(d)
        assert states(d) == ["rejected", "pending"]
        d.session.state.model_id = model_id
        await d.prompt("go on", "p2")
        await d.until(lambda state: state.approvals)
        assert asks_anew(d.told())
        await d.answer("allow")
        await d.over("p2")


def reject_all(d: ScriptedSession) -> object:
    return d.decide("reject no", "reject no")


@pytest.mark.parametrize(
    ("before", "arguments"),
    [
        (None, {"version": 99}),
        (None, {}),
        (None, {"row_ids": ["nothing"]}),
        (None, {"row_ids": []}),
        (reject_all, {"row_ids": []}),
    ],
)
async def test_nothing_to_make_again_is_a_conflict_and_changes_nothing(
    tmp_path: Path, before: Callable[[ScriptedSession], Any] | None, arguments: dict[str, Any]
) -> None:
    async with scripted_session(tmp_path, BOTH, DONE) as d:
        await left_open(d)
        if before is not None:
            await before(d)
        kept = states(d)
        with pytest.raises(AmanuError) as caught:
            await retry(d, **arguments)
        assert (caught.value.kind, states(d), d.session.state.turn) == ("proposalConflict", kept, None)
