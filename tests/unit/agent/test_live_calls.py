"""What is shown of a call while the model writes it, and that nothing of it stays."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from amanu.agent import live_calls
from amanu.agent.reply import ReplyItems
from amanu.core.conversation import Assistant
from amanu.core.model import CallDelta, CallStarted, ReplyCompleted, TokenUsage
from amanu.core.tool import LiveCall
from amanu.tools.edits.live_edit import LiveEdit
from amanu_protocol.events import ItemChanged, ItemDelta, ItemStarted, ItemsWithdrawn
from support.loop_harness import Emitted, Read, Recorder, Write

ARGUMENTS = json.dumps({"path": "a.py", "content": "one\ntwo\nthree\n"})
EDIT = "Edit a.py"


class WriteLive(Write):
    def live_call(self) -> LiveCall:
        return LiveEdit(lambda arguments: f"Edit {arguments['path']}", {"content": "+"})


def told(seen: Emitted) -> list[str]:
    """What happened to items, in words."""
    words: list[str] = []
    for event in seen.events:
        match event:
            case ItemStarted(item=item):
                words.append(f"{item.item_id} started")
            case ItemChanged(item=item):
                words.append(f"{item.item_id} is {getattr(item, 'title', '')}")
            case ItemDelta():
                words.append(f"{event.item_id} {event.text}")
            case ItemsWithdrawn():
                words.append(f"withdrawn {' '.join(event.item_ids)}")
            case _:
                words.append(event.kind)
    return words


async def play(*doing: Any, interval: float, monkeypatch: pytest.MonkeyPatch) -> Emitted:
    """Deltas, numbers of seconds to wait, or words: finish, cut, withdraw."""
    monkeypatch.setattr(live_calls, "INTERVAL", interval)
    seen = Emitted()
    reply = ReplyItems("t", 1, {"write": WriteLive(Recorder()), "read": Read(Recorder())}, seen)
    for each in doing:
        match each:
            case "finish":
                reply.finish(ReplyCompleted(Assistant(parts=()), TokenUsage(), "calls"))
            case "cut":
                reply.cut("cut")
            case "withdraw":
                reply.withdraw("again")
            case float():
                await asyncio.sleep(each)
            case _:
                reply.add_delta(each)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.sleep(0.03 if interval == HOUR else 1.5 * interval)
    return seen


def written(call_id: str = "c", size: int = 7, tool: str = "write") -> list[Any]:
    pieces = [CallDelta(call_id, ARGUMENTS[at : at + size]) for at in range(0, len(ARGUMENTS), size)]
    return [CallStarted(call_id, tool), *pieces]


HOUR, NO_TIME = 3600.0, 0.0


@pytest.mark.parametrize(
    ("interval", "doing", "expected"),
    [
        (NO_TIME, [*written(), "finish"], ["c started", f"c is {EDIT}", "c +one\n", "c +two\n", "c +three\n"]),
        # the first piece is looked at at once, all others together
        (HOUR, [*written(), "finish"], ["c started", f"c is {EDIT}", "c +one\n+two\n+three\n"]),
        (HOUR, [*written(size=30), "finish"], ["c started", f"c is {EDIT}", "c +one\n+two\n+three\n"]),
        (0.02, [*written(size=30)], ["c started", f"c is {EDIT}", "c +one\n+two\n+three\n"]),  # the model pauses
        (
            HOUR,
            [*written("a"), *written("b"), "finish"],
            [
                *("a started", "b started"),
                *(f"a is {EDIT}", "a +one\n+two\n+three\n"),
                *(f"b is {EDIT}", "b +one\n+two\n+three\n"),
            ],
        ),
        # of a tool that has none, or is none
        (NO_TIME, [*written(tool="read"), "finish"], ["c started"]),
        (NO_TIME, [*written(tool="nothing"), "finish"], ["c started"]),
        # gone, and what was held back stays away
        (NO_TIME, [*written()[:4], "cut"], ["c started", f"c is {EDIT}", "withdrawn c"]),
        (0.2, [*written(size=30), "withdraw"], ["c started", f"c is {EDIT}", "withdrawn c"]),
        (
            HOUR,
            [*written(), "withdraw", *written("d"), "finish"],
            ["c started", "withdrawn c", "d started", f"d is {EDIT}", "d +one\n+two\n+three\n"],
        ),
    ],
)
async def test_live_calls(
    interval: float, doing: Sequence[Any], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(await play(*doing, interval=interval, monkeypatch=monkeypatch)) == expected
