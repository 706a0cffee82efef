"""Ways to a core: in this process, or the user's daemon, which is started where none runs."""

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from amanu.client.daemon_client import ClientProfile, DaemonClient, Disconnected
from amanu.home import find_home
from amanu_protocol.errors import AmanuError

TERMINAL = ClientProfile()


async def connect(
    *,
    roots: Sequence[str] = (),
    alone: bool = False,
    home: Path | None = None,
    profile: ClientProfile = TERMINAL,
) -> DaemonClient:
    """A connection that shook hands. `alone`: to a core in this process, with all it keeps under `home` if that is
    given. Raises AmanuError when there is none to be had."""
    if alone or os.name == "nt":
        environ = {**os.environ, **({"AMANU_HOME": str(home)} if home else {})}
        return await _in_process(roots, environ, profile)
    return await _to_daemon(roots, profile)


async def connect_running() -> DaemonClient:
    """To the daemon if one runs, so that its sessions are not in the way; else to a core in this process."""
    return await connect(alone=not await _somebody_listens())


async def _in_process(roots: Sequence[str], environ: Mapping[str, str], profile: ClientProfile) -> DaemonClient:
    from amanu.frontends.lsp.connection import connect_in_process
    from amanu.session.sessions import open_sessions

    sessions = open_sessions(environ)
    client = DaemonClient(*await connect_in_process(sessions, environ), profile)
    client.at_close(sessions.shutdown)
    return await _initialized(client, roots)


async def _to_daemon(roots: Sequence[str], profile: ClientProfile) -> DaemonClient:
    from amanu.daemon.relay import DAEMON, NoDaemon, reach
    from amanu.frontends.lsp.handshake import EarlyRead

    try:
        link = await asyncio.to_thread(reach, find_home(), DAEMON, EarlyRead(b"", answered=False))
    except NoDaemon as error:
        raise _unreachable(str(error)) from None
    link.setblocking(False)
    client = DaemonClient(*await asyncio.open_unix_connection(sock=link), profile)
    try:
        return await _initialized(client, roots)
    except Disconnected:
        raise _unreachable("The daemon cannot be reached.") from None


def _unreachable(why: str) -> AmanuError:
    hint = "Run `amanu doctor` to find the cause, or use --alone to work without the daemon."
    return AmanuError("internalError", why, hint=hint)


async def _initialized(client: DaemonClient, roots: Sequence[str]) -> DaemonClient:
    try:
        await client.initialize(roots=roots)
    except BaseException:
        await client.close()
        raise
    return client


async def _somebody_listens() -> bool:
    if os.name == "nt":
        return False
    from amanu.daemon.sockets import socket_path

    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_unix_connection(socket_path(find_home()))
        writer.close()
        await writer.wait_closed()
        return True
    return False
