"""A session's entry in the list of sessions."""

from amanu.workspace.hunks import line_counts
from amanu_protocol.items import Answer, UserMessage
from amanu_protocol.requests import OpenQuestion, SessionSummary
from amanu_protocol.state import SessionState

SAID = 400
"""Characters of what was said last."""


def summarize(state: SessionState, *, created_at: int, updated_at: int, closed: bool) -> SessionSummary:
    paths: set[str] = set()
    added = removed = 0
    for file in (file for proposal in state.proposals for file in proposal.files):
        hunks = [hunk for hunk in file.hunks if hunk.state not in ("rejected", "reverted")]
        if not hunks:
            continue
        paths.add(file.path)
        # the one hunk of a rename is all its text
        counts = (file.added, file.removed) if file.change == "rename" else line_counts(hunks)
        added, removed = added + counts[0], removed + counts[1]
    paths |= {
        row.path
        for proposal in state.proposals
        for row in proposal.rows
        if row.state not in ("rejected", "reverted") and row.kind != "git"
    }
    last_prompt, last_answer = _said_last(state)
    return SessionSummary(
        session_id=state.session_id,
        title=state.title,
        roots=state.roots,
        model_id=state.model_id,
        created_at=created_at,
        updated_at=updated_at,
        status="closed" if closed else state.status,
        questions=[] if closed else _open_questions(state),
        changes=sum(proposal.waiting for proposal in state.proposals),
        files=len(paths),
        added=added,
        removed=removed,
        cost="" if state.usage is None else state.usage.cost,
        last_prompt=last_prompt,
        last_answer=last_answer,
        parent_session_id=state.parent_session_id,
        agent=state.agent,
        purpose=state.purpose,
    )


def _said_last(state: SessionState) -> tuple[str, str]:
    """The beginnings of the last prompt and of the newest answer after it."""
    answer = ""
    for item in reversed(state.items):
        if isinstance(item, UserMessage):
            return item.text[:SAID], answer
        if isinstance(item, Answer) and item.agent_id is None and not answer:
            answer = item.text[:SAID]
    return "", answer


def _open_questions(state: SessionState) -> list[OpenQuestion]:
    """What the session waits for."""
    about_approvals = [
        OpenQuestion(tool_call_id=approval.tool_call_id, title=approval.title) for approval in state.approvals
    ]
    about_questions = [
        OpenQuestion(tool_call_id=question.tool_call_id or "", title=question.title, question_id=question.item_id)
        for question in state.questions
    ]
    return [*about_approvals, *about_questions]
