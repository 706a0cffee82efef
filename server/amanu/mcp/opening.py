"""Opens the connection to a server: what is imported only when one starts."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from amanu.mcp.config import ServerConfig
from amanu.mcp.connection import Connection, Timing
from amanu.mcp.link import Link, Streams
from amanu.mcp.server_log import ServerLog
from amanu.mcp.stdio import stdio_streams

if TYPE_CHECKING:
    from amanu.mcp.servers import Servers


def make_connection(
    config: ServerConfig, roots: tuple[Path, ...], servers: "Servers", log: ServerLog, changed: Callable[[], None]
) -> Connection:
    """A connection that is not open yet."""
    table = config.table

    @asynccontextmanager
    async def open_process(link: Link) -> AsyncGenerator[Streams]:
        command = await asyncio.to_thread(servers.variables.command, config, roots)
        async with stdio_streams(command, servers.sandbox, log, link) as streams:
            yield streams

    timing = Timing(table.start_seconds, table.call_seconds, table.idle_seconds)
    return Connection(config.name, open_process, roots, timing, log, changed, is_users=config.root is None)
