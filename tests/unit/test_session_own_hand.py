"""The review follows what the user does to files with their own hand: git, a shell, a file manager."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.workspace import watcher
from amanu_protocol.items import Mode
from amanu_protocol.requests import EditScope, ProposalDecideParams, SeenProposal
from support.draft_session import DONE, edit, end_daemon, write
from support.scripted_session import TWELVE, TWO_HUNKS, ScriptedSession, call, scripted_session, step

FILES = {"notes.txt": TWELVE, "gone.txt": "gone\n", "old.txt": "old\nname\n", "last.txt": "last\n"}
CALLS = [
    write("notes.txt", TWO_HUNKS),
    write("gen/new.txt", "new\n"),
    call("delete_file", path="gone.txt"),
    call("move_file", path="old.txt", new_path="name.txt"),
    edit("last\n", "LAST\n", "last.txt"),
]
SIGNS = {"decision": "d", "review": "r", "": "-"}
ALL = "notes rr, new r, gone r, old r"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.05)
    monkeypatch.setattr(watcher, "DELAY", 0.01)


def shell(root: Path, line: str) -> None:
    settings = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    names = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **settings, **names}
    subprocess.run(["bash", "-ec", line], cwd=root, check=True, capture_output=True, env=environment)


def repository(root: Path, files: Mapping[str, str] = FILES) -> None:
    for name, text in files.items():
        (root / name).write_text(text)
    shell(root, "git init -q; echo last.txt > .git/info/exclude; git add .; git commit -qm first")


def waiting(d: ScriptedSession) -> str:
    """File → what each of its hunks waits for."""
    signs: dict[str, str] = {}
    for proposal in d.session.state.proposals:
        changes = [(file.path, hunk) for file in proposal.files for hunk in file.hunks]
        for path, each in [*changes, *((row.path, row) for row in proposal.rows)]:
            signs[Path(path).stem] = signs.get(Path(path).stem, "") + SIGNS[each.waits]
    signs.pop("last", None)
    return ", ".join(f"{name} {each}" for name, each in signs.items())


async def looked(d: ScriptedSession) -> None:
    """All that happened so far was looked at: what happens to this file now is seen after it."""
    for _ in range(2):  # a folder that goes is looked at one moment after the files that were changed before it
        last = d.root / "last.txt"
        state = "reverted" if last.read_text() != "last\n" else "applied"
        last.write_text("last\n" if state == "reverted" else "LAST\n")
        await d.until(lambda _, state=state: _state_of_last(d) == state)


def _state_of_last(d: ScriptedSession) -> str:
    files = [file for proposal in d.session.state.proposals for file in proposal.files]
    return next(file.hunks[0].state for file in files if file.path.endswith("last.txt"))


async def applied(d: ScriptedSession) -> None:
    await d.prompt("go")
    await d.over("p1")
    assert waiting(d) == ALL


HANDS: dict[str, Sequence[tuple[str, str]]] = {
    "nothing": [("true", ALL)],
    "checkout of all": [("git checkout -q .", "notes --, new r, gone -, old r")],
    "checkout, clean": [("git checkout -q . && git clean -fdq", "notes --, new -, gone -, old -")],
    "restore of one": [("git restore notes.txt", "notes --, new r, gone r, old r")],
    "a folder removed": [("rm -rf gen", "notes rr, new -, gone r, old r")],
    "a folder moved away": [("mv gen ../trash", "notes rr, new -, gone r, old r"), ("mv ../trash gen", ALL)],
    "stash and pop": [
        ("git stash -qu", "notes --, new -, gone -, old -"),
        ("git stash pop -q", ALL),
    ],
    "another branch and back": [
        ("git stash -qu; git checkout -qb other; git commit -qm x --allow-empty", "notes --, new -, gone -, old -"),
        ("git checkout -q -; git stash pop -q", ALL),
    ],
    "one hunk by hand": [("sed -i 's/line two/line 2/' notes.txt", "notes -r, new r, gone r, old r")],
    "one hunk and back": [
        ("sed -i 's/line two/line 2/' notes.txt", "notes -r, new r, gone r, old r"),
        ("sed -i 's/line 2/line two/' notes.txt", ALL),
    ],
    "both hunks and back": [
        ("cp notes.txt ../kept; git checkout -q notes.txt", "notes --, new r, gone r, old r"),
        ("cp ../kept notes.txt", ALL),
    ],
    "other lines": [("sed -i 's/line 6/line six/' notes.txt", ALL)],
    "a line within a hunk": [("sed -i 's/line two/line too/' notes.txt; echo more >> gen/new.txt", ALL)],
    "a file removed": [("rm notes.txt", "notes --, new r, gone r, old r")],
    "removed, later restored": [
        ("mv notes.txt ../kept", "notes --, new r, gone r, old r"),
        ("mv ../kept notes.txt", ALL),
    ],
    "removed, later as before": [
        ("rm notes.txt", "notes --, new r, gone r, old r"),
        ("git checkout -q notes.txt", "notes --, new r, gone r, old r"),
    ],
    "removed, later half as before": [
        ("mv notes.txt ../kept", "notes --, new r, gone r, old r"),
        ("sed 's/line two/line 2/' ../kept > notes.txt", "notes -r, new r, gone r, old r"),
    ],
    "saved by removing first": [("cp notes.txt ../kept; rm notes.txt; cp ../kept notes.txt", ALL)],
    "saved by renaming": [("cp notes.txt tmp; mv tmp notes.txt; cp gen/new.txt tmp; mv tmp gen/new.txt", ALL)],
    "the new file is another": [
        ("rm gen/new.txt", "notes rr, new -, gone r, old r"),
        ("echo other > gen/new.txt", "notes rr, new -, gone r, old r"),
    ],
    "the deletion by hand": [
        ("echo mine > gone.txt", "notes rr, new r, gone -, old r"),
        ("rm gone.txt", ALL),
    ],
    "the move by hand": [
        ("mv name.txt old.txt", "notes rr, new r, gone r, old -"),
        ("mv old.txt name.txt", ALL),
    ],
    "the moved file removed": [
        ("mv name.txt ../kept", "notes rr, new r, gone r, old -"),
        ("mv ../kept name.txt", ALL),
    ],
}  # fmt: skip


@pytest.mark.parametrize("hand", HANDS)
async def test_what_is_not_there_any_more_waits_no_more(tmp_path: Path, hand: str) -> None:
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await applied(d)
        for line, expected in HANDS[hand]:
            shell(d.root, line)
            await looked(d)
            assert waiting(d) == expected


@pytest.mark.parametrize("hand", HANDS)
async def test_it_is_seen_when_the_session_is_opened_again(tmp_path: Path, hand: str) -> None:
    """Nobody listens meanwhile: it looks once. Of a hunk that was taken back it no longer knows that it was there."""
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await applied(d)
        for line, expected in HANDS[hand]:
            await d.sessions.close("s")
            shell(d.root, line)
            await end_daemon(d)
            await d.until(lambda _, expected=expected: waiting(d) == expected or "and back" in hand or "pop" in hand)
        await looked(d)


@pytest.mark.parametrize(("hand", "before", "after"), [
    ("rm notes.txt", "notes dd, new d, gone d, old d", "notes --, new d, gone d, old d"),
    ("rm notes.txt old.txt", "notes dd, new d, gone d, old d", "notes --, new d, gone d, old -"),
    ("rm -rf gone.txt", "notes dd, new d, gone d, old d", "notes dd, new d, gone d, old d"),
])  # fmt: skip
@pytest.mark.parametrize("mode", ["ask", "draft"])
async def test_open_changes_to_a_file_that_is_gone_wait_only_while_they_are_asked_about(
    tmp_path: Path, hand: str, before: str, after: str, mode: Mode
) -> None:
    async with scripted_session(tmp_path, step("", *CALLS[:4]), step("", CALLS[4]), DONE, mode=mode) as d:
        repository(d.root)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        shell(d.root, f"mkdir ../kept; cp *.txt ../kept; {hand}")
        await d.session.core.proposals.catch_up(d.session.state.proposals[0].proposal_id)
        assert waiting(d) == before, "the question is open"
        while not d.session.state.last_turn:
            if d.session.state.approvals:
                await d.answer("finish")
            await d.until(lambda state: state.approvals or state.last_turn)
        await d.until(lambda _: waiting(d) == after)
        shell(d.root, "cp ../kept/*.txt .")
        await d.until(lambda _: waiting(d) == before)
        assert {hunk.state for hunk in d.session.state.proposals[0].files[0].hunks} == {"pending"}


async def test_what_the_model_itself_removes_is_not_the_user_s_hand(tmp_path: Path) -> None:
    steps = [
        step("", write("x.txt", "x\n"), edit("last\n", "LAST\n", "last.txt"), write("notes.txt", TWO_HUNKS)),
        step("", call("delete_file", path="x.txt"), call("move_file", path="notes.txt", new_path="n.txt")),
        step("", write("x.txt", "x\n")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        repository(d.root)
        await d.prompt("go")
        await d.over("p1")
        before = waiting(d)
        await looked(d)
        assert waiting(d) == before and "-" not in before


async def test_many_changes_of_one_file_are_all_taken_back(tmp_path: Path) -> None:
    """More of them than are looked after one by one."""
    edits = [step("", edit(f"line {at}\n", f"LINE {at}\n")) for at in range(1, 13)]
    last = edit("last\n", "LAST\n", "last.txt")
    async with scripted_session(tmp_path, *edits, *edits_again(), step("", last), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await d.prompt("go")
        await d.over("p1")
        assert waiting(d) == "notes " + "r" * 18
        kept = d.file.read_text()
        shell(d.root, "git checkout -q notes.txt")
        await d.until(lambda _: waiting(d) == "notes " + "-" * 18)
        d.file.write_text(kept)
        await d.until(lambda _: waiting(d) == "notes " + "r" * 18)
        await looked(d)
        assert waiting(d) == "notes " + "r" * 18


def edits_again() -> list[dict[str, Any]]:
    return [step("", edit(f"LINE {at}\n", f"Line {at}\n")) for at in range(1, 12, 2)]


async def test_edits_on_top_of_others_go_and_come_with_them(tmp_path: Path) -> None:
    """A function is written, a line of it changed; the user discards the file, and thinks better of it."""
    steps = [
        step("", edit("line 6\n", "line 6\ndef f():\n    return 1\n\nf()\n"), edit("last\n", "LAST\n", "last.txt")),
        step("", edit("    return 1\n", "    return 2\n")),
        step("", edit("    return 2\n\n", "    return 3\n\n\n")),
        DONE,
    ]
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        repository(d.root)
        await d.prompt("go")
        await d.over("p1")
        shell(d.root, "git stash -q")
        await d.until(lambda _: waiting(d) == "notes ---")
        shell(d.root, "git stash pop -q")
        await d.until(lambda _: waiting(d) == "notes rrr")
        await looked(d)
        assert waiting(d) == "notes rrr"


async def test_kept_changes_are_not_listened_to(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", *CALLS), DONE, mode="acceptEdits") as d:
        repository(d.root)
        await applied(d)
        events = d.sessions.services.events
        assert events._files  # pyright: ignore[reportPrivateUsage]
        for proposal in d.session.state.proposals:
            await keep(d, proposal.proposal_id)
        assert not events._files  # pyright: ignore[reportPrivateUsage]


async def keep(d: ScriptedSession, proposal_id: str) -> None:
    version = next(each.version for each in d.session.state.proposals if each.proposal_id == proposal_id)
    seen = [SeenProposal(proposal_id=proposal_id, version=version)]
    params = ProposalDecideParams(session_id="s", scope=EditScope(), decision="keep", seen=seen)
    assert (await d.session.edits.decide(params)).status == "resolved"
