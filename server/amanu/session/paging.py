"""Earlier items and blobs of a session, page by page."""

import base64

from amanu.session.core import SessionCore
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import BlobGetParams, BlobGetResult, HistoryPageParams, HistoryPageResult


class ItemPages:
    """The pages of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core

    async def items(self, params: HistoryPageParams) -> HistoryPageResult:
        """The items before one the client knows. Raises `AmanuError` (itemNotFound, storageError)."""
        page = await self._core.history.page(self._core.state, self._core.journal, params.before_item_id, params.limit)
        if page is None:
            raise AmanuError("itemNotFound", "This session has no such item.")
        items, has_earlier = page
        return HistoryPageResult(items=items, has_earlier=has_earlier)

    async def blob(self, params: BlobGetParams) -> BlobGetResult:
        """A part of a blob. Raises `AmanuError` (blobNotFound)."""
        return _page(await self._core.journal.get_blob(params.blob_id), params)


def _page(data: bytes, params: BlobGetParams) -> BlobGetResult:
    """The part from the offset (bytes) on, of about `limit` bytes."""
    end = params.offset + params.limit
    if params.encoding == "base64":
        end += -params.limit % 3  # the pages joined together are valid base64
        text = base64.b64encode(data[params.offset : end]).decode("ascii")
        return BlobGetResult(text=text, next_offset=end if end < len(data) else None)
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1  # no character is cut in two
    text = data[params.offset : end].decode("utf-8", "replace")
    return BlobGetResult(text=text, next_offset=end if end < len(data) else None)
