"""Output of commands in UTF-16."""

from pathlib import Path

import pytest

from amanu.tools.shell.utf_16 import Utf8Stream
from support.tool_harness import ToolHarness

REPORT = "Name   Größe\r\nдок.txt  12\r\n中文  3 😀\r\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (REPORT.encode("utf-16"), REPORT.encode()),
        (REPORT.encode("utf-16-le"), REPORT.encode()),
        (REPORT.encode("utf-16-be"), REPORT.encode()),
        (b"\xfe\xff" + REPORT.encode("utf-16-be"), REPORT.encode()),
        ((REPORT + "no line end").encode("utf-16"), (REPORT + "no line end").encode()),
        (REPORT.encode("utf-16") + b"done\nand more\n", REPORT.encode() + b"done\nand more\n"),
        (REPORT.encode("utf-16-le") + b"done", REPORT.encode() + b"done"),
        (REPORT.encode("utf-16") + b"\0", REPORT.encode() + "\ufffd".encode()),
        ((REPORT * 9000).encode("utf-16"), REPORT.encode() * 9000),
        ("x\n".encode("utf-16") + ("é" * (1 << 20)).encode("utf-16-le"), b"x\n" + "é".encode() * (1 << 20)),
        ("\u0a0a\n".encode("utf-16"), "\u0a0a\n".encode()),
        # not UTF-16
        (REPORT.encode(), REPORT.encode()),
        (b"", b""),
        (b"a\0b\0c\0", b"a\0b\0c\0"),
        (b"x\0y\n", b"x\0y\n"),
        (b"./a\n\0./b\n\0", b"./a\n\0./b\n\0"),
        (b"\xff\xfe\0\1\2\3\xff\xff", b"\xff\xfe\0\1\2\3\xff\xff"),
        (bytes(range(256)), bytes(range(256))),
        ("été\n".encode("latin-1"), "été\n".encode("latin-1")),
    ],
)
def test_as_utf_8(data: bytes, expected: bytes) -> None:
    for first, size in ((len(data), 1), (64, 1 + len(data) // 300), (65, 7 + len(data) // 100), (64, 4096)):
        stream = Utf8Stream()
        pieces = [data[:first], *(data[at : at + size] for at in range(first, len(data), size))]
        found = b"".join(stream.add(piece) for piece in pieces if piece)
        assert found + stream.finish() == expected


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
async def test_a_command_that_prints_it(tmp_path: Path, encoding: str) -> None:
    harness = ToolHarness(tmp_path, {"out.txt": REPORT.encode(encoding)})
    outcome = await harness.run("run_shell_command", {"command": "cat out.txt; cat out.txt >&2; echo done"})
    assert outcome.for_model.count(REPORT.replace("\r\n", "\n").strip()) == 2, outcome.for_model
    assert "done" in outcome.for_model
