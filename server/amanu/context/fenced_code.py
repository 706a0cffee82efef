"""Where a Markdown text is fenced code, in which nothing means anything: no heading, no list, no mention."""

import re
from collections.abc import Iterator, Sequence

_FENCE = re.compile(r"[ \t>]*(`{3,}(?=[^`]*$)|~{3,})")
"""Backticks with one after them are a code span (CommonMark 4.5)."""


def outside_fences(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines that are in no fenced code, without their ends, and where they are."""
    fence = ""
    for index, whole in enumerate(lines):
        line = whole.rstrip("\r\n")
        match = _FENCE.match(line)
        if fence:
            if match is not None and match[1].startswith(fence) and not line[match.end() :].strip():
                fence = ""
        elif match is not None:
            fence = match[1]
        else:
            yield index, line
