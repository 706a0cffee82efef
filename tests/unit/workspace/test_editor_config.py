"""The charset in `.editorconfig`: which one holds for a file, and what it says where the file itself says nothing."""

import os
from pathlib import Path

import pytest

from amanu.workspace.editor_config import EditorConfig
from amanu.workspace.path_guard import PathGuard
from support.tool_harness import FakeEditor, ToolHarness


def latin(glob: str) -> str:
    return f"[{glob}]\ncharset = latin1\n"


@pytest.mark.parametrize(
    ("configs", "path", "expected"),
    [
        ({"": latin("*")}, "a.c", "latin1"),
        ({"": latin("*")}, "src/deep/a.c", "latin1"),
        ({"": latin("*.c")}, "src/a.c", "latin1"),
        ({"": latin("*.c")}, "src/a.h", None),
        ({"": latin("src/*.c")}, "src/a.c", "latin1"),
        ({"": latin("src/*.c")}, "src/b/a.c", None),
        ({"": latin("/a.c")}, "a.c", "latin1"),
        ({"": latin("/a.c")}, "src/a.c", None),
        ({"": latin("src/**.c")}, "src/b/a.c", "latin1"),
        ({"": latin("{*.{c,h},Makefile}")}, "src/a.h", "latin1"),
        ({"": latin("{a}.c")}, "{a}.c", "latin1"),
        ({"": latin("{a}.c")}, "a.c", None),
        ({"": latin("a{1..12}.c")}, "a12.c", "latin1"),
        ({"": latin("a{1..12}.c")}, "a13.c", None),
        ({"": latin("a{-1..1}.c")}, "a-1.c", "latin1"),
        ({"": latin("a{1..999999999}.c") + latin("*.c").replace("latin1", "cp1251")}, "a1.c", "cp1251"),
        ({"": latin("[ab].c")}, "b.c", "latin1"),
        ({"": latin("[!ab].c")}, "b.c", None),
        ({"": latin("?.c")}, "b.c", "latin1"),
        ({"": latin("*") + "[*.c]\ncharset = utf-8\n"}, "b.c", "utf-8"),
        ({"": latin("*") + "[*.c]\ncharset = unset\n"}, "b.c", None),
        ({"": "[*.c]\ncharset = utf-8\n" + latin("*")}, "b.c", "latin1"),
        ({"": "charset = latin1\n"}, "b.c", None),
        ({"": "\ufeff; a\n# b\n [*]\r\n\tCharSet :  Latin1 \r\n"}, "b.c", "latin1"),
        ({"": "[*]\n# charset = latin1\nindent_size = 2\n[*\n=\n"}, "b.c", None),
        ({"": latin("*"), "src": latin("*").replace("latin1", "utf-16le")}, "src/a.c", "utf-16le"),
        ({"": latin("*"), "src": latin("*").replace("latin1", "utf-16le")}, "a.c", "latin1"),
        ({"": latin("*"), "src": "[*]\nindent_size = 2\n"}, "src/a.c", "latin1"),
        ({"": latin("*"), "src": "Root = True\n"}, "src/a.c", None),
        ({"": latin("*"), "src": "[*]\nroot = true\n"}, "src/a.c", "latin1"),
        ({"..": latin("*")}, "a.c", None),
        ({"": latin("*" * 999 + "a" * 999)}, "a.c", None),
        ({"": latin("{a,b}" * 40) + latin("(*+[")}, "a.c", None),
        ({"": "\0\xff[*]"}, "a.c", None),
    ],
)
def test_which_charset_holds(tmp_path: Path, configs: dict[str, str], path: str, expected: str | None) -> None:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    for folder, text in configs.items():
        (root / folder / ".editorconfig").write_text(text, newline="")
    assert EditorConfig(PathGuard([root])).charset(root / path) == expected


def test_a_change_counts_and_no_link_or_pipe_does(tmp_path: Path) -> None:
    config, found = EditorConfig(PathGuard([tmp_path])), list[str | None]()
    path = tmp_path / ".editorconfig"
    outside = tmp_path.parent / f"{tmp_path.name}.other"
    outside.write_text(latin("*"))
    for change in (
        lambda: path.write_text(latin("*")),
        lambda: path.write_text(latin("*").replace("latin1", "cp1251")),
        lambda: path.unlink(),
        lambda: path.symlink_to(outside),
        lambda: (path.unlink(), os.mkfifo(path)),
        lambda: (path.unlink(), path.mkdir()),
    ):
        change()
        found.append(config.charset(tmp_path / "a.c"))
    assert found == ["latin1", "cp1251", None, None, None, None]


FRENCH, GREEK = "x=1\n# déjà\n", "x=1\n# Μ\n"


@pytest.mark.parametrize(
    ("charset", "data", "shown", "new", "expected"),
    [
        # neither the detector nor Latin-1 would be right
        ("iso-8859-7", GREEK.encode("iso8859-7"), None, "x='Ω'", GREEK.replace("x=1", "x='Ω'").encode("iso8859-7")),
        ("latin1", "x=1\n# é\n".encode("latin-1"), None, "x='°'", "x='°'\n# é\n".encode("latin-1")),
        ("latin1", "x=1\n# “q”\n".encode("cp1252"), None, "x='€'", "x='€'\n# “q”\n".encode("cp1252")),
        ("utf-16le", "x=1\n#".encode("utf-16-le"), None, "x='é'", "x='é'\n#".encode("utf-16-le")),
        # what the editor shows, a mark, and what the file says count more
        ("koi8-r", GREEK.encode("iso8859-7"), GREEK, "x='Ω'", GREEK.replace("x=1", "x='Ω'").encode("iso8859-7")),
        ("latin1", FRENCH.encode("utf-8-sig"), None, "x='Ω'", FRENCH.replace("x=1", "x='Ω'").encode("utf-8-sig")),
        ("latin1", FRENCH.encode(), None, "x='Ω'", FRENCH.replace("x=1", "x='Ω'").encode()),
        (
            "koi8-r",
            ("# coding: latin-1\n" + FRENCH).encode("latin-1"),
            None,
            "x='ß'",
            ("# coding: latin-1\n" + FRENCH.replace("x=1", "x='ß'")).encode("latin-1"),
        ),
        # what cannot be so is not
        ("utf-8", FRENCH.encode("latin-1"), None, "x=2", FRENCH.replace("x=1", "x=2").encode("latin-1")),
        ("euc-jp", FRENCH.encode("latin-1"), None, "x=2", FRENCH.replace("x=1", "x=2").encode("latin-1")),
        ("rot13", FRENCH.encode("latin-1"), None, "x=2", FRENCH.replace("x=1", "x=2").encode("latin-1")),
    ],
)
async def test_an_edit_keeps_the_encoding(
    tmp_path: Path, charset: str, data: bytes, shown: str | None, new: str, expected: bytes
) -> None:
    harness = ToolHarness(tmp_path, {"f.txt": data, ".editorconfig": f"[*.txt]\ncharset = {charset}\n".encode()})
    if shown is not None:
        editor = FakeEditor()
        editor.put(harness.root / "f.txt", shown)
        harness.overlay.add(editor)
    await harness.run("edit_file", {"path": "f.txt", "old_text": "x=1", "new_text": new})
    assert (harness.root / "f.txt").read_bytes() == expected
