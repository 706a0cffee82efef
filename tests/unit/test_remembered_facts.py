"""The section of remembered facts: what is added or struck, and that all else stays as it is, to the byte."""

import time

import pytest

from amanu.context.remembered_facts import MAX_FACT, facts, one_fact, with_fact, without_fact
from amanu.core.tool import ToolError

S = "## Remembered\n\n"
NESTED = (
    f"# Rules\n\n{S}- one\n  more of it\n  - below\n\n  a paragraph of it\n"
    "* two\n1. not a fact\n\nwords\n- three\n\n# End\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", f"{S}- new\n"),
        ("\n", f"\n{S}- new\n"),
        ("# Rules", f"# Rules\n\n{S}- new\n"),
        ("# Rules\n\n", f"# Rules\n\n{S}- new\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n\r\n## Remembered\r\n\r\n- new\r\n"),
        (f"{S}- old", f"{S}- old\n- new\n"),
        (f"{S}- old\n\n## Next\ntext  \n", f"{S}- old\n- new\n\n## Next\ntext  \n"),
        (f"{S}- old\n\nNext\n====\n- theirs\n", f"{S}- old\n- new\n\nNext\n====\n- theirs\n"),
        (f"{S}- old\n\n### Their own\n\n- deep\n", f"{S}- old\n\n### Their own\n\n- deep\n- new\n"),
        (f"{S}* old\n  - deep\n\n  more\n\nAfter.\n", f"{S}* old\n  - deep\n\n  more\n- new\n\nAfter.\n"),
        ("## Remembered\n", f"{S}- new\n"),
        ("## Remembered", f"{S}- new\n"),
        ("## Remembered\nWords.\n", f"{S}- new\n\nWords.\n"),
        ("## remembered ##\n\n\n- old\n\t- deep\n", "## remembered ##\n\n\n- old\n\t- deep\n- new\n"),
        (f"```\n{S}- code\n```\n", f"```\n{S}- code\n```\n\n{S}- new\n"),
        (f"{S}- old\n```\n# no\n- code\n```\n\n# Next\n", f"{S}- old\n- new\n```\n# no\n- code\n```\n\n# Next\n"),
        (NESTED, NESTED.replace("- three\n", "- three\n- new\n")),
        ("```make check``` runs them.\n", f"```make check``` runs them.\n\n{S}- new\n"),
        (f"{S}- old\n      ```\n      ## no\n      ```\n", f"{S}- old\n      ```\n      ## no\n      ```\n- new\n"),
    ],
)  # fmt: skip
def test_a_fact_is_added(text: str, expected: str) -> None:
    result = with_fact(text, "new")
    assert result == expected
    (added,) = [fact for fact in facts(result) if fact.text == "new"]
    assert result.replace("- new", "", 1) != result and without_fact(result, added).startswith(text.rstrip()[:1])
    assert [fact.text for fact in facts(without_fact(result, added))] == [fact.text for fact in facts(text)]
    with pytest.raises(ToolError, match="already"):
        with_fact(result, "new")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("- none\n", []),
        (f"{S}- a\n-  b   c\n+ d\n-none\n", ["a", "b c", "d"]),
        (NESTED, ["one more of it - below a paragraph of it", "two", "three"]),
        (f"{S}- a\n\n## Other\n- b\n\n## Remembered\n- c\n", ["a", "c"]),
        (f"{S}- a\u202eb\x07\n", ["a<U+202E>b<U+0007>"]),
    ],
)
def test_facts_are_listed_and_each_can_be_struck(text: str, expected: list[str]) -> None:
    found = facts(text)
    assert [fact.text for fact in found] == expected
    lines = text.splitlines(keepends=True)
    for fact in found:
        left = without_fact(text, fact)
        assert left == "".join(lines[: fact.start] + lines[fact.end :])
        assert [other.text for other in facts(left)] == [other.text for other in found if other is not fact]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Use tabs. ", "Use tabs."),
        ("- Use tabs.", "Use tabs."),
        ("## Remembered\n- Use\r\n\ttabs.", "Remembered - Use tabs."),
        ("1. > # Use tabs.", "Use tabs."),
        ("-Wall is set", "-Wall is set"),
        ("a\u2028b\x1bc\u200bd", "a b<U+001B>c<U+200B>d"),
        ("Write `@docs/a.md` so.", "Write `@docs/a.md` so."),
        ("x" * MAX_FACT, "x" * MAX_FACT),
    ],
)
def test_a_fact_is_one_line(text: str, expected: str) -> None:
    assert one_fact(text) == expected
    assert [fact.text for fact in facts(with_fact("", expected))] == [expected]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("- ", "empty"),
        ("---", "empty"),
        ("x " * 5000, "too long"),
        ("Read @~/notes.md first", "import a file"),
    ],
)
def test_what_is_no_fact_is_refused(text: str, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        one_fact(text)


@pytest.mark.parametrize(("text", "says"), [("```\ncode\n", "not closed"), ("x" * 64 * 1024, "full")])
def test_a_file_that_can_take_no_more(text: str, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        with_fact(text, "new")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Quote with ` in Lua.", "See `@~/notes/private.md` for more."),
        ("Fences are ``` there.", "Or ```@~/notes/private.md``` then."),
    ],
)
def test_no_two_facts_make_an_import(first: str, second: str) -> None:
    text = with_fact("", one_fact(first))
    with pytest.raises(ToolError, match=r"import a file.*without @ and `"):
        with_fact(text, one_fact(second))


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("See @docs/a.md\n", "Read `@docs/a.md` first."),
        (f"{S}- Use `make`.\n", "See `@~/notes/private.md`."),
    ],
)
def test_what_is_imported_already_or_stands_in_code_can_be_remembered(text: str, fact: str) -> None:
    assert with_fact(text, one_fact(fact)).endswith(f"- {fact}\n")


def test_a_fact_that_would_not_be_found_again_is_refused() -> None:
    with pytest.raises(ToolError, match="list item of its own"):
        with_fact(S, "two\n- facts")


def test_time_is_linear_whatever_the_file() -> None:
    start = time.process_time()
    assert facts("## Remembered" + " " * 60_000 + "x") == []
    with pytest.raises(ToolError, match="full"):
        with_fact("## Remembered\n" * 100_000, "new")
    assert time.process_time() - start < 1
