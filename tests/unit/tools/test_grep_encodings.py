"""grep finds what read_file shows, whatever encoding a file is in."""

from pathlib import Path
from typing import Any

import pytest

from amanu.workspace import search
from amanu.workspace.grep_format import FileMatches
from amanu.workspace.search import Search
from amanu.workspace.text_file import FileText
from support.required_programs import needs
from support.tool_harness import ToolHarness

FILES = {
    "gbk.txt": "# 中文注释\nkey = 1\n".encode("gbk"),
    "koi8.txt": "# привет\nkey = 2\n".encode("koi8-r"),
    "latin.txt": b"caf\xe9 key\n",
    "utf8.txt": "# 中文 привет café key\n".encode(),
    "stray.txt": "中文 key\n".encode() + b"\xff\n",
    "ignored.txt": "# 中文\n".encode("gbk"),
    ".gitignore": b"ignored.txt\n",
}


engines = pytest.mark.parametrize("ripgrep", [True, False], ids=["ripgrep", "scan"])


def use(ripgrep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Search with ripgrep, or with our own scan."""
    found = needs("rg") if ripgrep else None
    monkeypatch.setattr(search, "find_ripgrep", lambda workspace: found)  # pyright: ignore[reportUnknownLambdaType]


@engines
@pytest.mark.parametrize(
    ("pattern", "include", "expected"),
    [
        ("中文", None, "gbk.txt\n1: # 中文注释\nstray.txt\n1: 中文 key\nutf8.txt\n1: # 中文 привет café key\n"),
        ("привет", None, "koi8.txt\n1: # привет\nutf8.txt\n1: # 中文 привет café key\n"),
        (" key$", "[lu]*.txt", "latin.txt\n1: café key\nutf8.txt\n1: # 中文 привет café key\n"),
        ("caf\xe9", "l*", "latin.txt\n1: café key\n"),
        ("注释|^# привет", "*.{txt,md}", "gbk.txt\n1: # 中文注释\nkoi8.txt\n1: # привет\n"),
        ("^# .+", "gbk.txt", "gbk.txt\n1: # 中文注释\n"),
        ("日本", None, "Nothing matches 日本."),
    ],
)  # fmt: skip
async def test_lines_are_found_and_shown_in_the_file_s_encoding(
    tmp_path: Path, pattern: str, include: str | None, expected: str, ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(ripgrep, monkeypatch)
    harness = ToolHarness(tmp_path, FILES)
    arguments = {"pattern": pattern} if include is None else {"pattern": pattern, "include": include}
    assert (await harness.run("grep", arguments)).for_model == expected


@engines
async def test_too_many_of_them_are_named(tmp_path: Path, ripgrep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use(ripgrep, monkeypatch)
    monkeypatch.setattr(search, "_OLDER", 1)
    found = (await ToolHarness(tmp_path, FILES).run("grep", {"pattern": "привет", "include": "[gk]*.txt"})).for_model
    assert found.endswith(
        "[1 file in older encodings searched only for ASCII: koi8.txt. Narrow the path or include.]"
    ), found


async def test_few_of_them_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ToolHarness(tmp_path, {f"{at}.txt": FILES["gbk.txt"] for at in range(20)})
    held, most = 0, 0
    read, search_text = harness.workspace.read, Search._search_text  # pyright: ignore[reportPrivateUsage]

    async def counted_read(path: Path) -> FileText:
        nonlocal held, most
        held += 1
        most = max(most, held)
        return await read(path)

    async def counted_search(*arguments: Any) -> FileMatches:
        nonlocal held
        found = await search_text(*arguments)
        held -= 1
        return found

    monkeypatch.setattr(harness.environment.workspace, "read", counted_read)
    monkeypatch.setattr(Search, "_search_text", counted_search)
    assert "20.txt" not in (await harness.run("grep", {"pattern": "中文"})).for_model
    assert (held, most) == (0, search._AT_ONCE)  # pyright: ignore[reportPrivateUsage]
