"""The page about pairs of features names every pair once, and only tests and places in the code that exist."""

import ast
import re
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "decisions" / "combinations.md"
FEATURES = (
    "sub-agent",
    "background job",
    "draft",
    "plan mode",
    "two sessions",
    "second client",
    "reload",
    "headless run",
    "untrusted folder",
    "undo",
    "MCP",
    "hook",
    "steering",
)
_SECTION = re.compile(r"^## (.+)$|^\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_HEADER = "with"


def rows() -> list[tuple[str, str, str]]:
    """Two features, and what the page says of them."""
    feature, found = "", list[tuple[str, str, str]]()
    for section, other, said in _SECTION.findall(PAGE.read_text()):
        feature = section or feature
        if other and other != _HEADER:
            found.append((feature, other, said))
    return found


@cache
def names_in(file: Path) -> frozenset[str]:
    """Functions, methods, classes and module-level names of a file, read without importing it."""
    names = set[str]()
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return frozenset(names)


def fault(named: str) -> str:
    """The fault in the name of a test or of a place in the code; "" for none."""
    if "::" in named:
        path, _, name = named.partition("::")
        files = [*(ROOT / "tests").rglob(path)]
    else:
        path, _, name = named.partition(": ")
        files = [each for each in [ROOT / "server" / "amanu" / path] if each.is_file()]
    if len(files) != 1:
        return f"{len(files)} files are named {path}"
    return "" if name in names_in(files[0]) else f"{path} has no {name}"


def test_every_pair_is_there_once() -> None:
    assert [frozenset(row[:2]) for row in rows()] == [frozenset(pair) for pair in combinations(FEATURES, 2)]


@pytest.mark.parametrize("feature", FEATURES[:-1])
def test_what_it_names_exists(feature: str) -> None:
    for one, other, said in rows():
        if one == feature:
            named = re.findall(r"`([^`]+)`", said)
            assert named, f"{one} with {other}: nothing is named"
            assert [problem for each in named if (problem := fault(each))] == [], f"{one} with {other}"


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("test_combinations.py::test_every_pair_is_there_once", ""),
        ("test_combinations.py::test_nothing", "has no test_nothing"),
        ("test_background_commands.py::test_x", "2 files are named"),
        ("session/prompts.py: Prompts", ""),
        ("session/prompts.py: nothing", "has no nothing"),
        ("session/nowhere.py: nothing", "0 files are named"),
    ],
)
def test_a_name_that_leads_nowhere_is_found(named: str, problem: str) -> None:
    assert problem in fault(named) and bool(problem) == bool(fault(named))
