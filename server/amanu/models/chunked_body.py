"""Request bodies on their way out, in pieces: what the connection cannot take at once is copied, and a long history
whole would be there three times."""

from collections.abc import AsyncIterator
from typing import cast

import httpx2

PIECE = 1024 * 1024
"""Bytes. Fewer cost time: each piece is a call through all layers of the client."""


async def in_pieces(request: httpx2.Request) -> None:
    """The last thing before a request goes out."""
    stream = cast("httpx2.AsyncByteStream", request.stream)
    body = b"".join([part async for part in stream])  # one part as a rule, which is not copied
    if len(body) > PIECE:
        request.stream = _Pieces(body)


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), PIECE):
            yield self._body[start : start + PIECE]
