"""Reads the pages of a PDF document, as a process of its own (`python -I -S pdf_worker.py`): documents come from
anywhere, and reading one may take forever or use up all memory. Standard library and pypdf only.

Input: a line of JSON `{"path", "first", "last", "extract"}`, then the document. Output: a line of JSON
`{"count", "pages"}` or `{"error"}`, then the document of these pages alone if it was asked for.
"""

import contextlib
import io
import json
import sys
from typing import Any

MAX_CHARACTERS = 40_000
"""Of the text of one page."""
_ALL_CHARACTERS = 2_000_000
"""After which no further page is read."""
_END = 1_024
"""Bytes at the end of a document in which services look for its end marker (PDF 1.7, appendix H, note 18); pypdf reads
documents without."""
_MEMORY = 1 << 30
_PROCESSOR_SECONDS = 60
"""It is killed long before, unless the daemon itself was."""


class _Refused(Exception):
    """The document cannot be read; the message is a sentence that says why."""


def main() -> int:
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    sys.path.append(order["path"])
    _limit()
    extract = b""
    try:
        answer, extract = _read(data, order)
    except _Refused as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "The PDF document takes too much memory to be read."}
    except Exception as error:  # a damaged document may make the library raise anything
        answer = {"error": f"The PDF document is damaged ({type(error).__name__}: {error})."[:300]}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n" + extract)
    return 0


def _limit() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_SECONDS, _PROCESSOR_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read(data: bytes, order: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    import pypdf

    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise _Refused("The PDF document is encrypted. Ask the user for a copy without a password.")
    count = len(reader.pages)
    first, last = order["first"], min(order["last"], count)
    if first > count:
        raise _Refused(f"The PDF document has {count} page{'s' * (count != 1)}; page {first} does not exist.")
    pages, texts, size = list[pypdf.PageObject](), list[str](), 0
    for index in range(first - 1, last):
        pages.append(reader.pages[index])
        texts.append(pages[-1].extract_text().strip()[:MAX_CHARACTERS])
        size += len(texts[-1])
        if size >= _ALL_CHARACTERS:
            break
    answer = {"count": count, "pages": texts}
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
