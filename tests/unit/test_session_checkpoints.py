"""Decide and undo by file, turn and session; checkpoints: list, preview, restore files, the conversation with them."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import UserMessage
from support.scripted_session import TWELVE, TWO_HUNKS, ScriptedSession, call, scripted_session, step

TWO = TWELVE.replace("line 2\n", "line two\n")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def write(name: str, content: str) -> dict[str, Any]:
    return call("write_file", path=name, content=content)


STEPS = (
    step("First.", write("notes.txt", TWO), write("new.txt", "new\n")),
    step("Done one."),
    step("Second.", write("notes.txt", TWO_HUNKS), write("new.txt", "newer\n")),
    step("Done two."),
)


async def two_turns(d: ScriptedSession) -> None:
    await d.prompt("do one", "p1")
    await d.over("p1")
    await d.prompt("do two\nplease", "p2")
    await d.over("p2")


def scope(**named: Any) -> r.EditScope:
    return r.EditScope(**named)


async def undo(d: ScriptedSession, *, dry_run: bool = False, **named: Any) -> list[r.UndoneFile]:
    params = r.ProposalUndoParams(session_id="s", scope=scope(**named), dry_run=dry_run)
    return (await d.session.edits.undo(params)).files


async def decide(d: ScriptedSession, decision: Any, **named: Any) -> str:
    seen = [r.SeenProposal(proposal_id=each.proposal_id, version=each.version) for each in d.session.state.proposals]
    params = r.ProposalDecideParams(session_id="s", scope=scope(**named), decision=decision, seen=seen)
    return (await d.session.edits.decide(params)).status


def on_disk(d: ScriptedSession) -> dict[str, str]:
    return {each.name: each.read_text() for each in sorted(d.root.iterdir())}


BEFORE = {"notes.txt": TWELVE}
FIRST = {"new.txt": "new\n", "notes.txt": TWO}
SECOND = {"new.txt": "newer\n", "notes.txt": TWO_HUNKS}


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({}, BEFORE),
        ({"turn_id": "turn-p2"}, FIRST),
        ({"path": "new.txt"}, {"notes.txt": TWO_HUNKS}),
        ({"turn_id": "turn-p2", "path": "notes.txt"}, {"new.txt": "newer\n", "notes.txt": TWO}),
    ],
)
async def test_undo_by_scope(tmp_path: Path, named: dict[str, Any], expected: dict[str, str]) -> None:
    async with scripted_session(tmp_path, *STEPS, mode="acceptEdits") as d:
        await two_turns(d)
        assert on_disk(d) == SECOND
        if "path" in named:
            named = {**named, "path": str(d.root / named["path"])}
        foretold = await undo(d, dry_run=True, **named)
        assert on_disk(d) == SECOND, "a dry run changes nothing"
        done = await undo(d, **named)
        assert on_disk(d) == expected
        assert done == foretold and all(not each.skipped for each in done)
        assert {Path(each.path).name for each in done} == {key for key in SECOND if SECOND[key] != expected.get(key)}
        assert await decide(d, "redo") == "resolved"
        assert on_disk(d) == SECOND


async def test_what_a_rule_applied_is_kept_or_undone(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *STEPS, mode="acceptEdits") as d:
        await two_turns(d)
        assert not any(h.reviewed for p in d.session.state.proposals for f in p.files for h in f.hunks)
        assert await decide(d, "keep", turn_id="turn-p1") == "resolved"
        reviewed = [h.reviewed for p in d.session.state.proposals for f in p.files for h in f.hunks]
        assert reviewed == [True, True, False, False]
        stale = r.ProposalDecideParams(
            session_id="s",
            scope=scope(),
            decision="keep",
            seen=[r.SeenProposal(proposal_id=d.session.state.proposals[-1].proposal_id, version=1)],
        )
        with pytest.raises(AmanuError, match="changed since you saw it"):
            await d.session.edits.decide(stale)


async def test_one_diff(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *STEPS, mode="acceptEdits") as d:
        await two_turns(d)

        async def diff(**named: Any) -> r.ProposalDiffResult:
            return await d.session.edits.diff(r.ProposalDiffParams(session_id="s", scope=scope(**named)))

        whole = await diff()
        assert [(Path(each.path).name, each.change, each.added, each.removed) for each in whole.files] == [
            ("new.txt", "create", 1, 0),
            ("notes.txt", "edit", 2, 2),
        ]
        assert "+newer\n" in whole.diff and "+new\n" not in whole.diff and "-line 11\n+line eleven\n" in whole.diff
        second = await diff(turn_id="turn-p2")
        assert "-line 2\n" not in second.diff and "-new\n+newer\n" in second.diff
        d.file.write_text("typed\n" + TWO_HUNKS)
        assert "+typed" not in (await diff()).diff, "what the user typed is not ours"


async def test_checkpoints(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *STEPS, mode="acceptEdits") as d:
        await two_turns(d)
        found = (await d.session.checkpoints.list()).checkpoints
        assert [(each.turn_id, each.text, [file.applied for file in each.files]) for each in found] == [
            ("turn-p1", "do one", [1, 1]),
            ("turn-p2", "do two", [1, 1]),
        ]
        d.file.write_text("typed\n" + TWO_HUNKS)
        preview = await d.session.checkpoints.preview(r.CheckpointPreviewParams(session_id="s", turn_id="turn-p1"))
        assert preview.turns == 2
        assert {(Path(each.path).name, each.action) for each in preview.files} == {
            ("notes.txt", "edit"),
            ("new.txt", "delete"),
        }
        params = r.CheckpointRestoreParams(session_id="s", turn_id="turn-p1")
        result = await d.session.checkpoints.restore(params)
        assert on_disk(d) == {"notes.txt": "typed\n" + TWELVE} and result.text is None
        assert [each.undone for each in (await d.session.checkpoints.list()).checkpoints[0].files] == [1, 1]
        assert await decide(d, "redo") == "resolved"
        assert on_disk(d) == {"new.txt": "newer\n", "notes.txt": "typed\n" + TWO_HUNKS}


async def test_a_turn_that_only_talks_can_be_gone_back_to(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One."), step("Two.")) as d:
        for prompt_id in ("p1", "p2"):
            await d.prompt("talk", prompt_id)
            await d.over(prompt_id)
        found = (await d.session.checkpoints.list()).checkpoints
        told = [(each.turn_id, each.files, each.commands) for each in found]
        assert told == [("turn-p1", [], []), ("turn-p2", [], [])]
        params = r.CheckpointRestoreParams(session_id="s", turn_id="turn-p2", files=True, conversation=True)
        assert (await d.session.checkpoints.restore(params)).text == "talk"
        assert [each.turn_id for each in (await d.session.checkpoints.list()).checkpoints] == ["turn-p1"]


@pytest.mark.parametrize("reopened", [False, True])
async def test_the_conversation_goes_back_too(tmp_path: Path, reopened: bool) -> None:
    async with scripted_session(tmp_path, *STEPS, step("Another way."), mode="acceptEdits") as d:
        await two_turns(d)
        params = r.CheckpointRestoreParams(session_id="s", turn_id="turn-p2", conversation=True)
        result = await d.session.checkpoints.restore(params)
        assert result.text == "do two\nplease" and on_disk(d) == FIRST
        assert "do two" not in d.told() and "do one" in d.told()
        if reopened:
            await d.reopen()
            assert "do two" not in d.told() and "do one" in d.told()
        said = [item.text for item in d.session.state.items if isinstance(item, UserMessage)]
        assert said == ["do one"]
        assert [each.turn_id for each in (await d.session.checkpoints.list()).checkpoints] == ["turn-p1"]
        await d.prompt("do it otherwise", "p3")
        await d.over("p3")
        assert "do it otherwise" in d.told() and "since then the user" not in d.told().lower()


async def test_not_while_a_turn_runs(tmp_path: Path) -> None:
    async with scripted_session(
        tmp_path, step("Ask.", call("run_shell_command", command="touch -c it", network=True))
    ) as d:
        turn_id = await d.prompt("go")
        await d.until(lambda state: state.approvals)
        params = r.CheckpointRestoreParams(session_id="s", turn_id=turn_id or "")
        with pytest.raises(AmanuError) as caught:
            await d.session.checkpoints.restore(params)
        assert caught.value.kind == "turnInProgress"
        await d.session.prompts.cancel(turn_id or "")


async def test_edits_of_one_step_are_one_proposal_also_when_nobody_is_asked(tmp_path: Path) -> None:
    edits = [call("edit_file", path="notes.txt", old_text=f"line {n}\n", new_text=f"row {n}\n") for n in (2, 6, 10)]
    between = call("run_shell_command", command="touch -c it", network=True)
    async with scripted_session(
        tmp_path, step("Go.", *edits, between, edits[0]), step("Done."), mode="acceptEdits"
    ) as d:
        await d.prompt("go")
        await d.answer("allow")
        await d.over("p1")
        first, *_ = d.session.state.proposals
        assert [hunk.state for hunk in first.files[0].hunks] == ["applied"] * 3
        assert "row 2" in d.file.read_text() and "row 10" in d.file.read_text()


def restore(d: ScriptedSession, turn_id: str) -> Any:
    params = r.CheckpointRestoreParams(session_id="s", turn_id=turn_id, conversation=True)
    return d.session.checkpoints.restore(params)


@pytest.mark.parametrize("reopened", [False, True])
async def test_what_is_open_goes_with_the_conversation(tmp_path: Path, reopened: bool) -> None:
    steps = step("", write("notes.txt", TWO_HUNKS)), step("As you say.")
    async with scripted_session(tmp_path, *steps) as d:
        turn_id = await d.prompt("change it") or ""
        await d.until(lambda state: state.approvals)
        await d.decide("accept")
        await d.session.prompts.steer(
            r.PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text="leave the rest"), d.client
        )
        await d.over("p1")
        await restore(d, turn_id)
        hunks = d.session.state.proposals[0].files[0].hunks
        assert on_disk(d) == BEFORE and d.session.state.proposals[0].state == "settled"
        assert [each.state for each in hunks] == ["reverted", "rejected"]
        assert "was rewound" in (hunks[1].reason or "")
        if reopened:
            await d.reopen()
        assert await decide(d, "redo") == "resolved"
        assert on_disk(d) == {"notes.txt": TWO}
        turn_id = await d.prompt("do it otherwise", "p2") or ""
        await d.until(lambda state: state.approvals)  # it tries the same again
        assert "earlier edits" not in d.told(), "of edits the model never made"
        await d.session.prompts.cancel(turn_id)


async def undo_first(d: ScriptedSession) -> None:
    await undo(d, turn_id="turn-p1")


async def change_file(d: ScriptedSession) -> None:
    d.file.write_text("other\n")


async def end_job(d: ScriptedSession) -> None:
    await asyncio.to_thread((d.root / "fifo").write_text, "go\n")
    await d.until(lambda state: state.jobs[0].state == "ended")


EDIT = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
JOB = call("run_shell_command", command="echo up; read < fifo; exit 4", background=True, until="up")


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(
    ("first", "happens", "told"),
    [
        (EDIT, undo_first, "took this change back"),
        (JOB, end_job, "has ended. Exit code: 4"),
        (call("read_file", path="notes.txt"), change_file, "Changed since you read them"),
        (EDIT, change_file, "Changed since you read them"),
    ],
    ids=["a late decision", "the end of a job", "a file that was read", "a file that was edited"],
)
async def test_what_only_a_rewound_turn_was_told_is_told_again(
    tmp_path: Path,
    first: dict[str, Any],
    happens: Callable[[ScriptedSession], Awaitable[None]],
    told: str,
    reopened: bool,
) -> None:
    steps = [step("", first), *(step(text) for text in ("One.", "Two.", "Three.", "Four."))]
    async with scripted_session(tmp_path, *steps, mode="auto") as d:
        os.mkfifo(d.root / "fifo")
        for prompt_id, count in (("p1", 0), ("p2", 1)):
            await d.prompt("go on", prompt_id)
            await d.over(prompt_id)
            assert d.told().count(told) == count
            if prompt_id == "p1":
                await happens(d)
        params = r.CheckpointRestoreParams(session_id="s", turn_id="turn-p2", files=False, conversation=True)
        await d.session.checkpoints.restore(params)
        assert told not in d.told()
        if reopened:
            await d.reopen()
        for prompt_id in ("p3", "p4"):
            await d.prompt("go on", prompt_id)
            await d.over(prompt_id)
            assert d.told().count(told) == 1


async def test_a_job_of_a_rewound_turn_is_not_told(tmp_path: Path) -> None:
    """Its end was told in that turn, and what is left of the conversation does not know of it."""
    starts = call("run_shell_command", command="echo up; exit 4", background=True, until="up")
    waits = call("read_command", job="job-1", wait_s=5)
    async with scripted_session(tmp_path, step("", starts), step("", waits), step("One."), mode="auto") as d:
        turn_id = await d.prompt("go") or ""
        await d.over("p1")
        await restore(d, turn_id)
        assert [(job.state, job.told) for job in d.session.state.jobs] == [("ended", True)]


async def test_an_edit_that_is_open_again_is_told(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *STEPS[:2], step("I see."), step("And on."), mode="acceptEdits") as d:
        await d.prompt("do one", "p1")
        await d.over("p1")
        assert await decide(d, "keep", path=str(d.file)) == "resolved"
        await d.prompt("go on", "p2")
        await d.over("p2")
        assert "earlier edits" not in d.told(), "to keep an edit says nothing new"
        other = d.session.state.proposals[1]
        await d.session.edits.set_review(
            r.ProposalSetReviewParams(
                session_id="s", proposal_id=other.proposal_id, version=other.version, review="before"
            )
        )
        assert on_disk(d) == {"notes.txt": TWO}
        await d.prompt("go on", "p3")
        await d.over("p3")
        assert d.told().count("The user has not decided") == 1


async def test_a_prompt_waits_for_a_restore_or_forbids_it(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *STEPS, step("Another way."), mode="acceptEdits") as d:
        await two_turns(d)
        going_back = asyncio.create_task(restore(d, "turn-p2"))
        await asyncio.sleep(0)
        await d.prompt("go on", "p3")
        restored: Any = (await asyncio.gather(going_back, return_exceptions=True))[0]
        await d.over("p3")
        if isinstance(restored, AmanuError):
            assert restored.kind == "turnInProgress" and on_disk(d) == SECOND
        else:
            assert restored.text == "do two\nplease" and len(restored.files) == 2
            assert "do two" not in d.told() and "go on" in d.told()
