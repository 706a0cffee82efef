"""Answers to an approval, for faces that draw buttons and ask for no text."""

from amanu_protocol.items import Approval, ApprovalAnswer


def answers_at_once(approval: Approval) -> list[ApprovalAnswer]:
    """The answers that are sent as they stand, in their order, but for those rarely wanted. A refusal that would ask
    for a reason is among them only where there is no other."""
    refusals = [answer for answer in approval.answers if answer.action == "reject"]
    sent = [answer for answer in approval.answers if answer.action in ("allow", "reject", "finish")]
    return [answer for answer in sent if not answer.further and (not answer.asks or len(refusals) == 1)]
