"""A reply as it becomes visible: what it rests on."""

from typing import Any

from amanu.agent.reply import ReplyItems
from amanu.core.conversation import Assistant, Text
from amanu.core.model import ReplyCompleted, TextDelta, TokenUsage
from amanu_protocol.events import ItemCompleted
from amanu_protocol.items import Answer, Citations, Source
from support.loop_harness import Emitted

A, B = Source(title="A", url="https://a.example/"), Source(title="B", url="https://b.example/", quote="so")


def completed(*sources: Source) -> list[Any]:
    """The items of a reply that has these."""
    seen = Emitted()
    reply = ReplyItems("t1", 1, {}, seen)
    reply.add_delta(TextDelta("So it is."))
    reply.finish(ReplyCompleted(Assistant(parts=(Text(text="So it is."),)), TokenUsage(), "end", sources=sources))
    return [each.item for each in seen.events if isinstance(each, ItemCompleted)]


def test_sources_are_an_item_after_the_answer_sorted_and_once_each() -> None:
    answer, citations = completed(B, A, B, A)
    assert isinstance(answer, Answer)
    assert citations == Citations(item_id="t1.1.2", turn_id="t1", sources=[A, B])


def test_without_sources_there_is_no_such_item() -> None:
    assert [type(item) for item in completed()] == [Answer]
