"""The ready answers to an approval, in the order a client draws them."""

from collections.abc import Iterator, Sequence

from amanu.core.rules import with_grants
from amanu.permissions.offers import explain
from amanu_protocol.items import AllowOption, Approval, ApprovalAnswer, Grant, ScopeOffer
from amanu_protocol.labels import BUTTONS, GRANTS, SCOPES

ALLOW = "Allow"


def answers_to(approval: Approval) -> list[ApprovalAnswer]:
    """Every answer to an approval that `wording.explain_approval` has given its options."""
    if approval.document is not None:
        return [*_plan_answers(approval)]
    if approval.proposal_id is not None:
        return [*_change_answers(approval)]
    return [*_call_answers(approval)]


def _plan_answers(approval: Approval) -> Iterator[ApprovalAnswer]:
    for option in approval.options:
        yield ApprovalAnswer(
            label=option.label,
            action="allow",
            mode=option.mode,
            fresh_context=option.fresh_context,
        )
    yield ApprovalAnswer(
        label=BUTTONS["keepPlanning"], action="reject", asks="reason", explanation="The model reads what you say."
    )


def _change_answers(approval: Approval) -> Iterator[ApprovalAnswer]:
    """No grants: what is applied has run already."""
    accept = BUTTONS["acceptAll"]
    yield ApprovalAnswer(label=accept, action="allow")
    yield ApprovalAnswer(label=BUTTONS["reviewHunks"], action="review")
    yield from (_kept(accept, offer, AllowOption(grants=[], label="")) for offer in _kept_scopes(approval))
    yield from _refusals()
    yield ApprovalAnswer(label=BUTTONS["later"], action="finish", explanation="Undecided changes stay open.")


def _call_answers(approval: Approval) -> Iterator[ApprovalAnswer]:
    first, *others = approval.options
    for option in approval.options:
        yield ApprovalAnswer(
            label=_joined(f"{ALLOW} {SCOPES['once']}", option.label),
            action="allow",
            grants=option.grants,
            explanation=_meaning(option.grants),
        )
    yield from (_kept(ALLOW, offer, first) for offer in _kept_scopes(approval))
    if approval.command is not None:
        yield _edit(BUTTONS["editCommand"], first.grants)
    yield from _refusals()
    further = [option for option in others if _lasts(option.grants, first.grants)]
    yield from (_kept(ALLOW, offer, option, further=True) for option in further for offer in _kept_scopes(approval))
    if approval.command is not None:
        for option in others:
            yield _edit(f"{BUTTONS['editCommand']}, to run {option.label or _LEAST}", option.grants, further=True)


_LEAST = "in the sandbox"
"""The label of a run without grants, where it needs one."""


def _refusals() -> Iterator[ApprovalAnswer]:
    yield ApprovalAnswer(label=BUTTONS["reject"], action="reject")
    yield ApprovalAnswer(
        label=BUTTONS["rejectWithReason"], action="reject", asks="reason", explanation="The model reads your reason."
    )


def _kept_scopes(approval: Approval) -> list[ScopeOffer]:
    return [offer for offer in approval.scopes if offer.scope != "once"]


def _lasts(grants: Sequence[Grant], needed: Sequence[Grant]) -> bool:
    """Whether a rule with these grants does for the next call like this one, too."""
    return "unsandboxed" in grants or {*needed} <= {*grants}


def _kept(verb: str, offer: ScopeOffer, option: AllowOption, *, further: bool = False) -> ApprovalAnswer:
    rule, explanation = with_grants(offer.rule, option.grants, only=True), offer.explanation
    if rule != offer.rule:
        explanation = f"{explain(rule)}{explanation.removeprefix(explain(offer.rule))}"
    return ApprovalAnswer(
        label=_joined(f"{verb} {SCOPES[offer.scope]}", option.label),
        action="allow",
        scope=offer.scope,
        grants=option.grants,
        rule=rule,
        explanation=explanation,
        further=further,
    )


def _edit(label: str, grants: list[Grant], *, further: bool = False) -> ApprovalAnswer:
    return ApprovalAnswer(
        label=label,
        action="editCommand",
        grants=grants,
        explanation=_joined("It runs", " and ".join(GRANTS[grant].name for grant in grants), ".") if grants else "",
        asks="command",
        further=further,
    )


def _meaning(grants: Sequence[Grant]) -> str:
    return " ".join(f"{GRANTS[grant].meaning[:1].upper()}{GRANTS[grant].meaning[1:]}." for grant in grants)


def _joined(beginning: str, rest: str, end: str = "") -> str:
    return f"{beginning} {rest}".rstrip() + end
