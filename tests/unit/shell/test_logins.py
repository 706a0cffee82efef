"""Which commands need the user's keys, or the socket of a service."""

import os
import subprocess
from pathlib import Path

import pytest

from amanu.core.command import CommandContext
from amanu.sandbox.git_dirs import remote_addresses
from amanu.shell.analyze import read
from amanu.shell.logins import logs_in

SSH, HTTPS, LOCAL = "git@example.org:shop.git", "https://example.org/shop.git", "/srv/shop.git"


@pytest.mark.parametrize(
    ("line", "remote", "expected"),
    [
        ("git push", SSH, True),
        ("git push -q origin HEAD:main | tail", "ssh://example.org/shop.git", True),
        ("cd . && git push", "host-of-the-user:shop.git", True),
        ("git push", HTTPS, True),
        ("git push", "https://name:token@example.org/shop.git", False),
        ("git push", LOCAL, False),
        ("git push", "file:///srv/shop.git", False),
        ("git push", "git://127.0.0.1:1234/shop.git", False),
        ("git fetch && make", SSH, True),
        ("git fetch", HTTPS, False),
        (f"git clone {SSH}", HTTPS, True),
        (f"git clone {HTTPS}", SSH, False),
        (f"git fetch {SSH} HEAD:main", LOCAL, True),
        ("git status", SSH, False),
        ("git commit -m push", SSH, False),
        ("gh pr list | head", HTTPS, True),
        ("docker compose up -d", HTTPS, True),
        ("ssh example.org true", HTTPS, True),
        ("npm install", SSH, False),
        ("curl https://example.org", SSH, False),
        ("echo ssh", SSH, False),
    ],
)
def test_a_command_logs_in(tmp_path: Path, line: str, remote: str, expected: bool) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "remote", "add", "origin", remote], check=True, cwd=tmp_path)
    (tmp_path / "sub").mkdir()
    context = CommandContext(
        folder=tmp_path / "sub",
        roots=(tmp_path,),
        environment={"PATH": "/usr/bin:/bin"},
        may_read=lambda path: True,
        trusted=True,
        sandboxed=True,
    )
    assert logs_in(read(line, context).commands, remote_addresses(tmp_path / "sub")) == expected


def test_settings_that_are_no_file_have_no_remotes(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "config")
    assert remote_addresses(tmp_path) == []


@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_a_folder_whose_repository_is_elsewhere_has_its_remotes(tmp_path: Path, kind: str) -> None:
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b.example", "-c", "protocol.file.allow=always"]
    main, other = tmp_path / "main", tmp_path / "other"
    for folder in (main, other):
        subprocess.run([*git, "init", "-q", folder], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True, cwd=folder)
    if kind == "worktree":
        subprocess.run([*git, "remote", "add", "origin", SSH], check=True, cwd=main)
        subprocess.run([*git, "worktree", "add", "-q", "../linked"], check=True, cwd=main)
        assert remote_addresses(tmp_path / "linked") == [SSH]
    else:
        subprocess.run([*git, "submodule", "--quiet", "add", other, "sub"], check=True, cwd=main)
        assert remote_addresses(main / "sub") == [str(other)]
