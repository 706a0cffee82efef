"""Draft mode: nothing asks, nothing reaches the workspace, and all of it is reviewed when the user likes."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from amanu.checks import editor_feedback
from amanu.checks.applied_checks import AppliedChecks
from amanu.core.tool import CallContext
from amanu.permissions import approvals as approval
from amanu.permissions.offers import rules_of
from amanu.proposals import tracking
from amanu.proposals.model import FileEdit
from amanu.tools.shell import session_layer
from amanu_protocol.items import Mode, Proposal, ToolCall
from amanu_protocol.requests import (
    CheckpointRestoreParams,
    EditScope,
    HunkDecision,
    PromptSendParams,
    ProposalDecideParams,
    ProposalResolveParams,
    ProposalUndoParams,
    SeenProposal,
    SessionCreateParams,
)
from amanu_protocol.state import SessionState
from support import checked_edits
from support.agent_session import ask_agent, complete, nested, session_with_agents
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, call, conversation, scripted_session, step
from support.session_client import Client, until
from unit.test_session_layer import shell, tree
from unit.test_session_typing import Editor

pytestmark = pytest.mark.layers

DONE = step("Done.")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


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
    state = await d.until(lambda state: state.approvals or _is_over(state, prompt_id))
    if state.approvals:
        assert state.approvals[0].title.startswith("Apply the draft")
        await d.answer("finish")
    await d.over(prompt_id)


def _is_over(state: SessionState, prompt_id: str) -> bool:
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
    await d.session._draft.close()  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]


LATER: Sequence[tuple[str, dict[str, Any], str]] = [
    ("read_file", call("read_file", path="notes.txt"), "line two"),
    ("read_file of a new file", call("read_file", path="new.txt"), "fresh"),
    ("grep", call("grep", pattern="two|fresh"), "notes.txt (draft)"),
    ("grep in a new file", call("grep", pattern="fresh"), "new.txt (draft)"),
    ("glob", call("glob", pattern="*.txt"), "new.txt"),
    ("list_directory", call("list_directory"), "new.txt (new in the draft)"),
    ("a command", shell("cat notes.txt new.txt; ls"), "line two"),
    ("a command that only reads", shell("cat new.txt"), "fresh"),
]


@pytest.mark.parametrize(("name", "later", "shown"), LATER, ids=[name for name, _, _ in LATER])
async def test_later_steps_and_turns_see_the_draft(
    tmp_path: Path, name: str, later: dict[str, Any], shown: str
) -> None:
    first = step("", edit("line 2\n", "line two\n"), write("new.txt", "fresh\n"), call("delete_file", path="old.txt"))
    async with scripted_session(tmp_path, first, step("", later), DONE, step("", later), DONE, mode="draft") as d:
        (d.root / "old.txt").write_text("old\n")
        before = tree(d.root)
        for prompt_id in ("p1", "p2"):
            await turn(d, prompt_id)
            assert shown in results(d)[-1] and "old.txt" not in results(d)[-1]
        assert tree(d.root) == before
        assert len(open_drafts(d)) == 1


async def test_edits_and_commands_follow_each_other_and_are_reviewed_as_one(tmp_path: Path) -> None:
    """An edit, a failing test, a second edit, tests pass, one review."""
    test = shell("grep -q 'line eleven' notes.txt && echo passed")
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", test),
        step("", shell("sed -i 's/^line 11$/line eleven/' notes.txt; echo made > made.txt")),
        step("", test),
        step("", edit("line two\n", "line 2!\n")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        (draft,) = open_drafts(d)
        assert [(run.command.split()[0], run.failed, run.current) for run in draft.runs] == [("grep", False, False)]
        assert d.file.read_text() == TWELVE and not (d.root / "made.txt").exists()
        assert {Path(file.path).name: file.change for file in draft.files} == {
            "notes.txt": "edit",
            "made.txt": "create",
        }
        await decide_all(d, "accept")
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line 2!\n").replace("line 11\n", "line eleven\n")
        assert (d.root / "made.txt").read_text() == "made\n"
        assert not open_drafts(d)


async def test_a_run_is_current_until_the_draft_is_another(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("false")),
        DONE,
        step("", edit("line 3", "3")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        assert [(run.command, run.failed, run.current) for run in open_drafts(d)[0].runs] == [("false", True, True)]
        await decide_all(d, "reject")
        assert [run.current for run in d.session.state.proposals[-1].runs] == [False]


async def test_what_is_rejected_leaves_no_trace(tmp_path: Path) -> None:
    steps = [step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin; mkdir empty")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        before = tree(d.root)
        await turn(d)
        await decide_all(d, "reject")
        await settled(d)
        assert tree(d.root) == before


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_binary_files_are_part_of_the_draft(tmp_path: Path, decision: Literal["accept", "reject"]) -> None:
    """Later commands see them, and they come with the rest or not at all."""
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("printf 'a\\0b' > pic.bin; printf 'new\\0' > old.bin; ln -s notes.txt link; rm gone.bin")),
        step("", shell("cat pic.bin old.bin | tr '\\0' ' '; readlink link; ls gone.bin; printf 'c\\0d' > pic.bin")),
        step("", shell("git init -q . ; tr '\\0' ' ' < pic.bin")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        for name in ("old.bin", "gone.bin"):
            (d.root / name).write_bytes(b"old\0")
        before = tree(d.root)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        shown = results(d)
        assert "a bnew " in shown[2] and "notes.txt" in shown[2] and "No such file" in shown[2]
        if state.approvals and "git" in state.approvals[0].title:  # it makes settings of git
            await d.answer("reject")
        await finish(d)
        assert tree(d.root) == before
        await decide_all(d, decision)
        await settled(d)
        after = tree(d.root)
        if decision == "reject":
            assert after == before
        else:
            assert (after["pic.bin"], after["old.bin"], after["link"]) == ("c\0d", "new\0", "-> notes.txt")
            assert "gone.bin" not in after and "line two" in after["notes.txt"]
            undo = ProposalUndoParams(session_id="s", scope=EditScope())
            note = (await d.session.edits.undo(undo)).note
            assert note == "Amanu cannot undo these: gone.bin, link, old.bin, pic.bin."


async def test_executable_bits_are_part_of_the_draft(tmp_path: Path) -> None:
    steps = [
        step("", write("made.sh", "#!/bin/sh\necho ran\n")),
        step("", shell("chmod +x made.sh old.sh; chmod -x tool.sh")),
        step("", shell("./made.sh; test -x old.sh && test ! -x tool.sh && echo kept")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        for name, mode in (("old.sh", 0o644), ("tool.sh", 0o755)):
            (d.root / name).write_text("echo\n")
            (d.root / name).chmod(mode)
        await turn(d)
        assert "ran" in results(d)[2] and "kept" in results(d)[2]
        assert oct((d.root / "old.sh").stat().st_mode)[-3:] == "644"
        await decide_all(d, "accept")
        await settled(d)
        modes = {name: oct((d.root / name).stat().st_mode)[-3:] for name in ("made.sh", "old.sh", "tool.sh")}
        assert modes == {"made.sh": "755", "old.sh": "755", "tool.sh": "644"}


async def test_hunks_decided_meanwhile_stay_decided(tmp_path: Path) -> None:
    """Half of a file is accepted or refused, and the draft of it goes on."""
    steps = [
        step("", edit("line 2\n", "line two\n"), edit("line 5\n", "line five\n"), edit("line 11\n", "line eleven\n")),
        DONE,
        step("", edit("line eleven\n", "line 11!\n")),
        step("", call("read_file", path="notes.txt")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await d.decide("accept", "reject no")
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        await turn(d, "p2")
        shown = results(d)[-1]
        assert "line two" in shown and "line 11!" in shown and "line five" not in shown
        (draft,) = open_drafts(d)
        assert [hunk.new_text for file in draft.files for hunk in file.hunks] == ["line 11!\n"]
        await decide_all(d, "accept")
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n").replace("line 11\n", "line 11!\n")


async def test_what_the_user_types_stays_theirs(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n")),
        DONE,
        step("", shell("sed -i 's/^line 11$/line eleven/' notes.txt; head -1 notes.txt")),
        step("", edit("line 7\n", "line seven\n")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        editor = Editor(d)
        await turn(d)
        editor.type(0, "typed\n")
        await turn(d, "p2")
        assert "typed" in results(d)[1]
        drafts = open_drafts(d)
        assert sorted(hunk.new_text for draft in drafts for file in draft.files for hunk in file.hunks) == [
            "line eleven\n",
            "line seven\n",
            "line two\n",
        ]
        await decide_all(d, "accept")
        expected = "typed\n" + TWELVE
        for number, word in ((2, "two"), (7, "seven"), (11, "eleven")):
            expected = expected.replace(f"line {number}\n", f"line {word}\n")
        assert editor.text == expected
        assert d.file.read_text() == TWELVE  # the user had not saved


async def test_what_is_typed_while_an_edit_is_made_is_not_taken_for_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edit is computed from the draft of an earlier turn; the user types before it is proposed."""
    steps = [step("", edit("line 2\n", "line two\n")), DONE, step("", edit("line 7\n", "line seven\n")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        editor = Editor(d)
        await turn(d)
        proposals = d.session.core.proposals
        propose = proposals.propose

        async def propose_late(context: CallContext, edits: Sequence[FileEdit]) -> Proposal:
            editor.type(10, "typed\n")
            return await propose(context, edits)

        monkeypatch.setattr(proposals, "propose", propose_late)
        await turn(d, "p2")
        assert "Read it and try again" in results(d)[1]
        await decide_all(d, "accept")
        lines = TWELVE.replace("line 2\n", "line two\n").splitlines(keepends=True)
        assert editor.text == "".join([*lines[:10], "typed\n", *lines[10:]])


TAKEN: Sequence[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("moved", call("move_file", path="notes.txt", new_path="moved.txt"), "notes.txt", edit("line 3\n", "three\n")),
    ("deleted", call("delete_file", path="notes.txt"), "notes.txt", edit("line 3\n", "three\n")),
    ("made", write("new.txt", "agent\n"), "new.txt", edit("line 3\n", "three\n", "new.txt")),
    ("edited and gone", edit("line 2\n", "line two\n"), "", write("notes.txt", "again\n")),
]


@pytest.mark.parametrize(("name", "first", "path", "then"), TAKEN, ids=[name for name, *_ in TAKEN])
async def test_a_file_that_is_drafted_as_a_whole_and_changed_by_the_user_is_in_conflict(
    tmp_path: Path, name: str, first: dict[str, Any], path: str, then: dict[str, Any]
) -> None:
    """What the user wrote is neither hidden from the model nor replaced by what was drafted before."""
    steps = [step("", first), DONE, step("", call("list_directory")), step("", then), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        (d.root / path).write_text("mine\n" + TWELVE) if path else d.file.unlink()
        await turn(d, "p2")
        assert "moved.txt" not in results(d)[1] and (
            path in results(d)[1] if path else "notes.txt" not in results(d)[1]
        )
        assert d.session.state.proposals[0].files[0].hunks[0].state == "conflicted"
        await decide_all(d, "accept")
        expected = "mine\n" + TWELVE.replace("line 3\n", "three\n") if path else "again\n"
        assert (d.root / (path or "notes.txt")).read_text() == expected


CREATED: Sequence[tuple[str, Sequence[dict[str, Any]], dict[str, str]]] = [
    ("deleted", [call("delete_file", path="new.txt")], {}),
    ("moved", [call("move_file", path="new.txt", new_path="other.txt")], {"other.txt": "fresh\n"}),
    ("written again", [call("delete_file", path="new.txt"), write("new.txt", "2\n")], {"new.txt": "2\n"}),
    ("deleted by a command", [shell("rm new.txt")], {}),
    ("moved by a command", [shell("mv new.txt other.txt")], {"other.txt": "fresh\n"}),
    (
        "an old one deleted and made",
        [call("delete_file", path="notes.txt"), write("notes.txt", "x\n")],
        {"new.txt": "fresh\n", "notes.txt": "x\n"},
    ),
    (
        "an old one moved and edited",
        [call("move_file", path="notes.txt", new_path="moved.txt"), edit("line 2\n", "2\n", "moved.txt")],
        {"new.txt": "fresh\n", "moved.txt": TWELVE.replace("line 2\n", "2\n")},
    ),
]


@pytest.mark.parametrize(("name", "then", "expected"), CREATED, ids=[name for name, _, _ in CREATED])
async def test_what_was_drafted_can_be_changed(
    tmp_path: Path, name: str, then: Sequence[dict[str, Any]], expected: dict[str, str]
) -> None:
    steps = [step("", write("new.txt", "fresh\n")), *(step("", each) for each in then), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        failed = [
            item.output or item.error
            for item in d.session.state.items
            if isinstance(item, ToolCall) and item.state != "succeeded"
        ]
        assert not failed
        if open_drafts(d):
            await decide_all(d, "accept")
        await settled(d)
        found = tree(d.root)
        unchanged = {} if "moved.txt" in expected else {"notes.txt": TWELVE}
        assert found == {**unchanged, **expected}


ASKED: Sequence[tuple[str, bool]] = [
    ("rm -rf sub", False),
    ("make -s all", False),
    ("npm install left-pad", True),
    ("f() { echo x > made.txt; }; f", False),
    ("git commit --allow-empty -qm x", True),
    ("sleep 0", False),
]


@pytest.mark.parametrize(("line", "asks"), ASKED, ids=[line for line, _ in ASKED])
async def test_only_the_network_the_outside_and_history_ask(tmp_path: Path, line: str, asks: bool) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="draft") as d:
        (d.root / "sub").mkdir()
        (d.root / "sub" / "a.txt").write_text("a\n")
        (d.root / "Makefile").write_text("all:\n\techo built > built.txt\n")
        git = ["git", "-c", "user.name=u", "-c", "user.email=u@example.org"]
        subprocess.run([*git, "init", "-q", "."], cwd=d.root, check=True)
        subprocess.run([*git, "config", "user.name", "u"], cwd=d.root, check=True)
        subprocess.run([*git, "config", "user.email", "u@example.org"], cwd=d.root, check=True)
        before = tree(d.root)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        asked = [approval.title for approval in state.approvals if not approval.title.startswith("Apply the draft")]
        assert bool(asked) == asks
        if asks:
            await d.answer("reject")
        await finish(d)
        assert tree(d.root) == before


async def test_a_rule_that_allows_a_command_does_not_make_it_write_on_the_workspace(tmp_path: Path) -> None:
    steps = [step("", shell("touch here.txt; echo x > there.txt")), step("", shell("ls")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        for rule in ("run_shell_command(touch *)", "run_shell_command(echo *)"):
            for each in rules_of(rule, "session"):
                d.session.core.approvals.allow_in_session(each)
        before = tree(d.root)
        await turn(d)
        assert tree(d.root) == before
        assert "there.txt" in results(d)[1]


async def test_two_drafts_of_one_folder_do_not_see_each_other(tmp_path: Path) -> None:
    first = [step("", edit("line 2\n", "line two\n")), step("", shell("echo a > a.txt; ls; cat notes.txt")), DONE]
    async with scripted_session(tmp_path, *first, mode="draft") as d:
        await turn(d)
        script = tmp_path / "other.json"
        script.write_text(json.dumps([step("", shell("ls; cat notes.txt")), DONE]))
        made = SessionCreateParams(session_id="t", roots=[str(d.root)], mode="draft", model_id=f"scripted:{script}")
        client = Client(os.environ)
        await d.sessions.create(made, client)
        other = await d.sessions.get("t")
        await other.prompts.send(PromptSendParams(session_id="t", prompt_id="q1", text="go"), client)
        await until(other, lambda state: state.last_turn)
        shown = next(item.output for item in other.state.items if isinstance(item, ToolCall))
        assert "line two" not in shown and "a.txt" not in shown


async def test_a_draft_outlives_the_daemon(tmp_path: Path) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), DONE, step("", call("read_file", path="notes.txt")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await d.reopen()
        await turn(d, "p2")
        assert "line two" in results(d)[-1]
        await decide_all(d, "accept")
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")


async def test_the_model_is_not_told_that_its_own_draft_changed_a_file(tmp_path: Path) -> None:
    steps = [
        step("", call("read_file", path="notes.txt")),
        step("", edit("line 2\n", "line two\n")),
        DONE,
        step("Go."),
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await decide_all(d, "accept")
        await turn(d, "p2")
        assert "Changed since you read them" not in d.told()


async def test_a_file_of_the_draft_that_changes_on_disk_is_not_said_to_be_unsaved(tmp_path: Path) -> None:
    steps = [step("", call("read_file", path="notes.txt"), edit("line 2\n", "line two\n")), DONE, step("Go.")]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        d.file.write_text(d.file.read_text().replace("line 11\n", "mine\n"))
        await turn(d, "p2")
        assert "Changed since you read them, not by your edits: notes.txt. Read them again" in d.told()


async def test_a_job_works_on_a_copy_that_is_never_kept(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("cat notes.txt; echo job > job.txt; echo ready; sleep 60", background=True, until="ready")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        before = tree(d.root)
        await turn(d)
        assert "line two" in results(d)[1] and "not kept" in results(d)[1]
        assert tree(d.root) == before


@pytest.mark.parametrize(
    ("answer", "left", "applied", "title"),
    [
        ("allow", 0, True, "Apply the draft: 1 file"),
        ("reject", 0, False, "Apply the draft: 1 file"),
        ("finish", 1, False, "Left the draft for later: 1 file"),
        ("another prompt", 1, False, "Left the draft for later: 1 file"),
    ],
)
async def test_when_the_model_is_done_the_user_is_asked_once(
    tmp_path: Path, answer: str, left: int, applied: bool, title: str
) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), step("", shell("echo all well")), DONE, step("Yes?")]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.title == "Apply the draft: 1 file" and "Ran on the draft: echo all well: all well" in asked.detail
        if answer == "another prompt":
            await d.prompt("And now?", "p2")
            await d.over("p2")
            assert d.session.state.last_turn and "Yes?" in d.told()
        else:
            await d.answer(answer, reason="not so" if answer == "reject" else None)
            await d.over("p1")
            await turn(d, "p2")
            assert ("not so" in d.told()) == (answer == "reject")
        assert len(open_drafts(d)) == left
        assert ("line two" in d.file.read_text()) == applied
        reviews = [item for item in d.session.state.items if item.kind == "toolCall" and item.tool == "review_draft"]
        assert (reviews[0].title, reviews[0].state) == (title, "rejected" if answer == "reject" else "succeeded")


async def test_nobody_is_asked_where_nobody_is(tmp_path: Path) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft", headless=True) as d:
        await d.prompt("go")
        await d.over("p1")
        assert len(open_drafts(d)) == 1 and d.file.read_text() == TWELVE


async def test_a_denied_edit_does_not_take_the_draft_with_it(tmp_path: Path) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), step("", write("closed/x.txt", "x\n")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        deny(d, "@write(closed/**)")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals or state.last_turn)).approvals
        assert asked.title == "Apply the draft: 1 file"
        await d.answer("allow")
        await d.over("p1")
        assert d.file.read_text() == TWELVE.replace("line 2\n", "line two\n")
        assert not (d.root / "closed").exists()


async def test_a_mode_that_forbids_to_apply_a_draft_leaves_it_open(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", edit("line 2\n", "line two\n")), DONE, mode="draft") as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await d.session.set_mode("plan")
        await d.over("p1")
        assert len(open_drafts(d)) == 1


async def keep_first(d: ScriptedSession) -> None:
    """The user keeps what they accepted of the first draft once more; so its proposal is heard of again."""
    first = d.session.state.proposals[0]
    hunks = [HunkDecision(hunk_id=first.files[0].hunks[0].hunk_id, decision="keep")]
    params = ProposalResolveParams(session_id="s", proposal_id=first.proposal_id, version=first.version, hunks=hunks)
    assert (await d.session.edits.resolve(params)).status == "resolved"


PICTURE = step("", shell("printf 'a\\0b' > pic.bin"))


async def test_a_yes_to_an_earlier_draft_is_none_to_this_one(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n")),
        DONE,
        step("", edit("line 5\n", "line five\n")),
        PICTURE,
        DONE,
        step("", edit("line five\n", "line 5\n")),  # nothing is left of it
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await decide_all(d, "accept")
        await turn(d, "p2")
        await keep_first(d)
        await turn(d, "p3")
        await settled(d)
        assert not open_drafts(d) and not (d.root / "pic.bin").exists()


async def test_a_no_to_an_earlier_draft_is_none_to_this_one(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n"), edit("line 11\n", "line eleven\n")),
        DONE,
        step("", edit("line 5\n", "line five\n")),
        PICTURE,
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await d.decide("accept", "reject no")
        await turn(d, "p2")
        await keep_first(d)
        await decide_all(d, "accept")
        await settled(d)
        assert (d.root / "pic.bin").exists()


async def test_what_a_rule_denied_keeps_nothing_else_back(tmp_path: Path) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), step("", write("closed/x.txt", "x\n")), PICTURE, DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        deny(d, "@write(closed/**)")
        await turn(d)
        await decide_all(d, "accept")
        await settled(d)
        assert (d.root / "pic.bin").exists()


@pytest.mark.parametrize("ignored", [False, True])
async def test_what_a_rule_denies_is_not_part_of_a_draft(tmp_path: Path, ignored: bool) -> None:
    """Also where no proposal shows it."""
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("mkdir closed; printf 'a\\0' > closed/a.bin")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        subprocess.run(["git", "init", "-q", "."], cwd=d.root, check=True)
        (d.root / ".gitignore").write_text("closed/\n" if ignored else "")
        deny(d, "@write(closed/**)")
        await turn(d)
        assert ignored or "not accepted" in results(d)[1]
        await decide_all(d, "accept")
        await settled(d)
        assert not (d.root / "closed" / "a.bin").exists()


async def test_a_command_finds_a_moved_file_at_its_new_place_only(tmp_path: Path) -> None:
    steps = [
        step("", call("move_file", path="notes.txt", new_path="moved.txt")),
        step("", shell("ls; sed -i 's/^line 2$/line two/' moved.txt")),
        step("", shell("ls")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        assert all("moved.txt" in shown and "notes.txt" not in shown.partition("Exit")[0] for shown in results(d)[1:])
        await decide_all(d, "accept")
        assert tree(d.root) == {"moved.txt": TWELVE.replace("line 2\n", "line two\n")}


@pytest.mark.parametrize("drafted", ["other.txt", "notes.txt"])
async def test_a_branch_is_checked_out_beside_a_draft(tmp_path: Path, drafted: str) -> None:
    """On the copy, where what it changes can be decided on apart from the draft; else on the workspace itself."""
    steps = [step("", edit("line 2\n", "line two\n", drafted)), step("", shell("git checkout -q other")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:

        def git(*arguments: str) -> None:
            user = ["-c", "user.name=u", "-c", "user.email=u@example.org"]
            subprocess.run(["git", *user, *arguments], cwd=d.root, check=True)

        (d.root / "other.txt").write_text(TWELVE)
        git("init", "-q", "-b", "main", ".")
        git("add", ".")
        git("commit", "-qm", "first")
        git("checkout", "-qb", "other")
        d.file.write_text(TWELVE.replace("line 11\n", "line eleven\n"))
        git("commit", "-qam", "second")
        git("checkout", "-q", "main")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "git checkout" in asked.title and (drafted in asked.blocked) == (drafted == "notes.txt")
        await d.answer("allow")
        await finish(d)
        assert "refs/heads/other" in (d.root / ".git" / "HEAD").read_text()
        assert d.file.read_text() == TWELVE.replace("line 11\n", "line eleven\n")
        await decide_all(d, "accept")
        assert "line two" in (d.root / drafted).read_text() and "line eleven" in d.file.read_text()


async def test_a_file_that_a_prompt_mentions_is_sent_as_drafted(tmp_path: Path) -> None:
    steps = [step("", edit("line 2\n", "line two\n"), write("new.txt", "fresh\n")), DONE, DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await d.prompt("Look at @notes.txt and @new.txt", "p2")
        await d.over("p2")
        said = d.told().rpartition("Look at")[2]
        assert "line two" in said and "line 2" not in said and "fresh" in said and "Changed since" not in said


async def test_what_a_blocked_command_changed_is_not_drafted(tmp_path: Path) -> None:
    line = "printf 'a\\0' > pic.bin; chmod +x notes.txt; touch /usr/x"
    steps = [step("", edit("line 2\n", "line two\n")), step("", shell(line)), step("", shell("ls pic.bin")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.blocked
        await d.answer("reject")
        await finish(d)
        assert "No such file" in results(d)[2]
        await decide_all(d, "accept")
        await settled(d)
        assert set(tree(d.root)) == {"notes.txt"} and not d.file.stat().st_mode & 0o100


async def test_an_edit_of_a_file_with_secrets_is_asked_about(tmp_path: Path) -> None:
    """Else the model could guess what is in it as often as it likes: only an edit that fits is drafted."""
    steps = [step("", edit("line 2\n", "line two\n")), step("", edit("KEY=hunter2", "KEY=x", ".env")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".env").write_text("KEY=hunter2\n")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.title == "Edit .env"
        await d.answer("reject")
        await finish(d)
        assert (d.root / ".env").read_text() == "KEY=hunter2\n" and len(open_drafts(d)) == 1


async def test_a_job_finds_what_is_drafted_besides_text_and_what_was_built(tmp_path: Path) -> None:
    look = "./made.sh; ls -A; readlink link; cat out/deep/x; test -e gone || echo gone; echo y > out/y; echo ready"
    steps = [
        step("", write("made.sh", "#!/bin/sh\necho ran\n")),
        step(
            "",
            shell("chmod +x made.sh; printf 'a\\0' > pic.bin; ln -s made.sh link; rm -r gone; mkdir -p out/deep new"),
        ),
        step("", shell("echo built > out/deep/x")),
        step("", shell(f"{look}; sleep 60", background=True, until="ready|denied")),
        step("", shell("ls out")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".gitignore").write_text("out/\n")
        (d.root / "gone").mkdir()
        (d.root / "gone" / "old.bin").write_bytes(b"b\0")
        await turn(d)
        shown = results(d)[3]
        for each in ("ran", "pic.bin", "new", "made.sh\n", "built", "gone\nready"):
            assert each in shown, each
        assert results(d)[4].startswith("deep\n"), "what a job makes is not kept"


async def test_a_job_is_told_what_is_too_big_for_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_layer, "_COPIED", 32 << 10)
    steps = [
        step(
            "", edit("line 2\n", "line two\n"), shell("mkdir out; head -c 100000 /dev/zero > out/big; echo > small.o")
        ),
        step("", shell("ls; echo ready; sleep 60", background=True, until="ready")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".gitignore").write_text("out/\n*.o\n")
        await turn(d)
        shown = results(d)[-1]
        assert "too large: out" in shown and "notes.txt\nsmall.o\nready" in shown


@pytest.mark.parametrize("another", [True, False])
async def test_a_command_that_changes_too_much_does_not_lose_what_was_drafted(tmp_path: Path, another: bool) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin; rm gone.bin")),
        step("", shell("for i in $(seq 300); do echo $i > f$i; done")),
        *([step("", shell("ls pic.bin gone.bin"))] if another else []),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "gone.bin").write_bytes(b"old\0")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "more than 200 files" in asked.blocked
        await d.answer("reject")
        await finish(d)
        if another:
            assert "pic.bin\n" in results(d)[3] and "'gone.bin': No such file" in results(d)[3]
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == {"notes.txt": TWELVE.replace("line 2\n", "line two\n"), "pic.bin": "a\0b"}


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_an_empty_folder_is_part_of_the_draft(tmp_path: Path, decision: Literal["accept", "reject"]) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("mkdir -p a/b")),
        step("", shell("ls -d a/b")),
        DONE,
        step("", shell("ls")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        before = tree(d.root)
        await turn(d)
        assert results(d)[2].startswith("a/b\n") and tree(d.root) == before
        await decide_all(d, decision)
        await settled(d)
        assert (d.root / "a" / "b").is_dir() == (decision == "accept")
        if decision == "reject":
            await turn(d, "p2")
            assert tree(d.root) == before and results(d)[-1].startswith("notes.txt\n")


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_a_deleted_folder_stays_deleted_in_the_draft(
    tmp_path: Path, decision: Literal["accept", "reject"]
) -> None:
    steps = [
        step("", shell("rm -r sub empty")),
        step("", shell("ls; git status --short")),
        step("", shell("ls; mkdir empty")),
        step("", shell("ls")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "sub" / "deep").mkdir(parents=True)
        (d.root / "empty").mkdir()
        (d.root / "sub" / "a.txt").write_text("a\n")
        (d.root / "sub" / "deep" / "b.bin").write_bytes(b"b\0")
        subprocess.run(["git", "init", "-q", str(d.root)], check=True)
        before = tree(d.root)
        await turn(d)
        assert [result.split("\n")[:2] for result in results(d)[2:4]] == [["notes.txt", ""], ["empty", "notes.txt"]]
        assert tree(d.root) == before
        await decide_all(d, decision)
        await settled(d)
        gone = [] if decision == "reject" else ["sub/a.txt", "sub/deep/b.bin"]
        assert tree(d.root) == {name: text for name, text in before.items() if name not in gone}
        assert (d.root / "sub").exists() == (decision == "reject")


@pytest.mark.parametrize(
    ("decided", "left"),
    [
        ("nothing", {"notes.txt": TWELVE.replace("line 2\n", "line two\n"), "new.txt": "fresh\n"}),
        ("first", {"notes.txt": TWELVE.replace("line 2\n", "line two\n").replace("line 5", "5"), "new.txt": "fresh\n"}),
        ("typing", {"notes.txt": "top\n" + TWELVE.replace("line 2\n", "line two\n"), "new.txt": "fresh\n"}),
    ],
)
async def test_a_rewound_turn_gives_back_what_it_took_over(tmp_path: Path, decided: str, left: dict[str, str]) -> None:
    """Of the draft of a turn that stays nothing is lost."""
    steps = [
        step("", edit("line 2\n", "line two\n"), write("new.txt", "fresh\n"), edit("line 5\n", "5\n")),
        DONE,
        step("", edit("line 11\n", "line eleven\n"), edit("fresh", "stale", "new.txt"), write("other.txt", "x\n")),
        DONE,
        step("", edit("line 11\n", "line 11!\n") if decided == "nothing" else edit("line 9\n", "nine\n")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        (first,) = open_drafts(d)
        hunks = next(file for file in first.files if file.path.endswith("notes.txt")).hunks
        answer = "accept" if decided == "first" else "reject"
        await d.session.core.proposals.resolve(
            first.proposal_id, [HunkDecision(hunk_id=hunks[1].hunk_id, decision=answer)]
        )
        for prompt_id in ("p2", "p3"):
            await turn(d, prompt_id)
        if decided == "typing":
            d.file.write_text("top\n" + TWELVE)
        params = CheckpointRestoreParams(session_id="s", turn_id="turn-p2", conversation=True)
        await d.session.checkpoints.restore(params)
        assert [draft.proposal_id for draft in open_drafts(d)] == [first.proposal_id]
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == left


@pytest.mark.parametrize(
    "later", [edit("line 11\n", "line eleven\n"), shell("sed -i 's/line 11$/line eleven/' notes.txt")]
)
async def test_a_question_about_a_part_of_an_open_draft_says_so(tmp_path: Path, later: dict[str, Any]) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), DONE, step("", later), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await d.session.set_mode("ask")
        await d.prompt("go on", "p2")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "applies only what this call changed" in asked.detail
        assert any("applies only what this call changed" in line.text for line in asked.lines)
        await d.answer("allow")
        await d.over("p2")
        assert d.file.read_text() == TWELVE.replace("line 11\n", "line eleven\n")
        assert len(open_drafts(d)) == 1


async def test_a_review_that_was_cut_short_is_asked_for_again(tmp_path: Path) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), DONE, DONE, DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await d.session.prompts.cancel("turn-p1")
        await d.over("p1", "cancelled")
        await d.prompt("go on", "p2")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.title == "Apply the draft: 1 file"
        await d.answer("finish")
        await d.over("p2")
        await d.prompt("and on", "p3")
        await d.over("p3")  # the user said "later"
        assert d.file.read_text() == TWELVE


async def test_what_the_user_s_own_command_drafts_is_reviewed(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, DONE, mode="draft") as d:
        await d.prompt("! echo made > made.txt")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert asked.title == "Apply the draft: 1 file" and not (d.root / "made.txt").exists()
        await d.answer("allow")
        await d.over("p1")
        assert (d.root / "made.txt").read_text() == "made\n"


async def test_a_mode_alone_reaches_the_workspace_with_the_next_draft(tmp_path: Path) -> None:
    steps = [step("", shell("chmod +x notes.txt")), step("", shell("test -x notes.txt && echo kept")), DONE]
    more = [step("", edit("line 2\n", "line two\n")), DONE]
    async with scripted_session(tmp_path, *steps, *more, mode="draft") as d:
        await turn(d)
        assert "kept" in results(d)[1] and not d.file.stat().st_mode & 0o111
        await turn(d, "p2")
        await decide_all(d, "accept")
        await settled(d)
        assert d.file.stat().st_mode & 0o111


async def test_what_a_restart_has_lost_of_a_draft_is_said_at_its_review(tmp_path: Path) -> None:
    line = "printf 'a\\0' > pic.bin; chmod +x notes.txt"
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell(line)),
        DONE,
        step("", edit("line 3\n", "3\n")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "Also applied if you accept the whole draft: pic.bin" in asked.detail and "Lost" not in asked.detail
        await d.session.prompts.cancel("turn-p1")
        await d.over("p1", "cancelled")
        await d.reopen()
        await d.prompt("go on", "p2")
        state = await d.until(lambda state: state.approvals)
        assert any("draft is without them: notes.txt, pic.bin" in each.detail for each in state.approvals)
        for _ in state.approvals:
            await d.answer("finish")
        await d.over("p2")
        await decide_all(d, "accept")
        await settled(d)
        notices = [item.text for item in d.session.state.items if item.kind == "notice"]
        assert any("these were lost with the session's private copy" in text and "pic.bin" in text for text in notices)


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("cat out/deep/x; wc -c pic.bin", False),
        ("rm out/deep/x; echo y > out/y", True),
        ("echo y > out/deep/x", True),
        ("echo y > out/deep/y", True),
        ("rm -r out", True),
    ],
)
async def test_a_command_of_plan_mode_finds_what_was_built_and_drafted_before(
    tmp_path: Path, line: str, changes: bool
) -> None:
    """And nothing of that is changed."""
    build = shell("mkdir -p out/deep; echo built > out/deep/x; printf 'pic\\0' > pic.bin; echo drafted >> notes.txt")
    later, last = shell(f"f() {{ {line}; }}; f"), shell("cat out/deep/x; ls out")
    steps = step("", build), DONE, step("", later), DONE, step("", last), DONE
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".gitignore").write_text("out/\n")
        modes: list[tuple[str, Mode]] = [("p1", "draft"), ("p2", "plan"), ("p3", "draft")]
        for prompt_id, mode in modes:
            await d.session.set_mode(mode)
            await turn(d, prompt_id)
        outputs = [result for result in results(d) if "Apply" not in result]
        assert changes or ("built" in outputs[1] and "pic" in outputs[1])
        assert ("was thrown away" in outputs[1]) == changes
        assert outputs[2].startswith("built\ndeep\n") and "y" not in outputs[2].split()


async def test_the_model_hears_what_checkers_find_in_the_draft(tmp_path: Path) -> None:
    """What its last change did to it, not all that is wrong with the draft; and of other files as they are drafted."""
    steps = [
        step("", checked_edits.edit("print(os)", "print(os, countt)")),
        step("", checked_edits.edit("print(os, countt)", "print(os, countt, more)")),
        step("", checked_edits.edit("countt, more", "2")),
        DONE,
    ]
    (tmp_path / "work").mkdir()
    checked_edits.prepare(tmp_path / "work")
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.trust()
        await turn(d)
        first, second, third = results(d)[:3]
        assert "this change adds 1 error" in first and "Undefined name `countt`" in first
        assert "this change adds 1 error" in second and "`more`" in second and "name `countt`" not in second
        assert "this change fixes 2 and adds nothing new" in third
        assert (d.root / "a.py").read_text() == "import os\n\nprint(os)\n"
        await decide_all(d, "accept")
        await d.prompt("on", "p2")
        await d.over("p2")
        assert d.told().count("Checked a.py") == 3, "nothing is told twice"


async def test_a_draft_is_checked_again_only_where_a_call_has_changed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while an earlier draft is open in which the file is decided on."""
    steps = [
        step("", checked_edits.edit("print(os)", "print(os, countt)"), write("z.txt", "z\n")),
        DONE,
        step("", checked_edits.edit("import os", "import os, sys")),
        *[step("", shell("true; f() { echo hi; }; f"))] * 2,
        DONE,
    ]
    (tmp_path / "work").mkdir()
    checked_edits.prepare(tmp_path / "work")
    started: list[str] = []
    composed: list[str] = []
    start, compose = AppliedChecks.start, editor_feedback.compose

    def noted_start(self: AppliedChecks, path: Path, *rest: Any) -> None:
        started.append(path.name)
        start(self, path, *rest)

    def noted_compose(old_lines: Sequence[str], *rest: Any) -> str:
        composed.append("".join(old_lines))
        return compose(old_lines, *rest)

    monkeypatch.setattr(AppliedChecks, "start", noted_start)
    monkeypatch.setattr(editor_feedback, "compose", noted_compose)
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.trust()
        await turn(d)
        (first,) = open_drafts(d)
        (file,) = [file for file in first.files if file.path.endswith("a.py")]
        accepted = [HunkDecision(hunk_id=hunk.hunk_id, decision="accept") for hunk in file.hunks]
        await d.session.core.proposals.resolve(first.proposal_id, accepted)
        await turn(d, "p2")
        assert len(open_drafts(d)) == 2 and started == ["a.py"] * 2
        assert len(composed) <= 4, "once before and once after each edit"


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_an_agent_drafts_into_the_draft_of_its_session(
    tmp_path: Path, decision: Literal["accept", "reject"]
) -> None:
    """All that its commands do, in a layer of its own that begins as its parent's; and later agents find it there."""
    first = [
        step(
            "", shell("cat out/x; test -x run.sh && rm gone.bin; printf 'c\\0d' > pic.bin; chmod +x tool.sh; mkdir new")
        ),
        step("", shell("ls; echo agent >> notes.txt; rm -r sub; ln -s notes.txt link")),
        step("", complete()),
    ]
    second = [
        step("", shell("tr '\\0' ' ' < pic.bin; ./tool.sh; readlink link; ls -d new sub gone.bin")),
        step("", complete()),
    ]
    steps = [
        step("", shell("mkdir out; echo built > out/x; echo > run.sh; chmod +x run.sh; printf 'a\\0b' > pic.bin")),
        step("", ask_agent("first")),
        step("", ask_agent("second")),
        step("", shell("tr '\\0' ' ' < pic.bin; ./tool.sh; readlink link; ls -d new sub gone.bin")),
        DONE,
    ]
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.txt").write_text("a\n")
    (root / "gone.bin").write_bytes(b"old\0")
    (root / "tool.sh").write_text("#!/bin/sh\necho ran\n")
    (root / ".gitignore").write_text("out/\n")
    async with session_with_agents(tmp_path, {"first": first, "second": second}, *steps, mode="draft") as d:
        before = tree(d.root)
        await turn(d)
        outputs = [item.output for at in (1, 2) for item in nested(d, at) if item.tool == "run_shell_command"]
        assert outputs[0].startswith("built\n") and "gone.bin" not in outputs[1].partition("Exit code")[0]
        for later in (outputs[2], results(d)[3]):
            assert later.startswith("c dran\nnotes.txt\n") and "\nnew\n" in later
            assert "'sub'" in later and "'gone.bin'" in later and "Drafted" not in later
        assert tree(d.root) == before
        await decide_all(d, decision)
        await settled(d)
        after = tree(d.root)
        if decision == "reject":
            assert after == before
            return
        assert after["notes.txt"] == f"{TWELVE}agent\n" and (after["pic.bin"], after["link"]) == (
            "c\0d",
            "-> notes.txt",
        )
        assert not {"gone.bin", "sub/a.txt"} & set(after) and after["new"] == "/" and after["out/x"] == "built\n"
        assert os.access(d.root / "tool.sh", os.X_OK) and os.access(d.root / "run.sh", os.X_OK)


async def test_what_is_drafted_besides_text_outlives_a_turn_that_takes_the_text_over(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin")),
        DONE,
        step("", edit("line two\n", "line 2!\n"), shell("wc -c pic.bin")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await turn(d, "p2")
        assert results(d)[-1].startswith("3 pic.bin")
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == {"notes.txt": TWELVE.replace("line 2\n", "line 2!\n"), "pic.bin": "a\0b"}


WAITS = "echo waiting; until grep -q yes go; do sleep 0.05; done"


@pytest.mark.parametrize("first", ["accept", "reject"])
@pytest.mark.parametrize("then", ["accept", "reject"])
async def test_what_a_command_drafts_after_a_decision_is_another_draft(
    tmp_path: Path, first: Literal["accept", "reject"], then: Literal["accept", "reject"]
) -> None:
    late = f"{WAITS}; printf 'late\\0' > late.bin; chmod +x tool.sh; mkdir out; echo x > out/x; echo text > late.txt"
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin")),
        step("", shell(late)),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "tool.sh").write_text("echo\n")
        (d.root / ".gitignore").write_text("out/\ngo\n")
        (d.root / "go").write_text("not yet")
        await d.prompt("go")
        await d.until(lambda state: any("waiting" in i.output for i in state.items if isinstance(i, ToolCall)))
        await decide_all(d, first)
        (d.root / "go").write_text("yes")
        await finish(d)
        await settled(d)
        after = tree(d.root)
        assert ("pic.bin" in after) == ("line two" in after["notes.txt"]) == (first == "accept")
        assert not {"late.bin", "late.txt", "out/x"} & set(after) and not os.access(d.root / "tool.sh", os.X_OK)
        await decide_all(d, then)
        await settled(d)
        after, applied = tree(d.root), then == "accept"
        assert ("late.bin" in after) == ("late.txt" in after) == os.access(d.root / "tool.sh", os.X_OK) == applied


async def test_what_a_cancelled_command_has_changed_is_not_drafted(tmp_path: Path) -> None:
    late = "printf 'half\\0' > half.bin; rm gone.bin; chmod +x tool.sh; mkdir new; echo waiting; sleep 60"
    steps = [step("", edit("line 2\n", "line two\n")), step("", shell(late)), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "tool.sh").write_text("echo\n")
        (d.root / "gone.bin").write_bytes(b"b\0")
        before = tree(d.root)
        await d.prompt("go")
        await d.until(lambda state: any("waiting" in i.output for i in state.items if isinstance(i, ToolCall)))
        await d.session.prompts.cancel("turn-p1")
        await d.over("p1", "cancelled")
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == before | {"notes.txt": TWELVE.replace("line 2\n", "line two\n")}
        assert not os.access(d.root / "tool.sh", os.X_OK) and not (d.root / "new").exists()


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto", "draft"])
async def test_an_executable_bit_that_a_rule_denies_is_not_changed(tmp_path: Path, mode: Mode) -> None:
    steps = [step("", edit("line 2\n", "line two\n")), step("", shell("chmod +x tool.sh other.sh; true")), DONE]
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        deny(d, "write_file(tool.sh)")
        for name in ("tool.sh", "other.sh"):
            (d.root / name).write_text("echo\n")
        await d.prompt("go")
        if (await d.until(lambda state: state.approvals or state.last_turn)).approvals:
            await d.answer("allow")
        await d.over("p1")
        await settled(d)
        assert [os.access(d.root / name, os.X_OK) for name in ("tool.sh", "other.sh")] == [False, True]
        assert "because a rule denies it: tool.sh" in d.told()


@pytest.mark.parametrize("who", ["job", "agent", "plan"])
async def test_a_copy_is_made_without_what_is_gone(tmp_path: Path, who: str) -> None:
    """What was built and is deleted again; and of a draft whose layer was given up."""
    line = shell(
        "cat pic.bin | tr '\\0' ' '; echo ready", background=who == "job", until="ready" if who == "job" else None
    )
    too_much = shell("for n in $(seq 250); do echo > $n.txt; done")
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("mkdir -p pkg/out; echo > pkg/out/x; printf 'a\\0b' > pic.bin")),
        step("", shell("rm -r pkg"), too_much),
        DONE,
        step("", ask_agent("looker") if who == "agent" else line),
        DONE,
    ]
    async with session_with_agents(
        tmp_path, {"looker": [step("", line), step("", complete())]}, *steps, mode="draft"
    ) as d:
        (d.root / ".gitignore").write_text("out/\n")
        await d.prompt("go")
        while (state := await d.until(lambda s: s.approvals or _is_over(s, "p1"))).approvals:
            await d.answer("finish" if state.approvals[0].title.startswith("Apply") else "reject")
        if who == "plan":
            await d.session.set_mode("plan")
        await turn(d, "p2")
        shown = nested(d)[0].output if who == "agent" else results(d)[-1]
        assert "a b" in shown and "failed" not in shown


@pytest.mark.parametrize("fails", [["_lay_in"], ["_lay_in", "_make_folders"]])
async def test_a_failed_command_does_not_take_the_draft_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: list[str]
) -> None:
    """Nor does the failure to make a new layer for the next one."""
    steps = [
        step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin; chmod +x tool.sh; mkdir new")),
        *(step("", shell("echo fails")) for _ in fails),
        step("", shell("ls")),
        DONE,
    ]
    for name in fails:
        real, calls = getattr(session_layer, name), [0]

        def fail_once(*arguments: Any, real: Any = real, calls: list[int] = calls) -> Any:
            calls[0] += 1
            if calls[0] == 2:
                raise OSError(28, "No space left on device")
            return real(*arguments)

        monkeypatch.setattr(session_layer, name, fail_once)
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "tool.sh").write_text("echo\n")
        await turn(d)
        shown = results(d)[2:]
        assert all("The disk is full" in each for each in shown[:-1]) and len(shown) == len(fails) + 1
        assert shown[-1].startswith("new\nnotes.txt\npic.bin\n")
        await decide_all(d, "accept")
        await settled(d)
        assert (tree(d.root)["pic.bin"], tree(d.root)["new"]) == ("a\0b", "/")
        assert os.access(d.root / "tool.sh", os.X_OK)


async def test_a_rewound_turn_takes_back_what_its_commands_drafted_besides_text(tmp_path: Path) -> None:
    """And nothing that earlier turns drafted."""
    first = "printf 'a\\0b' > pic.bin; cp pic.bin both.bin; chmod +x tool.sh; mkdir new"
    later = "printf 'c\\0' > late.bin; cp late.bin both.bin; chmod +x late.sh; mkdir later; rm -r old"
    steps = [
        step("", edit("line 2\n", "line two\n"), shell(first)),
        DONE,
        step("", edit("line 5\n", "5\n"), shell(later)),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        for name in ("tool.sh", "late.sh"):
            (d.root / name).write_text("echo\n")
        (d.root / "old").mkdir()
        (d.root / "old" / "old.bin").write_bytes(b"o\0")
        before = tree(d.root)
        await turn(d)
        await turn(d, "p2")
        params = CheckpointRestoreParams(session_id="s", turn_id="turn-p2", conversation=True)
        await d.session.checkpoints.restore(params)
        await decide_all(d, "accept")
        await settled(d)
        text = TWELVE.replace("line 2\n", "line two\n")
        assert tree(d.root) == before | {"notes.txt": text, "pic.bin": "a\0b", "new": "/"}
        assert [os.access(d.root / name, os.X_OK) for name in ("tool.sh", "late.sh")] == [True, False]
        notices = [item.text for item in d.session.state.items if item.kind == "notice"]
        assert any("these were lost with the session's private copy: both.bin" in text for text in notices)


async def test_a_yes_in_ask_applies_a_hunk_that_the_call_shares_with_the_draft(tmp_path: Path) -> None:
    """Nobody is asked about the draft's own call any more, so nothing waits for it."""
    steps = [step("", edit("line 2\n", "line two\n")), DONE, step("", edit("line 3\n", "three\n")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await d.session.set_mode("ask")
        await d.prompt("go on", "p2")
        await d.until(lambda state: state.approvals)
        await d.answer("allow")
        await d.over("p2")
        assert "line two\nthree\n" in d.file.read_text() and not open_drafts(d)


async def test_what_is_drafted_without_a_proposal_is_said_to_be_kept(tmp_path: Path) -> None:
    steps = [step("", shell("mkdir -p a/b; chmod +x notes.txt; echo > x.log")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / ".gitignore").write_text("*.log\n")
        await turn(d)
        assert "applied only with the next draft that the user accepts: notes.txt, a/b, x.log" in d.told()


async def test_a_conflict_does_not_take_the_rest_of_the_draft_with_it(tmp_path: Path) -> None:
    """It is resolved, and accepted after all: then the binary file comes, too."""
    steps = [step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        d.file.write_text(TWELVE.replace("line 2\n", "mine\n"))
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == {"notes.txt": TWELVE.replace("line 2\n", "mine\n")}
        notices = [item.text for item in d.session.state.items if item.kind == "notice"]
        assert sum("Not applied yet" in text and "pic.bin" in text for text in notices) == 1
        d.file.write_text(TWELVE)
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == {"notes.txt": TWELVE.replace("line 2\n", "line two\n"), "pic.bin": "a\0b"}


async def test_the_review_says_what_a_rejection_has_cost(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n"), edit("line 9\n", "nine\n"), shell("printf 'a\\0b' > pic.bin")),
        step("", shell("echo more >> notes.txt; exit 3")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "Also applied if you accept the whole draft: pic.bin" in asked.detail and "exit 3" in asked.detail
        (draft,) = open_drafts(d)
        hunk = draft.files[0].hunks[0]
        await d.session.core.proposals.resolve(
            draft.proposal_id, [HunkDecision(hunk_id=hunk.hunk_id, decision="reject")]
        )
        await d.answer("finish")
        await d.over("p1")
        await d.prompt("on", "p2")
        await d.over("p2")
        await decide_all(d, "accept")
        await settled(d)
        assert "pic.bin" not in tree(d.root)
        undo = ProposalUndoParams(session_id="s", scope=EditScope())
        assert (await d.session.edits.undo(undo)).note == ""
