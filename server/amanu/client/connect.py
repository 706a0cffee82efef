"""Ways to a core: in this process, or the user's daemon, which is started where none runs."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amanu.client.daemon_client import ClientProfile, DaemonClient, Disconnected
from amanu.home import find_home
from amanu_protocol.errors import AmanuError

if TYPE_CHECKING:
    from amanu.session.sessions import Sessions

TERMINAL = ClientProfile()


class LocalCore:
    """A core in this process, for any number of connections. It is made with the first."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._sessions: Sessions | None = None

    async def connect(self, roots: Sequence[str], profile: ClientProfile) -> DaemonClient:
        from amanu.frontends.lsp.connection import connect_in_process
        from amanu.session.sessions import open_sessions

        if self._sessions is None:
            self._sessions = open_sessions(self._environ)
        client = DaemonClient(*await connect_in_process(self._sessions, self._environ), profile)
        return await _initialized(client, roots)

    async def close(self) -> None:
        """After its clients."""
        if self._sessions is not None:
            await self._sessions.shutdown()


async def connect(
    *,
    roots: Sequence[str] = (),
    alone: bool = False,
    home: Path | None = None,
    core: LocalCore | None = None,
    profile: ClientProfile = TERMINAL,
) -> DaemonClient:
    """An initialized connection: to `core` if set, else to the daemon. `alone`: to a new core in this process, which
    stores everything under `home` if set. Raises AmanuError if no connection can be made."""
    if core is not None:
        return await core.connect(roots, profile)
    if not alone and os.name != "nt":
        return await _to_daemon(roots, profile)
    own_core = LocalCore({**os.environ, **({"AMANU_HOME": str(home)} if home else {})})
    try:
        client = await own_core.connect(roots, profile)
    except BaseException:
        await own_core.close()
        raise
    client.at_close(own_core.close)
    return client


async def connect_running() -> DaemonClient:
    """To the daemon if one runs, so that its sessions are not in the way; else to a core in this process."""
    return await connect(alone=not await _daemon_is_listening())


async def _to_daemon(roots: Sequence[str], profile: ClientProfile) -> DaemonClient:
    from amanu.daemon.relay import NoDaemon

    try:
        link = await _link()
    except NoDaemon as error:
        raise _unreachable(str(error)) from None
    link.setblocking(False)
    client = DaemonClient(*await asyncio.open_unix_connection(sock=link), profile)
    try:
        return await _initialized(client, roots)
    except Disconnected:
        raise _unreachable("The daemon cannot be reached.") from None


async def _link() -> socket.socket:
    """A socket to the daemon. Raises `NoDaemon`. In a thread that nobody waits for at exit: a daemon that does not
    start must not keep a user who leaves."""
    from amanu.daemon.relay import DAEMON, reach
    from amanu.frontends.lsp.handshake import EarlyRead

    loop = asyncio.get_running_loop()
    reached: asyncio.Future[socket.socket] = loop.create_future()

    def settle(link: socket.socket | None, error: BaseException | None) -> None:
        if reached.done():  # cancelled meanwhile
            if link is not None:
                link.close()
        elif link is not None:
            reached.set_result(link)
        elif error is not None:
            reached.set_exception(error)

    def run() -> None:
        link, failure = None, None
        try:
            link = reach(find_home(), DAEMON, EarlyRead(b"", answered=False))
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, link, failure)

    threading.Thread(target=run, daemon=True).start()
    return await reached


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


async def _daemon_is_listening() -> bool:
    if os.name == "nt":
        return False
    from amanu.daemon.sockets import socket_path

    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_unix_connection(socket_path(find_home()))
        writer.close()
        await writer.wait_closed()
        return True
    return False
