"""The pure parts of the plain front: where hunks are, how they are told, the patch file, the transcript, a question."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from amanu.frontends.lsp.plain import patch_file as patch
from amanu.frontends.lsp.plain import review
from amanu.frontends.lsp.plain.change_marks import marks
from amanu.frontends.lsp.plain.code_actions import ActionContext, ActionSubjects, actions, answers
from amanu.frontends.lsp.plain.command_arguments import AnswerArguments
from amanu.frontends.lsp.plain.patch_file import PatchError
from amanu.frontends.lsp.plain.questions import (
    ALL,
    LATER,
    QUOTE,
    diagnostic,
    dialog,
    question_lines,
    reply,
)
from amanu.frontends.lsp.plain.review import hover
from amanu.frontends.lsp.plain.transcript import YOUR_TURN, Transcript, audit_text, question_text
from amanu.frontends.lsp.plain.trust_dialog import trust_text
from amanu.proposals.places import LiveHunk, placed
from amanu.text import wording
from amanu.text.display import visible
from amanu.text.markdown import fenced, prose
from amanu.workspace.diff import changes
from amanu.workspace.text_file import split_lines
from amanu_protocol.base import LineRange
from amanu_protocol.events import ItemCompleted, ItemDelta, ItemStarted, ItemsWithdrawn
from amanu_protocol.items import (
    Answer,
    Approval,
    CommandPart,
    CommandSandbox,
    Grant,
    Proposal,
    ProposedFile,
    ScopeOffer,
    Todo,
    TodoList,
)
from amanu_protocol.requests import AuditQueryResult, TrustedItem, TrustGetResult
from amanu_protocol.state import SessionState, fold
from support.sample_events import answered

ROOT = Path("/project")
OLD = "".join(f"line {each}\n" for each in range(1, 21))
NEW = OLD.replace("line 5\n", "five\nfünf\n").replace("line 15\n", "")


def proposal(old: str, new: str, *, states: tuple[Any, ...] = (), change: Any = "edit") -> Proposal:
    before, after = split_lines(old), split_lines(new)
    hunks = [
        LiveHunk(
            hunk_id=f"p.h{number}",
            base_lines=LineRange(start=each.old_start, end=each.old_end),
            old_text="".join(before[each.old_start : each.old_end]),
            new_text="".join(after[each.new_start : each.new_end]),
            state=states[number] if number < len(states) else "pending",
            edited_by_user=False,
        )
        for number, each in enumerate(changes(before, after))
    ]
    file = ProposedFile(
        path="/project/a.txt",
        change=change,
        base_sha256="",
        base_text=old,
        hunks=placed(hunks),
        added=0,
        removed=0,
        encoding="utf-8",
        final_newline=True,
        unsaved=False,
    )
    return Proposal(proposal_id="p", turn_id="t", tool_call_ids=["c"], version=1, state="pending", files=[file])


def state(*proposals: Proposal) -> SessionState:
    return SessionState(
        session_id="s",
        title="",
        roots=["/project"],
        mode="ask",
        model_id="m",
        trusted=False,
        read_only=False,
        proposals=list(proposals),
    )


@pytest.mark.parametrize(
    ("source", "selected", "expected"),
    [
        ("ruff", False, ["Ask Amanu about this…", "Amanu: fix this", "Amanu: open chat"]),
        ("amanu", False, ["Ask Amanu about this…", "Amanu: open chat"]),
        (None, True, ["Ask Amanu about this…", "Amanu: fix this", "Amanu: explain this"]),
    ],
)
def test_no_default_action_starts_a_turn(source: str | None, selected: bool, expected: list[str]) -> None:
    line = types.Range(types.Position(3, 0), types.Position(3, 9))
    findings = [] if source is None else [types.Diagnostic(line, "unused", source=source)]
    context = ActionContext(Path("/w/a.py"), line, findings, "x" * selected, selected, chat=None, patch=False)
    found = actions(context, ActionSubjects(None, [], []), lambda kind: True)
    assert [each.title for each in found][:3] == expected
    about = [each.title for each in found if each.diagnostics]
    assert about[:1] in ([], expected[:1]) and not any(each.is_preferred for each in found)


def test_a_diagnostic_names_no_id_and_begins_at_a_word() -> None:
    (mark,) = marks(state(proposal("def f():\n    return 1\n", "def f():\n    return 2\n")), "utf-16", "helix")
    shown = review.diagnostic(mark)
    assert (shown.code, shown.data) == ("proposed", mark.change_id)
    assert (shown.range.start.line, shown.range.start.character) == (1, 4)


# Marks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "client", "old", "new", "expected"),
    [
        ((), "x", OLD, NEW, [((4, 0), (4, 6)), ((14, 0), (14, 7))]),
        (("applied",), "x", OLD, NEW, [((4, 0), (5, 4)), ((15, 0), (15, 7))]),
        (("rejected",), "x", OLD, NEW, [((14, 0), (14, 7))]),
        ((), "x", "", "new\n", [((0, 0), (0, 0))]),
        ((), "x", "a\nb\n", "a\nx\nb\n", [((0, 0), (0, 1))]),
        ((), "x", "𝒳\r\nb", "𝒳𝒳\r\nb", [((0, 0), (0, 2))]),
        ((), "Neovim", "a\rb\nc\n", "a\rb\nC\n", [((1, 0), (1, 1))]),
        ((), "x", "a\rb\nc\n", "a\rb\nC\n", [((2, 0), (2, 1))]),
    ],
)
def test_where_hunks_are(states: Any, client: str, old: str, new: str, expected: Any) -> None:
    found = marks(state(proposal(old, new, states=states)), "utf-16", client)
    ranges = [each.range for each in found]
    assert [((r.start.line, r.start.character), (r.end.line, r.end.character)) for r in ranges] == expected


@given(st.text("`a\n", max_size=30))
def test_nothing_in_a_text_ends_its_code_block(text: str) -> None:
    lines = fenced(text).split("\n")
    fence = lines[0]
    assert set(fence) == {"`"} and lines[-1] == fence
    assert not any(line.startswith(fence) for line in lines[1:-1])


def test_a_hover_does_nothing_but_say() -> None:
    evil = "x = 1\n```\n[click](command:evil) \x1b[31m\u202e\n"
    found = hover(marks(state(proposal("x\n", evil)), "utf-8", "x"), "markdown")
    assert found is not None
    text = found.contents.value  # pyright: ignore
    assert "\n````diff\n" in text and text.endswith("\n````")
    assert "\x1b" not in text and "\u202e" not in text and "<U+202E>" in text
    assert prose("[a](b) <c>") == r"\[a\]\(b\) \<c\>"


# The patch ------------------------------------------------------------------------------------------


def decide(text: str, of: Proposal) -> list[tuple[str, str | None]]:
    return [(each.decision, each.new_text) for each in patch.decisions(text, of).hunks]


lines = st.lists(
    st.sampled_from(["a", "b", "-- c", "++ d", "@@ e", "", "\\ f", " g", "# h", "\u2028", "\x1b"]), max_size=12
)
ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(lines, lines, ends, st.booleans(), st.booleans())
def test_a_patch_as_it_was_made_accepts_all_of_it(a: list[str], b: list[str], end: str, x: bool, y: bool) -> None:
    old, new = end.join(a) + (end if x else ""), end.join(b) + (end if y else "")
    one = proposal(old, new)
    text = patch.of_proposal(one, ROOT)
    assert decide(text, one) == [("accept", None)] * len(one.files[0].hunks)
    assert patch.proposal_of(text) == "p"


def test_what_a_reviewed_patch_decides() -> None:
    one = proposal(OLD, NEW)
    text = patch.of_proposal(one, ROOT)
    head, first, second = text.split("\n@@ ")
    for edited, expected in [
        (f"{head}\n@@ {second}", [("reject", None), ("accept", None)]),
        (f"{head}\n", [("reject", None), ("reject", None)]),
        (text.replace("+five", "+cinq"), [("accept", "cinq\nfünf\n"), ("accept", None)]),
        (text.replace("+five\n", ""), [("accept", "fünf\n"), ("accept", None)]),
        (text.replace("+five\n+fünf\n", ""), [("accept", ""), ("accept", None)]),
        (text.replace("-line 5\n+five\n+fünf\n", " line 5\n"), [("reject", None), ("accept", None)]),
        (text.replace("-line 5\n", " line 5\n"), [("accept", "line 5\nfive\nfünf\n"), ("accept", None)]),
        (text.replace("\n", "\r\n"), [("accept", None), ("accept", None)]),
        (re.sub(r"-2,\d+ \+2,\d+", "-2,99 +2,1", text), [("accept", None), ("accept", None)]),
        (f"{head}\n@@ {second.rstrip()}\n\n\n@@ {first}", [("accept", None), ("accept", None)]),
    ]:
        assert decide(edited, one) == expected, edited


@pytest.mark.parametrize(
    ("edit", "at", "why"),
    [
        (lambda t: t.replace("# review", "# preview"), "# Amanu", "is missing"),
        (lambda t: t.replace("# review p ", "# review q "), "# review", "another proposal"),
        (lambda t: t.replace("-line 5", "-line five"), "-line five", "Only"),
        (lambda t: t.replace(" line 3\n", ""), " line 4", "Only"),
        (lambda t: t.replace(" line 3\n", "+mine\n line 3\n"), "+mine", "among the lines around"),
        (lambda t: t.replace(" line 3\n", "-line 3\n"), "-line 3", "cannot be removed"),
        (lambda t: t.replace("p.h0:", "p.h7:", 2).replace("p.h7:", "p.h0:", 1), "@@ -2", "Unknown change"),
        (lambda t: re.sub(r"@@ p.h0:\w+", "@@", t), "@@ -2", "no change"),
        (lambda t: t.replace(" line 18\n", ""), "@@ -12", "missing"),
        (lambda t: t + "rubbish\n", "rubbish", "no change"),
    ],
)
def test_a_patch_that_does_not_fit_says_where(edit: Any, at: str, why: str) -> None:
    one = proposal(OLD, NEW)
    text = edit(patch.of_proposal(one, ROOT))
    with pytest.raises(PatchError, match=why) as error:
        patch.decisions(text, one)
    assert text.splitlines()[error.value.line].startswith(at)


def test_a_hunk_that_is_another_now_is_not_decided() -> None:
    text = patch.of_proposal(proposal(OLD, NEW), ROOT)
    for other in (proposal(OLD, NEW.replace("five", "5")), proposal(OLD, NEW, states=("applied",))):
        with pytest.raises(PatchError, match="was updated"):
            patch.decisions(text, other)


def test_a_later_hunk_is_not_rejected_by_an_older_patch() -> None:
    text = patch.of_proposal(proposal(OLD, OLD.replace("line 5\n", "five\nfünf\n")), ROOT)
    assert decide(text, proposal(OLD, NEW)) == [("accept", None)]


def test_characters_that_are_only_shown_cannot_be_edited() -> None:
    one = proposal("a\n", "b\x1b\nc\n")
    text = patch.of_proposal(one, ROOT)
    assert "\x1b" not in text and decide(text, one) == [("accept", None)]
    with pytest.raises(PatchError, match="hidden characters"):
        decide(text.replace("+c", "+d"), one)


def test_a_line_that_stays_never_gets_the_signs_it_is_shown_with() -> None:
    one = proposal("a\u200b\nb\n", "c\nd\n")
    text = patch.of_proposal(one, ROOT)
    assert "-a<U+200B>\n" in text and decide(text, one) == [("accept", None)]
    with pytest.raises(PatchError, match="hidden characters"):
        decide(text.replace("-a", " a"), one)


# The transcript -------------------------------------------------------------------------------------


def test_a_transcript_grows_by_whole_lines_and_never_takes_back() -> None:
    now, question_lines = state(), Transcript()

    def happen(event: Any) -> str:
        fold(now, event)
        return question_lines.on_event(event) + question_lines.new_text(now)

    answer = Answer(item_id="a", turn_id="t", text="")
    assert happen(ItemStarted(item=answer)) == "## Amanu\n\n"
    assert happen(ItemDelta(item_id="a", text="one\ntw")) == "one\n"
    assert happen(ItemDelta(item_id="a", text=f"o\n{YOUR_TURN}")) == "two\n"
    whole = answer.model_copy(update={"text": f"one\ntwo\n{YOUR_TURN} x"})
    assert happen(ItemCompleted(item=whole)) == f"\\{YOUR_TURN} x\n\n"
    assert question_lines.new_text(now) == ""
    happen(ItemStarted(item=Answer(item_id="b", turn_id="t", text="")))
    assert happen(ItemDelta(item_id="b", text="gone\n")) == "gone\n"
    assert "Discarded" in happen(ItemsWithdrawn(item_ids=["b"], reason="retry"))
    assert happen(ItemCompleted(item=Answer(item_id="c", turn_id="t", text="again"))) == "again\n\n"
    todos = TodoList(
        item_id="d", turn_id="t", todos=[Todo(text="read", status="done"), Todo(text="#", status="pending")]
    )
    assert happen(ItemCompleted(item=todos)) == "- [x] read\n- [ ] \\#\n\n"
    assert happen(ItemCompleted(item=todos)) == "", "how far it is, the calls' lines say"


# Questions ------------------------------------------------------------------------------------------


ONCE, SESSION, REJECT = "Allow once", "Allow for this session", "Reject"
NET: tuple[Grant, ...] = ("network",)
WITH = f"{ONCE} with network access"
SESSION_WITH = f"{SESSION} with network access"


@pytest.mark.parametrize(
    ("detail", "scopes", "grants", "wants", "preselects", "titles"),
    [
        ("ls", [], (), (), False, [ONCE, REJECT]),
        ("ls", ["session"], (), (), False, [ONCE, SESSION, REJECT]),
        ("ls", ["session"], (), (), True, [LATER, ONCE, SESSION, REJECT]),
        ("ls", ["session"], NET, NET, False, [WITH, SESSION_WITH, ALL, REJECT]),
        ("ls", ["session"], NET, (), False, [ONCE, SESSION, ALL, REJECT]),
        (
            "ls",
            ["session"],
            (),
            NET,
            False,
            [f"{ONCE} without network access", f"{SESSION} without network access", REJECT],
        ),
        ("x" * 5000, ["session"], NET, NET, False, [LATER, ALL, REJECT]),
        ("\n" * 100, ["session"], (), (), False, [LATER, ALL, REJECT]),
    ],
)
def test_what_does_not_fit_cannot_be_allowed_in_a_dialog(
    detail: str,
    scopes: list[Any],
    grants: tuple[Grant, ...],
    wants: tuple[Grant, ...],
    preselects: bool,
    titles: list[str],
) -> None:
    asks = approval(detail, scopes, grants=list(grants), likely_grants=list(wants))
    text, found = dialog(asks, preselects=preselects)
    assert list(found) == titles and len(found) <= 5
    assert len(text) <= 1000 and "\x1b" not in text
    for title, choice in found.items():
        if choice is None:
            assert title in (LATER, ALL)
            continue
        sent = AnswerArguments.model_validate(reply("s", asks, choice), by_alias=True, by_name=False)
        assert (sent.session, sent.call, sent.digest) == ("s", "c", "d1")
        assert sent.grants == (["network"] if title.endswith("with network access") else [])
        assert (sent.scope == "session") == title.startswith(SESSION)
        assert (sent.decision == "reject") == (title == REJECT)


def approval(detail: str, scopes: list[Any], **changes: Any) -> Approval:
    offers = [ScopeOffer(scope=each, rule="run_shell_command(ls)\x1b") for each in scopes]
    plain: dict[str, Any] = {
        "tool_call_id": "c",
        "title": "Run",
        "detail": detail,
        "effect": "run",
        "rule": "r",
        "scopes": offers,
        "asked_at": 0,
        "digest": "d1",
    }
    return answered(wording.explain_approval(Approval(**{**plain, **changes})))


@pytest.mark.parametrize("preselects", [False, True])
def test_a_plan_is_approved_with_the_mode_it_is_carried_out_in(preselects: bool) -> None:
    asks = approval("# Plan\n" * 500, ["once"], document="/state/plan.md")
    text, found = dialog(asks, preselects=preselects)
    assert "/state/plan.md" in text and "# Plan" not in text
    chosen = {
        (sent.decision, sent.mode)
        for choice in found.values()
        if choice is not None
        for sent in [AnswerArguments.model_validate(reply("s", asks, choice), by_alias=True, by_name=False)]
    }
    assert chosen == {("allow", "ask"), ("allow", "acceptEdits"), ("allow", "auto"), ("reject", None)}
    titles = [action.title for action in answers(state().model_copy(update={"approvals": [asks]}))]
    assert sum("with a fresh context" in title for title in titles) == 3


def test_a_question_says_what_is_fine_what_is_not_and_what_holds_it() -> None:
    parts = [
        CommandPart(text="git status", decision="allow", rule="built-in", reason="Only reads."),
        CommandPart(text="npm i\n✓ x", decision="ask", rule="r", reason="Runs what it fetches."),
        CommandPart(text="rm -rf /", decision="deny", rule="built-in: deny", reason="Ruins the machine."),
    ]
    alone = CommandSandbox(tier="none", writes="everything", network=True, summary="Not sandboxed: it is Windows.")
    asks = approval("git status && …", [], parts=parts, sandbox=alone, likely_grants=["network"])
    assert question_lines(asks) == [
        "Run",
        "│ git status && …",
        "✓ git status — Only reads. (built-in)",
        "? npm i␊✓ x — Runs what it fetches.",
        "✗ rm -rf / — Ruins the machine. (built-in: deny)",
        "Probably needs network access. If you allow it:",
        "! Not sandboxed: it is Windows.",
        "Asked every time: r",
    ]
    document = question_text(asks)
    assert "- ✗ rm -rf / — Ruins the machine" in document and "Not sandboxed: it is Windows" in document


def test_several_rules_are_one_sentence() -> None:
    rules = "run_shell_command(python3 -m compileall *)\nrun_shell_command(touch *)"
    once = ScopeOffer(scope="once", rule="", explanation="Only this time.")
    kept = ScopeOffer(scope="session", rule=rules, explanation="Both.")
    asks = answered(approval("python3 -m compileall . && touch x", []).model_copy(update={"scopes": [once, kept]}))
    said = "run_shell_command(python3 -m compileall *) and run_shell_command(touch *)"
    assert said in dialog(asks, preselects=False)[0]
    titles = [action.title for action in answers(state().model_copy(update={"approvals": [asks]}))]
    assert f"Amanu: allow for this session: {said}" in titles
    assert not any("U+" in title or "␊" in title for title in titles)


def test_a_question_says_nothing_twice() -> None:
    looks = "built in: allow @run, without effect (it changes nothing)"
    make = CommandPart(text="make", decision="ask", rule="r", reason="Runs a rule.")
    alone = approval("make\nIn: /work", [], parts=[make])
    assert question_lines(alone)[3:5] == ["? Runs a rule.", "Asked every time: r"]
    parts = [
        CommandPart(text="ls", decision="allow", rule=looks, reason="Lists files."),
        CommandPart(text="make " + "x" * 5000, decision="ask", rule="r", reason="Runs a rule."),
    ]
    assert question_lines(approval("ls && make …\nIn: /work", [], parts=parts))[3:5] == [
        "✓ ls — Lists files.",
        f"? make {'x' * 194}… — Runs a rule.",
    ]


HOSTILE = st.text(alphabet="ab \n\r\t\x00\x1b\x9b]0;[m`*_<>()!\u202e\u2066\u200b\ufeff\U000e0041#-│✓", max_size=40)
HIDDEN = set(map(chr, (*range(9), *range(11, 32), *range(127, 160)))) | set("\u202e\u2066\u200b\ufeff\U000e0041")


@given(HOSTILE, HOSTILE, HOSTILE)
def test_nothing_that_is_asked_about_passes_for_more_than_it_is(one: str, two: str, three: str) -> None:
    part = CommandPart(text=one, decision="ask", rule=two, reason=three)
    held = CommandSandbox(tier="bubblewrap", writes="workspace", network=False, summary=f"Sandboxed. {two}")
    asks = approval(f"{one}\n{two}", ["once", "session"], title=three, rule=one, parts=[part], sandbox=held)
    _, *lines = question_lines(asks)
    quoted = [each for each in lines if each.startswith(QUOTE)]
    assert len(quoted) == len(visible(asks.detail).split("\n"))
    assert len(lines) - len(quoted) == 3, "one line each: part, sandbox, rule"
    shown = [dialog(asks, preselects=False)[0], question_text(asks), diagnostic(asks).message]
    shown += [str(each.title) for each in answers(state().model_copy(update={"approvals": [asks]}))]
    shown.append(audit_text(wording.explain_audit(AuditQueryResult(entries=[], intact=False, message=two))))
    shown.append(trust_text(one, trusting(one, two)))
    for text in shown:
        assert not HIDDEN & set(text)
        text.encode()
    for text in (question_text(asks), trust_text(two, trusting(one, two))):
        outside = re.sub(r"(?ms)^(```+)\w*\n.*?\n\1$", "", text)
        assert not re.search(r"(?<!\\)[<\[`]", outside), "no link, no HTML, no code that is not ours"


def trusting(path: str, diff: str) -> TrustGetResult:
    enables = [TrustedItem(path=path, kind="memory", state="changed", diff=diff)]
    return wording.explain_trust(TrustGetResult(state="changed", enables=enables, digest="d"))
