"""A session's entry in the list of sessions."""

import pytest

from amanu.session.summary import SAID, summarize
from amanu_protocol.items import Answer, Item, UserMessage
from support.fake_daemon import state


def said(text: str) -> Item:
    return UserMessage(item_id="u", turn_id="t", text=text, attachments=[], steer=False)


def answered(text: str, agent_id: str | None = None) -> Item:
    return Answer(item_id="a", turn_id="t", text=text, agent_id=agent_id)


@pytest.mark.parametrize(
    ("items", "last"),
    [
        ([], ("", "")),
        ([said("one")], ("one", "")),
        ([said("one"), answered("1"), said("two")], ("two", "")),
        ([said("one"), answered("1"), answered("2"), answered("of an agent", "g")], ("one", "2")),
        ([answered("its prompt is far above")], ("", "its prompt is far above")),
        ([said("x" * 999), answered("y" * 999)], ("x" * SAID, "y" * SAID)),
    ],
)
def test_what_was_said_last(items: list[Item], last: tuple[str, str]) -> None:
    summary = summarize(state(items=items), created_at=0, updated_at=0, closed=False)
    assert (summary.last_prompt, summary.last_answer) == last
