"""What is too long for one answer, page by page: the items before those a client was given, and blobs."""

import base64

from amanu.session.core import SessionCore
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import BlobGetParams, BlobGetResult, HistoryPageParams, HistoryPageResult


class ItemPages:
    """Of one session."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core

    async def items(self, params: HistoryPageParams) -> HistoryPageResult:
        """Those before one the client knows. Raises `AmanuError` itemNotFound, storageError."""
        page = await self._core.history.page(self._core.state, self._core.journal, params.before_item_id, params.limit)
        if page is None:
            raise AmanuError("itemNotFound", "There is no such item in this session.")
        items, has_earlier = page
        return HistoryPageResult(items=items, has_earlier=has_earlier)

    async def blob(self, params: BlobGetParams) -> BlobGetResult:
        """Some of its text. Raises `AmanuError` blobNotFound."""
        return _page(await self._core.journal.get_blob(params.blob_id), params)


def _page(data: bytes, params: BlobGetParams) -> BlobGetResult:
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
