"""Text of a file, and how it goes back to exactly the bytes it came from.

Work is on bytes: no universal newlines, no `errors=replace`, no lost byte order mark. Decoding is only done
where encoding the result gives the same bytes again.
"""

import codecs
import functools
import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from amanu.core.tool import ToolError
from amanu.system.file_kind import PDF, kind_of, shown_type

MAX_FILE = 20 * 1024 * 1024
"""Bytes of the biggest file we read as text; Gemini CLI's limit."""

REMEMBERED = 64 * 1024
"""Characters from which the lines of a text are kept for a while: an edit asks for those of the same few texts (before,
after, as proposed) a dozen times."""

LineEnd = Literal["\n", "\r\n", "\r"]

_BOMS: tuple[tuple[bytes, str, str], ...] = (  # UTF-32 first: its little-endian mark begins like UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32-le-bom", "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be-bom", "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8-bom", "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le-bom", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be-bom", "utf-16-be"),
)


class BinaryFile(ToolError):
    """The file is no text."""

    def __init__(self, message: str, shown_type: str = "") -> None:
        """`shown_type`: media type of what models can be shown (`system/file_kind.py`); "" for anything else."""
        super().__init__(message)
        self.shown_type = shown_type


_SNIFFED = 8192  # bytes looked at for a NUL; git's heuristic for "binary" looks at 8,000
_NEVER_IN_TEXT = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
"""Control characters that are in no text of an older encoding; a bell, tabs, line ends and terminal colours are."""


@dataclass(frozen=True)
class FileText:
    """What a file says now: the text of its open buffer, else its bytes on disk."""

    path: Path
    text: str
    sha256: str
    """Of the bytes on disk, or of the buffer's text in UTF-8 when `from_buffer`."""
    encoding: str = "utf-8"
    """"utf-8", "latin-1", or with a byte order mark: "utf-8-bom", "utf-16-le-bom" …"""
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

    def with_text(self, text: str) -> "FileText":
        return replace(self, text=text)

    def as_base(self, text: str) -> "FileText":
        """The same file with that text, and its hash. Raises `ToolError` like `encode`."""
        if text == self.text:
            return self
        data = text.encode("utf-8", "surrogatepass") if self.from_buffer else self.encode(text)
        return replace(self, text=text, sha256=sha256(data))


def decode(data: bytes, path: Path) -> tuple[str, str]:
    """(text, encoding), such that `encode` gives back `data`. Raises `BinaryFile`, which says what it is."""
    for mark, name, codec in _BOMS:
        if data.startswith(mark):
            try:
                text = data[len(mark) :].decode(codec)
            except UnicodeDecodeError:
                break
            if encode(text, name) == data:
                return text, name
            break
    if b"\0" in data[:_SNIFFED]:
        raise _binary_file(data, path)
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        if shown_type(data) or _NEVER_IN_TEXT.search(data, 0, _SNIFFED):
            raise _binary_file(data, path) from None
        return data.decode("latin-1"), "latin-1"


def _binary_file(data: bytes, path: Path) -> BinaryFile:
    kind = shown_type(data)
    use = "read_file reads its pages" if kind == PDF else "read_file shows it" if kind else "it cannot be read as text"
    about = f"{kind_of(data, path.name)}, {len(data):,} bytes"
    return BinaryFile(f"{path.name} is a binary file ({about}); {use}.", kind)


def encode(text: str, encoding: str) -> bytes:
    """The bytes of `text`. Raises `ToolError` when the encoding has no such character."""
    mark, codec = next(((mark, codec) for mark, name, codec in _BOMS if name == encoding), (b"", encoding))
    try:
        return mark + text.encode(codec)
    except UnicodeEncodeError as error:
        bad = text[error.start]
        raise ToolError(
            f"The file is in {encoding}, which cannot hold the character {bad!r} (U+{ord(bad):04X}). "
            "Write the change without it."
        ) from None


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def split_lines(text: str) -> Sequence[str]:
    """Lines with their ends. Only LF, CRLF and CR end a line, as in LSP; not form feed or U+2028, as
    `str.splitlines` has it."""
    return _split(text) if len(text) < REMEMBERED else _remembered(text)


def _split(text: str) -> Sequence[str]:
    return io.StringIO(text, newline="").readlines()


_remembered = functools.lru_cache(maxsize=4)(_split)


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
    if encoding == "latin-1" or "\r" in text.replace("\r\n", ""):
        return False
    return line_end(text) is not None or "\n" not in text


def as_editors_show(data: bytes, text: str) -> set[str]:
    """The texts an editor may show of an unchanged file that does not survive it: line ends made equal,
    undecodable bytes replaced."""
    forms: set[str] = set()
    for decoded in (text, data.decode("utf-8", "replace")):
        plain = decoded.replace("\r\n", "\n")
        for feeds in (plain, plain.replace("\r", "\n")):
            forms |= {feeds, feeds.replace("\n", "\r\n")}
    return forms | {text}
