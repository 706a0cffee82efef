"""Approvals → the options of a permission request and what they decide; calls → what a card shows."""

from typing import Any, cast

import pytest

from amanu.frontends.acp.permissions import choices_of, is_reviewed, option_of
from amanu.frontends.acp.tool_calls import describe_approval, describe_call
from amanu_protocol.items import Approval, Proposal, Row, ScopeOffer, ToolCall
from amanu_protocol.state import SessionState
from support.fake_daemon import state
from support.sample_events import approval, call, hunk, proposed, row

SCOPES = [ScopeOffer(scope="once", rule=""), ScopeOffer(scope="session", rule="npm *\nnode *")]


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (
            approval(scopes=SCOPES),
            [
                ("allow-0", "Allow once", "allow_once"),
                ("session", "Allow for this session: npm *, node *", "allow_always"),
                ("reject", "Reject", "reject_once"),
            ],
        ),
        (
            approval(scopes=SCOPES, grants=["network"], likely_grants=["network"]),
            [
                ("allow-0", "Allow once with network access", "allow_once"),
                ("allow-1", "Allow once without network access", "allow_once"),
                ("session", "Allow for this session with network access: npm *, node *", "allow_always"),
                ("reject", "Reject", "reject_once"),
            ],
        ),
        (
            approval(effect="write", proposal_id="p", scopes=[]),
            [
                ("allow-0", "Accept all", "allow_once"),
                ("reject", "Reject", "reject_once"),
                ("finish", "Decide later, hunk by hunk in another editor", "reject_once"),
            ],
        ),
        (
            approval(document="/w/plan.md", scopes=[]),
            [
                ("allow-0", "Approve: accept edits", "allow_once"),
                ("allow-1", "Approve: ask about each edit", "allow_once"),
                ("allow-2", "Approve: ask only when required", "allow_once"),
                ("allow-3", "Approve: accept edits, with a fresh context", "allow_once"),
                ("allow-4", "Approve: ask about each edit, with a fresh context", "allow_once"),
                ("allow-5", "Approve: ask only when required, with a fresh context", "allow_once"),
                ("reject", "Keep planning", "reject_once"),
            ],
        ),
        (
            approval(scopes=[ScopeOffer(scope="user", rule="x" * 300)]),
            [
                ("allow-0", "Allow once", "allow_once"),
                ("user", f"Allow always in every workspace: {'x' * 119}…", "allow_always"),
                ("reject", "Reject", "reject_once"),
            ],
        ),
    ],
    ids=["command", "grants", "edit", "plan", "long rule"],
)
def test_options(asked: Approval, options: list[Any]) -> None:
    drawn = [option_of(key, answer) for key, answer in choices_of(asked).items()]
    assert [(each["optionId"], each["name"], each["kind"]) for each in drawn] == options


def session(*proposals: Proposal, **changes: Any) -> SessionState:
    return state(**{"items": [], "proposals": list(proposals), "roots": ["/w"], **changes})


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (
            call(arguments={"path": "src/a.py", "start_line": 7}, output="1 line"),
            {
                "title": "Read app.py",
                "kind": "read",
                "status": "completed",
                "locations": [{"path": "/w/src/a.py", "line": 7}],
                "content": ["```\n1 line\n```"],
            },
        ),
        (
            call(
                "executing", tool="run_shell_command", effect="run", arguments={"command": "a \u202e b\nc"}, output="x"
            ),
            {
                "title": "`a <U+202E> b` (and 1 more line)",
                "kind": "execute",
                "status": "in_progress",
                "content": ["```sh\n$ a <U+202E> b\nc\n```", "```\nx\n```"],
            },
        ),
        (
            call("failed", tool="mcp__db__query", effect="read", error="It broke.", title="db: query"),
            {"title": "db: query", "kind": "other", "status": "failed", "content": ["```\nIt broke.\n```"]},
        ),
        (call(output="```\n````"), {"content": ["`````\n```\n````\n`````"]}),
        (
            call(tool="edit_file", effect="write", proposal_id="p", output="Changes: 1 applied"),
            {
                "kind": "edit",
                "locations": [{"path": "/w/a.txt", "line": 2}],
                "content": [("/w/a.txt", "one\ntwo\nthree\n", "one\nzwei\nthree\n")],
            },
        ),
    ],
    ids=["read", "command", "failed", "fence", "edit"],
)
def test_calls(shown: ToolCall, expected: dict[str, Any]) -> None:
    described = describe_call(shown, session(proposed()))
    assert {key: _plain(described[key]) for key in expected} == expected


@pytest.mark.parametrize(
    ("changes", "content"),
    [
        (
            {"change": "create", "base_text": "", "hunks": [hunk(at=0, old_text="")]},
            [("/w/a.txt", None, "zwei\n")],
        ),
        ({"hunks": [hunk(state="rejected")]}, []),
        (
            {"hunks": [hunk(state="rejected"), hunk(2, 2, new_text="drei\n", state="applied")]},
            [("/w/a.txt", "one\ntwo\nthree\n", "one\ntwo\ndrei\n")],
        ),
        ({"change": "rename", "new_path": "/w/b.txt", "hunks": []}, ["Renamed to /w/b.txt"]),
        ({"base_text": None, "base_blob": "b"}, ["The text of /w/a.txt cannot be r"]),
        ({"base_text": "x" * 1_000_001 + "\ntwo\n"}, ["```diff\n--- a/a.txt\n+++ b/a.txt\n"]),
    ],
    ids=["new", "rejected", "in part", "renamed", "not fetched", "huge"],
)
def test_diffs(changes: dict[str, Any], content: list[Any]) -> None:
    shown = call("succeeded", tool="edit_file", effect="write", proposal_id="p")
    described = _plain(describe_call(shown, session(proposed(**changes)))["content"])
    assert [each[:32] if isinstance(each, str) else each for each in described] == content


def with_rows(*rows: Row, alone: bool = False, **changes: Any) -> Proposal:
    one = proposed(**changes)
    return one.model_copy(update={"rows": list(rows), **({"files": []} if alone else {})})


ROW_TEXTS: list[tuple[Row, str]] = [
    (row(), "logo.png: binary file, 4,096 bytes"),
    (row(path="/elsewhere/logo.png"), "/elsewhere/logo.png: binary file, 4,096 bytes"),
    (row(kind="rename", new_path="/w/b.png", title="renamed"), "logo.png → b.png: renamed"),
    (row(kind="deletion", title="deleted"), "logo.png: deleted"),
    (row(kind="mode", path="/w/bin/run", title="becomes executable"), "bin/run: becomes executable"),
    (row(1, "leads out", kind="link", title="link to ../x"), "logo.png: link to ../x\n  leads out"),
    (row(kind="folder", path="/w/new", title="new folder"), "new: new folder"),
    (
        row(1, "3f2a Tidy", "main: 9c1e → 3f2a", kind="git", path="/w", title="1 commit"),
        "the git repository: 1 commit\n  3f2a Tidy\n  main: 9c1e → 3f2a",
    ),
    (row(kind="git", path="/w/lib", title="1 commit"), "the git repository in lib: 1 commit"),
    (row(undecidable="It is lost."), "logo.png: binary file, 4,096 bytes — It is lost."),
    (row(state="conflicted", reason="It changed."), "logo.png: binary file, 4,096 bytes — It changed."),
    (row(1, "c\u202ed", path="/w/a\nb", title="\x1b[31m"), "a<U+000A>b: <U+001B>[31m\n  c<U+202E>d"),
]


@pytest.mark.parametrize(("shown", "text"), ROW_TEXTS, ids=[text[:40] for _, text in ROW_TEXTS])
def test_rows(shown: Row, text: str) -> None:
    of_edit = call(tool="run_shell_command", effect="run", proposal_id="p")
    for described in (
        describe_call(of_edit, session(with_rows(shown, alone=True))),
        describe_approval(approval(proposal_id="p", effect="write", lines=[]), session(with_rows(shown, alone=True))),
    ):
        assert f"```\n{text}\n```" in _plain(described["content"])


@pytest.mark.parametrize(
    ("change", "locations", "content"),
    [
        (
            with_rows(row(), row(2, path="/w/run", kind="mode", title="becomes executable")),
            [{"path": "/w/a.txt", "line": 2}, {"path": "/w/logo.png"}, {"path": "/w/run"}],
            [
                ("/w/a.txt", "one\ntwo\nthree\n", "one\nzwei\nthree\n"),
                "```\nlogo.png: binary file, 4,096 bytes\nrun: becomes executable\n```",
            ],
        ),
        (
            with_rows(row(path="/w/a.txt", kind="mode", title="becomes executable"), hunks=[]),
            [{"path": "/w/a.txt", "line": 1}],
            ["```\na.txt: becomes executable\n```"],
        ),
        (with_rows(row(state="rejected"), row(2, state="reverted"), alone=True), [{"path": "/w/logo.png"}], []),
        (
            with_rows(row(kind="git", path="/w", title="1 commit"), alone=True),
            [],
            ["```\nthe git repository: 1 commit\n```"],
        ),
    ],
    ids=["beside a diff", "of the same file", "rejected", "git"],
)
def test_rows_follow_the_diffs(change: Proposal, locations: list[Any], content: list[Any]) -> None:
    described = describe_call(call(tool="edit_file", effect="write", proposal_id="p"), session(change))
    assert described["locations"] == locations
    assert _plain(described["content"]) == content


@pytest.mark.parametrize(
    ("change", "reviewed"),
    [
        (with_rows(row()), False),
        (with_rows(row(), alone=True), False),
        (with_rows(row(state="conflicted"), alone=True), False),
        (with_rows(row(state="accepted"), alone=True), True),
        (with_rows(row(), hunks=[hunk(state="applied")]), False),
        (with_rows(row(state="applied"), hunks=[hunk(state="rejected")]), True),
        (with_rows(alone=True), False),
    ],
    ids=["both", "row", "conflict", "decided", "row left", "all decided", "nothing"],
)
def test_what_was_decided_elsewhere_is_not_asked(change: Proposal, reviewed: bool) -> None:
    asked = approval(proposal_id="p", effect="write")
    assert is_reviewed(asked, session(change)) is reviewed


def test_a_request_stands_alone() -> None:
    """A card shows nothing but the request: also where the call itself is not known."""
    described = describe_approval(approval(command="make test\nmake lint"), session())
    assert described["title"] == "`make test` (and 1 more line)"
    assert described["kind"] == "execute"
    first, *_, last = _plain(described["content"])
    assert first == "```sh\n$ make test\nmake lint\n```"
    assert last.startswith("```\nNeeds approval: no rule allows it")


def test_what_a_command_changed_is_no_command() -> None:
    detail, title = "No output\ngit: 3f2a commit: Tidy", "Run git commit: the git repository changed"
    asked = approval(detail=detail, title=title)
    of_asked: dict[str, Any] = {"item_id": asked.tool_call_id, "tool": "run_shell_command", "effect": "run"}
    ran = call("awaitingApproval", output="Exit code: 0", **of_asked)
    described = describe_approval(asked, session(items=[ran]))
    assert described["title"] == title
    assert _plain(described["content"])[0] == detail


def _plain(value: Any) -> Any:
    """Content as text, or (path, old text, new text)."""
    contents = cast("list[Any]", value) if isinstance(value, list) else []
    if not contents or "type" not in contents[0]:
        return cast("Any", value)
    return [
        each["content"]["text"] if each["type"] == "content" else (each["path"], each["oldText"], each["newText"])
        for each in contents
    ]
