"""Events × decisions: what an exit code and an output mean, for each event, and how several answers become one."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from amanu.hooks.merge import merge
from amanu.hooks.model import (
    Action,
    Dialect,
    Event,
    Hook,
    HookDecision,
    HookOutcome,
    HookRun,
    HookSource,
    OnFailure,
    Owner,
    WantedCall,
)
from amanu.hooks.output import MAX_CONTEXT, read_answer


def hook(
    event: Event = "PreToolUse",
    *,
    dialect: Dialect = "claude",
    owner: Owner = "workspace",
    on_failure: OnFailure | None = None,
    name: str = "h",
    sequential: bool = False,
) -> Hook:
    source = HookSource(Path("/w/hooks.json"), "hooks.json", owner, dialect, Path("/w"))
    default: OnFailure = "ask" if event in ("PreToolUse", "PermissionRequest") else "continue"
    return Hook(event, "", "x", source, name=name, on_failure=on_failure or default, sequential=sequential)


def read(
    event: Event, code: int | None, out: str = "", err: str = "", failure: str = "", dialect: Dialect = "claude"
) -> HookDecision:
    return read_answer(HookRun(hook(event, dialect=dialect), code, out, err, 0.1, failure))


EVENTS: tuple[Event, ...] = (
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "Notification",
    "BeforeModel",
    "AfterModel",
)
GATE = ("PreToolUse", "PermissionRequest")
CONTEXT = ("UserPromptSubmit", "SessionStart", "SubagentStart")


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize(
    ("code", "out", "err", "failure", "expected"),
    [
        (0, "", "", "", lambda e: ("none", "")),
        (0, "some text", "", "", lambda e: ("none", "")),
        (0, "[1, 2]", "", "", lambda e: ("none", "")),
        (0, "{broken", "", "", lambda e: ("none", "")),
        (0, "{broken}", "", "", lambda e: ("ask" if e in GATE else "none", None)),
        (2, "", "because", "", lambda e: ("deny", "because")),
        (2, "{broken}", "because", "", lambda e: ("deny", "because")),
        (2, '{"reason": "in JSON"}', "", "", lambda e: ("deny", "in JSON")),
        (2, "", "", "", lambda e: ("deny", "It gave no reason.")),
        (1, "", "oops", "", lambda e: ("ask" if e in GATE else "none", None)),
        (127, "", "", "", lambda e: ("ask" if e in GATE else "none", None)),
        (None, "", "", "It was ended after 5 s.", lambda e: ("ask" if e in GATE else "none", None)),
        (0, '{"decision": "block", "reason": "r"}', "", "", lambda e: ("deny", "r")),
        (0, '{"decision": "approve"}', "", "", lambda e: ("allow", "")),
        (0, '{"decision": 5, "reason": []}', "", "", lambda e: ("none", "")),
    ],
)
def test_what_an_answer_means(event: Event, code: int | None, out: str, err: str, failure: str, expected: Any) -> None:
    decision = read(event, code, out, err, failure)
    action, reason = cast("tuple[Action, str | None]", expected(event))
    assert decision.action == action
    assert reason is None or decision.reason == reason
    if reason is None:
        assert "failed" in decision.message
    assert decision.context == ("some text" if out == "some text" and event in CONTEXT else decision.context)


@pytest.mark.parametrize(
    ("code", "out", "err", "action", "message"),
    [
        (0, "plain words", "", "none", "plain words"),
        (0, 'words {"decision": "block"}', "", "none", 'words {"decision": "block"}'),  # mixed: all of it is text
        (1, "", "careful", "ask", None),
        (2, "", "no", "deny", ""),
        (3, "", "no", "deny", ""),
        (0, '{"decision": "deny", "reason": "no"}', "", "deny", ""),
        (0, '{"decision": "ask", "systemMessage": "hm"}', "", "ask", "hm"),
    ],
)
def test_the_same_in_geminis_words(code: int, out: str, err: str, action: str, message: str | None) -> None:
    decision = read("PreToolUse", code, out, err, dialect="gemini")
    assert decision.action == action
    assert message is None or decision.message == message


@pytest.mark.parametrize(
    ("event", "specific", "expected"),
    [
        ("PreToolUse", {"permissionDecision": "allow"}, {"action": "allow"}),
        (
            "PreToolUse",
            {"permissionDecision": "deny", "permissionDecisionReason": "x"},
            {"action": "deny", "reason": "x"},
        ),
        ("PreToolUse", {"permissionDecision": "whatever"}, {"action": "ask"}),
        ("PreToolUse", {"updatedInput": {"a": 1}}, {"action": "none", "updated_input": {"a": 1}}),
        ("PreToolUse", {"tool_input": {"a": 1}}, {"updated_input": {"a": 1}}),
        ("PreToolUse", {"updatedInput": "no object"}, {"updated_input": None}),
        ("PermissionRequest", {"decision": {"behavior": "allow"}}, {"action": "allow"}),
        ("PermissionRequest", {"decision": {"behavior": "allow", "updatedInput": {}}}, {"action": "ask"}),
        ("PermissionRequest", {"decision": {"behavior": "allow", "updatedPermissions": []}}, {"action": "ask"}),
        ("PermissionRequest", {"decision": {"behavior": "deny", "message": "m"}}, {"action": "deny", "reason": "m"}),
        ("PermissionRequest", {"decision": {"behavior": "deny", "interrupt": True}}, {"action": "deny", "ends": True}),
        ("PostToolUse", {"additionalContext": "c"}, {"context": "c"}),
        ("PostToolUse", {"updatedToolOutput": "o"}, {"updated_output": "o"}),
        (
            "BeforeModel",
            {"llm_response": {"candidates": [{"content": {"parts": ["a", "b"]}}]}},
            {"updated_output": "ab"},
        ),
        ("AfterModel", {"llm_response": {"text": "t"}}, {"updated_output": "t"}),
        ("AfterModel", {"llm_response": {"candidates": "what"}}, {"updated_output": None}),
        ("BeforeModel", {"llm_request": {"messages": []}}, {"request": {"messages": []}, "ignored": ()}),
        ("BeforeModel", {"llm_request": "no object"}, {"request": None}),
        ("PreToolUse", {"llm_request": {"messages": []}}, {"request": None}),
        (
            "PostToolUse",
            {"tailToolCallRequest": {"name": "t", "args": {"a": 1}}},
            {"next_call": WantedCall("t", {"a": 1})},
        ),
        ("PostToolUse", {"tailToolCallRequest": {"name": "t"}}, {"next_call": WantedCall("t", {})}),
        ("PreToolUse", {"tailToolCallRequest": {"name": "t", "args": {}}}, {"next_call": None}),
    ],
)
def test_what_an_event_of_its_own_can_say(event: Event, specific: dict[str, Any], expected: dict[str, Any]) -> None:
    decision = read(event, 0, json.dumps({"hookSpecificOutput": specific}))
    assert {name: getattr(decision, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("event", "answer", "words"),
    [
        ("Stop", {"hookSpecificOutput": {"clearContext": True}}, "clearContext"),
        ("Stop", {"hookSpecificOutput": {"clearContext": False}}, None),
        ("BeforeToolSelection", {"hookSpecificOutput": {"toolConfig": {"mode": "ANY"}}}, "ANY"),
        ("BeforeToolSelection", {"hookSpecificOutput": {"toolConfig": {"mode": "AUTO"}}}, None),
        ("PostToolUse", {"hookSpecificOutput": {"tailToolCallRequest": {"name": "", "args": {}}}}, "`name` and `args`"),
        ("PostToolUse", {"hookSpecificOutput": {"tailToolCallRequest": {"name": "x", "args": [1]}}}, "`args`"),
        ("PreToolUse", {"hookSpecificOutput": {"tailToolCallRequest": {"name": "x", "args": {}}}}, "PreToolUse does"),
        ("PreToolUse", {"permissionDecision": "allow"}, "'permissionDecision'"),  # belongs in hookSpecificOutput
        ("PreToolUse", {"permissionDecision": "deny", "permissionDecisionReason": "r"}, None),  # but counts
        ("PreToolUse", {"hook_event_name": "PreToolUse", "tool_name": "Bash"}, None),  # it prints what it is told
        ("UserPromptSubmit", {"permissionDecision": "deny"}, "'permissionDecision'"),
        ("PreToolUse", {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}, None),
        ("SessionStart", {"hookSpecificOutput": {"watchPaths": ["a"]}}, "'watchPaths'"),
        ("SessionStart", {"async": True, "asyncTimeout": 5}, "waited for the hook"),
        ("Stop", {"a\x1b[2Jb": 1}, "'a"),
        ("Stop", {"continue": False, "stopReason": "x", "suppressOutput": True, "systemMessage": "m"}, None),
    ],
)
def test_what_is_not_done_is_said(event: Event, answer: dict[str, Any], words: str | None) -> None:
    said = " ".join(read(event, 0, json.dumps(answer)).ignored)
    assert (words is None) == (not said)
    assert words is None or words in said
    assert "\x1b" not in said


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure", "PreToolUse"])
@pytest.mark.parametrize(("code", "out"), [(2, ""), (0, '{"decision": "block", "reason": "secret"}')])
@pytest.mark.parametrize("dialect", ["claude", "gemini"])
def test_a_result_refused_in_geminis_words_is_withheld(event: Event, code: int, out: str, dialect: Dialect) -> None:
    decision = read(event, code, out, "secret", dialect=dialect)
    assert (decision.action, decision.reason) == ("deny", "secret")
    assert (decision.updated_output is not None) == (dialect == "gemini" and event != "PreToolUse")


IN_PLACE = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "%s"}}'


@pytest.mark.parametrize(
    ("report", "dialect", "event", "code", "out", "err", "expected"),
    [
        (
            "claude-code 4669",
            "claude",
            "PreToolUse",
            0,
            '{"permissionDecision": "deny", "permissionDecisionReason": "r"}',
            "loud",
            ("deny", "r"),
        ),
        (
            "claude-code 37210",
            "claude",
            "PreToolUse",
            2,
            '{"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "r"}',
            "",
            ("deny", "r"),
        ),
        (
            "claude-code 43407",
            "claude",
            "PreToolUse",
            2,
            '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "r"}}',
            "blocked",
            ("deny", "blocked"),
        ),
        ("claude-code 46537", "claude", "PreToolUse", 0, IN_PLACE % "block", "", ("deny", "")),
        ("claude-code 33106", "claude", "PreToolUse", 0, "BLOCKED: no\n" + IN_PLACE % "deny", "", ("ask", None)),
        (
            "claude-code 24794",
            "claude",
            "PreToolUse",
            0,
            json.dumps(json.loads(IN_PLACE % "deny"), indent=2),
            "",
            ("deny", ""),
        ),
        ("claude-mem 3280", "claude", "SessionStart", 0, '{"continue": true}\n{"continue": true}', "", ("none", None)),
        ("claude-mem 4081", "claude", "PreToolUse", 0, '{"type": "message"}\n' + IN_PLACE % "deny", "", ("ask", None)),
        (
            "a log of the input",
            "claude",
            "PreToolUse",
            0,
            'saw:\n{"hook_event_name": "PreToolUse", "reason": ""}',
            "",
            ("none", ""),
        ),
        ("gemini-cli hookRunner", "gemini", "PreToolUse", 2, "", '{"decision": "deny", "reason": "r"}', ("deny", "r")),
        (
            "gemini-cli hookRunner",
            "gemini",
            "UserPromptSubmit",
            1,
            '{"decision": "deny", "reason": "r"}',
            "",
            ("deny", "r"),
        ),
        ("gemini-cli hookRunner", "gemini", "PreToolUse", 0, "", '{"decision": "block", "reason": "r"}', ("deny", "r")),
        ("a log of Gemini's", "gemini", "PreToolUse", 0, "", '{"level": "info"}\n{"level": "info"}', ("none", "")),
        ("a log of Gemini's", "gemini", "PreToolUse", 0, "", '{"level": "info"}', ("none", "")),
        ("the same in Claude's words", "claude", "UserPromptSubmit", 1, '{"decision": "block"}', "", ("none", None)),
        ("the same in Claude's words", "claude", "PreToolUse", 0, "", '{"decision": "block"}', ("none", "")),
    ],
)
def test_answers_of_public_reports(
    report: str, dialect: Dialect, event: Event, code: int, out: str, err: str, expected: tuple[Action, str | None]
) -> None:
    decision = read(event, code, out, err, dialect=dialect)
    action, reason = expected
    assert decision.action == action, report
    assert "failed" in decision.message if reason is None else decision.reason == reason, report


def test_continue_false_ends_the_turn() -> None:
    decision = read("PostToolUse", 0, '{"continue": false, "stopReason": "enough"}')
    assert (decision.ends, decision.end_reason) == (True, "enough")


def test_hidden_characters_are_visible_and_length_is_limited() -> None:
    decision = read("PreToolUse", 2, "", f"a\x1b[31mb\u202ec{'x' * 2 * MAX_CONTEXT}")
    assert "\x1b" not in decision.reason
    assert "\u202e" not in decision.reason
    assert len(decision.reason) < MAX_CONTEXT + 100


Case = tuple[Owner, HookDecision]


def merged(*cases: Case, sequential: bool = False) -> HookOutcome:
    return merge(
        [
            (HookRun(hook(owner=owner, name=f"h{number}", sequential=sequential), 0, "", "", 0), decision)
            for number, (owner, decision) in enumerate(cases)
        ]
    )


@pytest.mark.parametrize(
    ("decisions", "action", "by"),
    [
        ([], "none", ""),
        ([("user", "allow")], "allow", "h0"),
        ([("workspace", "allow")], "none", ""),
        ([("plugin", "allow")], "none", ""),
        ([("user", "allow"), ("workspace", "ask")], "ask", "h1"),
        ([("workspace", "ask"), ("user", "allow"), ("workspace", "deny")], "deny", "h2"),
        ([("user", "deny"), ("user", "deny")], "deny", "h0, h1"),
    ],
)
def test_the_strictest_wins(decisions: list[tuple[Owner, Action]], action: str, by: str) -> None:
    cases: list[Case] = [(owner, HookDecision(decided, f"r{decided}")) for owner, decided in decisions]
    outcome = merged(*cases)
    assert (outcome.action, outcome.decided_by) == (action, by)
    assert action == "none" or outcome.reason == f"r{action}"


def test_contexts_are_joined_in_order() -> None:
    cases: list[Case] = [("user", HookDecision(context="a")), ("workspace", HookDecision(context="b"))]
    outcome = merged(*cases)
    assert outcome.contexts == ("a", "b")


def test_two_that_change_the_input_differently_make_the_user_be_asked() -> None:
    changes: list[Case] = [("user", HookDecision(updated_input={"a": n})) for n in (1, 2)]
    outcome = merged(*changes)
    assert (outcome.action, outcome.updated_input) == ("ask", None)
    assert "h0, h1" in outcome.reason
    assert merged(*changes, sequential=True).updated_input == {"a": 2}
    assert merged(changes[0], changes[0]).updated_input == {"a": 1}
    refusal: Case = ("user", HookDecision("deny", "no"))
    assert merged(changes[0], refusal).updated_input is None


ONE, OTHER = WantedCall("a", {}), WantedCall("b", {})


@pytest.mark.parametrize(
    ("decisions", "wanted", "said"),
    [
        ([HookDecision(next_call=ONE)], ONE, ()),
        ([HookDecision(next_call=ONE), HookDecision(), HookDecision(next_call=ONE)], ONE, ()),
        ([HookDecision(next_call=ONE), HookDecision(next_call=OTHER)], None, ("h0, h1",)),
        ([HookDecision(next_call=ONE), HookDecision("deny", "no")], None, ()),
        ([HookDecision(next_call=ONE, ends=True)], None, ()),
    ],
)
def test_one_call_at_most_takes_the_place_of_another(
    decisions: list[HookDecision], wanted: WantedCall | None, said: tuple[str, ...]
) -> None:
    cases: list[Case] = [("workspace", decision) for decision in decisions]
    outcome = merged(*cases)
    assert outcome.next_call == wanted
    assert tuple(label for label, _ in outcome.ignored) == said
