"""The lines around the changes of a big file, whose text the terminal has to ask for."""

import asyncio
import io
from typing import Any

import pytest

from amanu.cli.console import PlainConsole
from amanu.cli.diff import show_proposal
from amanu.client.daemon_client import Disconnected
from amanu.client.session_view import SessionView, attach, create
from amanu_protocol import requests as r
from amanu_protocol.events import EventMessage, ProposalChanged, SessionChanged
from amanu_protocol.items import Proposal
from amanu_protocol.state import SessionState
from support.fake_daemon import SESSION, FakeDaemon, Refusal, connected, state
from support.sample_events import hunk, proposed

BASE = "one\ntwo\nthree\n"
PROPOSAL = proposed(hunk(1), base_text=None, base_blob="b1")
WITH_CONTEXT = "── a.txt (edit) +1 −1\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n"
WITHOUT = "── a.txt (edit) +1 −1\n@@ -2,1 +2,1 @@\n-two\n+zwei\n"


def shown(proposal: Proposal) -> str:
    out = io.StringIO()
    show_proposal(PlainConsole(out), proposal, ["/w"])
    return out.getvalue()


def in_pages(daemon: FakeDaemon, text: str | None) -> None:
    """It has that blob, and gives five characters of it at a time; None: it has none."""

    def get(params: dict[str, Any]) -> dict[str, Any]:
        if text is None:
            raise Refusal("blobNotFound", "There is no such blob.")
        end = params["offset"] + 5
        return {"text": text[params["offset"] : end], "nextOffset": end if end < len(text) else None}

    daemon.answers["amanu/blob/get"] = get


@pytest.mark.parametrize(("text", "expected"), [(BASE, WITH_CONTEXT), (None, WITHOUT)])
@pytest.mark.parametrize("attaching", [False, True])
async def test_they_are_fetched(text: str | None, expected: str, attaching: bool) -> None:
    client, daemon = await connected()
    in_pages(daemon, text)
    seen: list[str] = []

    def listen(message: EventMessage, now: SessionState) -> None:
        seen.append(now.title if isinstance(message.event, SessionChanged) else shown(now.proposals[0]))

    view: SessionView
    if attaching:
        answer = r.SessionAttachResult(state=state(proposals=[PROPOSAL]), epoch=1, from_seq=1)
        daemon.answers["amanu/session/attach"] = lambda _: answer.model_dump(mode="json")
        view = await attach(client, SESSION)
        assert shown(view.state.proposals[0]) == expected
    else:
        view = await create(client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
    view.listeners.append(listen)
    daemon.event(ProposalChanged(proposal=PROPOSAL))
    daemon.event(SessionChanged(title="later"))
    daemon.event(ProposalChanged(proposal=PROPOSAL.model_copy(update={"version": 2})))
    await view.wait(lambda now: bool(now.proposals) and now.proposals[0].version == 2)
    assert seen == [expected, "later", expected], "what comes after it waits for it"
    asked = daemon.said("amanu/blob/get")
    assert [params["offset"] for params in asked] == ([0, 5, 10] if text else [0]), "once"
    await client.close()
    await daemon.close()


async def test_a_lost_connection_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    client, daemon = await connected()
    in_pages(daemon, BASE)
    view = await create(client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
    asked: list[str] = []

    async def request(method: str, *_: Any) -> Any:
        asked.append(method)
        raise Disconnected

    monkeypatch.setattr(client, "request", request)
    message = EventMessage(
        session_id=SESSION, epoch=view.epoch, seq=view.seq + 1, at=0, event=ProposalChanged(proposal=PROPOSAL)
    )
    before = view.seq
    view.receive(message)
    for _ in range(20):
        await asyncio.sleep(0)
    assert (asked, view.seq) == (["amanu/blob/get"], before)
    await client.close()
    await daemon.close()
