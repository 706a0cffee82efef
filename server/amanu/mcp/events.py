"""Messages to and from a server elsewhere that speaks HTTP as it was in revision 2024-11-05.

All that it says comes in one stream of events; the first one names the address to which messages are posted. The SDK's
transport for it waits without end where a message cannot be posted or that address is wrong, and takes no event above 1
MiB.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import orjson
from mcp.shared._httpx_utils import sse_within_origin, stream_within_origin
from mcp.shared.message import SessionMessage

from amanu.mcp.http import MAX_EVENT, client_options, origin
from amanu.mcp.link import Link, Streams
from amanu.mcp.process import StartFailed
from amanu.mcp.repair import Traffic
from amanu.mcp.server_log import ServerLog
from amanu.mcp.streams import IncomingStream, Stream

_MAX_ANSWER = 1 << 20
"""Bytes of the answer to a message that are read."""


@asynccontextmanager
async def event_streams(
    address: str, headers: Mapping[str, str], auth: httpx2.Auth, log: ServerLog, link: Link
) -> AsyncGenerator[Streams]:
    """Exchange messages with the server at that address. Raises `StartFailed`, `httpx2.HTTPError`."""
    log.forget_tail()
    async with (
        httpx2.AsyncClient(**await client_options(address, headers, auth)) as client,
        sse_within_origin(client, address, max_event_size=MAX_EVENT) as source,
    ):
        if not source.response.is_success:  # the SDK's error would show the address, which may hold a key
            raise httpx2.RemoteProtocolError(f"it answered {source.response.status_code}")
        events = aiter(source)
        target = await _target(events, source.response.url)
        traffic = Traffic(lambda line: log.write(f"amanu: {line}\n"))
        yield _Incoming(events, traffic, link), _Outgoing(client, target, traffic, link)


async def _target(events: AsyncIterator[httpx2.ServerSentEvent], address: httpx2.URL) -> httpx2.URL:
    """The address for messages. It must be on the same server, or another could be made to get what is meant for it."""
    async for event in events:
        if event.event == "endpoint":
            try:
                target = address.join(event.data)
            except httpx2.InvalidURL:
                break
            if origin(target) != origin(address):
                raise StartFailed(f"It wants its messages sent to another server, {target.host}.")
            return target
    raise httpx2.RemoteProtocolError("it does not say where messages go")


class _Outgoing(Stream):
    def __init__(self, client: httpx2.AsyncClient, target: httpx2.URL, traffic: Traffic, link: Link) -> None:
        self._client = client
        self._target = target
        self._traffic = traffic
        self._link = link

    async def send(self, item: SessionMessage, /) -> None:
        self._traffic.outgoing(item.message)
        data = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            async with stream_within_origin(self._client, "POST", self._target, json=data) as response:
                await _pass_over(response)
        except httpx2.HTTPError as error:
            self._link.end(f"A message could not be sent to it: {str(error) or type(error).__name__}.")
            raise anyio.BrokenResourceError from None
        if not response.is_success:
            self._link.end(self._link.wants_sign_in or f"It answered {response.status_code} to a message.")
            raise anyio.BrokenResourceError


class _Incoming(IncomingStream):
    def __init__(self, events: AsyncIterator[httpx2.ServerSentEvent], traffic: Traffic, link: Link) -> None:
        self._events = events
        self._traffic = traffic
        self._link = link

    async def receive(self) -> SessionMessage | Exception:
        try:
            async for event in self._events:
                if event.event == "message" and (message := self._traffic.incoming(_value(event.data))) is not None:
                    return SessionMessage(message)
            self._link.end("It closed the connection.")
        except (httpx2.HTTPError, httpx2.SSEError) as error:
            self._link.end(f"The connection broke: {str(error) or type(error).__name__}.")
        raise anyio.EndOfStream


async def _pass_over(response: httpx2.Response) -> None:
    """Read an answer that says nothing, so that its connection can be used again: what there is to say comes as an
    event."""
    size = 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > _MAX_ANSWER:
            return


def _value(data: str) -> Any:
    """The parsed message; None if the data is not JSON."""
    try:
        return orjson.loads(data)
    except ValueError:
        return None
