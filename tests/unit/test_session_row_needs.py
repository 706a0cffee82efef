"""A change that needs others is never made without them: no commit is made without its files, and no folder is deleted
before what is in it."""

import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from amanu.core.rules import Kind
from amanu.permissions import approvals as approval
from amanu.permissions.offers import rules_of
from amanu.proposals import tracking
from amanu.proposals.row_plan import DENIED
from amanu_protocol.items import Hunk, Mode, Row
from amanu_protocol.requests import EditScope, HunkDecision, ProposalResolveParams, ProposalUndoParams, RowDecision
from support.draft_session import DONE, decide_all, deny, finish
from support.required_programs import needs
from support.row_session import changed, files, look, name, undo
from support.row_session import decide as decide_rest
from support.scripted_session import TWELVE, ScriptedSession, call, scripted_session, step
from unit.test_session_layer import git

pytestmark = pytest.mark.layers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


def changes(d: ScriptedSession) -> dict[str, Hunk | Row]:
    """The hunks of the last proposal by their file, and its rows by kind and path."""
    proposal = d.session.state.proposals[-1]
    hunks = {Path(file.path).name: hunk for file in proposal.files for hunk in file.hunks}
    return {**hunks, **{row.kind if row.kind == "git" else f"{row.kind} {name(d, row)}": row for row in proposal.rows}}


def states(d: ScriptedSession) -> dict[str, str]:
    return {each: change.state for each, change in changes(d).items()}


def needed(d: ScriptedSession, change: str) -> set[str]:
    row, ids = changes(d)[change], {}
    assert isinstance(row, Row)
    for each, other in changes(d).items():
        ids[other.hunk_id if isinstance(other, Hunk) else other.row_id] = each
    return {ids[each] for each in row.needs}


async def decide(d: ScriptedSession, decisions: Mapping[str, str]) -> None:
    """Decide each change: "accept", "reject" or "accept=own text"; all in one request."""
    proposal, hunks, rows = d.session.state.proposals[-1], list[HunkDecision](), list[RowDecision]()
    for each, text in decisions.items():
        word, own, new_text = text.partition("=")
        change = changes(d)[each]
        if isinstance(change, Row):
            rows.append(RowDecision(row_id=change.row_id, decision=word))
        else:
            hunks.append(HunkDecision(hunk_id=change.hunk_id, decision=word, new_text=new_text if own else None))
    params = ProposalResolveParams(
        session_id="s", proposal_id=proposal.proposal_id, version=proposal.version, hunks=hunks, rows=rows
    )
    assert (await d.session.edits.resolve(params)).status == "resolved"


def repository(root: Path) -> None:
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
        git(root, *line.split())


def commits(root: Path) -> list[str]:
    return git(root, "log", "--format=%s").split()


COMMIT = (
    "echo mine >> notes.txt; printf 'c\\0d' > pic.bin; chmod +x tool.sh; echo other > other.txt; "
    "git add notes.txt pic.bin tool.sh; git commit -qm mine"
)
MINE: dict[str, str | None] = {
    "notes.txt": f"{TWELVE}mine\n",
    "pic.bin": "c\0d",
    "tool.sh": "755: echo\n",
    "other.txt": "other\n",
}
ROWS = {"file pic.bin", "mode tool.sh"}
Decisions = Sequence[Mapping[str, str]]
"""One request after the other."""

COMMITS: list[tuple[str, Decisions, set[str], str]] = [
    ("the commit takes what is in it", [{"git": "accept"}], {"notes.txt", "pic.bin", "tool.sh"}, ""),
    (
        "all of it, one after the other",
        [{"notes.txt": "accept"}, {"file pic.bin": "accept"}, {"mode tool.sh": "accept"}, {"git": "accept"}],
        {"notes.txt", "pic.bin", "tool.sh"},
        "",
    ),
    (
        "the rest is of no account",
        [{"other.txt": "reject", "git": "accept"}],
        {"notes.txt", "pic.bin", "tool.sh"},
        "",
    ),
    ("a hunk is rejected", [{"notes.txt": "reject"}], set(), "This needs notes.txt, which was rejected."),
    (
        "a hunk is rejected in that breath",
        [{"git": "accept", "notes.txt": "reject"}],
        {"pic.bin", "tool.sh"},
        "This needs notes",
    ),
    (
        "a hunk is edited",
        [{"notes.txt": "accept=own\n"}],
        {"own"},
        "This needs notes.txt, which was edited in the review.",
    ),
    ("a row is rejected", [{"file pic.bin": "reject"}], set(), "This needs pic.bin, which was rejected."),
    ("a bit is rejected", [{"mode tool.sh": "reject"}], set(), "This needs tool.sh, which was rejected."),
    (
        "a rest was rejected before",
        [{"file pic.bin": "reject"}, {"notes.txt": "accept"}],
        {"notes.txt"},
        "This needs pic.bin, ",
    ),
    ("the commit is rejected", [{"git": "reject"}], set(), "-"),
]
"""The decisions, the files of the commit that are changed then, and why the commit was rejected, if it was."""


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "draft"])
@pytest.mark.parametrize(("title", "decisions", "applied", "reason"), COMMITS, ids=[case[0] for case in COMMITS])
async def test_a_commit_comes_with_its_files(
    tmp_path: Path, mode: Mode, title: str, decisions: Decisions, applied: set[str], reason: str
) -> None:
    async with scripted_session(tmp_path, step("", call("run_shell_command", command=COMMIT)), DONE, mode=mode) as d:
        files(d.root)
        repository(d.root)
        before = look(d.root)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        assert needed(d, "git") == {"notes.txt", *ROWS} and look(d.root) == before
        for each in decisions:
            await decide(d, each)
        wanted = {path: text for path, text in MINE.items() if path in applied}
        wanted |= {"notes.txt": f"{TWELVE}own\n"} if "own" in applied else {}
        assert look(d.root) == changed(before, wanted)
        assert commits(d.root) == (["first"] if reason else ["mine", "first"])
        row = changes(d)["git"]
        assert row.state == ("rejected" if reason else "applied")
        assert (row.reason or "-").startswith(reason)
        if not reason:
            assert git(d.root, "status", "--porcelain") == "" and git(d.root, "fsck", "--strict") == ""


@asynccontextmanager
async def committed(tmp_path: Path) -> AsyncGenerator[ScriptedSession]:
    """A session that asks about a commit."""
    async with scripted_session(tmp_path, step("", call("run_shell_command", command=COMMIT)), DONE) as d:
        files(d.root)
        repository(d.root)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        yield d


async def test_a_commit_that_was_rejected_can_be_made_after_all(tmp_path: Path) -> None:
    async with committed(tmp_path) as d:
        await decide(d, dict.fromkeys(["notes.txt", "other.txt", *ROWS], "accept") | {"git": "reject"})
        await d.over("p1")
        assert commits(d.root) == ["first"]
        await decide(d, {"git": "redo"})
        assert commits(d.root) == ["mine", "first"] and git(d.root, "fsck", "--strict") == ""


async def test_a_commit_is_undone_with_its_files_and_made_again(tmp_path: Path) -> None:
    async with committed(tmp_path) as d:
        before = look(d.root), git(d.root, "status", "--porcelain")
        await decide_all(d, "accept")
        await d.over("p1")
        after = look(d.root)
        for _ in range(2):
            params = ProposalUndoParams(session_id="s", scope=EditScope(), dry_run=True)
            assert not [each for file in (await d.session.edits.undo(params)).files for each in file.skipped]
            undone = await undo(d)
            assert not [each for file in undone for each in file.skipped]
            assert ("edit", str(d.root / ".git")) in [(file.action, file.path) for file in undone]
            assert commits(d.root) == ["first"]
            assert (look(d.root), git(d.root, "status", "--porcelain")) == before
            await decide_rest(d, "redo")
            assert (commits(d.root), look(d.root)) == (["mine", "first"], after)
            assert git(d.root, "status", "--porcelain") == "?? other.txt\n" and git(d.root, "fsck", "--strict") == ""


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "auto", "draft"])
@pytest.mark.parametrize(
    ("kind", "rule", "line"),
    [
        ("deny", "write_file(.git/**)", "git commit -qam second"),
        ("deny", "write_file(.git/refs/heads/main)", "git commit -qam second"),
        ("deny", "write_file(.git/HEAD)", "git checkout -qb other"),
        ("deny", "write_file(.git/index)", "git add ."),
        ("mustAsk", "write_file(.git/**)", "git commit -qam second"),
        ("mustAsk", "write_file(.git/index)", "git add ."),
    ],
)
async def test_rules_hold_for_what_git_writes(tmp_path: Path, mode: Mode, kind: Kind, rule: str, line: str) -> None:
    async with scripted_session(tmp_path, step("", call("run_shell_command", command=line)), DONE, mode=mode) as d:
        repository(d.root)
        d.file.write_text("typed\n")
        before = git(d.root, "log", "--all", "--format=%s %D"), git(d.root, "status", "--porcelain")
        for each in rules_of(rule, "session", kind):
            d.session.core.approvals.allow_in_session(each)
        await d.prompt("go")
        state = await d.until(lambda state: state.approvals or state.last_turn)
        assert bool(state.approvals) == (kind == "mustAsk")
        assert (git(d.root, "log", "--all", "--format=%s %D"), git(d.root, "status", "--porcelain")) == before
        if kind == "mustAsk":
            await d.answer("allow")
            await d.over("p1")
            assert git(d.root, "status", "--porcelain") == ("" if "commit" in line else "M  notes.txt\n")


async def test_a_commit_is_not_made_if_a_rule_has_denied_it_since(tmp_path: Path) -> None:
    async with committed(tmp_path) as d:
        deny(d, "write_file(.git/**)")
        await decide_all(d, "accept")
        assert (states(d)["git"], changes(d)["git"].reason) == ("conflicted", DENIED)
        assert commits(d.root) == ["first"] and d.file.read_text() == TWELVE


SINCE: dict[str, tuple[str, str]] = {
    "another commit": ("git commit -qm more --allow-empty", "branch"),
    "pushed": ("git update-ref refs/remotes/origin/main HEAD", "pushed"),
    "pushed, and more": (
        "git update-ref refs/remotes/origin/main $(git commit-tree -p HEAD -m more HEAD^{tree})",
        "pushed",
    ),
    "a merge runs": ("git rev-parse HEAD > .git/MERGE_HEAD", "merge"),
    "another branch": ("git checkout -qb other", "HEAD"),
}
"""The user's act after the yes, and a word of the reason why the commit stays."""


@pytest.mark.parametrize("since", SINCE)
async def test_a_commit_that_others_build_on_is_not_undone(tmp_path: Path, since: str) -> None:
    line, word = SINCE[since]
    async with committed(tmp_path) as d:
        await decide_all(d, "accept")
        await d.over("p1")
        subprocess.run(["sh", "-c", line], cwd=d.root, check=True)
        left = commits(d.root)
        params = ProposalUndoParams(session_id="s", scope=EditScope(), dry_run=True)
        told = [each.reason for file in (await d.session.edits.undo(params)).files for each in file.skipped]
        reasons = [each.reason for file in await undo(d) for each in file.skipped]
        assert told == reasons and len(reasons) == 1 and word in reasons[0]
        assert commits(d.root) == left and d.file.read_text() == TWELVE


async def test_after_a_restart_the_commit_is_still_to_be_decided(tmp_path: Path) -> None:
    async with committed(tmp_path) as d:
        await d.reopen()
        row = changes(d)["git"]
        assert isinstance(row, Row) and row.state == "pending" and not row.undecidable
        await decide_all(d, "accept")
        assert commits(d.root) == ["mine", "first"] and d.file.read_text() == f"{TWELVE}mine\n"
        assert git(d.root, "status", "--porcelain") == "?? other.txt\n"


Case = tuple[str, Decisions, dict[str, str | None], dict[str, str]]
"""The command, what is decided, the changes that are made then, and the states that are not pending."""
FOLDER = "rm sub/a.txt sub/deep/b.bin; rmdir sub/deep sub"
DELETED: dict[str, str | None] = {"sub/a.txt": None, "sub/deep/b.bin": None}
SCRIPT = "echo echo > new.sh; chmod +x new.sh"
DATABASE = "printf 'd\\0' > x.db; for end in -wal -shm -journal; do printf 'w\\0' > x.db$end; done"
PARTS: dict[str, str | None] = {"x.db-wal": "w\0", "x.db-shm": "w\0", "x.db-journal": "w\0"}

CASES: dict[str, Case] = {
    "the bit takes the new file": (
        SCRIPT,
        [{"mode new.sh": "accept"}],
        {"new.sh": "755: echo\n"},
        {"new.sh": "applied", "mode new.sh": "applied"},
    ),
    "the new file comes without its bit": (
        SCRIPT,
        [{"new.sh": "accept"}],
        {"new.sh": "echo\n"},
        {"new.sh": "applied"},
    ),
    "the new file, then its bit": (
        SCRIPT,
        [{"new.sh": "accept"}, {"mode new.sh": "accept"}],
        {"new.sh": "755: echo\n"},
        {"new.sh": "applied", "mode new.sh": "applied"},
    ),
    "the bit of a new file is undone alone": (
        SCRIPT,
        [{"mode new.sh": "accept"}, {"mode new.sh": "undo"}],
        {"new.sh": "echo\n"},
        {"new.sh": "applied", "mode new.sh": "reverted"},
    ),
    "no file, no bit": (SCRIPT, [{"new.sh": "reject"}], {}, {"new.sh": "rejected", "mode new.sh": "rejected"}),
    "the bit alone is rejected": (
        SCRIPT,
        [{"mode new.sh": "reject"}, {"new.sh": "accept"}],
        {"new.sh": "echo\n"},
        {"new.sh": "applied", "mode new.sh": "rejected"},
    ),
    "the user's own text takes the bit": (
        SCRIPT,
        [{"new.sh": "accept=own\n", "mode new.sh": "accept"}],
        {"new.sh": "755: own\n"},
        {"new.sh": "applied", "mode new.sh": "applied"},
    ),
    "the bit of a changed file does not need the change": (
        "echo more >> tool.sh; chmod +x tool.sh",
        [{"tool.sh": "reject", "mode tool.sh": "accept"}],
        {"tool.sh": "755: echo\n"},
        {"tool.sh": "rejected", "mode tool.sh": "applied"},
    ),
    "a folder takes all that was in it": (
        FOLDER,
        [{"deletion sub": "accept"}],
        DELETED,
        dict.fromkeys(["a.txt", "deletion sub/deep/b.bin", "deletion sub/deep", "deletion sub"], "applied"),
    ),
    "a folder within takes what was in that": (
        FOLDER,
        [{"deletion sub/deep": "accept"}],
        {"sub/deep/b.bin": None},
        dict.fromkeys(["deletion sub/deep/b.bin", "deletion sub/deep"], "applied"),
    ),
    "a kept file keeps its folders": (
        FOLDER,
        [{"deletion sub/deep/b.bin": "reject"}],
        {},
        dict.fromkeys(["deletion sub/deep/b.bin", "deletion sub/deep", "deletion sub"], "rejected"),
    ),
    "a kept text keeps its folder": (
        FOLDER,
        [{"a.txt": "reject"}],
        {},
        dict.fromkeys(["a.txt", "deletion sub"], "rejected"),
    ),
    "a kept folder keeps the one that it is in": (
        FOLDER,
        [{"deletion sub/deep": "reject"}, {"a.txt": "accept"}],
        {"sub/a.txt": None},
        dict.fromkeys(["deletion sub/deep", "deletion sub"], "rejected") | {"a.txt": "applied"},
    ),
    "a database takes what belongs to it": (
        DATABASE,
        [{"file x.db": "accept"}],
        {"x.db": "d\0", **PARTS},
        dict.fromkeys([f"file x.db{end}" for end in ("", "-wal", "-shm", "-journal")], "applied"),
    ),
    "a database is nothing without them": (
        DATABASE,
        [{"file x.db-wal": "reject"}],
        {},
        dict.fromkeys(["file x.db-wal", "file x.db"], "rejected"),
    ),
    "what belongs to a database comes alone": (
        DATABASE,
        [{"file x.db-wal": "accept"}],
        {"x.db-wal": "w\0"},
        {"file x.db-wal": "applied"},
    ),
    "a file of a like name is another": (
        "printf 'd\\0' > x.db; printf 'w\\0' > y.db-wal; printf 'w\\0' > x.db-walrus",
        [{"file x.db": "accept"}],
        {"x.db": "d\0"},
        {"file x.db": "applied"},
    ),
}


@pytest.mark.parametrize("mode", ["ask", "draft"])
@pytest.mark.parametrize("title", CASES)
async def test_what_is_needed_is_decided_along(tmp_path: Path, mode: Mode, title: str) -> None:
    line, decisions, made, expected = CASES[title]
    async with scripted_session(tmp_path, step("", call("run_shell_command", command=line)), DONE, mode=mode) as d:
        files(d.root)
        before = look(d.root)
        await d.prompt("go")
        await (finish(d) if mode == "draft" else d.until(lambda state: state.approvals))
        for each in decisions:
            await decide(d, each)
        assert look(d.root) == changed(before, made)
        assert states(d) == dict.fromkeys(states(d), "pending") | expected
