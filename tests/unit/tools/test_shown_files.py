"""`read_file` of what is no plain text: pictures, PDF documents, notebooks, and everything else."""

import asyncio
import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from amanu.context.images import Pictures
from amanu.core.conversation import Assistant, Call, Conversation, Picture, Result, Results
from amanu.core.tool import ToolError
from amanu.tools.registry import make_tools
from support.sample_images import base64_of, gif, jpeg, png, webp
from support.sample_pdf import pdf
from support.tool_harness import ToolHarness

CELLS = [
    {"cell_type": "markdown", "source": "# Plot"},
    {
        "cell_type": "code",
        "execution_count": 1,
        "source": "plot()",
        "outputs": [{"output_type": "display_data", "data": {"image/png": base64_of(png())}}],
    },
]
FILES: dict[str, str | bytes] = {
    "shot.png": png(640, 480),
    "photo.txt": jpeg(),
    "moving.gif": gif(),
    "new.webp": webp(),
    "paper.pdf": pdf("One.", "Two.", "", "Four."),
    "ascii.pdf": pdf("Plain.").replace(b"%\xe2\xe3\xcf\xd3\n", b"%abcd\n"),
    "book.pdf": pdf(*(f"Page {number}" for number in range(1, 31))),
    "plot.ipynb": json.dumps({"cells": CELLS, "nbformat": 4}),
    "none.ipynb": '{"a": 1}\n',
    "broken.png": b"\x89PNG\r\n\x1a\n" + bytes(30),
    "huge.png": png(10_000, 10_000),
    "latin.txt": "caf\xe9\t\x1b[1mbold\x1b[0m\x0c\n".encode("latin-1"),
    "data.gz": gzip.compress(b"x" * 99),
    "no-nul.bin": b"\x01\x02\xff\xfe\xf0",
    "a.txt": "text\n",
}


class Harness(ToolHarness):
    """Its tools show the pictures of a session, `conversation`."""

    def __init__(self, root: Path, files: Mapping[str, str | bytes]) -> None:
        super().__init__(root, files)
        self.conversation = Conversation()
        self.environment = replace(self.environment, pictures=Pictures(cast(Any, self), self.conversation))
        self.tools = make_tools(self.environment)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path, FILES)


@pytest.mark.parametrize(
    ("arguments", "text", "user", "shown"),
    [
        ({"path": "shot.png"}, "[picture 640×480 PNG: shot.png]", "picture 640×480 PNG", ["shot.png"]),
        ({"path": "photo.txt"}, "[picture 3×2 JPEG: photo.txt]", "picture 3×2 JPEG", ["photo.txt"]),
        ({"path": "moving.gif"}, "[picture 3×2 GIF: moving.gif]", "picture 3×2 GIF", ["moving.gif"]),
        ({"path": "new.webp"}, "[picture 3×2 WEBP: new.webp]", "picture 3×2 WEBP", ["new.webp"]),
        (
            {"path": "paper.pdf"},
            "[PDF, pages 1–4 of 4]\n--- page 1 ---\nOne.\n--- page 2 ---\nTwo.\n--- page 3 ---\n[no text: a scan or a "
            "drawing]\n--- page 4 ---\nFour.\n",
            "PDF, 4 of 4 pages",
            ["paper.pdf"],
        ),
        (
            {"path": "paper.pdf", "pages": "2"},
            "[PDF, pages 2–2 of 4; read on with pages '3-4']\n--- page 2 ---\nTwo.\n",
            "PDF, 1 of 4 pages",
            ["paper.pdf pages 2–2"],
        ),
        ({"path": "ascii.pdf"}, "[PDF, pages 1–1 of 1]\n--- page 1 ---\nPlain.\n", "PDF, 1 of 1 page", ["ascii.pdf"]),
        ({"path": "book.pdf"}, "[PDF, pages 1–20 of 30; read on with pages '21-30']\n[only the text", "20 of 30", []),
        (
            {"path": "plot.ipynb"},
            "[notebook, 2 cells; edit_file and apply_patch take this text: sources change, '--- cell' lines and "
            "outputs stay; a line '--- cell: code ---' begins a new cell; start_line 1 shows the JSON]\n"
            "--- cell 1: markdown ---\n# Plot\n"
            "\n--- cell 2: code, run 1 ---\nplot()\n[output 2.1, picture image/png]\n",
            "notebook, 2 cells, 1 picture",
            ["plot.ipynb output 2.1"],
        ),
        ({"path": "plot.ipynb", "start_line": 1}, '{"cells": [{"cell_type"', "1 line", []),
        ({"path": "none.ipynb"}, '{"a": 1}\n', "1 line", []),
        (
            {"path": "latin.txt"},
            "[encoding unknown, shown as latin-1; edits keep its bytes, and add only ASCII]\ncaf\xe9",
            "1 line",
            [],
        ),
    ],
)
async def test_each_kind_is_shown_as_what_it_is(
    harness: Harness, arguments: Mapping[str, Any], text: str, user: str, shown: list[str]
) -> None:
    outcome = await harness.run("read_file", arguments)
    assert outcome.for_model.startswith(text)
    assert user in outcome.for_user
    assert [picture.name for picture in outcome.pictures] == shown
    assert all(picture.blob_id in harness.conversation.pictures for picture in outcome.pictures)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"path": "broken.png"}, "broken.png is damaged or incomplete. Save it again."),
        ({"path": "huge.png"}, "10000×10000 pixels; models accept at most 8000 per side. Scale it down"),
        ({"path": "data.gz"}, r"data.gz is a binary file \(GZIP .*, \d+ bytes\); it cannot be read as text"),
        ({"path": "no-nul.bin"}, r"no-nul.bin is a binary file \(unknown kind, 5 bytes\)"),
        ({"path": "paper.pdf", "pages": "9"}, "has 4 pages; page 9 does not exist"),
        ({"path": "paper.pdf", "pages": "last"}, "not a page range"),
        ({"path": "paper.pdf", "pages": "3-2"}, "before the first page"),
        ({"path": "a.txt", "pages": "1"}, "is text and has no pages"),
    ],
)
async def test_what_cannot_be_shown_is_refused_with_a_reason(
    harness: Harness, arguments: Mapping[str, Any], says: str
) -> None:
    with pytest.raises(ToolError, match=says):
        await harness.run("read_file", arguments)


async def test_several_files_at_once_name_what_read_file_shows(harness: Harness) -> None:
    outcome = await harness.run("read_many_files", {"paths": ["shot.png", "paper.pdf", "plot.ipynb"]})
    assert "(PNG picture, " in outcome.for_model and "read_file shows it" in outcome.for_model
    assert "(PDF document, " in outcome.for_model and "read_file reads its pages" in outcome.for_model
    assert "--- cell 2: code, run 1 ---" in outcome.for_model
    assert base64_of(png()) not in outcome.for_model


async def test_without_a_model_there_is_text(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, FILES)
    for path in ("shot.png", "paper.pdf", "plot.ipynb"):
        outcome = await harness.run("read_file", {"path": path})
        assert outcome.pictures == ()
        assert outcome.for_model


@pytest.mark.parametrize(("kind", "most"), [("png", 50), ("pdf", 2)])
async def test_parallel_calls_share_the_room(tmp_path: Path, kind: str, most: int) -> None:
    files = {f"{width}.png": png(width, 1) for width in range(1, 61)}
    if kind == "pdf":
        body, start, end = pdf("One.").rpartition(b"\nstartxref")
        files = {f"{number}.pdf": body + bytes([number]) * 2_500_000 + start + end for number in range(4)}
    harness = Harness(tmp_path, files)
    calls = [harness.run("read_file", {"path": name}) for name in files]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    shown = [picture for each in outcomes if not isinstance(each, BaseException) for picture in each.pictures]
    assert len(shown) == most


async def test_tools_leave_room_for_the_users_pictures(harness: Harness) -> None:
    for width in range(1, 51):
        harness.put(f"{width}.png", png(width, 1))
    shown: list[Picture] = []
    for width in range(1, 51):  # as parallel calls do, before any result is in the conversation
        shown += (await harness.run("read_file", {"path": f"{width}.png"})).pictures
    with pytest.raises(ToolError, match=r"no room to show shot\.png besides the other pictures"):
        await harness.run("read_file", {"path": "shot.png"})
    call = Call(call_id="a", tool="read_file", arguments={})
    harness.conversation.append(Assistant(parts=(call,)))
    result = Result(call_id="a", tool="read_file", text="", pictures=tuple(shown[:9]))
    harness.conversation.append(Results(results=(result,)))
    cast(Pictures, harness.environment.pictures).forget()  # those that came to nothing
    assert (await harness.run("read_file", {"path": "shot.png"})).pictures
