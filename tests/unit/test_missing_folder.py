"""Why a folder that was named cannot be worked in."""

from pathlib import Path

import pytest

from amanu.session.roots import real_root
from amanu.system.missing_folder import missing_folder
from amanu_protocol.errors import AmanuError

ELSEWHERE = "Run Amanu on the machine that has the folder, or open it on box through your editor's remote connection."
CHECK = "Check the path; if the folder is on another machine, run Amanu there."


@pytest.mark.parametrize(
    ("name", "here", "shown", "why"),
    [
        ("/Users/me/shop", "Linux", "/Users/me/shop", ": it looks like a macOS path."),
        ("/Users/me/shop", "macOS", "/Users/me/shop", "."),
        ("file:///Users/me/my%20shop", "Linux", "/Users/me/my shop", ": it looks like a macOS path."),
        ("/home/me/no-shop", "macOS", "/home/me/no-shop", ": it looks like a Linux path."),
        ("/home/me/no-shop", "Linux", "/home/me/no-shop", "."),
        ("file:///c%3A/Users/me", "Linux", "/c:/Users/me", ": it is a Windows path."),
        ("file:///C:/Users/me", "Linux", "/C:/Users/me", ": it is a Windows path."),
        ("C:\\Users\\me", "Linux", "C:\\Users\\me", ": it is a Windows path."),
        ("\\\\server\\share", "macOS", "\\\\server\\share", ": it is a Windows path."),
        ("file://server/share", "Linux", "file://server/share", ": it is not a path on this machine."),
        (
            "vscode-remote://ssh-remote+pi/a",
            "Linux",
            "vscode-remote://ssh-remote+pi/a",
            ": it is not a path on this machine.",
        ),
        ("untitled:Untitled-1", "Linux", "untitled:Untitled-1", ": it is not a path on this machine."),
        ("file:///nowhere/at/all", "Linux", "/nowhere/at/all", "."),
        ("FILE://localhost/nowhere", "Linux", "/nowhere", "."),
        ("file:/nowhere", "Linux", "/nowhere", "."),
        ("file:///%00", "Linux", "/\0", "."),
        ("/" + "a" * 5000, "Linux", "/" + "a" * 299 + "…", "."),
    ],
)
def test_a_folder_that_is_not_here(name: str, here: str, shown: str, why: str) -> None:
    missing = missing_folder(name, "box", here)
    assert missing.reason == f"{shown} is not a folder on box, where Amanu runs{why}"
    assert missing.hint == (CHECK if why == "." else ELSEWHERE)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert str(missing_folder(str(tmp_path / "a"), "box")) == (
        f"{tmp_path / 'a'} is a file on box, not a folder. Name the folder it is in."
    )


def test_a_uri_of_a_folder_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    assert str(missing_folder((tmp_path / "a b").as_uri(), "box")) == (
        f"{(tmp_path / 'a b').as_uri()} is a URI, not a path. Name the folder by its path: {tmp_path / 'a b'}"
    )


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("shop", "shop is not an absolute path."),
        (".", ". is not an absolute path."),
        ("~/shop", "~/shop is not an absolute path."),
        ("c:", "it is a Windows path"),
        ("untitled:1", "it is not a path on this machine"),
        ("untitled:here", "untitled:here is not an absolute path."),
    ],
)
def test_a_root_is_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, reason: str) -> None:
    (tmp_path / "untitled:here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AmanuError) as caught:
        real_root(path)
    assert reason in str(caught.value) and caught.value.data.path == "roots"
