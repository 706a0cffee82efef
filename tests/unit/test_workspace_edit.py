"""What language servers of the checks answer to a rename."""

from pathlib import Path
from typing import Any

import pytest

from amanu.checks.process import CheckFailed
from amanu.checks.workspace_edit import renamed_files
from amanu.workspace.text_file import sha256

EDIT = {"range": {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 2}}, "newText": "x"}
A = {"textDocument": {"uri": "file:///w/a%20b.py", "version": None}, "edits": [EDIT]}


@pytest.mark.parametrize(
    ("answer", "files"),
    [
        (None, []),
        ({}, []),
        ({"changes": {}}, []),
        (
            {"changes": {"file:///w/a%20b.py": [EDIT], "file:///w/c.py": [EDIT, EDIT]}},
            [("/w/a b.py", 1), ("/w/c.py", 2)],
        ),
        ({"changes": {"file:///w/c.py": [EDIT]}, "documentChanges": [A]}, [("/w/a b.py", 1)]),
        ({"documentChanges": [A, A]}, [("/w/a b.py", 2)]),
        ({"changes": {"jdt://x/List.class": [EDIT]}}, [("jdt://x/List.class", 1)]),
        (
            {"documentChanges": [A, {"kind": "rename", "oldUri": "file:///w/a", "newUri": "file:///w/b"}]},
            "move or delete",
        ),
        ({"documentChanges": [{"edits": [EDIT]}]}, "cannot be read"),
        ({"changes": {"file:///w/c.py": [{**EDIT, "newText": 3}]}}, "cannot be read"),
        ({"changes": {"file:///w/c.py": [{"newText": ""}]}}, "cannot be read"),
        ({"changes": [1]}, "cannot be read"),
        ("text", "cannot be read"),
    ],
)
def test_files(answer: Any, files: list[tuple[str, int]] | str) -> None:
    if isinstance(files, str):
        with pytest.raises(CheckFailed, match=files):
            renamed_files(answer, {})
        return
    told = renamed_files(answer, {Path("/w/a b.py"): "abc"})
    assert [(file.path, len(file.edits)) for file in told] == files
    assert {file.path: file.sha256 for file in told if file.sha256} == (
        {"/w/a b.py": sha256(b"abc")} if any(path == "/w/a b.py" for path, _ in files) else {}
    )
