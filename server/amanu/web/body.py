"""The body of a response, bounded by its size after decompression."""

import asyncio
import zlib
from collections.abc import AsyncIterator

from amanu.web.errors import WebError

_AT_ONCE = 1 << 18
"""Bytes decompressed at once, before other tasks get their turn."""


async def read_body(chunks: AsyncIterator[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
    """(At most `limit` bytes of the body with its compression undone, whether there was more.) Raises `WebError`
    (broken) for compression that is damaged or was not asked for."""
    undo = zlib.decompressobj(32 + zlib.MAX_WBITS) if _is_compressed(encoding) else None
    parts: list[bytes] = []
    size = received = 0
    async for chunk in chunks:
        received += len(chunk)
        while chunk:
            try:
                data, chunk = (chunk, b"") if undo is None else (undo.decompress(chunk, _AT_ONCE), undo.unconsumed_tail)
            except zlib.error as error:
                raise WebError("broken", f"The compressed page is damaged: {error}.") from None
            parts.append(data)
            size += len(data)
            if size > limit:
                return b"".join(parts)[:limit], True
            await asyncio.sleep(0)
        if received > limit:
            return b"".join(parts), True
    return b"".join(parts), False


def _is_compressed(encoding: str) -> bool:
    match encoding.strip().lower():
        case "" | "identity":
            return False
        case "gzip" | "x-gzip" | "deflate":
            return True
        case other:
            raise WebError("broken", f"The page was sent in an encoding that was not requested: {other[:40]!r}.")
