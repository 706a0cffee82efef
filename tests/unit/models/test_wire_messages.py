"""What a request costs, counted: each message is put into wire form once, and a delta looks at none."""

import cProfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.core.conversation import (
    Assistant,
    Call,
    Compacted,
    Conversation,
    Masked,
    Message,
    Result,
    Results,
    SystemText,
    Text,
    User,
)
from amanu.core.model import Request, ToolSpec
from amanu.core.model_families import model_info
from amanu.models import anthropic_request
from amanu.models.anthropic_request import RequestBodies
from amanu.models.gemini import GeminiModel
from amanu.models.gemini_contents import content
from amanu.models.openai_compatible import OpenAICompatibleModel
from amanu.models.openai_messages import message
from amanu.models.openai_responses import ResponsesModel
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


HAPPENINGS = st.one_of(
    st.tuples(st.just("said"), st.sampled_from(["Go on.", " "])),
    st.tuples(st.just("step"), st.integers(0, 2)),
    st.tuples(st.just("status"), st.just("The mode is plan.")),
    st.tuples(st.just("note"), st.just("A file changed.")),
    st.tuples(st.just("reply"), st.sampled_from(["Done.", ""])),
    st.tuples(st.sampled_from(["mask", "compact", "rewind"]), st.integers(0, 9)),
)


def happen(conversation: Conversation, kind: str, value: Any, n: int) -> None:
    match kind:
        case "said":
            conversation.append(User(text=value))
        case "step":
            parts = tuple(
                Call(call_id=f"c{n}.{at}", tool="read_file", arguments={"path": f"file{at}"}) for at in range(value + 1)
            )
            conversation.append(Assistant(parts=parts))
            results = tuple(Result(call_id=each.call_id, tool=each.tool, text="x" * 9) for each in parts)
            conversation.append(Results(results=results))
        case "status" | "note":
            conversation.add_notes(SystemText(text=value, status=kind == "status"))
        case "reply":
            conversation.append(Assistant(parts=(Text(text=value),) if value else ()))
        case "rewind":
            conversation.replace_with(Conversation(list(conversation)[: value + 1]))
        case "mask":
            conversation.mask(Masked(texts={f"c{value}.0": "shorter"}))
        case _:
            conversation.compact(Compacted(replaced=value, text="What happened.", snapshot=""))


WIRES: dict[str, Callable[[], Callable[[Request], Any]]] = {
    "anthropic:claude-sonnet-5-5": lambda: RequestBodies().body,
    "anthropic:claude-sonnet-4-5": lambda: RequestBodies().body,
    "gemini:gemini-3.8-flash": lambda: GeminiModel("k")._body,  # pyright: ignore[reportPrivateUsage]
    "gemini:gemini-2.5-flash": lambda: GeminiModel("k")._body,  # pyright: ignore[reportPrivateUsage]
    "openai:gpt-6.2-sol": lambda: ResponsesModel("openai", "http://x", "k")._body,  # pyright: ignore[reportPrivateUsage]
    "google-openai:gemini-3.8-flash": lambda: partial(
        OpenAICompatibleModel("google-openai", "http://x")._body,  # pyright: ignore[reportPrivateUsage]
        streaming=True,
    ),
    "ollama:qwen3": lambda: partial(
        OpenAICompatibleModel("ollama", "http://x")._body,  # pyright: ignore[reportPrivateUsage]
        streaming=True,
    ),
}


@pytest.mark.parametrize("model_id", WIRES)
def test_a_body_is_whole_after_a_rewind(model_id: str) -> None:
    conversation, body = of_steps(3), WIRES[model_id]()
    request = Request(model=model_info(model_id), system="", tools=[], conversation=conversation, session_id="s")
    body(request)
    conversation.replace_with(Conversation(list(conversation)[:3]))
    assert body(request) == WIRES[model_id]()(request)


@pytest.mark.parametrize("model_id", WIRES)
@given(happenings=st.lists(HAPPENINGS, max_size=12))
def test_a_body_that_grew_is_the_one_made_at_once(model_id: str, happenings: list[tuple[str, Any]]) -> None:
    conversation, body = Conversation([User(text="Go.")]), WIRES[model_id]()
    for n, (kind, value) in enumerate(happenings):
        happen(conversation, kind, value, n)
        request = Request(model=model_info(model_id), system="", tools=[], conversation=conversation, session_id="s")
        assert body(request) == WIRES[model_id]()(request)


LOOK_BACK = {"anthropic:claude-sonnet-4-5", "google-openai:gemini-3.8-flash"}
"""Models to which what is sent depends on the whole tool loop."""


@pytest.mark.parametrize("model_id", sorted(WIRES.keys() - LOOK_BACK))
def test_only_what_is_new_is_placed(model_id: str) -> None:
    """A body of many messages is joined from pieces; nothing else is done for each of them."""
    conversation, body = of_steps(300), WIRES[model_id]()
    request = Request(model=model_info(model_id), system="", tools=[], conversation=conversation, session_id="s")
    body(request)
    for each in step(300):
        conversation.append(each)
    profile = cProfile.Profile()
    profile.runcall(body, request)
    calls = sum(entry.callcount for entry in profile.getstats())
    assert calls < 300


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
