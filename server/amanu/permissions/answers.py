"""The ready answers to an approval, in the order a client draws them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from amanu.core.rules import with_grants
from amanu.permissions.offers import explain
from amanu.text.wording import FRESH
from amanu_protocol.items import Approval, ApprovalAnswer, Grant, Mode, ScopeOffer
from amanu_protocol.labels import BUTTONS, GRANTS, SCOPES

ALLOW = "Allow"
_MODES: Sequence[tuple[Mode, str]] = (
    ("acceptEdits", "accept edits"),
    ("ask", "ask about each edit"),
    ("auto", "ask only when required"),
)
"""The modes in which a plan can be carried out."""


@dataclass(frozen=True)
class _Way:
    """A way to allow a call; the label goes after "Allow once"."""

    grants: list[Grant]
    label: str


def answers_to(approval: Approval) -> list[ApprovalAnswer]:
    if approval.document is not None:
        return [*_plan_answers(approval)]
    if approval.proposal_id is not None:
        return [*_change_answers(approval)]
    return [*_call_answers(approval)]


def _plan_answers(approval: Approval) -> Iterator[ApprovalAnswer]:
    for fresh in (False, True):
        for mode, label in _MODES:
            label = f"Approve: {label}{f', {FRESH}' if fresh else ''}"
            yield ApprovalAnswer(label=label, action="allow", mode=mode, fresh_context=fresh)
    yield ApprovalAnswer(
        label=BUTTONS["keepPlanning"], action="reject", asks="reason", explanation="The model reads what you say."
    )


def _change_answers(approval: Approval) -> Iterator[ApprovalAnswer]:
    """No grants: what is applied has run already."""
    accept = BUTTONS["acceptAll"]
    yield ApprovalAnswer(label=accept, action="allow")
    yield ApprovalAnswer(label=BUTTONS["reviewHunks"], action="review")
    yield from (_kept(accept, offer, _Way([], "")) for offer in _kept_scopes(approval))
    yield from _refusals()
    yield ApprovalAnswer(label=BUTTONS["later"], action="finish", explanation="Undecided changes stay open.")


def _call_answers(approval: Approval) -> Iterator[ApprovalAnswer]:
    ways = _ways(approval)
    first, *others = ways
    for way in ways:
        yield ApprovalAnswer(
            label=_joined(f"{ALLOW} {SCOPES['once']}", way.label),
            action="allow",
            grants=way.grants,
            explanation=_meaning(way.grants),
        )
    yield from (_kept(ALLOW, offer, first) for offer in _kept_scopes(approval))
    if approval.command is not None:
        yield _edit(BUTTONS["editCommand"], first.grants)
    yield from _refusals()
    further = [way for way in others if _lasts(way.grants, first.grants)]
    yield from (_kept(ALLOW, offer, way, further=True) for way in further for offer in _kept_scopes(approval))
    if approval.command is not None:
        for way in others:
            yield _edit(f"{BUTTONS['editCommand']}, to run {way.label or _LEAST}", way.grants, further=True)


def _ways(approval: Approval) -> list[_Way]:
    """The ways to allow it, the likeliest first: with what the call probably needs."""
    requested: tuple[Grant, ...] = tuple(grant for grant in approval.likely_grants if grant in approval.grants)
    choices: list[tuple[Grant, ...]] = [requested, (), *((grant,) for grant in approval.grants)]
    return [_Way(list(grants), _grant_label(grants, approval)) for grants in dict.fromkeys(choices)]


def _grant_label(grants: Sequence[Grant], approval: Approval) -> str:
    """The label of an approval with these grants. Without any it says what is probably missing."""
    if grants or not approval.likely_grants:
        return " and ".join(GRANTS[grant].name for grant in grants)
    return "without network access" if approval.likely_grants == ["network"] else "in the sandbox"


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


def _kept(verb: str, offer: ScopeOffer, way: _Way, *, further: bool = False) -> ApprovalAnswer:
    rule, explanation = with_grants(offer.rule, way.grants, only=True), offer.explanation
    if rule != offer.rule:
        explanation = f"{explain(rule)}{explanation.removeprefix(explain(offer.rule))}"
    return ApprovalAnswer(
        label=_joined(f"{verb} {SCOPES[offer.scope]}", way.label),
        action="allow",
        scope=offer.scope,
        grants=way.grants,
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
