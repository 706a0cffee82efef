"""Files in older encodings, closed and open in an editor: no byte of another encoding is ever written into one."""

from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import ToolError
from support.tool_harness import FakeEditor, ToolHarness

CHINESE, JAPANESE, RUSSIAN = "x=1\n# 中文\n", "x=1\n# 日本\n", "x=1\n# Привет\n"
QUOTED, FRENCH, POLISH = "x=1\n# “q” €\n", "x=1\n# café\n", "x=1\n# ł\n"
STRAY = "héllo\n".encode() + b"bad \xff\nx=1\n"
CUT = "中文 ok\n".encode() + b"\xe4\xb8\nx=1\n"
COOKIE = "# coding: latin-1\nx=1\n# café\n"
GERMAN = "x=1\n// Größe der „Datei“ – über 5 €\n"


def edit(new: str, old: str = "x=1") -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": "f.txt", "old_text": old, "new_text": new}


async def check(tmp_path: Path, data: bytes, shown: str | None, call: tuple[str, dict[str, Any]]) -> bytes | str | None:
    """The file after that call, with an editor that shows it so: its bytes, None if it is gone, or the error."""
    harness = ToolHarness(tmp_path, {"f.txt": data})
    path = harness.root / "f.txt"
    if shown is not None:
        editor = FakeEditor()
        editor.put(path, shown)
        harness.overlay.add(editor)
    try:
        await harness.run(*call)
    except ToolError as error:
        assert path.read_bytes() == data
        return str(error)
    moved = harness.root / "g.txt"
    return path.read_bytes() if path.exists() else moved.read_bytes() if moved.exists() else None


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "gbk"),
        (CHINESE.replace("\n", "\r\n"), "gb18030"),
        (CHINESE, "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (QUOTED, "cp1252"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (FRENCH, "latin-1"),
        (POLISH, "cp1250"),
        ("x=1\n# 한국\n", "cp949"),
    ],
)
@pytest.mark.parametrize("is_open", [True, False])
async def test_ascii_edits_keep_all_other_bytes(tmp_path: Path, text: str, encoding: str, is_open: bool) -> None:
    data, shown = text.encode(encoding), text if is_open else None
    assert await check(tmp_path / "1", data, shown, edit("x=22")) == data.replace(b"x=1", b"x=22")
    assert await check(tmp_path / "2", data, shown, ("delete_file", {"path": "f.txt"})) is None
    move = ("move_file", {"path": "f.txt", "new_path": "g.txt"})
    assert await check(tmp_path / "3", data, shown, move) == data


@pytest.mark.parametrize(
    ("data", "shown", "call", "expected"),
    [
        # known: by the editor that shows it, or because the file says so
        (CHINESE.encode("gbk"), CHINESE, edit("x='°新'"), CHINESE.replace("x=1", "x='°新'").encode("gbk")),
        (JAPANESE.encode("cp932"), JAPANESE, edit("x='±日'"), JAPANESE.replace("x=1", "x='±日'").encode("cp932")),
        (RUSSIAN.encode("cp1251"), RUSSIAN, edit("# Мир", "# Привет"), "x=1\n# Мир\n".encode("cp1251")),
        (FRENCH.encode("latin-1"), FRENCH, edit("x='ñ'"), FRENCH.replace("x=1", "x='ñ'").encode("latin-1")),
        (COOKIE.encode("latin-1"), None, edit("x='ñ'"), COOKIE.replace("x=1", "x='ñ'").encode("latin-1")),
        (COOKIE.encode("latin-1"), None, edit("x='€'"), "is in latin-1, which cannot hold"),
        (CHINESE.encode("gbk"), CHINESE, edit("x='é€'"), "Write the change without it"),
        (POLISH.encode("cp1250"), POLISH, edit("x='ą'"), "may be in cp1250 or iso8859-2"),
        # guessed
        (CHINESE.encode("gbk"), None, edit("x='°新'"), CHINESE.replace("x=1", "x='°新'").encode("gbk")),
        (JAPANESE.encode("shift_jis"), None, edit("x='±'"), JAPANESE.replace("x=1", "x='±'").encode("shift_jis")),
        (RUSSIAN.encode("koi8-r"), None, edit("# Мир", "# Привет"), "x=1\n# Мир\n".encode("koi8-r")),
        (RUSSIAN.encode("cp1251"), None, edit("x='中'"), "is in cp1251 (guessed), which cannot hold the character"),
        (CHINESE.encode("gbk"), None, edit("x='é€'"), "not all of them hold the character '€'"),
        # UTF-8 with a few other bytes
        (STRAY, None, edit("x='é中'"), STRAY.replace(b"x=1", "x='é中'".encode())),
        (STRAY, STRAY.decode("utf-8", "replace"), edit("x='é'"), STRAY.replace(b"x=1", "x='é'".encode())),
        (STRAY, None, edit("good", "bad \U0010feff"), STRAY.replace(b"bad \xff", b"good")),
        (STRAY, None, edit("x=\U0010fefe"), "the byte 0xFE"),
        (CUT, None, edit("x='é'"), CUT.replace(b"x=1", "x='é'".encode())),
        # not known: refused, though the bytes can be shown as latin-1
        (CHINESE.encode("gbk"), CHINESE.encode("gbk").decode("latin-1"), edit("x='°C'"), "is not known"),
        (FRENCH.encode("latin-1"), None, edit("x='ñ'"), "Write the change in ASCII"),
        (STRAY, STRAY.decode("latin-1"), edit("x='é'"), "is not known"),
        (b"\xe9A = 1\nx=1\n", None, edit("x='\xe9'"), "is not known"),
        # what is there already can stay, move and be left out
        (b"caf\xe9 x=1\n\xfc\n", None, edit("caf\xe9: 2", "caf\xe9 x=1"), b"caf\xe9: 2\n\xfc\n"),
        (b"caf\xe9 x=1\n\xfc\n", None, edit("x", "caf\xe9 x=1\n\xfc"), b"x\n"),
        (STRAY, None, edit("y=2"), STRAY.replace(b"x=1", b"y=2")),
        (STRAY, STRAY.decode("latin-1"), edit("y=2"), STRAY.replace(b"x=1", b"y=2")),
    ],
)  # fmt: skip
async def test_further_characters(
    tmp_path: Path, data: bytes, shown: str | None, call: tuple[str, dict[str, Any]], expected: bytes | str
) -> None:
    got = await check(tmp_path, data, shown, call)
    assert got == expected or (isinstance(expected, str) and isinstance(got, str) and expected in got), got


async def test_what_an_editor_said_of_a_file_holds_when_it_is_closed(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": CHINESE.encode("gbk")})
    editor = FakeEditor()
    harness.overlay.add(editor)
    editor.put(harness.root / "f.txt", CHINESE)
    assert (await harness.run("read_file", {"path": "f.txt"})).for_model.endswith("keep it]\n" + CHINESE)
    editor.open.clear()
    await harness.run(*edit("x='新'"))
    assert harness.on_disk("f.txt") == CHINESE.replace("1", "'新'").encode("gbk")


async def test_an_undo_brings_back_the_bytes(tmp_path: Path) -> None:
    data = (CHINESE + "# 日本\n").encode("gbk")
    harness = ToolHarness(tmp_path, {"f.txt": data})
    await harness.run(*edit("# none", "# 中文"))
    assert harness.on_disk("f.txt") == "x=1\n# none\n# 日本\n".encode("gbk")
    proposal = harness.versions[-1]
    hunks = [hunk.hunk_id for file in proposal.files for hunk in file.hunks]
    assert await harness.proposals.undo(proposal.proposal_id, hunks) == []
    assert harness.on_disk("f.txt") == data


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        (GERMAN.encode("cp1252"), (GERMAN + "ž\n").encode("cp1252"), b"x=1", b"x=2"),  # was in doubt before
        (RUSSIAN.encode("cp1251"), (RUSSIAN + "# мир\n" * 9).encode("utf-16-le"), b"x\0=\x001\0", b"x\0=\x002\0"),
        (RUSSIAN.encode("cp1251"), RUSSIAN.encode(), b"x=1", b"x=2"),
    ],
)
async def test_a_file_that_a_program_rewrites(
    tmp_path: Path, before: bytes, after: bytes, old: bytes, new: bytes
) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": before})
    await harness.run("read_file", {"path": "f.txt"})
    harness.put("f.txt", after)
    await harness.run(*edit("x=2"))
    assert harness.on_disk("f.txt") == after.replace(old, new)


async def test_a_converted_file_is_no_longer_read_as_before(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": RUSSIAN.encode("cp1251")})
    for data in (RUSSIAN.encode("cp1251"), RUSSIAN.encode(), RUSSIAN.encode() + b"\xff\n"):
        harness.put("f.txt", data)
        await harness.run("read_file", {"path": "f.txt"})
    await harness.run(*edit("x='мир'"))
    assert harness.on_disk("f.txt") == RUSSIAN.replace("x=1", "x='мир'").encode() + b"\xff\n"


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize(
    ("data", "call"),
    [
        (RUSSIAN.encode("cp1251"), edit("# none", "# Привет")),  # pure ASCII
        ((RUSSIAN + "# é\n").encode("cp1251", "ignore"), edit("# М", "# Привет")),  # too little to guess from
        (STRAY, edit("good", "bad \U0010feff")),  # no other byte is left
        ("é\nпривет\n".encode() + b"x=1\xff\n", edit("x", "é\nпривет\n")),
    ],
)
async def test_an_undo_after_which_the_encoding_shows_again(
    tmp_path: Path, data: bytes, call: tuple[str, dict[str, Any]], is_restarted: bool
) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": data})
    await harness.run(*call)
    assert harness.on_disk("f.txt") != data
    if is_restarted:
        harness.workspace._encodings.clear()  # pyright: ignore[reportPrivateUsage]
    proposal = harness.versions[-1]
    hunks = [hunk.hunk_id for file in proposal.files for hunk in file.hunks]
    assert await harness.proposals.undo(proposal.proposal_id, hunks) == []
    assert harness.on_disk("f.txt") == data


async def test_a_byte_that_is_no_character_swallows_nothing(tmp_path: Path) -> None:
    data = (CHINESE * 6).encode("gbk").replace(b"x=1\n", b"x=2\n", 5) + b"\x81\n"
    got = await check(tmp_path, data, None, edit("\U0010fe81A\n", "\U0010fe81\n"))
    assert isinstance(got, str) or got == data, got
