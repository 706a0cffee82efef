"""PDF documents, whole and hostile, read in a process of its own."""

import asyncio
import io
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter

from amanu.system import pdf_text as reading
from amanu.system.pdf_text import AT_ONCE, MAX_PAGES, PdfError, pdf_text
from amanu.system.tasks import Process, start_process
from amanu.tools.files.shown_file import FileViewer
from support.sample_pdf import pdf

LONG = pdf(*(f"Page {number}" for number in range(1, 61)))
ENDLESS = pdf(") Tj (".join(["a"] * 300_000))
"""A page that takes a minute to read."""


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
async def test_the_pages_asked_for_are_read(
    data: bytes, pages: tuple[int, int | None], texts: tuple[str, ...], count: int
) -> None:
    read = await pdf_text(data, *pages, extract=True)
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
async def test_what_cannot_be_read_is_an_error_that_says_why(
    data: bytes, first: int, seconds: float, says: str
) -> None:
    with pytest.raises(PdfError, match=says):
        await pdf_text(data, first, seconds=seconds)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[list[Process]]:
    """At each start of a process: those that run."""
    processes, queue = list[Process](), asyncio.Queue[list[Process]]()

    async def start(*arguments: Any, **options: Any) -> Process:
        processes.append(await start_process(*arguments, **options))
        queue.put_nowait([process for process in processes if process.returncode is None])
        return processes[-1]

    monkeypatch.setattr(reading, "start_process", start)
    return queue


async def test_few_are_read_at_once_and_a_cancelled_one_is_killed(started: asyncio.Queue[list[Process]]) -> None:
    endless = [asyncio.create_task(pdf_text(ENDLESS)) for _ in range(AT_ONCE)]
    running = [await started.get() for _ in endless][-1]
    brief = [asyncio.create_task(pdf_text(pdf("One."))) for _ in range(2)]
    await asyncio.sleep(0)
    endless[0].cancel()
    assert [(await read).pages for read in brief] == [("One.",), ("One.",)]
    assert [len(started.get_nowait()) for _ in brief] == [AT_ONCE, AT_ONCE]
    endless[1].cancel()
    await asyncio.gather(*endless, return_exceptions=True)
    assert all(process.returncode for process in running)


class _NoThreads(ThreadPoolExecutor):
    def submit(self, *arguments: Any, **more: Any) -> Any:
        raise AssertionError("threads are for what is quick")


async def test_a_document_takes_no_thread_of_those_that_serve_everything_else() -> None:
    asyncio.get_running_loop().set_default_executor(_NoThreads())
    outcome = await FileViewer(None).document("a.pdf", pdf("One."), None)
    assert "One." in outcome.for_model
