"""Pages of what is too long for one answer: items of a session, bytes of a blob."""

import base64

from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import BlobGetParams, BlobGetResult, HistoryPageParams, HistoryPageResult
from amanu_protocol.state import SessionState


def history_page(state: SessionState, params: HistoryPageParams) -> HistoryPageResult:
    """The items before a known one. Raises `AmanuError` (itemNotFound)."""
    at = next((at for at, item in enumerate(state.items) if item.item_id == params.before_item_id), None)
    if at is None:
        raise AmanuError("itemNotFound", "There is no such item in this session.")
    first = max(0, at - params.limit)
    return HistoryPageResult(items=state.items[first:at], has_earlier=first > 0)


def blob_page(data: bytes, params: BlobGetParams) -> BlobGetResult:
    """From the offset on, about as much as the limit says."""
    end = params.offset + params.limit
    if params.encoding == "base64":
        end += -params.limit % 3  # the pages, put together, are base64 too
        text = base64.b64encode(data[params.offset : end]).decode("ascii")
        return BlobGetResult(text=text, next_offset=end if end < len(data) else None)
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1  # a character is not cut in two
    text = data[params.offset : end].decode("utf-8", "replace")
    return BlobGetResult(text=text, next_offset=end if end < len(data) else None)
