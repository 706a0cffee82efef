"""The text of a PDF document's pages, read by processes of their own (`pdf_worker.py`), two at a time."""

import asyncio
import importlib.util
import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from amanu.system.tasks import kill, start_process

MAX_PAGES = 20
"""Pages read at once, unless more are asked for."""
AT_ONCE = 2
"""Documents read at the same time by this process: each may take a processor and a gigabyte of memory."""
SECONDS = 30.0
_WORKER = Path(__file__).with_name("pdf_worker.py")


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


async def pdf_text(
    data: bytes, first_page: int = 1, last_page: int | None = None, *, extract: bool = False, seconds: float = SECONDS
) -> PdfText:
    """The pages from `first_page` to `last_page`, counted from 1; without a last one at most `MAX_PAGES`, and none
    after two million characters. Reading takes at most so many seconds, once it is its turn. Raises `PdfError`."""
    spec = importlib.util.find_spec("pypdf")
    assert spec is not None and spec.origin is not None, "it is one of our dependencies"
    last = first_page + MAX_PAGES - 1 if last_page is None else last_page
    order = {"path": str(Path(spec.origin).parents[1]), "first": first_page, "last": last, "extract": extract}
    async with _slots(asyncio.get_running_loop()):
        output = await _read_apart(json.dumps(order).encode() + b"\n" + data, seconds)
    head, _, extracted_document = output.partition(b"\n")
    try:
        answer: dict[str, Any] = json.loads(head)
    except ValueError:
        raise PdfError("The PDF document is damaged, or takes too much memory to read.") from None
    if "error" in answer:
        raise PdfError(answer["error"])
    return PdfText(tuple(answer["pages"]), answer["count"], first_page, extracted_document)


async def _read_apart(order: bytes, seconds: float) -> bytes:
    """What the worker answers. Raises `PdfError` when it takes too long."""
    process = await start_process(
        kill,
        *(sys.executable, "-I", "-S", str(_WORKER)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            return (await process.communicate(order))[0]
    except TimeoutError:
        raise PdfError(f"Reading the PDF document took more than {seconds:.0f} seconds. Ask for fewer pages.") from None
    finally:
        if process.returncode is None:
            await kill(process)


@lru_cache(maxsize=1)
def _slots(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    """One for the whole process, which has one loop; tests have one after the other."""
    return asyncio.Semaphore(AT_ONCE)
