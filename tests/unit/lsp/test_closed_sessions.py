"""What a client stays connected for longer than for a session: nothing of a session that is no more is kept for it."""

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pytest

from amanu.frontends.lsp.connection import connect_in_process
from amanu.session.session import Session
from amanu.session.sessions import Sessions, open_sessions
from support.raw_client import RawClient
from support.scripted_session import step

A, B = 0, 1


@pytest.mark.parametrize(
    "asked",
    [
        [(A, "close")],
        [(A, "delete")],
        [(A, "detach"), (A, "close")],
        [(B, "attach"), (B, "close")],
        [(B, "attach"), (B, "delete")],
        [(B, "attach"), (A, "close"), (B, "attach"), (B, "close")],
    ],
    ids=lambda asked: ", ".join(f"{'AB'[client]} {verb}" for client, verb in asked),
)
async def test_a_session_that_is_put_away_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[tuple[int, str]]
) -> None:
    """A made it and says something; A and B stay connected."""
    monkeypatch.setenv("AMANU_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    (tmp_path / "script.json").write_text(json.dumps([step("Hello.")]))
    sessions = open_sessions()
    clients = [RawClient(*await connect_in_process(sessions, {})) for _ in (A, B)]
    try:
        for client in clients:
            await client.initialize()
        model = f"scripted:{tmp_path / 'script.json'}"
        await _ask(clients[A], "session/create", sessionId="s", roots=[str(tmp_path / "work")], modelId=model)
        first = _weak(sessions)
        await _ask(clients[A], "prompt/send", sessionId="s", promptId="p", text="Hi.")
        while (session := sessions.opened("s")) is not None and session.state.last_turn is None:
            await _ask(clients[A], "session/list")
        del session
        for client, verb in asked:
            await _ask(clients[client], f"session/{verb}", sessionId="s")
        for client in clients:
            await _ask(client, "session/list")
        gc.collect()
        assert first() is None
    finally:
        for client in clients:
            client.writer.close()
        await sessions.shutdown()


def _weak(sessions: Sessions) -> "weakref.ref[Session]":
    session = sessions.opened("s")
    assert session is not None
    return weakref.ref(session)


async def _ask(client: RawClient, method: str, **params: Any) -> None:
    answer = await client.request(f"amanu/{method}", params)
    assert "result" in answer, answer
