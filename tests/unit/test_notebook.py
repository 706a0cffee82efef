"""Notebooks by cell."""

import json
from typing import Any

import pytest

from amanu.text.notebook import MAX_OUTPUT, MAX_PICTURES, MAX_TEXT, read_notebook
from support.sample_images import base64_of, png

SHOT = {"output_type": "display_data", "data": {"image/png": base64_of(png()), "text/plain": "<Figure>"}}


def notebook(*cells: Any) -> str:
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def code(*outputs: Any, source: Any = "1", count: int | None = 3) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": count, "source": source, "outputs": list(outputs)}


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ({"cell_type": "markdown", "source": ["# A\n", "b"]}, "--- cell 1: markdown ---\n# A\nb\n"),
        (code(source="x = 1\n", count=None), "--- cell 1: code ---\nx = 1\n"),
        (
            code({"output_type": "stream", "name": "stderr", "text": ["a\n", "b\n"]}),
            "--- cell 1: code, run 3 ---\n1\n[output 1.1, stderr]\na\nb\n",
        ),
        (
            code({"output_type": "execute_result", "data": {"text/html": "<p>", "text/plain": ["1"]}}),
            "--- cell 1: code, run 3 ---\n1\n[output 1.1, text/plain]\n1\n",
        ),
        (
            code({"output_type": "error", "ename": "E", "evalue": "no", "traceback": ["\x1b[31mat 1\x1b[0m", "at 2"]}),
            "--- cell 1: code, run 3 ---\n1\n[output 1.1, error E: no]\nat 1\nat 2\n",
        ),
        (code(SHOT), "--- cell 1: code, run 3 ---\n1\n[output 1.1, picture image/png]\n"),
        (
            code({"output_type": "display_data", "data": {"application/x": "?"}}, 7, {"output_type": "new"}),
            "--- cell 1: code, run 3 ---\n1\n[output 1.1: application/x, not shown]\n"
            "[output 1.3: nothing, not shown]\n",
        ),
        (
            code({"output_type": "display_data", "data": {"image/png": "no base64!"}}),
            "--- cell 1: code, run 3 ---\n1\n[output 1.1, picture image/png: damaged]\n",
        ),
    ],
)
def test_a_cell_is_its_source_and_its_outputs(cell: Any, text: str) -> None:
    read = read_notebook(notebook(cell))
    assert read is not None
    assert (read.text, read.cells) == (text, 1)


@pytest.mark.parametrize(
    "source", ["", "{", "[]", "{}", '{"cells": 1}', '{"cells": [1]}', '{"worksheets": []}', "[" * 9_999]
)
def test_what_is_no_notebook_is_none(source: str) -> None:
    assert read_notebook(source) is None


def test_outputs_cells_and_pictures_are_bounded() -> None:
    long = {"output_type": "stream", "text": "x" * 100_000}
    read = read_notebook(notebook(code(long), code(*[SHOT] * 12), *[code(source="y" * 20_000)] * 9))
    assert read is not None
    assert f"[… {100_000 - MAX_OUTPUT:,} characters left out …]" in read.text
    assert list(read.pictures) == [f"output 2.{number}" for number in range(1, MAX_PICTURES + 1)]
    assert "[output 2.12, picture image/png: too many to show]" in read.text
    assert (read.cells, read.shown_cells) == (11, 6)
    assert len(read.text) <= MAX_TEXT
