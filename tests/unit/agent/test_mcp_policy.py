"""Rules about tools of MCP servers: only what names them allows them, and plan mode wants more."""

from typing import Any

import pytest

from amanu.core.rules import Rule, RuleTable, parse_rule
from amanu.core.tool import Subject
from amanu.permissions.offers import explain, offers, suggested_rule
from amanu.permissions.policy import PolicyContext, built_in, decide, of_mode
from amanu.text.wording import rule_in_words
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode

COMMIT = Subject("mcp__git__commit", "run", "commit", server="git", arguments={"branch": "main"})
LOG = Subject("mcp__git__log", "run", "log", server="git", read_only=True)
READ = Subject("read_mcp_resource", "read", "git:file:///a", server="git", read_only=True)


def text_rules(*texts: str) -> list[Rule]:
    return [parse_rule(kind, text, "test") for kind, text in (text.split(" ", 1) for text in texts)]  # pyright: ignore


def table(decision: str = "allow", **conditions: Any) -> Rule:
    return RuleTable.model_validate({"decision": decision, **conditions}).rule("test")


@pytest.mark.parametrize(
    ("rules", "subject", "expected"),
    [
        ([], COMMIT, "ask"),
        (text_rules("allow *"), COMMIT, "ask"),
        (text_rules("allow @run"), COMMIT, "ask"),
        (text_rules("allow @read"), READ, "ask"),
        (text_rules("allow mcp__git__commit"), COMMIT, "allow"),
        (text_rules("allow mcp__git__commit"), LOG, "ask"),
        (text_rules("allow mcp__git__*"), COMMIT, "allow"),
        (text_rules("allow mcp__git__co*"), LOG, "ask"),
        (text_rules("allow mcp__gi__*"), COMMIT, "ask"),
        (text_rules("allow mcp__*"), COMMIT, "allow"),
        (text_rules("allow mcp__GIT__commit"), COMMIT, "ask"),
        (text_rules("allow mcp__git__*", "deny mcp__GIT__*"), COMMIT, "deny"),
        (text_rules("allow mcp__git__*", "deny @run"), COMMIT, "deny"),
        (text_rules("allow mcp__git__*", "mustAsk *"), COMMIT, "ask"),
        (text_rules("allow read_mcp_resource(git:*)"), READ, "ask"),  # `*` stays within a folder
        (text_rules("allow read_mcp_resource(git:**)"), READ, "allow"),
        ([table(server="git")], COMMIT, "allow"),
        ([table(server="git")], READ, "allow"),
        ([table(server="*")], COMMIT, "allow"),
        ([table(server=["a", "git"], tool="commit")], COMMIT, "allow"),
        ([table(server="git", tool="commit")], LOG, "ask"),
        ([table(server="git", tool="mcp__git__commit")], COMMIT, "allow"),
        ([table(server="git", arguments={"branch": "mai*"})], COMMIT, "allow"),
        ([table(server="git", arguments={"branch": "dev"})], COMMIT, "ask"),
        ([table(server="other")], COMMIT, "ask"),
        ([table(server="git"), table("deny", server="*", tool="commit")], COMMIT, "deny"),
        ([table(server="git")], Subject("read_file", "read", "a"), "ask"),
        ([table(tool="commit")], COMMIT, "ask"),
    ],
)
def test_what_names_a_server_or_tool_decides(rules: list[Rule], subject: Subject, expected: str) -> None:
    assert decide(rules, subject).decision == expected


@pytest.mark.parametrize(
    ("mode", "rules", "subject", "expected"),
    [
        ("ask", [], COMMIT, "ask"),
        ("acceptEdits", [], COMMIT, "ask"),
        ("auto", [], COMMIT, "ask"),
        ("auto", text_rules("allow mcp__git__*"), COMMIT, "allow"),
        ("plan", [], COMMIT, "deny"),
        ("plan", [], LOG, "ask"),
        ("plan", [], READ, "ask"),
        ("plan", text_rules("deny mcp__git__*"), LOG, "deny"),
        ("plan", text_rules("deny *"), LOG, "deny"),
        ("plan", text_rules("mustAsk *", "allow mcp__git__*"), LOG, "ask"),
        ("plan", text_rules("allow *"), LOG, "ask"),
        ("plan", text_rules("allow mcp__git__commit"), LOG, "ask"),
        ("plan", text_rules("allow mcp__git__*"), LOG, "allow"),
        ("plan", text_rules("allow mcp__git__*"), COMMIT, "deny"),
        ("plan", [table(server="git", mode="plan")], COMMIT, "allow"),
        ("plan", [table(server="git", mode=["ask", "auto"])], LOG, "ask"),
        ("plan", [table(server="git", mode=["ask", "auto"])], COMMIT, "deny"),
    ],
)
@pytest.mark.parametrize("sandboxed", [True, False])
def test_modes(mode: Mode, rules: list[Rule], subject: Subject, expected: str, sandboxed: bool) -> None:
    context = PolicyContext(mode=mode, trusted=True, sandboxed=sandboxed)
    assert decide([*built_in(), *of_mode(mode), *rules], subject, context).decision == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], "needs one of your rules to allow it"),
        (text_rules("allow mcp__git__*"), "this tool needs a rule with mode = 'plan'"),
    ],
)
def test_what_plan_mode_asks_for_does_not_exist_yet(rules: list[Rule], expected: str) -> None:
    verdict = decide([*built_in(), *of_mode("plan"), *rules], COMMIT, PolicyContext(mode="plan"))
    assert expected in rule_in_words(verdict.rule)


def test_what_an_answer_would_save() -> None:
    once, turn, *_ = offers([(COMMIT, decide([], COMMIT))])
    assert (once.rule, turn.rule) == ("", "mcp__git__commit")
    assert turn.explanation == (
        "Allows the tool commit of the MCP server git. For all tools of this server, change it to mcp__git__*"
    )
    assert explain("mcp__git__*") == "Allows every tool of the MCP server git."
    assert decide(text_rules(f"allow {suggested_rule(READ)}"), READ).decision == "allow"


@pytest.mark.parametrize(
    ("text", "message"),
    [("mcp__git__*+network", "applies only to commands"), ("mcp__git__a b", "is not a rule")],
)
def test_texts_that_are_no_rules(text: str, message: str) -> None:
    with pytest.raises(AmanuError, match=message):
        parse_rule("allow", text, "test")


@pytest.mark.parametrize("conditions", [{"command": "git *"}, {"tool": "bad name", "server": ()}])
def test_tables_that_are_no_rules(conditions: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"a rule is about a server or about commands|is not the name of a tool"):
        table(**{"server": "git", **conditions})


def test_rules_say_what_they_are_about() -> None:
    assert str(table(server="git", tool="commit")) == "test: allow commit, server git"
