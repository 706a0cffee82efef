"""What the list of sessions says of one."""

from collections.abc import Iterator

from amanu_protocol.items import Hunk, ProposedFile
from amanu_protocol.requests import OpenQuestion, SessionSummary
from amanu_protocol.state import SessionState


def summarize(state: SessionState, *, created_at: int, updated_at: int, closed: bool) -> SessionSummary:
    edits = [(file, hunk) for file, hunk in _hunks(state) if hunk.state not in ("rejected", "reverted")]
    lines = [hunk for file, hunk in edits if file.change != "rename"]
    renamed = {
        id(file): file for file, _ in edits if file.change == "rename"
    }.values()  # whose one hunk is all its text
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
        files=len({file.path for file, _ in edits}),
        added=sum(hunk.new_lines for hunk in lines) + sum(file.added for file in renamed),
        removed=sum(hunk.old_lines for hunk in lines) + sum(file.removed for file in renamed),
        cost="" if state.usage is None else state.usage.cost,
        parent_session_id=state.parent_session_id,
        agent=state.agent,
        purpose=state.purpose,
    )


def _hunks(state: SessionState) -> Iterator[tuple[ProposedFile, Hunk]]:
    for proposal in state.proposals:
        for file in proposal.files:
            for hunk in file.hunks:
                yield file, hunk


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
