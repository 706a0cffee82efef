"""What a request costs, counted: each message is put into wire form once, and a delta looks at none."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amanu.core.conversation import Assistant, Call, Conversation, Message, Result, Results, Text, User
from amanu.core.model import Request, ToolSpec
from amanu.core.model_families import model_info
from amanu.models import anthropic_request
from amanu.models.anthropic_request import RequestBodies
from amanu.models.gemini_contents import content
from amanu.models.openai_messages import message
from amanu.models.wire_messages import WireMessages
from amanu.session.events import FULL_FRAME, EventStream
from amanu.storage.journal import Journal
from amanu_protocol.events import ItemStarted
from amanu_protocol.items import Answer, ModelInfo
from amanu_protocol.state import SessionState


def step(n: int) -> list[Message]:
    call = Call(call_id=f"c{n}", tool="read_file", arguments={"path": f"file{n}"})
    result = Result(call_id=f"c{n}", tool="read_file", text=f"text {n}")
    return [Assistant(parts=(Text(text="Reading."), call)), Results(results=(result,))]


def of_steps(count: int) -> Conversation:
    return Conversation([User(text="Go."), *(each for n in range(count) for each in step(n))])


@pytest.mark.parametrize("convert", [content, message])
def test_only_what_is_new_is_converted(convert: Callable[[Conversation, int, ModelInfo], object]) -> None:
    made: list[int] = []

    def counted(conversation: Conversation, at: int, model: ModelInfo) -> object:
        made.append(at)
        return convert(conversation, at, model)

    conversation, wire = of_steps(500), WireMessages(counted)
    info = model_info("gemini:gemini-2.5-flash")
    first = wire.of(conversation, info)
    assert made == list(range(1001))
    made.clear()
    for each in step(500):
        conversation.append(each)
    assert wire.of(conversation, info)[:1001] == first
    assert made == [1001, 1002]
    made.clear()
    conversation.add_notes("One more thing.")
    wire.of(conversation, info)
    assert made == [1002], "results grow by replacement"


def test_only_what_is_new_is_converted_for_anthropic(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    dumps = anthropic_request.dumps

    def counted(value: object) -> bytes:
        if isinstance(value, dict) and "role" in value:
            made.append(value)
        return dumps(value)

    monkeypatch.setattr(anthropic_request, "dumps", counted)
    conversation, bodies = of_steps(500), RequestBodies()
    tools = [ToolSpec("read_file", "Reads.", {"type": "object"})]
    request = Request(
        model=model_info("anthropic:claude-sonnet-4-6"),
        system="Be brief.",
        tools=tools,
        conversation=conversation,
        session_id="s",
    )
    bodies.body(request)
    assert len(made) == 1001
    made.clear()
    for each in step(500):
        conversation.append(each)
    bodies.body(request)
    assert len(made) == 2


class NotSearched(list[Any]):
    """Fails whoever goes through it."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("all of them were looked at")


def test_a_conversation_without_pictures_is_not_searched_for_them() -> None:
    conversation = of_steps(5)
    conversation._messages = NotSearched(conversation._messages)  # pyright: ignore[reportPrivateUsage]
    assert list(conversation.iter_pictures()) == []


async def test_a_delta_looks_at_its_own_item_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = await Journal.open(tmp_path / "s")
    state = SessionState(
        session_id="s", title="", roots=["/w"], mode="ask", model_id="x:y", trusted=False, read_only=False
    )
    emit = EventStream(state, journal, epoch=1)
    emit(ItemStarted(item=Answer(item_id="a", turn_id="t", text="")))
    state.items = NotSearched(state.items)
    monkeypatch.setattr(journal, "append", lambda record: pytest.fail("a delta was journalled"))
    for _ in range(100):
        emit.delta("a", "x" * FULL_FRAME)
    assert state.item("a") == Answer(item_id="a", turn_id="t", text="x" * FULL_FRAME * 100)
    await journal.close()
