"""One process per user: sessions behind a unix socket, one connection object per client.

Started by the relay (`--detach`; `--ready FD`: a byte there says that we listen), or by hand. It exits when it was
idle and unattached for `idle_seconds`, cleanly at SIGTERM, and when a relay of another version asks it to: then it
stops listening at once, serves the clients it has until they disconnect, and exits.

Not on Windows, which has no unix sockets with peer credentials: there `--alone` is the way.
"""

import argparse
import asyncio
import contextlib
import errno
import fcntl
import hmac
import importlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from amanu import __version__
from amanu.daemon import stdio as last_words
from amanu.daemon.exit_deadline import leave_by
from amanu.daemon.malloc import give_back
from amanu.daemon.relay import MAX_HELLO
from amanu.daemon.sockets import make_token, opening, peer_uid, socket_path
from amanu.frontends.lsp.handshake import BUILD
from amanu.home import Home, find_home, hide_memory
from amanu.sandbox.rlimits import raise_file_limit
from amanu.system import logs
from amanu.system.gc import quick_imports
from amanu.system.loop_monitor import watched_loop

if TYPE_CHECKING:
    from amanu.session.sessions import Sessions

HELLO_SECONDS = 10.0
MAX_CLIENTS = 200
"""Editors and terminals at once. Each may hold 64 MB of what it has not read."""
MAX_STRANGERS = 32
"""Connections that have not said hello yet. One more, and the one that waited longest goes: a relay says hello at once,
so a flood of those that do not keeps nobody out."""
RECOVERY_SECONDS = 5.0
"""After the start, when those that connect first have their sessions."""
SETTLED_SECONDS = 30.0
"""After that: what is in no hurry begins."""
DAY_SECONDS = 24 * 3600.0
CATALOGUE_SECONDS = 3600.0
"""Between two looks at which vendors have to be asked for their models: each answers once a day, if it can."""
SWITCH_SECONDS = 0.001
"""How long a thread that computes keeps the event loop waiting (Python's default: 5 ms)."""
FULL_SECONDS = 60.0
"""Between two lines in the log that no connection can be accepted."""

log = logging.getLogger("amanu.daemon.main")  # run as `-m`, its name is `__main__`


def main(
    argv: Sequence[str],
    make_core: "Callable[[], Sessions] | None" = None,
) -> int:
    """Serve until idle, told to go, or replaced. Returns 0, or 1 with a sentence on stderr when it cannot start.

    `make_core` makes the sessions; None makes the real ones from the user's settings.
    """
    parser = argparse.ArgumentParser(prog="amanu daemon", description="Serve all editors of this user.")
    parser.add_argument("--ready", type=int, metavar="FD", help="write a byte there when listening")
    parser.add_argument("--detach", action="store_true", help="fork, to outlive the process that starts it")
    arguments = parser.parse_args(argv)
    ready: int | None = arguments.ready
    if arguments.detach and os.fork():
        # Editors kill the processes they started and all children (vscode-languageclient two seconds after its `exit`),
        # but by then the daemon may serve other clients.
        os._exit(0)
    last_words.mask("stdout", "stderr")
    with quick_imports():
        from amanu.config import load_settings
        from amanu_protocol.errors import AmanuError

    try:
        home = find_home().make()
        settings = load_settings(home, os.environ)
        logs.start(home, settings.log_level)
    except (AmanuError, OSError) as error:
        print(f"{error}", file=sys.stderr)
        return 1
    hide_memory()
    give_back()
    raise_file_limit()
    sys.setswitchinterval(SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=watched_loop) as runner:
        return runner.run(Daemon(home, settings.idle_seconds, make_core or _sessions).serve(ready))


class Daemon:
    """`idle_seconds` without a client and a running turn end it."""

    def __init__(
        self,
        home: Home,
        idle_seconds: float,
        make_core: "Callable[[], Sessions]",
    ) -> None:
        self._home = home
        self._idle_seconds = idle_seconds
        self._make_core = make_core
        self._clients: dict[asyncio.Task[None], asyncio.StreamReader] = {}
        self._strangers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        """Of the clients, those that have not said hello, oldest first."""
        self._opening = b""
        """What a hello must begin with."""
        self._changed = asyncio.Event()
        self._stop = False
        self._retired = False
        self._full_said = -FULL_SECONDS

    async def serve(self, ready: int | None) -> int:
        """Listen and serve. `ready`: file descriptor that is told so, held open by whoever has the start lock."""
        with quick_imports():
            importlib.import_module("amanu.frontends.lsp.connection")  # now, not when the first client waits for it
            self._sessions = self._make_core()

        lock = None
        if ready is None:
            lock = os.open(self._home.runtime / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            path = socket_path(self._home)
            if await _somebody_listens(path):
                print("amanu: a daemon is already running.", file=sys.stderr)
                return 1
            path.unlink(missing_ok=True)
            self._opening = opening(make_token(self._home))  # before anybody can ask for it
            mask = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(self._accept, path, limit=MAX_HELLO)
            finally:
                os.umask(mask)
            self._path = path
        except OSError as error:
            print(f"amanu: the daemon cannot listen: {error}.", file=sys.stderr)
            return 1
        finally:
            if lock is not None:
                os.close(lock)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._terminate)
        asyncio.get_running_loop().set_exception_handler(self._unhandled)
        log.info("amanu %s listens on %s", __version__, path)
        if ready is not None:
            with contextlib.suppress(BrokenPipeError):  # who started us is gone: others come
                os.write(ready, b"1")
            os.close(ready)
        background = [asyncio.create_task(self._forget()), asyncio.create_task(self._refresh_catalogue())]
        await self._until_done()
        leave_by()
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await self._go()
        return 0

    async def _forget(self) -> None:
        """What a killed daemon left half done comes to its end; then, once a day, what is too old goes."""
        await asyncio.sleep(RECOVERY_SECONDS)
        try:
            await self._sessions.recover_unfinished()
        except Exception:
            log.exception("what the last daemon left could not be looked through")
        await asyncio.sleep(SETTLED_SECONDS)
        self._sessions.search.changed()
        while True:
            try:
                await self._sessions.apply_retention()
            except Exception:
                log.exception("old sessions could not be looked through")
            await asyncio.sleep(DAY_SECONDS)

    async def _refresh_catalogue(self) -> None:
        """What vendors say of their models is kept up to date; nobody waits for it."""
        await asyncio.sleep(RECOVERY_SECONDS)
        while True:
            try:
                await self._sessions.refresh_catalogue()
            except Exception:
                log.exception("the models of the vendors could not be listed")
            await asyncio.sleep(CATALOGUE_SECONDS)

    async def _until_done(self) -> None:
        """Until told to stop, or idle for long enough; retired ones leave as soon as nobody needs them."""
        while not self._stop:
            self._changed.clear()
            wait = 0.0 if self._retired else self._idle_seconds
            if self._clients:
                await self._changed.wait()
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()
                continue  # somebody came, or we are to go
            if not self._sessions.busy:
                return
            await asyncio.sleep(min(1.0, self._idle_seconds))  # a turn runs on without its client

    async def _go(self) -> None:
        log.info("leaving")
        self._retire()
        await self._sessions.shutdown()  # first, so that clients hear how their turns ended
        for reader in self._clients.values():
            reader.feed_eof()
        await asyncio.gather(*self._clients)

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Without a free file handle asyncio tries a hundred times a second to accept, and tells each time, with a
        traceback: that held the loop and pushed all else out of the log."""
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE) and "socket" in context):
            loop.default_exception_handler(context)
        elif loop.time() - self._full_said >= FULL_SECONDS:
            self._full_said = loop.time()
            log.error("no connection can be accepted now: %s", error.strerror)

    def _terminate(self) -> None:
        self._stop = True
        self._changed.set()

    def _retire(self) -> None:
        """Stop listening, for good. What is connected goes on."""
        if not self._retired:
            self._retired = True
            self._server.close()
            self._path.unlink(missing_ok=True)
            self._changed.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._clients[task] = reader
        self._changed.set()
        try:
            await self._client(reader, writer)
        except (ConnectionError, TimeoutError):
            pass
        except Exception:
            log.exception("a connection failed")
        finally:
            writer.transport.abort()
            self._strangers.pop(task, None)
            del self._clients[task]
            self._changed.set()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if peer_uid(writer.get_extra_info("socket")) not in (None, os.getuid()):
            log.warning("another user's process tried to connect")
            return
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._strangers[task] = writer
        if len(self._strangers) > MAX_STRANGERS:
            next(iter(self._strangers.values())).transport.abort()
        async with asyncio.timeout(HELLO_SECONDS):
            hello = await _read_hello(reader, self._opening)
        del self._strangers[task]
        if hello is None:
            return
        if len(self._clients) - len(self._strangers) > MAX_CLIENTS:
            log.warning("%d clients are connected; no more are taken", MAX_CLIENTS)
            return
        accepted = hello.get("version") == BUILD
        if not accepted:
            log.info("replaced by version %s", str(hello.get("version"))[:40])
            self._retire()
        writer.write(json.dumps({"accepted": accepted, "version": BUILD}).encode() + b"\n")
        await writer.drain()
        if not accepted:
            return
        from amanu.frontends.lsp.connection import Connection, Streams, finish

        streams = Streams(reader, writer, answered=hello.get("answered") is True)
        connection = Connection(self._sessions, streams, hello["environment"])
        code = await connection.run()
        await finish(writer, b"\0%d" % code)


def _sessions() -> "Sessions":
    from amanu.session.sessions import open_sessions

    return open_sessions()


async def _somebody_listens(path: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def _read_hello(reader: asyncio.StreamReader, begin: bytes) -> dict[str, Any] | None:
    """The relay's first line; None when it is not one. Nothing is made of it unless it begins with the token."""
    try:
        begun = await reader.readexactly(len(begin))
        if not hmac.compare_digest(begun, begin):
            log.warning("a connection without the token was closed")
            return None
        hello: Any = json.loads(begun + await reader.readuntil(b"\n"))
        environment = hello["environment"]
        if all(isinstance(text, str) for pair in environment.items() for text in pair):
            return hello
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    log.warning("a connection without a hello")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
