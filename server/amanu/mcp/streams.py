"""The two halves of a connection, in the shape in which the SDK takes them."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

import anyio
from mcp.shared.message import SessionMessage


class Stream:
    async def aclose(self) -> None:
        """Nothing to do: the connection is closed where it was opened."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class IncomingStream(Stream, ABC):
    @abstractmethod
    async def receive(self) -> SessionMessage | Exception:
        """The next message. Raises `anyio.EndOfStream` when no more will come."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
