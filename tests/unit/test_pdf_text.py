"""PDF documents, whole and hostile, read in a process of its own."""

import io

import pytest
from pypdf import PdfReader, PdfWriter

from amanu.text.pdf_text import MAX_PAGES, PdfError, pdf_text
from support.sample_pdf import pdf

LONG = pdf(*(f"Page {number}" for number in range(1, 61)))


def encrypted(data: bytes, password: str) -> bytes:
    writer, out = PdfWriter(), io.BytesIO()
    writer.append(PdfReader(io.BytesIO(data)))
    writer.encrypt(password, owner_password="owner", algorithm="AES-256")
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "pages", "texts", "count"),
    [
        (pdf("One.", "", "Three."), (1, None), ("One.", "", "Three."), 3),
        (pdf("One.", "", "Three."), (3, 9), ("Three.",), 3),
        (LONG, (1, None), tuple(f"Page {number}" for number in range(1, MAX_PAGES + 1)), 60),
        (LONG, (59, None), ("Page 59", "Page 60"), 60),
        (encrypted(pdf("For all."), ""), (1, None), ("For all.",), 1),
        (pdf("One.") + b"\n" * 5_000, (1, None), ("One.",), 1),
    ],
    ids=["all", "past the end", "too many", "the last", "encrypted for nobody", "far from its end marker"],
)
def test_the_pages_asked_for_are_read(
    data: bytes, pages: tuple[int, int | None], texts: tuple[str, ...], count: int
) -> None:
    read = pdf_text(data, *pages, extract=True)
    assert (read.pages, read.page_count, read.first_page) == (texts, count, pages[0])
    assert b"%%EOF" in read.extract[-1_024:], "or services refuse it"
    alone = PdfReader(io.BytesIO(read.extract))
    assert not alone.is_encrypted
    assert tuple(page.extract_text().strip() for page in alone.pages) == texts


@pytest.mark.parametrize(
    ("data", "first", "seconds", "says"),
    [
        (b"%PDF-1.7\njunk", 1, 30, "is damaged"),
        (pdf("One.")[:300], 1, 30, "is damaged"),
        (pdf("One."), 2, 30, "has 1 page; page 2 does not exist"),
        (encrypted(pdf("Secret."), "pw"), 1, 30, "is encrypted"),
        (pdf("One."), 1, 0.001, "took more than"),
    ],
    ids=["junk", "cut off", "no such page", "encrypted", "slow"],
)
def test_what_cannot_be_read_is_an_error_that_says_why(data: bytes, first: int, seconds: float, says: str) -> None:
    with pytest.raises(PdfError, match=says):
        pdf_text(data, first, seconds=seconds)
