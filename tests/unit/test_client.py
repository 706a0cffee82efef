import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from amanu.client.daemon_client import DaemonClient, Disconnected
from amanu.client.session_view import SessionView, attach, create
from amanu_protocol import requests as r
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import (
    EventMessage,
    ItemDelta,
    ItemsReplaced,
    ItemStarted,
    SessionChanged,
    TurnEnded,
    TurnStarted,
)
from amanu_protocol.items import Answer
from amanu_protocol.methods import PROTOCOL_VERSION
from support.fake_daemon import SESSION, FakeDaemon, Refusal, connected, state

Pair = tuple[DaemonClient, FakeDaemon]
ENDED = TurnEnded(turn_id="t", reason="completed", message="", can_continue=False)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    client, daemon = await connected()
    yield client, daemon
    await client.close()
    await daemon.close()


async def test_handshake_says_who_we_are(pair: Pair) -> None:
    client, daemon = pair
    assert client.server is not None and client.server.protocol == PROTOCOL_VERSION
    (params,) = daemon.said("initialize")
    assert params["capabilities"]["experimental"]["amanu"]["protocol"] == [PROTOCOL_VERSION]
    assert params["clientInfo"]["name"] == "terminal"


@pytest.mark.parametrize(
    "capabilities",
    [{}, {"experimental": {"amanu": {"protocol": 2, "version": "0.1.0", "methods": []}}}],
    ids=["no Amanu, or none of our version", "another version"],
)
async def test_a_daemon_of_another_version_is_refused(capabilities: dict[str, Any]) -> None:
    ours, theirs = socket.socketpair()
    daemon = FakeDaemon(*await asyncio.open_connection(sock=theirs))
    daemon.answers["initialize"] = lambda _: {"capabilities": capabilities}
    client = DaemonClient(*await asyncio.open_connection(sock=ours))
    with pytest.raises(AmanuError, match="does not speak version") as caught:
        await client.initialize()
    assert (caught.value.kind, "Update Amanu" in (caught.value.data.hint or "")) == ("unsupportedVersion", True)
    assert client.server is None
    await client.close()
    await daemon.close()


async def test_answers_are_typed_and_matched_by_id(pair: Pair) -> None:
    client, daemon = pair
    daemon.answers["amanu/rule/preview"] = lambda p: {"valid": True, "explanation": p["rule"]}
    wanted = [f"rule{n}" for n in range(20)]
    answers = await asyncio.gather(
        *(client.request("amanu/rule/preview", r.RulePreviewParams(rule=rule), r.RulePreviewResult) for rule in wanted)
    )
    assert [answer.explanation for answer in answers] == wanted


async def test_errors_arrive_as_they_were_sent(pair: Pair) -> None:
    client, daemon = pair

    def refuse(_: object) -> None:
        raise Refusal("staleTurn", "That turn is over.", "Send it as a new prompt.")

    daemon.answers["amanu/prompt/unqueue"] = refuse
    params = r.PromptUnqueueParams(session_id=SESSION, prompt_id="p")
    with pytest.raises(AmanuError, match="That turn is over") as caught:
        await client.request("amanu/prompt/unqueue", params, r.Empty)
    assert (caught.value.kind, caught.value.data.hint) == ("staleTurn", "Send it as a new prompt.")


async def test_requests_to_us_are_answered(pair: Pair) -> None:
    client, daemon = pair
    daemon.send({"id": "x", "method": "window/showMessageRequest", "params": {}})
    daemon.answers["amanu/rule/preview"] = lambda p: {"valid": True, "explanation": ""}
    for _ in range(2):  # the answer goes after what is said at once
        await client.request("amanu/rule/preview", r.RulePreviewParams(rule="x"), r.RulePreviewResult)
    assert [(reply["id"], reply["error"]["code"]) for reply in daemon.replies] == [("x", -32601)]


@pytest.mark.parametrize(
    "broken", [b"Content-Length: x\r\n\r\n", b"Other: 1\r\n\r\n{}", b"Content-Length: 2\r\n\r\n[]", b""]
)
async def test_a_lost_connection_fails_what_waits(broken: bytes) -> None:
    client, daemon = await connected()

    async def asked() -> None:
        await client.request("amanu/session/list", r.SessionListParams(), r.SessionListResult)

    waiting = asyncio.create_task(asked())
    await asyncio.sleep(0)
    daemon.raw(broken)
    await daemon.close()
    with pytest.raises(Disconnected):
        await waiting
    with pytest.raises(Disconnected):
        await asked()
    await client.close()


def answer(text: str = "") -> Answer:
    return Answer(item_id="a", turn_id="t", text=text)


async def ended(view: SessionView) -> None:
    await asyncio.wait_for(view.wait(lambda state: state.last_turn is not None), 5)


async def test_events_are_folded_and_acknowledged(pair: Pair) -> None:
    client, daemon = pair
    view = await create(client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
    seen: list[str] = []
    view.listeners.append(lambda message, state: seen.append(message.event.kind))
    daemon.event(TurnStarted(turn_id="t", prompt_id="p", model_id="m"))
    daemon.event(ItemStarted(item=answer()))
    daemon.event(ItemDelta(item_id="a", text="hel"))
    daemon.event(ItemDelta(item_id="a", text="hel"), seq=3)  # a repeat
    daemon.event(ItemDelta(item_id="a", text="lo"), seq=4)
    daemon.event(ENDED)
    await ended(view)
    assert view.state.items == [answer("hello")]
    assert seen == ["turnStarted", "itemStarted", "itemDelta", "itemDelta", "turnEnded"]
    daemon.answers["amanu/rule/preview"] = lambda p: {"valid": True, "explanation": ""}
    await client.request("amanu/rule/preview", r.RulePreviewParams(rule="x"), r.RulePreviewResult)
    assert daemon.said("amanu/event/ack")[-1] == {"sessionId": SESSION, "seq": 5}


async def test_a_gap_is_filled_from_the_daemon(pair: Pair) -> None:
    client, daemon = pair
    view = await create(client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
    daemon.event(ItemStarted(item=answer()))
    missed = [
        EventMessage(session_id=SESSION, epoch=1, seq=2, at=0, event=ItemDelta(item_id="a", text="b")),
        EventMessage(session_id=SESSION, epoch=1, seq=3, at=0, event=ItemDelta(item_id="a", text="c")),
    ]
    daemon.answers["amanu/session/attach"] = lambda p: r.SessionAttachResult(
        epoch=1, from_seq=4, events=missed
    ).model_dump(mode="json")
    daemon.event(ItemDelta(item_id="a", text="c"), seq=3)
    daemon.event(ENDED, seq=4)
    await ended(view)
    assert view.state.items == [answer("bc")]
    assert daemon.said("amanu/session/attach")[0]["sinceSeq"] == 1


async def test_coalesced_events_are_no_gap(pair: Pair) -> None:
    client, daemon = pair
    view = await create(client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
    daemon.event(ItemStarted(item=answer()))
    daemon.event(ItemsReplaced(replaces_from=2, items=[answer("all of it")], withdrawn=[]), seq=50)
    daemon.event(ENDED, seq=51)
    await ended(view)
    assert view.state.items == [answer("all of it")]
    assert daemon.said("amanu/session/attach") == []


async def test_a_new_epoch_brings_a_new_state(pair: Pair) -> None:
    client, daemon = pair
    view = await create(client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
    daemon.answers["amanu/session/attach"] = lambda p: r.SessionAttachResult(
        epoch=2, from_seq=10, state=state(title="after")
    ).model_dump(mode="json")
    daemon.event(SessionChanged(title="late"), epoch=2, seq=9)
    daemon.event(ENDED, epoch=2, seq=10)
    await ended(view)
    assert (view.state.title, view.epoch, view.seq) == ("after", 2, 10)


async def test_attach(pair: Pair) -> None:
    client, daemon = pair
    daemon.answers["amanu/session/attach"] = lambda p: r.SessionAttachResult(
        epoch=3, from_seq=7, state=state(title="known")
    ).model_dump(mode="json")
    view = await attach(client, SESSION)
    assert (view.state.title, view.epoch, view.seq) == ("known", 3, 6)


async def test_waiting_ends_with_the_connection() -> None:
    client, daemon = await connected()
    view = await create(client, r.SessionCreateParams(session_id=SESSION, roots=["/w"]))
    waiting = asyncio.create_task(view.wait(lambda state: False))
    await asyncio.sleep(0)
    await daemon.close()
    with pytest.raises(Disconnected):
        await asyncio.wait_for(waiting, 50)
    await client.close()
