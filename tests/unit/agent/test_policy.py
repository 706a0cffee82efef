"""Which rule decides: deny beats must-ask beats allow; nothing matched means ask."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from amanu.core.command import Ask, Command, Effect
from amanu.core.rules import Rule, RuleTable, parse_rule, with_grants
from amanu.core.tool import Subject
from amanu.permissions import matching
from amanu.permissions.offers import explain, offers, remember, suggested_rule
from amanu.permissions.policy import (
    NO_SANDBOX,
    NOT_UNDERSTOOD,
    NOTHING_MATCHED,
    PolicyContext,
    built_in,
    decide,
    decide_all,
    decide_each,
    of_mode,
)
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import Grant, Mode

READ = Subject("read_file", "read", "src/app.py")
EDIT = Subject("edit_file", "write", "src/app.py")


def run(
    line: str, effect: Effect = "some", *, network: bool = False, prefix: int | None = 1, unclear: bool = False
) -> Subject:
    """A command; `?` stands for a word that is not known."""
    words = tuple(None if word == "?" else word for word in line.split())
    known = tuple(word for word in words if word is not None)
    assigned = sum("=" in word for word in line.split(" -")[0].split())
    kept = None if prefix is None else known[:prefix]
    command = Command(line, words, effect, "", kept, network=network, assigned=assigned)
    return Subject("run_shell_command", "run", line, command=None if unclear else command, unclear=unclear)


RUN = run("pytest -q")
LOOK = run("ls -l", "none")


def rules(*texts: str) -> list[Rule]:
    """`allow x`, `deny x`, `mustAsk x` → rules."""
    return [parse_rule(kind, text, "test") for kind, text in (each.split(" ", 1) for each in texts)]  # pyright: ignore


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
        # a command is allowed token by token
        (("allow run_shell_command(pytest -q)",), RUN, "allow"),
        (("allow @run(pytest -q)",), RUN, "allow"),
        (("allow run_shell_command(pytest)",), RUN, "ask"),
        (("allow run_shell_command(pytest *)",), RUN, "allow"),
        (("allow run_shell_command(pytest *)",), run("pytest"), "allow"),
        (("allow run_shell_command(pytest *)",), run("pytest-evil -q"), "ask"),
        (("allow run_shell_command(pytest*)",), RUN, "ask"),
        (("allow run_shell_command(git commit *)",), run("git -c a=b commit"), "ask"),
        (("allow run_shell_command(git commit *)",), run("git commit ?"), "allow"),
        (("allow run_shell_command(git commit *)",), run("git ? -m"), "ask"),
        (("allow run_shell_command('git commit' *)",), run("git commit"), "ask"),
        (("allow run_shell_command",), RUN, "allow"),
        (("allow @run",), RUN, "allow"),
        (("allow *",), RUN, "allow"),
        (("allow *",), run("pytest -q", unclear=True), "ask"),
        (("allow run_shell_command(pytest *)",), run("pytest -q", unclear=True), "ask"),
        (("allow *",), run("rm -rf /", "ruin"), "ask"),
        # what no undo brings back is covered by a rule that names it
        (("allow @run(git *)",), run("git commit -m x"), "allow"),
        (("allow @run(git *)",), run("git reset HEAD a"), "allow"),
        (("allow @run(git *)",), run("git reset --hard"), "ask"),
        (("allow @run(git *)",), run("git clean -fdx"), "ask"),
        (("allow @run(git clean *)",), run("git clean -fdx"), "allow"),
        (("allow @run(git *)",), run("/usr/bin/git -C x checkout -- a.py"), "ask"),
        (("allow @run(git push *)",), run("git push -u origin main"), "allow"),
        (("allow @run(git push *)",), run("git push --force-with-lease"), "ask"),
        (("allow @run(git push *)",), run("git push origin +main"), "ask"),
        (("allow @run(git push --force *)",), run("git push --force origin"), "allow"),
        (("allow @run(git push --force)",), run("git push --force"), "allow"),
        (("allow @run(git stash *)",), run("git stash drop"), "ask"),
        (("allow @run(rm *)",), run("rm a.txt"), "allow"),
        (("allow @run(rm *)",), run("rm -rf src"), "ask"),
        (("allow @run(rm -rf *)",), run("rm -rf src"), "allow"),
        (("allow @run(A=1 rm *)",), run("A=1 rm -r src"), "ask"),
        (("allow @run",), run("rm -rf src"), "allow"),  # as mode auto has it, in the sandbox
        # the network has to be said
        (("allow run_shell_command(npm *)",), run("npm install", network=True), "ask"),
        (("allow run_shell_command+network(npm *)",), run("npm install", network=True), "allow"),
        (("allow run_shell_command+network(npm *)",), run("npm test"), "allow"),
        # what is forbidden is so by any path and with any options
        (("deny @run",), RUN, "deny"),
        (("deny *", "allow run_shell_command(pytest -q)"), RUN, "deny"),
        (("deny run_shell_command(git push *)", "allow *"), run("git push"), "deny"),
        (("deny run_shell_command(git push *)", "allow *"), run("/usr/bin/git push origin"), "deny"),
        (("deny run_shell_command(git push *)", "allow *"), run("git -C x push"), "deny"),
        (("deny run_shell_command(git push *)", "allow *"), run("git --no-pager push"), "deny"),
        (("deny run_shell_command(git push *)", "allow *"), run("git -c a.b=c --bare push -f"), "deny"),
        (("deny run_shell_command(git push *)", "allow *"), run("GIT push"), "deny"),
        (("deny run_shell_command(git push *)", "allow *"), run("git commit -m push"), "allow"),
        (("deny run_shell_command(git push *)", "allow *"), run("git ? origin"), "ask"),
        (("deny run_shell_command(git push)", "allow *"), run("git push -f"), "allow"),
        # what is set for a command is part of what is allowed, and saves it from nothing
        (("allow run_shell_command(A=1 pytest *)",), run("A=1 pytest -q"), "allow"),
        (("allow run_shell_command(A=1 pytest *)",), run("pytest -q"), "ask"),
        (("allow run_shell_command(A=1 pytest *)",), run("A=2 pytest -q"), "ask"),
        (("allow run_shell_command(A=1 pytest *)",), run("B=1 A=1 pytest -q"), "ask"),
        (("allow run_shell_command(A=1 pytest *)",), run("A=1 B=1 pytest -q"), "ask"),
        (("allow run_shell_command(pytest *)",), run("A=1 pytest -q"), "ask"),
        (("deny run_shell_command(git push *)", "allow *"), run("A=1 git push"), "deny"),
        (("deny run_shell_command(git push *)", "allow *"), run("A=1 B=2 /usr/bin/git -C x push"), "deny"),
        (("mustAsk run_shell_command(git push *)", "allow *"), run("A=1 git push"), "ask"),
        (("deny run_shell_command(A=1 *)", "allow *"), run("A=1 git push"), "deny"),
        (("deny run_shell_command(A=1 *)", "allow *"), run("git push"), "allow"),
        (("mustAsk run_shell_command(git push)", "allow *"), run("git push ?"), "ask"),
        (("deny run_shell_command(make *)", "allow *"), run("? all"), "ask"),
        # deny and must-ask fold case, allow does not
        (("deny @write(SRC/APP.PY)",), EDIT, "deny"),
        (("allow @write(SRC/APP.PY)",), EDIT, "ask"),
        # nor is another Unicode normal form a way around them
        (("deny @write(caf\u00e9.md)",), Subject("edit_file", "write", "cafe\u0301.md"), "deny"),
        (("deny @write(cafe\u0301*)",), Subject("edit_file", "write", "CAF\u00c9.md"), "deny"),
        (("allow @write(caf\u00e9.md)",), Subject("edit_file", "write", "cafe\u0301.md"), "ask"),
        # a newline in a path is no way around a rule
        (("deny @write(**/.git/**)",), Subject("edit_file", "write", "a\nb/.git/config"), "deny"),
        # what cannot be seen in a name is asked about
        (("allow @write",), Subject("write_file", "write", "a\u202egnp.exe"), "ask"),
        (("allow @write",), Subject("write_file", "write", "a\u200b.py"), "ask"),
        (("allow @write",), Subject("write_file", "write", "a\nb.py"), "ask"),
        (("allow @write", "deny write_file"), Subject("write_file", "write", "a\u202eb"), "deny"),
        (("allow @write",), Subject("write_file", "write", "Übung é 漢字.md"), "allow"),
        (("allow @read",), Subject("read_file", "read", "a\u202egnp.exe"), "allow"),
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
        ("plan", RUN, "allow"),  # nothing that it changes is kept
        ("plan", run("rm -rf /", "ruin"), "deny"),
        ("plan", run("npm install", network=True), "ask"),
        ("plan", Subject("write_file", "write", "plan.md", plan=True), "allow"),
        ("plan", Subject("write_file", "write", "plan.md"), "deny"),
        *((mode, Subject("exit_plan_mode", "read", "plan.md", plan=True), "ask") for mode in ("plan", "auto")),
        *((mode, Subject("enter_plan_mode", "read", ""), "ask") for mode in ("ask", "auto")),
        ("ask", READ, "allow"),
        ("ask", EDIT, "ask"),
        ("ask", RUN, "ask"),
        ("acceptEdits", EDIT, "allow"),
        ("acceptEdits", RUN, "ask"),
        ("auto", EDIT, "allow"),
        ("auto", RUN, "allow"),
        ("auto", run("x", unclear=True), "ask"),
        ("auto", run("npm install", network=True), "ask"),
        ("auto", run("rm -rf /", "ruin"), "deny"),
        ("ask", run("rm -rf /", "ruin"), "deny"),
        ("ask", LOOK, "allow"),
        ("plan", LOOK, "allow"),
        ("plan", run("ls", unclear=True), "ask"),
        ("auto", Subject("edit_file", "write", ".git/hooks/pre-commit"), "ask"),
        ("auto", Subject("edit_file", "write", "sub/.GIT/config"), "ask"),
        ("auto", Subject("read_file", "read", "deploy/.env.production"), "ask"),
        ("auto", Subject("edit_file", "write", ".vscode/settings.json"), "ask"),
        ("auto", Subject("write_file", "write", ".amanu/config.toml"), "ask"),
        ("auto", Subject("write_file", "write", ".amanu/agents/new.md"), "ask"),
        ("auto", Subject("write_file", "write", ".amanu/plans/todo.md"), "ask"),
        ("auto", Subject("write_file", "write", "vendor/lib/.git"), "ask"),  # a file that names another repository
        ("auto", Subject("write_file", "write", ".gitmodules"), "ask"),
        ("auto", Subject("write_file", "write", "a.code-workspace"), "ask"),
        ("auto", Subject("write_file", "write", ".Nvim.lua"), "ask"),
        ("auto", Subject("write_file", "write", ".gitignore"), "allow"),
        *(
            ("acceptEdits", Subject("write_file", "write", name), "ask")
            for name in (
                *(
                    ".gitattributes",
                    ".github/workflows/ci.yml",
                    "sub/.github/copilot-instructions.md",
                    ".npmrc",
                    ".bashrc",
                ),
                *(".codex/config.toml", "opencode.json", ".opencode/x", ".roo/x", ".clinerules", ".clinerules/x.md"),
                *(".windsurf/x", ".cursorrules", ".fleet/x", "a.sublime-project", ".pre-commit-config.yaml"),
            )
        ),
        ("acceptEdits", Subject("write_file", "write", ".github/dependabot.yml"), "allow"),
        ("auto", Subject("read_file", "read", ".env.d/production"), "ask"),
        ("auto", Subject("read_file", "read", "sub/id_rsa"), "ask"),
        ("auto", Subject("read_file", "read", "sub/id_rsa.pub"), "allow"),
        ("ask", Subject("grep", "read", ".ssh"), "ask"),
        ("acceptEdits", Subject("write_file", "write", ".aws/credentials"), "ask"),
    ],
)
def test_modes(mode: Mode, subject: Subject, expected: str) -> None:
    assert decide((*built_in(), *of_mode(mode)), subject).decision == expected


def test_built_in_rules_hold_no_plain_ask_and_every_verdict_names_its_rule() -> None:
    assert decide([], EDIT).rule == NOTHING_MATCHED
    assert decide(of_mode("plan"), EDIT).rule == (
        "mode plan: deny @write, other files than the plan (in plan mode only the plan can be edited until it is "
        "approved)"
    )


@pytest.mark.parametrize(
    ("subject", "neighbour"),
    [
        (READ, Subject("read_file", "read", "src/app.pyx")),
        (EDIT, Subject("edit_file", "write", "src/app.py2")),
        (Subject("edit_file", "write", "odd [name]*?.py"), Subject("edit_file", "write", "odd [name]xx.py")),
        (RUN, run("pytest-x -q")),
        (run("git commit -m x", prefix=2), run("git push", prefix=2)),
        (run("./a$b 'c", prefix=1), run("./a 'c", prefix=1)),
        (run("npm install", network=True), run("npx install")),
    ],
)
def test_the_suggested_rule_covers_the_call_and_no_neighbour(subject: Subject, neighbour: Subject) -> None:
    suggested = [parse_rule("allow", suggested_rule(subject), "test")]
    assert decide(suggested, subject).decision == "allow"
    assert decide(suggested, neighbour).decision == "ask"


def scopes(*subjects: Subject, given: list[Rule] | None = None, allowed: int = 0) -> list[str]:
    return [offer.scope for offer in offers([(each, decide(given or [], each)) for each in subjects], allowed=allowed)]


@pytest.mark.parametrize(
    ("text", "grants", "only", "expected"),
    [
        ("run_shell_command(a *)", ["unsandboxed"], False, "run_shell_command+unsandboxed(a *)"),
        ("run_shell_command+network(a *)", ["unsandboxed"], False, "run_shell_command+network+unsandboxed(a *)"),
        ("run_shell_command+network(a *)", ["unsandboxed"], True, "run_shell_command+unsandboxed(a *)"),
        ("@run+network(a)\n@run(b) until 2030-01-01", [], True, "@run(a)\n@run(b) until 2030-01-01"),
        ("@run(a)\n\n@write(b)", ["network"], False, "@run+network(a)\n\n@write(b)"),
        ("no rule at all", ["network"], False, "no rule at all"),
    ],
)
def test_a_rule_keeps_what_is_granted(text: str, grants: list[Grant], only: bool, expected: str) -> None:
    assert with_grants(text, grants, only=only) == expected


@pytest.mark.parametrize(
    ("asks", "texts", "decision", "unsandboxed"),
    [
        ("unsandboxed", ("allow @run",), "ask", False),
        ("unsandboxed", ("allow @run+network",), "ask", False),
        ("unsandboxed", ("allow @run", "allow @run+unsandboxed(docker ps *)"), "allow", True),
        ("network", ("allow @run(docker ps *)",), "ask", False),
        ("network", ("allow @run+unsandboxed(docker ps *)",), "allow", True),
        ("secrets", ("allow @run+network",), "ask", False),
        ("secrets", ("allow @run(docker ps *)",), "allow", False),
        (None, ("allow @run", "allow @run+unsandboxed(docker ps *)"), "allow", True),
    ],
)
@pytest.mark.parametrize("effect", ["some", "none"])
def test_what_a_call_asks_for_is_asked_unless_a_rule_grants_it(
    asks: Ask | None, texts: tuple[str, ...], decision: str, unsandboxed: bool, effect: Effect
) -> None:
    subject = run("docker ps -a", effect)
    assert subject.command is not None
    if asks is not None:
        subject = replace(subject, command=replace(subject.command, asks=frozenset([asks])))
    found, _ = decide_all((*built_in(), *rules(*texts)), [subject])
    assert found.decision == decision
    assert ("unsandboxed" in found.grants) == (unsandboxed and (asks is not None or effect == "some"))


def test_what_must_be_asked_can_only_be_answered_once() -> None:
    assert scopes(EDIT, given=rules("mustAsk @write")) == ["once"]
    assert len(scopes(EDIT)) == 5


def test_several_commands_are_remembered_together_and_several_files_are_not() -> None:
    two = (run("npm run lint", prefix=3), run("npm test", prefix=2))
    assert len(scopes(*two)) == 5
    assert offers([(each, decide([], each)) for each in two])[1].rule == (
        "run_shell_command(npm run lint *)\nrun_shell_command(npm test *)"
    )
    assert len(scopes(RUN, allowed=3)) == 5  # the other commands of the line are allowed
    assert scopes(EDIT, Subject("edit_file", "write", "b.py")) == ["once"]
    assert scopes(EDIT, allowed=1) == ["once"]
    assert scopes(*(run(f"p{n}") for n in range(5))) == ["once"]


def test_a_rule_for_what_runs_a_script_says_that_the_script_may_be_another_by_then() -> None:
    subject = run("make test", prefix=2)
    assert subject.command is not None
    held = replace(subject, command=replace(subject.command, runs=("/w/Makefile",)))
    once, *kept = offers([(held, decide([], held))])
    assert "Makefile" not in once.explanation
    assert {each.explanation for each in kept} == {
        "Allows make test with any arguments, without network access. Also after Makefile changes."
    }


@pytest.mark.parametrize("text", ["ls \u200b", "\u202ex", "ls\u3164", "l\x1bs", "ls\ufe0f"])
def test_what_is_not_seen_is_not_allowed_for_good(text: str) -> None:
    assert scopes(run(text, prefix=2)) == ["once"]
    assert scopes(Subject("edit_file", "write", text)) == ["once"]


def test_what_cannot_be_remembered() -> None:
    assert scopes(run("rm -r x", prefix=None)) == ["once"]
    assert scopes(run("x", unclear=True)) == ["once"]
    assert scopes(RUN, run("x", unclear=True)) == ["once"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "edit file",
        "@all",
        "edit_file(",
        "edit_file()",
        "a(b) c",
        "deny: x",
        "@run(git 'x)",
        "@write+network",
        "@read+unsandboxed",
        "@run+unsandboxed+network",
        "@run(ls) until 2026-02-31",
        "@run(ls) until tomorrow",
    ],
)
def test_texts_that_are_no_rules(text: str) -> None:
    with pytest.raises(AmanuError) as caught:
        parse_rule("allow", text, "test")
    assert caught.value.kind == "invalidRule"


def test_an_edited_rule_must_cover_the_call_it_answers() -> None:
    assert [each.text for each in remember("@write(src/**)\n", "session", [EDIT])] == ["@write(src/**)"]
    assert len(remember("@run(pytest *)\n@run(make *)", "session", [RUN, run("make all")])) == 2
    for text, asked in (("@write(docs/**)", [EDIT]), ("@run(pytest *)", [RUN, run("make all")]), (" ", [EDIT])):
        with pytest.raises(AmanuError) as caught:
            remember(text, "session", asked)
        assert caught.value.kind == "invalidRule"


def table(**fields: Any) -> Rule:
    return RuleTable.model_validate(fields).rule("test")


SEARCH = Subject("search", "read", "x", arguments={"query": "label:bug", "all": True})


@pytest.mark.parametrize(
    ("fields", "subject", "when", "expected"),
    [
        ({"decision": "allow"}, SEARCH, {}, "allow"),
        ({"decision": "allow", "arguments": {"query": "label:*"}}, SEARCH, {}, "allow"),
        ({"decision": "allow", "arguments": {"query": "LABEL:*"}}, SEARCH, {}, "ask"),
        ({"decision": "deny", "arguments": {"query": "LABEL:*"}}, SEARCH, {}, "deny"),
        ({"decision": "allow", "arguments": {"query": "label:*", "all": "true"}}, SEARCH, {}, "allow"),
        ({"decision": "allow", "arguments": {"other": "*"}}, SEARCH, {}, "ask"),
        ({"decision": "allow", "mode": "ask"}, READ, {}, "allow"),
        ({"decision": "allow", "mode": ["plan", "auto"]}, READ, {}, "ask"),
        ({"decision": "allow", "trusted": True}, READ, {}, "ask"),
        ({"decision": "allow", "trusted": True}, READ, {"trusted": True}, "allow"),
        ({"decision": "deny", "trusted": False}, READ, {}, "deny"),
        ({"decision": "allow", "until": "2026-01-31"}, READ, {"time": datetime(2026, 1, 31, 23, tzinfo=UTC)}, "allow"),
        ({"decision": "allow", "until": "2026-01-31"}, READ, {"time": datetime(2026, 2, 1, tzinfo=UTC)}, "ask"),
        ({"decision": "allow", "tool": ["read_file", "grep"]}, READ, {}, "allow"),
        ({"decision": "allow", "tool": "grep"}, READ, {}, "ask"),
        ({"decision": "allow", "path": ["docs/**", "src/**"]}, READ, {}, "allow"),
        ({"decision": "allow", "path": "**", "unless": "src/**"}, READ, {}, "ask"),
        ({"decision": "allow", "command": ["make *", "pytest *"]}, RUN, {}, "allow"),
        ({"decision": "allow", "command": "make *"}, RUN, {}, "ask"),
        ({"decision": "allow", "command": "pytest *"}, READ, {}, "ask"),
        ({"decision": "allow", "tool": "@run", "harmless": True}, LOOK, {}, "allow"),
        ({"decision": "allow", "tool": "@run", "harmless": True}, RUN, {}, "ask"),
        ({"decision": "allow", "tool": "@run"}, RUN, {"sandboxed": False}, "ask"),
        ({"decision": "allow", "tool": "@run", "harmless": True}, LOOK, {"sandboxed": False}, "allow"),
    ],
)
def test_conditions_of_a_table(fields: dict[str, Any], subject: Subject, when: dict[str, Any], expected: str) -> None:
    assert decide([table(**fields)], subject, PolicyContext(**when)).decision == expected


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"decision": "ask"},
        {"decision": "allow", "tool": "a b"},
        {"decision": "allow", "tool": "@exec"},
        {"decision": "allow", "path": "a", "command": "b"},
        {"decision": "allow", "command": "'x"},
        {"decision": "allow", "until": "soon"},
        {"decision": "allow", "comand": "x"},
    ],
)
def test_tables_that_are_no_rules(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        RuleTable.model_validate(fields)


def test_a_verdict_says_why_rules_do_not_count() -> None:
    assert decide(rules("allow *"), RUN, PolicyContext(sandboxed=False)).rule == NO_SANDBOX
    assert decide(rules("allow *"), run("x", unclear=True)).rule == NOT_UNDERSTOOD
    assert (
        "deny run_shell_command(git push *)" in decide(rules("deny run_shell_command(git push *)"), run("git ?")).rule
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run_shell_command(git commit *)", "Allows git commit with any arguments, without network access."),
        ("@run+network(npm ci)", "Allows exactly npm ci, with network access."),
        (
            "@run+unsandboxed(docker ps *)",
            "Allows docker ps with any arguments, without the sandbox, with all your permissions.",
        ),
        ("@write(src/**)", "Allows every tool that changes files, for these paths: src/**"),
        ("@run", "Allows every command that Amanu can fully analyze, in the sandbox."),
        ("grep until 2026-12-24", "Allows the tool grep. Until 2026-12-24."),
    ],
)
def test_a_rule_is_explained(text: str, expected: str) -> None:
    assert explain(text) == expected


PAGE = Subject("web_fetch", "read", "docs.python.org", reach="web")
SERVER = Subject("web_fetch", "read", "localhost:3000", reach="local")
ODD_PAGE = replace(PAGE, must_ask="the address is long enough to carry data away")


@pytest.mark.parametrize(
    ("texts", "subject", "expected"),
    [
        ((), PAGE, "ask"),
        # who allows reading did not mean the web
        (("allow @read",), PAGE, "ask"),
        (("allow *",), PAGE, "ask"),
        (("deny @read",), PAGE, "deny"),
        (("mustAsk *", "allow web_fetch"), PAGE, "ask"),
        (("allow web_fetch",), PAGE, "allow"),
        (("allow web_fetch(docs.python.org)",), PAGE, "allow"),
        (("allow web_fetch(*.python.org)",), PAGE, "allow"),
        (("allow web_fetch(python.org)",), PAGE, "ask"),
        (("allow web_fetch(docs.python.org)",), replace(PAGE, text="docs.python.org:8443"), "ask"),
        (("allow web_fetch(*.python.org)",), replace(PAGE, text="docs.python.org.evil.example"), "ask"),
        (("allow web_fetch", "deny web_fetch(*.python.org)"), PAGE, "deny"),
        # nor who allows the web their own network
        (("allow web_fetch",), SERVER, "ask"),
        (("allow web_fetch(*)",), SERVER, "ask"),
        (("allow web_fetch(localhost:*)",), SERVER, "ask"),
        (("allow web_fetch(localhost:3001)",), SERVER, "ask"),
        (("allow web_fetch(localhost:3000)",), SERVER, "allow"),
        (("deny web_fetch(localhost:*)", "allow web_fetch(localhost:3000)"), SERVER, "deny"),
        # what may carry data away is asked about each time
        (("allow web_fetch(docs.python.org)",), ODD_PAGE, "ask"),
        (("deny web_fetch(docs.python.org)",), ODD_PAGE, "deny"),
    ],
)
def test_hosts(texts: tuple[str, ...], subject: Subject, expected: str) -> None:
    assert decide(rules(*texts), subject).decision == expected


PERMITTED = Subject("edit_file", "write", "src/a.py", permitted_by="your hook x")
PERMITTED_COMMAND = Subject("run_shell_command", "run", "make test", permitted_by="your hook x")


@pytest.mark.parametrize(
    ("texts", "subject", "context", "expected"),
    [
        ((), PERMITTED, PolicyContext(), "allow"),
        (("deny edit_file",), PERMITTED, PolicyContext(), "deny"),
        (("mustAsk edit_file(src/**)",), PERMITTED, PolicyContext(), "ask"),
        ((), replace(PERMITTED, must_ask="a hook wants it"), PolicyContext(), "ask"),
        ((), replace(PERMITTED, text="a\u202eb.py"), PolicyContext(), "ask"),
        ((), PERMITTED_COMMAND, PolicyContext(), "allow"),
        ((), PERMITTED_COMMAND, PolicyContext(sandboxed=False), "ask"),
        ((), replace(PERMITTED_COMMAND, unclear=True), PolicyContext(), "ask"),
        # as rules that do not name the tool, it was not meant for the web or the user's own network
        ((), replace(PAGE, permitted_by="your hook x"), PolicyContext(), "ask"),
        ((), replace(SERVER, permitted_by="your hook x"), PolicyContext(), "ask"),
    ],
)
def test_what_something_of_the_users_permits(
    texts: tuple[str, ...], subject: Subject, context: PolicyContext, expected: str
) -> None:
    assert decide((*built_in(), *rules(*texts)), subject, context).decision == expected


@pytest.mark.parametrize("mode", ["plan", "ask", "acceptEdits", "auto"])
@pytest.mark.parametrize("subject", [PAGE, SERVER])
def test_a_new_host_is_asked_about_in_every_mode(mode: Mode, subject: Subject) -> None:
    verdict = decide((*built_in(), *of_mode(mode)), subject)
    assert verdict.decision == "ask"
    (_, turn, *_) = offers([(subject, verdict)])
    assert turn.rule == f"web_fetch({subject.text})"
    assert f"for this host: {subject.text}" in turn.explanation
    remembered = remember(turn.rule, "session", [subject])
    assert decide((*built_in(), *of_mode(mode), *remembered), subject).decision == "allow"
    odd = replace(subject, must_ask=ODD_PAGE.must_ask)
    assert len(offers([(odd, decide(remembered, odd))])) == 1


def test_a_call_about_many_files_compares_each_with_few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Rule] = []
    real = matching._match_rule  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(matching, "_match_rule", lambda rule, subject: compared.append(rule) or real(rule, subject))  # pyright: ignore
    in_force = (*built_in(), *of_mode("ask"))
    files = [Subject("write_file", "write", f"src/{number}.py") for number in range(200)]
    verdicts = decide_each(in_force, [*files, Subject("write_file", "write", "a/.VSCode/tasks.json")])
    assert [verdict.rule for verdict in verdicts[:-1]] == [NOTHING_MATCHED] * len(files)
    assert ".vscode" in verdicts[-1].rule and not verdicts[-1].rememberable
    assert len(compared) < 5 * len(files) < len(in_force) * len(files)
