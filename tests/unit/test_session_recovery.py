"""A killed daemon leaves an edit half done, and nobody opens its session again: the next daemon ends it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from amanu.home import find_home
from amanu.session.sessions import open_sessions
from amanu.storage import lease
from amanu.storage.journal import Journal
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import SessionCreateParams, SessionListParams
from support.scripted_session import TWELVE, scripted_session, step

DEATHS = """
import asyncio, json, os, signal, sys
from pathlib import Path
from amanu.workspace.replacement import _Replacing
from amanu_protocol.requests import SessionListParams
from support.scripted_session import call, scripted_session, step

PATCH = "*** Update File: notes.txt\\n-line 2\\n+line two\\n*** Add File: new.txt\\n+new\\n"
PATCH += "*** Add File: newer.txt\\n+newer"

def dies_at(number):
    make, count = _Replacing.make, 0

    def make_or_die(staged):
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return make(staged)

    _Replacing.make = make_or_die

async def edits(folder):
    async with scripted_session(folder, step("", call("apply_patch", patch=PATCH)), mode="acceptEdits") as d:
        await d.prompt("go")
        await d.ended()

async def asks(folder):
    async with scripted_session(folder, step("", call("run_shell_command", command="touch x"))) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        assert [each.status for each in (await d.sessions.summaries.list(SessionListParams())).sessions] == ["waiting"]
        os.kill(os.getpid(), signal.SIGKILL)

for name in sys.argv[2:]:
    if not (child := os.fork()):
        folder = Path(sys.argv[1], name)
        os.environ["AMANU_HOME"] = str(folder / "amanu")
        if name.startswith("edit"):
            dies_at(int(name[-1]))
        asyncio.run(edits(folder) if name.startswith("edit") else asks(folder))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""
"""Daemons that are killed, each in the folder of its name: all of one process, whose start costs more than they do."""
AFTER = {"notes.txt": TWELVE.replace("line 2\n", "line two\n"), "new.txt": "new\n", "newer.txt": "newer\n"}


Died = Callable[[str], Path]


@pytest.fixture(scope="module")
def _deaths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, names = tmp_path_factory.mktemp("deaths"), ["edit 1", "edit 2", "edit 3", "ask", "ask, opened"]
    for name in names:
        (folder / name).mkdir()
    tests = str(Path(__file__).parents[1])
    subprocess.run(
        [sys.executable, "-c", DEATHS, str(folder), *names], env={**os.environ, "PYTHONPATH": tests}, check=True
    )
    return folder


@pytest.fixture
def died(_deaths: Path, monkeypatch: pytest.MonkeyPatch) -> Died:
    """Return the workspace of a death in `DEATHS` by its name; its home becomes the test's."""

    def died(name: str) -> Path:
        monkeypatch.setenv("AMANU_HOME", str(_deaths / name / "amanu"))
        return _deaths / name / "work"

    return died


@pytest.mark.parametrize(("dies_at", "expected"), [(1, {"notes.txt": TWELVE}), (2, AFTER), (3, AFTER)])
async def test_an_edit_of_a_session_nobody_opens_again(died: Died, dies_at: int, expected: dict[str, str]) -> None:
    work = died(f"edit {dies_at}")
    assert len(list(work.iterdir())) > len(expected) or dies_at > 1, "temporary files are there"
    folder = find_home().sessions / "s"
    assert lease.left(folder)
    sessions = open_sessions()
    try:
        await sessions.recover_unfinished()
        assert {path.name: path.read_text() for path in work.iterdir()} == expected
        assert not lease.left(folder) and sessions.opened("s") is None
        state = (await sessions.get("s")).state
        assert state.turn is None
        hunks = {hunk.state for proposal in state.proposals for file in proposal.files for hunk in file.hunks}
        assert hunks == {"pending" if dies_at == 1 else "applied"}
    finally:
        await sessions.shutdown()


@pytest.mark.parametrize("opened_first", [True, False])
async def test_the_list_says_that_a_turn_died_with_its_daemon(died: Died, opened_first: bool) -> None:
    died("ask, opened" if opened_first else "ask")
    sessions = open_sessions()

    async def status() -> str:
        (summary,) = (await sessions.summaries.list(SessionListParams())).sessions
        return summary.status

    try:
        assert await status() == "interrupted"
        if opened_first:  # by whoever looks at it: it is held by a living process then
            assert (await sessions.get("s")).state.turn is None
            assert await status() == "interrupted"
        await sessions.recover_unfinished()
        assert await status() == "interrupted"
        await sessions.close("s")
    finally:
        await sessions.shutdown()


async def test_what_is_open_or_was_put_away_is_left_alone(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        before = d.session.emit.seq
        await d.sessions.recover_unfinished()
        assert d.sessions.opened("s") is d.session and d.session.emit.seq == before
        other = open_sessions()  # another daemon: it may not have the lease
        try:
            await other.recover_unfinished()
            assert other.opened("s") is None and lease.left(find_home().sessions / "s")
        finally:
            await other.shutdown()
        await d.sessions.close("s")
        assert not lease.left(find_home().sessions / "s")
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state


@pytest.mark.parametrize("left", [None, 0, 0.3, 0.5, 0.6])
async def test_a_session_without_its_journal_goes_on_and_says_so(tmp_path: Path, left: float | None) -> None:
    """Of the file that part is left; None: it was deleted."""
    async with scripted_session(tmp_path, step("One."), step("Two.")) as d:
        await d.session.set_mode("plan")
        await d.prompt("go")
        await d.over("p1")
        model = d.session.state.model_id
        await d.sessions.close("s")
        folder = find_home().sessions / "s"
        journal = folder / "journal.sqlite"
        for each in folder.glob("journal.sqlite-*"):
            each.unlink()
        if left is None:
            journal.unlink()
        else:
            os.truncate(journal, int(journal.stat().st_size * left))
        for _ in range(2):
            d.session = await d.sessions.get("s")
            state = d.session.state
            assert (state.model_id, state.title, state.roots) == (model, "go", [str(d.root)])
            notices = [each.text for each in state.items if each.kind == "notice"]
            assert len(notices) == 1 and ("is missing" if left is None else "was damaged") in notices[0]
            await d.sessions.close("s")
        d.session = await d.sessions.get("s")
        d.client.state = d.session.attach(d.client, None, None).state
        await d.prompt("and now?", "p2")
        await d.over("p2")


async def test_a_session_whose_creation_was_cut_off_does_not_exist(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("ok")) as d:
        await (await Journal.open(find_home(os.environ).sessions / "cut")).close()
        with pytest.raises(AmanuError, match="There is no session cut"):
            await d.sessions.get("cut")
        params = SessionCreateParams(session_id="cut", roots=[str(d.root)], model_id=d.session.state.model_id)
        made = await d.sessions.create(params, d.client)
        assert made.state.model_id == d.session.state.model_id
