"""What a page says: HTML as text. A program of its own (`python -P -m amanu.web.page_text`), so that a hostile
page can be given up on, and the daemon never loads what reads it.

Input: one line of JSON `{"charset", "url"}`, then the page. Output: JSON, `{"title", "text", "cut"}`, or
`{"error"}`.
"""

import codecs
import contextlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from amanu_protocol import hidden

MEMORY = 1 << 30
"""Bytes the program may take."""
SECONDS = 20
"""Of the processor."""
MAX_CHARACTERS = 2_000_000
_PIECE = 1 << 16
"""Bytes or characters worked on at once: the daemon reads plain text itself, and others get their turn in between."""

_CHARSETS = re.compile(
    r"utf-?8|us-ascii|ascii|latin-?1|utf-16(?:le|be)?|iso-?8859-\d{1,2}|windows-125\d|cp125\d|koi8-[ru]|macintosh|gbk|"
    r"gb2312|gb18030|big5|shift[_-]jis|sjis|euc-(?:jp|kr)|iso-2022-jp|windows-31j",
    re.IGNORECASE,
)
"""Python knows others, some of which are no text, or take for ever."""
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w-]{2,30})""", re.IGNORECASE)
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_HIDDEN = re.compile(hidden.pattern())


@dataclass(frozen=True)
class PageText:
    """A page as text: Markdown, or the text as it was."""

    title: str
    text: str
    cut: bool = False
    """There was more than is read."""


def decode(data: bytes, charset: str, *, is_html: bool) -> str:
    """By its byte order mark, the charset it was sent with, what it says itself, else UTF-8. Never fails."""
    marked = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    named = _META_CHARSET.search(data[:2048]) if is_html and not charset else None
    name = marked or charset or (named[1].decode("ascii") if named else "utf-8")
    if marked is None and not _CHARSETS.fullmatch(name):
        name = "utf-8"
    if marked is None and name.lower() == "utf-16":
        name = "utf-16le"
    try:
        decoder = codecs.getincrementaldecoder(name)("replace")
    except LookupError:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return "".join(_decode_pieces(data, decoder))


def _decode_pieces(data: bytes, decoder: codecs.IncrementalDecoder) -> Iterator[str]:
    for start in range(0, len(data), _PIECE):
        piece, is_last = data[start : start + _PIECE], start + _PIECE >= len(data)
        try:
            yield decoder.decode(piece, is_last)
        except UnicodeError:  # iso-2022-jp keeps only so much of an escape sequence for the next piece
            decoder.reset()
            yield decoder.decode(piece, True)


def plain(text: str) -> str:
    """The text without invisible characters, its line ends as line feeds."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(_HIDDEN.sub("", text[start : start + _PIECE]) for start in range(0, len(text), _PIECE))


def html_text(source: str, url: str) -> PageText:
    """The visible content of an HTML page as Markdown: no scripts, nothing hidden, only links that lead to the web."""
    from amanu.web.html_markdown import MarkdownWriter  # not in the daemon
    from amanu.web.html_reader import HtmlReader

    writer = MarkdownWriter(url)
    reader = HtmlReader(writer)
    reader.feed(source)
    reader.close()
    return PageText(plain(reader.title).strip(), plain(writer.written()).strip())


def main() -> int:
    _limit()
    about: dict[str, str] = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    try:
        page = html_text(decode(data, about["charset"], is_html=True), about["url"])
        cut = page.cut or len(page.text) > MAX_CHARACTERS
        answer = {"title": page.title[:300], "text": page.text[:MAX_CHARACTERS], "cut": cut}
    except ValueError as error:
        answer = {"error": str(error)[:500]}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))
    return 0


def _limit() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
