"""Pages of blobs, which are too long for one answer. (Pages of items: `earlier.py`.)"""

import base64

from amanu_protocol.requests import BlobGetParams, BlobGetResult


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
