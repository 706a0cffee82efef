"""The preview of what waits, the baseline of a file, and its edited copy."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.session.requests import SESSION_REQUESTS
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Proposal
from support.draft_session import DONE, decide_all, edit, turn, write
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step
from support.session_client import Client, until

ALL_KINDS = (
    step(
        "",
        edit("line 3\n", "3\nthree\n"),
        edit("line 9\n", ""),
        write("new.txt", "one\ntwo\n"),
        call("move_file", path="old.txt", new_path="sub/new name.txt"),
        call("delete_file", path="gone.txt"),
    ),
    DONE,
)
PROPOSED = TWELVE.replace("line 3\n", "3\nthree\n").replace("line 9\n", "")
DIFF = """\
--- a/notes.txt
+++ b/notes.txt
@@ -1,12 +1,12 @@
 line 1
 line 2
-line 3
+3
+three
 line 4
 line 5
 line 6
 line 7
 line 8
-line 9
 line 10
 line 11
 line 12
"""


async def preview(d: ScriptedSession, *, texts: bool = False, **scope: Any) -> list[r.PreviewedFile]:
    params = r.ProposalPreviewParams(session_id="s", scope=r.EditScope(**scope), texts=texts)
    return (await d.session.previews.preview(params)).files


def others(d: ScriptedSession) -> None:
    (d.root / "old.txt").write_text("moved\n")
    (d.root / "gone.txt").write_text("a\nb\n")


def places(files: Sequence[r.PreviewedFile]) -> list[list[tuple[int, int]]]:
    return [[(each.hunk.lines.start, each.hunk.lines.end) for each in file.hunks] for file in files]


async def test_each_kind_of_change(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *ALL_KINDS, mode="draft") as d:
        others(d)
        await turn(d)
        files = await preview(d, texts=True)
        assert [(each.title, each.change, each.added, each.removed, each.base, each.text) for each in files] == [
            ("notes.txt", "edit", 2, 2, TWELVE, PROPOSED),
            ("new.txt (new file)", "create", 2, 0, None, "one\ntwo\n"),
            ("old.txt → new name.txt", "rename", 0, 0, "moved\n", "moved\n"),
            ("gone.txt (deleted)", "delete", 0, 2, "a\nb\n", ""),
        ]
        assert [each.diff for each in files] == [
            DIFF,
            "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n",
            "rename from old.txt\nrename to sub/new name.txt\n",
            "--- a/gone.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
        ]
        assert [(each.context_before, each.context_after) for each in files[0].hunks] == [
            (["line 1", "line 2"], ["line 4", "line 5", "line 6"]),
            (["line 6", "line 7", "line 8"], ["line 10", "line 11", "line 12"]),
        ]
        assert [Path(each.path).name for each in files] == ["notes.txt", "new.txt", "old.txt", "gone.txt"]
        assert all(each.version == proposal(d).version for each in files)
        assert [each.text for each in await preview(d)] == [None] * 4
        await decide_all(d, "accept")
        assert await preview(d) == []


def proposal(d: ScriptedSession) -> Proposal:
    return d.session.state.proposals[-1]


async def test_it_is_as_of_now(tmp_path: Path) -> None:
    """The preview has what was typed a moment ago, though nothing has followed that yet."""
    async with scripted_session(tmp_path, *ALL_KINDS, mode="draft") as d:
        others(d)
        await turn(d)
        d.file.write_text("mine\n" + TWELVE.replace("line 9\n", "NINE\n"))
        (first, *_) = files = await preview(d, texts=True)
        assert places(files)[0] == [(3, 4), (9, 10)]
        assert [each.hunk.state for each in first.hunks] == ["pending", "conflicted"]
        assert first.hunks[0].context_before == ["mine", "line 1", "line 2"]
        assert (first.base, first.text) == (d.file.read_text(), "mine\n" + PROPOSED)
        assert "-NINE\n" in first.diff and first.version == proposal(d).version
        d.file.unlink()
        assert (await preview(d))[0].title == "new.txt (new file)", "who deletes the file has said no to its changes"


@pytest.mark.parametrize(
    ("scope", "titles"),
    [
        ({}, ["notes.txt", "new.txt (new file)", "old.txt → new name.txt", "gone.txt (deleted)"]),
        ({"path": "notes.txt"}, ["notes.txt"]),
        ({"path": "sub/new name.txt"}, ["old.txt → new name.txt"]),
        ({"turn_id": "turn-p2"}, []),
        ({"hunk_ids": []}, []),
    ],
)
async def test_a_scope(tmp_path: Path, scope: dict[str, Any], titles: list[str]) -> None:
    async with scripted_session(tmp_path, *ALL_KINDS, mode="draft") as d:
        others(d)
        await turn(d)
        if "path" in scope:
            scope = {"path": str(d.root / scope["path"])}
        assert [each.title for each in await preview(d, **scope)] == titles
        last = proposal(d).files[0].hunks[1].hunk_id
        (only,) = await preview(d, hunk_ids=[last])
        assert [each.hunk.hunk_id for each in only.hunks] == [last]


@pytest.mark.parametrize("method", ["preview", "diff", "undo", "decide"])
async def test_a_proposal_that_is_not_there(tmp_path: Path, method: str) -> None:
    more = {"decision": "accept", "seen": [{"proposalId": "p-0", "version": 1}]} if method == "decide" else {}
    request = SESSION_REQUESTS[f"amanu/proposal/{method}"]
    params = request.params.model_validate({"sessionId": "s", "scope": {"proposalId": "p-0"}, **more})
    async with scripted_session(tmp_path, DONE) as d:
        with pytest.raises(AmanuError, match="no proposal p-0") as failed:
            await request.call(d.session, params, Client(os.environ))
    assert failed.value.kind == "proposalNotFound"


async def test_what_a_rule_applied_waits_and_is_no_difference(tmp_path: Path) -> None:
    """It stands where later edits, by the model or the user, have moved it to."""
    steps = (step("", edit("line 9\n", "nine\n")), step("", edit("line 3\n", "3\nthree\n")), DONE)
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        await d.prompt("go")
        await d.over("p1")
        d.file.write_text("typed\n" + d.file.read_text())
        for _ in range(2):  # in a session that was opened again nothing has followed them
            files = await preview(d, texts=True)
            assert places(files) == [[(10, 11)], [(3, 5)]]
            assert [(each.diff, each.text) for each in files] == [("", d.file.read_text())] * 2
            assert [each.hunk.waits for file in files for each in file.hunks] == ["review", "review"]
            assert not any(each.hunk.edited_by_user for file in files for each in file.hunks)
            await d.reopen()


async def test_another_process_has_it_open(tmp_path: Path) -> None:
    """Then it is as it was last seen."""
    async with scripted_session(tmp_path, *ALL_KINDS, mode="draft") as d:
        others(d)
        await turn(d)
        d.session.state.read_only = True
        d.file.write_text("mine\n" + TWELVE)
        (first, *_) = await preview(d)
        assert (places([first]), first.diff) == ([[(2, 3), (8, 9)]], DIFF)
        assert first.version == proposal(d).version
        d.session.state.read_only = False


async def test_a_big_file(tmp_path: Path) -> None:
    lines = "".join(f"line {n}\n" for n in range(1, 9001))
    async with scripted_session(tmp_path, step("", edit("line 5000\n", "5000\n")), DONE, mode="draft") as d:
        d.file.write_text(lines)
        await turn(d)
        d.file.write_text("mine\n" + lines)
        (only,) = await preview(d, texts=True)
        assert (places([only]), only.text) == ([[(5000, 5001)]], "mine\n" + lines.replace("line 5000\n", "5000\n"))
        assert only.diff.splitlines()[2] == "@@ -4998,7 +4998,7 @@"


# The baseline -------------------------------------------------------------------------------------------


async def diff(d: ScriptedSession, **more: Any) -> r.ProposalDiffResult:
    return await d.session.edits.diff(r.ProposalDiffParams(session_id="s", scope=r.EditScope(), **more))


async def test_the_text_without_what_is_not_reviewed(tmp_path: Path) -> None:
    steps = (step("", edit("line 9\n", "nine\n"), edit("line 3\n", "three\n"), write("new.txt", "one\n")), DONE)
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        await d.prompt("go")
        await d.over("p1")
        known = d.session.state.proposals
        kept = [hunk.hunk_id for each in known for hunk in each.files[0].hunks if hunk.new_text == "nine\n"]
        seen = [r.SeenProposal(proposal_id=each.proposal_id, version=each.version) for each in known]
        scope = r.EditScope(hunk_ids=kept)
        await d.session.edits.decide(r.ProposalDecideParams(session_id="s", scope=scope, decision="keep", seen=seen))
        d.file.write_text("typed\n" + d.file.read_text())
        found = {
            (name, unreviewed): (change.before, change.after)
            for unreviewed in (True, False)
            for change in (await diff(d, unreviewed=unreviewed, texts=True)).files
            for name in [Path(change.path).name]
        }
        now = d.file.read_text()
        assert found == {
            ("notes.txt", True): (now.replace("three", "line 3"), now),
            ("notes.txt", False): ("typed\n" + TWELVE, now),
            ("new.txt", True): (None, "one\n"),
            ("new.txt", False): (None, "one\n"),
        }
        assert [(each.before, each.after) for each in (await diff(d)).files] == [(None, None)] * 2
        assert "nine" not in (await diff(d, unreviewed=True)).diff


async def test_the_text_without_what_any_session_applied(tmp_path: Path) -> None:
    steps = (step("", edit("line 9\n", "nine\n"), write("new.txt", "one\n")), DONE)
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:

        async def baseline(name: str = "notes.txt", **more: Any) -> tuple[str, str | None]:
            params = r.ProposalBaselineParams(path=str(d.root / name), **more)
            found = await d.sessions.baseline(params)
            return Path(found.path).name, found.text

        async def nothing(**more: Any) -> bool:
            with pytest.raises(AmanuError) as failed:
                await baseline(**more)
            return failed.value.kind == "proposalNotFound"

        assert await nothing() and await nothing(name="../outside.txt")
        await d.prompt("go")
        await d.over("p1")
        script, client = tmp_path / "other.json", Client(os.environ, "two")
        script.write_text(json.dumps([step("", edit("line 3\n", "three\n"), edit("nine\n", "9\n")), DONE]))
        made = {"roots": [str(d.root)], "mode": "acceptEdits", "model_id": f"scripted:{script}"}
        await d.sessions.create(r.SessionCreateParams.model_validate({"session_id": "t", **made}), client)
        other = await d.sessions.get("t")
        await other.prompts.send(r.PromptSendParams(session_id="t", prompt_id="q1", text="go"), client)
        await until(other, lambda state: state.last_turn)
        d.file.write_text("typed\n" + d.file.read_text())
        now = d.file.read_text()
        assert now == "typed\n" + TWELVE.replace("line 3\n", "three\n").replace("line 9\n", "9\n")
        for unreviewed in (True, False):
            assert await baseline(unreviewed=unreviewed) == ("notes.txt", "typed\n" + TWELVE)
            others = now.replace("three", "line 3").replace("9\n", "nine\n")
            assert await baseline(session_id="t", unreviewed=unreviewed) == ("notes.txt", others)
            assert await baseline("new.txt", unreviewed=unreviewed) == ("new.txt", None)
        assert await nothing(name="new.txt", session_id="t")
        seen = [r.SeenProposal(proposal_id=each.proposal_id, version=each.version) for each in other.state.proposals]
        kept = r.ProposalDecideParams(session_id="t", scope=r.EditScope(), decision="keep", seen=seen)
        await other.edits.decide(kept)
        assert await nothing(session_id="t", unreviewed=True)
        assert await baseline() == ("notes.txt", "typed\n" + TWELVE)
        assert d.file.read_text() == now


async def test_the_text_of_a_renamed_file_is_where_it_was(tmp_path: Path) -> None:
    move = call("move_file", path="notes.txt", new_path="moved.txt")
    async with scripted_session(tmp_path, step("", move), DONE, mode="acceptEdits") as d:
        await d.prompt("go")
        await d.over("p1")
        found = await d.sessions.baseline(r.ProposalBaselineParams(path=str(d.root / "moved.txt")))
        assert (found.path, found.text) == (str(d.file), TWELVE)


# An edited copy -----------------------------------------------------------------------------------------


async def revise(d: ScriptedSession, text: str, path: str = "notes.txt", **more: Any) -> r.ProposalReviseResult:
    given: dict[str, Any] = {"proposal_id": proposal(d).proposal_id, "version": proposal(d).version, **more}
    params = r.ProposalReviseParams(session_id="s", new_text=text, path=str(d.root / path), **given)
    return await d.session.edits.revise(params)


async def test_an_edited_copy_of_an_earlier_text(tmp_path: Path) -> None:
    """The file was typed in since: the edits go where their changes are now, or nowhere."""
    async with scripted_session(tmp_path, *ALL_KINDS, mode="draft") as d:
        others(d)
        await turn(d)
        d.file.write_text(f"mine\n{TWELVE}")
        (now, *_) = await preview(d, texts=True)
        assert now.text == f"mine\n{PROPOSED}"
        done = await revise(d, PROPOSED.replace("three\n", "drei\n"), seen_text=PROPOSED)
        assert not done.outside
        (now, *_) = await preview(d, texts=True)
        assert now.text == f"mine\n{PROPOSED.replace('three', 'drei')}"
        with pytest.raises(AmanuError, match="What you edited has changed since you saw it") as refused:
            await revise(d, PROPOSED.replace("three\n", "trois\n"), seen_text=PROPOSED)
        assert refused.value.kind == "proposalConflict"


async def test_an_edited_copy(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *ALL_KINDS, mode="draft") as d:
        others(d)
        await turn(d)
        version = proposal(d).version
        same = await revise(d, PROPOSED.replace("\n", "\r\n"))
        assert (same.proposal.version, same.outside, proposal(d).version) == (version, False, version)
        only_outside = await revise(d, PROPOSED.replace("line 6", "six"))
        assert (only_outside.outside, proposal(d).version) == (True, version)
        mine = PROPOSED.replace("three\n", "drei\n").replace("line 8\n", "line 8\nneun\n")
        done = await revise(d, mine.replace("line 6", "six"))
        assert done.outside and done.proposal.version == proposal(d).version == version + 1
        assert [hunk.new_text for hunk in proposal(d).files[0].hunks] == ["3\ndrei\n", "neun\n"]
        assert all(hunk.edited_by_user for hunk in proposal(d).files[0].hunks)
        (first, *_) = await preview(d, texts=True)
        assert first.text == mine and "+neun\n" in first.diff
        assert not (await revise(d, "uno\n", "new.txt")).outside
        await decide_all(d, "accept")
        assert (d.file.read_text(), (d.root / "new.txt").read_text()) == (mine, "uno\n")


async def test_a_copy_that_cannot_be_taken(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *ALL_KINDS, mode="draft") as d:
        others(d)
        await turn(d)
        for path, text, version, kind in [
            ("other.txt", "", 0, "invalidParams"),
            ("gone.txt", "still here\n", 0, "invalidParams"),
            ("notes.txt", "", 1, "proposalConflict"),
        ]:
            with pytest.raises(AmanuError) as failed:
                await revise(d, text, path, version=proposal(d).version + version)
            assert failed.value.kind == kind
        with pytest.raises(AmanuError, match="not open any more"):
            named = proposal(d).proposal_id, proposal(d).version
            nothing = r.ProposalReviseParams(session_id="s", proposal_id=named[0], version=named[1], new_text="")
            await d.session.edits.revise(nothing)
