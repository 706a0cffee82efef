"""Faults around rows: what a commit needs is missing, the disk is full, the daemon is killed, the user saves
at the same moment. Nothing is applied that was not decided on, and nothing of the user's is lost."""

import contextlib
import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import CallContext, Outcome
from amanu.permissions import approvals as approval
from amanu.proposals import tracking, transaction
from amanu.proposals.model import LiveProposal
from amanu.proposals.row_plan import StoredContent
from amanu.proposals.rows import LiveRow, RowChange
from amanu.proposals.transaction import Transactions
from amanu.storage import journal_sqlite
from amanu.storage.audit_log import AuditLog
from amanu.storage.journal import Journal
from amanu.tools.review_draft import ReviewDraft, ReviewDraftParams
from amanu.tools.shell import row_changes
from amanu.workspace import disk_changes
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode, Proposal, RowVersion
from amanu_protocol.requests import (
    AuditQueryParams,
    CheckpointRestoreParams,
    EditScope,
    HunkDecision,
    ProposalResolveParams,
    ProposalReviseParams,
    ProposalUndoParams,
    ProposalUndoResult,
    RowDecision,
)
from support.draft_session import DONE, decide_all, deny, edit, end_daemon, results, turn, write
from support.required_programs import needs
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step
from unit.test_session_commits import WITH_MINE, asked, asked_to_commit, commits, last_call, repository
from unit.test_session_layer import git, shell, tree
from unit.test_session_yes import rows

pytestmark = pytest.mark.layers

Act = Callable[[ScriptedSession], Awaitable[object]]
OWN = "the user's\n"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


def named(d: ScriptedSession) -> dict[str, str]:
    """Name → state of each row."""
    return {Path(row.path).name: row.state for row in rows(d)}


async def resolve(d: ScriptedSession, hunks: Sequence[HunkDecision] = (), rows: Sequence[RowDecision] = ()) -> None:
    proposal = d.session.state.proposals[-1]
    params = ProposalResolveParams(
        session_id="s",
        proposal_id=proposal.proposal_id,
        version=proposal.version,
        hunks=list(hunks),
        rows=list(rows),
    )
    assert (await d.session.edits.resolve(params)).status == "resolved"


async def undo_all(d: ScriptedSession, *, dry_run: bool = False) -> ProposalUndoResult:
    return await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope(), dry_run=dry_run))


async def rewind(d: ScriptedSession, turn_id: str) -> None:
    params = CheckpointRestoreParams(session_id="s", turn_id=turn_id, files=True, conversation=True)
    await d.session.checkpoints.restore(params)


# A commit and what it needs ---------------------------------------------------------------------------


async def revise(d: ScriptedSession) -> None:
    proposal = d.session.state.proposals[-1]
    hunk_id = proposal.files[0].hunks[0].hunk_id
    params = ProposalReviseParams(
        session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, hunk_id=hunk_id, new_text=OWN
    )
    await d.session.edits.revise(params)


async def undo(d: ScriptedSession) -> None:
    await d.decide("accept")
    await undo_all(d)


async def type_there(d: ScriptedSession) -> None:
    d.file.write_text(TWELVE.replace("line 12\n", OWN))


TEXT: Mapping[str, Act] = {
    "revised": revise,
    "undone": undo,
    "rejected": lambda d: d.decide("reject"),
    "accepted with other text": lambda d: d.decide(f"accept={OWN}"),
    "in conflict": type_there,
}


async def allow(d: ScriptedSession) -> None:
    await end(d, "allow")


async def accept_row(d: ScriptedSession) -> None:
    (row,) = rows(d)
    await d.decide_rows("redo" if row.state == "rejected" else "accept")


async def redo_row(d: ScriptedSession) -> None:
    await d.decide_rows("reject")
    with contextlib.suppress(AmanuError):  # the command may have ended with it
        await d.decide_rows("redo")


YES: Mapping[str, Act] = {"allow": allow, "accept the row": accept_row, "redo the row": redo_row}


async def end(d: ScriptedSession, answer: str = "reject") -> None:
    """Wait until the turn has ended. Its first question gets that answer, and each later one a no."""
    while (await d.until(lambda state: state.approvals or state.last_turn)).approvals:
        await d.answer(answer)
        answer = "reject"
    await d.over("p1")


@pytest.mark.parametrize("yes", YES)
@pytest.mark.parametrize("text", TEXT)
async def test_a_commit_is_not_applied_without_its_text(tmp_path: Path, text: str, yes: str) -> None:
    async with asked_to_commit(tmp_path) as d:
        await TEXT[text](d)
        await YES[yes](d)
        await end(d)
        (row,) = rows(d)
        assert commits(d.root) == ["first"] and row.state in ("rejected", "conflicted")
        assert "mine" not in d.file.read_text()


@pytest.mark.parametrize(
    "decision",
    [HunkDecision(hunk_id="", decision="reject"), HunkDecision(hunk_id="", decision="accept", new_text=OWN)],
    ids=["reject", "other text"],
)
async def test_a_commit_is_not_applied_with_a_decision_against_its_text(tmp_path: Path, decision: HunkDecision) -> None:
    """Both decisions are in one request."""
    async with asked_to_commit(tmp_path) as d:
        hunk_id = d.session.state.proposals[-1].files[0].hunks[0].hunk_id
        (row,) = rows(d)
        row_decision = RowDecision(row_id=row.row_id, decision="accept")
        await resolve(d, [decision.model_copy(update={"hunk_id": hunk_id})], [row_decision])
        await end(d)
        assert commits(d.root) == ["first"] and rows(d)[0].state != "applied"


@pytest.mark.parametrize("yes", YES)
async def test_open_text_is_applied_along_with_its_commit(tmp_path: Path, yes: str) -> None:
    async with asked_to_commit(tmp_path) as d:
        await YES[yes](d)
        await d.over("p1")
        assert commits(d.root) == ["mine", "first"] and d.file.read_text() == WITH_MINE
        assert git(d.root, "status", "--porcelain") == ""


Fault = Callable[[ScriptedSession, pytest.MonkeyPatch], None]


def damage(d: ScriptedSession, monkeypatch: pytest.MonkeyPatch) -> None:
    after = rows(d)[0].after
    assert after is not None
    stored = d.session.core.journal.folder / "files" / after.file_id
    stored.chmod(0o600)
    stored.write_bytes(b"xx")


def refuse(d: ScriptedSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(StoredContent, "make", fail)


def save_meanwhile(d: ScriptedSession, monkeypatch: pytest.MonkeyPatch) -> None:
    when_checked(monkeypatch, lambda: (d.root / "pic.bin").write_bytes(b"mine\0"))


def when_checked(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let `act` happen between the check of the workspace and its change."""
    real, todo = disk_changes.make_all, [act]

    def make(*arguments: Any) -> None:
        while todo:
            todo.pop()()
        real(*arguments)

    monkeypatch.setattr(transaction, "make_all", make)


FAULTS: Mapping[str, Fault] = {"damaged": damage, "refused": refuse, "saved meanwhile": save_meanwhile}


@pytest.mark.parametrize("yes", ["allow", "accept the rows"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_commit_is_not_applied_without_a_file_that_it_needs(
    tmp_path: Path, fault: str, yes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "printf 'b\\0' > pic.bin; git add pic.bin && git commit -qm pic"
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        repository(d.root)
        await asked(d)
        FAULTS[fault](d, monkeypatch)
        await (d.answer("allow") if yes == "allow" else d.decide_rows("", "accept"))
        await end(d)
        assert commits(d.root) == ["first"]
        assert not [row for row in rows(d) if row.state == "applied"]
        assert tree(d.root).get("pic.bin") == ("mine\0" if fault == "saved meanwhile" else None)


# Ids --------------------------------------------------------------------------------------------------


async def test_the_id_of_a_row_is_never_given_again(tmp_path: Path) -> None:
    steps = [
        step("", edit("line 2\n", "line two\n")),
        step("", shell("printf 'a\\0b' > one.bin; printf 'a\\0b' > two.bin")),
        step("", shell("rm one.bin")),
        DONE,
        step("", shell("chmod +x notes.txt; printf 'c\\0' > three.bin")),
        DONE,
    ]
    seen: dict[str, set[str]] = {}

    def note(proposal: Proposal) -> None:
        for row in proposal.rows:
            seen.setdefault(row.row_id, set()).add(Path(row.path).name)

    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        d.session.core.proposal_listeners.append(note)
        await turn(d)
        await end_daemon(d)
        d.session.core.proposal_listeners.append(note)
        await turn(d, "p2")
        assert sorted(map(sorted, seen.values())) == [["notes.txt"], ["one.bin"], ["three.bin"], ["two.bin"]]


# On record first --------------------------------------------------------------------------------------

CHANGES = "printf 'new\\0' > old.bin; printf 'm\\0' > made.bin; rm gone.bin; chmod +x notes.txt; mkdir folder"
DRAFTED = [step("", shell(CHANGES)), DONE]


def files(d: ScriptedSession) -> dict[str, str]:
    """Make what `CHANGES` changes. Returns the workspace as it is then."""
    (d.root / "old.bin").write_bytes(b"user\0")
    (d.root / "gone.bin").write_bytes(b"gone\0")
    return tree(d.root)


async def full_log(log: AuditLog) -> None:
    raise AmanuError("storageError", "The disk is full.")


def full_database(*arguments: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


RECORDS: Mapping[str, tuple[object, str, Callable[..., object]]] = {
    "audit log": (AuditLog, "durable", full_log),
    "journal": (journal_sqlite, "insert", full_database),
}


@contextlib.contextmanager
def full(monkeypatch: pytest.MonkeyPatch, record: str) -> Generator[None]:
    """A context in which nothing can be written to that record. Its body must fail because of that."""
    with monkeypatch.context() as broken, pytest.raises(AmanuError, match="disk is full"):
        broken.setattr(*RECORDS[record])
        yield


def is_executable(d: ScriptedSession) -> bool:
    return bool(d.file.stat().st_mode & 0o100)


@pytest.mark.parametrize("record", RECORDS)
async def test_a_decision_that_cannot_be_recorded_changes_nothing(
    tmp_path: Path, record: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_session(tmp_path, *DRAFTED, mode="draft") as d:
        before = files(d)
        await turn(d)
        with full(monkeypatch, record):
            await decide_all(d, "accept")
        assert (tree(d.root), is_executable(d), set(named(d).values())) == (before, False, {"pending"})
        await decide_all(d, "accept")
        after = tree(d.root)
        assert after != before and is_executable(d) and set(named(d).values()) == {"applied"}
        with full(monkeypatch, record):
            await undo_all(d)
        assert (tree(d.root), is_executable(d), set(named(d).values())) == (after, True, {"applied"})
        await undo_all(d)
        assert (tree(d.root), is_executable(d)) == (before, False)


async def test_a_row_says_that_its_decision_could_not_be_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_session(tmp_path, *DRAFTED, mode="draft") as d:
        files(d)
        await turn(d)
        with full(monkeypatch, "journal"):
            await decide_all(d, "accept")
        assert all("disk is full" in (row.reason or "") for row in rows(d))


async def test_the_audit_log_has_the_changes_of_rows(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *DRAFTED, mode="draft") as d:
        files(d)
        await turn(d)
        await decide_all(d, "accept")
        log = await d.sessions.audit_query(AuditQueryParams(session_id="s", limit=1000))
        changing = {Path(str(entry.data["path"])).name for entry in log.entries if entry.kind == "changing"}
        assert changing == {"old.bin", "made.bin", "gone.bin", "notes.txt", "folder"}


async def test_a_decision_is_on_record_before_it_changes_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_session(tmp_path, *DRAFTED, mode="draft") as d:
        before = files(d)
        await turn(d)
        folder, found = d.session.core.journal.folder, list[bool]()
        real = Transactions._change_files  # pyright: ignore[reportPrivateUsage]

        async def look(*arguments: Any) -> None:
            assert tree(d.root) == before
            found.append('"state":"accepted"' in await recorded(folder))
            await real(*arguments)

        assert '"state":"accepted"' not in await recorded(folder)
        monkeypatch.setattr(Transactions, "_change_files", look)
        await decide_all(d, "accept")
        assert found == [True]


async def recorded(folder: Path) -> str:
    """The journal as it is on the disk."""
    journal = await Journal.read(folder)
    try:
        return "\n".join(record.event for record in await journal.records())
    finally:
        await journal.close()


async def die(d: ScriptedSession, monkeypatch: pytest.MonkeyPatch, *, changes: bool) -> None:
    """Accept all, and leave the session as a daemon leaves it that is killed after the changes are noted, or made."""
    folder = d.session.core.journal.folder
    kept = folder.with_name("kept")
    real = Transactions._change_files  # pyright: ignore[reportPrivateUsage]

    async def killed(*arguments: Any) -> None:
        if changes:
            await real(*arguments)
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns(".tmp-*"))

    with monkeypatch.context() as patched:
        patched.setattr(Transactions, "_change_files", killed)
        await decide_all(d, "accept")
    await d.sessions.close("s")
    shutil.rmtree(folder)
    kept.rename(folder)


@pytest.mark.parametrize(("user", "is_set"), [("", True), ("mine\n", False)])
@pytest.mark.parametrize("line", ["echo more >> notes.txt", "mv notes.txt b.txt", "echo x > b.txt; rm notes.txt"])
async def test_a_file_that_the_user_replaced_after_a_kill_keeps_its_bits(
    tmp_path: Path, line: str, user: str, is_set: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "notes.txt" if "more" in line else "b.txt"
    steps = [step("", shell(f"{line}; printf 'm\\0' > made.bin")), step("", shell(f"chmod +x {path}")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await die(d, monkeypatch, changes=True)
        (file := d.root / path).chmod(0o644)
        if user:
            file.write_text(user)
        await d.reopen()
        assert named(d)["made.bin"] == "applied"
        assert bool(file.stat().st_mode & 0o100) == is_set


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_daemon_killed_at_a_change_knows_whether_it_is_done(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_session(tmp_path, *DRAFTED, mode="draft") as d:
        before = files(d)
        await turn(d)
        await die(d, monkeypatch, changes=moment == "after")
        await d.reopen()
        assert set(named(d).values()) == {"pending" if moment == "before" else "applied"}
        assert (tree(d.root) == before) == (moment == "before")
        await decide_all(d, "accept")
        assert set(named(d).values()) == {"applied"} and tree(d.root)["old.bin"] == "new\0"
        await undo_all(d)
        assert (tree(d.root), is_executable(d)) == (before, False)


# What is the user's -----------------------------------------------------------------------------------


async def test_what_a_full_store_cannot_keep_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_changes, "MAX_STORE", 0)
    line = "printf 'new\\0' > old.bin; rm gone.bin; printf 'm\\0' > made.bin"
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="acceptEdits") as d:
        files(d)
        await asked(d)
        assert d.session.state.approvals[0].detail.count(row_changes.NO_UNDO) == 2
        warnings = {Path(row.path).name: [line.text for line in row.lines] for row in rows(d)}
        assert warnings == {"old.bin": [row_changes.NO_UNDO], "gone.bin": [row_changes.NO_UNDO], "made.bin": []}
        await d.answer("allow")
        await d.over("p1")
        assert sorted(last_call(d.session).not_undone) == ["gone.bin", "old.bin"]
        for dry_run in (True, False):
            undone = await undo_all(d, dry_run=dry_run)
            skipped = {Path(file.path).name: [each.reason for each in file.skipped] for file in undone.files}
            assert skipped == {"old.bin": [row_changes.NO_UNDO], "gone.bin": [row_changes.NO_UNDO], "made.bin": []}
            assert {Path(file.path).name: file.action for file in undone.files} == {
                "old.bin": "none",
                "gone.bin": "none",
                "made.bin": "delete",
            }
            assert "gone.bin" in undone.note and "old.bin" in undone.note
        assert tree(d.root) == {"notes.txt": TWELVE, "old.bin": "new\0"}
        assert named(d) == {"old.bin": "applied", "gone.bin": "applied", "made.bin": "reverted"}


def save(path: Path) -> None:
    path.write_bytes(b"mine\0")


def save_another(path: Path) -> None:
    """Save it like an editor that writes a new file first."""
    new = path.with_name("new")
    new.write_bytes(b"mine\0")
    new.rename(path)


@pytest.mark.parametrize("saves", [save, save_another])
@pytest.mark.parametrize(
    "line", ["printf 'new\\0' > old.bin", "rm old.bin", "printf 'm\\0' > made.bin"], ids=["replaced", "deleted", "new"]
)
async def test_what_the_user_saves_between_check_and_change_is_kept(
    tmp_path: Path, line: str, saves: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = line.split()[-1]
    async with scripted_session(tmp_path, step("", shell(f"printf 'x\\0' > a.bin; {line}")), DONE) as d:
        files(d)
        await asked(d)
        when_checked(monkeypatch, lambda: saves(d.root / name))
        await d.answer("allow")
        await d.over("p1")
        assert tree(d.root)[name] == "mine\0" and named(d) == {"a.bin": "pending", name: "conflicted"}


# Drafts -----------------------------------------------------------------------------------------------

TEXTS = [step("", edit("line 2\n", "line two\n"), write("made.txt", "made\n"))]


@pytest.mark.parametrize("name", ["notes.txt", "made.txt"])
@pytest.mark.parametrize(
    "line, expected",
    [
        ("printf 'a\\0b' > {}", "a\0b"),
        ("rm {}; ln -s other {}", "-> other"),
        ("printf 'a\\0b' > {}; chmod +x {}", "a\0b"),
    ],
    ids=["binary", "link", "executable"],
)
async def test_what_is_no_text_takes_the_place_of_drafted_text(
    tmp_path: Path, line: str, expected: str, name: str
) -> None:
    steps = [*TEXTS, step("", shell(line.replace("{}", name))), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        (draft,) = d.session.state.proposals
        texts = {Path(file.path).name for file in draft.files if file.hunks}
        assert texts == {"notes.txt", "made.txt"} - {name} and [*named(d)] == [name]
        await decide_all(d, "accept")
        assert tree(d.root)[name] == expected and named(d) == {name: "applied"}


@pytest.mark.parametrize(
    "change", [edit("line 2\n", "line two\n"), write("notes.txt", "x\n"), call("delete_file", path="notes.txt")]
)
@pytest.mark.parametrize(
    "line", ["printf 'a\\0b' > notes.txt", "rm notes.txt; ln -s other notes.txt"], ids=["binary", "link"]
)
async def test_text_does_not_take_the_place_of_what_a_command_drafted(
    tmp_path: Path, line: str, change: dict[str, Any]
) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), step("", change), DONE, mode="draft") as d:
        await turn(d)
        assert "A command has drafted another version of notes.txt, which is not text." in results(d)[1]
        assert not any(file.hunks for proposal in d.session.state.proposals for file in proposal.files)
        await decide_all(d, "accept")
        assert named(d) == {"notes.txt": "applied"} and tree(d.root)["notes.txt"] in ("a\0b", "-> other")


async def test_a_command_turns_what_it_drafted_back_into_text(tmp_path: Path) -> None:
    steps = [step("", shell("printf 'a\\0b' > notes.txt")), step("", shell("printf 'text\\n' > notes.txt")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        assert rows(d) == []
        await decide_all(d, "accept")
        assert tree(d.root) == {"notes.txt": "text\n"}


async def test_a_rewind_brings_back_what_a_later_turn_undid(tmp_path: Path) -> None:
    steps = [step("", shell("printf 'a\\0b' > one.bin")), DONE, step("", shell("rm one.bin")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await turn(d, "p2")
        assert named(d) == {"one.bin": "rejected"}
        await rewind(d, "turn-p2")
        assert named(d) == {"one.bin": "pending"}
        await decide_all(d, "accept")
        assert tree(d.root)["one.bin"] == "a\0b"


async def test_a_drafted_binary_becomes_executable(tmp_path: Path) -> None:
    steps = [
        step("", shell("printf 'a\\0b' > tool.bin")),
        step("", shell("chmod +x tool.bin")),
        step("", shell("test -x tool.bin && echo executable")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        assert [row.title for row in rows(d)] == ["new binary file, 3 bytes, executable"]
        assert results(d)[-1].startswith("executable")
        await decide_all(d, "accept")
        assert (d.root / "tool.bin").stat().st_mode & 0o111 == 0o111


async def test_the_executable_bit_of_a_drafted_file_goes_with_it(tmp_path: Path) -> None:
    steps = [
        step("", write("made.sh", "x\n")),
        step("", shell("chmod +x made.sh")),
        step("", call("delete_file", path="made.sh")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        assert not [row for row in rows(d) if row.state == "pending"]


@pytest.mark.xfail(strict=True, reason="a yes to the draft is one to what is drafted before it is carried out")
async def test_a_yes_to_a_draft_is_none_to_what_is_drafted_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ReviewDraft.run

    async def late(self: ReviewDraft, params: ReviewDraftParams, context: CallContext) -> Outcome:
        unseen = RowChange("folder", d.root / "unseen", None, RowVersion(kind="folder"))
        await d.session.core.proposals.propose(context, [], [unseen])
        return await real(self, params, context)

    async with scripted_session(tmp_path, step("", shell("printf 'a\\0' > a.bin")), DONE, mode="draft") as d:
        monkeypatch.setattr(ReviewDraft, "run", late)
        await asked(d)
        await d.answer("allow")
        await d.over("p1")
        assert named(d) == {"a.bin": "applied", "unseen": "pending"}


def test_a_rewound_link_says_that_it_leads_out() -> None:
    path, title = Path("/w/link"), "link to /etc/passwd, outside the workspace"
    out, inside = RowVersion(kind="link", target="/etc/passwd"), RowVersion(kind="link", target="notes.txt")
    row = LiveRow("p-1.r1", "turn-1", RowChange("link", path, None, out, title))
    row.redraft(RowChange("link", path, None, inside, "link to notes.txt"), "turn-2", "c2")
    row = LiveRow.load(row.wire([]))
    assert row.rewind(["turn-2"])
    assert (row.wire([]).title, row.change.after) == (title, out)


# Smaller ones -----------------------------------------------------------------------------------------


async def test_a_folder_is_not_removed_through_a_link(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell("rmdir sub/empty")), DONE, mode="draft") as d:
        (d.root / "sub" / "empty").mkdir(parents=True)
        (tmp_path / "outside" / "empty").mkdir(parents=True)
        await turn(d)
        (d.root / "sub").rename(tmp_path / "was")
        (d.root / "sub").symlink_to(tmp_path / "outside")
        await decide_all(d, "accept")
        (row,) = rows(d)
        assert (row.state, row.reason) == ("conflicted", "sub is no folder now.")
        assert (tmp_path / "outside" / "empty").is_dir() and (tmp_path / "was" / "empty").is_dir()


async def test_a_rule_against_deletions_stops_that_of_a_binary(tmp_path: Path) -> None:
    line = "rm gone.bin; printf 'new\\0' > old.bin"
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="draft") as d:
        before = files(d)
        await turn(d)
        deny(d, "delete_file(*)")
        await decide_all(d, "accept")
        reasons = {Path(row.path).name: row.reason for row in rows(d) if row.state == "conflicted"}
        assert reasons == {"gone.bin": "A rule denies this change."} and tree(d.root) == before


async def test_a_rule_stops_what_is_to_be_applied_again(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, *DRAFTED, mode="draft") as d:
        before = files(d)
        await turn(d)
        await decide_all(d, "accept")
        await undo_all(d)
        deny(d, "@write(*)")
        await resolve(d, [], [RowDecision(row_id=row.row_id, decision="redo") for row in rows(d)])
        assert {(row.state, row.reason) for row in rows(d)} == {("conflicted", "A rule denies this change.")}
        assert tree(d.root) == before and not is_executable(d)


@pytest.mark.parametrize("mode", ["ask", "draft"])
async def test_a_link_to_a_name_that_is_no_text_is_applied(tmp_path: Path, mode: Mode) -> None:
    line = "ln -s $(printf '\\377') link; echo more >> notes.txt"
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        await asked(d)
        assert [row.title for row in rows(d)] == ["link to \\udcff"]
        await d.answer("allow")
        await d.over("p1")
        assert (d.root / "link").readlink() == Path("\udcff") and d.file.read_text() == f"{TWELVE}more\n"


async def test_a_file_that_cannot_be_read_is_deleted_with_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., int] = os.open

    def opened(path: Any, *arguments: Any, **more: Any) -> int:
        if str(path).endswith("/locked.bin"):  # as for anybody but root
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **more)

    line = "echo hi > notes.txt; rm -f locked.bin"
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        (d.root / "locked.bin").write_bytes(b"x\0")
        (d.root / "locked.bin").chmod(0)
        monkeypatch.setattr(os, "open", opened)
        await asked(d)
        assert [line.text for row in rows(d) for line in row.lines] == [row_changes.NO_UNDO]
        await d.answer("allow")
        await d.over("p1")
        assert tree(d.root) == {"notes.txt": "hi\n"} and named(d) == {"locked.bin": "applied"}


def test_telling_of_a_proposal_takes_as_long_as_it_has_rows() -> None:
    times = {count: min(seconds_of_wire(count) for _ in range(3)) for count in (500, 2_000)}
    assert times[2_000] < 8 * times[500], times


def seconds_of_wire(count: int) -> float:
    live = LiveProposal("p-1", "turn-1", 1, ["c"], [], draft=True)
    version = RowVersion(kind="file", size=3, mode=0o644, file_id="a" * 64)
    changes = [RowChange("file", Path(f"/w/folder/{nth}.bin"), None, version) for nth in range(count)]
    live.rows = [LiveRow(f"p-1.r{nth}", "turn-1", change) for nth, change in enumerate(changes)]
    began = time.process_time()
    live.wire()
    return time.process_time() - began
