"""What the hostile provider (`hostile_provider.py`) does to us, and to a session beside it."""

import asyncio
import contextlib
import os
import resource
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from amanu.core.model import Model, ModelError, ReplyCompleted
from amanu.models.anthropic import AnthropicModel
from amanu.models.gemini import GeminiModel
from amanu.models.openai_compatible import EndpointQuirks, OpenAICompatibleModel
from amanu.models.retry import RetryPolicy, stream_with_retry
from recordings.make import WAYS, Way, asked

ONCE = RetryPolicy(attempts=1, idle_text=10.0, idle_thinking=10.0)
WIRES: tuple[Way, ...] = tuple(way for way in WAYS if way.name in ("anthropic", "gemini-3", "openai"))
PAUSE = 0.005


@dataclass
class Delays:
    """How late the event loop was, in seconds, each time it was due."""

    late: list[float] = field(default_factory=list[float])

    @property
    def p99(self) -> float:
        return sorted(self.late)[int(len(self.late) * 0.99)]


@asynccontextmanager
async def hostile_provider() -> AsyncGenerator[str]:
    """The service in a process of its own; its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.hostile_provider"),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.kill()
        await process.wait()
        cast("Any", process)._transport.close()


def model(way: Way, url: str) -> Model:
    key = "k" * 20
    match way.name:
        case "anthropic":
            return AnthropicModel(key, url)
        case "gemini-3":
            return GeminiModel(key, url)
        case _:
            return OpenAICompatibleModel("OpenAI", f"{url}/v1", key, EndpointQuirks("always"))


async def suffer(way: Way, url: str) -> ModelError | ReplyCompleted | None:
    """What one attempt comes to."""
    asking = model(way, url)
    last: Any = None
    try:
        async with aclosing(stream_with_retry(asking, asked(way), ONCE)) as deltas:
            async for delta in deltas:
                last = delta
    except ModelError as error:
        return error
    finally:
        await asking.close()
    return last if isinstance(last, ReplyCompleted) else None


@asynccontextmanager
async def watched() -> AsyncGenerator[Delays]:
    """What others in this process notice meanwhile."""
    delays = Delays()

    async def watch() -> None:
        while True:
            due = time.perf_counter() + PAUSE
            await asyncio.sleep(PAUSE)
            delays.late.append(max(0.0, time.perf_counter() - due))

    watching = asyncio.create_task(watch())
    try:
        yield delays
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


def memory() -> float:
    """The most this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
