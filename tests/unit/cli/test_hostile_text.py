"""Text of others on a terminal: whatever prints it, nothing in it is obeyed, hidden, or passes for a line of ours."""

import io
import re
from collections.abc import Callable
from typing import Any, TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.cli.console import Console, PlainConsole, RichConsole
from amanu.cli.header import show_header
from amanu.cli.question import FIRST, FURTHER, show_lines, show_question, show_reasons, show_whole
from amanu.cli.render import Renderer
from amanu.cli.sessions import session_line
from amanu.cli.status_line import status_line
from amanu.text import wording
from amanu_protocol import requests as r
from amanu_protocol.base import LineRange
from amanu_protocol.events import (
    Event,
    EventMessage,
    ItemCompleted,
    ItemStarted,
    ItemsWithdrawn,
    PromptQueued,
    ProposalChanged,
    RetryChanged,
    SessionChanged,
    TurnEnded,
    TurnRouted,
    TurnStarted,
)
from amanu_protocol.items import (
    Answer,
    Citations,
    CommandPart,
    CommandSandbox,
    CommentAttachment,
    Decision,
    Notice,
    QueuedPrompt,
    Retry,
    ScopeOffer,
    Source,
    Thought,
    Todo,
    TodoList,
    UserMessage,
)
from amanu_protocol.state import SessionState, fold
from support.fake_daemon import SESSION, state
from support.sample_events import approval, call, hunk, proposed

EVIL = st.text(
    alphabet="ab 日\n\r\t\x00\x07\x08\x1b\x9b\x9d]0;[2Jm\\\u202e\u2066\u200b\ufeff\U000e0041\ud800✓│?", max_size=30
)
OBEYED = {*map(chr, (*range(9), *range(11, 32), *range(127, 160))), *"\u202e\u2066\u200b\ufeff\U000e0041\ud800"}


def clean(text: str) -> None:
    assert not OBEYED & set(text), ascii(text)
    text.encode()


def sandbox(text: str, tier: Any = "none") -> CommandSandbox:
    return CommandSandbox(tier=tier, writes="workspace", network=False, summary=text, brief=text)


def events(text: str) -> list[Event]:
    """One of each kind that says what others wrote."""
    by = Decision(outcome="rejected", by="user", client=text, rule=text, reason=text, scope="turn", summary=text)
    rule = Decision(outcome="allowed", by="rule", rule=text, summary=text)
    running = call("executing", item_id="c0", title=text, output=text, effect="run")
    items = [
        running.model_copy(update={"state": "cancelled"}),
        call(title=text, output=text, effect="run", decision=rule, sandbox=sandbox(text)),
        call("failed", item_id="c2", title=text, error=text),
        call("rejected", item_id="c3", title=text, decision=by),
        Answer(item_id="a", turn_id="t", text=text),
        Thought(item_id="th", turn_id="t", subject=text, text=text),
        Notice(item_id="n", level="info", code="x", text=text, detail=text),
        TodoList(item_id="p", turn_id="t", todos=[Todo(text=text, status="pending")], summary=text),
        Citations(item_id="ci", turn_id="t", sources=[Source(title=text, url=text, quote=text)]),
        UserMessage(
            item_id="u",
            turn_id="t",
            text=text,
            steer=False,
            attachments=[CommentAttachment(path=text, lines=LineRange.numbered(1, 1), text=text, comment=text)],
        ),
    ]
    changed = hunk(old_text=text, new_text=text, explanation=text, reason=text)
    return [
        TurnStarted(turn_id="t", prompt_id="p", model_id=text),
        ItemStarted(item=running),
        *(ItemCompleted(item=each) for each in items),
        ProposalChanged(proposal=proposed(changed, path=f"/w/{text}", new_path=f"/w/{text}", change="rename")),
        ItemCompleted(item=call(item_id="c", title=text, proposal_id="p")),
        ItemsWithdrawn(item_ids=["a"], reason=text),
        PromptQueued(prompt=QueuedPrompt(prompt_id="q", text=text, attachments=[])),
        RetryChanged(retry=Retry(attempt=2, reason=text, at=0)),
        TurnRouted(turn_id="t", model_id=text, reason=text),
        SessionChanged(model_id=text, title=text, trust_changed=True, sandbox=sandbox(text)),
        TurnEnded(turn_id="t", reason="failed", message=text, can_continue=True),
    ]


@pytest.mark.parametrize("open_on", [PlainConsole, lambda out: RichConsole(out, colour=True, width=80)])
@given(EVIL)
def test_whatever_happens_in_a_session(open_on: Callable[[TextIO], Console], text: str) -> None:
    out = io.StringIO()
    now: SessionState = state(model_id=text, roots=[f"/w/{text}"], sandbox=sandbox(text, "landlock"))
    renderer = Renderer(open_on(out), details_hint="/notes", trust="/trust", expand_hint="Ctrl-O")
    show_header(now, renderer.console)
    for at, event in enumerate(events(text)):
        message = EventMessage(session_id=SESSION, epoch=1, seq=at + 1, at=0, event=event)
        fold(now, event)
        renderer.show(message, now)
        clean(status_line(now, renderer.status(now), 80))
        clean("".join(line for _, line in renderer.tail(8, now)))
    clean(renderer.expanded(now))
    summary = r.SessionSummary(
        session_id="s", title=text, roots=[text], status="idle", updated_at=0, created_at=0, model_id=text
    )
    out.write(session_line(summary))
    clean(re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()))


@given(EVIL, EVIL)
def test_whatever_is_asked(one: str, two: str) -> None:
    out = io.StringIO()
    console = PlainConsole(out)
    parts = [
        CommandPart(text=one, decision="ask", rule=two, reason=one),
        CommandPart(text=two, decision="deny", rule=one, reason=two),
    ]
    asks = approval(
        title=one, detail=f"{one}\n{two}", rule=two, parts=parts, sandbox=sandbox(one),
        scopes=[ScopeOffer(scope="once", rule=""), ScopeOffer(scope="turn", rule="@read(a)")],
    )  # fmt: skip
    show_question(asks, console)
    show_reasons(asks, console)
    lines = out.getvalue().split("\n")[1:-1]
    told = [each for each in lines if not each.startswith((FIRST, FURTHER, " " * 6))]  # further rows are indented
    assert [each[:3] for each in told] == ["  ?", "  ✗", "  !", "  N"], "each is one line of ours"
    clean(out.getvalue())


@given(EVIL)
def test_whatever_is_told(text: str) -> None:
    out = io.StringIO()
    console = PlainConsole(out)
    enabled = r.TrustedItem(path=text, kind="memory", state="changed", diff=text)
    entry = r.AuditEntry(number=1, at=0, kind="asked", text=text, hash="")
    told = [
        wording.explain_trust(r.TrustGetResult(state="changed", enables=[enabled], digest="")).lines,
        wording.explain_rule_preview(
            r.RulePreviewResult(valid=True, explanation=text, covers=True, covered=[text], covered_count=1)
        ).lines,
        wording.explain_rule_preview(r.RulePreviewResult(valid=False, explanation=text)).lines,
        wording.explain_audit(r.AuditQueryResult(entries=[entry], intact=False, message=text)).lines,
    ]
    for lines in told:
        show_lines(lines, console)
    count = sum(map(len, told))
    assert out.getvalue().count("\n") >= count
    assert not any("\n" in line.text for lines in told for line in lines)
    clean(out.getvalue())


@pytest.mark.parametrize("line", ["x" * 500, " " * 300 + "; rm -rf ~", "日" * 200, "a\tb" * 60])
def test_a_long_line_goes_on_behind_its_gutter(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """What a terminal would wrap to its first column could pass for ours."""
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    show_whole(line, PlainConsole(out))
    first, *further = out.getvalue().rstrip("\n").split("\n")
    assert first.startswith(FIRST) and further and all(each.startswith(FURTHER) for each in further)
    assert all(cell_len(each) <= 80 for each in (first, *further))
    rows = [first[len(FIRST) :], *(each[len(FURTHER) :] for each in further)]
    assert "".join(rows) == line.replace("\t", "    "), "nothing of it is lost"
