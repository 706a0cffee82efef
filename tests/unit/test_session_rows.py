"""Changes that no hunk shows are decided one by one, undone and done again, whichever mode they were made in."""

from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.proposals.model import FILE_CHANGED, FILE_GONE, FILE_MADE
from amanu_protocol.items import Mode
from amanu_protocol.requests import EditScope, ProposalUndoParams, UndoneFile
from support.draft_session import decide_all, deny
from support.required_programs import needs
from support.row_session import (
    all_states,
    by_user,
    changed,
    changed_by,
    decide,
    fresh,
    kinds,
    look,
    name,
    over,
    rows,
    states,
    undo,
)
from support.scripted_session import TWELVE, ScriptedSession
from support.tool_harness import redo

pytestmark = pytest.mark.layers

MODES: list[Mode] = ["ask", "acceptEdits", "draft"]
PNG = "printf '\\211PNG\\r\\n\\032\\n\\0\\0\\0\\rIHDR'"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


Kind = tuple[str, dict[str, str | None], list[str]]
"""The command, its changes, and the kinds of its rows."""
KINDS: dict[str, Kind] = {
    "new file": ("printf 'a\\0b' > new.bin", {"new.bin": "a\0b"}, ["file"]),
    "new executable": ("printf 'a\\0b' > new.bin; chmod +x new.bin", {"new.bin": "755: a\0b"}, ["file"]),
    "new file in a new folder": ("mkdir -p a/b; printf 'a\\0b' > a/b/new.bin", {"a/b/new.bin": "a\0b"}, ["file"]),
    "new picture": (f"{PNG} > new.png", {"new.png": "\x89PNG\r\n\x1a\n\0\0\0\rIHDR"}, ["file"]),
    "replaced file": ("printf 'c\\0d' > pic.bin", {"pic.bin": "c\0d"}, ["file"]),
    "replaced and executable": ("printf 'c\\0d' > pic.bin; chmod +x pic.bin", {"pic.bin": "755: c\0d"}, ["file"]),
    "replaced file of the user alone": ("printf 'c\\0d' > own.bin", {"own.bin": "600: c\0d"}, ["file"]),
    "deleted file of the user alone": ("rm own.bin", {"own.bin": None}, ["deletion"]),
    "executable file of the user alone": ("chmod +x own.bin", {"own.bin": "700: own\0"}, ["mode"]),
    "text instead of a binary file": ("echo text > pic.bin", {"pic.bin": "text\n"}, ["file"]),
    "a binary file instead of text": ("printf 'a\\0b' > notes.txt", {"notes.txt": "a\0b"}, ["file"]),
    "deleted file": ("rm pic.bin", {"pic.bin": None}, ["deletion"]),
    "moved file": ("mv pic.bin moved.bin", {"pic.bin": None, "moved.bin": "old\0"}, ["rename"]),
    "new link": ("ln -s pic.bin made", {"made": "-> pic.bin"}, ["link"]),
    "link that leads nowhere": ("ln -s nowhere made", {"made": "-> nowhere"}, ["link"]),
    "link to somewhere else": ("ln -sfn sub link", {"link": "-> sub"}, ["link"]),
    "deleted link": ("rm link", {"link": None}, ["deletion"]),
    "link instead of a file": ("ln -sf notes.txt pic.bin", {"pic.bin": "-> notes.txt"}, ["link"]),
    "file instead of a link": ("rm link; printf 'a\\0b' > link", {"link": "a\0b"}, ["file"]),
    "text instead of a link": ("rm link; echo text > link", {"link": "text\n"}, ["file"]),
    "text that becomes executable": ("chmod +x tool.sh", {"tool.sh": "755: echo\n"}, ["mode"]),
    "text that is executable no longer": ("chmod -x run.sh", {"run.sh": "echo\n"}, ["mode"]),
    "changed text that becomes executable": (
        "echo more >> tool.sh; chmod +x tool.sh",
        {"tool.sh": "755: echo\nmore\n"},
        ["mode"],
    ),
    "new executable text": ("echo echo > new.sh; chmod +x new.sh", {"new.sh": "755: echo\n"}, ["mode"]),
    "binary file that becomes executable": ("chmod +x pic.bin", {"pic.bin": "755: old\0"}, ["mode"]),
    "new folder": ("mkdir -p a/b", {"a/b": "/"}, ["folder"]),
    "deleted empty folder": ("rmdir empty", {"empty": None}, ["deletion"]),
    "deleted folder": (
        "rm sub/a.txt sub/deep/b.bin; rmdir sub/deep sub",
        {"sub/a.txt": None, "sub/deep/b.bin": None},
        ["deletion"] * 3,
    ),
    "database": (
        "printf 'd\\0' > x.db; printf 'w\\0' > x.db-wal",
        {"x.db": "d\0", "x.db-wal": "w\0"},
        ["file", "file"],
    ),
    "all at once": (
        "printf 'a\\0b' > new.bin; ln -s new.bin made; chmod +x tool.sh; mkdir a; rm sub/a.txt sub/deep/b.bin; "
        "rmdir sub/deep sub; echo x >> notes.txt",
        {"new.bin": "a\0b", "made": "-> new.bin", "tool.sh": "755: echo\n", "a": "/"}
        | {"sub/a.txt": None, "sub/deep/b.bin": None, "notes.txt": f"{TWELVE}x\n"},
        ["deletion", "deletion", "deletion", "file", "folder", "link", "mode"],
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_change_is_accepted_undone_and_done_again(tmp_path: Path, mode: Mode, kind: str) -> None:
    line, changes, expected_kinds = KINDS[kind]
    async with changed_by(tmp_path, mode, line) as d:
        before, after = look(d.root), {}
        if mode != "acceptEdits":
            assert all_states(d) == {"pending"}
            after = changed(before, changes)
            await decide_all(d, "accept")
            await over(d)
        else:
            assert not any(row.reviewed for row in rows(d))
            after, before = before, look(fresh(tmp_path))
            assert after == changed(before, changes)
            await decide(d, "keep")
        assert (look(d.root), all_states(d)) == (after, {"applied"})
        assert sorted(kinds(d)) == expected_kinds and all(row.reviewed for row in rows(d))
        for restarts in (False, True):
            if restarts:
                await d.reopen()
            undone = await undo(d)
            assert [each for file in undone for each in file.skipped] == []
            assert (look(d.root), all_states(d)) == (before, {"reverted"})
            await decide(d, "redo")
            assert (look(d.root), all_states(d)) == (after, {"applied"})


@pytest.mark.parametrize("mode", ["ask", "draft"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_rejected_change_is_not_made_until_it_is_wanted_after_all(
    tmp_path: Path, mode: Mode, kind: str
) -> None:
    line, changes, _ = KINDS[kind]
    async with changed_by(tmp_path, mode, line) as d:
        before = look(d.root)
        await decide_all(d, "reject")
        await over(d)
        assert (look(d.root), all_states(d)) == (before, {"rejected"})
        for proposal in d.session.state.proposals:
            hunks = [hunk.hunk_id for file in proposal.files for hunk in file.hunks]
            row_ids = [row.row_id for row in proposal.rows]
            await redo(d.session.core.proposals, proposal.proposal_id, hunks, row_ids)
        assert (look(d.root), all_states(d)) == (changed(before, changes), {"applied"})


SEVEN = (
    "printf 'a\\0b' > new.bin; printf 'c\\0d' > pic.bin; ln -s new.bin made; rm link; chmod +x tool.sh; "
    "chmod -x run.sh; mkdir a"
)
CHANGES: dict[str, dict[str, str | None]] = {
    "new.bin": {"new.bin": "a\0b"},
    "pic.bin": {"pic.bin": "c\0d"},
    "made": {"made": "-> new.bin"},
    "link": {"link": None},
    "tool.sh": {"tool.sh": "755: echo\n"},
    "run.sh": {"run.sh": "echo\n"},
    "a": {"a": "/"},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("refused", [*pairwise(CHANGES)], ids="-".join)
async def test_two_of_seven_changes_are_refused(tmp_path: Path, mode: Mode, refused: tuple[str, str]) -> None:
    async with changed_by(tmp_path, mode, SEVEN) as d:
        assert {name(d, row) for row in rows(d)} == {*CHANGES}
        words = ("keep", "undo") if mode == "acceptEdits" else ("accept", "reject not that")
        before = look(fresh(tmp_path))
        assert await d.decide_rows(*(words[name(d, row) in refused] for row in rows(d))) == "resolved"
        await over(d)
        wanted = [changes for each, changes in CHANGES.items() if each not in refused]
        assert look(d.root) == changed(before, {path: text for each in wanted for path, text in each.items()})
        assert {name(d, row) for row in rows(d) if row.state != "applied"} == {*refused}
        if mode == "ask":
            told = "\n".join(line for line in d.told().split("\\n") if "not that" in line)
            assert all(each in told for each in refused), "the model is told"


SINCE: list[tuple[str, str, str]] = [
    ("new file", "printf 'mine' > new.bin", FILE_CHANGED),
    ("new file", "rm new.bin", FILE_GONE),
    ("new file", "rm new.bin; mkdir new.bin", FILE_CHANGED),
    ("new file", "mv new.bin other; ln -s other new.bin", FILE_CHANGED),
    ("new executable", "printf 'mine' > new.bin", FILE_CHANGED),
    ("replaced file", "printf 'mine' > pic.bin", FILE_CHANGED),
    ("replaced file", "rm pic.bin", FILE_GONE),
    ("replaced file", "touch -d 2001-01-01 pic.bin", ""),
    ("replaced file", "chmod 600 pic.bin", ""),
    ("deleted file", "printf 'mine' > pic.bin", FILE_MADE),
    ("deleted file", "mkdir pic.bin", FILE_MADE),
    ("deleted file", "ln -s nowhere pic.bin", FILE_MADE),
    ("new link", "ln -sfn notes.txt made", FILE_CHANGED),
    ("new link", "rm made", FILE_GONE),
    ("new link", "rm made; cp pic.bin made", FILE_CHANGED),
    ("new link", "rm made; mkdir made", FILE_CHANGED),
    ("link to somewhere else", "ln -sfn empty link", FILE_CHANGED),
    ("deleted link", "ln -s pic.bin link", FILE_MADE),
    ("text that becomes executable", "chmod -x tool.sh", FILE_CHANGED),
    ("text that becomes executable", "rm tool.sh", FILE_GONE),
    ("text that becomes executable", "rm tool.sh; mkdir tool.sh", FILE_CHANGED),
    ("text that becomes executable", "mv tool.sh other; ln -s other tool.sh", FILE_CHANGED),
    ("binary file that becomes executable", "chmod -x pic.bin", FILE_CHANGED),
    ("new folder", "rmdir a/b; echo > a/b", FILE_CHANGED),
    ("new folder", "rm -r a", FILE_GONE),
    ("new folder", "echo > a/b/mine", "Directory not empty."),
    ("new folder", "rmdir a/b; ln -s ../sub a/b", FILE_CHANGED),
    ("deleted empty folder", "echo > empty", FILE_MADE),
    ("deleted empty folder", "mkdir empty", ""),
    ("deleted empty folder", "ln -s nowhere empty", FILE_MADE),
]
"""The change, what the user does after it, and why it is not undone then; "" if it is."""


@pytest.mark.parametrize(
    ("mode", "kind", "line", "reason"), [(mode, *case) for mode, case in zip(cycle(MODES), SINCE, strict=False)]
)
async def test_what_the_user_changed_since_is_not_undone(
    tmp_path: Path, mode: Mode, kind: str, line: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is left as it is, and the change stays applied and says why; before the review follows their hand."""
    monkeypatch.setattr(tracking, "QUIET", 3600)
    async with changed_by(tmp_path, mode, KINDS[kind][0]) as d:
        if mode != "acceptEdits":
            await decide_all(d, "accept")
            await over(d)
        by_user(d.root, line)
        before = look(d.root)
        (told,) = await would_undo(d)
        (file,) = await undo(d)
        assert [each.reason for each in file.skipped] == ([reason] if reason else [])
        assert (told.action, [each.reason for each in told.skipped]) == (file.action, [reason] if reason else [])
        assert states(d) == ["applied" if reason else "reverted"]
        if reason:
            assert (look(d.root), file.action) == (before, "none")
        assert (rows(d)[0].reason or "") == reason


async def test_a_link_is_not_the_folder_that_it_leads_to(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", "rmdir empty") as d:
        await decide_all(d, "accept")
        by_user(d.root, "ln -s sub empty")
        (file,) = await undo(d)
        assert [each.reason for each in file.skipped] == [FILE_MADE] and states(d) == ["applied"]


async def test_two_changes_of_one_file_are_undone_from_the_last_to_the_first(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "acceptEdits", "printf '1\\0' > pic.bin", "printf '2\\0' > pic.bin") as d:
        first, second = d.session.state.proposals
        assert not any(file.skipped for file in await would_undo(d))
        (file,) = await would_undo(d, proposal_id=first.proposal_id)
        assert [each.reason for each in file.skipped] == [FILE_CHANGED]
        (file,) = await undo(d, proposal_id=first.proposal_id)
        assert ([each.reason for each in file.skipped], look(d.root)["pic.bin"]) == ([FILE_CHANGED], "2\0")
        await undo(d, proposal_id=second.proposal_id)
        assert look(d.root)["pic.bin"] == "1\0"
        await decide(d, "redo")
        undone = await undo(d)
        assert (len(undone), look(d.root)["pic.bin"]) == (2, "old\0")
        assert not any(file.skipped for file in undone)


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ({}, set[str]()),
        ({"turn_id": "turn-p1"}, set[str]()),
        ({"turn_id": "turn-p2"}, {"pic.bin", "made", "notes.txt"}),
        ({"path": "pic.bin"}, {"made", "notes.txt"}),
        ({"path": "notes.txt"}, {"pic.bin", "made"}),
        ({"row_ids": [0]}, {"made", "notes.txt"}),
        ({"row_ids": []}, {"pic.bin", "made", "notes.txt"}),
        ({"hunk_ids": [0]}, {"pic.bin", "made"}),
        ({"hunk_ids": [0], "row_ids": [1]}, {"pic.bin"}),
    ],
)
async def test_undo_takes_back_what_its_scope_names(tmp_path: Path, scope: dict[str, Any], left: set[str]) -> None:
    line = "printf 'c\\0d' > pic.bin; ln -s pic.bin made; echo more >> notes.txt"
    async with changed_by(tmp_path, "acceptEdits", line) as d:
        (proposal,) = d.session.state.proposals
        ids: dict[str, Any] = {
            "row_ids": [row.row_id for row in sorted(proposal.rows, key=lambda row: row.path, reverse=True)],
            "hunk_ids": [hunk.hunk_id for hunk in proposal.files[0].hunks],
        }
        named: dict[str, Any] = {key: [ids[key][at] for at in value] for key, value in scope.items() if key in ids}
        if named:
            named["proposal_id"] = proposal.proposal_id
        if "path" in scope:
            named["path"] = str(d.root / scope["path"])
        await undo(d, **{**scope, **named})
        before, after = look(fresh(tmp_path)), look(d.root)
        assert {path for path in {*before, *after} if before.get(path) != after.get(path)} == left


async def would_undo(d: ScriptedSession, **scope: str) -> list[UndoneFile]:
    params = ProposalUndoParams(session_id="s", scope=EditScope.model_validate(scope), dry_run=True)
    return (await d.session.edits.undo(params)).files


@pytest.mark.parametrize("line", ["echo more >> notes.txt", KINDS["replaced file"][0]])
async def test_no_rule_keeps_the_user_from_undoing(tmp_path: Path, line: str) -> None:
    """Rules are for the model."""
    async with changed_by(tmp_path, "acceptEdits", line) as d:
        deny(d, "@write(**)")
        await undo(d)
        assert look(d.root) == look(fresh(tmp_path))


async def test_a_picture_is_shown_as_it_is_kept(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", f"{PNG} > new.png; {PNG} > pic.bin; printf 'a\\0' > own.bin") as d:
        pictures = {name(d, row): row.after.picture for row in rows(d) if row.after is not None}
        shown = pictures["new.png"]
        assert shown is not None and pictures["pic.bin"] == shown and pictures["own.bin"] is None
        data = await d.session.core.journal.get_blob(shown.blob_id)
        assert (data[1:4], len(data)) == (b"PNG", shown.size)


IN_A_ROW: list[tuple[str, ...]] = [
    ("mv pic.bin b.bin", "mv b.bin c.bin"),
    ("mv pic.bin b.bin", "mv b.bin c.bin", "mv c.bin d.bin"),
    ("mv pic.bin b.bin", "mv b.bin pic.bin"),
    ("mv pic.bin b.bin", "printf 'x\\0' > b.bin"),
    ("mv pic.bin b.bin", "printf 'x\\0' > pic.bin"),
    ("mv pic.bin b.bin", "chmod +x b.bin"),
    ("mv pic.bin b.bin", "ln -sf notes.txt b.bin"),
    ("printf 'x\\0' > pic.bin", "mv pic.bin b.bin"),
    ("chmod +x pic.bin", "mv pic.bin b.bin"),
    ("printf 'x\\0' > b.bin", "mv b.bin c.bin"),
    ("chmod +x tool.sh", "chmod -x tool.sh"),
    ("mv pic.bin b.bin", "mv own.bin pic.bin"),
    ("mkdir a", "printf 'x\\0' > a/b.bin", "mv a/b.bin b.bin"),
]
"""Commands, each of which is applied before the next."""
THEN = ["true", "rm -f [bcd].bin", "touch pic.bin b.bin", "printf 'mine\\0' | tee [bcd].bin"]
"""The user's act after them."""


@pytest.mark.parametrize("user", THEN)
@pytest.mark.parametrize("lines", IN_A_ROW, ids="; then ".join)
async def test_a_dry_run_of_undo_says_what_undo_does(
    tmp_path: Path, lines: tuple[str, ...], user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of changes to what earlier ones have made. The review does not follow the user's hand in between."""
    monkeypatch.setattr(tracking, "QUIET", 3600)
    async with changed_by(tmp_path, "acceptEdits", *lines) as d:
        assert [row.state for row in rows(d)] == ["applied"] * len(lines)
        by_user(d.root, user)
        params = ProposalUndoParams(session_id="s", scope=EditScope(), dry_run=True)
        said = (await d.session.edits.undo(params)).files
        done = await undo(d)
        assert [(file.path, file.action) for file in said] == [(file.path, file.action) for file in done]
