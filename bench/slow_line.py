"""A loopback proxy that simulates a long-distance connection to the service: data arrives with a delay."""

import asyncio
import time
from types import TracebackType

ONE_WAY = 0.05
"""Seconds that bytes take in one direction; a new connection carries none before a round trip has passed."""


class SlowLine:
    """`async with SlowLine(port) as line:` — `line.port` leads to `port`."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._serving: set[asyncio.Task[None]] = set()
        self.connections = 0
        """Opened so far."""

    async def __aenter__(self) -> "SlowLine":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._carry(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened = time.monotonic() + 2 * ONE_WAY  # on the loopback it opens at once
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, far_writer, opened))
                group.create_task(_pass_on(far_reader, writer, opened))
        except* ConnectionError:
            pass
        finally:
            writer.close()
            far_writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, opened: float) -> None:
    """Deliver each piece after its own delay, without delaying the next one further."""
    loop = asyncio.get_running_loop()
    while data := await reader.read(1 << 16):
        loop.call_at(max(loop.time(), opened) + ONE_WAY, writer.write, data)
    await asyncio.sleep(ONE_WAY)
    if writer.can_write_eof():
        writer.write_eof()
