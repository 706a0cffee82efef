"""Merges the answers of several hooks: the strictest decision wins, deny before ask before allow; what they tell the
model is joined in the order of configuration."""

from collections.abc import Sequence
from dataclasses import replace

from amanu.hooks.model import Action, Hook, HookDecision, HookOutcome, HookRun

_STRICTEST_FIRST: tuple[Action, ...] = ("deny", "ask", "allow", "none")

Answer = tuple[HookRun, HookDecision]


def merge(answers: Sequence[Answer]) -> HookOutcome:
    """The outcome of `answers`, which are in the order of configuration. An `allow` counts only from one of the user's
    own hooks: a workspace or plug-in can narrow what is allowed, never widen it."""
    counted = [(run, _without_allow(run.hook, decision)) for run, decision in answers]
    actions: list[Action] = ["none", *(decision.action for _, decision in counted)]
    action = min(actions, key=_STRICTEST_FIRST.index)
    deciders = [(run.hook, decision) for run, decision in counted if decision.action == action != "none"]
    outcome = HookOutcome(
        action,
        "\n".join(dict.fromkeys(decision.reason for _, decision in deciders if decision.reason)),
        ", ".join(dict.fromkeys(hook.label for hook, _ in deciders)),
        contexts=tuple(decision.context for _, decision in counted if decision.context),
        messages=tuple(dict.fromkeys(decision.message for _, decision in counted if decision.message)),
        updated_output=next(
            (decision.updated_output for _, decision in reversed(counted) if decision.updated_output is not None), None
        ),
        selections=_selections(counted),
        request=next((decision.request for _, decision in reversed(counted) if decision.request is not None), None),
        ends=any(decision.ends for _, decision in counted),
        end_reason="\n".join(dict.fromkeys(decision.end_reason for _, decision in counted if decision.end_reason)),
        ignored=tuple((run.hook.label, sentence) for run, decision in counted for sentence in decision.ignored),
        runs=tuple(run for run, _ in answers),
    )
    return _with_next_call(_with_input(outcome, counted), counted)


def _selections(answers: Sequence[Answer]) -> tuple[frozenset[str], ...]:
    """The tools that the user's hooks leave, and those that the others do: these add nothing to the former. Of each,
    none if one leaves none, otherwise all that any of them names, as in Gemini CLI."""
    of_user, of_others = (
        [
            decision.selected_tools
            for run, decision in answers
            if decision.selected_tools is not None and (run.hook.source.owner == "user") == is_users
        ]
        for is_users in (True, False)
    )
    return tuple(
        frozenset[str]().union(*limits) if all(limits) else frozenset[str]()
        for limits in (of_user, of_others)
        if limits
    )


def _with_input(outcome: HookOutcome, answers: Sequence[Answer]) -> HookOutcome:
    """The outcome with the changed input. If two hooks change it differently, neither counts, and the user is asked."""
    changes = [(run.hook, decision.updated_input) for run, decision in answers if decision.updated_input is not None]
    if not changes or outcome.action == "deny":
        return outcome
    hook, first = changes[-1]
    if hook.sequential or all(change == first for _, change in changes):  # in sequence, the last one saw the others
        return replace(outcome, updated_input=first, updated_by=hook)
    labels = ", ".join(dict.fromkeys(hook.label for hook, _ in changes))
    reason = f"Hooks would change this call in different ways, so none of their changes was made: {labels}."
    return replace(
        outcome,
        action="ask",
        reason="\n".join(filter(None, (outcome.reason if outcome.action == "ask" else "", reason))),
        decided_by=labels,
    )


def _with_next_call(outcome: HookOutcome, answers: Sequence[Answer]) -> HookOutcome:
    """The outcome with the call that is to follow. There is none if two hooks want different ones, or one of them has
    refused the result or ended the turn."""
    wanted = [(run.hook, decision.next_call) for run, decision in answers if decision.next_call is not None]
    if not wanted or outcome.action == "deny" or outcome.ends:
        return outcome
    hook, call = wanted[0]
    if all(other == call for _, other in wanted):
        return replace(outcome, next_call=call, next_by=hook)
    labels = ", ".join(dict.fromkeys(hook.label for hook, _ in wanted))
    return replace(outcome, ignored=(*outcome.ignored, (labels, "They want different calls, so none was made.")))


def _without_allow(hook: Hook, decision: HookDecision) -> HookDecision:
    if decision.action != "allow" or hook.source.owner == "user":
        return decision
    return replace(decision, action="none", reason="")
