"""What a page says, by its charset."""

import codecs
from typing import Any

import pytest

from amanu.web.page_text import decode

_TEXT = "a é ж 中 😀 "


@pytest.mark.parametrize(
    ("charset", "data"),
    [
        ("", _TEXT.encode()),
        ("utf-8", _TEXT.encode() + b"\xff"),
        ("utf-16le", _TEXT.encode("utf-16le") + b"\x00\xd8"),
        ("windows-1252", b"\x81\xe9"),
        ("gb18030", _TEXT.encode("gb18030") + b"\xff"),
        ("iso-2022-jp", "日本 a ".encode("iso-2022-jp") + b"\xff"),
        ("shift_jis", "日本".encode("shift_jis") + b"a"),
    ],
)
def test_a_page_is_decoded_piece_by_piece(charset: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    page, sizes, decoder_of = data * 20_000 + data[:-1], list[int](), codecs.getincrementaldecoder

    def watched(name: str) -> Any:
        def made(errors: str) -> Any:
            decoder = decoder_of(name)(errors)
            whole = decoder.decode

            class Watched:
                def decode(self, piece: bytes, final: bool = False) -> str:
                    sizes.append(len(piece))
                    return whole(piece, final)

            return Watched()

        return made

    monkeypatch.setattr(codecs, "getincrementaldecoder", watched)
    assert decode(page, charset, is_html=False) == page.decode(charset or "utf-8", "replace")
    assert 0 < max(sizes, default=0) <= 1 << 16


@pytest.mark.parametrize(
    ("charset", "data", "text"),
    [
        ("iso-8859-99", b"\xc3\xa9\xff", "é\ufffd"),
        ("rot13", b"\xc3\xa9\xff", "é\ufffd"),
        ("utf-16", b"a\0", "a"),
        ("utf-16", b"\xfe\xff\0a", "a"),
        ("utf-8", b"", ""),
        ("iso-2022-jp", b"\x1b((((((((((" * 9_000, None),
    ],
)
def test_no_page_fails_to_be_decoded(charset: str, data: bytes, text: str | None) -> None:
    read = decode(data, charset, is_html=False)
    assert read == text if text is not None else read
