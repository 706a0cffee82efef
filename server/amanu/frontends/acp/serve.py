"""`amanu acp`: the agent on stdin and stdout. Nothing heavy is imported before `initialize` is answered."""

import contextlib
import queue
import threading
from collections.abc import Callable

from amanu.frontends.acp.handshake import EarlyRead, answer_first
from amanu.system.descriptors import read_descriptor, write_descriptor

STDIN, STDOUT = 0, 1
CLOSE_SECONDS = 1.0


def serve(*, alone: bool = False) -> int:
    """Serve until the client closes stdin. Returns the exit code."""
    first = answer_first(read_descriptor(STDIN), write_descriptor(STDOUT))
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
    output = OutputThread(lambda: loop.call_soon_threadsafe(ended.set))
    agent = Agent(output, alone=alone)
    if first.params is not None:
        agent.features = ClientFeatures.of(first.params)
    agent.peer.feed(first.received)

    def read_all() -> None:
        read = read_descriptor(STDIN)
        with contextlib.suppress(OSError):
            while data := read():
                loop.call_soon_threadsafe(agent.peer.feed, data)
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=read_all, daemon=True).start()
    await ended.wait()
    await agent.close()
    await asyncio.to_thread(output.close)
    return 0


class OutputThread:
    """What the client has not read yet, written by a thread. `on_failure` is called there when the client is gone."""

    def __init__(self, on_failure: Callable[[], object]) -> None:
        self._on_failure = on_failure
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._put = self._written = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Never waits."""
        self._put += len(line)
        self._lines.put(line)

    @property
    def backlog(self) -> int:
        """Bytes that are not written yet."""
        return self._put - self._written

    def close(self) -> None:
        """Wait a moment until all is written."""
        self._lines.put(None)
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        write = write_descriptor(STDOUT)
        try:
            while (line := self._lines.get()) is not None:
                write(line)
                self._written += len(line)
        except OSError:
            self._on_failure()
