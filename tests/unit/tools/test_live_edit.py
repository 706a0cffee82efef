"""An edit while it is written: the same however it is cut, and nothing before the path is known."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from amanu.core.tool import LiveCall
from amanu.tools.edits.live_edit import GOES_ON, READ, SHOWN, LiveEdit, LivePatch


def edit() -> LiveCall:
    return LiveEdit(titled, {"old_text": "-", "new_text": "+", "content": "+"})


def patch() -> LiveCall:
    return LivePatch("patch", str.upper)


def titled(arguments: Mapping[str, Any]) -> str:
    return f"Edit {arguments['path']}"


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"


@pytest.mark.parametrize(
    ("make", "arguments", "title", "shown"),
    [
        (edit, {"path": "a.py", "old_text": "x\n", "new_text": "y\nz"}, "Edit a.py", "-x\n+y\n+z\n"),
        (edit, {"path": "a.py", "content": "\n\nx\r\n\r\ny"}, "Edit a.py", "+\n+\n+x\n+\n+y\n"),
        (edit, {"path": "a.py", "old_text": "", "new_text": "x"}, "Edit a.py", "+x\n"),
        (edit, {"new_text": "y\n", "old_text": "x\n", "path": "é.py"}, "Edit é.py", "+y\n-x\n"),
        (
            edit,
            {"path": "a", "edits": [{"old_text": "a", "new_text": "b"}, {"old_text": "c", "new_text": "d"}]},
            "Edit a",
            "-a\n+b\n@@\n-c\n+d\n",
        ),
        (edit, {"edits": [{"path": "no.py", "new_text": "b"}], "path": "a"}, "Edit a", "+b\n"),
        (edit, {"path": "a", "content": "\x1b[31mred\u202e\ttab\n"}, "Edit a", "+<U+001B>[31mred<U+202E>\ttab\n"),
        (edit, {"path": "a", "content": "\r\n\rx", "other": "no", "path2": "b"}, "Edit a", "+\n+<U+000D>x\n"),
        (edit, {"content": "no path\n"}, None, ""),
        (edit, {"path": ["a"], "content": "x\n"}, None, ""),
        (edit, {"path": "a", "content": ["x"]}, "Edit a", ""),
        (patch, {"patch": PATCH}, "Edit A.PY", f"{PATCH}\n"),
        (
            patch,
            {"patch": "*** Add File: a b\n+x\n*** Delete File: c\n"},
            "Create A B",
            "*** Add File: a b\n+x\n*** Delete File: c\n",
        ),
        (patch, {"patch": "*** Delete File: c"}, "Delete C", "*** Delete File: c\n"),
        (patch, {"patch": "--- a/x\n+++ b/x\t2020\n-a\n"}, "Edit X", "--- a/x\n+++ b/x\t2020\n-a\n"),
        (patch, {"patch": "--- a/x\n+++ /dev/null\n"}, "Edit X", "--- a/x\n+++ /dev/null\n"),
        (patch, {"patch": "no\nheader\n"}, None, ""),
    ],
)
def test_shown(make: Callable[[], LiveCall], arguments: Any, title: str | None, shown: str) -> None:
    text = json.dumps(arguments)
    for pieces in ([text], list(text), *([text[:at], text[at:]] for at in range(len(text)))):
        live = make()
        assert ("".join(map(live.feed, pieces)), live.title) == (shown, title)


@pytest.mark.parametrize(
    ("make", "written", "expected"),
    [
        (edit, '{"path": "a.p', (None, "")),
        (edit, '{"path": "a.py", "old_t', ("Edit a.py", "")),
        (edit, r'{"path": "a.py", "content": "one\ntwo', ("Edit a.py", "+one\n")),
        (edit, r'{"content": "one\ntwo\n", "path": "a.py', (None, "")),
        (patch, r'{"patch": "*** Begin Patch\n*** Update File: a', (None, "")),
    ],
)
def test_only_whole_lines_and_not_before_the_path(
    make: Callable[[], LiveCall], written: str, expected: tuple[str | None, str]
) -> None:
    live = make()
    shown = live.feed(written)
    assert (live.title, shown) == expected


@pytest.mark.parametrize("line", ["x", "x\n", "some code\n"])
def test_a_long_live_edit_says_that_it_goes_on(line: str) -> None:
    live = edit()
    text = json.dumps({"path": "a", "content": line * (2 * SHOWN)})
    shown = "".join(live.feed(text[at : at + 50]) for at in range(0, len(text), 50))
    assert shown.endswith(f"\n{GOES_ON}")
    assert shown.count(GOES_ON) == 1
    assert abs(len(shown.replace("\n+", "\n")) - SHOWN) < 50


def test_a_path_after_too_much_text_is_not_waited_for() -> None:
    live = edit()
    text = json.dumps({"content": "x" * READ, "path": "a"})
    pieces = [text[at : at + 40] for at in range(0, len(text), 40)]
    assert ("".join(map(live.feed, pieces)), live.title) == ("", None)
