"""Models get everything in the answers of MCP servers, once."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.mcp.model import CallAnswer, Content
from amanu.tools.mcp.results import outcome_of
from support.sample_images import base64_of, png
from support.tool_harness import ToolHarness

PICTURE = Content("image", data=png(), media_type="image/png")
SOUND = Content("audio", data=bytes(range(200)), media_type="audio/wav")
PAGE = Content("resource", data=b"<p>x</p>", media_type="application/octet-stream", uri="file:///page.html")
NAMES_NOTHING = '{\n "count": 2\n}'


def copy_of(*parts: tuple[str, Content]) -> dict[str, Any]:
    """The structured content of server-filesystem's `read_media_file` (2026.8.31)."""
    return {"content": [{"type": kind, "data": base64_of(part.data)} for kind, part in parts]}


@pytest.mark.parametrize(
    ("content", "structured", "expected"),
    [
        ([Content("text", "2")], {"count": 2}, "2"),
        ([], {"count": 2}, NAMES_NOTHING),
        ([PICTURE], {"count": 2}, f"{NAMES_NOTHING}\n\n[image 2 (image/png, 69 bytes) is not shown]"),
        ([PICTURE], copy_of(("image", PICTURE)), "[image 1 (image/png, 69 bytes) is not shown]"),
        ([SOUND], copy_of(("audio", SOUND)), "[audio 1 (audio/wav, 200 bytes) cannot be shown]"),
        (
            [PAGE],
            {"content": [{"type": "resource", "resource": {"blob": base64.b64encode(PAGE.data).decode()}}]},
            "[file:///page.html (application/octet-stream, 8 bytes) cannot be shown]",
        ),
        ([Content("text", ""), PICTURE], copy_of(("image", PICTURE)), "[image 2 (image/png, 69 bytes) is not shown]"),
    ],
    ids=["text", "nothing else", "more than the picture", "its picture", "its sound", "its file", "an empty text"],
)
async def test_everything_is_told_once(
    content: Sequence[Content], structured: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    answer = CallAnswer(content, structured)
    outcome = await outcome_of(answer, "files: read", ToolHarness(tmp_path).environment)
    assert outcome.for_user == expected


async def test_a_hint_is_ours_and_no_data_of_the_server(tmp_path: Path) -> None:
    answer = CallAnswer([Content("text", "EROFS")], is_error=True, hint="Set it.")
    outcome = await outcome_of(answer, "files: write", ToolHarness(tmp_path).environment)
    assert outcome.for_user == "EROFS\nSet it."
    assert outcome.for_model.endswith("</mcp_result>\nSet it.")
