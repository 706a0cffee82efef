"""A new folder with more in it than can be reviewed is one change: decided, kept, undone and done again as a whole."""

import os
from pathlib import Path
from typing import Literal

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.proposals.model import FILE_CHANGED, FILE_GONE, FILE_MADE
from amanu.text.display import file_list
from amanu_protocol.items import Mode, Row
from amanu_protocol.requests import CheckpointRestoreParams
from support.draft_session import DONE, decide_all, deny, edit, end_daemon, results, turn, write
from support.loop_time import goes_on, loop_times
from support.required_programs import needs
from support.row_session import by_user, changed, changed_by, decide, files, fresh, look, name, over, rows, states, undo
from support.scripted_session import call, scripted_session, step
from support.tool_harness import redo
from unit.test_session_layer import shell

pytestmark = pytest.mark.layers

MAKE = "mkdir -p big/sub && seq -f 'big/sub/%g.txt' 250 | xargs touch"
MORE = "echo run > big/run.sh && chmod 755 big/run.sh && ln -s sub big/in && printf 'a\\0' > big/a.bin"
MADE: dict[str, str | None] = {f"big/sub/{at}.txt": "" for at in range(1, 251)}
WHOLE = {**MADE, "big/run.sh": "755: run\n", "big/in": "-> sub", "big/a.bin": "a\0"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


def described(row: Row) -> list[str]:
    return [row.title, *(line.text for line in row.lines)]


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "draft"])
async def test_a_new_folder_is_accepted_undone_and_done_again(tmp_path: Path, mode: Mode) -> None:
    async with changed_by(tmp_path, mode, f"{MAKE}; {MORE}; echo more >> notes.txt") as d:
        before = look(fresh(tmp_path))
        (row,) = rows(d)
        assert (row.kind, name(d, row)) == ("folder", "big")
        assert described(row) == [
            "new folder, 253 files, 6 bytes",
            "Can be executed: run.sh",
            "Contains: a.bin, in, run.sh, sub/",
        ]
        if mode != "acceptEdits":
            assert look(d.root) == before and states(d) == ["pending"]
            await decide_all(d, "accept")
            await over(d)
        after = changed(before, {**WHOLE, "notes.txt": before["notes.txt"] + "more\n"})
        assert (look(d.root), states(d)) == (after, ["applied"])
        for restarts in (False, True):
            if restarts:
                await d.reopen()
            assert [each for file in await undo(d) for each in file.skipped] == []
            assert (look(d.root), states(d)) == (before, ["reverted"])
            await decide(d, "redo")
            assert (look(d.root), states(d)) == (after, ["applied"])


async def test_a_rejected_folder_is_made_when_it_is_wanted_after_all(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "ask", MAKE) as d:
        before = look(d.root)
        await decide_all(d, "reject")
        await over(d)
        assert (look(d.root), states(d)) == (before, ["rejected"])
        (proposal,) = d.session.state.proposals
        await redo(d.session.core.proposals, proposal.proposal_id, [], [rows(d)[0].row_id])
        assert (look(d.root), states(d)) == (changed(before, MADE), ["applied"])


async def test_a_folder_crosses_file_systems_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.rename

    def rename(source: str, target: str, **folders: int) -> None:
        ours = ("tree-", ".tmp-")
        if str(source).startswith(ours) != str(target).startswith(ours):
            raise OSError(18, "Invalid cross-device link")
        real(source, target, **folders)

    async with changed_by(tmp_path, "draft", f"{MAKE}; {MORE}") as d:
        before = look(d.root)
        monkeypatch.setattr(os, "rename", rename)
        await decide_all(d, "accept")
        for _ in range(2):
            assert (look(d.root), states(d)) == (changed(before, WHOLE), ["applied"])
            await undo(d)
            assert (look(d.root), states(d)) == (before, ["reverted"])
            await decide(d, "redo")


SINCE = {
    "nothing": ("true", ""),
    "other content": ("echo mine > big/sub/7.txt", "Changed in this folder since: sub/7.txt."),
    "a new file": ("touch big/sub/mine", "Changed in this folder since: sub/mine."),
    "a deleted file": ("rm big/sub/7.txt", "Changed in this folder since: sub/7.txt."),
    "an executable": ("chmod +x big/sub/7.txt", "Changed in this folder since: sub/7.txt."),
    "a link": ("ln -sfn nowhere big/in", "Changed in this folder since: in."),
    "many files": (
        "rm big/sub/??.txt",
        f"Changed in this folder since: {file_list([f'sub/{at}.txt' for at in range(10, 100)])}.",
    ),
    "a file instead": ("rm -r big; touch big", FILE_CHANGED),
    "a link instead": ("mv big other; ln -s other big", FILE_CHANGED),
    "gone": ("rm -r big", FILE_GONE),
}
"""The user's act after the yes, and why the folder is not taken back then; "" if it is."""


@pytest.mark.parametrize("since", SINCE)
async def test_a_folder_that_the_user_has_changed_is_not_undone(tmp_path: Path, since: str) -> None:
    line, reason = SINCE[since]
    async with changed_by(tmp_path, "draft", f"{MAKE}; {MORE}") as d:
        await decide_all(d, "accept")
        by_user(d.root, line)
        before = look(d.root)
        (file,) = await undo(d)
        assert [each.reason for each in file.skipped] == ([reason] if reason else [])
        assert states(d) == ["applied" if reason else "reverted"] and (look(d.root) == before) == bool(reason)


@pytest.mark.parametrize("there", ["mkdir big", "mkdir big; touch big/mine", "touch big", "ln -s sub big"])
async def test_a_folder_replaces_nothing(tmp_path: Path, there: str) -> None:
    async with changed_by(tmp_path, "draft", MAKE) as d:
        by_user(d.root, there)
        before = look(d.root)
        await decide_all(d, "accept")
        assert (look(d.root), states(d), rows(d)[0].reason) == (before, ["conflicted"], FILE_MADE)


REFUSED = {
    "a repository": ("mkdir big/sub/.git", "it made a repository in big/sub"),
    "a file that programs obey": ("touch big/sub/AGENTS.md", "it made big/sub/AGENTS.md, which programs obey"),
    "a secret": ("touch big/sub/.env", "it made big/sub/.env, which programs obey or which may hold secrets"),
    "a denied file": ("touch big/sub/denied.txt", "it made big/sub/denied.txt, which a rule denies or asks about"),
    "a name that is not UTF-8": ("touch $(printf 'big/\\377')", "a file whose name is not UTF-8"),
    "a name with marks": ("touch $(printf 'big/\\342\\200\\256x')", "a file whose name contains invisible characters"),
    "a link to its file": ("ln big/sub/1.txt linked.txt", "it made hard links to files in big"),
    "files in an old folder": ("seq -f 'sub/%g.txt' 250 | xargs touch", "it changed more than 200 files"),
    "too many folders": ("seq -f 'sub/%g' 201 | xargs mkdir", "it changed more than 200 files"),
}
"""The command's other act, and why its changes cannot be decided on."""


@pytest.mark.parametrize("kind", REFUSED)
async def test_a_folder_with_that_in_it_is_not_decided_as_a_whole(tmp_path: Path, kind: str) -> None:
    line, reason = REFUSED[kind]
    async with scripted_session(tmp_path, step("", shell(f"{MAKE}; {line}")), DONE) as d:
        files(d.root)
        before = look(d.root)
        deny(d, "@write(**/denied.txt)")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert reason in asked.blocked
        await d.answer("reject")
        await d.over("p1")
        assert (look(d.root), rows(d)) == (before, [])


async def test_pipes_and_rights_of_everybody_stay_behind(tmp_path: Path) -> None:
    line = f"{MAKE}; mkfifo big/pipe; touch big/tool; chmod 777 big/tool; mkdir -m 0 big/closed"
    async with changed_by(tmp_path, "draft", line) as d:
        before = look(d.root)
        await decide_all(d, "accept")
        assert look(d.root) == changed(before, {**MADE, "big/tool": "775: ", "big/closed": "/"})


async def test_links_that_lead_out_are_named_and_asked_about(tmp_path: Path) -> None:
    line = f"{MAKE}; ln -s /etc/passwd big/out; ln -s ../notes.txt big/in"
    async with scripted_session(tmp_path, step("", shell(line)), DONE, mode="acceptEdits") as d:
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "Links that lead out of the workspace: out → /etc/passwd" in asked.detail
        await d.answer("allow")
        await d.over("p1")
        assert (d.root / "big" / "out").readlink() == Path("/etc/passwd")


async def test_only_as_many_folders_are_taken_as_a_whole_as_need_be(tmp_path: Path) -> None:
    line = (
        "for d in a b c; do mkdir $d; done; seq -f 'a/%g' 150 | xargs touch; seq -f 'b/%g' 90 | xargs touch; touch c/1"
    )
    async with changed_by(tmp_path, "draft", line) as d:
        assert [(name(d, row), row.title) for row in rows(d)] == [("a", "new folder, 150 files, 0 bytes")]
        before = look(d.root)
        await decide_all(d, "accept")
        added = [*(f"a/{at}" for at in range(1, 151)), *(f"b/{at}" for at in range(1, 91)), "c/1"]
        assert look(d.root) == changed(before, dict.fromkeys(added, ""))


LATER: dict[str, tuple[str, dict[str, str | None] | None]] = {
    "nothing": ("true", {}),
    "a changed file": ("echo x > big/sub/7.txt", {"big/sub/7.txt": "x\n"}),
    "a hidden change": (
        "touch -r big/a.bin /tmp/when; printf 'b\\0' > big/a.bin; touch -r /tmp/when big/a.bin",
        {"big/a.bin": "b\0"},
    ),
    "fewer files": ("rm -r big/sub", dict.fromkeys(MADE)),
    "no folder": ("rm -r big", None),
    "another name": (
        "mv big other",
        {**dict.fromkeys(WHOLE), **{path.replace("big", "other", 1): text for path, text in WHOLE.items()}},
    ),
    "a file instead": ("rm -r big; printf 'f\\0' > big", {**dict.fromkeys(WHOLE), "big": "f\0"}),
}
"""A later command's act on the drafted folder, and what that changes in the draft; None: nothing is left."""


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("kind", LATER)
async def test_later_commands_find_and_change_a_drafted_folder(tmp_path: Path, kind: str, restarts: bool) -> None:
    line, changes = LATER[kind]
    steps = [step("", shell(f"{MAKE}; {MORE}")), DONE, step("", shell(line)), DONE, step("", shell("ls big")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        files(d.root)
        before = look(d.root)
        for at in range(1, 4):
            await turn(d, f"p{at}")
            if restarts:
                await end_daemon(d)
        assert ("run.sh" in results(d)[-1]) == (kind in ("nothing", "a changed file", "a hidden change", "fewer files"))
        assert look(d.root) == before
        await decide_all(d, "accept")
        assert look(d.root) == (before if changes is None else changed(before, {**WHOLE, **changes}))


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_rewind_brings_the_earlier_folder_back(tmp_path: Path, restarts: bool) -> None:
    later = "echo x > big/sub/7.txt; chmod +x big/sub/7.txt"
    steps = [step("", shell(f"{MAKE}; {MORE}")), DONE, step("", shell(later)), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        files(d.root)
        before = look(d.root)
        await turn(d)
        first = described(rows(d)[0])
        await turn(d, "p2")
        assert described(rows(d)[0]) != first
        if restarts:
            await end_daemon(d)
        await d.session.checkpoints.restore(
            CheckpointRestoreParams(session_id="s", turn_id="turn-p2", conversation=True)
        )
        assert described(rows(d)[0]) == first
        await decide_all(d, "accept")
        assert look(d.root) == changed(before, WHOLE)


TOOLS = {
    "edit": edit("run", "x", "big/run.sh"),
    "write": write("big/new.txt", "x\n"),
    "move": call("move_file", path="notes.txt", new_path="big/notes.txt"),
}


@pytest.mark.parametrize("tool", TOOLS)
async def test_tools_do_not_write_into_a_drafted_folder(tmp_path: Path, tool: str) -> None:
    act = TOOLS[tool]
    steps = [step("", shell(f"{MAKE}; {MORE}")), DONE, step("", act), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await turn(d, "p2")
        assert [name(d, row) for row in rows(d)] == ["big"]
        assert "drafted the new folder big, which is decided as a whole" in results(d)[-1]


READ = {
    "big/run.sh": "[draft: with your drafted changes, which the user has not accepted yet]\nrun\n",
    "big/sub/7.txt": "the file is empty",
    "big/a.bin": "is a binary file",
    "big/in": "a symbolic link there",
    "big/sub": "is a folder",
    "big/none.txt": "There is no file big/none.txt in the drafted new folder big. Use a command to list it.",
    "big/../notes.txt": "line 1\n",
}
"""Paths, and a part of what `read_file` says of them while the folder is drafted."""


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_file_in_a_drafted_folder_is_read_from_the_draft(tmp_path: Path, restarts: bool) -> None:
    reads = [call("read_file", path=path) for path in READ]
    steps = [step("", shell(f"{MAKE}; {MORE}")), DONE, step("", *reads), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        if restarts:
            await end_daemon(d)
        await turn(d, "p2")
        found = dict(zip(READ, results(d)[-len(READ) :], strict=True))
        assert {path: text for path, text in found.items() if READ[path] not in text} == {}
        assert not any("tree-" in text for text in found.values())


@pytest.mark.parametrize(("decision", "expected"), [("accept", "run\n"), ("reject", "There is no file big/run.sh")])
async def test_a_file_in_a_decided_folder_is_read_from_the_workspace(
    tmp_path: Path, decision: Literal["accept", "reject"], expected: str
) -> None:
    steps = [step("", shell(f"{MAKE}; {MORE}")), DONE, step("", call("read_file", path="big/run.sh")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        await turn(d)
        await decide_all(d, decision)
        await turn(d, "p2")
        assert results(d)[-1].startswith(expected)


@pytest.mark.parametrize("damage", ["rm -r {}", "touch {}/mine", "rm {}.list", "echo x >> {}.list"])
async def test_a_damaged_folder_is_not_applied(tmp_path: Path, damage: str) -> None:
    async with changed_by(tmp_path, "draft", MAKE) as d:
        before = look(d.root)
        after = rows(d)[0].after
        assert after is not None
        by_user(d.session.core.journal.folder / "files", damage.format(after.file_id))
        await decide_all(d, "accept")
        assert (look(d.root), states(d)) == (before, ["conflicted"])
        assert "missing or damaged" in (rows(d)[0].reason or "")


async def test_a_folder_with_a_file_that_a_rule_denies_by_now_is_not_applied(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", MAKE) as d:
        before = look(d.root)
        deny(d, "@write(big/sub/7.txt)")
        await decide_all(d, "accept")
        assert (look(d.root), states(d)) == (before, ["conflicted"])


async def test_the_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    line = (
        "mkdir big && cd big && seq -f 'd%g' 30 | xargs mkdir && for d in d*; do (cd $d && seq 100 | xargs touch); done"
    )

    async def longest(at: int) -> float:
        (folder := tmp_path / str(at)).mkdir()
        async with scripted_session(folder, step("", shell(line)), DONE, mode="draft") as d:
            with loop_times() as times:
                await turn(d)
                await decide_all(d, "accept")
            assert states(d) == ["applied"] and len(look(d.root)) > 3000
            return max(times)

    await goes_on(longest)
