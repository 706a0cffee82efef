"""Which rule decides: deny beats must-ask beats allow; nothing matched means ask."""

import pytest

from amanu.agent.policy import BUILT_IN, MODES, NOTHING_MATCHED, Rule, decide, offers, parse, remember, suggested_rule
from amanu.tools.base import Subject
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Mode

READ = Subject("read_file", "read", "src/app.py")
EDIT = Subject("edit_file", "write", "src/app.py")
RUN = Subject("run_shell_command", "run", "pytest -q")


def rules(*texts: str) -> list[Rule]:
    """`allow x`, `deny x`, `mustAsk x` → rules."""
    return [Rule(kind, text, "test") for kind, text in (each.split(" ", 1) for each in texts)]  # pyright: ignore


@pytest.mark.parametrize(
    ("texts", "subject", "expected"),
    [
        ((), READ, "ask"),
        (("allow @read",), READ, "allow"),
        (("allow read_file",), READ, "allow"),
        (("allow read_file(src/*.py)",), READ, "allow"),
        (("allow read_file(src/*)",), Subject("read_file", "read", "src/a/b.py"), "ask"),
        (("allow read_file(src/**)",), Subject("read_file", "read", "src/a/b.py"), "allow"),
        (("allow read_file(**/b.py)",), Subject("read_file", "read", "b.py"), "allow"),
        (("allow @write", "deny edit_file(src/app.py)"), EDIT, "deny"),
        (("deny @write", "allow edit_file(src/app.py)"), EDIT, "deny"),
        (("allow @write", "mustAsk @write(src/**)"), EDIT, "ask"),
        (("mustAsk @write(src/**)", "deny *"), EDIT, "deny"),
        # a command is allowed by its exact text and by nothing else
        (("allow run_shell_command(pytest -q)",), RUN, "allow"),
        (("allow @run(pytest -q)",), RUN, "allow"),
        (("allow run_shell_command(pytest)",), RUN, "ask"),
        (("allow run_shell_command(pytest*)",), RUN, "ask"),
        (("allow run_shell_command",), RUN, "ask"),
        (("allow *",), RUN, "ask"),
        (("allow @run",), RUN, "ask"),
        (("deny @run",), RUN, "deny"),
        (("deny *", "allow run_shell_command(pytest -q)"), RUN, "deny"),
        # deny and must-ask fold case, allow does not
        (("deny @write(SRC/APP.PY)",), EDIT, "deny"),
        (("allow @write(SRC/APP.PY)",), EDIT, "ask"),
        # a newline in a path is no way around a rule
        (("deny @write(**/.git/**)",), Subject("edit_file", "write", "a\nb/.git/config"), "deny"),
        (("allow edit_file(a\\*b)",), Subject("edit_file", "write", "aXb"), "ask"),
        (("allow edit_file(a\\*b)",), Subject("edit_file", "write", "a*b"), "allow"),
    ],
)
def test_decision(texts: tuple[str, ...], subject: Subject, expected: str) -> None:
    assert decide(rules(*texts), subject).decision == expected


@pytest.mark.parametrize(
    ("mode", "subject", "expected"),
    [
        ("plan", READ, "allow"),
        ("plan", EDIT, "deny"),
        ("plan", RUN, "deny"),
        ("plan", Subject("write_file", "write", ".amanu/plans/todo.md"), "allow"),
        ("ask", READ, "allow"),
        ("ask", EDIT, "ask"),
        ("ask", RUN, "ask"),
        ("acceptEdits", EDIT, "allow"),
        ("acceptEdits", RUN, "ask"),
        ("auto", EDIT, "allow"),
        ("auto", RUN, "ask"),
        ("auto", Subject("edit_file", "write", ".git/hooks/pre-commit"), "ask"),
        ("auto", Subject("edit_file", "write", "sub/.GIT/config"), "ask"),
        ("auto", Subject("read_file", "read", "deploy/.env.production"), "ask"),
        ("auto", Subject("edit_file", "write", ".vscode/settings.json"), "ask"),
        ("auto", Subject("write_file", "write", ".amanu/config.toml"), "ask"),
        ("auto", Subject("write_file", "write", ".amanu/agents/new.md"), "ask"),
        ("auto", Subject("write_file", "write", ".amanu/plans/todo.md"), "allow"),
        ("auto", Subject("write_file", "write", "vendor/lib/.git"), "ask"),  # a file that names another repository
        ("auto", Subject("write_file", "write", ".gitmodules"), "ask"),
        ("auto", Subject("write_file", "write", "a.code-workspace"), "ask"),
        ("auto", Subject("write_file", "write", ".Nvim.lua"), "ask"),
        ("auto", Subject("write_file", "write", ".gitignore"), "allow"),
        ("auto", Subject("read_file", "read", ".env.d/production"), "ask"),
    ],
)
def test_modes(mode: Mode, subject: Subject, expected: str) -> None:
    assert decide((*BUILT_IN, *MODES[mode]), subject).decision == expected


def test_built_in_rules_hold_no_plain_ask_and_every_verdict_names_its_rule() -> None:
    assert decide([], EDIT).rule == NOTHING_MATCHED
    assert decide(MODES["plan"], EDIT).rule == "mode plan: deny @write unless .amanu/plans/*.md"


@pytest.mark.parametrize("subject", [READ, EDIT, RUN, Subject("edit_file", "write", "odd [name]*?.py")])
def test_the_suggested_rule_covers_the_call_and_no_neighbour(subject: Subject) -> None:
    rule = [Rule("allow", suggested_rule(subject), "test")]
    assert decide(rule, subject).decision == "allow"
    assert decide(rule, Subject(subject.tool, subject.effect, subject.text + "x")).decision == "ask"


def test_what_must_be_asked_can_only_be_answered_once() -> None:
    verdict = decide(rules("mustAsk @write"), EDIT)
    assert [offer.scope for offer in offers([EDIT], verdict)] == ["once"]
    assert len(offers([EDIT], decide([], EDIT))) == 5


@pytest.mark.parametrize("text", ["ls\nrm x", "ls \u200b", "ls \u202e x", "ls\u3164", "l\x1bs", "ls\ufe0f", ""])
def test_what_is_not_seen_is_not_allowed_for_good(text: str) -> None:
    subject = Subject("run_shell_command", "run", text)
    assert [offer.scope for offer in offers([subject], decide([], subject))] == ["once"]


@pytest.mark.parametrize("text", ["", "edit file", "@all", "edit_file(", "edit_file()", "a(b) c", "deny: x"])
def test_texts_that_are_no_rules(text: str) -> None:
    with pytest.raises(AmanuError) as caught:
        parse(text)
    assert caught.value.kind == "invalidRule"


def test_an_edited_rule_must_cover_the_call_it_answers() -> None:
    assert remember("@write(src/**)", "session", EDIT).text == "@write(src/**)"
    with pytest.raises(AmanuError, match="would not have allowed"):
        remember("@write(docs/**)", "session", EDIT)
    with pytest.raises(AmanuError, match="would not have allowed"):
        remember("run_shell_command", "user", RUN)
