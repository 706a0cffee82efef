"""Files nobody likes: an edit of them is right to the byte, or a sentence and nothing changed."""

import codecs
import os
import stat
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import ToolError
from support.tool_harness import ToolHarness

LONG = "x" * 10_000_000


@dataclass(frozen=True)
class Case:
    name: str
    data: bytes
    told: str = ""
    """Refused with these words; else `expected` is what the file holds afterwards."""
    expected: bytes | None = None


def utf16(text: str) -> bytes:
    return codecs.BOM_UTF16_LE + text.encode("utf-16-le")


CASES = [
    Case("binary", b"two\0\1\2", "binary"),
    Case("a picture", b"\x89PNG\r\n\x1a\n\0\0two", "picture"),
    Case("UTF-16 without a mark", "two\n".encode("utf-16-le"), expected="zwei\n".encode("utf-16-le")),
    Case("no UTF-8", b"caf\xe9\ntwo\n", expected=b"caf\xe9\nzwei\n"),
    Case("half a character", b"two\n\xf0\x9f", expected=b"zwei\n\xf0\x9f"),
    Case("UTF-16", utf16("one\r\ntwo\r\n"), expected=utf16("one\r\nzwei\r\n")),
    Case("a mark", codecs.BOM_UTF8 + b"two\n", expected=codecs.BOM_UTF8 + b"zwei\n"),
    Case("no final newline", b"one\ntwo", expected=b"one\nzwei"),
    Case("CRLF", b"one\r\ntwo\r\nthree\r\n", expected=b"one\r\nzwei\r\nthree\r\n"),
    Case("mixed line ends", b"one\r\ntwo\nthree\r\n", expected=b"one\r\nzwei\nthree\r\n"),
    Case("lone CR", b"one\rtwo\rthree", expected=b"one\rzwei\rthree"),
    Case("odd blanks", "one\u2028\x0c\ntwo\n".encode(), expected="one\u2028\x0c\nzwei\n".encode()),
    Case("a line of 10 MB", f"{LONG}\ntwo\n{LONG}".encode(), expected=f"{LONG}\nzwei\n{LONG}".encode()),
    Case("twice", b"two\ntwo\n", "2 times"),
]
BY = {
    "edit_file": {"path": "f", "old_text": "two", "new_text": "zwei"},
    "edits": {"path": "f", "edits": [{"old_text": "two", "new_text": "zw"}, {"old_text": "zw", "new_text": "zwei"}]},
    "apply_patch": {"patch": "*** Update File: f\n-two\n+zwei\n"},
}


async def edit(harness: ToolHarness, by: str) -> Any:
    return await harness.run("edit_file" if by == "edits" else by, BY[by])


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_content(tmp_path: Path, case: Case, by: str) -> None:
    harness = ToolHarness(tmp_path, {"f": case.data})
    if case.told:
        with pytest.raises(ToolError, match=case.told):
            await edit(harness, by)
        assert harness.on_disk("f") == case.data and harness.versions == []
    else:
        assert not (await edit(harness, by)).is_error
        assert harness.on_disk("f") == case.expected


@pytest.mark.parametrize("by", BY)
async def test_100_megabytes_are_not_even_read(tmp_path: Path, by: str) -> None:
    harness = ToolHarness(tmp_path)
    with (tmp_path / "f").open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(ToolError, match="100 MB"):
        await edit(harness, by)
    assert (tmp_path / "f").stat().st_size == 100_000_000


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def leads_out(path: Path) -> None:
    (path.parent.parent / "out").write_text("two\n")
    path.symlink_to("../out")


def leads_nowhere(path: Path) -> None:
    path.symlink_to("gone")


def loops(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (fifo, "pipe"),
        (folder, "folder"),
        (leads_out, "outside the workspace"),
        (leads_nowhere, "no file"),
        (loops, "outside the workspace|symbolic link|no file"),
    ],
)
@pytest.mark.parametrize("by", [*BY, "delete_file", "move_file"])
async def test_what_is_no_file(tmp_path: Path, made: Callable[[Path], None], told: str, by: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    harness = ToolHarness(root)
    made(root / "f")
    kind = stat.S_IFMT((root / "f").lstat().st_mode)
    with pytest.raises(ToolError, match=told):
        if by in BY:
            await edit(harness, by)
        else:
            await harness.run(by, {"path": "f"} | ({"new_path": "g"} if by == "move_file" else {}))
    assert stat.S_IFMT((root / "f").lstat().st_mode) == kind and [each.name for each in root.iterdir()] == ["f"]
    assert made is not leads_out or (tmp_path / "out").read_text() == "two\n"


@pytest.mark.parametrize("by", BY)
async def test_a_read_only_file(tmp_path: Path, by: str) -> None:
    harness = ToolHarness(tmp_path, {"f": "two\n"})
    (tmp_path / "f").chmod(0o444)
    outcome = await edit(harness, by)
    assert outcome.is_error and "read-only" in outcome.for_model
    assert (harness.on_disk("f"), [each.name for each in tmp_path.iterdir()]) == (b"two\n", ["f"])


@contextmanager
def no_root() -> Generator[None]:
    """Root may write everywhere."""
    me = os.geteuid()
    os.seteuid(me or 65534)
    try:
        yield
    finally:
        os.seteuid(me)


@pytest.mark.parametrize("by", BY)
async def test_a_read_only_folder(by: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        harness = ToolHarness(root, {"f": "two\n"})
        root.chmod(0o555)
        with no_root():
            outcome = await edit(harness, by)
        root.chmod(0o755)
        assert outcome.is_error and "permission denied" in outcome.for_model
        assert (harness.on_disk("f"), [each.name for each in root.iterdir()]) == (b"two\n", ["f"])


@pytest.mark.parametrize("target", ["g", "../out"])
@pytest.mark.parametrize("by", BY)
async def test_a_link_put_in_its_place_after_the_decision(tmp_path: Path, by: str, target: str) -> None:
    harness = ToolHarness(tmp_path / "root", {"f": "two\n", "g": "two\n"})
    (tmp_path / "out").write_text("two\n")
    tool, call = harness.tools["edit_file" if by == "edits" else by], harness.context()
    params = tool.params.model_validate(BY[by])
    await tool.preview(params, call)
    (harness.root / "f").unlink()
    (harness.root / "f").symlink_to(target)
    outcome = await tool.run(params, call)
    assert outcome.is_error and "not applied" in outcome.for_model
    assert (harness.on_disk("g"), (tmp_path / "out").read_text()) == (b"two\n", "two\n")
    assert (harness.root / "f").is_symlink()
