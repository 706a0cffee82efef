"""Ways to a core: in this process, or the user's daemon by the same relay that editors start."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from amanu.cli.client import DaemonClient, Disconnected
from amanu.cli.text import one_line
from amanu.home import find_home
from amanu_protocol.errors import AmanuError

RELAY = (sys.executable, "-P", "-m", "amanu.daemon.relay")
"""`-P`: nothing is imported from the folder we run in (invariant 16)."""
LEAVE_SECONDS = 3.0


async def connect(*, roots: Sequence[str] = (), alone: bool = False, home: Path | None = None) -> DaemonClient:
    """A connection that shook hands. `alone`: to a core in this process, with all it keeps under `home` if that is
    given. Raises AmanuError when there is none to be had."""
    if alone or os.name == "nt":
        return await _in_process(roots, {**os.environ, **({"AMANU_HOME": str(home)} if home else {})})
    return await _by_relay(roots)


async def connect_running() -> DaemonClient:
    """To the daemon if one runs, so that its sessions are not in the way; else to a core in this process."""
    return await connect(alone=not await _somebody_listens())


async def _in_process(roots: Sequence[str], environ: Mapping[str, str]) -> DaemonClient:
    from amanu.frontends.lsp.connection import connect_in_process
    from amanu.session.sessions import open_sessions

    sessions = open_sessions(environ)
    client = DaemonClient(*await connect_in_process(sessions, environ))
    client.at_close(sessions.shutdown)
    return await _initialized(client, roots)


async def _by_relay(roots: Sequence[str]) -> DaemonClient:
    relay = await asyncio.create_subprocess_exec(
        *RELAY,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd="/",
        start_new_session=True,  # Ctrl-C is ours to handle
    )
    assert relay.stdin is not None and relay.stdout is not None and relay.stderr is not None

    async def leave() -> None:
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await relay.wait()
        except TimeoutError:
            relay.kill()
            await relay.wait()

    client = DaemonClient(relay.stdout, relay.stdin)
    client.at_close(leave)
    try:
        return await _initialized(client, roots)
    except Disconnected:
        output = one_line((await relay.stderr.read()).decode("utf-8", "replace"), 1000)
        raise AmanuError(
            "internalError",
            output or "The daemon cannot be reached.",
            hint="Run `amanu doctor` to find the cause, or use --alone to work without the daemon.",
        ) from None


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
