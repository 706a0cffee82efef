"""What is a mention, and how memory stands in the model's sight."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.context.memory_format import GONE, blocks, framed, in_blocks, in_note, mentions, merely_mentions, note


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("See @docs/style.md", [("docs/style.md",)]),
        ("See @docs/style.md, and @b.md.", [("docs/style.md,", "docs/style.md"), ("b.md.", "b.md")]),
        ("@a.md @a.md", [("a.md",)]),
        ("(@a.md) *@b.md* **@c.md**", [("a.md)", "a.md"), ("b.md*", "b.md"), ("c.md**", "c.md")]),
        ('@"my notes/a b.md" @"open', [("my notes/a b.md",)]),
        ("@~/x.md @/abs/y.md @./z.md @../up.md", [("~/x.md",), ("/abs/y.md",), ("./z.md",), ("../up.md",)]),
        ("- @a.md\n> @b.md\n# @c.md", [("a.md",), ("b.md",), ("c.md",)]),
        # Only a file of that name makes these an import.
        ("@dataclass and @types/node", [("dataclass",), ("types/node",)]),
        # No mentions at all.
        ("me@example.org, a@b.md", []),
        ("@@a.md user/@a.md", []),
        ("@ a.md @", []),
        # Code is not read.
        ("`@a.md` and @b.md", [("b.md",)]),
        ("``a ` @a.md`` @b.md", [("b.md",)]),
        ("a ` tick, @a.md and `` two", [("a.md",)]),
        ("a `tick\n\n@a.md` b", [("a.md",)]),
        ("```\n@a.md\n```\n@b.md", [("b.md",)]),
        ("~~~ sh\n@a.md\n```\n@c.md\n~~~\n@b.md", [("b.md",)]),
        ("````\n```\n@a.md\n```\n````\n@b.md", [("b.md",)]),
        ("  ```py\n  @a.md\n  ```\n@b.md", [("b.md",)]),
        ("```\n@a.md never closed", []),
        ("x ```@a.md``` y", []),
        ("```make check``` first.\n@a.md", [("a.md",)]),
    ],
)
def test_mentions(text: str, expected: list[tuple[str, ...]]) -> None:
    assert mentions(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@AGENTS.md", True),
        ("- @AGENTS.md\n\n* @b.md\n", True),
        ("See @AGENTS.md", False),
        ("", False),
        ("@a.md\n```\ncode\n```", False),
        ("@a.md `code`", False),
    ],
)
def test_a_file_that_only_mentions_others(text: str, expected: bool) -> None:
    assert merely_mentions(text) == expected


def test_reading_it_takes_time_in_proportion() -> None:
    for hostile in ("`" * 65_536, "` `` " * 13_000, "".join("`" * n + " " for n in range(360)), "@" * 65_536):
        began = time.process_time()
        mentions(hostile)
        assert time.process_time() - began < 0.5
    assert len(mentions(" ".join(f"@f{n}" for n in range(9_999)))) == 200


NASTY = st.text() | st.lists(
    st.sampled_from(
        ['<memory path="x">', "</memory>", "<project_memory>", "</project_memory>", "\n", "\r", "a", GONE, '"']
    )
).map("".join)
PATHS = st.sampled_from(["AGENTS.md", "sub/AGENTS.md", "/abs/CLAUDE.md"])


@given(st.dictionaries(PATHS, NASTY.map(framed).filter(bool)), NASTY, NASTY)
def test_what_was_told_is_read_from_what_was_said(files: dict[str, str], before: str, head: str) -> None:
    assert in_blocks(blocks(files.items())) == files
    assert in_note(f"{before}\n\n{note('Head:', files.items())}") == files
    assert "</memory>" not in framed(head)
    assert framed(framed(head)) == framed(head)


@pytest.mark.parametrize(
    "text", ["", "<project_memory>\n", "\n</project_memory>", "</project_memory>\n<project_memory>\n"]
)
def test_what_is_no_note(text: str) -> None:
    assert in_note(text) == {}
