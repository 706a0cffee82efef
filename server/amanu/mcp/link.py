"""What a transport tells its connection besides messages."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams as Streams
else:
    Streams = object


class Link:
    """One start of a server, or one connection to it."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        """The other side is gone: no message will come any more."""
        self.reason = ""
        """Why, as a sentence."""
        self.explained = asyncio.Event()
        """There is a reason: a moment after the end, if there is any to be found."""

        self.wants_sign_in = ""
        """Why the user must sign in, as a sentence; "": that is not known to be so."""

    def end(self, reason: str = "") -> None:
        self.ended.set()
        if reason:
            self.explain(reason)

    def explain(self, reason: str) -> None:
        """Say why it ended; the first reason counts."""
        self.reason = self.reason or reason
        self.explained.set()


OpenStreams = Callable[[Link], AbstractAsyncContextManager[Streams]]
"""Opens a connection; leaving the context closes it. Raises `process.StartFailed`."""
