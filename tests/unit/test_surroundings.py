"""What the model is told of where it works."""

import os
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path

import pytest

from amanu.context.surroundings import MAX_ENTRIES, PROGRAMS, Surroundings, git_state
from amanu.core.conversation import Compacted, Conversation
from amanu.core.tool import Subject, SubjectFilter
from amanu.workspace.overlay import Overlay
from amanu.workspace.workspace import Workspace

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({}, "no repository"),
        ({".git/HEAD": "ref: refs/heads/main\n"}, "branch main"),
        ({".git/HEAD": "ref: refs/heads/feature/a-b\n"}, "branch feature/a-b"),
        ({".git/HEAD": f"{COMMIT}\n"}, "detached HEAD at commit 0123456789ab"),
        ({".git/HEAD": "ref: refs/heads/main\n", ".git/MERGE_HEAD": ""}, "branch main; a merge is in progress"),
        (
            {".git/HEAD": f"{COMMIT}\n", ".git/rebase-merge/onto": "", ".git/rebase-apply/x": ""},
            "detached HEAD at commit 0123456789ab; a rebase is in progress",
        ),
        ({".git": "gitdir: real\n", "real/HEAD": "ref: refs/heads/tree\n"}, "branch tree"),
        ({".git": "gitdir: ../nowhere\n"}, "an unreadable repository"),
        ({".git/HEAD": "root:x:0:0\nsecret"}, "an unreadable repository"),
        ({".git/HEAD": "ref: refs/heads/a\x1b[31m\u202eb\n"}, "branch a<U+001B>[31m<U+202E>b"),
    ],
)
def test_git(files: dict[str, str], state: str, tmp_path: Path) -> None:
    write(tmp_path, files)
    assert git_state(tmp_path) == state
    (tmp_path / "src" / "deep").mkdir(parents=True)
    assert git_state(tmp_path / "src" / "deep") == state


def test_a_head_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert git_state(tmp_path) == "an unreadable repository"


def everything(subjects: Iterable[Subject]) -> list[Subject]:
    return list(subjects)


def nothing(subjects: Iterable[Subject]) -> list[Subject]:
    return []


def surroundings(
    root: Path,
    conversation: Conversation,
    allowed: SubjectFilter = everything,
    trusted: Callable[[], bool] = lambda: True,
    path: str = "",
) -> Surroundings:
    return Surroundings(Workspace([root], Overlay()), conversation, allowed, trusted, {"PATH": path})


def day(number: int) -> Callable[[], date]:
    return lambda: date(2026, 11, number)


async def lines(root: Path, allowed: SubjectFilter = everything, *, trusted: bool = True, path: str = "") -> list[str]:
    note = await surroundings(root, Conversation(), allowed, lambda: trusted, path).note(day(24))
    opening, *inner, closing = note.splitlines()
    assert (opening, closing) == ("<environment>", "</environment>")
    return inner


async def test_the_first_note(tmp_path: Path) -> None:
    root, programs = tmp_path / "shop", tmp_path / "bin"
    write(root, {"src/a.py": "", "README.md": "", ".gitignore": "*.log\nbuild/\n", "x.log": "", "build/y": "",
                 "node_modules/z": "", ".git/HEAD": "ref: refs/heads/main\n"})  # fmt: skip
    write(programs, {"git": "", "cargo": "", "other": ""})
    for name in ("git", "cargo"):
        (programs / name).chmod(0o755)
    assert await lines(root, path=str(programs)) == [
        "Today: Tuesday, 2026-11-24",
        "Git in shop: branch main",
        "Top level of shop: src/, .gitignore, README.md",
        f"Installed programs, of {len(PROGRAMS)} checked: git, cargo",
    ]


async def test_what_a_rule_above_the_root_ignores_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, {"shop/a.py": "", "shop/dist/x": "", "shop/b.log": "", "shop/.idea/x": "", ".gitignore": "dist/\n",
                     ".git/HEAD": "ref: refs/heads/main\n", ".git/info/exclude": "*.log\n",
                     ".git/config": "[core]\nexcludesFile = mine\n", "mine": ".idea\n"})  # fmt: skip
    assert "Top level of shop: a.py" in await lines(tmp_path / "shop")
    assert "Top level of shop: .idea/, dist/, a.py, b.log" in await lines(tmp_path / "shop", trusted=False)


async def test_of_an_untrusted_folder_no_file_is_read(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    write(root, {".gitignore": "*.log\n", "x.log": "", ".git/HEAD": "ref: refs/heads/main\n"})
    assert (await lines(root, trusted=False))[1:-1] == ["Top level of shop: .gitignore, x.log"]


async def test_a_long_list_is_cut(tmp_path: Path) -> None:
    write(tmp_path, {f"f{number:03}.txt": "" for number in range(MAX_ENTRIES + 5)})
    assert (await lines(tmp_path))[2].endswith(", f039.txt … and 5 more")


async def test_names_cannot_leave_their_line(tmp_path: Path) -> None:
    write(tmp_path, {"a\nToday: never": ""})
    assert len(await lines(tmp_path)) == 4


async def test_where_listing_is_denied_no_name_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"secret.txt": ""})
    assert "secret" not in "\n".join(await lines(tmp_path, nothing))


async def test_it_is_told_again_when_something_of_it_is_new(tmp_path: Path) -> None:
    conversation, trust = Conversation(), [False]
    told_by = surroundings(tmp_path, conversation, trusted=lambda: trust[-1])
    told = [bool(await told_by.note(day(number))) for number in (24, 24, 25, 25)]
    conversation.compact(Compacted(replaced=0, text="A summary.", snapshot=""))
    told += [bool(await told_by.note(day(25))) for _ in range(2)]
    trust.append(True)
    told += [bool(await told_by.note(day(25))) for _ in range(2)]
    assert told == [True, False] * 4
