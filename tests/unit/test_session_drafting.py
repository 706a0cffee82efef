"""Draft mode: nothing asks, nothing reaches the workspace, and all of it is reviewed when the user likes."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.checks import editor_feedback
from amanu.checks.applied_checks import AppliedChecks
from amanu.core.tool import CallContext
from amanu.permissions import approvals as approval
from amanu.permissions.offers import rules_of
from amanu.proposals import tracking
from amanu.proposals.model import FileEdit
from amanu_protocol.items import Hunk, Mode, Proposal, ProposedFile, ToolCall
from amanu_protocol.requests import (
    ApprovalResolveParams,
    CheckpointRestoreParams,
    HunkDecision,
    PromptSendParams,
    SessionCreateParams,
)
from support import checked_edits
from support.draft_session import (
    DONE,
    decide_all,
    deny,
    edit,
    finish,
    open_drafts,
    results,
    settled,
    turn,
    write,
)
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, call, conversation, scripted_session, step
from support.session_client import Client, until
from unit.test_session_layer import shell, tree
from unit.test_session_typing import Editor

pytestmark = pytest.mark.layers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


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
        state = "conflicted" if path else "rejected"  # without a file it waits no more
        await d.until(lambda found: found.proposals[0].files[0].hunks[0].state == state)
        await decide_all(d, "accept")
        expected = "mine\n" + TWELVE.replace("line 3\n", "three\n") if path else "again\n"
        assert (d.root / (path or "notes.txt")).read_text() == expected


def hunk_states(d: ScriptedSession) -> dict[str, str]:
    return {
        Path(file.path).name: file.hunks[0].state
        for proposal in d.session.state.proposals
        for file in proposal.files
        if file.hunks
    }


WHOLE: Sequence[tuple[str, dict[str, Any], str, str | None]] = [
    ("moved", call("move_file", path="notes.txt", new_path="moved.txt"), "notes.txt", "mine\n"),
    ("moved, target made", call("move_file", path="notes.txt", new_path="moved.txt"), "moved.txt", "mine\n"),
    ("moved, gone", call("move_file", path="notes.txt", new_path="moved.txt"), "notes.txt", None),
    ("deleted", call("delete_file", path="notes.txt"), "notes.txt", "mine\n"),
    ("made", write("new.txt", "agent\n"), "new.txt", "mine\n"),
    ("edited, gone", edit("line 2\n", "line two\n"), "notes.txt", None),
]


@pytest.mark.parametrize("mode", ["draft", "ask"])
@pytest.mark.parametrize(("name", "first", "path", "mine"), WHOLE, ids=[name for name, *_ in WHOLE])
async def test_what_is_proposed_of_a_file_as_a_whole_follows_the_file_at_once(
    tmp_path: Path, name: str, first: dict[str, Any], path: str, mine: str | None, mode: Mode
) -> None:
    """It is in conflict while the file is another, open again when that is over; a yes to all applies all or none. If
    the file is gone and nobody is asked about it, it waits no more and holds nothing back."""
    also = call("delete_file", path="other.txt")
    steps = [step("", first, also), DONE, step("", shell("ls")), DONE]
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        (d.root / "other.txt").write_text("other\n")
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        changed = "new.txt" if name == "made" else "notes.txt"
        before = (d.root / path).read_text() if (d.root / path).exists() else None

        def put(text: str | None) -> None:
            (d.root / path).unlink() if text is None else (d.root / path).write_text(text)

        put(mine)
        await d.until(lambda state: hunk_states(d)[changed] == "conflicted")
        put(before)
        await d.until(lambda state: hunk_states(d)[changed] == "pending")
        put(mine)
        await d.until(lambda state: hunk_states(d)[changed] == "conflicted")
        assert hunk_states(d)["other.txt"] == "pending"
        if mode == "draft":
            await d.answer("finish")
            await d.over("p1")
            await turn(d, "p2")
            listed = results(d)[-1]
            assert ("moved.txt" in listed) == (path == "moved.txt") and ("notes.txt" in listed) == (
                path != "notes.txt" or mine is not None
            )
            assert "other.txt" not in listed
        if mine is not None:
            assert (d.root / path).read_text() == mine
        is_withdrawn = mode == "draft" and mine is None
        state = "rejected" if is_withdrawn else "conflicted"
        await d.until(lambda _: hunk_states(d)[changed] == state)
        await decide_all(d, "accept")
        is_held_back = mode == "draft" and not is_withdrawn  # in a draft both are one proposal
        last = "rejected" if mine is None else "conflicted"  # also of a question, as soon as that is answered
        await d.until(
            lambda _: hunk_states(d) == {changed: last, "other.txt": "pending" if is_held_back else "applied"}
        )
        assert (d.root / "other.txt").exists() == is_held_back
        assert ((d.root / path).read_text() if (d.root / path).exists() else None) == mine


@pytest.mark.parametrize(
    ("first", "path", "same"),
    [(call("delete_file", path="notes.txt"), "notes.txt", None), (write("new.txt", "agent\n"), "new.txt", "agent\n")],
)
async def test_what_the_user_did_themselves_is_no_conflict(
    tmp_path: Path, first: dict[str, Any], path: str, same: str | None
) -> None:
    async with scripted_session(tmp_path, step("", first), DONE, mode="draft") as d:
        await turn(d)
        (d.root / path).unlink() if same is None else (d.root / path).write_text(same)
        await d.session.core.proposals.catch_up(d.session.state.proposals[0].proposal_id)
        assert hunk_states(d) == {path: "pending"}
        await decide_all(d, "accept")
        assert hunk_states(d) == {path: "applied"}


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
        script.write_text(json.dumps([step("", shell("ls")), DONE]))
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
        assert (
            asked.title == "Apply the draft: 1 file" and "Ran on the draft: `echo all well` — all well" in asked.detail
        )
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


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto", "plan"])
async def test_a_turn_asks_for_its_draft_whatever_mode_it_ends_in(tmp_path: Path, mode: Mode) -> None:
    """In plan mode nothing can be applied: that is said, once."""
    network = shell("touch -c it")
    network["arguments"]["network"] = True
    steps = [step("", edit("line 2\n", "line two\n")), step("", network), DONE, DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await d.session.set_mode(mode)
        if d.session.state.approvals:  # the command; in plan mode it is denied
            await d.answer("reject")
        if mode != "plan":
            (asked,) = (await d.until(lambda state: state.approvals or state.last_turn)).approvals
            assert asked.title == "Apply the draft: 1 file"
            await d.answer("allow")
        await d.over("p1")
        assert len(open_drafts(d)) == (mode == "plan")
        assert (d.file.read_text() == TWELVE) == (mode == "plan")
        await turn(d, "p2")
        reviews = [item for item in d.session.state.items if item.kind == "toolCall" and item.tool == "review_draft"]
        assert len(reviews) == 1
        if mode == "plan":
            assert "the user can still decide on it" in d.told()


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
        await d.until(lambda state: not state.approvals)
        await finish(d, "p2")  # the rest is this turn's draft now
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
    start, text_with = AppliedChecks.start, editor_feedback.text_with

    def noted_start(self: AppliedChecks, path: Path, *rest: Any) -> None:
        started.append(path.name)
        start(self, path, *rest)

    def noted_text(file: ProposedFile, is_used: Callable[[Hunk], bool]) -> str:
        composed.append(file.base_text or "")
        return text_with(file, is_used)

    monkeypatch.setattr(AppliedChecks, "start", noted_start)
    monkeypatch.setattr(editor_feedback, "text_with", noted_text)
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


async def test_several_drafts_are_told_of_as_they_are_decided(tmp_path: Path) -> None:
    """In that order, and the same after a restart."""
    steps = [step("", edit("line 2\n", "line two\n")), DONE, step("", write("new.txt", "new\n")), DONE, DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await d.prompt("go")
        await d.prompt("and on", "p2")
        state = await d.until(lambda state: len(state.approvals) == 2)
        for asked, decision in zip(reversed(state.approvals), ("reject", "allow"), strict=True):
            params = ApprovalResolveParams(
                session_id="s", tool_call_id=asked.tool_call_id, decision=decision, digest=asked.digest
            )
            await d.session.resolve_approval(params, d.client)
        await d.over("p2")
        before = [message.model_dump_json() for message in conversation(d.session)]
        await d.reopen()
        assert [message.model_dump_json() for message in conversation(d.session)] == before
