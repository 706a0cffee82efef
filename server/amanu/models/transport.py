"""What every exchange with a service passes through, whatever the vendor: limits, recording, replay."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from types import AsyncGeneratorType
from typing import Any, cast

import httpx2

from amanu.core.model import ReplyTooLong, StreamBroken
from amanu.models.chunked_body import in_pieces
from amanu.models.limits import MAX_LINE, MAX_LINES, MAX_REPLY
from amanu.models.preconnect import PreconnectingNetwork
from amanu.models.recording import Exchange, ExchangeRecorder
from amanu.models.session_transport import line

_PIECE = 8 << 10
"""Bytes handed on at once, then others get their turn: a burst of 64 KB is some 400 events, and 50 ms of work."""
_UNDONE = 1 << 20
"""Bytes undone at once: a little that was compressed may be very much."""

_AT_ONCE = 1 << 16
"""Bytes of a request below which recording it takes no longer than handing it to a thread."""


class HttpClient(httpx2.AsyncClient):
    """Sends by a `Transport`."""

    def __init__(self, transport: "Transport", **options: Any) -> None:
        super().__init__(transport=transport, **options)
        self._sending = transport

    def connect(self) -> None:
        """Begin to open the connection of the next request, unless there is one; nobody hears of a failure."""
        self._sending.connect()


class Transport(httpx2.AsyncBaseTransport):
    """Around the transport that really sends. Compression is not asked for, and undone here where it is used all the
    same: limits and recordings are about what was said."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, ahead: PreconnectingNetwork | None = None) -> None:
        """`ahead` connects for `inner`."""
        self._inner = inner
        self._ahead = ahead

    def connect(self) -> None:
        """See `HttpClient.connect`."""
        if self._ahead is not None:
            self._ahead.open()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        over = line()
        writing: ExchangeRecorder | None = None
        if over is not None and over.recorder is not None:
            headers = [(name, value) for name, value in request.headers.items()]
            body = await _body(request)
            writing = over.recorder.begin()
            if len(body) < _AT_ONCE:
                writing.request(request.method, str(request.url), headers, body)
            else:
                await asyncio.to_thread(writing.request, request.method, str(request.url), headers, body)
        try:
            if over is not None and over.player is not None:
                response = _played(over.player.answer(request.method, str(request.url), await _body(request)))
            else:
                await in_pieces(request)
                response = await self._inner.handle_async_request(request)
        except BaseException as error:
            if writing is not None:
                _end(writing, error)
            raise
        if writing is not None:
            writing.response(response.status_code, response.headers.multi_items())
        encoding = response.headers.pop("content-encoding", "identity").lower()
        stream = _Reply(cast("httpx2.AsyncByteStream", response.stream), encoding, writing)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )

    async def aclose(self) -> None:
        if self._ahead is not None:
            await self._ahead.aclose()
        await self._inner.aclose()


class _Reply(httpx2.AsyncByteStream):
    """The body of a response. Raises `ReplyTooLong` beyond the limits."""

    def __init__(self, stream: httpx2.AsyncByteStream, encoding: str, writing: ExchangeRecorder | None) -> None:
        self._stream = stream
        self._encoding = encoding
        self._writing = writing
        self._size = self._lines = self._line = 0
        self._reading: AsyncGeneratorType[bytes] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        undo = _undo(self._encoding)
        stream = self._stream.__aiter__()
        self._reading = stream if isinstance(stream, AsyncGeneratorType) else None
        try:
            async for received in stream:
                for data in (received,) if undo is None else undo(received):
                    self._count(data)
                    if self._writing is not None:
                        self._writing.chunk(data)
                    yield data[:_PIECE]
                    for start in range(_PIECE, len(data), _PIECE):
                        await asyncio.sleep(0)
                        yield data[start : start + _PIECE]
        except GeneratorExit:
            raise  # `aclose` says how it ended
        except BaseException as error:
            if self._writing is not None:
                _end(self._writing, error)
            raise
        finally:
            if self._reading is not None:
                await self._reading.aclose()
        if self._writing is not None:
            self._writing.end("complete")

    async def aclose(self) -> None:
        if self._writing is not None:
            self._writing.end("aborted")
        # genai holds what reads from us in a cycle. A collector that finds it, maybe in another thread, would end the
        # generators of the chain while the event loop does.
        if self._reading is not None and not self._reading.ag_running:
            await self._reading.aclose()
        await self._stream.aclose()

    def _count(self, data: bytes) -> None:
        self._size += len(data)
        self._lines += data.count(b"\n") or data.count(b"\r")
        last = max(data.rfind(b"\n"), data.rfind(b"\r"))
        self._line = self._line + len(data) if last < 0 else len(data) - last - 1
        if self._size > MAX_REPLY:
            raise ReplyTooLong(f"The reply has more than {MAX_REPLY >> 20} MB.")
        if self._line > MAX_LINE:
            raise ReplyTooLong(f"An event of the reply has more than {MAX_LINE >> 20} MB.")
        if self._lines > MAX_LINES:
            raise ReplyTooLong(f"The reply has more than {MAX_LINES:,} lines.")


def _undo(encoding: str) -> "_Undo | None":
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise StreamBroken(f"The reply came in an encoding Amanu did not ask for: {encoding[:40]}.")
    return _Undo()


class _Undo:
    """Undoes gzip and deflate."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(32 + zlib.MAX_WBITS)

    def __call__(self, received: bytes) -> Iterator[bytes]:
        try:
            while data := self._zlib.decompress(received, _UNDONE):
                yield data
                received = self._zlib.unconsumed_tail
        except zlib.error as error:
            raise StreamBroken(f"The compression of the reply is damaged: {error}.") from None


async def _body(request: httpx2.Request) -> bytes:
    """As it will be sent: a hook may have put another stream in the place of `request.content`."""
    return b"".join([part async for part in cast("httpx2.AsyncByteStream", request.stream)])


def _end(writing: ExchangeRecorder, error: BaseException) -> None:
    if isinstance(error, asyncio.CancelledError):
        writing.end("aborted")
    else:
        writing.end("failed", f"{type(error).__name__}: {error}")


def _played(exchange: Exchange) -> httpx2.Response:
    if exchange.status is None:
        raise _again(exchange)
    return httpx2.Response(exchange.status, headers=exchange.response_headers, stream=_Played(exchange))


class _Played(httpx2.AsyncByteStream):
    """The chunks of a recorded response, without the pauses between them."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _, data in self._exchange.chunks:
            await asyncio.sleep(0)
            yield data
        if self._exchange.end != "complete":
            raise _again(self._exchange)

    async def aclose(self) -> None:
        pass


def _again(exchange: Exchange) -> httpx2.TransportError:
    """What went wrong then, again."""
    if exchange.end == "aborted":
        return httpx2.ReadError("it was cut off here when it was recorded")
    name, _, words = exchange.error.partition(": ")
    kind: object = getattr(httpx2, name, None)
    if isinstance(kind, type) and issubclass(kind, httpx2.TransportError):
        return kind(words)
    return httpx2.ReadError(exchange.error)
