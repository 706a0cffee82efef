"""What the daemon says to the user, to the letter."""

from typing import Any

import pytest

from amanu.text import wording
from amanu_protocol import requests as r
from amanu_protocol.items import Approval, CommandPart, CommandSandbox, Decision, Line, ScopeOffer, Spend, Usage

SANDBOXED = CommandSandbox(
    tier="landlock", writes="workspace", network=False, summary="Sandboxed (landlock). No network."
)
CHECKERS = "p   sandboxed checks of edits by the linters and type checkers set up in it"
ONCE, SESSION = ScopeOffer(scope="once", rule=""), ScopeOffer(scope="session", rule="x")
MAKE = CommandPart(text="make", decision="ask", rule="no rule", reason="Runs make.")
LS = CommandPart(text="ls", decision="allow", rule="built in: only looks", reason="Reads only.")
RM = CommandPart(text="rm\n✓ x", decision="deny", rule="deny x", reason="Removes.")


def approval(**changes: Any) -> Approval:
    plain = {"tool_call_id": "c", "title": "Run", "asked_at": 0, "detail": "make && ls", "effect": "run"}
    return Approval.model_validate({**plain, "rule": "no rule", "scopes": [ONCE, SESSION], **changes})


def preview(**changes: Any) -> r.RulePreviewResult:
    return wording.explain_rule_preview(
        r.RulePreviewResult.model_validate({"valid": True, "explanation": "Allows make.", **changes})
    )


def trust(state: r.TrustState, *enables: r.TrustedItem) -> r.TrustGetResult:
    return wording.explain_trust(r.TrustGetResult(state=state, enables=list(enables), digest=""))


def check(lines: list[Line], expected: list[str]) -> None:
    """`expected` begin with the tone's first letter."""
    assert [f"{line.tone[0]} {line.text}" for line in lines] == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["p Needs approval: no rule"]),
        ({"scopes": [ONCE]}, ["p Asked every time: no rule"]),
        ({"scopes": [ONCE], "rule": "no rule allows it"}, []),
        ({"rule": "no rule allows it"}, ["p Needs approval: no rule allows it"]),
        ({"rule": "no rule allows it", "proposal_id": "p"}, []),  # as it is with every edit
        ({"scopes": [ONCE], "rule": f"built in: mustAsk write_file(a) ({wording.DRAFT_WAITS})"}, []),
        (
            {"scopes": [ONCE], "rule": "built in: mustAsk save_memory (the user decides)"},
            ["p Asked every time: the user decides"],
        ),
        ({"scopes": [ONCE], "rule": "built in: mustAsk enter_plan_mode (the user decides)"}, []),
        (
            {"scopes": [ONCE], "rule": "mine: mustAsk exit_plan"},
            ["p Asked every time: mine: mustAsk exit_plan"],
        ),
        ({"detail": "make", "parts": [MAKE]}, ["w ? Runs make.", "p Needs approval: no rule"]),
        (
            {"parts": [LS, MAKE, RM], "sandbox": SANDBOXED, "likely_grants": ["network"]},
            [
                "g ✓ ls — Reads only.",
                "w ? make — Runs make.",
                "b ✗ rm␊✓ x — Removes. (deny x)",
                "w Probably needs network access. If you allow it:",
                "p Sandboxed (landlock). No network.",
                "p Needs approval: no rule",
            ],
        ),
        (
            {
                "sandbox": SANDBOXED.model_copy(
                    update={"tier": "none", "summary": "Not sandboxed (with your permission)."}
                ),
                "likely_grants": ["unsandboxed"],
            },
            [
                "w Probably needs access that the sandbox denies. If you allow it:",
                "b ! Not sandboxed (with your permission).",
                "p Needs approval: no rule",
            ],
        ),
    ],
)
def test_a_question(changes: dict[str, Any], expected: list[str]) -> None:
    check(wording.explain_approval(approval(**changes)).lines, expected)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "allowed by you"),
        ({"by": "rule", "rule": "@read"}, "allowed by @read"),
        ({"by": "rule", "rule": "mode auto: allow @run"}, "allowed by mode auto"),
        (
            {"by": "rule", "rule": "built in: allow @run, without effect (it changes nothing)"},
            "allowed: it changes nothing",
        ),
        (
            {"by": "rule", "outcome": "denied", "rule": "config.toml: deny @write (no (more) edits)"},
            "denied by config.toml: deny @write (no (more) edits)",
        ),
        (
            {"by": "rule", "outcome": "denied", "rule": "no rule allows it", "permitted_by": ""},
            "denied: nobody could be asked",
        ),
        ({"scope": "session", "rule": "npm *\nls"}, "allowed for this session by you: npm *␊ls"),
        ({"scope": "once", "grants": ["network"]}, "allowed with network access by you"),
        ({"scope": "user", "rule": "x"}, "allowed always in every workspace by you: x"),
        ({"outcome": "rejected", "reason": "no"}, "rejected by you: “no”"),
    ],
)
def test_a_decision(changes: dict[str, Any], expected: str) -> None:
    decision = wording.summarize_decision(Decision.model_validate({"outcome": "allowed", "by": "user", **changes}))
    assert decision.summary == expected
    elsewhere = decision.model_copy(update={"client": "Emacs"})
    assert wording.describe_decision(elsewhere, "terminal") == f"{expected} (Emacs)"
    assert wording.describe_decision(elsewhere, "Emacs") == expected


@pytest.mark.parametrize(
    ("preview", "fits", "expected"),
    [
        (preview(), True, ["p Allows make."]),
        (preview(valid=False, explanation="No rule."), False, ["b No rule."]),
        (preview(covers=True), True, ["p Allows make.", "p It would have answered none of the earlier questions"]),
        (
            preview(covers=False),
            False,
            [
                "p Allows make.",
                "b The rule does not cover this call, so it cannot be saved.",
                "p It would have answered none of the earlier questions",
            ],
        ),
        (
            preview(covers=True, covered=["Run a", "Run b"], covered_count=3),
            True,
            [
                "p Allows make.",
                "p Would have answered 3 earlier questions:",
                "p   Run a",
                "p   Run b",
                "p   … and 1 more",
            ],
        ),
    ],
)
def test_a_rule(preview: r.RulePreviewResult, fits: bool, expected: list[str]) -> None:
    assert preview.fits is fits
    check(preview.lines, expected)


def test_trust() -> None:
    check(trust("trusted").lines, ["p This folder is trusted.", "p Trust enables:", CHECKERS])
    check(trust("untrusted").lines[1:], ["p Trusting this folder would enable:", CHECKERS])
    rules = r.TrustedItem(path=".amanu/rules\n.toml", kind="rules", state="same")
    changed = trust("changed", rules, r.TrustedItem(path="AGENTS.md", kind="memory", state="changed"))
    check(
        changed.lines[1:],
        [
            "p Trusting this folder would enable:",
            "p   .amanu/rules␊.toml — rules, which can only deny or ask (unchanged)",
            "w   AGENTS.md — instructions to the model (changed)",
            CHECKERS,
        ],
    )
    assert changed.enables[1].summary == "instructions to the model (changed)"


def test_the_audit_log() -> None:
    nothing = r.AuditQueryResult(entries=[], intact=True, message="All 9 entries hold.")
    check(wording.explain_audit(nothing).lines, ["p The audit log has no matching entries.", "p ✓ All 9 entries hold."])
    data: dict[str, Any] = {"rule": "make", "grants": ["network"], "parts": [{"text": "a\nb", "reason": None}]}
    entry = r.AuditEntry(number=3, at=0, kind="decided", session_id="s", text="Allowed.", data=data, hash="f" * 64)
    found = r.AuditQueryResult(entries=[entry], intact=False, message="Broken.")
    first, last = wording.explain_audit(found).lines
    assert first.text.endswith("decided  Allowed.") and (last.tone, last.text) == ("bad", "✗ Broken.")
    texts = [line.text.strip() for line in wording.explain_audit(found, detailed=True).lines[1:-1]]
    about = f"s  {'f' * wording.HASH_DIGITS}"
    assert texts == [about, "rule: make", "grants: network", "parts:", "1:", "text: a", "b", "reason: none"]


NOTHING: dict[str, Any] = {
    "input_tokens": 0,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "output_tokens": 0,
    "thought_tokens": 0,
    "tool_tokens": 0,
}
PARTS: dict[str, Any] = {"system": 30, "tools": 0, "memory": 0, "conversation": 30, "tool_output": 0, "reserved": 9}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "0 in · 0 out · cost unknown"),
        (
            {"input_tokens": 900, "cache_read_tokens": 30_000, "tool_tokens": 200, "cost_usd": 0.25},
            "30.9k in (30k cached, 200 from tools) · 0 out · $0.25",
        ),
        ({"output_tokens": 400, "thought_tokens": 100, "cost_usd": 0}, "0 in · 500 out (100 thinking) · $0.0000"),
    ],
)
def test_what_was_spent(changes: dict[str, Any], expected: str) -> None:
    assert wording.summarize_spend(Spend.model_validate({**NOTHING, **changes})).summary == expected


@pytest.mark.parametrize(
    ("changes", "percent", "expected"),
    [
        ({"context_window": 0}, None, ""),
        ({}, 50, "context 50%"),
        ({"context": {**PARTS, "free": 40, "tier": "roomy"}}, 60, "context 60%"),
        ({"context": {**PARTS, "free": 0, "tier": "compact"}}, 100, "context 100%, full"),
    ],
)
def test_how_full_the_window_is(changes: dict[str, Any], percent: int | None, expected: str) -> None:
    usage = wording.summarize_usage(
        Usage.model_validate({**NOTHING, "context_tokens": 8, "context_window": 16, **changes})
    )
    assert (usage.percent, usage.fullness, usage.cost) == (percent, expected, "cost unknown")
