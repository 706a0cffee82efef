"""The conversation as Markdown, in the clipboard, and what it has cost."""

from typing import Any

import pytest

from amanu.cli.ui.conversation import markdown
from amanu.cli.ui.cost import cost_lines
from amanu.cli.ui.sequences import clipboard
from amanu_protocol.events import TurnEnded
from amanu_protocol.items import Answer, Item, Notice, Question, Spend, Thought, ToolCall, Usage, UserMessage
from amanu_protocol.state import SessionState
from unit.cli.test_notifications import state

HEAD = "# Fix it\n\nscripted:demo · /w"
SPENT: dict[str, Any] = {"cache_read_tokens": 0, "cache_write_tokens": 0, "thought_tokens": 0, "tool_tokens": 0}


def said(text: str, *, steer: bool = False) -> Item:
    return UserMessage(turn_id="t", item_id="u", text=text, attachments=[], steer=steer)


def call(state: str, *, effect: str = "run", output: str = "", error: str | None = None) -> Item:
    fields: dict[str, Any] = {"title": "Run make", "state": state, "effect": effect, "output": output, "error": error}
    return ToolCall.model_construct(item_id="c", turn_id="t", agent_id=None, warns=False, **fields)


@pytest.mark.parametrize(
    ("item", "blocks"),
    [
        (said("do it"), "\n\n## › do it"),
        (said("do it", steer=True), "\n\n## ↪ do it"),
        (said("do\nit"), "\n\n## › do it\n\ndo\nit"),
        (Answer(turn_id="t", item_id="a", text="\n**So** it\x1b[31m is.\n"), "\n\n**So** it is."),
        (Answer(turn_id="t", item_id="a", text="For the model.", agent_id="agent-1"), ""),
        (Thought(turn_id="t", item_id="t", subject="", text="Hm."), ""),
        (call("succeeded"), "\n\n- ✓ Run make"),
        (call("succeeded", output="a\n```\nb\n"), "\n\n- ✓ Run make\n\n````\na\n```\nb\n````"),
        (call("succeeded", effect="read", output="a file\n"), "\n\n- ✓ Run make"),
        (call("failed", effect="read", error="No such file"), "\n\n- ✗ Run make\n\n```\nNo such file\n```"),
        (Notice(turn_id="t", item_id="n", level="warning", code="x", text="Slow"), "\n\n> ! Slow"),
        (Question(turn_id="t", item_id="q", asker="Amanu", title="Which?", fields=[]), "\n\n- ? Which?"),
    ],
)
def test_markdown(item: Item, blocks: str) -> None:
    assert markdown(state(), [item]) == f"{HEAD}{blocks}\n"


@pytest.mark.parametrize(
    ("environ", "sequence"),
    [
        ({}, "\x1b]52;c;w7w=\x07"),
        ({"TMUX": "/tmp/tmux"}, "\x1b]52;c;w7w=\x07\x1bPtmux;\x1b\x1b]52;c;w7w=\x07\x1b\\"),
    ],
)
def test_the_clipboard(environ: dict[str, str], sequence: str) -> None:
    assert clipboard("ü", environ) == sequence


def spend(cost: float | None, tokens: int = 1000) -> Spend:
    return Spend(input_tokens=tokens, output_tokens=5, cost_usd=cost, **SPENT)


def spent(cost: float | None) -> SessionState:
    usage = Usage(input_tokens=9000, output_tokens=50, cost_usd=cost, context_tokens=0, context_window=1, **SPENT)
    usage = usage.model_copy(update={"cache_read_tokens": 20_000, "tool_tokens": 700})
    ended = TurnEnded(turn_id="t", reason="completed", message="", can_continue=False, usage=spend(0.25))
    return state().model_copy(update={"usage": usage, "last_turn": ended})


@pytest.mark.parametrize(
    ("session", "steps", "lines"),
    [
        (state(), {}, ["Nothing has been sent to a model yet."]),
        (
            spent(1.5),
            {"a:b": [spend(0.25), spend(0.5)], "c:d": [spend(None)]},
            [
                "session   $1.50 · 9k in · 20k from cache · 50 out · 700 of the input by the service's tools",
                "last turn $0.25 · 1k in · 5 out",
                "a:b  $0.75 · 2 steps since you came · 2k in · 10 out",
                "c:d  price unknown · 1 step since you came · 1k in · 5 out",
            ],
        ),
    ],
)
def test_the_cost(session: SessionState, steps: dict[str, list[Spend]], lines: list[str]) -> None:
    assert [*cost_lines(session, steps)] == lines
