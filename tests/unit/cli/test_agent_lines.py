"""The work of sub-agents between that of the session: a line each, with whose it is."""

from typing import Any

import pytest

from amanu.cli.status_line import status_line
from amanu.text.sub_agents import describe_agent
from amanu.text.wording import summarize_agent
from amanu_protocol.events import (
    AgentChanged,
    ApprovalRequested,
    Event,
    ItemChanged,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ProposalChanged,
    TurnStarted,
)
from amanu_protocol.items import Answer, Notice, Question, SubAgent
from support.fake_daemon import state
from support.sample_events import DENIED, Story, approval, call, hunk, proposed


def agent(number: int = 1, name: str = "looker", **changes: Any) -> SubAgent:
    plain: dict[str, Any] = {
        "agent_id": f"agent-{number}",
        "name": name,
        "description": f"the task of {name}",
        "session_id": f"agent-{number}-abc",
        "tool_call_id": f"r{number}",
        "state": "running",
        "started_at": 10_000,
    }
    return summarize_agent(SubAgent(**{**plain, **changes}))


def run_agent(number: int = 1, status: str = "succeeded", **changes: Any) -> ItemCompleted:
    return ItemCompleted(item=call(status, item_id=f"r{number}", tool="run_agent", title="looker: look", **changes))


def used(number: int, status: Any = "succeeded", **changes: Any) -> list[Event]:
    item = call(status, item_id=f"c{number}", agent_id=f"agent-{number}", **changes)
    return [ItemChanged(item=item.model_copy(update={"state": "executing"})), ItemCompleted(item=item)]


def says(number: int, text: str) -> ItemCompleted:
    return ItemCompleted(item=Answer(item_id=f"a{number}", turn_id="t", text=text, agent_id=f"agent-{number}"))


WARNING = Notice(item_id="n", level="warning", code="x", text="It is\nlate.", agent_id="agent-1")
ASKED = Question(
    item_id="q",
    turn_id="t",
    tool_call_id="c1",
    title="Which?",
    asker="looker",
    fields=[],
    state="answered",
    summary="A",
    agent_id="agent-1",
)
TURN = TurnStarted(turn_id="t", prompt_id="p", model_id="x")
EDITED = call(item_id="c1", agent_id="agent-1", title="Edit a.txt", effect="write", proposal_id="p")
FOREGROUND: list[Event] = [AgentChanged(agent=agent(state="waiting")), AgentChanged(agent=agent())]
ENDED = AgentChanged(agent=agent(state="completed", steps=2, cost_usd=0.02))
BEGIN = "▸ looker 1: the task of looker\n"

STORIES: list[tuple[str, list[Event], str]] = [
    ("one that waits for its turn is not shown", [AgentChanged(agent=agent(state="waiting"))], ""),
    (
        "from its beginning to its end",
        [*FOREGROUND, *used(1, output="12 lines"), says(1, "\nI looked.\nMore."), ENDED, run_agent()],
        f"{BEGIN}"
        "  looker 1 │ ✓ Read app.py  1.0 s  12 lines\n"
        "  looker 1 │ I looked.\n"
        "✓ looker 1: the task of looker  Completed: 2 steps, $0.0200\n",
    ),
    (
        "two at once are told apart",
        [*FOREGROUND, AgentChanged(agent=agent(2, "reader")), *used(2), *used(1)],
        f"{BEGIN}▸ reader 2: the task of reader\n"
        "  reader 2 │ ✓ Read app.py  1.0 s\n  looker 1 │ ✓ Read app.py  1.0 s\n",
    ),
    (
        "what failed says why, on its line",
        [*FOREGROUND, *used(1, "failed", error="No such file.\nSee below.")],
        f"{BEGIN}  looker 1 │ ✗ Read app.py  1.0 s  No such file.\n",
    ),
    (
        "so does what was denied",
        [*FOREGROUND, *used(1, "rejected", decision=DENIED.model_copy(update={"summary": "denied by a rule"}))],
        f"{BEGIN}  looker 1 │ ⊘ Read app.py  1.0 s  denied by a rule\n",
    ),
    (
        "an edit says what became of it",
        [*FOREGROUND, ProposalChanged(proposal=proposed(hunk(state="applied"))), ItemCompleted(item=EDITED)],
        f"{BEGIN}  looker 1 │ ✓ Edit a.txt  +1 −1, 1 applied\n",
    ),
    (
        "warnings and answered questions",
        [*FOREGROUND, ItemCompleted(item=WARNING), ItemCompleted(item=ASKED)],
        f"{BEGIN}  looker 1 │ ! It is\n  looker 1 │ ? Which?  A\n",
    ),
    (
        "one that failed",
        [
            *FOREGROUND,
            AgentChanged(agent=agent(state="failed", steps=1)),
            run_agent(1, "failed", error="looker (agent-1) failed: it stopped.\n\nIt said last:\n\nWell."),
        ],
        f"{BEGIN}✗ looker 1: the task of looker  Failed: 1 step\n    looker (agent-1) failed: it stopped.\n",
    ),
    (
        "one in the background begins and goes on, and its call is no end",
        [AgentChanged(agent=agent(background=True)), run_agent(output="It works in the background."), *used(1)],
        "▸ looker 1: the task of looker  in the background\n  looker 1 │ ✓ Read app.py  1.0 s\n",
    ),
    (
        "a text that is being written goes on below it",
        [
            ItemStarted(item=Answer(item_id="own", turn_id="t", text="")),
            ItemDelta(item_id="own", text="Hello "),
            *used(1),
            ItemDelta(item_id="own", text="you."),
            ItemCompleted(item=Answer(item_id="own", turn_id="t", text="Hello you.")),
        ],
        "  agent-1 │ ✓ Read app.py  1.0 s\nHello you.\n\n",
    ),
    ("hidden text is shown", [*FOREGROUND, says(1, "a\x1b[31mb\u202ec")], f"{BEGIN}  looker 1 │ ab<U+202E>c\n"),
    (
        "also of a name",
        [AgentChanged(agent=agent(name="a\u202eb\nc"))],
        "▸ a<U+202E>b<U+000A>c 1: the task of a<U+202E>b c\n",
    ),
]


@pytest.mark.parametrize(("events", "expected"), [story[1:] for story in STORIES], ids=[story[0] for story in STORIES])
def test_what_is_printed(events: list[Event], expected: str) -> None:
    assert Story().tell(*events).text == expected


def test_a_line_fits_into_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    story = Story().tell(*FOREGROUND, *used(1, "failed", title="Read " + "a" * 40, error="No such file " * 20))
    assert [len(line) for line in story.text.splitlines()[1:]] == [60]
    assert story.text.endswith("…\n")


def test_what_is_resumed_half_way_is_shown_with_its_beginning() -> None:
    own = Answer(item_id="own", turn_id="t", text="Half")
    begun = state(items=[call("executing", item_id="r1", tool="run_agent"), own], agents=[agent()])
    begun.items += [event.item for event in (*used(1), says(1, "I looked.")) if isinstance(event, ItemCompleted)]
    story = Story()
    story.state = begun
    story.tell(TURN)
    story.renderer.show_items(begun.items, begun)
    assert story.text == f"{BEGIN}  looker 1 │ ✓ Read app.py\n  looker 1 │ I looked.\n"
    story.tell(ItemCompleted(item=own.model_copy(update={"text": "Half and half."})))
    assert story.text.endswith("I looked.\nHalf and half.\n\n")


def status(story: Story) -> str:
    activity = story.renderer.status(story.state, 12.0)
    return "" if activity is None else activity.line(200)


def test_what_moves_is_what_agents_do_and_a_question_says_whose_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    story = Story().tell(TURN)
    executing = run_agent().item.model_copy(update={"state": "executing"})
    story.tell(AgentChanged(agent=agent(activity="Read app.py")), ItemChanged(item=executing))
    story.tell(AgentChanged(agent=agent(2, "reader", activity="Thinks")))
    assert status(story) == "… looker 1: Read app.py · reader 2: Thinks · 2 s"
    assert status_line(story.state, None, 90) == "Enter sends · /help · Esc stops · 2 agents · ask · x"
    story.tell(ApprovalRequested(approval=approval(agent_id="agent-2", agent="reader")))
    assert status(story) == "? reader 2: Run make test"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (
            agent(steps=3, activity="Read a.py", cost_usd=0.5),
            "looker 1: the task of looker · Running: 3 steps, $0.50 · 23.0 s · Read a.py",
        ),
        (agent(state="waiting", activity="Thinks"), "looker 1: the task of looker · Waiting: 0 steps · 23.0 s"),
        (
            agent(state="failed", ended_at=12_000, activity="Thinks"),
            "looker 1: the task of looker · Failed: 0 steps · 2.0 s",
        ),
    ],
)
def test_an_agent_on_one_line(shown: SubAgent, expected: str) -> None:
    assert describe_agent(shown, 33.0) == expected
