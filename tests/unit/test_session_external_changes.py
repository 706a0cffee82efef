"""Files change outside of the session: open hunks follow, and the model hears what it should read again."""

import asyncio
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amanu.frontends.lsp.buffers import Buffers, EditorClient
from amanu.permissions import approvals as approval
from amanu.proposals import tracking as following
from amanu.workspace import watcher as watching
from amanu_protocol.items import HunkState
from amanu_protocol.requests import EditScope, ProposalUndoParams
from support.scripted_session import TWELVE, TWO_HUNKS, call, scripted_session, step

CHANGED = "Changed since you read them, not by your edits: "
READ = step("", call("read_file", path="notes.txt"))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)
    monkeypatch.setattr(following, "QUIET", 0.01)
    monkeypatch.setattr(watching, "DELAY", 0.01)


def by_rename(path: Path, text: str) -> None:
    beside = path.with_name(".notes.txt.swp")
    beside.write_text(text)
    beside.replace(path)


def anew(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


@pytest.mark.parametrize("write", [Path.write_text, by_rename, anew])
@pytest.mark.parametrize(
    ("text", "states", "applied"),
    [
        ("zero\n" + TWELVE, ["pending", "pending"], "zero\n" + TWO_HUNKS),
        (TWELVE.replace("line 2\n", "a line\n"), ["conflicted", "pending"], None),
        (TWELVE.replace("line 6\n", "line six\n"), ["pending", "pending"], TWO_HUNKS.replace("line 6\n", "line six\n")),
    ],
)
async def test_open_hunks_follow_what_happens_on_disk(
    tmp_path: Path, write: Callable[[Path, str], object], text: str, states: list[HunkState], applied: str | None
) -> None:
    async with scripted_session(
        tmp_path, step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    ) as d:
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        write(d.file, text)
        await d.until(lambda state: state.proposals[0].files[0].base_text == text)
        assert [hunk.state for hunk in d.session.state.proposals[0].files[0].hunks] == states
        if applied is not None:
            await d.decide("accept", "accept")
            await d.ended()
            assert d.file.read_text() == applied
        else:
            await d.answer("reject")
            await d.ended()


@pytest.mark.parametrize(
    ("calls", "change", "told"),
    [
        ([call("read_file", path="notes.txt")], "other\n", True),
        ([call("read_file", path="notes.txt")], TWELVE, False),
        ([call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")], TWELVE, True),
        ([call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")],
         TWELVE.replace("line 2\n", "line two\n"), False),
        ([call("list_directory", path=".")], "other\n", False),
    ],
)  # fmt: skip
async def test_what_the_model_read_is_known_after_a_restart(
    tmp_path: Path, calls: list[dict[str, Any]], change: str, told: bool
) -> None:
    async with scripted_session(
        tmp_path, step("", *calls), step("One."), step("Two."), step("Three."), mode="acceptEdits"
    ) as d:
        await d.prompt("go", "p1")
        await d.over("p1")
        await d.reopen()
        d.file.write_text(change)
        await d.prompt("on", "p2")
        await d.over("p2")
        assert d.told().count(f"{CHANGED}notes.txt.") == told
        await d.reopen()
        await d.prompt("and on", "p3")
        await d.over("p3")


async def test_the_disk_is_listened_to_only_while_something_is_open(tmp_path: Path) -> None:
    """An editor that stays open for days must not keep the machine awake for edits that were applied long ago."""

    def listens() -> bool:
        return any(thread.name == "amanu-watching" for thread in threading.enumerate())

    async def until(wanted: bool) -> None:
        async with asyncio.timeout(50):
            while listens() != wanted:
                await asyncio.sleep(0.01)

    async with scripted_session(
        tmp_path, step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    ) as d:
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        await until(True)
        await d.decide("accept", "reject no")
        await d.ended()
        await until(False)
        proposal = d.session.state.proposals[0]
        d.file.write_text("zero\n" + d.file.read_text())
        changed = [hunk.hunk_id for hunk in proposal.files[0].hunks if hunk.state == "applied"]
        await d.session.core.proposals.undo(proposal.proposal_id, changed)
        assert d.file.read_text() == "zero\n" + TWELVE


async def test_a_branch_and_back(tmp_path: Path) -> None:
    """Twenty files with open hunks, in folders that the other branch does not have."""

    def git(*args: str) -> None:
        settings = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *settings, *args], cwd=root, check=True, capture_output=True)

    root = tmp_path / "work"
    names = [f"pkg{at % 4}/sub/f{at}.txt" for at in range(20)]
    root.mkdir()
    (root / "notes.txt").write_text(TWELVE)
    git("init")
    git("add", ".")
    git("commit", "-m", "no packages")
    git("checkout", "-b", "packages")
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(TWELVE)
    git("add", ".")
    git("commit", "-m", "packages")
    git("checkout", "-b", "longer")
    for name in names:
        (root / name).write_text("zero\n" + TWELVE)
    git("commit", "-am", "longer")
    git("checkout", "packages")
    edits = [call("edit_file", path=name, old_text="line 11\n", new_text="line eleven\n") for name in names]
    async with scripted_session(tmp_path, step("", *edits), step("Fine.")) as d:

        def bases(text: str) -> bool:
            return {file.base_text for each in d.session.state.proposals for file in each.files} == {text}

        await d.prompt("change them")
        await d.until(lambda state: len(state.approvals) == 20)
        git("checkout", "longer")
        await d.until(lambda _: bases("zero\n" + TWELVE))
        git("checkout", "main")
        git("checkout", "packages")
        await d.until(lambda _: bases(TWELVE))
        assert {hunk.state for each in d.session.state.proposals for hunk in each.files[0].hunks} == {"pending"}
        await d.session.prompts.cancel("turn-p1")


@pytest.mark.parametrize("decided", [True, False])
async def test_nothing_runs_on_when_nothing_is_open_any_more(tmp_path: Path, decided: bool) -> None:
    def running() -> bool:
        return any(thread.name == "amanu-watching" for thread in threading.enumerate())

    async with scripted_session(
        tmp_path, step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine.")
    ) as d:
        await d.prompt("change it")
        await d.until(lambda state: state.approvals and running())
        if decided:
            await d.answer("reject")
            await d.until(lambda state: not running())
    assert not running()


async def test_told_between_two_steps(tmp_path: Path) -> None:
    command = "printf 'formatted\\n' > notes.txt"
    steps = (
        READ,
        step("", call("run_shell_command", command=command)),
        step("", call("glob", pattern="*"), expect=CHANGED + "notes.txt. Read them again before you edit them."),
        step("Done."),
    )
    async with scripted_session(tmp_path, *steps) as d:
        d.session.allow("@run")
        await d.prompt("format it")
        state = await d.ended()
        assert d.told().count(CHANGED) == 1
        notices = [item.text for item in state.items if item.kind == "notice" and item.code == "modelTold"]
        assert notices == ["The model was told that these files changed since it read them: notes.txt."]


async def test_told_with_the_next_prompt_also_of_what_is_typed(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, READ, step("Read."), step("I see."), step("Well."), step("Gone.")) as d:
        buffers = Buffers(
            EditorClient("Test", lambda *_: asyncio.sleep(0), "utf-16"), d.sessions.overlay.notify_changed
        )
        d.sessions.overlay.add(buffers)
        told: list[str] = []
        for at, text in enumerate([None, "typed\n", "typed\n", ""]):
            if text:
                buffers.opened(d.file.as_uri(), at, text)
            elif text == "":
                buffers.closed(d.file.as_uri())
                d.file.unlink()
            before = len(d.told())
            await d.prompt("go on", f"p{at}")
            await d.over(f"p{at}")
            _, _, after = d.told()[before:].partition(CHANGED)
            told.append(after.partition(". Read")[0])
        assert told == ["", "notes.txt (unsaved in the editor)", "", "notes.txt (deleted)"]


async def test_its_own_edits_are_no_news_however_late_they_are_accepted(tmp_path: Path) -> None:
    steps = READ, step("", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Fine."), step("Bye.")
    async with scripted_session(tmp_path, *steps) as d:
        await d.prompt("change it")
        await d.until(lambda state: state.approvals)
        await d.decide("accept")
        await d.prompt("go on", "p2")  # the review is over; the other hunk stays open
        await d.until(lambda state: state.last_turn and state.last_turn.turn_id == "turn-p2")
        await d.decide("accept", "accept")
        assert d.file.read_text() == TWO_HUNKS
        await d.prompt("bye", "p3")
        await d.over("p3")
        assert CHANGED not in d.told()


async def test_a_mention_is_read_too(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Read."), step("I see."), step("Yes.")) as d:
        await d.prompt("look at @notes.txt")
        await d.ended()
        d.file.write_text("other\n")
        await d.prompt("look at @notes.txt again", "p2")  # it is shown, so there is nothing to tell
        await d.over("p2")
        assert CHANGED not in d.told()
        d.file.write_text("again\n")
        await d.prompt("go on", "p3")
        await d.over("p3")
        assert CHANGED + "notes.txt." in d.told()


@pytest.mark.parametrize(
    ("written", "undone", "told"),
    [
        # by a command, then looked at because of a further edit of that file; or in an editor that shows it
        ("LINE TWO\n", False, None),
        ("line two\n", True, "the user took this change back"),
        ("line 2\n", False, "Its lines in the file are as they were before it"),
    ],
)
@pytest.mark.parametrize("shown", [False, True])
async def test_what_happens_to_an_accepted_change_is_no_decision(
    tmp_path: Path, written: str, undone: bool, told: str | None, shown: bool
) -> None:
    edits = [
        call("edit_file", path="notes.txt", old_text=f"line {old}\n", new_text=f"line {new}\n")
        for old, new in (("2", "two"), ("11", "eleven"))
    ]
    text = TWELVE.replace("line 2\n", written)
    formatting = call("run_shell_command", command=f"printf '%s' '{text}' > notes.txt")
    steps = step("", edits[0]), step("", formatting), step("", edits[1]), step("Done."), step("Well."), step("Yes.")
    async with scripted_session(tmp_path, *steps) as d:
        d.session.allow("@run")
        await d.prompt("change it")
        await d.answer("allow", scope="once")
        await d.until(lambda state: len(state.proposals) == 2)
        if shown:
            buffers = Buffers(
                EditorClient("Test", lambda *_: asyncio.sleep(0), "utf-16"), d.sessions.overlay.notify_changed
            )
            d.sessions.overlay.add(buffers)
            buffers.opened(d.file.as_uri(), 1, d.file.read_text())
            await asyncio.sleep(0.1)
            buffers.closed(d.file.as_uri())
        await d.answer("allow", scope="once")
        await d.ended()
        if undone:
            scope = EditScope(proposal_id=d.session.state.proposals[0].proposal_id)
            await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=scope))
        await d.prompt("go on", "p2")
        await d.over("p2")
        late = [item for item in d.session.state.items if item.kind == "notice" and item.code == "lateDecision"]
        assert len(late) == (told is not None)
        assert "the user changed your text" not in d.told()
        assert told is None or told in d.told()
        assert (CHANGED + "notes.txt" in d.told()) == (not undone)
        await d.prompt("and on", "p3")
        await d.over("p3")
        assert d.told().count("Later decisions about your earlier edits") == len(late), "told once"
