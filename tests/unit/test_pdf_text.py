"""The text of a PDF, in bounds."""

import pytest

from amanu.text import pdf_text as reader
from amanu.text.pdf_text import PdfError, pdf_text
from support.hostile_site import pdf

THREE = pdf("One", "Two", "Three")


@pytest.mark.parametrize(
    ("pages", "first", "last", "expected"),
    [
        (THREE, 1, None, ["One", "Two", "Three"]),
        (THREE, 2, None, ["Two", "Three"]),
        (THREE, 2, 2, ["Two"]),
        (THREE, 3, 9, ["Three"]),
        (pdf(""), 1, None, [""]),
    ],
)
def test_pages(pages: bytes, first: int, last: int | None, expected: list[str]) -> None:
    read = pdf_text(pages, first, last)
    assert list(read.pages) == expected
    assert (read.first_page, read.cut) == (first, False)
    assert read.page_count == (1 if pages is not THREE else 3)


@pytest.mark.parametrize(
    ("data", "first", "says"),
    [
        (THREE, 4, "has 3 pages"),
        (THREE, 0, "page 0"),
        (b"", 1, "damaged"),
        (b"%PDF-1.4\ngarbage", 1, "damaged"),
        (THREE[:200], 1, "damaged"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, first: int, says: str) -> None:
    with pytest.raises(PdfError, match=says):
        pdf_text(data, first)


@pytest.mark.parametrize(
    ("bound", "value", "pages"), [("MAX_PAGES", 2, 2), ("MAX_SECONDS", -1.0, 0), ("MAX_CHARACTERS", 2, 1)]
)
def test_work_is_bounded(bound: str, value: float, pages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, bound, value)
    read = pdf_text(THREE)
    assert (len(read.pages), read.page_count, read.cut) == (pages, 3, True)
