"""A line to the service with a long way, as a loopback proxy: what is sent over it arrives later."""

import asyncio
import time
from types import TracebackType

ONE_WAY = 0.05
"""Seconds that bytes are under way; a connection takes there and back before it carries any."""


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
        opened = time.monotonic() + 2 * ONE_WAY  # the other side of the loopback believes it has been at once
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
    """Each piece in its time, without keeping the next one waiting."""
    loop = asyncio.get_running_loop()
    while data := await reader.read(1 << 16):
        loop.call_at(max(loop.time(), opened) + ONE_WAY, writer.write, data)
    await asyncio.sleep(ONE_WAY)
    if writer.can_write_eof():
        writer.write_eof()
