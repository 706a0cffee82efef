"""A connection that was opened ahead is used, or closed: never lost."""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import httpcore2
import pytest

from amanu.models.preconnect import Destination, PreconnectingNetwork


class Stream(httpcore2.AsyncNetworkStream):
    """One on which nothing is ever said."""

    closed = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        await asyncio.Event().wait()
        return b""

    async def aclose(self) -> None:
        self.closed = True


class Network(httpcore2.AsyncNetworkBackend):
    def __init__(self) -> None:
        self.streams: list[Stream] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Stream:
        await asyncio.sleep(0)
        self.streams.append(Stream())
        return self.streams[-1]


@pytest.mark.parametrize("ticks", range(8))
async def test_it_is_closed_when_whoever_takes_it_gives_up(ticks: int) -> None:
    inner = Network()
    network = PreconnectingNetwork(
        httpcore2.AsyncConnectionPool(network_backend=inner), Destination("there", 80, None, 1, ())
    )
    network.open()
    taking = asyncio.create_task(network.connect_tcp("there", 80))
    for _ in range(ticks):
        await asyncio.sleep(0)
    taking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await taking
    await network.aclose()
    lost = [stream for stream in inner.streams if not stream.closed]
    assert lost == ([] if taking.cancelled() else [taking.result()])
