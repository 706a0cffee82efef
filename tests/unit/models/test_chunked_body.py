"""Big bodies leave in pieces, and arrive whole."""

import httpx2
import pytest

from amanu.models.chunked_body import PIECE, in_pieces


@pytest.mark.parametrize("size", [0, 10, PIECE, PIECE + 1, 5 * PIECE + 7])
async def test_a_body_is_the_same_in_pieces(size: int) -> None:
    body = bytes(n % 251 for n in range(size))
    request = httpx2.Request("POST", "http://here/", content=body)
    await in_pieces(request)
    assert isinstance(request.stream, httpx2.AsyncByteStream)
    for _ in range(2):  # a retry sends it again
        pieces = [piece async for piece in request.stream]
        assert b"".join(pieces) == body
        assert all(len(piece) <= PIECE for piece in pieces)
    assert request.headers["content-length"] == str(size)
    assert "transfer-encoding" not in request.headers
