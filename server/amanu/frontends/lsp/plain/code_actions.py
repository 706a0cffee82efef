"""The code actions offered at a place."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsprotocol import types

from amanu.frontends.lsp.plain.change_marks import Mark, RowMark, amount, needed
from amanu.frontends.lsp.plain.chat_document import SEND
from amanu.frontends.lsp.plain.patch_file import APPLY
from amanu.frontends.lsp.plain.prompting import REQUESTS
from amanu.frontends.lsp.plain.questions import choices, reply, rules_line
from amanu.frontends.lsp.plain.review import change_arguments
from amanu.frontends.lsp.plain.user_questions import question_actions
from amanu.text.display import one_line
from amanu.text.sub_agents import agent_label, asked_by
from amanu.workspace.diagnostics import OWN
from amanu_protocol.state import SessionState

FIX, ASK, WHOLE = "quickfix", "refactor.rewrite", "source.amanu"
"""Kinds: about what is shown here, about this text, about all of it."""
QUESTIONS = 3
"""Pending questions that are offered to be answered at once."""

ENDED_AGENTS = 3
"""Last sub-agents that can be opened when they have ended."""

SINGLE = 5
"""Changes of a range that are offered one by one, before all of them at once."""

_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}


@dataclass(frozen=True)
class ActionContext:
    """Where code actions are asked for. `text` is of the lines in the range, "" where nothing is selected."""

    path: Path
    range: types.Range
    findings: Sequence[types.Diagnostic]
    text: str
    selected: bool
    chat: str | None
    """The session whose chat this document is."""
    patch: bool
    """It is a patch file of ours."""
    offers: Sequence[tuple[str, str, dict[str, Any]]] = ()
    """What can be done about the document of ours this is: title, command, argument."""


@dataclass(frozen=True)
class ActionSubjects:
    """What there is to act on. `state` None: no session yet."""

    state: SessionState | None
    marks: Sequence[Mark]
    hidden: Sequence[tuple[str, dict[str, Any]]]
    """Commands about documents of ours that the editor shows without us: it serves one server per file."""


def actions(context: ActionContext, subjects: ActionSubjects, accepts: Callable[[str], bool]) -> list[types.CodeAction]:
    """Those of the kinds that are `wanted`, the most likely ones first."""
    return [action for action in _all(context, subjects) if accepts(str(action.kind))]


def _all(context: ActionContext, subjects: ActionSubjects) -> Iterator[types.CodeAction]:
    state = subjects.state
    if context.patch:
        yield _action(APPLY, FIX, "amanu.applyPatch", {"path": str(context.path)})
    if context.chat is not None:
        yield _action(SEND, FIX, "amanu.send", {"session": context.chat})
        yield _action("Amanu: how calls were decided", WHOLE, "amanu.audit", {"session": context.chat})
    for title, command, argument in context.offers:
        yield _action(title, FIX, command, argument)
    if state is not None:
        yield from answers(state)
    yield from _at_range(context, subjects.marks)
    yield from _for_all(context, subjects)
    if state is not None and state.turn is not None:
        yield _action("Amanu: stop", FIX, "amanu.stop")
    if state is not None:
        yield from _agents(state)
        yield from _jobs(state)
    if context.chat is None and not context.patch:
        yield from _prompts(context)
        for title, order in subjects.hidden:
            yield _action(title, WHOLE, order["command"], order["arguments"])
        yield _action("Amanu: open chat", WHOLE, "amanu.chat")


def answers(state: SessionState) -> Iterator[types.CodeAction]:
    """Of each question: every way to answer it, with what it would grant or save."""
    for approval in [approval for approval in state.approvals if approval.proposal_id is None][:QUESTIONS]:
        for answer in choices(approval):
            subject = rules_line(answer.rule) if answer.rule else f"{asked_by(approval)}{approval.title}"
            title = f"Amanu: {answer.label[0].lower()}{answer.label[1:]}: {one_line(subject)}"
            yield _action(title, FIX, "amanu.answer", reply(state.session_id, approval, answer))
    for question in state.questions[:QUESTIONS]:
        for title, command, argument in question_actions(state.session_id, question):
            yield _action(title, FIX, command, argument)


def _agents(state: SessionState) -> Iterator[types.CodeAction]:
    """Of each sub-agent that works, and of the last ones that ended: all it did, and how to stop it."""
    for agent in (agent for agent in state.agents if agent.works or agent in state.agents[-ENDED_AGENTS:]):
        name = f"{agent_label(agent.name, agent.agent_id)} ({one_line(agent.description)}; {one_line(agent.summary)})"
        argument = {"session": state.session_id, "agent": agent.agent_id}
        yield _action(f"Amanu: open {name}", WHOLE, "amanu.agent", argument)
        if agent.works:
            yield _action(f"Amanu: stop {name}", WHOLE, "amanu.stopAgent", argument)


def _jobs(state: SessionState) -> Iterator[types.CodeAction]:
    """Of each background command that runs: how it stands, and how to end it."""
    for job in state.jobs:
        if job.state == "running":
            name = f"{job.job_id} ({one_line(job.title)}; {job.summary[0].lower()}{job.summary[1:]})"
            argument = {"session": state.session_id, "job": job.job_id}
            yield _action(f"Amanu: output of {name}", WHOLE, "amanu.job", argument)
            yield _action(f"Amanu: stop {name}", WHOLE, "amanu.stopJob", argument)


def _at_range(context: ActionContext, marks: Sequence[Mark]) -> Iterator[types.CodeAction]:
    ours = [finding for finding in context.findings if finding.source == OWN]
    named = {str(finding.data) for finding in ours}
    marks_in_range = [
        mark
        for mark in marks
        if mark.path == context.path
        and (mark.change_id in named or mark.meets(context.range.start.line, context.range.end.line))
    ]
    for verbs, matching_marks in (
        (("accept", "reject"), [mark for mark in marks_in_range if mark.open]),
        (("keep", "undo"), [mark for mark in marks_in_range if mark.unreviewed]),
        (("undo",), [mark for mark in marks_in_range if mark.kept]),
    ):
        if (
            len(matching_marks) > 1
        ):  # a range that is more than a line: some editors send all of the file for want of a word
            for mark in matching_marks[:SINGLE]:
                at = "" if isinstance(mark, RowMark) else f" at line {mark.range.start.line + 1}"
                yield from _verbs(verbs, f"the change{at} {mark.amount}", [mark], ours)
        if matching_marks:
            which = f"this change {matching_marks[0].amount}"
            if len(matching_marks) > 1:
                which = f"these {len(matching_marks)} changes{amount(matching_marks)}"
            yield from _verbs(verbs, which, matching_marks, ours)


def _for_all(context: ActionContext, subjects: ActionSubjects) -> Iterator[types.CodeAction]:
    for verbs, matching_marks in (
        (("accept", "reject"), [mark for mark in subjects.marks if mark.open]),
        (("keep", "undo"), [mark for mark in subjects.marks if mark.unreviewed]),
    ):
        of_file = [mark for mark in matching_marks if mark.path == context.path]
        if len(of_file) > 1:
            yield from _verbs(verbs, f"all {len(of_file)} changes in this file", of_file)
        if len(matching_marks) > len(of_file):
            files = len({mark.path for mark in matching_marks})
            where = f"{files} files" if files > 1 else matching_marks[0].name
            which = f"all {len(matching_marks)} changes in {where}"
            if len(matching_marks) == 1:
                which = f"the change in {where} {matching_marks[0].amount}"
            yield from _verbs(verbs, which, matching_marks)
    # Nowhere else are all applied rows offered one by one: the patch has what is open, and some rows have no document.
    rows = [mark for mark in subjects.marks if isinstance(mark, RowMark) and mark.unreviewed]
    for mark in rows[:SINGLE] if len(rows) > 1 else ():
        if mark.path != context.path:
            yield from _verbs(("keep", "undo"), f"the change in {mark.name} {mark.amount}", [mark])
    pending = {mark.proposal.proposal_id: mark for mark in subjects.marks if mark.open and not mark.conflicted}
    if pending and not context.patch:
        proposal, mark = next(reversed(pending.items()))
        which = {"session": mark.session_id, "proposal": proposal}
        yield _action("Amanu: review as an editable patch", FIX, "amanu.review", which)
    applied = [mark for mark in subjects.marks if mark.change.state == "applied"]
    if applied:
        last = {"session": applied[-1].session_id, "turn": applied[-1].proposal.turn_id}
        yield _action("Amanu: undo the last turn's changes", WHOLE, "amanu.undoTurn", last)


def _verbs(
    verbs: Sequence[str], which: str, marks: Sequence[Mark], findings: Sequence[types.Diagnostic] = ()
) -> Iterator[types.CodeAction]:
    for verb in verbs:
        title = f"Amanu: {verb} {which}{needed(marks) if verb == 'accept' else ''}"
        yield _action(title, FIX, f"amanu.{verb}", change_arguments(marks), findings)


def _prompts(context: ActionContext) -> Iterator[types.CodeAction]:
    others = [finding for finding in context.findings if finding.source != OWN]
    lines: dict[str, Any] = {
        "path": str(context.path),
        "lines": _lines(context.range),
        "text": context.text,
    }
    # First of all what costs nothing: editors take the first one by default, or the first that is about a diagnostic.
    yield _action("Ask Amanu about this…", ASK, "amanu.ask", lines, others)
    if others or context.selected:
        findings = [_finding(finding) for finding in others]
        yield _action("Amanu: fix this", ASK, "amanu.fix", {**lines, "findings": findings}, others)
    if context.selected:
        for verb in REQUESTS:
            yield _action(f"Amanu: {verb} this", ASK, f"amanu.{verb}", lines)


def _lines(place: types.Range) -> dict[str, int]:
    return {"start": place.start.line, "end": max(place.start.line, place.end.line) + 1}


def _finding(diagnostic: types.Diagnostic) -> dict[str, Any]:
    return {
        "lines": _lines(diagnostic.range),
        "severity": _SEVERITIES.get(int(diagnostic.severity or 1), "error"),
        "message": diagnostic.message,
        "source": diagnostic.source or "",
        "code": str(diagnostic.code or ""),
    }


def _action(
    title: str, kind: str, command: str, argument: Any = None, diagnostics: Sequence[types.Diagnostic] = ()
) -> types.CodeAction:
    order = types.Command(title, command, arguments=[] if argument is None else [argument])  # ALE cannot do without
    return types.CodeAction(title, kind, list(diagnostics) or None, command=order)
