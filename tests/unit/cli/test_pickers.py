"""The lists of sessions to choose from: who is listed, who is only found by words, and what the keys do."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from amanu.cli.pickers import Pickers
from amanu.cli.ui.dialog import Dialog, OpenDialog
from amanu.cli.ui.terminal import Terminal
from amanu.client.daemon_client import DaemonClient
from amanu.client.session_view import create
from amanu_protocol import requests as r
from support.fake_daemon import SESSION, FakeDaemon, connected, state


def summary(session_id: str, root: str = "/w", **told: Any) -> r.SessionSummary:
    plain: dict[str, Any] = {"session_id": session_id, "title": f"Title {session_id}", "roots": [root]}
    plain |= {"model_id": "a:b", "created_at": 0, "updated_at": 0, "status": "idle"}
    return r.SessionSummary(**{**plain, **told})


SESSIONS = [
    summary(SESSION),
    summary("one", last_prompt="about commas"),
    summary("old", archived=True),
    summary("empty", title=""),
    summary("two"),
    summary("far", "/elsewhere"),
]


class User:
    """Answers each picker with a key on a row, after some words."""

    def __init__(self, *pressed: tuple[str, str]) -> None:
        self.pressed = list(pressed)
        self.seen: list[Sequence[str]] = []

    async def ask(self, dialog: Dialog) -> str | None:
        shown = OpenDialog(dialog)
        words, key = self.pressed.pop(0)
        self.seen.append([each.value for each in shown.rows(words or dialog.default)])
        return shown.answer(words) if key == "enter" else shown.keyed(key, words)


@pytest.fixture
async def pair() -> AsyncIterator[tuple[DaemonClient, FakeDaemon]]:
    client, daemon = await connected()
    yield client, daemon
    await client.close()
    await daemon.close()


@pytest.mark.parametrize(
    ("words", "pressed", "seen", "chosen", "archived"),
    [
        ("", [("", "enter")], [["one", "two"]], "one", []),
        ("commas", [("", "enter")], [["one"]], "one", []),
        ("", [("elsewhere", "enter")], [["far"]], "far", []),
        ("", [("untitled", "enter")], [["empty"]], "empty", []),
        ("", [("nothing", "enter")], [[]], None, []),
        ("", [("archived", "c-x"), ("", "enter")], [["old"], ["one", "two"]], "one", [("old", False)]),
        ("", [("", "c-x"), ("", "enter")], [["one", "two"]] * 2, "one", [("one", True)]),
        ("", [("two", "c-x"), ("", "enter")], [["two"], ["one", "two"]], "two", [("two", True)]),
    ],
)
async def test_another_session(
    pair: tuple[DaemonClient, FakeDaemon],
    words: str,
    pressed: list[tuple[str, str]],
    seen: list[Sequence[str]],
    chosen: str | None,
    archived: list[tuple[str, bool]],
) -> None:
    client, daemon = pair

    def listed(params: dict[str, Any]) -> dict[str, Any]:
        here = [each for each in SESSIONS if params.get("root") in (None, *each.roots)]
        return r.SessionListResult(sessions=here).model_dump(mode="json")

    first = r.SessionResult(state=state(), epoch=1, from_seq=1).model_dump(mode="json")
    daemon.answers["amanu/session/create"] = lambda _: first
    daemon.answers["amanu/session/list"] = listed
    daemon.answers["amanu/session/archive"] = lambda _: {}
    view = await create(client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
    user = User(*pressed)
    assert await Pickers(view, cast(Terminal, user)).session("/w", words) == chosen
    assert user.seen == seen
    said = [(each["sessionId"], each["archived"]) for each in daemon.said("amanu/session/archive")]
    assert said == archived
