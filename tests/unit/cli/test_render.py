import re
from typing import Any, get_args

import pytest

from amanu.text.amounts import plural
from amanu.text.wording import summarize_decision, summarize_spend, summarize_usage
from amanu_protocol.events import (
    EndReason,
    Event,
    ItemChanged,
    ItemCompleted,
    ItemDelta,
    ItemsReplaced,
    ItemStarted,
    ItemsWithdrawn,
    PromptQueued,
    ProposalChanged,
    RetryChanged,
    SessionChanged,
    StepEnded,
    TurnEnded,
    TurnRouted,
    TurnStarted,
    UsageChanged,
)
from amanu_protocol.items import (
    Answer,
    Decision,
    FileAttachment,
    ImageAttachment,
    Notice,
    QueuedPrompt,
    Retry,
    Spend,
    Thought,
    Todo,
    TodoList,
    ToolCall,
    Usage,
    UserMessage,
)
from amanu_protocol.state import fold
from support.sample_events import DENIED, Story, call, hunk, proposed

REJECTED = summarize_decision(Decision(outcome="rejected", by="user", reason="too\nrisky"))
USAGE = summarize_usage(
    Usage(
        input_tokens=1200,
        cache_read_tokens=30_000,
        cache_write_tokens=0,
        output_tokens=400,
        thought_tokens=100,
        cost_usd=0.0123,
        context_tokens=20_000,
        context_window=200_000,
    )
)


SPENT = summarize_spend(
    Spend(
        input_tokens=1000,
        cache_read_tokens=0,
        cache_write_tokens=0,
        output_tokens=10,
        thought_tokens=0,
        tool_tokens=200,
        cost_usd=0.004,
    )
)


def started(text: str = "", item_id: str = "a") -> ItemStarted:
    return ItemStarted(item=Answer(item_id=item_id, turn_id="t", text=text))


def delta(text: str, item_id: str = "a") -> ItemDelta:
    return ItemDelta(item_id=item_id, text=text)


def answered(text: str, item_id: str = "a") -> ItemCompleted:
    return ItemCompleted(item=Answer(item_id=item_id, turn_id="t", text=text))


def thought(text: str, subject: str = "") -> Thought:
    return Thought(item_id="th", turn_id="t", subject=subject, text=text)


def done(tool: ToolCall) -> list[Event]:
    return [ItemChanged(item=call("executing")), ItemCompleted(item=tool)]


def notice(level: str, text: str, code: str = "x") -> ItemCompleted:
    return ItemCompleted(item=Notice(item_id="n", level=level, code=code, text=text))  # pyright: ignore


def ended(reason: str, message: str = "", can_continue: bool = False, usage: Spend | None = None) -> TurnEnded:
    return TurnEnded(turn_id="t", reason=reason, message=message, can_continue=can_continue, usage=usage)  # pyright: ignore


DIFF = """\
── a.txt (edit) +1 −1
@@ -1,3 +1,3 @@{state}
 one
-two
+zwei
 three
"""
APPLIED = proposed(hunk(state="applied"))
TODOS = TodoList(
    item_id="t.todos1",
    turn_id="t",
    todos=[
        Todo(text="read", status="done"),
        Todo(text="write", status="inProgress"),
        Todo(text="test", status="pending"),
        Todo(text="sing", status="cancelled"),
    ],
)
EDIT = call(tool="edit_file", title="Edit a.txt", effect="write", proposal_id="p")

STORIES: list[tuple[str, list[Event], str]] = [
    (
        "a command in whose pipe something failed is no success",
        done(call(title="Run pytest | tail", warns=True)),
        "! Run pytest | tail  1.0 s\n",
    ),
    ("a whole answer", [answered("Hello.\n\nBye.")], "Hello.\n\nBye.\n\n"),
    (
        "an answer in pieces is printed block by block",
        [started(), delta("Hel"), delta("lo.\n\n- o"), delta("ne\n- two")],
        "Hello.\n\n",
    ),
    (
        "and ends once",
        [started(), delta("Hel"), delta("lo.\n\nBye"), answered("Hello.\n\nBye")],
        "Hello.\n\nBye\n\n",
    ),
    (
        "an escape cut in two does not reach the terminal",
        [started(), delta("a\x1b[3"), delta("1mb\x1b]52;c;eA=="), delta("\x07c"), answered("")],
        "abc\n\n",
    ),
    ("bidi is made visible", [answered("user\u202etxt.exe")], "user<U+202E>txt.exe\n\n"),
    (
        "a withdrawn attempt leaves a marker",
        [
            started(),
            delta("One.\n\nTw"),
            ItemsWithdrawn(item_ids=["a"], reason="The stream broke."),
            answered("One.\n\nTwo.", "b"),
        ],
        "One.\n\n… that attempt was discarded (The stream broke), trying again\nOne.\n\nTwo.\n\n",
    ),
    (
        "also when nothing of it was whole yet, as it may have been seen in the live line",
        [started(), delta("On"), ItemsWithdrawn(item_ids=["a"], reason="cut"), RetryChanged(retry=None)],
        "… that attempt was discarded (cut), trying again\n",
    ),
    (
        "the reason for a retry is told once",
        [
            started(),
            delta("On"),
            ItemsWithdrawn(item_ids=["a"], reason="The stream broke."),
            UsageChanged(usage=USAGE),  # what the attempt cost
            RetryChanged(retry=Retry(attempt=2, reason="The stream broke.", at=7_000)),
            RetryChanged(retry=None),
            answered("One.", "b"),
        ],
        "↻ The stream broke. What it wrote is discarded. Attempt 2 follows.\nOne.\n\n",
    ),
    ("one that showed nothing leaves none", [started(), ItemsWithdrawn(item_ids=["a"], reason="cut")], ""),
    (
        "a thought",
        [ItemStarted(item=thought("")), delta("**Look**\n\nat it", "th"), ItemCompleted(item=thought(""))],
        "│ **Look**\n\n│ at it\n\n",
    ),
    ("a tool call", done(call()), "✓ Read app.py  1.0 s\n"),
    ("what a read found", done(call(output="picture 640×480 PNG")), "✓ Read app.py  1.0 s  picture 640×480 PNG\n"),
    ("but not all it found", done(call(output="one\ntwo")), "✓ Read app.py  1.0 s\n"),
    (
        "a failed one says why",
        done(call("failed", error="There is no such file.")),
        "✗ Read app.py  1.0 s\n    There is no such file.\n",
    ),
    (
        "a denied one says by what, and what would help",
        [ItemCompleted(item=call("rejected", decision=DENIED))],
        "⊘ Read app.py  denied: Nobody is there to approve it. "
        "Permit it with --allow '@write(it'\\''s.txt)'.\n",
    ),
    (
        "one that a rule denied says so once",
        [ItemCompleted(item=call("rejected", decision=DENIED.model_copy(update={"reason": "Denied by a rule: x."})))],
        "⊘ Read app.py  denied by a rule: x.\n",
    ),
    (
        "a rejected one says what the person said",
        [
            ItemCompleted(
                item=call("rejected", decision=REJECTED)
            )
        ],
        "⊘ Read app.py  rejected by you: “too␊risky”\n",
    ),
    (
        "a command shows the end of its output",
        done(call(effect="run", title="Run x", output="".join(f"{n}\n" for n in range(10)))),
        "✓ Run x  1.0 s\n    … 2 earlier lines\n" + "".join(f"    {n}\n" for n in range(2, 10)),
    ),
    (
        "so does one that was stopped",
        done(call("cancelled", effect="run", title="Run x", output="begun\n", error="Cancelled.")),
        "■ Run x  1.0 s\n    begun\n",
    ),
    (
        "the user's own that went well says no more than that",
        [
            ItemCompleted(item=UserMessage(item_id="u", turn_id="t", text="! x", attachments=[], steer=False)),
            ItemCompleted(item=call(effect="run", title="Run x", output="one\n\nExit code: 0")),
            ItemCompleted(item=call(effect="run", title="Run y", output="Exit code: 0")),
            ItemCompleted(item=call("failed", effect="run", title="Run z", output="Exit code: 1")),
        ],
        "› ! x\n✓ Run x\n    one\n✓ Run y\n✗ Run z\n    Exit code: 1\n",
    ),
    *[
        (
            f"the user's own shows up to 200 lines of it, the model's does not: {prompt}",
            [
                ItemCompleted(item=UserMessage(item_id="u", turn_id="t", text=prompt, attachments=[], steer=False)),
                ItemCompleted(item=call(effect="run", title="Run x", output="".join(f"{n}\n" for n in range(201)))),
            ],
            f"› {prompt}\n✓ Run x\n    … {plural(201 - shown, 'earlier line')}\n"
            + "".join(f"    {n}\n" for n in range(201 - shown, 201)),
        )
        for prompt, shown in [("! x", 200), ("!x", 200), ("!! x", 8), ("![x](x.png)", 8), ("Run x", 8)]
    ],
    (
        "a failed command shows it too",
        done(call("failed", effect="run", title="Run x", output="boom\x1b[31m!")),
        "✗ Run x  1.0 s\n    boom!\n",
    ),
    (
        "an edit shows its diff and what became of it",
        [ProposalChanged(proposal=APPLIED), ItemCompleted(item=EDIT)],
        "✓ Edit a.txt\n" + DIFF.format(state=" · applied") + "  1 hunk: 1 applied\n",
    ),
    (
        "what an editor has not saved is said",
        [ProposalChanged(proposal=proposed(hunk(state="applied"), unsaved=True)), ItemCompleted(item=EDIT)],
        "✓ Edit a.txt\n"
        + DIFF.format(state=" · applied")
        + "  1 hunk: 1 applied\n  /w/a.txt is changed in the editor, not saved\n",
    ),
    (
        "a review that ended without a decision says so",
        [ProposalChanged(proposal=proposed()), ItemCompleted(item=EDIT)],
        "✓ Edit a.txt\n" + DIFF.format(state="") + "  1 hunk: 1 open\n",
    ),
    (
        "the reason that stands at the call is not said again at each hunk",
        [
            ProposalChanged(proposal=proposed(hunk(state="rejected", reason="no"))),
            ItemCompleted(
                item=EDIT.model_copy(
                    update={
                        "state": "rejected",
                        "decision": summarize_decision(Decision(outcome="rejected", by="user", reason="no")),
                    }
                )
            ),
        ],
        "⊘ Edit a.txt  rejected by you: “no”\n" + DIFF.format(state=" · rejected") + "  1 hunk: 1 rejected\n",
    ),
    (
        "to-dos, once: then the calls say how far they are",
        [ItemCompleted(item=TODOS), ItemCompleted(item=TODOS)],
        "  ☑ read\n  ▸ write\n  ☐ test\n  ☒ sing\n",
    ),
    ("a notice", [notice("warning", "Careful.")], "! Careful.\n"),
    (
        "a prompt, and steering once although it comes twice",
        [
            ItemCompleted(item=UserMessage(item_id="u", turn_id="t", text="do it", attachments=[], steer=False)),
            ItemStarted(item=UserMessage(item_id="v", turn_id="t", text="not so", attachments=[], steer=True)),
            ItemCompleted(item=UserMessage(item_id="v", turn_id="t", text="not so", attachments=[], steer=True)),
        ],
        "› do it\n↪ not so\n",
    ),
    (
        "a prompt with a picture",
        [
            ItemCompleted(
                item=UserMessage(
                    item_id="u",
                    turn_id="t",
                    text="look",
                    attachments=[
                        FileAttachment(path="a.py"),
                        ImageAttachment(name="shot\x1b[2J.png", media_type="image/png"),
                    ],
                    steer=False,
                )
            )
        ],
        "› look\n  with the image shot.png\n",
    ),
    (
        "a retry",
        [RetryChanged(retry=Retry(attempt=2, reason="Overloaded.", at=5000)), RetryChanged(retry=None)],
        "↻ Overloaded. Attempt 2 follows.\n",
    ),
    (
        "a queued prompt",
        [PromptQueued(prompt=QueuedPrompt(prompt_id="q", text="then\nthat", attachments=[]))],
        "queued: then that\n",
    ),
    ("a change of mode and model", [SessionChanged(mode="plan", model_id="x:y")], "mode: plan\nmodel: x:y\n"),
    (
        "the end, with what it took",
        [
            TurnStarted(turn_id="t", prompt_id="p", model_id="m"),
            UsageChanged(usage=USAGE),
            ended("completed"),
        ],
        "2.0 s · 31.2k in (30k cached) · 500 out (100 thinking) · $0.0123 · context 10%\n",
    ),
    (
        "the end of a later turn, with what it took of the session",
        [
            TurnStarted(turn_id="t", prompt_id="p", model_id="m"),
            UsageChanged(usage=USAGE),
            ended("completed", usage=SPENT),
        ],
        "2.0 s · 1k in (200 from tools) · 10 out · $0.0040 · session $0.0123 · context 10%\n",
    ),
    (
        "the end of the first turn",
        [
            UsageChanged(usage=USAGE),
            ended("completed", usage=summarize_spend(SPENT.model_copy(update={"cost_usd": 0.0123}))),
        ],
        "1k in (200 from tools) · 10 out · $0.0123 · context 10%\n",
    ),
    (
        "another model by a rule",
        [TurnRouted(turn_id="t", model_id="v:m", reason="Turns in plan mode go to M.")],
        "→ v:m: Turns in plan mode go to M.\n",
    ),
    (
        "a stand-in, said once",
        [
            notice("warning", "Busy. A is overloaded; B is used instead.", code="fallback"),
            TurnRouted(turn_id="t", model_id="v:b", reason="A is overloaded; B is used instead."),
        ],
        "! Busy. A is overloaded; B is used instead.\n",
    ),
    ("the end at a limit", [ended("stepLimit", "Stopped after 3 steps.", True)],
     "Stopped at the step limit. Stopped after 3 steps.\nSend another prompt to continue.\n"),
    ("the end by a hook", [ended("hook", "A hook ended the turn: enough.", True)],
     "Stopped by a hook. A hook ended the turn: enough.\nSend another prompt to continue.\n"),
    (
        "what a notice said is not said twice",
        [notice("error", "No route."), ended("failed", "No route.")],
        "✗ No route.\nThe turn failed.\n",
    ),
    (
        "what came too fast is there in the end",
        [
            started(),
            delta("One.\n\nTw"),
            ItemsReplaced(
                replaces_from=3, items=[Answer(item_id="a", turn_id="t", text="One.\n\nTwo.\n\nThr")], withdrawn=[]
            ),
            answered("One.\n\nTwo.\n\nThree."),
        ],
        "One.\n\n… (parts were skipped; here is the whole text)\nOne.\n\nTwo.\n\nThree.\n\n",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("events", "expected"), [story[1:] for story in STORIES], ids=[story[0] for story in STORIES])
def test_in_a_pipe(events: list[Event], expected: str) -> None:
    assert Story().tell(*events).text == expected


def test_answers_can_be_left_to_others() -> None:
    story = Story(answers=False, thoughts=False).tell(
        ItemStarted(item=thought("")),
        delta("**Look**\n\nlong", "th"),
        ItemCompleted(item=thought("**Look**\n\nlong", "Look")),
        answered("Hello."),
    )
    assert story.text == "… Look\n"


BEGUN = TurnStarted(turn_id="t", prompt_id="p", model_id="m")
SPENT_STEP = StepEnded(
    turn_id="t", step=1, usage=SPENT.model_copy(update={"output_tokens": 900, "thought_tokens": 100})
)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ""),
        ([BEGUN], "⠋ working · 3 s"),
        (
            [BEGUN, ItemStarted(item=thought("")), delta("**One**\n\nx\n\n**Two**\n\ny", "th")],
            "⠋ Two · 3 s · ~5 tokens",
        ),
        ([BEGUN, ItemStarted(item=thought("")), delta("hm", "th")], "⠋ thinking · 3 s"),
        ([BEGUN, started(), delta("Hi" * 40)], "⠋ writing · 3 s · ~20 tokens"),
        ([BEGUN, started(), delta("Hi" * 40), SPENT_STEP], "⠋ writing · 3 s · ~1k tokens"),
        ([BEGUN, started(), delta("Hi" * 40), ItemsWithdrawn(item_ids=["a"], reason="cut")], "⠋ working · 3 s"),
        ([BEGUN, ItemStarted(item=call("validating", title="edit_file"))], "⠋ working · 3 s"),
        (
            [BEGUN, ItemStarted(item=call("validating", title="Edit a", output="+a\n+b\n"))],
            "⠋ Edit a · 2 lines · 3 s",
        ),
        ([BEGUN, ItemChanged(item=call("executing"))], "⠋ Read app.py · 2 s"),
        ([BEGUN, ItemChanged(item=call("executing")), delta("of a command\n", "c")], "⠋ Read app.py · 2 s"),
        ([BEGUN, RetryChanged(retry=Retry(attempt=3, reason="Busy.", at=8100))], "↻ Busy. · attempt 3 in 5 s"),
        ([BEGUN, RetryChanged(retry=Retry(attempt=3, reason="Busy.", at=80))], "↻ Busy. · attempt 3 in 0 s"),
    ],
)
def test_the_status_says_what_goes_on(events: list[Event], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    story = Story().tell(*events)
    activity = story.renderer.status(story.state, clock_time=4.0)
    assert ("" if activity is None else activity.line(200)) == expected


def command(output: str = "", **fields: Any) -> Event:
    return ItemChanged(item=call("executing", title="Run x", effect="run", output=output, **fields))


@pytest.mark.parametrize(
    ("event", "status", "tail"),
    [
        (command(), "⠋ Run x · 2 s", ""),
        (command(movable=True), "⠋ Run x · 2 s · Ctrl-B background", ""),
        (command("one\n", movable=True), "⠋ Run x · 2 s", "▸ Run x · 2 s · Ctrl-B background"),
        (command("one\n"), "⠋ Run x · 2 s", "▸ Run x · 2 s"),
        (command(movable=True, agent_id="agent-1"), "⠋ working · 3 s", ""),
    ],
)
def test_the_key_that_puts_a_command_in_the_background_is_said_once(
    event: Event, status: str, tail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for hint in ("Ctrl-B", ""):
        story = Story(background_hint=hint).tell(BEGUN, event)
        activity = story.renderer.status(story.state, clock_time=4.0)
        assert activity is not None
        shown = (activity.line(200), next((text for _, text in story.renderer.tail(3, story.state, 4.0)), ""))
        assert shown == (status, tail) if hint else "background" not in "".join(shown)


def test_the_tail_is_the_answer_being_written() -> None:
    story = Story().tell(started(), delta("done\n\none\ntwo"))
    assert story.renderer.tail(5, story.state) == [("", "one"), ("", "two")]
    assert story.tell(answered("done\n\none\ntwo")).renderer.tail(5, story.state) == []


def test_the_tail_is_the_edit_being_written_until_there_is_a_question() -> None:
    drafted = call("validating", title="Edit a\x1b[1m.py", output="-zero\n-one\n+two\x1b[31m\n@@\n")
    story = Story().tell(ItemStarted(item=drafted))
    head = ("bold", "Edit a.py · being written")
    assert story.renderer.tail(4, story.state) == [head, ("red", "-one"), ("green", "+two"), ("dim", "@@")]
    story.tell(ItemChanged(item=call("awaitingApproval")))
    assert story.renderer.tail(4, story.state) == []


def test_the_tail_is_what_a_command_prints_below_its_title(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    story = Story().tell(ItemChanged(item=call("executing", title="Run a command of many words", effect="run")))
    assert story.renderer.tail(3, story.state, 13.0) == []
    story.tell(delta(f"one\n{'two ' * 10}\nthr\x1b[31mee\n", "c"))
    title = ("bold", "▸ Run a command of man… · 12 s")
    two = ("dim", "    two two two two two two t…")
    assert story.renderer.tail(3, story.state, 13.0) == [title, two, ("dim", "    three")]
    story.tell(ItemCompleted(item=call(effect="run")))
    assert story.renderer.tail(3, story.state) == []


LONG = "".join(f"{n}\n" for n in range(20))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ""),
        ([answered("Hello."), notice("info", "Plain.")], ""),
        ([ItemCompleted(item=call(effect="run", title="Run x", output="a\x1b[1mb\n"))], "── Run x\n\nab"),
        (
            [ItemCompleted(item=call("failed", error="No such file.", output="some"))],
            "── Read app.py\n\nNo such file.\n\nsome",
        ),
        (
            [
                ItemCompleted(item=thought("**Look**\n\nat it", "Look")),
                ItemCompleted(item=Notice(item_id="n", level="info", code="x", text="Compacted.", detail="## Goal")),
            ],
            "── Look\n\n**Look**\n\nat it\n\n── Compacted.\n\n## Goal",
        ),
        (
            [
                ItemCompleted(item=call(item_id="c0", effect="run", title="Run old", output=LONG)),
                ItemCompleted(item=UserMessage(item_id="u", turn_id="t2", text="go", attachments=[], steer=False)),
                ItemCompleted(item=call(effect="run", title="Run new", output=LONG)),
                ItemCompleted(item=UserMessage(item_id="v", turn_id="t2", text="not so", attachments=[], steer=True)),
                ItemCompleted(item=UserMessage(item_id="w", turn_id="t3", text="thanks", attachments=[], steer=False)),
            ],
            f"── Run new\n\n{LONG}".rstrip("\n"),
        ),
        (
            [ItemCompleted(item=call(effect="run", title="Run x", output="hidden", agent_id="agent-1"))],
            "── agent-1: Run x\n\nhidden",
        ),
    ],
)
def test_what_was_shown_in_part_can_be_had_in_full(events: list[Event], expected: str) -> None:
    story = Story().tell(*events)
    assert story.renderer.expanded(story.state) == expected


@pytest.mark.parametrize(("hint", "shown"), [("Ctrl-O", 30), ("", 50)])
def test_a_long_new_file_that_nobody_is_asked_about_is_cut_if_the_rest_can_be_had(hint: str, shown: int) -> None:
    whole = "".join(f"{n}\n" for n in range(50))
    change = hunk(at=0, old_text="", new_text=whole, state="applied")
    file = proposed(change, change="create", base_text="", added=50, removed=0)
    story = Story(expand_hint=hint).tell(ProposalChanged(proposal=file), ItemCompleted(item=EDIT))
    assert story.text.count("\n+") == shown
    assert ("  … 20 more lines; Ctrl-O shows all\n" in story.text) == bool(hint)
    assert story.renderer.expanded(story.state).count("\n+") == 50
    asked = Story(expand_hint=hint).tell(ProposalChanged(proposal=file))
    asked.renderer.show_diff("p", asked.state)
    assert asked.text.count("\n+") == 50


def test_a_cut_output_says_how_to_see_all() -> None:
    story = Story(expand_hint="Ctrl-O").tell(ItemCompleted(item=call(effect="run", title="Run x", output=LONG)))
    assert "    … 12 earlier lines; Ctrl-O shows all\n" in story.text


TURN = TurnStarted(turn_id="t", prompt_id="p", model_id="m")
ASKED = ItemCompleted(item=UserMessage(item_id="u", turn_id="t", text="do it", attachments=[], steer=False))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([started("One.\n\nTw")], [delta("o."), answered("One.\n\nTwo.")], "One.\n\nTwo.\n\n"),
        ([started("Half")], [ItemCompleted(item=call())], "Half\n\n✓ Read app.py\n"),
        ([answered("Whole.")], [answered("Whole."), ended("completed")], "Whole.\n\n1.0 s\n"),
        ([ItemChanged(item=call("executing"))], [ItemCompleted(item=call())], "✓ Read app.py\n"),
    ],
)
def test_coming_back_in_the_middle_of_a_turn(before: list[Event], after: list[Event], expected: str) -> None:
    story = Story()
    for event in (TURN, ASKED, *before):
        fold(story.state, event)
    story.renderer.show_items(story.state.items, story.state)
    story.tell(*after)
    assert story.text.removesuffix("1.0 s\n") == "› do it\n" + expected.removesuffix("1.0 s\n")


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ([answered("One.\n\nTwo."), ItemCompleted(item=call())], "Two.\n\n✓ Read app.py\n"),
        ([delta("o.\n\nThree")], "Two.\n\n"),
        (
            [answered("One.\n\nTw"), ended("interrupted", "It was killed.", can_continue=True)],
            "Tw\n\nThe daemon stopped in the middle of this turn. It was killed.\nSend another prompt to continue.\n",
        ),
    ],
)
def test_events_that_were_missed(missed: list[Event], expected: str) -> None:
    story = Story().tell(TURN, ASKED, started(), delta("One.\n\nTw"))
    for event in missed:
        fold(story.state, event)
    story.renderer.resume(story.state)
    assert story.text == "› do it\nOne.\n\n" + expected


@pytest.mark.parametrize("reason", [each for each in get_args(EndReason) if each != "completed"])
def test_every_end_has_its_words_once(reason: EndReason) -> None:
    plain = Story().tell(TURN, ended(reason)).text
    words = plain.splitlines()[0]
    assert words.endswith(".")
    assert Story().tell(TURN, ended(reason, words)).text == plain


def test_what_was_over_before_is_not_told_again() -> None:
    story = Story().tell(TURN, ASKED, answered("One."), ended("completed"))
    before = story.text
    story.renderer.resume(story.state)
    assert story.text == before


@pytest.mark.parametrize("colour", [True, False])
def test_on_a_terminal(colour: bool) -> None:
    text = "# Title\n\nSee `x` and [here](https://e.test) <b>bold</b>.\n\n```py\nx = 1\n```"
    story = Story(rich=True, colour=colour).tell(
        ProposalChanged(proposal=APPLIED), ItemCompleted(item=EDIT), answered(text)
    )
    plain = re.sub(r"\x1b\[[0-9;]*m", "", story.text)
    assert "Title" in plain and "x = 1" in plain
    assert "here (https://e.test)" in plain, "a link says where it leads"
    assert "<b>bold</b>" in plain, "HTML is shown, not swallowed"
    assert "\x1b]" not in story.text, "nothing is clickable"
    assert ("\x1b[32m" in story.text) is colour
    assert ("\x1b[1m" in story.text) or colour


def test_lines_are_broken_where_they_may_be() -> None:
    """Between words in what Amanu says; not at all in what a command printed."""
    words, long = "word " * 50, "x" * 180
    text = Story(rich=True).tell(notice("info", words), ItemCompleted(item=call(effect="run", output=long))).text
    *prose, title, output = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    assert len(prose) == 3 and all(set(line.split()) <= {"·", "word"} for line in prose)
    assert title.startswith("✓ ") and output == f"    {long}"


@pytest.mark.parametrize(
    ("path", "change", "shown"),
    [
        ("/state/sessions/s1/plan.md", "create", False),
        ("/state/sessions/s1/plan.md", "edit", True),
        ("/w/plan.md", "create", True),
    ],
)
def test_a_new_plan_is_left_to_the_question_about_it(path: str, change: str, shown: bool) -> None:
    """Also in a session that was begun in plan mode; and no file of Amanu's own is named by its whole path."""
    text = (
        Story()
        .tell(
            ProposalChanged(proposal=proposed(path=path, change=change)),
            ItemCompleted(item=call(effect="write", proposal_id="p")),
        )
        .text
    )
    assert ("── plan.md" in text) == shown and "/state" not in text


def test_untrusted_text_cannot_steer_a_terminal() -> None:
    nasty = "\x1b]0;title\x07\x1b[2J\x9b31mx\x08\u202e"
    events: list[Event] = [
        answered(nasty),
        ItemCompleted(item=call("failed", title=nasty, error=nasty)),
        ItemCompleted(item=call(effect="run", title=nasty, output=nasty)),
        notice("error", nasty),
        ProposalChanged(proposal=proposed(hunk(new_text=nasty, reason=nasty), path=f"/w/{nasty}", base_text=nasty)),
        ItemCompleted(item=EDIT),
        RetryChanged(retry=Retry(attempt=2, reason=nasty, at=0)),
        ended("failed", nasty),
    ]
    text = Story().tell(*events).text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
