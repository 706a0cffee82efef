"""A strict service beside a test that runs no event loop."""

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager

from support.strict_services.http import Service


@contextmanager
def serving(service: Service) -> Generator[str]:
    """That service, on a thread of its own; its URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(service.start(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(service.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
