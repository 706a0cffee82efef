"""Changes that no hunk shows, where something is in their way: all that was accepted is applied or none, and the user
reads why."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals import tracking
from amanu.proposals.model import FILE_CHANGED, FILE_GONE, FILE_MADE
from amanu.proposals.presence import follow_row
from amanu.proposals.rows import LiveRow
from amanu.storage.file_store import FileStore
from amanu.storage.journal import FILES
from amanu.tools.shell import row_changes
from amanu_protocol.items import Mode
from support.draft_session import DONE, decide_all, results, turn
from support.loop_time import goes_on, loop_times
from support.required_programs import needs
from support.row_session import all_states, by_user, changed, changed_by, decide, files, look, over, rows, states, undo
from support.scripted_session import TWELVE, ScriptedSession, scripted_session, step
from support.sweeps import WHOLE
from unit.test_session_commits import commits, repository
from unit.test_session_layer import shell

pytestmark = pytest.mark.layers


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    needs("bwrap")
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "QUIET", 0.01)


TEXT = "echo mine >> notes.txt"
WITH_TEXT = {"notes.txt": f"{TWELVE}mine\n"}
MEANWHILE: list[tuple[str, str, str]] = [
    ("printf 'c\\0d' > pic.bin", "printf 'user' > pic.bin", FILE_CHANGED),
    ("printf 'c\\0d' > pic.bin", "rm pic.bin", FILE_GONE),
    ("printf 'c\\0d' > pic.bin", "rm pic.bin; mkdir pic.bin", FILE_CHANGED),
    ("printf 'c\\0d' > pic.bin", "rm pic.bin; ln -s notes.txt pic.bin", FILE_CHANGED),
    ("printf 'c\\0d' > pic.bin", "rm pic.bin; mkfifo pic.bin", FILE_CHANGED),
    ("printf 'c\\0d' > pic.bin", "touch pic.bin; chmod 600 pic.bin", ""),
    ("printf 'c\\0d' > pic.bin", "printf 'old\\0' > other; mv other pic.bin", ""),
    ("printf 'a\\0b' > new.bin", "printf 'user' > new.bin", FILE_MADE),
    ("printf 'a\\0b' > new.bin", "ln -s nowhere new.bin", FILE_MADE),
    ("mkdir a; printf 'a\\0b' > a/new.bin", "echo > a", "-"),
    ("mkdir a; printf 'a\\0b' > a/new.bin", "ln -s sub a", "-"),
    ("rm pic.bin", "printf 'user' > pic.bin", FILE_CHANGED),
    ("rm pic.bin", "rm pic.bin", FILE_GONE),
    ("ln -sfn sub link", "ln -sfn empty link", FILE_CHANGED),
    ("ln -sfn sub link", "rm link; mkdir link", FILE_CHANGED),
    ("ln -sfn sub link", "rm link; echo > link", FILE_CHANGED),
    ("rm link", "rm link; mkdir link; echo > link/x", FILE_CHANGED),
    ("ln -s pic.bin made", "mkdir made", FILE_MADE),
    ("chmod +x tool.sh", "chmod +x tool.sh", FILE_CHANGED),
    ("chmod +x tool.sh", "rm tool.sh", FILE_GONE),
    ("chmod +x tool.sh", "echo more >> tool.sh", ""),
    ("chmod +x tool.sh", "mv tool.sh other; ln -s other tool.sh", FILE_CHANGED),
    ("chmod +x pic.bin", "printf 'user' > pic.bin", ""),
    ("mkdir a", "echo > a", FILE_MADE),
    ("mkdir a", "ln -s sub a", FILE_MADE),
    ("mkdir a", "mkdir a", ""),
    ("rmdir empty", "rmdir empty", FILE_GONE),
    ("rmdir empty", "rmdir empty; echo > empty", FILE_CHANGED),
    ("rmdir empty", "rmdir empty; ln -s sub empty", FILE_CHANGED),
    ("rmdir empty", "echo > empty/user", "Directory not empty."),
]
"""The command, what the user does before they accept, and why nothing is applied then; "" if all of it is."""


@pytest.mark.parametrize("mode", ["ask", "draft"])
@pytest.mark.parametrize(("line", "user", "reason"), MEANWHILE)
async def test_nothing_is_applied_where_something_else_is_there_by_now(
    tmp_path: Path, mode: Mode, line: str, user: str, reason: str
) -> None:
    """The text beside it is not applied either, although it would fit."""
    async with changed_by(tmp_path, mode, f"{TEXT}; {line}") as d:
        by_user(d.root, user)
        before = look(d.root)
        await decide_all(d, "accept")
        hunk = d.session.state.proposals[-1].files[0].hunks[0]
        if not reason:
            assert (states(d), hunk.state) == (["applied"], "applied")
            return
        assert look(d.root) == before
        (row,) = rows(d)
        assert row.state == "conflicted" and row.reason and (reason == "-" or row.reason == reason)
        assert hunk.state == "pending" and "is in conflict, so nothing was applied" in (hunk.reason or "")
        await decide_all(d, "reject")
        await over(d)
        assert (look(d.root), states(d)) == (before, ["rejected"])


@pytest.mark.parametrize("mode", ["ask", "draft"])
@pytest.mark.parametrize("user", ["echo > sub/user", "mkdir sub/deep/user", ""])
async def test_a_folder_is_not_removed_with_what_the_user_made_in_it(tmp_path: Path, mode: Mode, user: str) -> None:
    async with changed_by(tmp_path, mode, "rm sub/a.txt sub/deep/b.bin; rmdir sub/deep sub") as d:
        by_user(d.root, user)
        before = look(d.root)
        await decide_all(d, "accept")
        assert (look(d.root) == before) == bool(user) == ("Directory not empty." in {row.reason for row in rows(d)})
        assert user or all_states(d) == {"applied"}


async def test_what_is_in_conflict_is_accepted_once_it_fits_again(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", f"{TEXT}; printf 'c\\0d' > pic.bin") as d:
        by_user(d.root, "mv pic.bin other; printf 'user' > pic.bin")
        await decide_all(d, "accept")
        assert states(d) == ["conflicted"]
        by_user(d.root, "mv other pic.bin")
        before = look(d.root)
        await decide_all(d, "accept")
        assert (look(d.root), states(d)) == (changed(before, WITH_TEXT | {"pic.bin": "c\0d"}), ["applied"])


@pytest.mark.parametrize(
    ("line", "user", "reason"),
    [
        ("printf 'c\\0d' > pic.bin", "printf 'user' > pic.bin", FILE_CHANGED),
        ("printf 'a\\0b' > new.bin", "printf 'user' > new.bin", FILE_MADE),
        ("rm pic.bin", "rm pic.bin", FILE_GONE),
        ("mkdir a", "echo > a", FILE_MADE),
        ("chmod +x tool.sh", "rm tool.sh", FILE_GONE),
    ],
)
async def test_what_was_undone_is_not_done_again_over_what_the_user_made(
    tmp_path: Path, line: str, user: str, reason: str
) -> None:
    async with changed_by(tmp_path, "acceptEdits", line) as d:
        await undo(d)
        by_user(d.root, user)
        before = look(d.root)
        await decide(d, "redo")
        (row,) = rows(d)
        assert (look(d.root), row.reason) == (before, reason)
        assert row.state in ("reverted", "conflicted")


NAMES = {
    "two lines": ("new\nline.bin", "new<U+000A>line.bin"),
    "right to left": ("gpj\u202e.bin", "gpj<U+202E>.bin"),
    "no width": ("a\u200bb.bin", "a<U+200B>b.bin"),
    "an escape": ("a\x1b[2Jb.bin", "a<U+001B>[2Jb.bin"),
}


@pytest.mark.parametrize("mode", ["ask", "draft"])
@pytest.mark.parametrize("what", ["file", "link", "folder", "mode", "deletion"])
@pytest.mark.parametrize("title", NAMES)
async def test_what_a_name_hides_is_shown(tmp_path: Path, mode: Mode, what: str, title: str) -> None:
    """All texts about it show the hidden characters; the path is as it is."""
    raw, shown = NAMES[title]
    name = f"'{raw}'"
    lines = {
        "file": f"printf 'a\\0b' > {name}",
        "link": f"ln -s {name} made",
        "folder": f"mkdir {name}",
        "mode": f"chmod +x {name}",
        "deletion": f"rm {name}",
    }
    async with scripted_session(tmp_path, step("", shell(f"{TEXT}; {lines[what]}")), DONE, mode=mode) as d:
        files(d.root)
        if what in ("mode", "deletion"):
            (d.root / raw).write_bytes(b"a\0b")
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        (row,) = rows(d)
        assert Path(row.path).name == ("made" if what == "link" else raw)
        said = [asked.title, row.title, *(line.text for line in (*row.lines, *asked.lines))]
        assert not any(letter in text for text in (*said, asked.detail) for letter in "\u202e\u200b\x1b")
        assert not any("\n" in text for text in said)
        assert shown in asked.detail
        assert what != "link" or row.title == f"link to {shown}"


@pytest.mark.parametrize("title", NAMES)
async def test_what_a_name_hides_is_shown_in_reasons(tmp_path: Path, title: str) -> None:
    raw, shown = NAMES[title]
    async with changed_by(tmp_path, "draft", f"{TEXT}; printf 'a\\0b' > '{raw}'") as d:
        (d.root / raw).write_bytes(b"user")
        await decide_all(d, "accept")
        hunk = d.session.state.proposals[-1].files[0].hunks[0]
        assert hunk.reason == f"{shown} is in conflict, so nothing was applied."


async def test_a_link_to_what_is_no_text_is_shown(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "draft", "ln -s \"$(printf 'a\\377b')\" made") as d:
        assert rows(d)[0].title == "link to a\\udcffb"
        await decide_all(d, "accept")
        assert os.fsencode((d.root / "made").readlink()) == b"a\xffb"


def stored(d: ScriptedSession) -> Path:
    return d.session.core.journal.folder / FILES


def missing(path: Path) -> None:
    path.unlink()


def other(path: Path) -> None:
    path.write_bytes(b"other\0")


LOST = "Amanu's copy of this file is missing or damaged. Ask for the change again."


@pytest.mark.parametrize("mode", ["ask", "draft"])
@pytest.mark.parametrize(
    "damage",
    [missing, other],
)
async def test_a_file_that_is_no_longer_as_it_was_kept_is_not_applied(
    tmp_path: Path, mode: Mode, damage: Callable[[Path], None]
) -> None:
    async with changed_by(tmp_path, mode, f"{TEXT}; printf 'a\\0b' > new.bin") as d:
        before = look(d.root)
        (row,) = rows(d)
        assert row.after is not None
        damage(stored(d) / row.after.file_id)
        await decide_all(d, "accept")
        (row,) = rows(d)
        assert (row.state, row.reason) == ("conflicted", LOST)
        assert look(d.root) == before


@pytest.mark.parametrize("damage", [missing, other])
async def test_a_file_that_was_kept_for_undo_and_is_damaged_does_not_replace_another(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    async with changed_by(tmp_path, "acceptEdits", "printf 'c\\0d' > pic.bin") as d:
        before = look(d.root)
        (row,) = rows(d)
        assert row.before is not None
        damage(stored(d) / row.before.file_id)
        (file,) = await undo(d)
        assert (look(d.root), states(d)) == (before, ["applied"])
        assert file.skipped[0].reason in (LOST, "Amanu cannot undo this change.")


async def test_a_row_that_could_not_be_undone_says_why_also_after_a_look_at_its_file(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "acceptEdits", "printf 'c\\0d' > pic.bin") as d:
        (row,) = rows(d)
        live = LiveRow.load(row)
        assert not follow_row(live, "after", is_there=True)
        live.reason = LOST
        assert not follow_row(live, "after", is_there=True)
        assert (live.state, live.reason) == ("applied", LOST)


@pytest.mark.parametrize("damage", [missing, other])
async def test_a_command_does_not_run_on_a_draft_that_is_damaged(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    steps = [step("", shell("printf 'a\\0b' > new.bin")), DONE, step("", shell("ls new.bin")), DONE]
    async with scripted_session(tmp_path, *steps, mode="draft") as d:
        files(d.root)
        await turn(d)
        (row,) = rows(d)
        assert row.after is not None
        damage(stored(d) / row.after.file_id)
        await d.session.core.layer.close()  # the next command needs the file
        await turn(d, "p2")
        assert "A file of the draft is missing from Amanu's store, or was changed there." in results(d)[-1]


def full(store: FileStore, source: int) -> str:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("mode", ["ask", "acceptEdits", "draft"])
@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("printf 'a\\0b' > new.bin", set[str]()),
        ("printf 'c\\0d' > pic.bin; ln -s pic.bin made; chmod +x tool.sh", {"made", "tool.sh"}),
        ("rm pic.bin", {"pic.bin"}),
    ],
)
async def test_what_the_disk_has_no_room_for_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, line: str, kept: set[str]
) -> None:
    """The command's other changes are there, and the next command runs. A deletion of which nothing could be kept says
    that it cannot be undone."""
    steps = [step("", shell(f"{TEXT}; {line}")), step("", shell("ls; exit 3")), DONE]
    async with scripted_session(tmp_path, *steps, mode=mode) as d:
        files(d.root)
        monkeypatch.setattr(FileStore, "add", full)
        await d.prompt("go")
        while (await d.until(lambda state: state.approvals or state.last_turn)).approvals:
            await d.answer("allow")
        await d.over("p1")
        told, after = results(d)
        is_said = "Not kept, because the disk is full: " in told and "then run the command again." in told
        assert is_said == (line != "rm pic.bin") and "Traceback" not in told
        assert {Path(row.path).name for row in rows(d)} == kept and all_states(d) == {"applied"}
        assert d.file.read_text() == WITH_TEXT["notes.txt"] and "new.bin" not in after
        warned = {line.text for row in rows(d) for line in row.lines}
        assert warned == ({row_changes.NO_UNDO} if line == "rm pic.bin" else set())


@pytest.mark.parametrize(
    "line",
    [
        "printf 'a\\0b' > new.bin; git add new.bin && git commit -qm new",
        "mv pic.bin moved.bin",
        "gzip -c notes.txt > notes.gz; rm notes.txt",
    ],
)
async def test_a_command_fails_where_the_disk_has_no_room_for_files_that_its_other_changes_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    async with scripted_session(tmp_path, step("", shell(line)), DONE) as d:
        files(d.root)
        repository(d.root)
        before = look(d.root)
        monkeypatch.setattr(FileStore, "add", full)
        await d.prompt("go")
        await d.over("p1")
        assert "The disk is full. Free some space, then run the command again." in results(d)[0]
        assert commits(d.root) == ["first"] and rows(d) == [] and look(d.root) == before


async def test_a_disk_that_is_full_while_it_is_applied_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with changed_by(tmp_path, "draft", "printf 'c\\0d' > pic.bin; rm own.bin; ln -s pic.bin made") as d:
        before = look(d.root)

        def fail(store: FileStore, file_id: str, target: int) -> None:
            os.write(target, b"c")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(FileStore, "write", fail)
            await decide_all(d, "accept")
        assert (look(d.root), sorted(states(d))) == (before, ["conflicted", "pending", "pending"])
        assert all(row.reason and "the disk is full" in row.reason for row in rows(d))
        await decide_all(d, "accept")
        assert {*states(d)} == {"applied"}


BIG = 70 << 20


@pytest.mark.parametrize("answer", ["allow", "reject"])
@pytest.mark.parametrize("line", ["printf 'a\\0' > big.bin", "rm big.bin", "ln -sf notes.txt big.bin"])
async def test_a_change_that_cannot_be_undone_is_asked_about(
    tmp_path: Path, line: str, answer: Literal["allow", "reject"]
) -> None:
    async with scripted_session(tmp_path, step("", shell(f"{TEXT}; {line}")), DONE, mode="acceptEdits") as d:
        with (d.root / "big.bin").open("wb") as file:
            file.truncate(BIG)
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals)).approvals
        assert "Amanu cannot undo this change" in "\n".join([asked.rule, *(line.text for line in asked.lines)])
        (row,) = rows(d)
        assert [line.tone for line in row.lines] == ["warning"] and row.before and row.before.size == BIG
        await d.answer(answer)
        await d.over("p1")
        is_there = (d.root / "big.bin").is_file() and (d.root / "big.bin").stat().st_size == BIG
        assert is_there == (answer == "reject") == (d.file.read_text() == TWELVE)
        assert sum(path.stat().st_size for path in stored(d).iterdir()) < BIG if stored(d).is_dir() else True
        if answer == "allow":
            reasons = [each.reason for file in await undo(d) for each in file.skipped]
            assert (
                len(reasons) == 1
                and reasons[0].startswith("Amanu cannot undo this change")
                and d.file.read_text() == TWELVE
            )


async def test_a_new_large_file_is_not_asked_about(tmp_path: Path) -> None:
    async with changed_by(tmp_path, "acceptEdits", f"truncate -s {BIG} big.bin") as d:
        assert (d.root / "big.bin").stat().st_size == BIG and states(d) == ["applied"]
        (file,) = await undo(d)
        assert not file.skipped and not (d.root / "big.bin").exists()
        await decide(d, "redo")
        assert (d.root / "big.bin").stat().st_size == BIG


HUGE = 600 << 20 if WHOLE else 24 << 20


async def test_a_very_large_file_does_not_hold_the_loop(tmp_path: Path) -> None:
    async def longest(attempt: int) -> float:
        folder = tmp_path / str(attempt)
        folder.mkdir()
        steps = [step("", shell(f"truncate -s {HUGE} big.bin; printf x >> big.bin")), DONE]
        async with scripted_session(folder, *steps, mode="draft") as d:
            with loop_times() as times:
                await turn(d)
                await decide_all(d, "accept")
            assert (d.root / "big.bin").stat().st_size == HUGE + 1
            assert [row.title for row in rows(d)] == [f"new file too large to show, {HUGE + 1:,} bytes"]
            return max(times)

    await goes_on(longest)


async def test_a_full_store_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change cannot be undone then, because the former file is not kept any more."""
    monkeypatch.setattr(row_changes, "MAX_STORE", 0)
    async with scripted_session(tmp_path, step("", shell("printf 'c\\0' > pic.bin")), DONE, mode="acceptEdits") as d:
        files(d.root)
        await d.prompt("go")
        (asked,) = (await d.until(lambda state: state.approvals or state.last_turn)).approvals
        assert "Amanu cannot undo this change" in "\n".join([asked.rule, *(line.text for line in asked.lines)])
