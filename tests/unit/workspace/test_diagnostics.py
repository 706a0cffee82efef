"""What a change does to findings: those that only moved are not new."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.workspace.diagnostics import compare_findings, format_finding, verdict, with_summary
from amanu_protocol.base import LineRange
from amanu_protocol.items import Check, Finding

SEVEN = "".join(f"line {n}\n" for n in range(1, 8))


def finding(text: str) -> Finding:
    """ "3", "3 w other message", "3:5 e": line, severity, message."""
    where, _, rest = text.partition(" ")
    kind, _, message = rest.partition(" ")
    start, _, end = where.partition(":")
    named: Any = {"": "error", "e": "error", "w": "warning", "i": "information", "h": "hint"}[kind]
    return Finding(
        lines=LineRange.numbered(int(start), int(end or start)),
        severity=named,
        message=message or "wrong",
        source="toy",
    )


@pytest.mark.parametrize(
    ("after", "before_found", "after_found", "added", "fixed"),
    [
        (SEVEN, [], [], [], 0),
        (SEVEN, ["3"], ["3"], [], 0),
        (SEVEN, ["3"], ["4"], ["4"], 1),
        (SEVEN, ["3"], ["3", "3"], ["3"], 0),
        (SEVEN, ["3"], ["3 w"], ["3 w"], 1),
        (SEVEN, ["3"], ["3 e another"], ["3 e another"], 1),
        (SEVEN, ["1", "3", "5"], [], [], 3),
        # moved by lines that came or went above
        ("new\nnew\n" + SEVEN, ["1", "3"], ["3", "5"], [], 0),
        ("new\nnew\n" + SEVEN, ["3"], ["3"], ["3"], 1),
        (SEVEN.replace("line 2\n", ""), ["3", "7"], ["2", "6"], [], 0),
        (SEVEN.replace("line 2\n", "a\nb\n").replace("line 5\n", ""), ["1", "3", "7"], ["1", "4", "7"], [], 0),
        (SEVEN + "new\n", ["7"], ["7", "8"], ["8"], 0),
        # in lines that changed, the same finding at any of them
        (SEVEN.replace("line 3\n", "a\nb\nc\n"), ["3"], ["5"], [], 0),
        (SEVEN.replace("line 3\n", "a\nb\nc\n"), ["3"], ["4", "5"], ["5"], 0),
        (SEVEN.replace("line 3\n", "a\nb\nc\n"), ["3"], ["6"], ["6"], 1),
        (SEVEN.replace("line 3\n", ""), ["3"], ["3"], [], 0),
        # one that only moved keeps its place, one in changed lines beside it is new
        ("new\n" + SEVEN, ["1"], ["1", "2"], ["1"], 0),
        (SEVEN.replace("line 3\n", "a\nb\n"), ["3", "4"], ["4", "5"], [], 0),
        # what messages say of other lines moves with them
        ("new\n" + SEVEN, ["4 w x is defined in line 2"], ["5 w x is defined in line 3"], [], 0),
        ("new\n" + SEVEN, ["4 w needs 2 arguments"], ["5 w needs 3 arguments"], ["5 w needs 3 arguments"], 1),
        # hints are no findings; what is new is told worst first
        (SEVEN, ["2 h"], ["1 h", "3 i note", "4 w", "5"], ["5", "4 w", "3 i note"], 0),
        # whole texts
        ("", ["3"], [], [], 1),
        ("all\nother\n", ["3", "4"], ["1", "2"], [], 0),
    ],
)
def test_only_what_is_new(
    after: str, before_found: list[str], after_found: list[str], added: list[str], fixed: int
) -> None:
    found = compare_findings(SEVEN, map(finding, before_found), after, map(finding, after_found))
    assert (list(found.added), found.fixed) == ([finding(each) for each in added], fixed)


def test_from_nothing() -> None:
    found = compare_findings("", [], "a\n", [finding("1")])
    assert (found.added, found.fixed) == ((finding("1"),), 0)


def test_our_own_are_none() -> None:
    own = finding("1").model_copy(update={"source": "Amanu"})
    assert not compare_findings(SEVEN, [], SEVEN, [own])


_line = st.sampled_from(["wrong", "bad", "fine", "good", "", "}"])
_lines = st.lists(_line, max_size=25)


def said_of(lines: list[str]) -> list[Finding]:
    """A linter that looks at each line by itself."""
    return [finding(f"{at} e {line}") for at, line in enumerate(lines, 1) if line in ("wrong", "bad")]


def text_of(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


@given(_lines, _lines)
def test_the_count_is_right(before: list[str], after: list[str]) -> None:
    old, new = said_of(before), said_of(after)
    found = compare_findings(text_of(before), old, text_of(after), new)
    assert len(old) - found.fixed + len(found.added) == len(new)
    assert set(map(Finding.model_dump_json, found.added)) <= set(map(Finding.model_dump_json, new))


@given(_lines, st.lists(st.tuples(st.integers(0, 25), st.sampled_from(["harmless", "new"])), max_size=6))
def test_harmless_lines_add_and_fix_nothing(before: list[str], put_in: list[tuple[int, str]]) -> None:
    after = list(before)
    for at, line in put_in:
        after.insert(min(at, len(after)), line)
    assert not compare_findings(text_of(before), said_of(before), text_of(after), said_of(after))


@pytest.mark.parametrize(
    ("added", "fixed", "text"),
    [
        ([], 0, "nothing new"),
        (["1"], 2, "adds 1 error, fixes 2"),
        (["1", "2", "3 w"], 0, "adds 2 errors, 1 warning"),
        (["1 i", "2 i"], 1, "adds 2 remarks, fixes 1"),
        ([], 1, "fixes 1"),
    ],
)
def test_verdict(added: list[str], fixed: int, text: str) -> None:
    assert verdict(map(finding, added), fixed) == text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"state": "running"}, "checking …"),
        ({"state": "failed", "message": "It ended."}, "could not check: It ended."),
        ({"fixed": 1}, "fixes 1"),
        ({"about": "applied"}, "nothing new now that it is applied"),
    ],
)
def test_a_check_in_words(changes: dict[str, Any], text: str) -> None:
    check = Check.model_validate({"checker": "ruff", "about": "proposed", "state": "done", **changes})
    assert with_summary(check).summary == text


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "`os` imported but unused\nhelp: Remove unused import: `os`",
            "`os` imported but unused · help: Remove unused import: `os`",
        ),
        ("Not assignable\n\n   `int` is\tno `str`\n", "Not assignable · `int` is no `str`"),
    ],
)
def test_the_lines_of_a_message_stay_apart_on_one_line(message: str, expected: str) -> None:
    found = Finding(lines=LineRange.numbered(1, 1), severity="error", message=message, source="toy", code="T1")
    assert format_finding(found) == f"1: error: {expected} (toy T1)"
