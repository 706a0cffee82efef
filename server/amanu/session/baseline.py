"""The text of a file without the edits of sessions."""

from collections.abc import Iterable
from pathlib import Path

from amanu.session.review import SessionEdits
from amanu.text.display import one_line
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import ProposalBaselineParams, ProposalBaselineResult


async def baseline(sessions: Iterable[SessionEdits], params: ProposalBaselineParams) -> ProposalBaselineResult:
    """See the params. `sessions`: those whose edits are left out, the newest first."""
    path = Path(params.path)
    text = None
    is_changed = False
    for edits in sessions:
        selection = edits.applied_at(path, unreviewed=params.unreviewed)
        if selection:
            text = text if is_changed else await edits.present_text(path)
            path, text = await edits.without(selection, path, text)
            is_changed = True
    if not is_changed:
        name = one_line(Path(params.path).name)
        raise AmanuError("proposalNotFound", f"No open session has applied changes to {name}.")
    return ProposalBaselineResult(path=str(path), text=None if text is None else text.text)
