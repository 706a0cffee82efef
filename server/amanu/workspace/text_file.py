"""Text of a file, and its lines."""

import functools
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from amanu.workspace.encodings import check_new, decode_as, encode, is_guess, is_unicode, with_line_ends

MAX_FILE = 20 * 1024 * 1024
"""Bytes of the biggest file we read as text; Gemini CLI's limit."""

REMEMBERED = 64 * 1024
"""Characters from which the lines of a text are kept for a while: an edit asks for those of the same few texts (before,
after, as proposed) a dozen times."""

LineEnd = Literal["\n", "\r\n", "\r"]


@dataclass(frozen=True)
class FileText:
    """What a file says now: the text of its open buffer, else its bytes on disk."""

    path: Path
    text: str
    sha256: str
    """Of the bytes on disk, or of the buffer's text in UTF-8 when `from_buffer`."""
    encoding: str = "utf-8"
    """"utf-8", or with a byte order mark "utf-8-bom", "utf-16-le-bom" …; without one "utf-16-le" …; an older one, as
    "gbk" or "cp1252 or cp1250"; with `OTHER_BYTES` or `GUESSED` behind it; else `UNKNOWN`."""
    exists: bool = True
    """On disk."""
    from_buffer: bool = False
    version: int | None = None
    """Of the document, when `from_buffer`."""
    unsaved: bool = False
    """The editor's text is not what is on disk."""
    lossy: bool = False
    """Unsaved, and the editor could not give back the bytes the file has on disk where they are unchanged."""
    mode: int | None = None
    """Permission bits on disk."""
    draft: bool = False
    """The session has drafted this text: it is proposed, and the user has not decided on it yet."""

    @property
    def line_end(self) -> LineEnd | None:
        """The line end all lines have; None when there is none or they differ."""
        return line_end(self.text)

    @property
    def final_newline(self) -> bool:
        return self.text.endswith(("\n", "\r"))

    def encode(self, text: str) -> bytes:
        """`text` as bytes of this file. Raises `ToolError` when its encoding has no such character."""
        return encode(text, self.encoding)

    def check_new(self, text: str) -> None:
        """Raises `ToolError` if the file, which is to have that text, then has characters whose bytes are not known."""
        check_new(text, self.text, self.encoding)

    def read_as(self, encoding: str) -> "FileText":
        """The same file in the encoding that it had before, if only its bytes speak for the one it is read in now: an
        edit may leave too few characters to guess from."""
        is_open_to_doubt = is_guess(self.encoding) or self.text.isascii() or encoding.startswith(self.encoding)
        if self.from_buffer or encoding == self.encoding or not is_open_to_doubt:
            return self
        found = decode_as(self.encode(self.text), encoding)
        return self if found is None else replace(self, text=found[0], encoding=found[1])

    def with_text(self, text: str) -> "FileText":
        return replace(self, text=text)

    def as_base(self, text: str) -> "FileText":
        """The same file with that text, and its hash. Raises `ToolError` like `encode`."""
        if text == self.text:
            return self
        data = text.encode("utf-8", "surrogatepass") if self.from_buffer else self.encode(text)
        return replace(self, text=text, sha256=sha256(data))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def split_lines(text: str) -> Sequence[str]:
    """Lines with their ends. Only LF, CRLF and CR end a line, as in LSP; not form feed or U+2028, as
    `str.splitlines` has it."""
    return _split(text) if len(text) < REMEMBERED else _remembered(text)


def _split(text: str) -> Sequence[str]:
    return io.StringIO(text, newline="").readlines()


_remembered = functools.lru_cache(maxsize=4)(_split)


def line_count(text: str) -> int:
    """The number of lines that `split_lines` finds."""
    if "\r" in text:
        return len(split_lines(text))
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def line_end(text: str) -> LineEnd | None:
    """The line end all lines of `text` have; None when there is none or they differ."""
    if "\r" not in text:
        return "\n" if "\n" in text else None
    both, feeds, returns = text.count("\r\n"), text.count("\n"), text.count("\r")
    match (feeds - both, both, returns - both):
        case (n, 0, 0) if n:
            return "\n"
        case (0, n, 0) if n:
            return "\r\n"
        case (0, 0, n) if n:
            return "\r"
        case _:
            return None


def survives(text: str, encoding: str) -> bool:
    """Whether an editor that opens such a file and saves it unchanged writes the same bytes: no mixed line
    ends, no lone CR, no encoding it would have to guess."""
    if not is_unicode(encoding) or "\r" in text.replace("\r\n", ""):
        return False
    return line_end(text) is not None or "\n" not in text


def as_editors_show(data: bytes, text: str) -> set[str]:
    """The texts an editor may show of an unchanged file that does not survive it: line ends made equal,
    undecodable bytes replaced."""
    return {text} | with_line_ends(text) | with_line_ends(data.decode("utf-8", "replace"))
