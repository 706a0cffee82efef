"""Editor and daemon in one process: `amanu serve --alone`. Until `initialize` is answered only what that takes is
imported; asyncio alone would double the time."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from amanu.frontends.lsp.handshake import answer_first
from amanu.system.descriptors import read_descriptor, write_descriptor
from amanu.system.gc import quick_imports

if TYPE_CHECKING:
    from amanu.session.sessions import Sessions

STDIN, STDOUT = 0, 1


def serve_alone(make_core: "Callable[[], Sessions]") -> int:
    """Serve one client on stdin and stdout. Returns the exit code LSP wants.

    `make_core` is called after `initialize` is answered, in the event loop: it may import what it likes. Two threads
    move the bytes, so that a client that stops reading stops nothing here, whatever stdin and stdout are.
    """
    first = answer_first(read_descriptor(STDIN), write_descriptor(STDOUT))
    if not first.received:
        return 0
    import asyncio
    import signal
    import socket
    import threading

    from amanu.daemon.relay import copy_in, copy_out

    ours, theirs = socket.socketpair()
    threading.Thread(target=copy_in, args=(STDIN, theirs), daemon=True).start()
    out = threading.Thread(target=copy_out, args=(theirs, STDOUT), daemon=True)
    out.start()

    async def serve() -> int:
        with quick_imports():
            from amanu.daemon import stdio as last_words
            from amanu.daemon.malloc import give_back
            from amanu.frontends.lsp.connection import Connection, Streams, finish

            last_words.mask("stderr")  # editors keep it, and show it
            sessions = make_core()
        give_back()
        reader, writer = await asyncio.open_connection(sock=ours)
        for number in (signal.SIGTERM, signal.SIGHUP) if os.name != "nt" else ():
            asyncio.get_running_loop().add_signal_handler(number, reader.feed_eof)
        streams = Streams(reader, writer, first.received, first.answered)
        connection = Connection(sessions, streams, dict(os.environ))
        try:
            return await connection.run()
        finally:
            await finish(writer)
            await sessions.shutdown()

    code = asyncio.run(serve())
    out.join(timeout=2)
    return code
