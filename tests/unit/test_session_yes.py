"""The user's yes applies all that it was said to, or what it could not apply is still there, and the user is told."""

from pathlib import Path
from typing import Literal

import pytest

from amanu.core.tool import ToolError
from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.proposals.row_plan import StoredContent
from amanu_protocol.items import Mode, Row
from amanu_protocol.requests import EditScope, ProposalUndoParams, RowDecision
from support.draft_session import DONE, decide_all, deny, edit, end_daemon, finish, open_drafts, results, settled, turn
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, scripted_session, step
from unit.test_session_layer import shell, tree

pytestmark = pytest.mark.layers

BESIDES = "printf 'a\\0b' > pic.bin; chmod +x tool.sh; mkdir new; rm -r old"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


def files(d: ScriptedSession) -> None:
    (d.root / "tool.sh").write_text("echo\n")
    (d.root / "old").mkdir()
    (d.root / "old" / "old.bin").write_bytes(b"o\0")


def notices(d: ScriptedSession) -> str:
    return "\n".join(item.text for item in d.session.state.items if item.kind == "notice")


async def test_a_mode_does_not_refuse_what_the_user_accepts(tmp_path: Path) -> None:
    """Its rules are for the model."""
    steps = [step("", edit("line 2\n", "line two\n"), shell(BESIDES)), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        files(d)
        await turn(d)
        await d.session.set_mode("plan")
        await decide_all(d, "accept")
        await settled(d)
        expected = {"notes.txt": TWELVE.replace("line 2\n", "line two\n"), "tool.sh": "echo\n", "pic.bin": "a\0b"}
        assert tree(d.root) == expected | {"new": "/"}
        assert (d.root / "tool.sh").stat().st_mode & 0o100
        assert "Not applied" not in notices(d)


PICTURE = step("", edit("line 2\n", "line two\n"), shell("printf 'a\\0b' > pic.bin"))


async def accept_in_vain(d: ScriptedSession, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A yes to all, of which the picture cannot be applied."""

    def fail(*_: object) -> None:
        raise ToolError("The disk is full.")

    with monkeypatch.context() as patched:
        if why == "rule":
            deny(d, "@write(*.bin)")
        else:
            patched.setattr(StoredContent, "make", fail)
        await decide_all(d, "accept")
        await settled(d)


@pytest.mark.parametrize("how", ["stay", "reopen", "put away"])
@pytest.mark.parametrize("why", ["rule", "disk"])
async def test_what_an_accepted_draft_could_not_apply_stays_in_it(
    tmp_path: Path, why: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands go on seeing it, and a later yes applies it. A rule is known before anything is applied."""
    later = [step("", edit("line 5\n", "line five\n")), DONE, step("", shell("tr '\\0' ' ' < pic.bin")), DONE]
    async with scripted_session(tmp_path, PICTURE, DONE, *later, mode="draft") as d:
        (d.root / "pic.bin").write_bytes(b"old\0")
        await turn(d)
        await accept_in_vain(d, why, monkeypatch)
        assert "line two" not in tree(d.root)["notes.txt"], "all or nothing"
        assert tree(d.root)["pic.bin"] == "old\0"
        (row,) = rows(d)
        expected = "A rule denies this change." if why == "rule" else "The disk is full."
        assert (row.state, row.reason) == ("conflicted", expected)
        if how == "put away":
            await put_away(d)
        if how != "stay":
            await d.reopen()
        await turn(d, "p2")
        await turn(d, "p3")
        assert "a b" in results(d)[-1]
        await decide_all(d, "accept")
        await settled(d)
        # a rule of the session ends with it
        assert tree(d.root)["pic.bin"] == ("old\0" if (why, how) == ("rule", "stay") else "a\0b")
        assert [row.state for row in rows(d)] == ["conflicted" if (why, how) == ("rule", "stay") else "applied"]
        assert "Amanu was stopped" not in notices(d)


def rows(d: ScriptedSession) -> list[Row]:
    return [row for proposal in d.session.state.proposals for row in proposal.rows]


async def test_a_rule_denies_text_that_was_drafted_before_it(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, PICTURE, DONE, mode="draft") as d:
        await turn(d)
        deny(d, "@write(notes.txt)")
        await decide_all(d, "accept")
        await settled(d)
        assert tree(d.root) == {"notes.txt": TWELVE}
        (hunk,) = d.session.state.proposals[-1].files[0].hunks
        assert (hunk.state, hunk.reason) == ("conflicted", "A rule denies this change.")
        assert [row.state for row in rows(d)] == ["pending"]


async def test_what_the_user_changed_meanwhile_is_theirs(tmp_path: Path) -> None:
    """Nothing is applied until they say what becomes of it."""
    later = [step("", edit("line 5\n", "line five\n"), shell("tr '\\0' ' ' < pic.bin")), DONE]
    async with scripted_session(tmp_path, PICTURE, DONE, *later, mode="draft") as d:
        (d.root / "pic.bin").write_bytes(b"old\0")
        await turn(d)
        (d.root / "pic.bin").write_bytes(b"mine\0")
        await decide_all(d, "accept")
        assert tree(d.root) == {"notes.txt": TWELVE, "pic.bin": "mine\0"}
        (row,) = rows(d)
        assert (row.state, row.reason) == ("conflicted", "The file changed after this was proposed.")
        (draft,) = d.session.state.proposals
        assert draft.files[0].hunks[0].reason == "pic.bin is in conflict, so nothing was applied."
        decision = RowDecision(row_id=row.row_id, decision="reject")
        await d.session.core.proposals.resolve(draft.proposal_id, [], [decision])
        await turn(d, "p2")
        assert any("mine" in result for result in results(d))
        await decide_all(d, "accept")
        await settled(d)
        text = TWELVE.replace("line 2\n", "line two\n").replace("line 5\n", "line five\n")
        assert tree(d.root) == {"notes.txt": text, "pic.bin": "mine\0"}


@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_what_could_not_be_applied_is_forgotten_with_the_turn_that_made_it(
    tmp_path: Path, decision: Literal["accept", "reject"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or when the next draft is rejected."""
    later = [step("", edit("line 5\n", "line five\n")), DONE]
    async with scripted_session(tmp_path, PICTURE, DONE, *later, mode="draft") as d:
        await turn(d)
        await accept_in_vain(d, "disk", monkeypatch)
        if decision == "accept":
            await d.session.core.proposals.drafts.rewind_rows(["turn-p1"], "Rewound.")
        await turn(d, "p2")
        await decide_all(d, decision)
        await settled(d)
        assert "pic.bin" not in tree(d.root)
        assert [row.state for row in rows(d)] == ["rejected"]
        await end_daemon(d)
        assert "Amanu was stopped" not in notices(d)


WAITS = "echo waiting; until grep -q yes go; do sleep 0.05; done"


@pytest.mark.parametrize("decided", ["reject", "accept=own\n", "accept"])
@pytest.mark.parametrize("line", ["true", "echo mine >> notes.txt", "echo other > other.txt"])
async def test_only_a_file_that_a_command_changed_is_said_to_be_in_its_way(
    tmp_path: Path, decided: str, line: str
) -> None:
    """The draft that it found is none of its work, whatever became of that meanwhile."""
    steps = [step("", edit("line 2\n", "line two\n"), shell("chmod +x notes.txt")), step("", shell(f"{WAITS}; {line}"))]
    async with scripted_session(tmp_path, *steps, DONE, mode="draft") as d:
        (d.root / "go").write_text("not yet")
        await d.prompt("go")
        await d.until(lambda state: any("waiting" in i.output for i in state.items if i.kind == "toolCall"))
        await d.decide(decided)
        (d.root / "go").write_text("yes")
        await finish(d)
        await settled(d)
        text = {"reject": "line 2\n", "accept": "line two\n"}.get(decided, "own\n")
        assert tree(d.root)["notes.txt"] == TWELVE.replace("line 2\n", text)
        assert not d.file.stat().st_mode & 0o100
        assert [row.state for row in rows(d)] == ["pending"], "decided by itself"
        touched = line.endswith("notes.txt") and decided != "accept"
        assert ("the command's version was not applied: notes.txt" in results(d)[-1]) == touched
        assert ("other.txt" in [path.name for path in drafted_files(d)]) == line.endswith("other.txt")


def drafted_files(d: ScriptedSession) -> list[Path]:
    return [Path(file.path) for draft in open_drafts(d) for file in draft.files]


async def test_undo_takes_back_all_of_a_draft(tmp_path: Path) -> None:
    line = f"{BESIDES}; echo x > run.sh; chmod +x run.sh"
    async with scripted_session(tmp_path, step("", edit("line 2\n", "2\n"), shell(line)), DONE, mode="draft") as d:
        files(d)
        before = {path: path.lstat().st_mode for path in d.root.rglob("*")}
        await turn(d)
        await decide_all(d, "accept")
        await settled(d)
        undo = ProposalUndoParams(session_id="s", scope=EditScope(turn_id="turn-p1"))
        assert (await d.session.edits.undo(undo)).note == ""
        assert {path: path.lstat().st_mode for path in d.root.rglob("*")} == before


async def put_away(d: ScriptedSession) -> None:
    d.session.detach(d.client)
    await d.sessions.put_away("s")


@pytest.mark.parametrize("how", ["closed", "put away"])
@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_a_session_that_is_opened_again_has_all_of_its_draft(
    tmp_path: Path, how: str, decision: Literal["accept", "reject"]
) -> None:
    steps = [step("", edit("line 2\n", "line two\n"), shell(BESIDES)), DONE]
    later = [step("", shell("ls; test -x tool.sh && echo runs; wc -c pic.bin")), DONE]
    async with scripted_session(tmp_path, *steps, *later, mode="draft") as d:
        files(d)
        before = tree(d.root)
        await turn(d)
        if how == "put away":
            await put_away(d)
            assert d.sessions.opened("s") is None
        await d.reopen()
        assert len(rows(d)) == 5 and not notices(d)
        await turn(d, "p2")
        assert "new\nnotes.txt\npic.bin\ntool.sh\nruns\n3 pic.bin" in results(d)[-1]
        await d.reopen()
        await decide_all(d, decision)
        await settled(d)
        if decision == "accept":
            assert tree(d.root) == {"notes.txt": TWELVE.replace("line 2\n", "line two\n")} | {
                "tool.sh": "echo\n", "pic.bin": "a\0b", "new": "/"
            }  # fmt: skip
        else:
            assert tree(d.root) == before
        assert bool((d.root / "tool.sh").stat().st_mode & 0o100) == (decision == "accept")


@pytest.mark.parametrize("mode", ["ask", "draft"])
async def test_bits_and_folders_that_could_not_be_changed_are_named(tmp_path: Path, mode: Mode) -> None:
    line = "chmod +x tool.sh; mkdir new; echo x > other.txt"
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        files(d)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        (d.root / "tool.sh").unlink()
        (d.root / "new").write_text("a file")
        await d.answer("allow")
        await d.over("p1")
        await settled(d)
        why = {row.path.rpartition("/")[2]: row.reason for row in rows(d) if row.state == "conflicted"}
        assert why == {"tool.sh": "The file is no longer there.", "new": "A file of that name was made meanwhile."}
        assert not (d.root / "other.txt").exists(), "all of it or nothing"
        if mode == "ask":
            command = next(item for item in d.session.state.items if item.kind == "toolCall")
            assert command.state == "failed" and command.title.endswith(": not applied: tool.sh, new")
            assert "tool.sh (becomes executable): not applied: The file is no longer there." in d.told()
