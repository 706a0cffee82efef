"""A user's folders as each older version left them (`states/VERSION`): today's Amanu opens them, and goes on."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from amanu.config import load_settings
from amanu.home import find_home
from amanu.permissions.rule_store import RuleStore
from amanu.session.sessions import open_sessions
from amanu.storage.audit_chain import verify
from amanu.storage.journal_sqlite import checksum
from amanu.storage.packing import pack, unpack
from amanu_protocol.requests import SessionListParams
from support.draft_session import DONE, decide_all, finish, results
from support.row_session import look
from support.scripted_session import TWELVE, ScriptedSession, call, step
from support.session_client import Client

STATES = Path(__file__).parent / "states"
MOUNT = "/mnt"
"""The folder whose `work` was the session's workspace."""
ACCEPTED = TWELVE.replace("line 2\n", "line two\n")
CONVERSATION = [
    ("userMessage", "Number two as a word, please."),
    ("answer", "The second line first."),
    ("toolCall", "Edit notes.txt"),
    ("answer", "It is a word now."),
    ("toolCall", "Apply the draft: 1 file"),
    ("userMessage", "Now nine, and a picture."),
    ("answer", "A picture, too."),
    ("toolCall", "Run printf 'a\\0b' > new.bin: 1 file changed"),
    ("toolCall", "Edit notes.txt"),
    ("answer", "Both are in a draft."),
    ("toolCall", "Left the draft for later: 2 files"),
]
RULES = [
    ("allow", "run_shell_command(make *)"),
    ("deny", "@read(secrets/**)"),
    ("mustAsk", "@write(pyproject.toml)"),
    ("allow", "run_shell_command(git fetch *)"),
    ("allow", "run_shell_command(npm test *)"),
]


@pytest.fixture(params=sorted(each.name for each in STATES.iterdir() if each.is_dir()))
def home(request: pytest.FixtureRequest) -> Path:
    """The user's folders, as that version left them."""
    home = Path(os.environ["AMANU_HOME"])
    shutil.copytree(STATES / request.param, home)
    return home


async def test_the_session_is_listed_and_opened_where_its_workspace_is_gone(home: Path) -> None:
    sessions = open_sessions()
    try:
        (summary,) = (await sessions.summaries.list(SessionListParams())).sessions
        assert (summary.title, summary.roots, summary.files) == (CONVERSATION[0][1], [f"{MOUNT}/work"], 2)
        state = (await sessions.get("s")).state
        assert [(each.kind, getattr(each, "text", None) or getattr(each, "title", "")) for each in state.items] == (
            CONVERSATION
        )
        hunks = [[hunk.state for file in each.files for hunk in file.hunks] for each in state.proposals]
        assert hunks == [["applied"], ["pending"], ["rejected", "rejected"]], "the last turn was taken back"
        assert [row.state for each in state.proposals for row in each.rows] == ["pending"]
    finally:
        await sessions.shutdown()


def test_rules_settings_and_the_audit_log_hold(home: Path) -> None:
    found = find_home()
    settings = load_settings(found, os.environ)
    assert (settings.mode, settings.limits.steps, settings.limits.cost_usd) == ("draft", 40, 2.0)
    rules = RuleStore(found.config, settings).rules([f"{MOUNT}/work"], trusted=False)
    assert [(each.kind, each.text) for each in rules] == RULES
    assert verify(found.audit).fault == ""


async def test_the_session_goes_on(home: Path, tmp_path: Path) -> None:
    """Its draft is accepted, and a rule that was kept denies what the next turn reads."""
    root = tmp_path / "work"
    (root / "secrets").mkdir(parents=True)
    (root / "notes.txt").write_text(ACCEPTED)
    (root / "secrets" / "key").write_text("x\n")
    said = 4 * [DONE]  # the replies that are in the conversation already
    (tmp_path / "script.json").write_text(json.dumps([*said, step("", call("read_file", path="secrets/key")), DONE]))
    move(home, str(tmp_path))
    sessions, client = open_sessions(), Client(os.environ)
    sessions.connect(client)
    d = ScriptedSession(sessions, client, await sessions.get("s"), root)
    try:
        await decide_all(d, "accept")
        text = ACCEPTED.replace("line 9\n", "nine\n")
        assert look(root) == {"notes.txt": text, "new.bin": "a\0b", "secrets/key": "x\n"}
        await d.prompt("And the key?", "p4")
        await finish(d, "p4")
        assert "Number two as a word" in d.told() and "And five." not in d.told()
        assert "deny @read(secrets/**)" in results(d)[-1]
    finally:
        await sessions.shutdown()


def move(home: Path, to: str) -> None:
    """What was in `MOUNT` is in that folder: the only thing that is changed in the files."""
    session = home / "state/sessions/s"
    for file in (home / "config/rules.toml", session / "summary.json"):
        file.write_text(file.read_text().replace(MOUNT, to))
    with closing(sqlite3.connect(session / "journal.sqlite")) as db:
        db.create_function("moved", 1, lambda data: data and pack(unpack(data).replace(MOUNT.encode(), to.encode())))
        db.create_function("checked", 5, checksum)
        db.execute("UPDATE records SET event = moved(event), private = moved(private)")
        db.execute("UPDATE records SET checksum = checked(epoch, seq, at, event, private)")
        db.execute("UPDATE preimages SET path = moved(path)")
        db.commit()
