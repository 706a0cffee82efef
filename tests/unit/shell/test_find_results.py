"""`find … | xargs …` and `find -exec`: not asked about when all the files it could name may be read."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from amanu.core.command import CommandContext
from amanu.shell import paths
from amanu.shell.analyze import read
from support.command_workspace import workspace


@pytest.fixture
def here(tmp_path: Path) -> CommandContext:
    found = workspace(tmp_path)
    for name in ("a.py", "sub/b.py", "sub/d.md", "skip/e.py"):
        (found.folder / name).parent.mkdir(exist_ok=True)
        (found.folder / name).touch()
    return found


HARMLESS = [
    "find . -name '*.py' | xargs wc -l",
    "find . -name '*.py' 2>/dev/null | xargs wc -l | tail -1",
    "find -name '*.py' -type f -print0 | xargs -0 -n 2 grep -l import",
    "find . -name '*.py' -not -path './skip/*' | sort | head -5 | xargs cat",
    "find sub -type f | xargs -r grep foo",
    "find sub -type f | xargs ls -la",
    "find . \\( -name '*.py' -o -name '*.md' \\) | xargs wc -l",
    "find . -name '*.py' -o -iname '*.MD' | xargs wc -l",
    "find . -path ./skip -prune -o -name '*.py' -print | xargs wc -l",
    "find . -name '*.py' -exec grep -l import {} +",
    "find . -name '*.py' -exec wc -l {} \\;",
    "find sub -exec head -5 '{}' \\;",
    "cd sub && find . -type f | xargs cat",
]
ASKED = [
    "find . -type f | xargs cat",
    "find . | xargs cat",
    "find . -name '*' | xargs cat",
    "find . -name '[.]env' | xargs cat",
    "find . -name '\\.env' | xargs cat",
    "find . -not -name '*.py' | xargs cat",
    "find . -name '*.py' -o -print | xargs cat",
    "find . -name '*.py' -o -type f | xargs cat",
    "find . -print -name '*.py' | xargs cat",
    "find . -exec cat {} \\; -name '*.py'",
    "find . -exec cat {} +",
    "find . -path ./.env -prune -o -type f | xargs cat",
    "find . -path ./skip -type f -prune -o -name '*.py' -print | xargs rm",
    "find . -name '*.py' | xargs rm",
    "find . -name '*.py' | xargs touch",
    "find . -name '*.py' | xargs uniq",
    "find . -name '*.py' | xargs python3",
    "find . -name '*.py' | xargs sort -o",
    "find . -name '*.py' | xargs -d / cat",
    "find . -name '*.py' | xargs -a .env cat",
    "find . -name '*.py' | xargs cat < .env",
    "find . -name '*.py' | xargs cat < a.txt",
    "find . -name '*.py' | xargs cat <<< /etc/shadow",
    "ls && find . -name '*.py' | xargs cat < a.txt",
    "! find . -name '*.py' | xargs cat < a.txt",
    "ls && ! find . -name '*.py' | sort | xargs cat < a.txt",
    "find . -name '*.py' | xargs cat <<E\n/etc/shadow\nE",
    "cat a.txt <<E | xargs cat\n/etc/shadow\nE",
    "find . -name '*.py' <<E | head a.txt | xargs cat\n/etc/shadow\nE",
    "{ find . -name '*.py'; cat a.txt; } | xargs cat",
    "(find . -name '*.py' && cat a.txt) | xargs cat",
    "find . -name '*.py' $(cat a.txt) | xargs cat",
    "find . -name '*.py' && cat a.txt | xargs cat",
    "find . -name '*.py' | echo $(xargs cat < a.txt)",
    "find . -name '*.py' | (cat a.txt; xargs cat)",
    "find . -name '*.py' | head a.txt | xargs cat",
    "find . -name '*.py' | head 5 | xargs cat",
    "find . -name '*.py' | sort a.txt | xargs cat",
    "find . -name '*.py' | cat a.txt | xargs cat",
    "find . -name '*.py' | sed s/x/y/ | xargs cat",
    "find . -name '*.py' 2>&1 | xargs cat",
    "find . -name '*.py' |& xargs cat",
    "find . -name '*.py' -printf /etc/shadow | xargs cat",
    "find . -name '*.py' -exec echo /etc/shadow \\; | xargs cat",
    "find . -name '*.py' -execdir cat {} +",
    "find . -name '*.py' -exec sh -c 'cat {}' \\;",
    "find . -name '*.py' -exec cat {} .env \\;",
    "find -L . -name '*.py' | xargs cat",
    "find / -name shadow | xargs cat",
    "find .. -name '*.py' | xargs cat",
    "find $x -name '*.py' | xargs cat",
    "echo /etc/shadow | xargs cat",
    "cat a.txt | xargs cat",
    "find . -name '*.py'; cat a.txt | xargs cat",
]


@pytest.mark.parametrize("line", HARMLESS)
def test_it_is_not_asked_about(line: str, here: CommandContext) -> None:
    assert read(line, here).effect == "none", read(line, here)


@pytest.mark.parametrize("line", ASKED)
def test_it_is_asked_about(line: str, here: CommandContext) -> None:
    assert read(line, here).effect == "some"


def _link(root: Path) -> None:
    (root / "sub" / "l.py").symlink_to("/etc/passwd")


def _secret_link(root: Path) -> None:
    (root / "sub" / "l.py").symlink_to("../.env")


def _pipe(root: Path) -> None:
    os.mkfifo(root / "sub" / "p.py")


def _lines(root: Path) -> None:
    (root / "sub" / "x\n" / "etc").mkdir(parents=True)
    (root / "sub" / "x\n" / "etc" / "p.py").touch()


def _quotes(root: Path) -> None:
    (root / "sub" / "x' '.py").touch()


def _many(root: Path) -> None:
    for number in range(paths.MOST + 1):
        (root / "sub" / f"f{number}").touch()


@pytest.mark.parametrize("spoil", [_link, _secret_link, _pipe, _lines, _quotes, _many])
def test_what_is_there_counts(spoil: Callable[[Path], None], here: CommandContext) -> None:
    line = "find sub -name '*.py' | xargs cat"
    assert read(line, here).effect == "none"
    spoil(here.folder)
    assert read(line, here).effect == "some"
