"""What `read_file` gives of files that are no plain text: pictures, PDF documents, notebooks."""

import re
from collections.abc import Awaitable

from amanu.core.conversation import Picture
from amanu.core.tool import Outcome, ToolError
from amanu.system.file_kind import kind_of
from amanu.system.image_info import pixels
from amanu.system.pdf_text import MAX_PAGES, PdfError, PdfText, pdf_text
from amanu.text.notebook import Notebook
from amanu.tools.environment import ShownPictures
from amanu_protocol.errors import AmanuError

PAGES_SHOWN = 5
"""Pages of a PDF document that are also shown as they look: each costs as much as a picture."""

_RANGE = re.compile(r"\s*(\d+)\s*(?:[-–]\s*(\d+)\s*)?")


class FileViewer:
    """Shows such files to the model; without `pictures` there is no model to see them, and text must do."""

    def __init__(self, pictures: ShownPictures | None) -> None:
        self._pictures = pictures

    async def picture(self, name: str, data: bytes) -> Outcome:
        """A picture. Raises `ToolError` when no model would take it."""
        about = describe_picture(data)
        if self._pictures is None:
            return Outcome(f"[{about}: {name}]", about)
        picture = await _taken(self._pictures.show(name, data))
        return Outcome(f"[{about}: {name}]", about, pictures=(picture,))

    async def document(self, name: str, data: bytes, pages: str | None) -> Outcome:
        """Pages of a PDF document: their text, and a few as they look. Raises `ToolError`."""
        first, last = page_range(pages)
        few = last is None or last - first < PAGES_SHOWN
        try:
            read = await pdf_text(data, first, last, extract=few and self._pictures is not None)
        except PdfError as error:
            raise ToolError(str(error)) from None
        shown: tuple[Picture, ...] = ()
        notes = [_pages_note(read)]
        if read.extract and len(read.pages) <= PAGES_SHOWN and self._pictures is not None:
            span = "" if len(read.pages) == read.page_count else f" pages {read.first_page}–{read.last_page}"
            try:
                shown = (await _taken(self._pictures.show_document(f"{name}{span}", read.extract, len(read.pages))),)
            except ToolError as error:
                notes.append(f"only the text: {error}")
        elif len(read.pages) > PAGES_SHOWN:
            notes.append(f"only the text; ask for at most {PAGES_SHOWN} pages to see how they look, too")
        text = "\n".join(
            f"--- page {number} ---\n{page or '[no text: a scan or a drawing]'}"
            for number, page in enumerate(read.pages, read.first_page)
        )
        count = f"{len(read.pages)} of {read.page_count} page{'s' * (read.page_count != 1)}"
        head = "".join(f"[{note}]\n" for note in notes)
        return Outcome(f"{head}{text}\n", f"PDF, {count}", pictures=shown)

    async def notebook(self, name: str, notebook: Notebook) -> Outcome:
        """A notebook by cell, with the pictures among its outputs."""
        shown: list[Picture] = []
        unshown: list[str] = []
        for output, data in notebook.pictures.items():
            if self._pictures is None:
                break
            try:
                shown.append(await _taken(self._pictures.show(f"{name} {output}", data)))
            except ToolError as error:
                unshown.append(f"[{output} is not shown: {error}]\n")
        cells = f"{notebook.cells} cell{'s' * (notebook.cells != 1)}"
        how = (
            "edit_file and apply_patch take this text: sources change, '--- cell' lines and outputs stay; a line "
            "'--- cell: code ---' begins a new cell; start_line 1 shows the JSON"
        )
        left_out = notebook.cells - notebook.shown_cells
        left_out_note = f"[{left_out} more cells left out; they are in the JSON]\n" if left_out else ""
        count = f", {len(shown)} picture{'s' * (len(shown) != 1)}" if shown else ""
        return Outcome(
            f"[notebook, {cells}; {how}]\n{notebook.text}{left_out_note}{''.join(unshown)}",
            f"notebook, {cells}{count}",
            pictures=tuple(shown),
        )


def describe_picture(data: bytes) -> str:
    """The picture in words, for the user and the model: "picture 640×480 PNG"."""
    size = pixels(data)
    return f"picture {size[0]}×{size[1]} {kind_of(data, '').removesuffix(' picture')}" if size else "damaged picture"


def page_range(pages: str | None) -> tuple[int, int | None]:
    """First and last page of "3" or "3-7". Raises `ToolError`."""
    if pages is None:
        return 1, None
    match = _RANGE.fullmatch(pages)
    if match is None or int(match[1]) < 1:
        raise ToolError(f"pages {pages!r} is not a page range. Write '3' or '3-7'.")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise ToolError(f"The last page {last} is before the first page {first}.")
    return first, min(last, first + MAX_PAGES - 1)


def _pages_note(read: PdfText) -> str:
    remaining_pages = read.page_count - read.last_page
    go_on = f"; read on with pages '{read.last_page + 1}-{min(read.page_count, read.last_page + MAX_PAGES)}'"
    return f"PDF, pages {read.first_page}–{read.last_page} of {read.page_count}{go_on if remaining_pages else ''}"


async def _taken(shown: Awaitable[Picture]) -> Picture:
    try:
        return await shown
    except AmanuError as error:
        raise ToolError(f"{error} {error.data.hint or ''}".strip()) from None
