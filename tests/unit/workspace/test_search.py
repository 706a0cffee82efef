"""The same files and lines are found with ripgrep and without, unsaved text first."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from amanu.tools.base import ToolError
from amanu.workspace import search
from amanu.workspace.search import Query, Search
from desk import Desk
from needs import needs

engines = pytest.mark.parametrize("ripgrep", [True, False], ids=["ripgrep", "scan"])

TREE: dict[str, str | bytes] = {
    ".gitignore": "*.log\nbuild/\n/top.txt\n!keep.log\n",
    "top.txt": "needle ignored\n",
    "a.py": "one\nneedle two\nthree Needle\n",
    "b.log": "needle ignored\n",
    "keep.log": "needle kept\n",
    "build/out.py": "needle ignored\n",
    "sub/.gitignore": "*.tmp\n!b.log\n",
    "sub/top.txt": "needle sub\n",
    "sub/b.log": "needle unignored\n",
    "sub/x.tmp": "needle ignored\n",
    "sub/deep/y.tmp": "needle ignored\n",
    "sub/deep/crlf.txt": "x\r\nneedle\r\n",
    "node_modules/m/i.js": "needle never\n",
    ".git/config": "needle never\n",
    ".github/w.yml": "needle hidden\n",
    "bin": b"needle\0binary\n",
    "latin": b"n\xe9edle needle\n",
    "wide": "needle wide\n".encode("utf-16"),
    "long": "x" * 5000 + "needle\n",
}


def desk(root: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[Desk, Search]:
    path = (os.environ.get("AMANU_TEST_RIPGREP") or needs("rg")) if ripgrep else None
    if path is None:
        monkeypatch.setattr(search.shutil, "which", lambda _: None)  # pyright: ignore[reportUnknownLambdaType]
    made = Desk(root, TREE, ripgrep=path)
    (root / "linked.py").symlink_to("a.py")
    return made, Search(made.workspace)


@engines
@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        (
            ".",
            ".github/w.yml .gitignore a.py bin keep.log latin long sub/.gitignore sub/b.log sub/deep/crlf.txt "
            "sub/top.txt wide",
        ),
        ("sub", "sub/.gitignore sub/b.log sub/deep/crlf.txt sub/top.txt"),
        ("sub/deep", "sub/deep/crlf.txt"),
        ("build", "build/out.py"),
        ("node_modules", "node_modules/m/i.js"),
    ],
)
async def test_files(
    tmp_path: Path, folder: str, expected: str, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, found = desk(tmp_path, ripgrep, monkeypatch)
    assert await found.files(held.workspace.resolve(folder)) == expected.split(" ")


@engines
@pytest.mark.parametrize(
    ("query", "folder", "expected"),
    [
        (Query("needle"), ".", ".github/w.yml:1 a.py:2 keep.log:1 latin:1 long:1 sub/b.log:1 sub/deep/crlf.txt:2 "
                               "sub/top.txt:1 wide:1"),
        (Query("NEEDLE", ignore_case=True), "a.py", "a.py:2,3"),
        (Query("needle$"), "sub", "sub/deep/crlf.txt:2"),
        (Query("^needle \\w+$", include="*.{txt,py}"), ".", "a.py:2 sub/top.txt:1"),
        (Query("needle", include="sub/**"), ".", "sub/b.log:1 sub/deep/crlf.txt:2 sub/top.txt:1"),
        (Query("needle", include="*.py"), ".", "a.py:2"),
        (Query("e.+ee", fixed=True), ".", ""),
        (Query("th(re|ird)", context=1), ".", "a.py:(2),3"),
        (Query("-v"), ".", ""),
    ],
)  # fmt: skip
async def test_grep(
    tmp_path: Path, query: Query, folder: str, expected: str, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, found = desk(tmp_path, ripgrep, monkeypatch)
    files = (await found.grep(query, held.workspace.resolve(folder))).files
    said = [
        f"{file.path}:{','.join(str(line.number) if line.matches else f'({line.number})' for line in file.lines)}"
        for file in files
    ]
    assert " ".join(said) == expected


@engines
async def test_open_buffers_count_not_their_copies(
    tmp_path: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, found = desk(tmp_path, ripgrep, monkeypatch)
    held.editor.put(held.root / "a.py", "nothing here\nbut a NEW needle\n")
    held.editor.put(held.root / "sub" / "new.txt", "needle not on disk\n")
    held.editor.put(held.root / "sub" / "new.tmp", "needle ignored\n")
    held.editor.put(held.root / "keep.log", "needle kept\n")
    result = await found.grep(Query("needle", include="*.{py,txt,tmp,log}"), held.root)
    lines = [(file.path, file.unsaved, file.lines[0].number) for file in result.files]
    assert lines == [
        ("a.py", True, 2),
        ("keep.log", False, 1),
        ("sub/b.log", False, 1),
        ("sub/deep/crlf.txt", False, 2),
        ("sub/new.txt", True, 1),
        ("sub/top.txt", False, 1),
    ]
    assert "sub/new.txt" in await found.files(held.root) and "sub/new.tmp" not in await found.files(held.root)


@engines
async def test_a_wrong_pattern(tmp_path: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held, found = desk(tmp_path, ripgrep, monkeypatch)
    with pytest.raises(ToolError, match="set fixed to true"):
        await found.grep(Query("(needle"), held.root)


async def test_a_pattern_that_takes_for_ever_stalls_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, found = desk(tmp_path, False, monkeypatch)
    held.put("evil.txt", "a" * 60 + "!\n")
    monkeypatch.setattr(search, "TIME_LIMIT", 0.3)
    worst = 0.0

    async def watch() -> None:
        nonlocal worst
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            worst = max(worst, time.monotonic() - before)

    watching = asyncio.create_task(watch())
    with pytest.raises(ToolError, match="simpler pattern"):
        await found.grep(Query("(a+)+$"), held.root)
    watching.cancel()
    assert worst < 0.25


async def test_a_ripgrep_of_the_workspace_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "rg"
    own.write_text("#!/bin/sh\ntouch ran\n")
    own.chmod(0o755)
    monkeypatch.setattr(search.shutil, "which", lambda _: str(own))  # pyright: ignore[reportUnknownLambdaType]
    for given_path in (str(own), None):
        held = Desk(tmp_path, ripgrep=given_path)
        assert await Search(held.workspace).files(held.root) == ["rg"]
    assert not (tmp_path / "ran").exists()


@engines
async def test_a_name_that_is_no_text_is_shown_as_far_as_it_goes(
    tmp_path: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes as half surrogate pairs would end the turn: they fit no JSON."""
    held, found = desk(tmp_path, ripgrep, monkeypatch)
    Path(os.fsdecode(os.fsencode(held.root) + b"/odd\xff.txt")).write_text("needle\n")
    assert [name for name in await found.files(held.root) if "odd" in name] == ["odd\ufffd.txt"]
    assert [file.path for file in (await found.grep(Query("^needle$"), held.root)).files if "odd" in file.path] == [
        "odd\ufffd.txt"
    ]
    (held.root / "link").symlink_to(os.fsdecode(b"odd\xff.txt"))
    for path in ("link", os.fsdecode(b"odd\xff.txt")):
        with pytest.raises(ToolError, match="UTF-8"):
            held.workspace.resolve(path)
