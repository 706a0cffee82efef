"""A yes to changes of several files applies all or none, whatever is in the way; what fits stays open."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu_protocol.items import HunkState, ToolCall
from amanu_protocol.requests import HunkDecision, ProposalResolveParams
from support.draft_session import DONE, decide_all, edit, settled, write
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step
from unit.test_session_layer import git, shell, tree

pytestmark = pytest.mark.layers

Change = Callable[[Path], object]
KINDS: dict[str, tuple[dict[str, Any], str, Change, Change, str]] = {
    "a line": (
        edit("line 2\n", "line two\n"),
        "notes.txt",
        lambda root: (root / "notes.txt").write_text(TWELVE.replace("line 2\n", "mine\n")),
        lambda root: (root / "notes.txt").write_text(TWELVE),
        "in these lines or next to them",
    ),
    "a new file": (
        write("new.txt", "model's\n"),
        "new.txt",
        lambda root: (root / "new.txt").write_text("mine\n"),
        lambda root: (root / "new.txt").unlink(),
        "A file of that name was made meanwhile",
    ),
    "a deleted file": (
        call("delete_file", path="gone.txt"),
        "gone.txt",
        lambda root: (root / "gone.txt").write_text("mine\n"),
        lambda root: (root / "gone.txt").write_text("gone\n"),
        "The file changed after this was proposed",
    ),
    "a moved file": (
        call("move_file", path="gone.txt", new_path="moved.txt"),
        "gone.txt",
        lambda root: (root / "moved.txt").write_text("mine\n"),
        lambda root: (root / "moved.txt").unlink(),
        "There is a file moved.txt now",
    ),
}
"""Kind → the model's change, its file, the user's, how the user takes that back, why it is in conflict."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


def files(d: ScriptedSession) -> None:
    for name in ("a", "b", "gone"):
        (d.root / f"{name}.txt").write_text(f"{name}\n")


def states(d: ScriptedSession) -> dict[str, HunkState]:
    return {Path(file.path).name: file.hunks[0].state for file in d.session.state.proposals[-1].files}


def drafted(kind: str) -> list[dict[str, Any]]:
    others = [edit("a\n", "A\n", "a.txt"), edit("b\n", "B\n", "b.txt")]
    return [step("", *others, KINDS[kind][0], shell("printf 'a\\0' > pic.bin")), DONE]


async def allowed(d: ScriptedSession) -> None:
    """The user says yes, again where they were told that the question is another by now."""
    while await d.answer("allow") == "stale":
        pass


@pytest.mark.parametrize("kind", KINDS)
async def test_an_allowed_draft_is_applied_whole_or_not_at_all(tmp_path: Path, kind: str) -> None:
    _, name, obstruct, clear, why = KINDS[kind]
    async with scripted_session(tmp_path, *drafted(kind), mode="draft") as d:
        files(d)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        obstruct(d.root)
        before = tree(d.root)
        await d.session.core.proposals.catch_up(d.session.state.proposals[-1].proposal_id)
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        said = " ".join(line.text for line in asked.lines)
        assert f"In conflict, so nothing is applied: {name}: " in said and why in said
        await allowed(d)
        await d.over("p1")
        assert tree(d.root) == before
        assert states(d) == {"a.txt": "pending", "b.txt": "pending", name: "conflicted"}
        review = [item for item in d.session.state.items if isinstance(item, ToolCall)][-1]
        assert (review.state, review.title) == ("failed", "Applied 0 of 4 changes of the draft")
        assert review.decision is not None and review.decision.outcome == "reviewed" and why in review.output
        assert name in review.decision.summary
        clear(d.root)
        await decide_all(d, "accept")
        await settled(d)
        assert {*states(d).values()} == {"applied"} and tree(d.root)["pic.bin"] == "a\0"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_decision_on_a_draft_is_carried_out_whole_or_not_at_all(tmp_path: Path, kind: str) -> None:
    """A conflict is found when the user accepts; once they reject the file in conflict, the others can be accepted."""
    _, name, obstruct, _, why = KINDS[kind]
    async with scripted_session(tmp_path, *drafted(kind), mode="draft") as d:
        files(d)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await d.answer("finish")
        await d.over("p1")
        obstruct(d.root)
        before = tree(d.root)
        for _ in range(2):
            await decide_all(d, "accept")
            await settled(d)
            assert tree(d.root) == before
            assert states(d) == {"a.txt": "pending", "b.txt": "pending", name: "conflicted"}
        reasons = {Path(file.path).name: file.hunks[0].reason or "" for file in d.session.state.proposals[-1].files}
        assert why in reasons[name] and all(name in reasons[each] for each in ("a.txt", "b.txt"))
        (proposal,) = d.session.state.proposals
        hunks = [
            HunkDecision(hunk_id=hunk.hunk_id, decision="reject" if file.path.endswith(name) else "accept")
            for file in proposal.files
            for hunk in file.hunks
        ]
        params = ProposalResolveParams(
            session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, hunks=hunks
        )
        assert (await d.session.edits.resolve(params)).status == "resolved"
        assert tree(d.root) == before | {"a.txt": "A\n", "b.txt": "B\n"}


@pytest.mark.parametrize("answer", ["allow", "by hunk"])
async def test_a_command_s_changes_are_applied_whole_or_not_at_all(tmp_path: Path, answer: str) -> None:
    line = "echo A > a.txt; echo B > b.txt; echo new > new.txt; printf 'a\\0' > pic.bin; git add new.txt"
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        files(d)
        for words in ("init -q", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
            git(d.root, *words.split())
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        (d.root / "new.txt").write_text("mine\n")
        before = tree(d.root)
        if answer == "allow":
            await allowed(d)
        else:
            await decide_all(d, "accept")
            await d.answer("finish")
        await d.over("p1")
        assert tree(d.root) == before and git(d.root, "status", "--porcelain") == "?? new.txt\n"
        command = [item for item in d.session.state.items if isinstance(item, ToolCall)][-1]
        assert command.state == "failed" and command.title.endswith(": nothing changed")
        assert states(d) == {"a.txt": "pending", "b.txt": "pending", "new.txt": "conflicted"}
        assert "A file of that name was made meanwhile" in command.output
