"""What is denied because there is nobody to ask."""

from collections.abc import Sequence

from amanu.core.rules import Rule
from amanu.core.tool import Preview
from amanu.permissions.offers import permitting
from amanu.permissions.policy import NOTHING_MATCHED, PolicyContext, Verdict, decide_all
from amanu.text import wording
from amanu_protocol.items import Decision

_MAX_SUGGESTIONS = 5  # rules suggested


def headless_denial(preview: Preview, verdict: Verdict, rules: Sequence[Rule], when: PolicyContext) -> Decision:
    """Deny a call because there is nobody to ask, and name what would have permitted it."""
    subjects = (preview.subject, *preview.extra_subjects)
    suggestions = permitting(rules, subjects, when)
    reason = "Nobody is there to approve it."
    if suggestions:
        options = " ".join(f"--allow {_quote(suggestion)}" for suggestion in suggestions[:_MAX_SUGGESTIONS])
        reason += f" Permit it with {options}{' …' if len(suggestions) > _MAX_SUGGESTIONS else ''}."
    elif decide_all(rules, subjects, when)[0].decision == "allow":  # but a ceiling is reached
        reason += f" It needs approval: {verdict.rule}."
    else:
        why = "" if verdict.rule == NOTHING_MATCHED else f": {wording.rule_in_words(verdict.rule)}"
        reason += f" No rule can allow it, only the user{why}."
    # A plan that nobody approves is not an action denied to the run: the plan is its answer.
    permitted_by = None if preview.plan is not None else suggestions[0] if suggestions else ""
    return Decision(outcome="denied", by="rule", rule=verdict.rule, reason=reason, permitted_by=permitted_by)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
