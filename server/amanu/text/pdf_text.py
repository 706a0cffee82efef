"""The text of a PDF, page by page. A hostile file can keep a reader busy for long: work is bounded in pages and in
time, and who cannot wait calls this in a process of its own."""

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass

MAX_PAGES = 200
"""Read at once."""
MAX_SECONDS = 15.0
MAX_CHARACTERS = 2_000_000


class PdfError(ValueError):
    """The PDF cannot be read; a sentence that says why."""


@dataclass(frozen=True)
class PdfText:
    """What could be read in the bounds. `pages` are the texts of the pages from `first_page` on, "" for one without
    text."""

    pages: Sequence[str]
    page_count: int
    first_page: int = 1
    cut: bool = False
    """There was more to read than the bounds allow."""


def pdf_text(data: bytes, first_page: int = 1, last_page: int | None = None) -> PdfText:
    """The text of those pages (1-based, inclusive; None: the last). Blocks. Raises `PdfError`."""
    import logging

    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of every oddity of a file
    ends_at = time.monotonic() + MAX_SECONDS
    pages: list[str] = []
    characters = 0
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise PdfError("The PDF is protected with a password.")
        count = len(reader.pages)
        if not 1 <= first_page <= max(count, 1):
            raise PdfError(f"The PDF has {count} pages; page {first_page} does not exist.")
        last = min(count, last_page or count)
        for number in range(first_page - 1, last):
            if len(pages) == MAX_PAGES or characters > MAX_CHARACTERS or time.monotonic() > ends_at:
                return PdfText(pages, count, first_page, cut=True)
            text = reader.pages[number].extract_text()
            characters += len(text)
            pages.append(text)
    except PdfError:
        raise
    except Exception as error:  # pypdf meets damage with errors of every kind
        raise PdfError(f"The PDF is damaged or of a kind that cannot be read ({type(error).__name__}).") from error
    return PdfText(pages, count, first_page)
