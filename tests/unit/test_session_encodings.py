"""Commands that change files in older encodings: what is accepted has the bytes that the command wrote."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.draft_session import DONE, decide_all, end_daemon, finish
from support.required_programs import needs
from support.row_session import undo
from support.scripted_session import call, scripted_session, step

GERMAN = "x=1\n// Größe der „Datei“ – über 5 €\n".encode("cp1252")
RUSSIAN = "x=1\n# Привет\n".encode("cp1251")
MIXED = "héllo\n".encode() + b"x=1 \xff\n"
REWRITE = "< f.txt > g; cat g > f.txt; rm g"
EDIT = call("edit_file", path="f.txt", old_text="x=1", new_text="x=2")


@pytest.mark.layers
@pytest.mark.parametrize("data", [GERMAN, RUSSIAN, MIXED])
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


@pytest.mark.layers
@pytest.mark.parametrize("data", [GERMAN, RUSSIAN, MIXED, b"x=1 caf\xe9\n", RUSSIAN.decode("cp1251").encode("utf-16")])
@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize(
    ("line", "added"),
    [
        ("mv f.txt g.txt", b""),
        ("cp f.txt g.txt", b""),
        ("mv f.txt g.txt; printf '\\236\\n' >> g.txt", b"\x9e\n"),
        ("cp f.txt g.txt; printf 'y\\0\\n\\0' >> g.txt", b"y\0\n\0"),
    ],
)
async def test_a_copy_has_the_same_bytes(tmp_path: Path, data: bytes, is_edited: bool, line: str, added: bytes) -> None:
    needs("bwrap")
    steps = [step("", EDIT)] * is_edited + [step("", call("run_shell_command", command=line))]
    async with scripted_session(tmp_path, *steps, DONE, mode="draft") as d:
        path, copy = d.root / "f.txt", d.root / "g.txt"
        path.write_bytes(data)
        await d.prompt("go")
        await finish(d)
        await decide_all(d, "accept")
        wide = data.startswith(b"\xff\xfe")
        old, new = (b"1\0", b"2\0") if wide else (b"x=1", b"x=2")
        assert copy.read_bytes() == (data.replace(old, new, 1) if is_edited else data) + added
        await undo(d)
        assert path.read_bytes() == data and not copy.exists()


LATER = {
    "edit": EDIT,
    "command": call("run_shell_command", command="sed -i s/x=1/x=2/ f.txt"),
    "move": call("move_file", path="f.txt", new_path="g.txt"),
}


@pytest.mark.layers
@pytest.mark.parametrize("data", [GERMAN, RUSSIAN, MIXED, b"x=1 caf\xe9\n"])
@pytest.mark.parametrize("is_reopened", [False, True])
@pytest.mark.parametrize("later", LATER)
async def test_a_new_file_keeps_the_encoding_that_a_command_gave_it(
    tmp_path: Path, data: bytes, is_reopened: bool, later: str
) -> None:
    needs("bwrap")
    octal = "".join(f"\\{byte:03o}" for byte in data)
    steps = [step("", call("run_shell_command", command=f"printf '{octal}' > f.txt"))]
    async with scripted_session(tmp_path, *steps, DONE, step("", LATER[later]), DONE, mode="draft") as d:
        await d.prompt("go")
        await finish(d)
        if is_reopened:
            await end_daemon(d)
        await d.prompt("on", "p2")
        await finish(d, "p2")
        await decide_all(d, "accept")
        is_moved = later == "move"
        made = (d.root / ("g.txt" if is_moved else "f.txt")).read_bytes()
        assert made == (data if is_moved else data.replace(b"x=1", b"x=2"))
