"""Commands that change files in older encodings: what is accepted has the bytes that the command wrote."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.draft_session import DONE, decide_all, finish
from support.required_programs import needs
from support.row_session import undo
from support.scripted_session import call, scripted_session, step

GERMAN = "x=1\n// Größe der „Datei“ – über 5 €\n".encode("cp1252")
RUSSIAN = "x=1\n# Привет\n".encode("cp1251")
REWRITE = "< f.txt > g; cat g > f.txt; rm g"
EDIT = call("edit_file", path="f.txt", old_text="x=1", new_text="x=2")


@pytest.mark.layers
@pytest.mark.parametrize("data", [GERMAN, RUSSIAN, "héllo\n".encode() + b"x=1 \xff\n"])
@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("printf '\\236\\n' >> f.txt", lambda data: data + b"\x9e\n"),
        ("printf 'caf\\351\\n' >> f.txt", lambda data: data + b"caf\xe9\n"),
        ("printf '\\320\\274\\320\\270\\n' >> f.txt", lambda data: data + "ми\n".encode()),
        (f"LC_ALL=C tr -d '\\200-\\377' {REWRITE}", lambda data: data.decode("ascii", "ignore").encode()),
        (f"iconv -f cp1251 -t utf-8 {REWRITE}", lambda data: data.decode("cp1251").encode()),
        (f"iconv -f cp1251 -t utf-16le {REWRITE}", lambda data: data.decode("cp1251").encode("utf-16-le")),
    ],
)
async def test_a_command_s_bytes_arrive(
    tmp_path: Path, data: bytes, is_edited: bool, line: str, expected: Callable[[bytes], bytes]
) -> None:
    needs("bwrap")
    steps = [step("", EDIT)] * is_edited + [step("", call("run_shell_command", command=line))]
    async with scripted_session(tmp_path, *steps, DONE, mode="draft") as d:
        path = d.root / "f.txt"
        path.write_bytes(data)
        await d.prompt("go")
        await finish(d)
        assert path.read_bytes() == data
        await decide_all(d, "accept")
        assert path.read_bytes() == expected(data.replace(b"x=1", b"x=2") if is_edited else data)
        await undo(d)
        assert path.read_bytes() == data
