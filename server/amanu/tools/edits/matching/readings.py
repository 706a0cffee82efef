"""Rungs 5, 6 and 8: `old` is read as what it was copied from: without the blank lines around it, with its escapes
resolved (`\\n`, `\\"`, `&lt;`), without line numbers.

Proof: so read, a stricter rung finds it; `new` is read the same way, and only if it is written the same way. Readings
that are found alike must give the same `new`.
"""

import html
import json
import re
from collections.abc import Callable, Sequence

from amanu.tools.edits.matching.place import Unproven
from amanu.workspace.text_file import split_lines

Reading = Callable[[str, str], tuple[str, str] | None]
"""(old, new) → as they were meant; None: not written that way. Raises `Unproven` when `old` is and `new` half is."""


def without_blank_edges(old_text: str, new_text: str) -> tuple[str, str] | None:
    """As many blank lines less at either end of both."""
    lines, written = split_lines(old_text), split_lines(new_text)
    lead = next((index for index, line in enumerate(lines) if line.strip()), 0)
    tail = next((index for index, line in enumerate(reversed(lines)) if line.strip()), 0)
    if not lead + tail or (written and lead + tail >= len(written)):
        return None
    edges = [*written[:lead], *written[len(written) - tail :]] if written else []
    if any(line.strip() for line in edges):
        return None
    return "".join(lines[lead : len(lines) - tail]), "".join(written[lead : len(written) - tail])


def as_json(old_text: str, new_text: str) -> tuple[str, str] | None:
    """Both are, as a whole, the inside of a JSON string: nothing in them would have to be escaped and is not."""
    try:
        meant, written = json.loads(f'"{old_text}"'), json.loads(f'"{new_text}"')
    except ValueError:
        return None
    return None if meant == old_text else (meant, written)


_ESCAPE = re.compile(r"\\([nrt\"'`\\/$])")
_MEANS = {"n": "\n", "r": "\r", "t": "\t"}


def _unescape(text: str, only: str) -> str:
    return _ESCAPE.sub(lambda match: _MEANS.get(match[1], match[1]) if match[1] in only else match[0], text)


def _escapes(only: str) -> Reading:
    def read(old_text: str, new_text: str) -> tuple[str, str] | None:
        meant = _unescape(old_text, only)
        if meant == old_text:
            return None
        written = _unescape(new_text, only)
        plain = ("n" in only and "\n" in new_text.rstrip("\n")) or _bare_quotes(new_text) > 0
        if written != new_text and plain:
            raise Unproven("old_text has escapes that the file does not have, and new_text has only some of them", -1)
        return meant, written

    def _bare_quotes(new_text: str) -> int:
        """Quotes that would be escaped, were the text written so."""
        quotes = [quote for quote in "\"'`" if quote in only and "\\" + quote in new_text]
        return sum(len(re.findall(rf"(?<!\\){quote}", new_text)) for quote in quotes)

    return read


def _entities(old_text: str, new_text: str) -> tuple[str, str] | None:
    meant = html.unescape(old_text) if re.search(r"&(?:lt|gt|amp|quot|apos|#39|#x27);", old_text) else old_text
    if meant == old_text:
        return None
    written = html.unescape(new_text)
    if written != new_text and ("<" in new_text or ">" in new_text):
        raise Unproven("old_text has entities that the file does not have, and new_text has only some of them", -1)
    return meant, written


ESCAPES: tuple[Reading, ...] = (
    _escapes("\"'`"),
    _escapes("\"'`\\/$"),
    _escapes("nrt"),
    _escapes("nrt\"'`\\/$"),
    _entities,
)

_NUMBERED = re.compile(r"^\s{0,8}L?(\d{1,7})(\t|:| ?\|| ?→| )")


def without_numbers(old_text: str, new_text: str) -> tuple[str, str] | None:
    """Lines numbered one after the other, as a tool that reads them prints them: "  12\\ttext", "12:text"."""
    return _without_numbers(old_text, new_text, blank="")


def without_numbers_and_blank(old_text: str, new_text: str) -> tuple[str, str] | None:
    """The same with a blank behind the mark: "12: text". A blank behind a tab is the line's own."""
    return _without_numbers(old_text, new_text, blank=" ")


def _without_numbers(old_text: str, new_text: str, blank: str) -> tuple[str, str] | None:
    lines = split_lines(old_text)
    match = _NUMBERED.match(lines[0]) if lines else None
    if match is None or (blank and match[2] == "\t"):
        return None
    mark = match[2] + blank
    plain = _unnumbered(lines, mark, rising=True)
    if plain is None:
        return None
    written = split_lines(new_text)
    unnumbered = _unnumbered(written, mark, rising=False)
    if unnumbered is None and any(line in lines for line in written if line.strip()):
        raise Unproven("old_text has line numbers, and new_text has them on some lines only", -1)
    return "".join(plain), new_text if unnumbered is None else "".join(unnumbered)


def _number(line: str, mark: str) -> tuple[int, str] | None:
    match = re.match(
        rf"^\s{{0,8}}L?(\d{{1,7}})(?:{re.escape(mark)}(.*)|{re.escape(mark.rstrip())}\s*)$", line, re.DOTALL
    )
    if match is None:
        return None
    ends = line[len(line.rstrip("\r\n")) :]
    return int(match[1]), ends if match[2] is None else match[2]


def _unnumbered(lines: Sequence[str], mark: str, *, rising: bool) -> list[str] | None:
    out: list[str] = []
    last: int | None = None
    for line in lines:
        match = _number(line, mark)
        if match is None or (rising and last is not None and match[0] != last + 1):
            return None
        last = match[0]
        out.append(match[1])
    return out
