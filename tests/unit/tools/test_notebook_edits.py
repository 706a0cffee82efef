"""Edits of notebooks by the text of their cells: in the JSON only the lines of those sources change."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.core.tool import ToolError
from amanu.text.notebook import joined_text, read_notebook
from amanu.tools.edits.notebook import changed_cells, patch_notebook, replace_in_notebook
from amanu.tools.edits.patch import parse_patch
from amanu.tools.edits.patch_apply import apply_hunks
from amanu.workspace.diff import changes, compose
from amanu.workspace.text_file import split_lines
from support.tool_harness import ToolHarness

PRINTED = {"name": "stdout", "output_type": "stream", "text": ["import nump\n", "done\n"]}


def cell(source: str | list[str], kind: str = "code", *outputs: Any, **more: Any) -> dict[str, Any]:
    ran: dict[str, Any] = {"execution_count": 3, "outputs": list(outputs)} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source, **ran, **more}


CELLS = [
    cell(["# Plot\n", "of *things*"], "markdown", id="a1"),
    cell(["import nump\n", 'print("a\\n")\n', "x = 1"], "code", PRINTED, id="b2"),
    cell(["x = 1\n", "y = 'é'\n"], "code", id="c3"),
    cell([], "code", id="d4"),
]


def notebook(cells: list[dict[str, Any]] = CELLS, **style: Any) -> str:
    style = {"indent": 1, "ensure_ascii": False, **style}
    return json.dumps({"cells": cells, "metadata": {"k": 1}, "nbformat": 4, "nbformat_minor": 5}, **style) + "\n"


def edited(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    return replace_in_notebook(text, old, new, replace_all=replace_all, path="n.ipynb").text


def changed_lines(old: str, new: str) -> list[tuple[str, str]]:
    old_lines, new_lines = split_lines(old), split_lines(new)
    return [
        ("".join(old_lines[c.old_start : c.old_end]), "".join(new_lines[c.new_start : c.new_end]))
        for c in changes(old_lines, new_lines)
    ]


EDITS = [
    # in the output as well
    ("import nump", "import numpy as np", ['    "import nump\\n",\n', '    "import numpy as np\\n",\n']),
    ('print("a\\n")', 'print("é")', ['    "print(\\"a\\\\n\\")\\n",\n', '    "print(\\"é\\")\\n",\n']),
    ("of *things*", "of\n**all** things", ['    "of *things*"\n', '    "of\\n",\n    "**all** things"\n']),
    ("\nof *things*", "", ['    "# Plot\\n",\n    "of *things*"\n', '    "# Plot"\n']),
    ("# Plot\n", "", ['    "# Plot\\n",\n', ""]),
    # the line feed at the end of the source stays
    ("y = 'é'", "y = 'è'", ["    \"y = 'é'\\n\"\n", "    \"y = 'è'\\n\"\n"]),
    # which of two, by the cell's line
    ("--- cell 3: code, run 3 ---\nx = 1", "--- cell 3: code, run 3 ---\nx = 2",
     ['    "x = 1\\n",\n', '    "x = 2\\n",\n']),
    # ... and by its outputs
    ('x = 1\n[output 2.1, stdout]\nimport nump', 'x = 2\n[output 2.1, stdout]\nimport nump',
     ['    "x = 1"\n', '    "x = 2"\n']),
    # an empty cell
    ("--- cell 4: code, run 3 ---", "--- cell 4: code, run 3 ---\na\nb",
     ['   "source": [],\n', '   "source": [\n    "a\\n",\n    "b"\n   ],\n']),
    # something forgiven
    ("x = 1  \ny = 'é'", "x = 3\ny = 'é'", ['    "x = 1\\n",\n', '    "x = 3\\n",\n']),
    # the JSON itself
    ('"k": 1', '"k": 2', ['  "k": 1\n', '  "k": 2\n']),
    ('    "x = 1\\n",\n', '    "x = 4\\n",\n', ['    "x = 1\\n",\n', '    "x = 4\\n",\n']),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "lines"), EDITS)
def test_only_lines_of_that_source_change(old: str, new: str, lines: list[str]) -> None:
    text = notebook()
    assert changed_lines(text, edited(text, old, new)) == [tuple(lines)]


PATCHES = [
    (["@@", "-import nump", "+import numpy as np", ' print("a\\n")'], EDITS[0][2]),
    (["@@ --- cell 3: code, run 3 ---", "-x = 1", "+x = 2", " y = 'é'"], EDITS[6][2]),
    (["@@", '   "k": 1', '+  "l": 1'], None),  # neither in a cell nor valid JSON
    (["@@", '-  "k": 1', '+  "k": 2'], EDITS[10][2]),
]


@pytest.mark.parametrize(("hunk", "lines"), PATCHES)
def test_a_patch_changes_cells_and_else_the_json(hunk: list[str], lines: list[str] | None) -> None:
    text = notebook()
    (file,) = parse_patch("\n".join(["*** Begin Patch", "*** Update File: n.ipynb", *hunk, "*** End Patch", ""]))
    apply = partial(apply_hunks, hunks=file.hunks, path="n.ipynb")
    if lines is None:
        with pytest.raises(ToolError):
            patch_notebook(text, apply)
    else:
        assert changed_lines(text, patch_notebook(text, apply).text) == [tuple(lines)]


@pytest.mark.parametrize(
    ("style", "cells"),
    [
        ({"indent": None}, CELLS),
        ({"indent": None, "separators": (",", ":")}, CELLS),
        ({"indent": 4, "ensure_ascii": True}, CELLS),
        ({"indent": "\t"}, [cell("".join(each["source"]), each["cell_type"]) for each in CELLS]),
    ],
)
def test_it_is_written_as_the_rest_of_the_file(style: dict[str, Any], cells: list[dict[str, Any]]) -> None:
    meant = json.loads(json.dumps(cells))
    source = 'import numpy  # é\nprint("a\\n")\nx = 1'
    meant[1]["source"] = source if isinstance(meant[1]["source"], str) else source.splitlines(keepends=True)
    assert edited(notebook(cells, **style), "import nump", "import numpy  # é") == notebook(meant, **style)
    crlf = notebook(cells, **style).replace("\n", "\r\n")
    assert edited(crlf, "import nump", "import numpy  # é") == notebook(meant, **style).replace("\n", "\r\n")


NEW = cell(["a\n", "b"], execution_count=None)
ADDED = [
    ("y = 'é'", "y = 'é'\n\n--- cell: code ---\na\nb", 3, NEW),
    ("--- cell 1: markdown ---", "--- cell: code ---\na\nb\n\n--- cell 1: markdown ---", 0, NEW),
    ("stdout]\nimport nump\ndone\n", "stdout]\nimport nump\ndone\n\n--- cell: code ---\na\nb\n", 2, NEW),
    ("--- cell 4: code, run 3 ---", "--- cell 4: code, run 3 ---\n\n--- cell: markdown ---\n# B", 4,
     cell(["# B"], "markdown")),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "index", "added"), ADDED)
@pytest.mark.parametrize("indent", [1, None])
def test_a_new_cell(old: str, new: str, index: int, added: dict[str, Any], indent: int | None) -> None:
    text = notebook(indent=indent)
    result = edited(text, old, new)
    cells = json.loads(result)["cells"]
    assert len(cells[index].pop("id")) == 8 and cells[index] == added
    assert cells[:index] + cells[index + 1 :] == CELLS
    assert len(changed_lines(text, result)) == 1
    assert changed_cells(text, result) == f"new cell {index + 1}"


REFUSED = [
    ("done", "finished", "only the source of cells"),
    ("--- cell 3: code, run 3 ---", "--- cell 3: markdown ---", "only the source of cells"),
    ("--- cell 3: code, run 3 ---\nx = 1", "x = 2", "only the source of cells"),
    ("y = 'é'", "--- cell 3: code ---\ny = 2", "only the source of cells"),
    ("y = 'é'", "y = 2\n--- cell: python ---\nz", "only the source of cells"),
    ("[output 2.1, stdout]\nimport nump\ndone\n", "[output 2.1, stdout]\nimport nump\ndone\nmore\n", "only the source"),
    ("x = 1", "x = 2", "in 2 cells of n.ipynb (2, 3). Nothing was changed. Add lines around it until it is unique, "
     "beginning with the cell's own line, such as '--- cell 2: code, run 3 ---'"),
    ("not there at all", "x", "not in the cells of n.ipynb"),
    ("\nof *things*\n", "\nof *things*\n\n", "blank lines at the end of a cell"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "told"), REFUSED)
def test_what_cannot_be_mapped_is_refused(old: str, new: str, told: str) -> None:
    with pytest.raises(ToolError) as caught:
        edited(notebook(), old, new)
    assert told in str(caught.value) and "othing was changed" in str(caught.value)


def test_a_source_that_is_no_text_is_refused() -> None:
    text = notebook([{**CELLS[0], "source": ["a", 1]}])
    with pytest.raises(ToolError, match="cell 1 is not text"):
        edited(text, "a", "b")


def test_all_places_in_sources() -> None:
    result = edited(notebook(), "x = 1", "x = 5", replace_all=True)
    assert [joined_text(each["source"]).count("x = 5") for each in json.loads(result)["cells"]] == [0, 1, 1, 0]
    assert changed_cells(notebook(), result) == "cell 2, cell 3"


# Random notebooks --------------------------------------------------------------------------------------

line = st.text(alphabet='ab= \t"\\é“\u2028\x0c\x1b{}[],:', max_size=8)
source = st.lists(line, max_size=5).map("\n".join)
style = st.fixed_dictionaries({"indent": st.sampled_from([None, 1, 4]), "ensure_ascii": st.booleans()})


@st.composite
def notebooks(draw: st.DrawFn) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = []
    for text in draw(st.lists(source, min_size=1, max_size=5)):
        kind = draw(st.sampled_from(["code", "markdown"]))
        outputs = [{**PRINTED, "text": printed} for printed in draw(st.lists(source, max_size=2))]
        kept = draw(st.sampled_from([text, text.splitlines(keepends=True), [*text]]))
        cells.append(cell(kept, kind, *outputs, execution_count=draw(st.sampled_from([None, 1]))))
    return cells


@given(notebooks(), style, st.data())
def test_another_source_and_nothing_else(
    cells: list[dict[str, Any]], style: dict[str, Any], data: st.DataObject
) -> None:
    text = notebook(cells, **style)
    read = read_notebook(text)
    assert read is not None
    index = data.draw(st.integers(0, len(cells) - 1))
    was = joined_text(cells[index]["source"]).rstrip("\n")
    new = data.draw(source).rstrip("\n")
    marker = next(line for line in read.text.split("\n") if line.startswith(f"--- cell {index + 1}: "))
    old_text, new_text = (f"{marker}\n{each}" if each else marker for each in (was, new))
    try:
        result = edited(text, old_text, new_text)
    except ToolError:
        assert was == new or "\r" in was + new
        return
    meant = json.loads(text)
    found = json.loads(result)
    kept = joined_text(meant["cells"][index]["source"])[len(was) :]
    assert joined_text(found["cells"][index]["source"]) == (new + kept if new else "")
    assert type(found["cells"][index]["source"]) is type(meant["cells"][index]["source"])
    if cells[index]["source"] != [*was] and not (style["ensure_ascii"] and not new.isascii()):
        as_text = isinstance(cells[index]["source"], str)
        cells[index]["source"] = new + kept if as_text else (new + kept).splitlines(keepends=True)
        assert not new or result == notebook(cells, **style)
    found["cells"][index]["source"] = meant["cells"][index]["source"]
    assert json.dumps(found) == json.dumps(meant)
    assert changed_cells(text, result) == f"cell {index + 1}"
    old_lines, new_lines = split_lines(text), split_lines(result)
    for hunk in changes(old_lines, new_lines):  # the user may accept each alone
        replacement = "".join(new_lines[hunk.new_start : hunk.new_end])
        json.loads(compose(old_lines, [(hunk.old_start, hunk.old_end - hunk.old_start, replacement)]))


# As a tool ---------------------------------------------------------------------------------------------


async def test_the_edit_is_of_the_file_and_its_title_names_the_cell(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"n.ipynb": notebook()})
    arguments = {
        "path": "n.ipynb",
        "edits": [
            {"old_text": "import nump", "new_text": "import numpy"},
            {"old_text": "# Plot", "new_text": "# Plots"},
        ],
    }
    call = harness.context()
    outcome = await harness.run("edit_file", arguments, call=call)
    assert call.preview is not None and call.preview.title == "Edit n.ipynb, cell 1, cell 2"
    assert outcome.for_user == "Changes: 2 applied"
    on_disk = harness.on_disk("n.ipynb").decode()
    assert on_disk == notebook().replace('"import nump\\n",\n    "print', '"import numpy\\n",\n    "print').replace(
        "# Plot", "# Plots"
    )


async def test_the_text_of_cells_is_never_written_as_the_file(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, {"n.ipynb": notebook()})
    with pytest.raises(ToolError, match="use edit_file"):
        await harness.run("write_file", {"path": "n.ipynb", "content": "--- cell 1: code ---\nx = 1\n"})
    assert harness.on_disk("n.ipynb").decode() == notebook()
