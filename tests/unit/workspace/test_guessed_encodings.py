"""The encoding of bytes that say nothing about it."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.core.tool import ToolError
from amanu.workspace.encodings import (
    GUESSED,
    OTHER_BYTES,
    UNKNOWN,
    decode,
    decode_as,
    decode_as_shown,
    encode,
    readable_lines,
    same_bytes,
)

TEXTS = {
    "gbk": "x = 1\n# 这个函数读取配置文件并返回结果。\nprint('错误:文件不存在')\n",
    "gb18030": "# 读取配置文件,返回結果。\n",
    "big5": "# 這個函式讀取設定檔並傳回結果。\n",
    "shift_jis": "// この関数は設定ファイルを読み込み、結果を返します。\n",
    "cp932": "# 日本\n",
    "euc_jp": "# 設定ファイルを読み込みます。\n",
    "euc_kr": "# 이 함수는 설정 파일을 읽고 결과를 반환합니다.\n",
    "cp949": "# 한글\n",
    "cp1251": "# Эта функция читает файл настроек.\n",
    "koi8-r": "# привет\n",
    "koi8-u": "# Ця функція читає файл налаштувань і повертає її.\n",
    "cp866": "REM Эта функция читает файл настроек.\r\n",
    "iso8859-5": "# Эта функция читает файл настроек.\n",
    "cp1252": "// Größe der „Datei“ – über 5 €\n",
    "latin-1": "# Cette fonction lit le fichier réglé et renvoie le résultat, à défaut une erreur détaillée.\n",
    "cp1250": "# Ta funkcja wczytuje plik konfiguracyjny i zwraca wynik; jeśli go nie ma, zgłasza błąd.\n",
    "iso8859-2": "# Ta funkcja wczytuje plik i zwraca wynik; zażółć gęślą jaźń\n",
    "cp1253": "# Αυτή η συνάρτηση διαβάζει το αρχείο ρυθμίσεων.\n",
    "cp1254": "# Bu işlev yapılandırma dosyasını okur ve sonucu döndürür.\n",
    "cp1255": "# הפונקציה קוראת את קובץ ההגדרות\n",
    "cp1256": "# هذه الدالة تقرأ ملف الإعدادات\n",
    "cp874": "# ฟังก์ชันนี้อ่านไฟล์การตั้งค่า\n",
}


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("code", ["", "for line in file:\n    total += line.count(separator)\n" * 40])
def test_a_language_is_recognized_in_its_own_encoding(encoding: str, code: str) -> None:
    text = code + TEXTS[encoding]
    found = decode(text.encode(encoding), Path("x"))
    assert found[0] == text
    assert found[1].endswith(GUESSED)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ["two\r\n", "# 日本語のテキストを読み込みます。この関数は結果を返します。\n", "é" * 9])
def test_unicode_without_a_mark(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding), Path("x")) == (text, encoding)


CHINESE = "# 这个函数读取\n".encode("gbk")


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        # a few other bytes among UTF-8
        ("héllo 中\n".encode() + b"stray \xff\n", "héllo 中\nstray \U0010feff\n", "utf-8" + OTHER_BYTES),
        ("日".encode() * 20 + b"\xe6\x97", "日" * 20 + "\U0010fee6\U0010fe97", "utf-8" + OTHER_BYTES),
        ("Größe é\n".encode() + b"caf\xe9\n", "Größe é\ncaf\U0010fee9\n", "utf-8" + OTHER_BYTES),
        # … and among others
        (CHINESE * 3 + b"\xff\n", "# 这个函数读取\n" * 3 + "\U0010feff\n", "gb18030" + OTHER_BYTES + GUESSED),
        # too few to say
        (b"caf\xe9\n", "café\n", UNKNOWN),
        ("20 °C, ±1 µm\n".encode("latin-1"), "20 °C, ±1 µm\n", UNKNOWN),
        (b"x=1\n\xff\n", "x=1\nÿ\n", UNKNOWN),
    ],
)  # fmt: skip
def test_what_is_in_no_encoding_does_not_spoil_the_rest(data: bytes, text: str, encoding: str) -> None:
    assert decode(data, Path("x")) == (text, encoding)
    assert encode(text, encoding) == data


@pytest.mark.parametrize("encoding", TEXTS)
def test_output_in_an_older_encoding_beside_utf_8(encoding: str) -> None:
    line = TEXTS[encoding].splitlines()[0]
    output = "ok ✓ é\n".encode() * 300 + line.encode(encoding) + b"\ndone\n"
    assert readable_lines(output) == f"{'ok ✓ é' + chr(10)}" * 300 + f"{line}\ndone\n"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", ""),
        ("中\n".encode(), "中\n"),
        (b"caf\xe9\n", "caf\N{REPLACEMENT CHARACTER}\n"),
        ("héé中 ".encode() + b"\xff\n", "héé中 \N{REPLACEMENT CHARACTER}\n"),
        (("привет\r\n" * 3).encode("cp1251") + b"\x98\n", "привет\r\n" * 3 + "\N{REPLACEMENT CHARACTER}\n"),
    ],
)
def test_readable_lines(data: bytes, shown: str) -> None:
    assert readable_lines(data) == shown


@pytest.mark.parametrize(
    "data", [b"two\0\1\2", b"\0", b"a\0", b"one\0", b"two\0one\0", bytes(range(64)) * 2, b"\x7fELF\2\1\1\0" + bytes(80)]
)
def test_what_is_no_text_stays_binary(data: bytes) -> None:
    with pytest.raises(ToolError, match="binary"):
        decode(data, Path("x"))


@pytest.mark.parametrize(
    "line", [b"a", b" ", b"a\r", b"\n#", b"#coding", b"\xe9", b"\xe9\n", CHINESE[:-1], b"\xc3\xa9\xff"]
)
def test_time_is_linear_whatever_the_file(line: bytes) -> None:
    data = line * (200_000 // len(line)) + b"\ncaf\xe9\n"
    decode(b"caf\xe9s \xe9\xe9\xe9\n", Path("x"))  # loads what guesses
    start = time.process_time()
    decode(data, Path("x"))
    decode_as_shown(data, "caf")
    readable_lines(data)
    assert time.process_time() - start < 1, "200 KB; a text of twice the power would take minutes"


@given(
    st.sampled_from([text.encode(encoding) for encoding, text in TEXTS.items()]),
    st.sampled_from([text.encode(encoding) for encoding, text in TEXTS.items()] + [b"\xff", b"\x80", "é中".encode()]),
    st.integers(0, 200),
)
def test_whatever_is_found_gives_the_same_bytes(data: bytes, inserted: bytes, at: int) -> None:
    data = data[:at] + inserted + data[at:]
    text, encoding = decode(data, Path("x"))
    assert encode(text, encoding) == data
    assert not any("\ud800" <= character <= "\udfff" for character in text)
    assert decode_as(data, encoding) in (None, (text, encoding))


@pytest.mark.parametrize(
    ("encoding", "other", "same"),
    [
        ("gb18030 or gbk (guessed)", "gbk", True),
        ("gb18030 or gbk (guessed)", "gbk or gb2312", True),
        ("cp1252 or latin-1 (guessed)", UNKNOWN, True),
        ("cp1251 (guessed)", "cp1250 or cp1252", False),
        ("utf-8 with other bytes", "utf-8", False),
        ("utf-8", "utf-8", True),
    ],
)
def test_same_bytes(encoding: str, other: str, same: bool) -> None:
    assert same_bytes(encoding, other) == same_bytes(other, encoding) == same
