"""Text of a file, and how it goes back to exactly the bytes it came from.

Work is on bytes: no universal newlines, no `errors=replace`, no lost byte order mark. Decoding is only done
where encoding the result gives the same bytes again.
"""

import codecs
import functools
import hashlib
import io
import re
from collections import Counter
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


UNKNOWN = "unknown-8bit"
"""The encoding of a file that is not UTF-8 and does not say what it is (the name is RFC 1428's). Its bytes are shown as
those of latin-1, and go back as they came; no further character can be written that way."""

_LEGACY = (
    "latin-1 cp1252 iso8859-15 cp1250 iso8859-2 cp1251 koi8-r koi8-u cp866 iso8859-5 cp1253 iso8859-7 cp1254 iso8859-9 "
    "cp1255 iso8859-8 cp1256 iso8859-6 cp1257 iso8859-4 iso8859-13 iso8859-10 iso8859-14 iso8859-16 iso8859-3 cp1258 "
    "cp874 cp437 cp850 cp852 mac-roman gbk gb18030 gb2312 big5 cp950 cp932 shift_jis euc_jp cp949 euc_kr"
)
"""Names of encodings without a mark that editors offer and in which ASCII is ASCII."""
_OR = " or "
"""Between the names of an encoding that may be any of several: the file's bytes are the same text in all."""
_DECLARED = re.compile(
    rb"""^(?:[^\r\n]*\r?\n)?[ \t\f]*(?:\#|//|/\*|--|;|%|"|<!--|<\?xml\b)[^\r\n]*?coding[:=][ \t]*["']?([-\w.]+)""",
    re.ASCII,
)
"""A comment in the first two lines that names the encoding: PEP 263's, which covers Emacs, Vim and XML, in comments of
other languages, too."""
_NO_LATIN_1 = re.compile(rb"[\x80-\x9f]|[\x80-\xff]{2}")
"""An editor that knows no better may show any bytes as latin-1. Such bytes are rather something else."""
_LINE_BEYOND_ASCII = re.compile(rb"[^\r\n]*[\x80-\xff][^\r\n]*")
_BEYOND_ASCII = re.compile("[^\0-\x7f]+[0-9@-~]?")
"""Characters beyond ASCII, with the byte after them: in some encodings it is part of the last one."""


@dataclass(frozen=True)
class FileText:
    """What a file says now: the text of its open buffer, else its bytes on disk."""

    path: Path
    text: str
    sha256: str
    """Of the bytes on disk, or of the buffer's text in UTF-8 when `from_buffer`."""
    encoding: str = "utf-8"
    """"utf-8", or with a byte order mark: "utf-8-bom", "utf-16-le-bom" …; an older one that is known: "latin-1", "gbk",
    "cp1252 or cp1250" …; else `UNKNOWN`."""
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
        """Raises `ToolError` when the file, which is to have that `text`, is in an unknown encoding, and characters
        beyond ASCII are new in it."""
        if self.encoding == UNKNOWN:
            new = Counter(_BEYOND_ASCII.findall(text)) - Counter(_BEYOND_ASCII.findall(self.text))
            if new:
                raise _unwritable(next(iter(new))[0], UNKNOWN)

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
        if (declared := _DECLARED.match(data)) is not None:
            encoding = _legacy(declared[1].decode())
            if encoding is not None and (text := _exactly(data, encoding)) is not None:
                return text, encoding
        return data.decode("latin-1"), UNKNOWN


def decode_as(data: bytes, encoding: str) -> str | None:
    """The text of bytes that are in that older encoding; None if they are not."""
    return None if is_unicode(encoding) else _exactly(data, encoding.partition(_OR)[0])


def decode_as_shown(data: bytes, shown: str) -> tuple[str, str] | None:
    """(text, encoding) of a file in an older encoding that an editor shows as that; None where no encoding gives it."""
    latin_1 = data.decode("latin-1")
    if shown in _with_line_ends(latin_1):
        return latin_1, UNKNOWN if _NO_LATIN_1.search(data) else "latin-1"
    line = _LINE_BEYOND_ASCII.search(data)
    if line is None:
        return None
    found: dict[str, str] = {}
    for encoding in _LEGACY.split():
        sample = _exactly(line[0], encoding)
        if sample is None or sample not in shown:
            continue
        text = _exactly(data, encoding)
        if text is not None and shown in _with_line_ends(text):
            found[encoding] = text
    return (next(iter(found.values())), _OR.join(found)) if found else None


def same_bytes(encoding: str, other: str) -> bool:
    """Whether a text is the same bytes in both."""
    return encoding == other or {encoding, other} == {"latin-1", UNKNOWN}


def _legacy(name: str) -> str | None:
    try:
        found = codecs.lookup(name)
    except LookupError:
        return None
    return next((encoding for encoding in _LEGACY.split() if codecs.lookup(encoding).name == found.name), None)


def _exactly(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
        return text if text.encode(encoding) == data else None
    except UnicodeError:
        return None


def _binary_file(data: bytes, path: Path) -> BinaryFile:
    kind = shown_type(data)
    use = "read_file reads its pages" if kind == PDF else "read_file shows it" if kind else "it cannot be read as text"
    about = f"{kind_of(data, path.name)}, {len(data):,} bytes"
    return BinaryFile(f"{path.name} is a binary file ({about}); {use}.", kind)


def encode(text: str, encoding: str) -> bytes:
    """The bytes of `text`. Raises `ToolError` when the encoding has no such character."""
    for mark, name, codec in _BOMS:
        if name == encoding:
            return mark + _encoded(text, codec, encoding)
    if encoding == UNKNOWN:
        return _encoded(text, "latin-1", encoding)
    data, *others = (_encoded(text, name, encoding) for name in encoding.split(_OR))
    if any(other != data for other in others):
        names = encoding.split(_OR)
        bad = next(each for each in text if len({_encoded(each, name, encoding) for name in names}) > 1)
        raise _unwritable(bad, encoding)
    return data


def _encoded(text: str, codec: str, encoding: str) -> bytes:
    try:
        data = text.encode(codec)
    except UnicodeEncodeError as error:
        raise _unwritable(text[error.start], encoding) from None
    if codec == "shift_jis" and data.decode(codec) != text:  # it has the yen sign as a backslash
        raise _unwritable(next(each for each in text if each.encode(codec).decode(codec) != each), encoding)
    return data


def _unwritable(bad: str, encoding: str) -> ToolError:
    character = f"the character {bad!r} (U+{ord(bad):04X})"
    if encoding == UNKNOWN:
        return ToolError(
            f"The file is not in UTF-8, and which encoding it has is not known, so {character} cannot be written to "
            "it. Write the change in ASCII. Or ask the user to open the file in an editor in its right encoding, or to "
            "convert it to UTF-8."
        )
    if _OR in encoding:
        return ToolError(
            f"The file may be in {encoding}, and not all of them hold {character} as the same bytes. Write the change "
            "without it, or ask the user to convert the file to UTF-8."
        )
    return ToolError(f"The file is in {encoding}, which cannot hold {character}. Write the change without it.")


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
    if not is_unicode(encoding) or "\r" in text.replace("\r\n", ""):
        return False
    return line_end(text) is not None or "\n" not in text


def is_unicode(encoding: str) -> bool:
    return encoding.startswith("utf-")


def as_editors_show(data: bytes, text: str) -> set[str]:
    """The texts an editor may show of an unchanged file that does not survive it: line ends made equal,
    undecodable bytes replaced."""
    return {text} | _with_line_ends(text) | _with_line_ends(data.decode("utf-8", "replace"))


def _with_line_ends(text: str) -> set[str]:
    """As it is, and with line ends made equal."""
    plain = text.replace("\r\n", "\n")
    forms = {text}
    for feeds in (plain, plain.replace("\r", "\n")):
        forms |= {feeds, feeds.replace("\n", "\r\n")}
    return forms
