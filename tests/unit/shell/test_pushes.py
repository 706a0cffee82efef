"""A push that may take commits from the other repository says so in its question."""

from pathlib import Path

import pytest

from amanu.core.command import CommandContext
from amanu.shell.analyze import read

OVERWRITES = "Overwrites or deletes branches of another repository: commits of others may be lost there."
PUSHES = "Pushes commits to another repository."


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("git push", PUSHES),
        ("git push -u origin main", PUSHES),
        ("git push origin main:main", PUSHES),
        ("git push --follow-tags", PUSHES),
        ("git push --force", OVERWRITES),
        ("git push -f origin main", OVERWRITES),
        ("git push -uf origin main", OVERWRITES),
        ("git push --force-with-lease=main", OVERWRITES),
        ("git push origin +main", OVERWRITES),
        ("git push origin :main", OVERWRITES),
        ("git push -d origin x", OVERWRITES),
        ("git push --delete origin x", OVERWRITES),
        ("git push --mirror", OVERWRITES),
        ("git -C . push --force", OVERWRITES),
    ],
)
def test_a_push_that_overwrites_says_so(line: str, why: str, tmp_path: Path) -> None:
    context = CommandContext(tmp_path, (tmp_path,), {"PATH": "/usr/bin:/bin"}, lambda path: True)
    assert [command.why for command in read(line, context).commands] == [why]
