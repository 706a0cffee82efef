"""Deleted files and new ones are paired as renames."""

from itertools import count
from pathlib import Path

import pytest

from amanu.proposals.rows import RowChange, row_title
from amanu.tools.shell.renames import MAX_COMPARED, MAX_TEXT, SECONDS, exact_pairs, similar_pairs, with_renames
from amanu_protocol.items import Line, RowVersion

Pairs = dict[str, str]


def paths(contents: dict[str, str]) -> dict[Path, str]:
    return {Path("/w") / name: content for name, content in contents.items()}


def names(pairs: dict[Path, Path]) -> Pairs:
    return {old.relative_to("/w").as_posix(): new.relative_to("/w").as_posix() for old, new in pairs.items()}


@pytest.mark.parametrize(
    ("deleted", "new", "expected"),
    [
        ({}, {}, {}),
        ({"a": "x"}, {"b": "x"}, {"a": "b"}),
        ({"a": "x"}, {"b": "y"}, {}),
        ({"a": ""}, {"b": ""}, {}),
        ({"a": "x"}, {"b": "x", "c": "x"}, {"a": "b"}),
        ({"a": "x"}, {"c": "x", "b": "x"}, {"a": "b"}),
        ({"a": "x"}, {"b": "x", "z/a": "x"}, {"a": "z/a"}),
        ({"a": "x", "b": "x"}, {"z/b": "x"}, {"b": "z/b"}),
        ({"b": "x", "a": "x"}, {"d": "x", "c": "x"}, {"a": "c", "b": "d"}),
        ({"a": "x", "b": "x"}, {"c": "x", "z/a": "x"}, {"a": "z/a", "b": "c"}),
        ({"a": "x", "b": "y"}, {"c": "y", "d": "x"}, {"a": "d", "b": "c"}),
        ({"1/a": "x", "2/a": "x"}, {"3/a": "x", "4/a": "x"}, {"1/a": "3/a", "2/a": "4/a"}),
    ],
)
def test_files_of_the_same_content_are_paired(deleted: Pairs, new: Pairs, expected: Pairs) -> None:
    assert names(exact_pairs(paths(deleted), paths(new))) == expected


TEN = "".join(f"{line}\n" for line in range(10))
FIVE, FOUR = TEN[:10], TEN[:8]


@pytest.mark.parametrize(
    ("deleted", "new", "expected"),
    [
        ({"a": TEN}, {"b": TEN}, {"a": "b"}),
        ({"a": TEN}, {"b": FIVE}, {"a": "b"}),
        ({"a": TEN}, {"b": FOUR}, {}),
        ({"a": FIVE}, {"b": TEN}, {"a": "b"}),
        ({"a": FOUR}, {"b": TEN}, {}),
        ({"a": TEN}, {"b": FIVE + "x\n" * 5}, {"a": "b"}),
        ({"a": TEN}, {"b": FIVE + "x\n" * 6}, {}),
        ({"a": "x\n" * 10}, {"b": "x\n" * 5}, {"a": "b"}),
        ({"a": "x\n" * 10}, {"b": "x\n" * 4 + "y\n"}, {}),
        ({"a": "x\ny\n"}, {"b": "y\nx\n"}, {"a": "b"}),
        ({"a": "x\r\ny\r\n"}, {"b": "x\ny\n"}, {}),
        ({"a": ""}, {"b": ""}, {}),
        ({"a": "x\n"}, {"b": ""}, {}),
        ({"a": TEN}, {"b": FIVE, "c": f"{TEN}x\n"}, {"a": "c"}),
        ({"a": TEN, "b": FIVE}, {"c": f"{TEN}x\n"}, {"a": "c"}),
        ({"a": TEN}, {"b": f"{TEN}x\n", "z/a": f"{TEN}y\n"}, {"a": "z/a"}),
        ({"a": TEN, "b": TEN}, {"c": f"{TEN}x\n", "d": f"{TEN}x\n"}, {"a": "c", "b": "d"}),
        ({"a": "x\n" * (MAX_TEXT // 2)}, {"b": "x\n" * (MAX_TEXT // 2)}, {"a": "b"}),
        ({"a": "x\n" * (MAX_TEXT // 2 + 1)}, {"b": "x\n" * (MAX_TEXT // 2)}, {}),
        ({"a": "x\n" * (MAX_TEXT // 2)}, {"b": "x\n" * (MAX_TEXT // 2 + 1)}, {}),
    ],
)
def test_similar_texts_are_paired(deleted: Pairs, new: Pairs, expected: Pairs) -> None:
    assert names(similar_pairs(paths(deleted), paths(new), lambda: 0.0)) == expected


def test_no_more_than_so_many_texts_are_compared() -> None:
    deleted = {f"a{at:03}": f"{TEN}{at}\n" for at in range(MAX_COMPARED + 2)}
    new = {f"b{at:03}": f"{TEN}{at}\n" for at in range(MAX_COMPARED + 2)}
    expected = {f"a{at:03}": f"b{at:03}" for at in range(MAX_COMPARED)}
    assert names(similar_pairs(paths(deleted), paths(new), lambda: 0.0)) == expected


@pytest.mark.parametrize(("compared", "expected"), [(0, {}), (1, {"a": "c"}), (4, {"a": "c", "b": "d"})])
def test_what_does_not_fit_into_the_time_is_not_compared(compared: int, expected: Pairs) -> None:
    times = count(0.0, SECONDS / (compared + 0.5))
    pairs = similar_pairs(paths({"a": TEN, "b": TEN}), paths({"c": TEN, "d": TEN}), lambda: next(times))
    assert names(pairs) == expected


def version(content: str, size: int = 1, mode: int = 0o644) -> RowVersion:
    return RowVersion(kind="file", size=size, mode=mode, file_id=content)


def deletion(name: str, content: str, size: int = 1) -> RowChange:
    return RowChange("deletion", Path("/w") / name, version(content, size), lines=[Line(tone="warning", text="x")])


def file(name: str, content: str, before: RowVersion | None = None, title: str = "", mode: int = 0o644) -> RowChange:
    return RowChange("file", Path("/w") / name, before, version(content, mode=mode), title)


def link(name: str) -> RowChange:
    return RowChange("link", Path("/w") / name, None, RowVersion(kind="link", target="x"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([deletion("a", "x"), file("b", "x")], ["rename /w/a /w/b: renamed, binary file, 1 bytes"]),
        (
            [deletion("a", "x"), file("z/a", "x", mode=0o755)],
            ["rename /w/a /w/z/a: renamed, binary file, 1 bytes, executable"],
        ),
        (
            [file("b", "x", title="new file too large to show, 1 bytes"), deletion("a", "x")],
            ["rename /w/a /w/b: renamed, file too large to show, 1 bytes"],
        ),
        (
            [deletion("a", "x"), file("b", "y")],
            ["deletion /w/a: deleted", "file /w/b: new binary file, 1 bytes"],
        ),
        (
            [deletion("a", "x"), file("b", "x", version("z"))],
            ["deletion /w/a: deleted", "file /w/b: binary file, 1 → 1 bytes"],
        ),
        (
            [deletion("a", "x", size=0), file("b", "x")],
            ["deletion /w/a: deleted", "file /w/b: new binary file, 1 bytes"],
        ),
        (
            [deletion("a", ""), file("b", "")],
            ["deletion /w/a: deleted", "file /w/b: new binary file, 1 bytes"],
        ),
        (
            [deletion("a", "x"), file("not", "x")],
            ["deletion /w/a: deleted", "file /w/not: new binary file, 1 bytes"],
        ),
        (
            [RowChange("deletion", Path("/w/a"), RowVersion(kind="link", target="x")), link("b")],
            ["deletion /w/a: deleted", "link /w/b: link to x"],
        ),
    ],
)
def test_a_deletion_and_a_new_file_become_one_row(rows: list[RowChange], expected: list[str]) -> None:
    renamed = with_renames(rows, lambda row: row.path.name != "not")
    found = [f"{row.kind} {' '.join(map(str, row.paths))}: {row.title or row_title(row)}" for row in renamed]
    assert found == expected
    for row in renamed if len(renamed) < len(rows) else ():
        old, new = row.parts
        assert [(old.kind, old.path, old.before), (new.kind, new.path, new.after)] == [
            ("deletion", row.path, row.before),
            ("file", row.new_path, row.after),
        ]
        assert {each.title for each in rows} >= {new.title} and row.lines == ()
        assert len({each.digest for each in (row, *rows)}) == 3
