"""Sessions are found by what was said, done and changed in them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from amanu.permissions import approvals as approval
from amanu.session import search
from amanu.session.found_places import read_places
from amanu.session.search import ranked
from amanu.storage.search_index import NAME, Match
from amanu.storage.session_index import SessionHead
from amanu.text.redaction import MASK
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import (
    CheckpointRestoreParams,
    FoundSession,
    SessionListParams,
    SessionSearchParams,
    SessionSearchResult,
)
from support.scripted_session import TWO_HUNKS, ScriptedSession, call, scripted_session, step

KEY = "sk-ant-api03-Zq8Wm2Xv7Lk4Jh9Tn3Rb6Yd1"


@pytest.fixture(autouse=True)
def quick_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


async def search_for(d: ScriptedSession, text: str, root: Path | None = None) -> SessionSearchResult:
    params = SessionSearchParams(text=text, root=None if root is None else str(root))
    result = await d.sessions.search.find(params)
    return SessionSearchResult.model_validate_json(result.model_dump_json())


def shown(found: FoundSession) -> list[str]:
    """Each place: its kind and its text, with what was looked for in brackets."""
    return [
        f"{place.kind} {''.join(f'[{part.text}]' if part.found else part.text for part in place.excerpt)}"
        for place in found.places
    ]


async def places(d: ScriptedSession, text: str) -> list[str]:
    return [line for found in (await search_for(d, text)).sessions for line in shown(found)]


async def sessions_with(d: ScriptedSession, text: str, **more: Any) -> set[str]:
    result = await d.sessions.search.find(SessionSearchParams(text=text, **more))
    return {found.session.session_id for found in result.sessions}


async def test_it_finds_what_was_said_done_and_changed(tmp_path: Path) -> None:
    edit = call("write_file", path="notes.txt", content=TWO_HUNKS)
    command = call("run_shell_command", command="echo moin && true")
    steps = (step("Let me **see**.", command), step("", edit), step("Quantities count now."))
    async with scripted_session(tmp_path, *steps, mode="acceptEdits") as d:
        await d.prompt("Mend the till,\nplease.")
        await d.ended()
        for typed, expected in (
            ("till", ["title Mend the [till],", "userMessage Mend the [till], please."]),
            ("quantities", ["answer [Quantities] count now."]),
            ("moin", ["toolCall Run echo [moin] && true [moin]"]),
            ("eleven", ["change notes.txt line two line 2 line [eleven] line 11"]),
            (
                "notes.txt",
                [
                    "toolCall Edit [notes.txt] Changes: 2 applied",
                    "change [notes.txt] line two line 2 line eleven line 11",
                ],
            ),
            ("work", []),  # the folder's name is not in every change
            ("nowhere", []),
            ("\x00 *", []),
        ):
            assert await places(d, typed) == expected, typed
        (found,) = (await search_for(d, "quantities")).sessions
        assert found.session.session_id == "s"
        assert found.session.roots == [str(d.root)]
        assert found.count == 1
        (place,) = found.places
        answer = d.session.state.item(place.item_id)
        assert answer is not None
        assert answer.kind == "answer"
        assert place.turn_id == "turn-p1"
        assert place.at > 0


async def test_what_was_just_said_is_found(tmp_path: Path) -> None:
    ask = call("run_shell_command", command="touch waiting", network=True)
    async with scripted_session(tmp_path, step("First things first.", ask), step("Done.")) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        assert await places(d, "things") == ["answer First [things] first."]
        await d.answer("reject")
        await d.ended()
        assert await places(d, "done") == ["answer [Done]."]


async def test_what_was_taken_back_is_not_found(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Alpha."), step("Beta."), step("Gamma.")) as d:
        for number, word in enumerate(("one", "two"), 1):
            await d.prompt(f"say {word}", f"p{number}")
            await d.over(f"p{number}")
        assert await places(d, "beta") == ["answer [Beta]."]
        params = CheckpointRestoreParams(session_id="s", turn_id="turn-p2", files=False, conversation=True)
        await d.session.checkpoints.restore(params)
        assert await places(d, "beta") == []
        assert await places(d, "alpha") == ["answer [Alpha]."]
        await d.session.rename("Greek letters")
        assert await places(d, "greek") == ["title [Greek] letters"]
        assert await places(d, "say one") == ["userMessage [say] [one]"]


async def test_it_is_there_again_after_any_end(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Alpha."), step("Beta.")) as d:
        index = d.sessions.summaries._folder / NAME  # pyright: ignore[reportPrivateUsage]
        await d.prompt("say one")
        await d.ended()
        assert await places(d, "alpha") == ["answer [Alpha]."]
        await d.reopen()
        assert await places(d, "alpha") == ["answer [Alpha]."]
        index.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
        Path(f"{index}-wal").write_bytes(b"")
        await d.sessions.search.close()
        d.sessions.search = search.SessionSearch(index.parent, d.sessions.summaries, str)
        assert await places(d, "alpha") == ["answer [Alpha]."]


async def test_what_is_deleted_is_gone_at_once(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Alpha.")) as d:
        await d.prompt("say zugzwang")
        await d.ended()
        index = await d.sessions.summaries.index()
        for session_id in ("deleted", "vanished"):
            copied = index.folder(session_id)
            shutil.copytree(index.folder("s"), copied)
            (copied / "lease").unlink(missing_ok=True)
            await index.put((await index.list())[0].model_copy(update={"session_id": session_id}))
        assert await sessions_with(d, "zugzwang") == {"s", "deleted", "vanished"}
        await d.sessions.delete("deleted")
        await index.delete("vanished")  # by another process
        assert await sessions_with(d, "zugzwang") == {"s"}
        await d.sessions.search.catch_up()
        with closing(sqlite3.connect(index.folder("s").parent / NAME)) as db:
            assert db.execute("SELECT DISTINCT session_id FROM places").fetchall() == [("s",)]
            assert db.execute("SELECT count(*) FROM words WHERE words MATCH 'zugzwang'").fetchall() == [(2,)]


async def test_only_sessions_that_lists_have(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Alpha.")) as d:
        await d.prompt("say alpha")
        await d.ended()
        other = tmp_path / "other"
        other.mkdir()
        index = await d.sessions.summaries.index()
        (summary,) = (await d.sessions.summaries.list(SessionListParams())).sessions
        changes = {
            "elsewhere": {"roots": [str(other)]},
            "agent": {"parent_session_id": "s", "agent": "investigator"},
            "rewrite": {"purpose": "rewrite"},
            "archived": {"archived": True},
        }
        for session_id, change in changes.items():
            await index.put(summary.model_copy(update={"session_id": session_id, **change}))
        assert await sessions_with(d, "alpha") == {"s", "elsewhere"}
        assert await sessions_with(d, "alpha", root=str(other)) == {"elsewhere"}
        assert await sessions_with(d, "alpha", agents=True) == {"s", "elsewhere", "agent", "rewrite"}
        assert await sessions_with(d, "alpha", archived=True) == {"s", "elsewhere", "archived"}
        assert len(await sessions_with(d, "alpha", agents=True, limit=2)) == 2
        with pytest.raises(AmanuError, match="is not a folder"):
            await sessions_with(d, "alpha", root=str(tmp_path / "nowhere"))


async def test_secrets_stay_hidden(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("The token is pass-the-salt-9, as you said.")) as d:
        await d.prompt(f"my key is {KEY}")
        await d.ended()
        assert await places(d, KEY) == []
        assert await places(d, "key is") == [f"{kind} my [key] [is] {MASK}" for kind in ("title", "userMessage")]
        assert await places(d, "salt") == ["answer The token is pass-the-[salt]-9, as you said."]
        d.sessions.services.secrets.learn(["pass-the-salt-9"])  # one that becomes known later
        assert await places(d, "salt") == [f"answer The token is {MASK}, as you said."]


async def test_old_sessions_are_read_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "READ_AT_ONCE", 1)
    async with scripted_session(tmp_path, step("Alpha.")) as d:
        await d.prompt("say alpha")
        await d.ended()
        index = await d.sessions.summaries.index()
        (summary,) = (await d.sessions.summaries.list(SessionListParams())).sessions
        for session_id in ("one", "two"):
            older = {"session_id": session_id, "updated_at": summary.updated_at - 1000}
            await index.put(summary.model_copy(update=older))
        result = await search_for(d, "alpha")
        assert [found.session.session_id for found in result.sessions] == ["s"]
        assert result.unread == 2
        while (await search_for(d, "alpha")).unread:
            pass
        assert await sessions_with(d, "alpha") == {"s", "one", "two"}


async def test_a_journal_that_began_anew_is_read_anew(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("Alpha.")) as d:
        await d.prompt("say alpha")
        await d.ended()
        folder = (await d.sessions.summaries.index()).folder("s")
        whole = read_places(folder, [str(d.root)], str, 0)
        assert not whole.anew
        assert [place.kind for place in whole.places.values()] == ["userMessage", "answer"]
        again = read_places(folder, [str(d.root)], str, whole.position + 1)
        assert again.anew
        assert again.places == whole.places
        assert read_places(folder, [str(d.root)], str, whole.position).places == {}
        assert read_places(folder / "nowhere", [], str, 7).position == 7


DAY = 24 * 3600 * 1000


@pytest.mark.parametrize(
    ("matches", "order"),
    [
        ("new answer 1, old answer 1", "new old"),
        ("old answer 3, new answer 1", "old new"),  # half as old as it is good
        ("new toolCall 1, old title 1", "old new"),
        ("new answer 1, other answer 9", "new other"),  # of no known age
        ("new toolCall 1, new answer 1, old answer 1", "new old"),
    ],
)
def test_the_best_and_latest_come_first(matches: str, order: str) -> None:
    heads = [SessionHead("new", 100 * DAY, "", []), SessionHead("old", 70 * DAY, "", [])]
    given = [
        Match(at, session_id, kind, kind, "", 0, float(score))
        for at, (session_id, kind, score) in enumerate(each.split() for each in matches.split(", "))
    ]
    found = ranked(given, heads, now=100 * DAY)
    assert [places[0].session_id for places in found] == order.split()
    assert all(list(places) == sorted(places, key=lambda place: -place.score) for places in found)
