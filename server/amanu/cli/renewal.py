"""Something that is asked for again when it has changed: one request at a time, and one more for all changes that come
meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable

from amanu.client.daemon_client import Disconnected
from amanu_protocol.errors import AmanuError


class Renewal:
    """A failure leaves what was known."""

    def __init__(self, ask: Callable[[], Awaitable[None]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[None] | None = None
        self._again = False

    def request(self) -> None:
        self._again = True
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._again:
            self._again = False
            try:
                await self._ask()
            except (AmanuError, Disconnected):
                return
