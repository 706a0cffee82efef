"""The tests that a change most likely touches, for `make test-quick`.

    PYTHONPATH=tests python -m support.touched_tests [ROOM …]    prints their paths, one a line

The change is what was edited since the last commit; if nothing was, the last commit; or all of the rooms named. A
module stands for the tests of its room (`tests/unit/<room>`), those that import it, and those named after it. Tests
that start daemons and editors are left to `make test`, unless they were changed themselves.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONG = ("tests/e2e/", "tests/editors/", "tests/wire/", "tests/sandbox/", "tests/checkers/")
ALWAYS = "tests/unit/test_layers.py"
_COMMON = {"model", "files", "session", "sessions", "tool", "text", "main", "server", "store", "edits"}
"""Names of modules that are words in the names of many tests."""


def touched_tests(paths: Iterable[str]) -> list[str]:
    """The test files that a change of these files touches, all relative to the repository."""
    found = {test for path in paths for test in tests_of(path)}
    return sorted({*found, ALWAYS}) if found else []


def changed() -> list[str]:
    names = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    return [name for name in names or git("diff", "--name-only", "HEAD~1", "HEAD") if (ROOT / name).exists()]


def modules_of(rooms: Iterable[str]) -> Iterator[str]:
    for room in rooms:
        files = sorted((ROOT / "server" / "amanu" / room).rglob("*.py"))
        if not files:
            sys.exit(f"there is no room {room} in server/amanu")
        yield from (str(file.relative_to(ROOT)) for file in files)


def tests_of(path: str) -> Iterator[str]:
    match Path(path).parts:
        case ("tests", "support", *_):
            yield from importing(module_of(path, "tests"))
        case ("tests", *_) if Path(path).name.startswith("test_"):
            yield path
        case ("server", "amanu", *inside) if path.endswith(".py"):
            yield from importing(module_of(path, "server"))
            yield from named_after(Path(path).stem)
            if len(inside) > 1:
                folder = ROOT / "tests" / "unit" / inside[0]
                yield from (str(test.relative_to(ROOT)) for test in folder.rglob("test_*.py"))
        case ("protocol", *_):
            yield from (str(test.relative_to(ROOT)) for test in (ROOT / "tests/unit/protocol").rglob("test_*.py"))
            yield "tests/unit/test_generated.py"
        case _:
            return


def importing(module: str) -> Iterator[str]:
    package, _, name = module.rpartition(".")
    imports = re.compile(
        rf"^\s*(from {re.escape(module)} import|import {re.escape(module)}\b"
        rf"|from {re.escape(package)} import .*\b{re.escape(name)}\b)",
        re.MULTILINE,
    )
    return (path for path, text in texts().items() if imports.search(text))


def named_after(stem: str) -> Iterator[str]:
    if stem not in _COMMON and len(stem) > 3:
        yield from (path for path in texts() if stem in Path(path).stem)


@cache
def texts() -> dict[str, str]:
    """The tests that are quick, path → source."""
    tests = (ROOT / "tests").rglob("test_*.py")
    names = (test.relative_to(ROOT).as_posix() for test in tests)
    return {name: (ROOT / name).read_text("utf-8") for name in names if not name.startswith(LONG)}


def module_of(path: str, top: str) -> str:
    parts = Path(path).relative_to(top).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def git(*arguments: str) -> list[str]:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


if __name__ == "__main__":
    print(*touched_tests(modules_of(sys.argv[1:]) if sys.argv[1:] else changed()), sep="\n")
