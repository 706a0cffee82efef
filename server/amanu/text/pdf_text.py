"""The text of a PDF document's pages.

Documents come from anywhere, and reading one may take forever or use up all memory. So that is done in its own process,
this same file run as a program (`python -I pdf_text.py`), which has limits on both.

Its input: a line of JSON `{"path", "first", "last", "extract"}`, then the document. Its output: a line of JSON
`{"count", "pages"}` or `{"error"}`, then the document of these pages alone if it was asked for.
"""

import contextlib
import importlib.util
import io
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_PAGES = 20
"""Pages read at once, unless more are asked for."""
MAX_CHARACTERS = 40_000
"""Of the text of one page."""
SECONDS = 30.0
_MEMORY = 1 << 30
_END = 1_024
"""Bytes at the end of a document in which services look for its end marker (PDF 1.7, appendix H, note 18); pypdf reads
documents without."""


class PdfError(Exception):
    """The document cannot be read; the message is a sentence that says why."""


@dataclass(frozen=True)
class PdfText:
    """Some pages of a document."""

    pages: tuple[str, ...]
    """Their texts; "" for a page without any, such as a scan."""
    page_count: int
    """Of the whole document."""
    first_page: int = 1
    extract: bytes = b""
    """A document of these pages alone, if it was asked for."""

    @property
    def last_page(self) -> int:
        return self.first_page + len(self.pages) - 1


def pdf_text(
    data: bytes, first_page: int = 1, last_page: int | None = None, *, extract: bool = False, seconds: float = SECONDS
) -> PdfText:
    """The pages from `first_page` to `last_page`, counted from 1; without a last one at most `MAX_PAGES`. Blocking, for
    at most so many seconds. Raises `PdfError`."""
    spec = importlib.util.find_spec("pypdf")
    assert spec is not None and spec.origin is not None, "it is one of our dependencies"
    last = first_page + MAX_PAGES - 1 if last_page is None else last_page
    order = {"path": str(Path(spec.origin).parents[1]), "first": first_page, "last": last, "extract": extract}
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-S", __file__],
            input=json.dumps(order).encode() + b"\n" + data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise PdfError(f"Reading the PDF document took more than {seconds:.0f} seconds. Ask for fewer pages.") from None
    head, _, extracted_document = process.stdout.partition(b"\n")
    try:
        answer: dict[str, Any] = json.loads(head)
    except ValueError:
        raise PdfError("The PDF document is damaged, or takes too much memory to read.") from None
    if "error" in answer:
        raise PdfError(answer["error"])
    return PdfText(tuple(answer["pages"]), answer["count"], first_page, extracted_document)


# The program -------------------------------------------------------------------------------------------


def main() -> int:
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    sys.path.append(order["path"])
    _limit_memory()
    extract = b""
    try:
        answer, extract = _read(data, order)
    except PdfError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "The PDF document takes too much memory to be read."}
    except Exception as error:  # a damaged document may make the library raise anything
        answer = {"error": f"The PDF document is damaged ({type(error).__name__}: {error})."[:300]}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + extract)
    return 0


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read(data: bytes, order: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    import pypdf

    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise PdfError("The PDF document is encrypted. Ask the user for a copy without a password.")
    count = len(reader.pages)
    first, last = order["first"], min(order["last"], count)
    if first > count:
        raise PdfError(f"The PDF document has {count} page{'s' * (count != 1)}; page {first} does not exist.")
    pages = [reader.pages[index] for index in range(first - 1, last)]
    texts = [page.extract_text().strip()[:MAX_CHARACTERS] for page in pages]
    answer = {"count": count, "pages": [text.encode("utf-8", "replace").decode() for text in texts]}
    if not order["extract"]:
        return answer, b""
    if len(pages) == count and not reader.is_encrypted and b"%%EOF" in data[-_END:]:
        return answer, data
    writer = pypdf.PdfWriter()
    for page in pages:
        writer.add_page(page)
    out = io.BytesIO()
    writer.write(out)
    return answer, out.getvalue()


if __name__ == "__main__":
    sys.exit(main())
