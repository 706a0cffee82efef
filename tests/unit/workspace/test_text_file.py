"""Bytes → text → the same bytes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.core.tool import ToolError
from amanu.workspace.encodings import BinaryFile, decode, encode
from amanu.workspace.text_file import line_end, split_lines, survives
from support.sample_images import png


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("é\r\n".encode(), "é\r\n", "utf-8"),
        (b"\xef\xbb\xbfa", "a", "utf-8-bom"),
        (b"\xff\xfea\0", "a", "utf-16-le-bom"),
        (b"\xfe\xff\0a", "a", "utf-16-be-bom"),
        (b"\xff\xfe\0\0a\0\0\0", "a", "utf-32-le-bom"),
        (b"caf\xe9", "café", "unknown-8bit"),
        (b"# -*- coding: latin-1 -*-\ncaf\xe9", "# -*- coding: latin-1 -*-\ncafé", "latin-1"),
        (b"#!x\n# vim: set fileencoding=gbk :\n\xd6\xd0", "#!x\n# vim: set fileencoding=gbk :\n中", "gbk"),
        (
            b'<?xml version="1.0" encoding="windows-1251"?>\xef',
            '<?xml version="1.0" encoding="windows-1251"?>п',
            "cp1251",
        ),
        (b"# coding: none-such\n\xe9", "# coding: none-such\né", "unknown-8bit"),
        (b"# coding: utf-16\n\xe9", "# coding: utf-16\né", "unknown-8bit"),
        (b"# coding: gbk\n\xff\n", "# coding: gbk\nÿ\n", "unknown-8bit"),
        (b"open(a, encoding='latin-1')\xe9", "open(a, encoding='latin-1')é", "unknown-8bit"),
        (b"a\0b", None, ""),
        (b"\xff\xfea\0b", None, ""),
    ],
)
def test_decode(data: bytes, text: str | None, encoding: str) -> None:
    if text is None:
        with pytest.raises(ToolError, match="binary"):
            decode(data, Path("x"))
    else:
        assert decode(data, Path("x")) == (text, encoding)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (png(), r"x is a binary file \(PNG picture, \d+ bytes\); read_file shows it"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", r"\(PDF document, \d+ bytes\); read_file reads its pages"),
        (b"\x7fELF\x02\x01\x01" + bytes(9), r"\(ELF executable, 16 bytes\); it cannot be read as text"),
        (b"\xf0\x01\x02", r"\(unknown kind, 3 bytes\)"),
    ],
)
def test_what_is_no_text_is_named_by_its_content(data: bytes, says: str) -> None:
    with pytest.raises(BinaryFile, match=says):
        decode(data, Path("x"))


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.text().map(lambda text: b"\xff\xfe" + text.encode("utf-16-le", "ignore"))
)
def test_what_decodes_encodes_to_the_same_bytes(data: bytes) -> None:
    try:
        text, encoding = decode(data, Path("x"))
    except ToolError:
        return
    assert encode(text, encoding) == data


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("€", "latin-1"), ("€", "unknown-8bit"), ("€", "gbk"), ("€", "cp1252 or koi8-r"), ("é", "cp1252 or cp850"),
     ("¥", "shift_jis")],
)  # fmt: skip
def test_a_character_the_encoding_lacks_is_an_error(text: str, encoding: str) -> None:
    with pytest.raises(ToolError, match=f"U\\+{ord(text):04X}"):
        encode(text, encoding)


@pytest.mark.parametrize(
    ("text", "lines", "end", "kept"),
    [
        ("", [], None, True),
        ("a", ["a"], None, True),
        ("a\nb", ["a\n", "b"], "\n", True),
        ("a\r\nb\r\n", ["a\r\n", "b\r\n"], "\r\n", True),
        ("a\r\nb\n", ["a\r\n", "b\n"], None, False),
        ("a\rb\n", ["a\r", "b\n"], None, False),
        ("a\rb", ["a\r", "b"], "\r", False),
        ("a\u2028b\x0cc\x85d\n", ["a\u2028b\x0cc\x85d\n"], "\n", True),
    ],
)
def test_lines(text: str, lines: list[str], end: str | None, kept: bool) -> None:
    assert split_lines(text) == lines
    assert line_end(text) == end
    assert survives(text, "utf-8") == kept
