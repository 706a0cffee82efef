"""`amanu acp`: the agent on stdin and stdout. Nothing heavy is imported before `initialize` is answered."""

import os
import queue
import threading
from collections.abc import Callable

from amanu.frontends.acp.handshake import EarlyRead, answer_first

STDIN, STDOUT = 0, 1


def serve(*, alone: bool = False) -> int:
    """Serve until the client closes stdin. Returns the exit code."""
    first = answer_first(lambda: os.read(STDIN, 65536), _write)
    if first.params is None and not first.received:
        return 0  # nobody said anything
    import asyncio

    return asyncio.run(_serve(first, alone))


async def _serve(first: EarlyRead, alone: bool) -> int:
    import asyncio

    from amanu.frontends.acp.agent import Agent
    from amanu.frontends.acp.schema import ClientFeatures

    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    # Threads, since not every system can wait for a pipe and for a file alike, and a client that does not read must
    # not hold up what else goes on.
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    writer = threading.Thread(
        target=_write_all, args=(lines, lambda: loop.call_soon_threadsafe(ended.set)), daemon=True
    )
    agent = Agent(lines.put, alone=alone)
    if first.params is not None:
        agent.features = ClientFeatures.of(first.params)
    agent.peer.feed(first.received)

    def read() -> None:
        while data := os.read(STDIN, 65536):
            loop.call_soon_threadsafe(agent.peer.feed, data)
        loop.call_soon_threadsafe(ended.set)

    writer.start()
    threading.Thread(target=read, daemon=True).start()
    await ended.wait()
    await agent.close()
    lines.put(None)
    await asyncio.to_thread(writer.join, 1.0)
    return 0


def _write_all(lines: "queue.SimpleQueue[bytes | None]", on_failure: Callable[[], None]) -> None:
    try:
        while (line := lines.get()) is not None:
            _write(line)
    except OSError:  # the client is gone
        on_failure()


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(STDOUT, view) :]
