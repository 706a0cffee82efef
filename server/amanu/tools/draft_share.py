"""What a question about a call says when the call's changes are only a part of an open draft."""

from amanu_protocol.items import Proposal

_SHARE = "Part of an open draft: approving applies only what this call changed. The rest of the draft stays open."


def share_notes(proposal: Proposal, call_id: str) -> list[str]:
    """For the user; nothing when all of the proposal is that call's."""
    is_part = proposal.draft and any(other != call_id for other in proposal.tool_call_ids)
    return [_SHARE] if is_part else []
