"""Encodings of files: which one a file is in, and its text, which is exactly the bytes that it came from.

Work is on bytes: no universal newlines, no `errors=replace`, no lost byte order mark. Bytes are decoded only where
encoding the result gives the same bytes again.
"""

import codecs
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from amanu.core.tool import ToolError
from amanu.system.file_kind import PDF, kind_of, shown_type

UNKNOWN = "unknown-8bit"
"""The encoding of a file that is not UTF-8, where neither the file nor its bytes tell what it is (the name is RFC
1428's). Its bytes are shown as those of latin-1, and go back as they came; no further character can be written that
way."""
OTHER_BYTES = " with other bytes"
"""Behind the name of an encoding in which some bytes are no character. Each of them is shown as a character for private
use, from U+10FE80 to U+10FEFF, and goes back as it came."""
GUESSED = " (guessed)"
"""At the end of the name of an encoding that only the bytes of the file suggest."""
_OR = " or "
"""Between the names of an encoding that may be any of several: the file's bytes are the same text in all."""

_BOMS: tuple[tuple[bytes, str, str], ...] = (  # UTF-32 first: its little-endian mark begins like UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32-le-bom", "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be-bom", "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8-bom", "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le-bom", "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be-bom", "utf-16-be"),
)
_UNMARKED = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
"""Unicode without a byte order mark, which an editor that recognizes it may add."""
_LEGACY = (
    "latin-1 cp1252 iso8859-15 cp1250 iso8859-2 cp1251 koi8-r koi8-u cp866 iso8859-5 cp1253 iso8859-7 cp1254 iso8859-9 "
    "cp1255 iso8859-8 cp1256 iso8859-6 cp1257 iso8859-4 iso8859-13 iso8859-10 iso8859-14 iso8859-16 iso8859-3 cp1258 "
    "cp874 cp437 cp850 cp852 mac-roman gbk gb18030 gb2312 big5 cp950 big5hkscs "
    "cp932 shift_jis euc_jp euc_jis_2004 cp949 euc_kr"
)
"""Names of encodings without a mark that editors offer and in which ASCII is ASCII."""
_GUESSES = (
    "cp1252 iso8859-15 cp1250 iso8859-2 cp1251 koi8-r koi8-u cp866 iso8859-5 cp1253 iso8859-7 cp1254 cp1255 iso8859-8 "
    "cp1256 iso8859-6 cp1257 cp874 gbk gb18030 big5 cp932 shift_jis euc-jp cp949"
)
"""The encodings that are guessed, as chardet names them. The others are rare, or differ from these in little."""
_MULTIBYTE = ("gb18030", "gbk", "big5", "big5hkscs", "cp932", "shift_jis", "euc_jp", "euc_jis_2004", "cp949")
_NO_MATCH = 0.1
"""chardet's confidence in what it returns if nothing fits."""
_SURE, _UNSURE = 0.1, 0.05
"""chardet's confidence above which a few characters that are valid UTF-8 are rather that older encoding, and below
which its guess is worth nothing."""
_SAMPLE = 16 * 1024
"""Bytes of the lines beyond ASCII from which an encoding is guessed."""
_VOTERS = 50
"""Lines that are asked one by one."""
_COMPARED = 1024 * 1024
"""Bytes up to which a file is read in all encodings that may be meant."""
_TELLING, _OF_ZEROS = 64, 0.4
"""Bytes that are hardly characters throughout unless they are meant to be; fewer must have this share of zeros."""
_SNIFFED = 8192
"""Bytes looked at for a NUL. (Git's heuristic for "binary" looks at 8,000.)"""
_NEVER_IN_TEXT = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
"""Control characters that are in no text of an older encoding; a bell, tabs, line ends and terminal colours are."""
_NOT_IN_UNICODE_TEXT = ("Cn", "Co", "Cs", "Cc")
"""Categories of characters that are in no text, but for `_BLANKS`."""
_BLANKS = "\t\n\r\f\x1b"
_DECLARED = re.compile(
    rb"""^(?:[^\r\n]*\r?\n)?[ \t\f]*(?:\#|//|/\*|--|;|%|"|<!--|<\?xml\b)[^\r\n]*?coding[:=][ \t]*["']?([-\w.]+)""",
    re.ASCII,
)
"""A comment in the first two lines that names the encoding: PEP 263's, which covers Emacs, Vim and XML, in comments of
other languages, too."""
_CONFIGURED = {"utf-16le": "utf-16-le", "utf-16be": "utf-16-be"}
"""The names that EditorConfig has for Unicode with zeros."""
_C1 = re.compile(rb"[\x80-\x9f]")
_NO_LATIN_1 = re.compile(rb"[\x80-\x9f]|[\x80-\xff]{2}")
"""An editor that knows no better may show any bytes as latin-1. Such bytes are rather something else."""
_HIGH = re.compile(rb"[\x80-\xff]")
_LINE_BEYOND_ASCII = re.compile(rb"(?<![^\r\n])[^\r\n\x80-\xff]*[\x80-\xff][^\r\n]*")
"""Tried only where lines begin: tried at each byte, a long line of ASCII takes the square of its length."""
_BEYOND_ASCII = re.compile("[^\0-\x7f]+[0-9@-~]?")
"""Characters beyond ASCII, with the byte after them: in some encodings it is part of the last one."""
_OTHER_FIRST = 0x10FE00
_OTHER = re.compile("([\U0010fe80-\U0010feff])")
"""A byte that is no character, as it is shown."""
_AS_CHARACTERS, _AS_NUL = "amanu.characters", "amanu.nul"
"""Two ways of Python's codecs with bytes that are no character: each as `_OTHER`, or all that belong together as one
NUL."""


class BinaryFile(ToolError):
    """The file is no text."""

    def __init__(self, message: str, shown_type: str = "") -> None:
        """`shown_type`: media type of what models can be shown (`system/file_kind.py`); "" for anything else."""
        super().__init__(message)
        self.shown_type = shown_type


class CharsetSource(Protocol):
    """Implemented by `editor_config.EditorConfig`."""

    def charset(self, path: Path) -> str | None:
        """The encoding of files there, if anything says it."""
        ...


def decode(data: bytes, path: Path, config: CharsetSource | None = None) -> tuple[str, str]:
    """(text, encoding), such that `encode` gives back `data`. `config` is asked where the bytes do not say what they
    are. Raises `BinaryFile`, which says what it is."""
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
        if (found := _configured(data, path, config, _CONFIGURED) or _unmarked(data)) is not None:
            return found
        raise _binary_file(data, path)
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        if shown_type(data) or _NEVER_IN_TEXT.search(data, 0, _SNIFFED):
            raise _binary_file(data, path) from None
        found = _declared(data) or _configured(data, path, config) or _guessed(data)
        return found or (data.decode("latin-1"), UNKNOWN)


def encode(text: str, encoding: str) -> bytes:
    """The bytes of `text`. Raises `ToolError` when the encoding has no such character."""
    for mark, name, codec in _BOMS:
        if name == encoding:
            return mark + _encoded(text, codec, encoding)
    if (codec := _codec_beside_other_bytes(encoding)) is not None:
        pieces = _OTHER.split(text)
        return b"".join(
            bytes([ord(piece) - _OTHER_FIRST]) if at % 2 else _encoded(piece, codec, encoding)
            for at, piece in enumerate(pieces)
        )
    names = _codecs(encoding)
    data, *others = (_encoded(text, each, encoding) for each in names)
    if any(other != data for other in others):
        bad = next(each for each in text if len({_encoded(each, codec, encoding) for codec in names}) > 1)
        raise _unwritable(bad, encoding)
    return data


def decode_as(data: bytes, encoding: str) -> tuple[str, str] | None:
    """(text, encoding) of bytes that are in that encoding, which editors do not recognize; None if they are not. Of an
    encoding that may be any of several, those stay that give the same text as the first that fits."""
    if is_unicode(encoding) or (b"\0" in data[:_SNIFFED] and encoding not in _UNMARKED):
        return None
    if (codec := _codec_beside_other_bytes(encoding)) is not None:
        found = _with_other_bytes(data, codec)
        return None if found is None else (found[0], encoding)
    texts = {name: text for name in _codecs(encoding) if (text := _exactly(data, name)) is not None}
    if not texts:
        return None
    first = next(iter(texts.values()))
    same = [name for name, text in texts.items() if text == first]
    if len(same) == len(_codecs(encoding)):
        return first, encoding
    return first, _OR.join(same) + (GUESSED if encoding.endswith(GUESSED) else "")


def decode_as_shown(data: bytes, shown: str) -> tuple[str, str] | None:
    """(text, encoding) of a file in an older encoding that an editor shows as that; None where no encoding gives it."""
    latin_1 = data.decode("latin-1")
    if shown in with_line_ends(latin_1):
        return latin_1, UNKNOWN if _NO_LATIN_1.search(data) else "latin-1"
    for encoding in _UNMARKED:
        if (text := _exactly(data, encoding)) is not None and shown in with_line_ends(text):
            return text, encoding
    line = _LINE_BEYOND_ASCII.search(data)
    if line is None:
        return None
    found: dict[str, str] = {}
    for encoding in _LEGACY.split():
        sample = _exactly(line[0], encoding)
        if sample is None or sample not in shown:
            continue
        text = _exactly(data, encoding)
        if text is not None and shown in with_line_ends(text):
            found[encoding] = text
    return (next(iter(found.values())), _OR.join(found)) if found else None


def utf_16(data: bytes) -> str | None:
    """The codec of output that begins so, if it is UTF-16: with a byte order mark, or with a line end. None for
    anything else."""
    sample = data[: _SNIFFED - len(data[:_SNIFFED]) % 2]
    for mark, _, codec in _BOMS[3:]:
        if sample.startswith(mark) and _is_unicode_text(sample[2:].decode(codec, "ignore")):
            return codec
    for codec in ("utf-16-le", "utf-16-be"):
        lines = sample[: end_of_utf_16_lines(sample, codec)]
        if b"\0" in lines and (found := _unmarked(lines)) is not None and found[1] == codec:
            return codec
    return None


def end_of_utf_16_lines(data: bytes, codec: str) -> int:
    """The offset after the last line end; 0 where there is none."""
    line_end = "\n".encode(codec)
    at = data.rfind(line_end)
    while at > 0 and at % 2:
        at = data.rfind(line_end, 0, at + 1)
    return at + 2 if at >= 0 else 0


def readable_lines(data: bytes) -> str:
    """Output of programs as text, line by line: UTF-8, or the encoding that all other lines together suggest. What is
    no character in it becomes U+FFFD."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    lines = data.split(b"\n")
    odd = [at for at, line in enumerate(lines) if _is_odd(line)]
    sample = b"\n".join(lines[at] for at in odd[:_VOTERS])[:_SAMPLE]
    encoding, confidence = _best_guess(sample) if odd else (None, 0.0)
    if encoding is None or not _is_telling(sample, encoding, confidence):
        return data.decode("utf-8", "replace")
    texts = [line.decode("utf-8", "replace") for line in lines]
    for at in odd:
        texts[at] = lines[at].decode(encoding, "replace")
    return "\n".join(texts)


def same_bytes(encoding: str, other: str) -> bool:
    """Whether a text is the same bytes in both."""
    return encoding == other or not set(_codecs(encoding)).isdisjoint(_codecs(other))


def is_unicode(encoding: str) -> bool:
    """Whether editors recognize it, and write it as it was."""
    return encoding == "utf-8" or encoding.endswith("-bom")


def is_guess(encoding: str) -> bool:
    """Whether only the bytes suggest it, or nothing does."""
    return encoding == UNKNOWN or encoding.endswith(GUESSED)


def check_new(text: str, old_text: str, encoding: str) -> None:
    """Raises `ToolError` if `text` has characters, beside those of `old_text`, whose bytes in that encoding are not
    known."""
    form = _BEYOND_ASCII if encoding == UNKNOWN else None if _codec_beside_other_bytes(encoding) is None else _OTHER
    if form is not None and (new := Counter(form.findall(text)) - Counter(form.findall(old_text))):
        raise _unwritable(next(iter(new))[0], encoding)
    if form is _OTHER and decode_as(encode(text, encoding), encoding) != (text, encoding):
        raise ToolError(
            f"The file is in {encoding}, and beside one of those the new text would be other characters. Leave what "
            "stands next to such bytes as it is."
        )


def with_line_ends(text: str) -> set[str]:
    """The text as it is, and with line ends made equal."""
    plain = text.replace("\r\n", "\n")
    forms = {text}
    for feeds in (plain, plain.replace("\r", "\n")):
        forms |= {feeds, feeds.replace("\n", "\r\n")}
    return forms


# Finding it out ---------------------------------------------------------------------------------------


def _unmarked(data: bytes) -> tuple[str, str] | None:
    """(text, encoding) of bytes that are UTF-16 or UTF-32 without a mark. Where both orders are possible, the one with
    fewer kinds of characters: in the wrong order they come from all over Unicode."""
    if len(data) < 4 or (len(data) < _TELLING and data.count(0) / len(data) < _OF_ZEROS):
        return None
    found: dict[str, str] = {}
    for encoding in _UNMARKED:
        sample = data[:_SNIFFED].decode(encoding, "ignore")
        if sample and _is_unicode_text(sample):
            text = _exactly(data, encoding)
            if text is not None:
                found[encoding] = text
    if not found:
        return None
    encoding = min(found, key=lambda each: len({ord(character) >> 8 for character in found[each][:_SNIFFED]}))
    return found[encoding], encoding


def _is_unicode_text(text: str) -> bool:
    return all(each in _BLANKS or unicodedata.category(each) not in _NOT_IN_UNICODE_TEXT for each in text)


def _declared(data: bytes) -> tuple[str, str] | None:
    declared = _DECLARED.match(data)
    encoding = None if declared is None else _legacy(declared[1].decode())
    text = None if encoding is None else _exactly(data, encoding)
    return None if encoding is None or text is None else (text, encoding)


def _configured(
    data: bytes, path: Path, config: CharsetSource | None, names: Mapping[str, str] | None = None
) -> tuple[str, str] | None:
    """(text, encoding) as `config` has it, if the bytes are text in that; of `names`, if these are given, else of older
    encodings."""
    charset = None if config is None else config.charset(path)
    if charset is None:
        return None
    encoding = _legacy(charset) if names is None else names.get(charset)
    if encoding == "latin-1" and _C1.search(data):  # as the web takes it: nobody has control characters there
        encoding = "cp1252"
    text = None if encoding is None else _exactly(data, encoding)
    return None if encoding is None or text is None else (text, encoding)


def _guessed(data: bytes) -> tuple[str, str] | None:
    """(text, encoding) as the bytes suggest it: UTF-8 with other bytes among it, or an older encoding."""
    lines = itertools.islice((line[0] for line in _LINE_BEYOND_ASCII.finditer(data)), _SAMPLE // 8)
    sample = b"\n".join(lines)[:_SAMPLE]
    best, confidence = _best_guess(sample)
    faults, characters = _faults(sample)
    if 4 * faults <= characters or (faults <= characters and confidence < _SURE):
        return _with_other_bytes(data, "utf-8")
    if best is None or not _is_telling(sample, best, confidence):
        return None
    text = _exactly(data, best)
    if text is None:
        found = _with_other_bytes(data, best)
        return None if found is None else (found[0], found[1] + GUESSED)
    same = [best]
    if len(data) <= _COMPARED:
        shown = _exactly(sample, best)
        alike = [
            each
            for each in map(_legacy, _GUESSES.split())
            if each not in (None, best) and _exactly(sample, each) == shown
        ]
        same += [each for each in alike if _exactly(data, each) == text]
    return text, _OR.join(same) + GUESSED


def _faults(data: bytes) -> tuple[int, int]:
    """(places where the bytes are not UTF-8, characters beyond ASCII that are)."""
    valid = data.decode("utf-8", "ignore")
    return data.decode("utf-8", _AS_NUL).count("\0") - data.count(0), sum(each > "\x7f" for each in valid)


def _is_odd(line: bytes) -> bool:
    """Whether the line is rather in another encoding than UTF-8."""
    if line.isascii():
        return False
    faults, characters = _faults(line)
    return faults > characters


def _is_telling(sample: bytes, encoding: str, confidence: float) -> bool:
    return confidence >= _UNSURE and len(_HIGH.findall(sample)) >= (2 if encoding in _MULTIBYTE else 4)


def _best_guess(sample: bytes) -> tuple[str | None, float]:
    """(encoding, chardet's confidence from 0 to 1). Where all lines together tell little, since one of them holds bytes
    of no encoding, most of them may still agree."""
    best, confidence = _detected(sample)
    if best is not None and confidence >= _SURE:
        return best, confidence
    votes = Counter(
        named
        for named, weight in map(_detected, sample.split(b"\n")[:_VOTERS])
        if named is not None and weight >= _UNSURE
    )
    agreed = [named for named, count in votes.most_common(1) if count > 1]
    return (agreed[0], _SURE) if agreed else (best, confidence)


def _detected(sample: bytes) -> tuple[str | None, float]:
    import chardet  # a tenth of a second, which few need to spend

    found = chardet.detect(sample, include_encodings=_GUESSES.split(), no_match_encoding="cp1252", compat_names=False)
    encoding, confidence = found["encoding"], found["confidence"]
    return (None, 0.0) if encoding is None or confidence == _NO_MATCH else (_legacy(encoding), confidence)


def _with_other_bytes(data: bytes, codec: str) -> tuple[str, str] | None:
    """(text, encoding); None if the text holds characters that stand for other bytes."""
    text, encoding = data.decode(codec, _AS_CHARACTERS), codec + OTHER_BYTES
    try:
        return (text, encoding) if encode(text, encoding) == data else None
    except ToolError:
        return None


def _as_characters(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(chr(_OTHER_FIRST + byte) for byte in error.object[error.start : error.end]), error.end


def _as_nul(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\0", error.end


codecs.register_error(_AS_CHARACTERS, _as_characters)
codecs.register_error(_AS_NUL, _as_nul)

# Names and codecs -------------------------------------------------------------------------------------


def _codecs(encoding: str) -> Sequence[str]:
    """The names of codecs, in all of which a text of that encoding is the same bytes."""
    name = encoding.removesuffix(GUESSED)
    return ["latin-1"] if name == UNKNOWN else name.split(_OR)


def _codec_beside_other_bytes(encoding: str) -> str | None:
    """The codec of characters where there are other bytes, too."""
    name = encoding.removesuffix(GUESSED)
    return name.removesuffix(OTHER_BYTES) if name.endswith(OTHER_BYTES) else None


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
    if _OTHER.match(bad):
        return ToolError(
            f"{character.capitalize()} stands for the byte 0x{ord(bad) - _OTHER_FIRST:02X}, which is no text. It can "
            "stay where it is and move, but not be added."
        )
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
