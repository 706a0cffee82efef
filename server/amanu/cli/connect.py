"""Ways to a core: in this process, or the user's daemon."""

import asyncio
import os
from collections.abc import Sequence

from amanu.cli.client import Client, Disconnected
from amanu.home import Home, find_home
from amanu_protocol.errors import AmanuError


async def connect_alone(roots: Sequence[str] = (), trusted_roots: Sequence[str] = ()) -> Client:
    """A core in this process, the same protocol. It ends with the connection."""
    from amanu.config import load_settings
    from amanu.lsp.server import connect_in_process
    from amanu.sessions import Sessions

    home = find_home().make()
    sessions = Sessions(home, load_settings(home, os.environ))
    client = Client(*await connect_in_process(sessions, dict(os.environ)))
    client.at_close(sessions.shutdown)
    return await _initialized(client, roots, trusted_roots)


async def connect_socket(home: Home, roots: Sequence[str] = ()) -> Client:
    """The daemon that listens there now. Raises OSError when none does."""
    client = Client(*await asyncio.open_unix_connection(home.socket))
    return await _initialized(client, roots, ())


async def _initialized(client: Client, roots: Sequence[str], trusted_roots: Sequence[str]) -> Client:
    try:
        await client.initialize(roots=roots, trusted_roots=trusted_roots)
    except (AmanuError, Disconnected):
        await client.close()
        raise
    return client
