"""Events of a session → `session/update`."""

from typing import Any

import pytest

from amanu.frontends.acp.schema import ClientFeatures
from amanu.frontends.acp.updates import Updates
from amanu_protocol import events as e
from amanu_protocol.items import Answer, Citations, Item, Notice, Retry, Source, Thought, Todo, TodoList, UserMessage
from amanu_protocol.state import fold
from support.acp_client import check
from support.fake_daemon import SESSION, state
from support.sample_events import call, hunk, proposed

ALL = ClientFeatures(notices=True, compactions=True)


class Story:
    """Folds events, and keeps what a client is sent; turn "t" answers its prompt."""

    def __init__(self, features: ClientFeatures = ALL) -> None:
        self.sent: list[dict[str, Any]] = []
        self.state = state(items=[], roots=["/w"])
        self.updates = Updates(self.sent.append, features, {"t"}.__contains__)
        self.seq = 0

    def tell(self, *events: e.Event) -> "Story":
        for event in events:
            self.seq += 1
            fold(self.state, event)
            message = e.EventMessage(session_id=SESSION, epoch=1, seq=self.seq, at=0, event=event)
            self.updates.on_event(message, self.state)
        for update in self.sent:
            check("SessionNotification", {"sessionId": "s", "update": update})
        return self

    @property
    def kinds(self) -> list[str]:
        return [update["sessionUpdate"] for update in self.sent]

    @property
    def texts(self) -> list[str]:
        return [update["content"]["text"] for update in self.sent if "content" in update]


def answer(text: str, **changes: Any) -> Answer:
    plain: dict[str, Any] = {"item_id": "a", "turn_id": "t", "text": text}
    return Answer(**{**plain, **changes})


def notice(code: str, text: str, **changes: Any) -> Notice:
    plain: dict[str, Any] = {"item_id": "n", "level": "info", "code": code, "text": text}
    return Notice(**{**plain, **changes})


def test_text_is_sent_once_as_it_comes() -> None:
    story = Story().tell(
        e.ItemStarted(item=answer("")),
        e.ItemDelta(item_id="a", text="Hel"),
        e.ItemDelta(item_id="a", text="lo"),
        e.ItemCompleted(item=answer("Hello.")),
        e.ItemCompleted(item=answer("Hello.")),
    )
    assert story.texts == ["Hel", "lo", "."]
    assert {update["messageId"] for update in story.sent} == {"a"}


@pytest.mark.parametrize(
    ("item", "kinds"),
    [
        (Thought(item_id="x", turn_id="t", subject="", text="Hm"), ["agent_thought_chunk"]),
        (UserMessage(item_id="x", turn_id="t", text="mine", attachments=[], steer=False), []),
        (UserMessage(item_id="x", turn_id="t", text="steered", attachments=[], steer=True), ["user_message_chunk"]),
        (UserMessage(item_id="x", turn_id="u", text="elsewhere", attachments=[], steer=False), ["user_message_chunk"]),
        (answer("of a sub-agent", agent_id="agent-1"), []),
        (Citations(item_id="x", turn_id="t", sources=[Source(title="T", url="https://x")]), ["agent_message_chunk"]),
        (notice("stepLimit", "Enough."), ["notice"]),
        (notice("compacting", "…"), ["compaction_update"]),
        (notice("compacted", "Done.", detail="Summary"), ["compaction_update"]),
        (notice("compactionFailed", "No."), ["compaction_update"]),
    ],
    ids=lambda value: str(value)[:50],
)
def test_items(item: Item, kinds: list[str]) -> None:
    assert Story().tell(e.ItemCompleted(item=item), e.ItemCompleted(item=item)).kinds[: len(kinds) or None] == kinds


def test_a_client_without_notices_gets_messages() -> None:
    story = Story(ClientFeatures())
    story.tell(
        e.ItemCompleted(item=notice("stepLimit", "Enough.")),
        e.ItemStarted(item=notice("compacting", "Making room …", item_id="c")),
        e.ItemCompleted(item=notice("compacted", "Compacted.", item_id="c")),
        e.RetryChanged(retry=None),
    )
    assert story.texts == ["\n_Enough._\n", "\n_Making room …_\n", "\n_Compacted._\n"]


def test_a_plan_leaves_out_what_was_cancelled() -> None:
    todos = [Todo(text="a", status="done"), Todo(text="b", status="inProgress"), Todo(text="c", status="cancelled")]
    (plan,) = Story().tell(e.ItemCompleted(item=TodoList(item_id="x", turn_id="t", todos=todos))).sent
    assert [(entry["content"], entry["status"]) for entry in plan["entries"]] == [
        ("a", "completed"),
        ("b", "in_progress"),
    ]


def test_a_call_comes_once_and_then_only_what_changed() -> None:
    story = Story().tell(
        e.ItemStarted(item=call("validating", title="read_file")),
        e.ItemChanged(item=call("executing")),
        e.ItemChanged(item=call("executing")),
        e.ItemCompleted(item=call("succeeded", output="12 lines")),
        e.ItemCompleted(item=call("succeeded", output="12 lines")),
    )
    assert story.kinds == ["tool_call", "tool_call_update", "tool_call_update"]
    assert story.sent[1] == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "title": "Read app.py",
        "status": "in_progress",
    }


def test_what_is_decided_after_a_call_ended_is_shown() -> None:
    story = Story().tell(
        e.ProposalChanged(proposal=proposed(hunk(state="applied"))),
        e.ItemCompleted(item=call(tool="edit_file", effect="write", proposal_id="p")),
        e.ProposalChanged(proposal=proposed(hunk(state="applied"), version=1)),
        e.ProposalChanged(proposal=proposed(hunk(state="reverted"), version=2)),
    )
    assert story.kinds == ["tool_call", "tool_call_update"]
    assert [content["type"] for content in story.sent[0]["content"]] == ["diff"]
    assert story.sent[1]["content"] == []


def test_an_attempt_that_failed_never_happened() -> None:
    story = Story().tell(
        e.ItemStarted(item=answer("Half")),
        e.ItemStarted(item=call("validating")),
        e.ItemsWithdrawn(item_ids=["a", "c"], reason="The stream broke."),
        e.ItemCompleted(item=answer("Whole.")),
    )
    assert story.kinds == [
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "notice",
        "agent_message_chunk",
    ]
    assert story.sent[2]["status"] == "failed"
    assert story.sent[-1]["content"]["text"] == "Whole."


def test_the_reason_for_a_retry_is_told_once() -> None:
    retry = Retry(attempt=2, reason="The stream broke.", at=0)
    story = Story().tell(
        e.ItemStarted(item=answer("Half")),
        e.ItemsWithdrawn(item_ids=["a"], reason="The stream broke."),
        e.RetryChanged(retry=retry),
        e.RetryChanged(retry=None),
        e.RetryChanged(retry=retry.model_copy(update={"reason": "Busy.", "attempt": 3})),
    )
    told = [update["title"] for update in story.sent if update["sessionUpdate"] == "notice"]
    assert [title.count("The stream broke.") for title in told] == [1, 0]
    assert told[1] == "Busy. Retrying: attempt 3."


@pytest.mark.parametrize(
    ("event", "title"),
    [
        (
            e.TurnRouted(turn_id="t", model_id="x:y", reason="The other is overloaded."),
            "Continuing with x:y. The other is overloaded.",
        ),
        (
            e.TurnEnded(turn_id="t", reason="stepLimit", message="25 steps are enough.", can_continue=True),
            "25 steps are enough.",
        ),
        (e.TurnEnded(turn_id="t", reason="failed", message="It is an error of the request.", can_continue=True), None),
        (e.TurnEnded(turn_id="t", reason="completed", message="", can_continue=False), None),
        (
            e.SessionRewound(item_id="a", turn_ids=["t"]),
            "The conversation was rewound in another client. Load the session again to see it.",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_notices(event: e.Event, title: str | None) -> None:
    assert [update["title"] for update in Story().tell(event).sent] == ([] if title is None else [title])


def test_what_a_client_has_seen_is_not_sent_again() -> None:
    story = Story()
    story.state.put(answer("Hello"))
    story.updates.skip(story.state.items)
    story.tell(e.ItemDelta(item_id="a", text=" there"), e.ItemCompleted(item=answer("Hello there")))
    assert story.texts == [" there"]
