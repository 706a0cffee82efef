"""The files that git has otherwise, of those that are listed."""

import os
from pathlib import Path

import pytest

from amanu.workspace.git import changed
from amanu.workspace.git.changed import changed_files
from support.repository_changes import repository

NAMES = ["a", "b", "d/c", "new", "gone"]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("true", []),
        ("echo longer > a", ["a"]),
        ("touch -d 2001-01-01 b", ["b"]),
        ("touch -d 2030-01-01 d/c; touch -d 2031-01-01 new", ["new", "d/c"]),
        ("touch -d 2030-01-01 d/c b new a", ["a", "b", "d/c"]),
        ("rm b; echo x > other", []),
        ("echo x > new; git add new", []),
        ("git update-index --index-version 4; echo longer > a", ["a"]),
        ("git rm -qr --cached .", []),
        ("echo x > .git/index; echo x > new", []),
        ("rm .git/index; ln -s ../a .git/index", []),
        ("rm -rf .git; echo x > new", []),
    ],
)
def test_found(tmp_path: Path, lines: str, found: list[str]) -> None:
    root = repository(tmp_path / "root", lines)
    assert changed_files(root, NAMES, 3) == found


def test_whole_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "root", "touch -d 2001-01-01 a", "git update-index --refresh")
    os.utime(root / "a", ns=(0, (root / "a").stat().st_mtime_ns + 5))
    assert changed_files(root, NAMES, 3) == []
    monkeypatch.setattr(changed, "MAX_FILES", 2)
    (root / "new").touch()
    assert changed_files(root, NAMES, 3) == []
    assert changed_files(root, ["new"], 3) == ["new"]
