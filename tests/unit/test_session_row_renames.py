"""Files that a command renames are one change."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.proposals.model import FILE_CHANGED, FILE_GONE
from amanu.proposals.transaction import Transactions
from amanu_protocol.items import Mode
from amanu_protocol.requests import AuditQueryParams, CheckpointRestoreParams
from support.draft_session import DONE, decide_all, deny, end_daemon, turn
from support.required_programs import needs
from support.row_session import (
    all_states,
    by_user,
    changed,
    changed_by,
    decide,
    files,
    fresh,
    look,
    over,
    rows,
    undo,
)
from support.scripted_session import TWELVE, ScriptedSession, scripted_session, step
from support.tool_harness import redo
from unit.test_session_layer import Editor, git, shell
from unit.test_session_row_needs import commits, needed, repository
from unit.test_session_row_needs import decide as resolve

pytestmark = pytest.mark.layers

MODES: list[Mode] = ["ask", "acceptEdits", "draft"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


def proposed(d: ScriptedSession) -> list[str]:
    """The open or applied changes, in words."""

    def name(path: str | None) -> str:
        return "" if path is None else Path(path).relative_to(d.root).as_posix()

    files = [
        f"{file.change} {name(file.path)}{f' {name(file.new_path)}' if file.new_path else ''}"
        for each in d.session.state.proposals
        for file in each.files
        if any(hunk.state in ("pending", "applied", "reverted") for hunk in file.hunks)
    ]
    found = [
        f"{row.kind} {name(row.path)}{f' {name(row.new_path)}' if row.new_path else ''}"
        for row in rows(d)
        if row.state in ("pending", "applied", "reverted")
    ]
    return sorted([*files, *found])


KINDS: dict[str, tuple[str, dict[str, str | None], list[str]]] = {
    "text": ("mv notes.txt other.txt", {"notes.txt": None, "other.txt": TWELVE}, ["rename notes.txt other.txt"]),
    "text that changes": (
        "mv notes.txt other.txt; echo more >> other.txt",
        {"notes.txt": None, "other.txt": f"{TWELVE}more\n"},
        ["rename notes.txt other.txt"],
    ),
    "executable text": (
        "mkdir bin; mv run.sh bin/run.sh",
        {"run.sh": None, "bin/run.sh": "755: echo\n"},
        ["rename run.sh bin/run.sh"],
    ),
    "text that becomes executable": (
        "mv notes.txt other.txt; chmod +x other.txt",
        {"notes.txt": None, "other.txt": f"755: {TWELVE}"},
        ["create other.txt", "delete notes.txt", "mode other.txt"],
    ),
    "binary file": ("mv pic.bin moved.bin", {"pic.bin": None, "moved.bin": "old\0"}, ["rename pic.bin moved.bin"]),
    "binary file in new folders": (
        "mkdir -p new/deep; mv pic.bin new/deep/",
        {"pic.bin": None, "new/deep/pic.bin": "old\0"},
        ["rename pic.bin new/deep/pic.bin"],
    ),
    "binary file of the user alone": (
        "mv own.bin sub/own.bin",
        {"own.bin": None, "sub/own.bin": "600: own\0"},
        ["rename own.bin sub/own.bin"],
    ),
    "binary file that becomes executable": (
        "mv pic.bin moved.bin; chmod +x moved.bin",
        {"pic.bin": None, "moved.bin": "755: old\0"},
        ["rename pic.bin moved.bin"],
    ),
    "binary file that changes": (
        "mv pic.bin moved.bin; printf x >> moved.bin",
        {"pic.bin": None, "moved.bin": "old\0x"},
        ["deletion pic.bin", "file moved.bin"],
    ),
    "folder": (
        "mv sub other",
        {"sub/a.txt": None, "sub/deep/b.bin": None, "other/a.txt": "a\n", "other/deep/b.bin": "b\0"},
        [
            "deletion sub",
            "deletion sub/deep",
            "rename sub/a.txt other/a.txt",
            "rename sub/deep/b.bin other/deep/b.bin",
        ],
    ),
    "link": ("mv link other", {"link": None, "other": "-> notes.txt"}, ["deletion link", "link other"]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_rename_is_accepted_undone_and_done_again(tmp_path: Path, mode: Mode, kind: str) -> None:
    line, changes, expected = KINDS[kind]
    async with changed_by(tmp_path, mode, line) as d:
        assert proposed(d) == expected
        before, after = look(d.root), {}
        if mode != "acceptEdits":
            assert all_states(d) == {"pending"}
            after = changed(before, changes)
            await decide_all(d, "accept")
            await over(d)
        else:
            after, before = before, look(fresh(tmp_path))
            assert after == changed(before, changes)
            await decide(d, "keep")
        assert (look(d.root), all_states(d)) == (after, {"applied"})
        for restarts in (False, True):
            if restarts:
                await d.reopen()
            undone = await undo(d)
            assert [each for file in undone for each in file.skipped] == []
            assert all_states(d) == {"reverted"}
            assert {name: text for name, text in look(d.root).items() if text != "/" or name == "empty"} == before
            await decide(d, "redo")
            assert (look(d.root), all_states(d)) == (after, {"applied"})


MORE: list[tuple[tuple[str, ...], dict[str, str | None], list[str]]] = [
    (("mv notes.txt b.txt", "true"), {"notes.txt": None, "b.txt": TWELVE}, ["rename notes.txt b.txt"]),
    (("mv notes.txt b.txt", "mv b.txt c.txt"), {"notes.txt": None, "c.txt": TWELVE}, ["rename notes.txt c.txt"]),
    (
        ("mv notes.txt b.txt", "echo x >> b.txt", "mv b.txt c.txt"),
        {"notes.txt": None, "c.txt": f"{TWELVE}x\n"},
        ["rename notes.txt c.txt"],
    ),
    (
        ("echo x >> notes.txt", "mv notes.txt b.txt"),
        {"notes.txt": None, "b.txt": f"{TWELVE}x\n"},
        ["rename notes.txt b.txt"],
    ),
    (
        ("mv notes.txt b.txt", "chmod +x b.txt"),
        {"notes.txt": None, "b.txt": f"755: {TWELVE}"},
        ["mode b.txt", "rename notes.txt b.txt"],
    ),
    (
        ("mv run.sh b.sh", "chmod -x b.sh"),
        {"run.sh": None, "b.sh": "echo\n"},
        ["mode b.sh", "rename run.sh b.sh"],
    ),
    (
        ("chmod +x tool.sh", "mv tool.sh b.sh"),
        {"tool.sh": None, "b.sh": "755: echo\n"},
        ["create b.sh", "delete tool.sh", "mode b.sh"],
    ),
    (("mv run.sh b.sh", "mv b.sh c.sh"), {"run.sh": None, "c.sh": "755: echo\n"}, ["rename run.sh c.sh"]),
    (("mv notes.txt b.txt", "rm b.txt"), {"notes.txt": None}, ["delete notes.txt"]),
    (("mv notes.txt b.txt", "mv b.txt notes.txt"), {}, []),
    (("mv notes.txt b.txt", "cp b.txt notes.txt"), {"b.txt": TWELVE}, ["create b.txt"]),
    (
        ("mv notes.txt b.txt", "echo x > notes.txt"),
        {"notes.txt": "x\n", "b.txt": TWELVE},
        ["create b.txt", "edit notes.txt"],
    ),
    (("mv run.sh b.sh", "cp b.sh run.sh"), {"b.sh": "755: echo\n"}, ["create b.sh"]),
    (("echo x > b.txt", "mv b.txt c.txt"), {"c.txt": "x\n"}, ["create c.txt"]),
    (
        ("rm notes.txt", "seq -f 'line %g' 12 > b.txt"),
        {"notes.txt": None, "b.txt": TWELVE},
        ["create b.txt", "delete notes.txt"],
    ),
    (("mv pic.bin b.bin", "true"), {"pic.bin": None, "b.bin": "old\0"}, ["rename pic.bin b.bin"]),
    (("mv pic.bin b.bin", "mv b.bin c.bin"), {"pic.bin": None, "c.bin": "old\0"}, ["rename pic.bin c.bin"]),
    (
        ("mv pic.bin b.bin", "chmod +x b.bin", "mv b.bin c.bin"),
        {"pic.bin": None, "c.bin": "755: old\0"},
        ["rename pic.bin c.bin"],
    ),
    (("mv pic.bin b.bin", "rm b.bin"), {"pic.bin": None}, ["deletion pic.bin"]),
    (
        ("mv pic.bin b.bin", "printf 'x\\0' > b.bin"),
        {"pic.bin": None, "b.bin": "x\0"},
        ["deletion pic.bin", "file b.bin"],
    ),
    (("mv pic.bin b.bin", "echo x > b.bin"), {"pic.bin": None, "b.bin": "x\n"}, ["create b.bin", "deletion pic.bin"]),
    (("mv pic.bin b.bin", "mv b.bin pic.bin"), {}, []),
    (("mv pic.bin b.bin", "cp b.bin pic.bin"), {"b.bin": "old\0"}, ["file b.bin"]),
    (
        ("mv pic.bin b.bin", "printf 'x\\0' > pic.bin"),
        {"pic.bin": "x\0", "b.bin": "old\0"},
        ["file b.bin", "file pic.bin"],
    ),
    (("mv pic.bin b.bin", "mv b.bin c.bin; cp c.bin pic.bin"), {"c.bin": "old\0"}, ["file c.bin"]),
    (("printf 'x\\0' > b.bin", "mv b.bin c.bin"), {"c.bin": "x\0"}, ["file c.bin"]),
    (
        ("rm pic.bin", "printf 'old\\0' > b.bin"),
        {"pic.bin": None, "b.bin": "old\0"},
        ["deletion pic.bin", "file b.bin"],
    ),
    (
        ("printf 'x\\0' > pic.bin", "mv pic.bin b.bin"),
        {"pic.bin": None, "b.bin": "x\0"},
        ["deletion pic.bin", "file b.bin"],
    ),
]
"""The commands of one draft, the changes that a yes makes, and what is proposed."""


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("lines", "changes", "expected"), MORE, ids=["; then ".join(case[0]) for case in MORE])
async def test_later_commands_of_a_draft_go_on_with_a_rename(
    tmp_path: Path, restarts: bool, lines: tuple[str, ...], changes: dict[str, str | None], expected: list[str]
) -> None:
    steps = [each for line in (*lines, "true") for each in (step("", shell(line)), DONE)]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        files(d.root)
        before = look(d.root)
        for at in range(len(lines) + 1):
            await turn(d, f"p{at + 1}")
            if restarts:
                await end_daemon(d)
        assert proposed(d) == expected
        assert look(d.root) == before
        await decide_all(d, "accept")
        assert look(d.root) == changed(before, changes)
        await undo(d)
        assert look(d.root) == before


@pytest.mark.parametrize("mode", ["ask", "draft"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_rejected_rename_is_not_made_until_it_is_wanted_after_all(
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


TEXT, BINARY = "mv notes.txt other.txt", "mv pic.bin moved.bin"
MADE, MADE_BINARY = "There is a file other.txt now.", "There is a file moved.bin now."
MEANWHILE: list[tuple[str, str, str]] = [
    (TEXT, "echo mine > other.txt", MADE),
    (TEXT, "echo mine >> notes.txt", FILE_CHANGED),
    (TEXT, "rm notes.txt", FILE_GONE),
    (BINARY, "echo mine > moved.bin", MADE_BINARY),
    (BINARY, "ln -s nowhere moved.bin", MADE_BINARY),
    (BINARY, "mkdir moved.bin", MADE_BINARY),
    (BINARY, "echo mine > pic.bin", FILE_CHANGED),
    (BINARY, "rm pic.bin", FILE_GONE),
    (BINARY, "mv pic.bin moved.bin", MADE_BINARY),
    (BINARY, "chmod 600 pic.bin", ""),
    ("mkdir a; mv pic.bin a/b.bin", "echo > a", "a is no folder now."),
]
"""The command, what the user does before they accept, and why nothing is applied then; "" if all of it is."""


@pytest.mark.parametrize("mode", ["ask", "draft"])
@pytest.mark.parametrize(("line", "user", "reason"), MEANWHILE)
async def test_no_file_is_renamed_where_something_else_is_there_by_now(
    tmp_path: Path, mode: Mode, line: str, user: str, reason: str
) -> None:
    """The text beside it is not applied either."""
    async with changed_by(tmp_path, mode, f"echo more >> tool.sh; {line}") as d:
        by_user(d.root, user)
        before = look(d.root)
        await decide_all(d, "accept")
        if not reason:
            assert all_states(d) == {"applied"}
            return
        assert look(d.root) == before
        reasons = reasons_of(d)
        assert reason in reasons and any("nothing was applied" in each for each in reasons)
        assert all_states(d) == {"conflicted", "pending"}
        await decide_all(d, "reject")
        await over(d)
        assert (look(d.root), all_states(d)) == (before, {"rejected"})


def reasons_of(d: ScriptedSession) -> list[str]:
    proposals = d.session.state.proposals
    hunks = [hunk.reason or "" for each in proposals for file in each.files for hunk in file.hunks]
    return [*hunks, *(row.reason or "" for row in rows(d))]


SINCE: list[tuple[str, str, str]] = [
    (TEXT, "echo mine > notes.txt", "There is a file notes.txt now."),
    (TEXT, "rm other.txt", "The file is no longer there."),
    (BINARY, "echo mine > pic.bin", "There is a file pic.bin now."),
    (BINARY, "echo mine > moved.bin", FILE_CHANGED),
    (BINARY, "rm moved.bin", FILE_GONE),
    (BINARY, "mkdir pic.bin", "There is a file pic.bin now."),
]


@pytest.mark.parametrize(("line", "user", "reason"), SINCE)
async def test_a_rename_is_not_undone_over_what_the_user_made_since(
    tmp_path: Path, line: str, user: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the review follows their hand."""
    monkeypatch.setattr(tracking, "QUIET", 3600)
    async with changed_by(tmp_path, "acceptEdits", line) as d:
        by_user(d.root, user)
        before = look(d.root)
        (file,) = await undo(d)
        assert [each.reason for each in file.skipped] == [reason]
        assert (look(d.root), all_states(d), file.action) == (before, {"applied"}, "none")


@pytest.mark.parametrize("path", ["pic.bin", "moved.bin"])
async def test_a_rename_is_undone_by_either_name(tmp_path: Path, path: str) -> None:
    async with changed_by(tmp_path, "acceptEdits", f"{BINARY}; echo x >> notes.txt") as d:
        (file,) = await undo(d, path=str(d.root / path))
        assert (file.action, file.path, file.new_path) == ("rename", str(d.root / "moved.bin"), str(d.root / "pic.bin"))
        assert look(d.root) == changed(look(fresh(tmp_path)), {"notes.txt": f"{TWELVE}x\n"})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("made", "line", "expected"),
    [
        ("echo a > AGENTS.md", "mv AGENTS.md a.txt", ["create a.txt", "delete AGENTS.md"]),
        ("printf 'a\\0' > .npmrc", "mv .npmrc npm.bin", ["deletion .npmrc", "file npm.bin"]),
        ("", "mv notes.txt AGENTS.md", ["create AGENTS.md", "delete notes.txt"]),
        ("", "mv pic.bin .npmrc", ["deletion pic.bin", "file .npmrc"]),
        ("printf '' > void", "mv void other", ["create other", "delete void"]),
    ],
)
async def test_no_guarded_or_empty_file_is_renamed(
    tmp_path: Path, mode: Mode, made: str, line: str, expected: list[str]
) -> None:
    steps = [step("", shell(line)), DONE]
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        files(d.root)
        by_user(d.root, made)
        await d.prompt("go")
        await d.until(lambda state: state.approvals or state.last_turn)
        assert proposed(d) == expected


@pytest.mark.parametrize("mode", ["ask", "draft"])
@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (TEXT, "@write(other.txt)"),
        (TEXT, "delete_file(notes.txt)"),
        (BINARY, "@write(moved.bin)"),
        (BINARY, "delete_file(pic.bin)"),
    ],
)
async def test_a_rule_about_either_path_stops_a_rename(tmp_path: Path, mode: Mode, line: str, rule: str) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        files(d.root)
        before = look(d.root)
        deny(d, rule)
        await d.prompt("go")
        await d.until(lambda state: state.approvals or state.last_turn)
        assert (look(d.root), all_states(d)) == (before, {"rejected"})
        assert reasons_of(d) == [f"Denied by a rule: session: deny {rule}."]


@pytest.mark.parametrize("rule", ["@write(moved.bin)", "delete_file(pic.bin)"])
async def test_a_later_rule_about_either_path_stops_a_rename(tmp_path: Path, rule: str) -> None:
    async with changed_by(tmp_path, "draft", BINARY) as d:
        before = look(d.root)
        deny(d, rule)
        await decide_all(d, "accept")
        assert (look(d.root), reasons_of(d)) == (before, ["A rule denies this change."])


UNEVEN = "caf\351\nna\357ve\n"
ENCODED: list[tuple[str, dict[str, str | None], list[str]]] = [
    ("mv latin.txt b.txt", {"latin.txt": None, "b.txt": "caf\351\nna\357ve\n"}, ["rename latin.txt b.txt"]),
    (
        "mv latin.txt b.txt; printf '\\374ber\\n' >> b.txt",
        {"latin.txt": None, "b.txt": "caf\351\nna\357ve\n\374ber\n"},
        ["rename latin.txt b.txt"],
    ),
    ("mv utf.txt b.txt", {"utf.txt": None, "b.txt": "\377\376a\0\n\0"}, ["rename utf.txt b.txt"]),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("line", "changes", "expected"), ENCODED)
async def test_a_renamed_text_stays_in_its_encoding(
    tmp_path: Path, mode: Mode, line: str, changes: dict[str, str | None], expected: list[str]
) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode=mode) as d:
        files(d.root)
        (d.root / "latin.txt").write_bytes(b"caf\xe9\nna\xefve\n")
        (d.root / "utf.txt").write_bytes(b"\xff\xfea\0\n\0")
        before = look(d.root)
        await d.prompt("go")
        await d.until(lambda state: state.approvals or state.last_turn)
        assert proposed(d) == expected
        await decide_all(d, "accept")
        await over(d)
        assert look(d.root) == changed(before, changes)
        await undo(d)
        assert look(d.root) == before


async def test_a_file_with_unsaved_text_is_not_renamed(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("", shell(TEXT)), DONE) as d:
        Editor(d).type(4, "typed\n")
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        assert proposed(d) == ["create other.txt", "delete notes.txt"]


async def test_a_text_that_is_too_large_to_show_is_renamed(tmp_path: Path) -> None:
    steps = [each for line in ("mv large.txt b.txt", "mv b.txt c.txt") for each in (step("", shell(line)), DONE)]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        (d.root / "large.txt").write_bytes(b"line\n" * 2_000_000)
        await turn(d)
        assert [row.title for row in rows(d)] == ["renamed, file too large to show, 10,000,000 bytes"]
        await turn(d, "p2")
        assert proposed(d) == ["rename large.txt c.txt"]
        await decide_all(d, "accept")
        assert {path.name for path in d.root.iterdir()} == {"c.txt", "notes.txt"}
        await undo(d)
        assert {path.name for path in d.root.iterdir()} == {"large.txt", "notes.txt"}


@pytest.mark.parametrize(
    ("lines", "back_to", "expected"),
    [
        (("mv pic.bin b.bin", "mv b.bin c.bin", "true"), 2, {"pic.bin": None, "b.bin": "old\0"}),
        (("mv pic.bin b.bin", "rm b.bin", "true"), 2, {"pic.bin": None, "b.bin": "old\0"}),
        (("mv pic.bin b.bin", "mv b.bin pic.bin", "true"), 2, {"pic.bin": None, "b.bin": "old\0"}),
        (("mv pic.bin b.bin", "cp b.bin pic.bin", "true"), 2, {"pic.bin": None, "b.bin": "old\0"}),
        (("mv pic.bin b.bin", "printf x >> b.bin", "true"), 2, {"pic.bin": None, "b.bin": "old\0"}),
        (("rm pic.bin", "true", "true"), 2, {"pic.bin": None}),
        (("mv pic.bin b.bin", "true", "true"), 1, {}),
        (("mv notes.txt b.txt", "mv b.txt c.txt", "true"), 2, {"notes.txt": None, "b.txt": TWELVE}),
        (("mv notes.txt b.txt", "mv b.txt notes.txt", "true"), 2, {"notes.txt": None, "b.txt": TWELVE}),
        (("mv notes.txt b.txt", "cp b.txt notes.txt", "true"), 2, {"notes.txt": None, "b.txt": TWELVE}),
        (("mv notes.txt b.txt", "echo x > notes.txt", "true"), 2, {"notes.txt": None, "b.txt": TWELVE}),
        (("mv notes.txt b.txt", "rm b.txt", "true"), 2, {"notes.txt": None, "b.txt": TWELVE}),
        (("mv notes.txt b.txt", "true", "true"), 1, {}),
    ],
)
@pytest.mark.parametrize("restarts", [False, True])
async def test_a_rewind_brings_an_earlier_rename_back(
    tmp_path: Path, restarts: bool, lines: tuple[str, ...], back_to: int, expected: dict[str, str | None]
) -> None:
    steps = [each for line in (*lines, "true") for each in (step("", shell(line)), DONE)]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        files(d.root)
        before = look(d.root)
        for at in range(1, 4):
            await turn(d, f"p{at}")
            if restarts and expected.get("b.txt") is None:
                await end_daemon(d)
        params = CheckpointRestoreParams(session_id="s", turn_id=f"turn-p{back_to}", conversation=True)
        await d.session.checkpoints.restore(params)
        assert look(d.root) == before
        await decide_all(d, "accept")
        assert look(d.root) == changed(before, expected)


RENAMES = "git mv pic.bin moved.bin; git mv notes.txt other.txt; echo x >> other.txt; git commit -qam moved"
DECISIONS: list[tuple[dict[str, str], dict[str, str | None], str]] = [
    (
        {"git": "accept"},
        {"pic.bin": None, "moved.bin": "old\0", "notes.txt": None, "other.txt": f"{TWELVE}x\n"},
        "",
    ),
    ({"rename pic.bin": "reject"}, {}, "This needs pic.bin, which was rejected."),
    ({"notes.txt": "reject"}, {}, "This needs notes.txt, which was rejected."),
]


@pytest.mark.parametrize(("decisions", "changes", "reason"), DECISIONS)
async def test_a_commit_needs_its_renames(
    tmp_path: Path, decisions: dict[str, str], changes: dict[str, str | None], reason: str
) -> None:
    async with scripted_session(tmp_path, step("", shell(RENAMES)), DONE) as d:
        files(d.root)
        repository(d.root)
        before = look(d.root)
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        assert proposed(d)[1:] == ["rename notes.txt other.txt", "rename pic.bin moved.bin"]
        assert needed(d, "git") == {"notes.txt", "rename pic.bin"}
        await resolve(d, decisions)
        (row,) = [row for row in rows(d) if row.kind == "git"]
        assert (look(d.root), row.state) == (changed(before, changes), "rejected" if reason else "applied")
        assert (row.reason or "") == reason
        assert commits(d.root) == (["first"] if reason else ["moved", "first"])
        assert reason or git(d.root, "status", "--porcelain") == ""


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_daemon_killed_at_a_rename_knows_whether_it_is_done(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with changed_by(tmp_path, "draft", f"{BINARY}; mv own.bin sub/own.bin") as d:
        before = look(d.root)
        folder, kept = d.session.core.journal.folder, tmp_path / "kept"
        real = Transactions._change_files  # pyright: ignore[reportPrivateUsage]

        async def killed(*arguments: Any) -> None:
            if moment == "after":
                await real(*arguments)
            shutil.copytree(folder, kept, ignore=shutil.ignore_patterns(".tmp-*"))

        with monkeypatch.context() as patched:
            patched.setattr(Transactions, "_change_files", killed)
            await decide_all(d, "accept")
        await d.sessions.close("s")
        shutil.rmtree(folder)
        kept.rename(folder)
        await d.reopen()
        assert all_states(d) == {"pending" if moment == "before" else "applied"}
        assert (look(d.root) == before) == (moment == "before")
        await decide_all(d, "accept")
        assert all_states(d) == {"applied"} and look(d.root)["moved.bin"] == "old\0"
        await undo(d)
        assert look(d.root) == before


async def test_both_paths_of_a_rename_are_in_the_audit_log(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "acceptEdits", BINARY) as d:
        log = await d.sessions.audit_query(AuditQueryParams(session_id="s", limit=1000))
        found = [(entry.data["path"], entry.data["new_path"]) for entry in log.entries if entry.kind == "changing"]
        assert found == [(str(d.root / "pic.bin"), str(d.root / "moved.bin"))]


async def test_the_model_reads_both_names(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", f"{BINARY}; {TEXT}") as d:
        told = d.told()
        assert "Drafted: pic.bin → moved.bin (renamed, binary file, 4 bytes)." in told
        assert "renamed notes.txt to other.txt" in told
