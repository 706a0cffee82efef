"""The table of behaviours has no empty cell, and docs/models.md says what the code and the tests say."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support import vendor_matrix
from support.vendor_matrix import COLUMNS, YES


def test_every_cell_is_filled() -> None:
    empty = [
        (row.behaviour, column)
        for _, rows in vendor_matrix.rows()
        for row in rows
        for column, cell in row.cells.items()
        if not cell
    ]
    assert empty == [], "no vendor of the column runs it, and none says why: `Vendor.lacks` in vendors.py"


def test_every_need_is_one_that_some_vendor_has() -> None:
    assert all(YES in row.cells.values() for _, rows in vendor_matrix.rows() for row in rows)


@pytest.mark.parametrize("path", vendor_matrix.DOCUMENTS, ids=lambda path: path.name)
def test_the_document_is_fresh(path: Path) -> None:
    text = path.read_text("utf-8")
    assert vendor_matrix.document(text, vendor_matrix.DOCUMENTS[path]) == text, "run: make generate"


def test_a_document_without_its_places_is_no_document() -> None:
    with pytest.raises(ValueError, match="families"):
        vendor_matrix.document("# Models\n", {"families": vendor_matrix.families_table})


def report(behaviour: str, column: str) -> Any:
    return SimpleNamespace(user_properties=[("behaviour", (behaviour, column))])


def test_the_run_prints_what_it_saw() -> None:
    rows = [row for _, rows in vendor_matrix.rows() for row in rows]
    rows.sort(key=lambda row: set(row.cells.values()) != {YES})  # those that all vendors have come first
    names = ["test_" + row.behaviour.replace(" ", "_") for row in rows]
    gap = next(at for at, row in enumerate(rows) if row.cells["Gemini 3"] != YES)
    passed = [report(name, column) for name in names for column in COLUMNS[1:2]]
    failed = [report(names[0], "Gemini 2.5"), report(names[1], "Gemini 2.5")]
    untried = dict.fromkeys(COLUMNS, "·")
    lines = vendor_matrix.summary({"passed": passed, "failed": failed, "error": []})
    cells = {line[2:76].strip(): line[76:].split() for line in lines if line.startswith("  ")}
    assert dict(zip(COLUMNS, cells[rows[0].behaviour], strict=True)) == {**untried, COLUMNS[1]: "✓", "Gemini 2.5": "✗"}
    assert dict(zip(COLUMNS, cells[rows[2].behaviour], strict=True)) == {**untried, COLUMNS[1]: "✓"}
    assert "–" in cells[rows[gap].behaviour]


def test_a_run_of_a_few_tests_prints_nothing() -> None:
    assert vendor_matrix.summary({"passed": [report("test_usage_is_counted", "Gemini 3")]}) == []
    assert vendor_matrix.summary({}) == []
