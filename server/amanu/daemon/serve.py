"""`amanu serve`: the language server on stdin and stdout. Nothing heavy is imported before `initialize` is answered."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from amanu.session.sessions import Sessions


def parser() -> "argparse.ArgumentParser":
    import argparse  # an editor starts this command without it

    parser = argparse.ArgumentParser(
        prog="amanu serve",
        description="Speak LSP on stdin and stdout, for an editor. By default through your daemon, which is "
        "started if it is not running, and outlives the editor.",
    )
    parser.add_argument("--stdio", action="store_true", help="on stdin and stdout, as without it")
    parser.add_argument("--pipe", metavar="PATH", help="on a Unix socket that the editor listens on")
    parser.add_argument("--clientProcessId", metavar="PID", help="taken, and not needed: `initialize` has it")
    parser.add_argument("--alone", action="store_true", help="in this process, without the shared daemon")
    return parser


def main(argv: list[str]) -> int:
    """Serve until the editor leaves. Returns the exit code the language server protocol asks for."""
    arguments = parser().parse_args(argv) if argv not in ([], ["--alone"]) else None
    if arguments is not None and arguments.pipe is not None:
        try:
            _connect(arguments.pipe)
        except OSError as error:
            print(f"amanu: nothing listens at {arguments.pipe}: {error.strerror}.", file=sys.stderr)
            return 1
    if argv == ["--alone"] or (arguments is not None and arguments.alone):
        from amanu.daemon.standalone import serve_alone

        return serve_alone(_sessions)
    from amanu.daemon import relay

    return relay.main(argv)


def _connect(pipe: str) -> None:
    """Put the socket that an editor listens on in the place of stdin and stdout. Raises `OSError`."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(pipe)
        for descriptor in (0, 1):
            os.dup2(connection.fileno(), descriptor)


def _sessions() -> "Sessions":
    from amanu.session.sessions import open_sessions

    return open_sessions()
