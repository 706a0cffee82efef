"""Files that hold secrets, judged by what is in them."""

import os
from pathlib import Path

import pytest

from amanu.core.protected_paths import npmrc_holds_token


def _link(path: Path) -> None:
    (path.parent / "settings").write_text("engine-strict=true\n")
    path.symlink_to("settings")


@pytest.mark.parametrize(
    ("make", "holds"),
    [
        (lambda path: path.write_text("//registry.example/:_authToken=abc\n"), True),
        (lambda path: path.write_text("//registry.example/:_authToken=${TOKEN}\n"), False),
        (lambda path: path.write_text("engine-strict=true\n"), False),
        (_link, False),
        (lambda path: path.symlink_to("nowhere"), True),
        (lambda path: path.mkdir(), True),
        (lambda path: None, True),
        (os.mkfifo, True),  # nobody writes into it: to open it would take forever
        (lambda path: path.symlink_to("/dev/tty"), True),
    ],
    ids=["token", "variable", "settings", "link", "broken link", "folder", "missing", "fifo", "device"],
)
def test_whether_an_npmrc_holds_a_token(make: object, holds: bool, tmp_path: Path) -> None:
    path = tmp_path / ".npmrc"
    make(path)  # pyright: ignore
    assert npmrc_holds_token(str(path)) == holds
