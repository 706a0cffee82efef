"""Lines on a terminal: broken between words, what follows hangs below the text; or shown to the letter."""

import io
import re

import pytest

from amanu.cli.console import RichConsole
from amanu.cli.styles import Style

LINES = [
    ("one two three four five", None, "one two three\nfour five\n"),
    ("  one two three four", None, "  one two three\n  four\n"),
    ("✗ one two three four", None, "✗ one two three\n  four\n"),
    ("    1 one two three", None, "    1 one two\n      three\n"),
    ("  14: error: no name", None, "  14: error: no\n      name\n"),
    ("  ☐ write the failing test", None, "  ☐ write the\n    failing test\n"),
    ("/mode  one two three", 7, "/mode  one two\n       three\n"),
    ("  one two three four", 6, "  one two three\n      four\n"),
    ("at /a/long/path/of/many", None, "at\n/a/long/path/of/\nmany\n"),
    ("日本語日本語 日本語日本語", None, "日本語日本語\n日本語日本語\n"),
    ("- one\n- two three four five", None, "- one\n- two three four\nfive\n"),
    ("short", 6, "short\n"),
    ("", None, "\n"),
]


@pytest.mark.parametrize(("text", "hang", "expected"), LINES)
def test_a_long_line_is_broken_between_words(text: str, hang: int | None, expected: str) -> None:
    out = io.StringIO()
    RichConsole(out, colour=False, width=16).line(("", text), hang=hang)
    assert out.getvalue() == expected


def test_what_is_to_the_letter_is_not_broken() -> None:
    out = io.StringIO()
    RichConsole(out, colour=False, width=16).verbatim(("", "    one two three   four five"))
    assert out.getvalue() == "    one two three   four five\n"


MARKDOWN = [
    ("# Title", "", "<1>Title</>\n\n"),
    ("## Part", "", "<4;95>Part</>\n\n"),
    ("one `two` three", "", "one <1;36>two</> three\n\n"),
    ("one\n\ntwo", "", "one\n\ntwo\n\n"),
    ("a thought\n- of", "dim", "<2>a thought</>\n\n<1;2> • </><2>of</>\n\n"),
    ("```py\nx = 1  # a\n\ty\n```", "", "  x = <36>1</>  <2># a</>\n      y\n\n"),
    ("```\nx\n```", "", "  x\n\n"),
    ("```no-such-language\nx\n```", "", "  x\n\n"),
    ("    indented", "", "  indented\n\n"),
    ("1. one\n2. two", "", "<36> 1. </>one\n<36> 2. </>two\n\n"),
    ("9. nine\n10. ten", "", "<36>  9. </>nine\n<36> 10. </>ten\n\n"),
    ("> said", "", "<95>▌ </><95>said</>\n\n"),
    ("  below an item\n  of a list", "", "  below an item of a list\n\n"),
    ("| a | b |\n|---|---|\n| 1 | 2 |", "", "<1;36>a</><1> </><36> </><1;36>b</>\n<36>────</>\n1 <36> </>2\n\n"),
]


@pytest.mark.parametrize(("text", "style", "expected"), MARKDOWN)
def test_markdown_has_the_terminals_own_colours_and_no_background(text: str, style: Style, expected: str) -> None:
    out = io.StringIO()
    RichConsole(out, colour=True, width=160).markdown(text, style)
    assert re.sub(r"\x1b\[([0-9;]+)m", r"<\1>", out.getvalue()).replace("<0>", "</>") == expected
