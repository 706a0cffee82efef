"""Changes of a proposal as clients get them, without a daemon."""

from typing import Any

from amanu.proposals.places import LiveHunk, placed
from amanu_protocol.items import ProposedFile, Row

_FILE = {"baseSha256": "", "encoding": "utf-8", "finalNewline": True, "unsaved": False}
_ROW = {"turnId": "t"}


def sent_file(**fields: Any) -> dict[str, Any]:
    """The file; its hunks have their `baseLines` instead of their places."""
    hunks = placed(map(LiveHunk.model_validate, fields["hunks"]))
    file = ProposedFile.model_validate({**_FILE, **fields, "hunks": hunks})
    return file.model_dump(mode="json", by_alias=True, exclude_none=True)


def sent_row(**fields: Any) -> dict[str, Any]:
    return Row.model_validate({**_ROW, **fields}).model_dump(mode="json", by_alias=True, exclude_none=True)
