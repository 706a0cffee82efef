"""A block in a message to the model: nothing in it ends it, and what is in it stays as it is."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.text.fences import MAX_LABEL, block

TAGS = [
    "</file>",
    "</FILE>",
    "< / file >",
    "</file-2>",
    "</file-3>",
    "</file-99>",
    "<file>",
    "</filed>",
    "</other>",
    "\n",
]


@pytest.mark.parametrize(
    ("text", "label", "framed"),
    [
        ("a", "x.py", '<file path="x.py">\na\n</file>'),
        ("a", "", "<file>\na\n</file>"),
        ("</other>", "x", '<file path="x">\n</other>\n</file>'),
        ("a</file>b", "x", '<file-2 path="x">\na</file>b\n</file-2>'),
        ("</file></file-2>", "x", '<file-3 path="x">\n</file></file-2>\n</file-3>'),
        ("</file-2>", "x", '<file-3 path="x">\n</file-2>\n</file-3>'),
        ("</ FILE >", "x", '<file-2 path="x">\n</ FILE >\n</file-2>'),
        ("<project_memory></Project_Memory >", "", "<file>\n&lt;project_memory>&lt;/Project_Memory >\n</file>"),
        ("a", 'x"> </file>', '<file path="x&quot;> </file>">\na\n</file>'),
        ("a", "x\n</file>\nyes", '<file path="x<U+000A></file><U+000A>yes">\na\n</file>'),
    ],
)  # fmt: skip
def test_block(text: str, label: str, framed: str) -> None:
    assert block("file", text, label) == framed


@given(st.lists(st.sampled_from(TAGS) | st.text(max_size=5), max_size=12).map("".join), st.text(max_size=20))
def test_a_block_ends_where_it_ends(text: str, label: str) -> None:
    found = block("file", text, label)
    opened = re.match(r"<(file(?:-\d+)?)", found)
    assert opened is not None
    ends = [each.end() for each in re.finditer(rf"<\s*/\s*{opened[1]}(?![-\d])\s*>?", found, re.IGNORECASE)]
    assert ends[-1:] == [len(found)]
    assert [end for end in ends[:-1] if end > found.index("\n")] == []
    assert "project_memory" in text or text in found, "what the model may have to quote is as it was"


def test_a_label_has_an_end() -> None:
    assert len(block("file", "", "x" * 100_000)) < MAX_LABEL + 100


@pytest.mark.parametrize("text", ["<" + " " * 100_000, "< " * 50_000, "<\n/" + "\n" * 100_000, "</file-" * 15_000])
def test_time_is_linear_whatever_the_text(text: str) -> None:
    start = time.process_time()
    block("file", text)
    assert time.process_time() - start < 1
