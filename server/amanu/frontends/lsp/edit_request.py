"""`amanu/editor/apply`: an edit that a client makes itself, and what its answer means."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from amanu.frontends.lsp.document_text import DocumentText
from amanu.text.span_edits import SpanEdit
from amanu_protocol.base import Position, Range
from amanu_protocol.requests import EditorApplyParams, EditorApplyResult, TextEdit

APPLY_TIMEOUT = 10.0
"""Seconds in which a client must answer; saving may run formatters."""

Ask = Callable[[str, Any], Awaitable[Any]]
"""Sends a request and gives its result; raises `ClientError`."""


def wire_edits(document: DocumentText, edits: Sequence[SpanEdit]) -> list[TextEdit]:
    """Edits of the document's text, in order, as its client counts lines and characters."""
    offsets = (offset for edit in edits for offset in (edit.start, edit.end))
    places = [Position(line=line, character=character) for line, character in document.positions(offsets)]
    return [
        TextEdit(range=Range(start=start, end=end), new_text=edit.new_text)
        for edit, start, end in zip(edits, places[::2], places[1::2], strict=True)
    ]


async def request_edit(ask: Ask, who: str, params: EditorApplyParams, new_sha256: str) -> EditorApplyResult:
    """`success` with the hash of another text is a conflict, one without a hash is up to the caller. Raises
    `ClientError`."""
    name = Path(params.path).name
    try:
        async with asyncio.timeout(APPLY_TIMEOUT):
            answer = await ask("amanu/editor/apply", params)
        result = EditorApplyResult.model_validate(answer)
    except TimeoutError:
        return EditorApplyResult(status="error", message=f"{who} did not answer; check {name}.")
    except ValidationError:
        return EditorApplyResult(status="error", message=f"{who} sent an invalid answer.")
    if result.status == "success" and result.sha256 not in (None, new_sha256):
        return result.model_copy(update={"status": "conflict", "message": f"{who} has unexpected text in {name}."})
    return result


def no_edits(name: str) -> EditorApplyResult:
    """Of a client that shows the file of that name, and takes no edits."""
    message = f"it does not accept edits from a server. Close {name} there and accept again to write the file."
    return EditorApplyResult(status="error", message=message)
