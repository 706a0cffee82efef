"""Edits of a rename: those that replace the old name, as language servers send them, and others."""

import pytest

from amanu.text.span_edits import SpanEdit
from amanu.tools.code.renamed_names import Rename, WrongEdit

OLD = ("old", "new")


@pytest.mark.parametrize(
    ("names", "text", "edits", "line"),
    [
        (OLD, "a = old\n", [(4, 7, "new")], None),
        (OLD, "a = old\n", [(4, 7, "newer")], None),  # with something beside it
        (OLD, "{ old }", [(2, 5, "old: new")], None),
        (OLD, "{ old }", [(2, 5, "new: old")], None),
        (OLD, "{ old }", [(2, 2, "new: ")], None),  # put in before it
        (OLD, "{ old }", [(5, 5, " as new")], None),  # and behind it
        (OLD, "{ old: new }", [(2, 10, "new")], None),
        (OLD, "{ new: old }", [(2, 10, "new")], None),
        (OLD, "import 'a/old'", [(7, 14, "'a/new'")], None),
        (OLD, "import 'a/old/old'", [(7, 18, "'a/new/old'")], None),
        (OLD, "@old", [(0, 4, "@new")], None),
        (("@old", "@new"), "@old; old", [(0, 4, "@new"), (6, 9, "new")], None),
        (("$old", "$new"), "$this->old", [(7, 10, "new")], None),
        (("cart.old", "new"), "cart.old", [(5, 8, "new")], None),
        (("--my-old", "--my-new"), "--my-old: 1", [(0, 8, "--my-new")], None),
        (OLD, "OLD = 1", [(0, 3, "new")], None),  # where case does not matter
        (("subtotal", "total"), "subtotal()", [(0, 3, "")], None),  # the letters that differ
        (("total", "subtotals"), "total()", [(0, 0, "sub"), (5, 5, "s")], None),
        (OLD, "old\nold\nbold\n", [(0, 13, "new\nold\nbold\n")], None),  # the whole file
        (("é", "e"), "😀é", [(1, 2, "e")], None),
        (("total", "total2"), "total\n", [(0, 6, "total2\n")], None),
        (("total2", "total"), "total2\ntotal2", [(0, 13, "total\ntotal2")], None),
        (OLD, "a = old\n", [(3, 6, "new")], 1),
        (OLD, "a = old\n", [(5, 8, "new")], 1),
        (OLD, "a\r\nb\r\nold", [(6, 9, "new"), (3, 4, "new")][::-1], 2),
        (OLD, "a = old\n", [(4, 7, "")], 1),
        (OLD, "a = old\n", [(4, 7, "other")], 1),
        (OLD, "a = bold\n", [(5, 8, "new")], 1),
        (OLD, "a = older\n", [(4, 7, "new")], 1),
        (OLD, "a = 1\n", [(0, 0, "new")], 1),
        (OLD, "old\nrest\n", [(0, 9, "new\n")], 1),
        (OLD, "old\nrest\n", [(0, 9, "old\nrest\n")], 1),
        (OLD, "old\nrest\n", [(0, 9, "new\nrest\nmore\n")], 1),
        (OLD, "old\nrest\n", [(0, 9, "new\nREST\n")], 1),
        (OLD, "a\n    barold 1\n", [(6, 9, "new")], 2),
    ],
)
def test_edits(names: tuple[str, str], text: str, edits: list[tuple[int, int, str]], line: int | None) -> None:
    wrong = None
    try:
        Rename(*names).check(text, [SpanEdit(*each) for each in edits])
    except WrongEdit as error:
        wrong = error.line
    assert wrong == line
